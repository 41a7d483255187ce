//! Deliveries into mailboxes: the record is read, then the front of the content, then all is committed.

use super::Stores;
use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{self, LoadError, ReadError};
use base::{EntryId, Now, Precedence};
use bytes::{Bytes, BytesMut};
use engine::journal::{ItemId, MailboxId, Op};
use engine::{NewEntry, NextHop, Record};
use mailbox::machine::{Arrival, Refusal};
use p1::reason::{Diagnostic, NonDeliveryReason};
use std::cmp::Reverse;
use std::time::Duration;

/// Most copies that are being delivered into mailboxes: each has the front of its content in memory.
const MAX_STORING: usize = 256;

/// What is read of a content: its heading, with what is before it.
const FRONT: usize = mailbox::heading::MAX_HEADING + 256;

/// Longest wait of a copy that found no room, before it is tried again.
const FULL_AGAIN: Duration = Duration::from_secs(300);

/// So many copies that found no room are tried when there is some; each that is stored lets the next one try. All at once
/// would read and refuse thousands for each deletion.
const TRIED_AT_ONCE: usize = 16;

/// A copy that is being delivered into a mailbox.
#[derive(Debug)]
pub(crate) struct Storing {
    /// Its mailbox in the queue.
    mailbox: u32,
    record: Option<Box<Record>>,
    front: BytesMut,
    /// The reports that its commit queues.
    pub(super) reports: Vec<NewEntry>,
    /// Its commit deletes the content in the queue.
    deletes_body: bool,
}

/// What follows for an entry whose record cannot be used.
pub(crate) enum Unreadable {
    /// It is damaged.
    Damaged(LoadError),
    /// It is tried again.
    Again(LoadError),
}

impl Stores {
    /// Takes up deliveries into this mailbox of the queue, as many as may be.
    pub(crate) fn take_up(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        while self.storing.len() < MAX_STORING {
            let Some(entry) = cx.queue.scheduler.next_for_mailbox(now.mono, mailbox) else {
                return;
            };
            let storing = Storing {
                mailbox,
                record: None,
                front: BytesMut::new(),
                reports: Vec::new(),
                deletes_body: false,
            };
            self.storing.insert(entry, storing);
            match cx.queue.take_fresh(entry) {
                Some(record) => self.read_front(cx, now, entry, record),
                None => {
                    let Some(item) = cx.queue.get(entry) else { continue };
                    let token = cx.token(PendingAnswer::LoadStored { entry });
                    cx.output(Output::Load { token, precedence: item.precedence, id: entry });
                }
            }
        }
        self.waiting.insert(mailbox);
    }

    /// The record of one was read. Gives why it cannot be used.
    pub(crate) fn loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        result: Result<Option<Bytes>, ReadError>,
    ) -> Option<Unreadable> {
        if cx.queue.get(entry).is_none() {
            self.storing.remove(&entry);
            return None;
        }
        match error::record(result) {
            Ok(record) => {
                self.read_front(cx, now, entry, record);
                None
            }
            Err(error) => {
                self.storing.remove(&entry);
                match error.is_damage() {
                    true => Some(Unreadable::Damaged(error)),
                    false => Some(Unreadable::Again(error)),
                }
            }
        }
    }

    fn read_front(&mut self, cx: &mut Context, now: Now, entry: EntryId, record: Record) {
        let Some(storing) = self.storing.get_mut(&entry) else { return };
        let body = record.body.filter(|_| record.size > 0);
        let precedence = record.precedence;
        let length = usize::try_from(record.size).unwrap_or(FRONT).min(FRONT);
        storing.record = Some(Box::new(record));
        let done = storing.front.len();
        match body {
            Some(body) if done < length => {
                let token = cx.token(PendingAnswer::Front { entry });
                let (offset, len) = (done as u64, length - done);
                cx.output(Output::ReadFront { token, precedence, body, offset, len });
            }
            _ => self.deliver(cx, now, entry),
        }
    }

    /// A part of the front of a content was read.
    pub(crate) fn front_read(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        result: Result<Bytes, ReadError>,
    ) {
        let Some(storing) = self.storing.get_mut(&entry) else { return };
        match result {
            Ok(octets) if !octets.is_empty() => {
                storing.front.extend_from_slice(&octets);
                if let Some(record) = storing.record.take() {
                    self.read_front(cx, now, entry, *record);
                }
            }
            Ok(_) => self.again(cx, now, entry, "the content is shorter than its length"),
            Err(error) => {
                if matches!(error, ReadError::Damaged(_)) {
                    cx.queue.damaged.insert(entry);
                }
                self.again(cx, now, entry, &error.to_string());
            }
        }
    }

    fn deliver(&mut self, cx: &mut Context, now: Now, entry: EntryId) {
        let Some(storing) = self.storing.get_mut(&entry) else { return };
        let Some(record) = storing.record.take() else { return };
        let mailbox = storing.mailbox;
        if let Some((reason, diagnostic, why)) = cx.engine.refuses_delivery(&record) {
            self.storing.remove(&entry);
            self.next_of(mailbox);
            return self.refuse(cx, now, entry, &record, (reason, diagnostic), &why);
        }
        let Some(storing) = self.storing.get_mut(&entry) else { return };
        let NextHop::Mailbox(address) = &record.next_hop else { return };
        let address = address.clone();
        let Some(delivery) = cx.engine.delivery_argument(now.utc, &record) else {
            return self.again(cx, now, entry, "the queue holds what cannot be delivered");
        };
        let concluded = cx.engine.delivered(now.utc, now.utc, &record);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let mut with_it = engine::put_entries(&concluded.entries);
        storing.reports = concluded.entries;
        // With its last copy; of several that are being delivered none is the last.
        storing.deletes_body = record.body.is_some_and(|body| cx.queue.copies.is_last(body));
        if let Some(id) = record.body.filter(|_| storing.deletes_body) {
            with_it.push(Op::DeleteBody { id });
        }
        let first = std::mem::take(&mut storing.front).freeze();
        storing.record = Some(record.clone());
        let arrival = Arrival { entry, record: *record, delivery, first, with_it };
        self.mailboxes.deliver(now, &address, arrival);
    }

    /// A copy is in its mailbox. Gives the reports to be queued.
    pub(crate) fn stored(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        (item, is_kept): (ItemId, bool),
    ) -> Vec<NewEntry> {
        let Some(storing) = self.storing.remove(&entry) else { return Vec::new() };
        self.next_of(storing.mailbox);
        let precedence = storing.record.as_ref().map(|record| record.precedence);
        if precedence.is_some_and(|precedence| self.has_room(entry, precedence)) {
            self.hasten(cx, now, item.mailbox, TRIED_AT_ONCE);
        }
        if let Some(record) = &storing.record
            && let NextHop::Mailbox(mailbox) = &record.next_hop
        {
            let end = if is_kept { "" } else { ", forwarded and deleted" };
            let detail = format!("to {mailbox}, number {}{end}", item.number);
            cx.event(LogLevel::Info, Kind::Delivered, detail)
                .message(record.message.clone())
                .entry(entry)
                .precedence(record.precedence)
                .bytes(record.body.map(|_| record.size))
                .ends_at(record.accepted, mailbox);
        }
        let (mut batch, bodies) = cx.queue.forget(entry);
        batch.retain(|op| matches!(op, Op::DeleteBody { .. }) && !storing.deletes_body);
        if !batch.is_empty() {
            let retry = PendingRetry::alone(batch);
            cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
        }
        cx.release_bodies(bodies);
        storing.reports
    }

    /// A copy is not in its mailbox. Gives its record where it is to be reported, and why.
    pub(crate) fn not_stored(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        mailbox: MailboxId,
        why: Refusal,
    ) -> Option<(Box<Record>, String)> {
        let full = match why {
            Refusal::Full(full) => full,
            Refusal::Unfit(why) | Refusal::Failed(why) => {
                self.again(cx, now, entry, &why);
                return None;
            }
        };
        let storing = self.storing.remove(&entry)?;
        self.next_of(storing.mailbox);
        let record = storing.record?;
        let waited = now.utc.since(record.accepted);
        let most = cx.config.store.full;
        if full.is_permanent() || (waited >= most && !cx.queue.wall.is_doubted()) {
            return Some((record, full.to_string()));
        }
        let again = FULL_AGAIN.min(most.saturating_sub(waited)).max(Duration::from_secs(1));
        let key = (Reverse(record.precedence), entry);
        let is_new = self.without_room.entry(mailbox).or_default().insert(key);
        if is_new {
            let detail = format!("held, no room: {full}");
            cx.event(LogLevel::Warning, Kind::DeliveryFailed, detail)
                .message(record.message.clone())
                .entry(entry)
                .precedence(record.precedence);
        }
        cx.queue.scheduler.delay(now.mono, entry, now.mono + again);
        None
    }

    /// A copy that no mailbox has room for is reported: it is forgotten, and its report queued, in one commit.
    pub(crate) fn report_full(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        record: &Record,
        why: &str,
    ) {
        let of = (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::RECIPIENT_UNAVAILABLE);
        self.refuse(cx, now, entry, record, of, why);
    }

    /// The same for this reason and with this diagnostic.
    fn refuse(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        record: &Record,
        (reason, diagnostic): (NonDeliveryReason, Diagnostic),
        why: &str,
    ) {
        self.has_room(entry, record.precedence);
        cx.event(LogLevel::Warning, Kind::DeliveryFailed, format!("for good: {why}"))
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence);
        let concluded = cx.engine.undeliverable(now.utc, record, reason, diagnostic, why);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let (batch, bodies) = cx.queue.replace(entry, record, &concluded);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// Items of a mailbox are deleted: the highest of what waits for room is tried at once.
    pub(crate) fn room(&mut self, cx: &mut Context, now: Now, mailbox: MailboxId) {
        self.hasten(cx, now, mailbox, TRIED_AT_ONCE);
    }

    /// The quotas or the users changed: what waits for room may have some, or is no longer for a mailbox.
    pub(crate) fn rooms_changed(&mut self, cx: &mut Context, now: Now) {
        let waiting = std::mem::take(&mut self.without_room);
        for (_, entry) in waiting.into_values().flatten() {
            cx.queue.scheduler.hasten(now.mono, entry);
        }
        // What waited for a user to bind over P3 goes into his mailbox.
        let numbers = cx.queue.mailboxes().map(|(number, _)| number);
        self.waiting.extend(numbers.filter(|number| cx.is_stored(*number)));
    }

    fn hasten(&mut self, cx: &mut Context, now: Now, mailbox: MailboxId, most: usize) {
        let Some(waiting) = self.without_room.get_mut(&mailbox) else { return };
        waiting.retain(|(_, entry)| cx.queue.get(*entry).is_some());
        for (_, entry) in waiting.iter().take(most) {
            cx.queue.scheduler.hasten(now.mono, *entry);
        }
    }

    /// A copy that perhaps waited for room is stored, or reported. Gives whether it waited.
    fn has_room(&mut self, entry: EntryId, precedence: Precedence) -> bool {
        let key = (Reverse(precedence), entry);
        let waited = self.without_room.values_mut().any(|waiting| waiting.remove(&key));
        self.without_room.retain(|_, waiting| !waiting.is_empty());
        waited
    }

    /// One failed for a while.
    fn again(&mut self, cx: &mut Context, now: Now, entry: EntryId, why: &str) {
        if let Some(storing) = self.storing.remove(&entry) {
            self.next_of(storing.mailbox);
        }
        cx.event(LogLevel::Warning, Kind::DeliveryFailed, why).entry(entry);
        let seed = cx.rng.next_u64();
        cx.queue.scheduler.retry(now.mono, entry, seed);
    }

    /// There is a place for the next of a mailbox.
    fn next_of(&mut self, mailbox: u32) {
        self.waiting.insert(mailbox);
    }
}
