//! Deliveries into mailboxes: those that wait for one commit are the next one.

use super::open::{Committing, Ready, State};
use super::{Asked, Mailboxes, Output, Refusal};
use crate::attributes::Attributes;
use crate::delivery::{Arriving, Delivered, NotDelivered};
use crate::forward::Original;
use base::ber::Writer;
use base::{EntryId, Now, Precedence};
use bytes::Bytes;
use engine::journal::{Batch, MailboxId};
use engine::{Delivery, Record, RecordKind};
use std::cmp::Reverse;
use std::collections::VecDeque;

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
pub(super) struct Coming {
    arrival: Box<Arrival>,
    forwarding: Forwarding,
}

/// Whether a copy is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forwarding {
    /// It was not looked at.
    Unknown,
    /// Its caller was asked to submit: its delivery waits for the answer.
    Asked { delete_after: bool },
    /// What is submitted is in its batch, or nothing is.
    Known { delete_after: bool },
}

impl Coming {
    pub(super) fn entry(&self) -> EntryId {
        self.arrival.entry
    }

    fn precedence(&self) -> Precedence {
        self.arrival.record.precedence
    }

    fn is_asked(&self) -> bool {
        matches!(self.forwarding, Forwarding::Asked { .. })
    }

    fn is_deleted_after(&self) -> bool {
        self.forwarding == Forwarding::Known { delete_after: true }
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
            let forwarding = Forwarding::Unknown;
            open.coming.push_back(Coming { arrival: Box::new(arrival), forwarding });
        }
        self.advance(now, id);
    }

    /// The next commit of a mailbox, if none is in progress: of the operation that changes it, of what was delivered
    /// meanwhile, of its totals. Deliveries wait for one batch of an operation, and that for one group of them.
    pub(super) fn commit_next(&mut self, now: Now, id: MailboxId) {
        self.ask_to_forward(now, id);
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        if ready.committing.is_some() || open.coming.iter().any(Coming::is_asked) {
            return;
        }
        let (committing, precedence, batch) = if let Some(batch) = ready.wanted.take() {
            (Committing::Changing, Precedence::Immediate, batch)
        } else {
            let coming = take_highest(&mut open.coming);
            let mut refused = Vec::new();
            let delivered = deliver_all(now, id, ready, coming, &mut refused);
            self.outputs.extend(refused);
            if !delivered.is_empty() {
                let first = delivered.first();
                let highest = first.map_or(Precedence::Deferred, |(_, d)| d.item.precedence);
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

    /// Asks the caller to submit what auto-forward makes of the copies that come (X.413 13.1).
    fn ask_to_forward(&mut self, now: Now, id: MailboxId) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        if !ready.registrations.has_forwards() {
            return;
        }
        for coming in open.coming.iter_mut().filter(|c| c.forwarding == Forwarding::Unknown) {
            coming.forwarding = Forwarding::Known { delete_after: false };
            let Arrival { entry, record, delivery, first, .. } = &*coming.arrival;
            // A report is not forwarded, with or without the content that it returns.
            let Some(body) = record.body.filter(|_| record.kind() == RecordKind::Message) else {
                continue;
            };
            let arriving = Arriving { entry: *entry, record, delivery, first };
            let Ok(item) = ready.mailbox.next_item(now.utc, &arriving) else { continue };
            let encoded = item.encode();
            let Ok(attributes) = Attributes::new(item.id.number, item.precedence, &encoded) else {
                continue;
            };
            let (mut forwards, mut delete_after) = (Vec::new(), false);
            for (registration, auto) in ready.registrations.forwards(&attributes) {
                let original = Original { entry: *entry, item: &item, first };
                match original.forward(now.utc, (registration, &auto)) {
                    Ok(made) => {
                        delete_after |= made.delete_after;
                        forwards.extend(made.all);
                    }
                    Err(why) => {
                        let (entry, why) = (*entry, why.to_string());
                        self.outputs.push_back(Output::NotForwarded { entry, why });
                    }
                }
            }
            if !forwards.is_empty() {
                coming.forwarding = Forwarding::Asked { delete_after };
                let address = self.names.address(id).unwrap_or_default().to_owned();
                let entry = *entry;
                let (copies, notices): (Vec<_>, Vec<_>) =
                    forwards.into_iter().partition(|forwarding| forwarding.part.is_some());
                // Of several registrations: the originator is notified once.
                let notice = notices.into_iter().next();
                self.outputs.push_back(Output::Forward { entry, address, body, copies, notice });
            }
        }
    }

    /// Answers [`Output::Forward`]: what is committed with the delivery, and whether every copy was accepted. If one was
    /// not, the item is not deleted.
    pub fn forwarded(
        &mut self,
        now: Now,
        address: &str,
        entry: EntryId,
        (with_it, is_all): (Batch, bool),
    ) {
        let Some(id) = self.names.number(address) else { return };
        let coming = self.open.get_mut(&id).and_then(|open| {
            open.coming.iter_mut().find(|coming| coming.entry() == entry && coming.is_asked())
        });
        if let Some(coming) = coming {
            let Forwarding::Asked { delete_after } = coming.forwarding else { return };
            let delete_after = delete_after && is_all;
            coming.forwarding = Forwarding::Known { delete_after };
            // Before the content in the queue is deleted, of which it copies.
            coming.arrival.with_it.splice(0..0, with_it);
        }
        self.advance(now, id);
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
                        if !coming.is_deleted_after() {
                            ready.mailbox.not_delivered(&delivered);
                        }
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
            let is_kept = !coming.is_deleted_after();
            self.outputs.push_back(Output::Delivered { entry, item, is_kept });
        }
        delivered.sort_by_key(|(_, delivered)| {
            (Reverse(delivered.item.precedence), delivered.item.id.number)
        });
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        for (coming, delivered) in &delivered {
            if coming.is_deleted_after() {
                continue;
            }
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

/// The next group: those of the highest precedence, in their order. A lower one in their commit would take of the
/// room on a full disk that is kept for them.
fn take_highest(coming: &mut VecDeque<Coming>) -> Vec<Coming> {
    let Some(highest) = coming.iter().map(Coming::precedence).max() else { return Vec::new() };
    let mut group = Vec::new();
    let mut others = VecDeque::with_capacity(coming.len());
    for next in coming.drain(..) {
        if group.len() < GROUP && next.precedence() == highest {
            group.push(next);
        } else {
            others.push_back(next);
        }
    }
    *coming = others;
    group
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
        let Arrival { entry, record, delivery, first, .. } = &*coming.arrival;
        let arriving = Arriving { entry: *entry, record, delivery, first };
        let made = match coming.is_deleted_after() {
            false => ready.mailbox.deliver(now.utc, &arriving),
            true => ready.mailbox.pass(now.utc, &arriving),
        };
        let why = match made {
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
        batch.extend(coming.arrival.with_it.iter().cloned());
    }
    batch.push(ready.mailbox.put_totals());
    batch
}

fn is_totals(op: &engine::journal::Op) -> bool {
    matches!(op, engine::journal::Op::PutMeta { .. })
}
