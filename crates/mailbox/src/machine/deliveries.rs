//! Deliveries into mailboxes: those that wait for one commit are the next one.

use super::open::{Committing, Ready, State};
use super::{Asked, Mailboxes, Output, Refusal};
use crate::delivery::{Arriving, Delivered, NotDelivered};
use base::ber::Writer;
use base::{EntryId, Now, Precedence};
use bytes::Bytes;
use engine::journal::{Batch, MailboxId};
use engine::{Delivery, Record};
use std::cmp::Reverse;

/// Most deliveries of a commit.
const GROUP: usize = 64;

/// A copy in the queue that goes into a mailbox.
#[derive(Debug)]
pub struct Arrival {
    /// Its entry in the queue.
    pub entry: EntryId,
    /// The record of that entry.
    pub record: Record,
    /// What [`engine::Engine::delivery_argument`] makes of it now.
    pub delivery: Delivery,
    /// The first octets of its content, as in [`Arriving::first`].
    pub first: Bytes,
    /// What is committed with it: reports, and the end of the queue's content with its last copy.
    pub with_it: Batch,
}

/// One that waits.
#[derive(Debug)]
pub(super) struct Coming(Box<Arrival>);

impl Coming {
    pub(super) fn entry(&self) -> EntryId {
        self.0.entry
    }
}

impl Mailboxes {
    /// Delivers a copy: ends with [`Output::Delivered`] or [`Output::NotDelivered`].
    pub fn deliver(&mut self, now: Now, address: &str, arrival: Arrival) {
        if let Some(why) = self.broken.clone() {
            let (entry, why) = (arrival.entry, Refusal::Failed(why));
            return self.outputs.push_back(Output::NotDelivered {
                entry,
                mailbox: MailboxId(0),
                why,
            });
        }
        let id = self.mailbox(address);
        if let Some(open) = self.open.get_mut(&id) {
            open.level = open.level.max(arrival.record.precedence);
            open.coming.push_back(Coming(Box::new(arrival)));
        }
        self.advance(now, id);
    }

    /// The next commit of a mailbox, if none is in progress: of the operation that changes it, of what was delivered
    /// meanwhile, of its totals. Deliveries wait for one batch of an operation, and that for one group of them.
    pub(super) fn commit_next(&mut self, now: Now, id: MailboxId) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        if ready.committing.is_some() {
            return;
        }
        let (committing, precedence, batch) = if let Some(batch) = ready.wanted.take() {
            (Committing::Changing, Precedence::Immediate, batch)
        } else {
            let coming: Vec<Coming> = open.coming.drain(..open.coming.len().min(GROUP)).collect();
            let mut refused = Vec::new();
            let delivered = deliver_all(now, id, ready, coming, &mut refused);
            self.outputs.extend(refused);
            if !delivered.is_empty() {
                let levels = delivered.iter().map(|(_, delivered)| delivered.item.precedence);
                let highest = levels.max().unwrap_or(Precedence::Deferred);
                let batch = batch_of(ready, &delivered);
                ready.is_dirty = false;
                (Committing::Deliveries(delivered), highest, batch)
            } else if std::mem::take(&mut ready.is_dirty) {
                (Committing::Totals, Precedence::Deferred, vec![ready.mailbox.put_totals()])
            } else {
                return;
            }
        };
        ready.committing = Some(committing);
        let ticket = self.ticket(Asked::Commit(id));
        self.outputs.push_back(Output::Commit { ticket, precedence, batch });
    }

    pub(super) fn mailbox_committed(
        &mut self,
        now: Now,
        id: MailboxId,
        result: Result<(), String>,
    ) {
        let Some(ready) = self.open.get_mut(&id).and_then(|open| open.ready()) else { return };
        match ready.committing.take() {
            Some(Committing::Deliveries(delivered)) => match result {
                Ok(()) => self.delivered(id, delivered),
                Err(why) => {
                    for (coming, delivered) in delivered {
                        ready.mailbox.not_delivered(&delivered);
                        let why = Refusal::Failed(why.clone());
                        let entry = coming.entry();
                        self.outputs.push_back(Output::NotDelivered { entry, mailbox: id, why });
                    }
                }
            },
            Some(Committing::Changing) => self.changing_committed(now, id, result.is_ok()),
            // The next commit has them too.
            Some(Committing::Totals) | None => {}
        }
        self.advance(now, id);
    }

    /// These are durable: their queue forgets them, and the alerts go out, the highest first.
    fn delivered(&mut self, id: MailboxId, mut delivered: Vec<(Coming, Delivered)>) {
        for (coming, delivered) in &delivered {
            let (entry, item) = (coming.entry(), delivered.item.id);
            self.outputs.push_back(Output::Delivered { entry, item });
        }
        delivered.sort_by_key(|(_, delivered)| {
            (Reverse(delivered.item.precedence), delivered.item.id.number)
        });
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        for (_, delivered) in &delivered {
            let Ok(attributes) = delivered.attributes() else { continue };
            for alert in ready.registrations.alerts(&attributes) {
                let mut w = Writer::new();
                alert.write(&mut w);
                let argument = Bytes::from(w.into_vec());
                let bound = open.sessions.iter().filter(|(_, session)| session.is_bound);
                let mut is_there = false;
                for (session, _) in bound {
                    is_there = true;
                    let (session, argument) = (*session, argument.clone());
                    self.outputs.push_back(Output::Alert { session, argument });
                }
                if !is_there && !ready.mailbox.totals().alerted {
                    ready.mailbox.set_alerted(true);
                    ready.is_dirty = true;
                }
            }
        }
    }
}

/// Makes the items of those that have room.
fn deliver_all(
    now: Now,
    id: MailboxId,
    ready: &mut Ready,
    coming: Vec<Coming>,
    refused: &mut Vec<Output>,
) -> Vec<(Coming, Delivered)> {
    let mut all = Vec::with_capacity(coming.len());
    for coming in coming {
        let Arrival { entry, record, delivery, first, .. } = &*coming.0;
        let arriving = Arriving { entry: *entry, record, delivery, first };
        let why = match ready.mailbox.deliver(now.utc, &arriving) {
            Ok(delivered) => {
                all.push((coming, delivered));
                continue;
            }
            Err(NotDelivered::Full(full)) => Refusal::Full(full),
            Err(NotDelivered::Item(error)) => Refusal::Unfit(error.to_string()),
        };
        refused.push(Output::NotDelivered { entry: coming.entry(), mailbox: id, why });
    }
    all
}

/// One batch: the totals of the last of them are those of all.
fn batch_of(ready: &Ready, delivered: &[(Coming, Delivered)]) -> Batch {
    let mut batch = Batch::new();
    for (coming, delivered) in delivered {
        let ops = delivered.batch.iter().filter(|op| !is_totals(op));
        batch.extend(ops.cloned());
        batch.extend(coming.0.with_it.iter().cloned());
    }
    batch.push(ready.mailbox.put_totals());
    batch
}

fn is_totals(op: &engine::journal::Op) -> bool {
    matches!(op, engine::journal::Op::PutMeta { .. })
}
