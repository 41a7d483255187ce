//! Entries that an association sends to a peer or a user.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::association::transfer::Sending;
use crate::commits::pending::PendingAnswer;
use crate::context::Context;
use crate::error::ReadError;
use base::{AssociationId, EntryId, Now};
use bytes::Bytes;
use engine::Record;
use osi::api::Request;
use scheduler::StartReason;

impl Context {
    /// An association takes up an entry. If the entry was accepted just now, gives its record, so that a
    /// Flash does not wait for the disk a second time. Else the record is read first.
    pub(crate) fn take_up(
        &mut self,
        id: AssociationId,
        entry: EntryId,
        reason: StartReason,
    ) -> Option<Record> {
        let Some(record) = self.queue.take_fresh(entry) else {
            self.load_to_send(id, entry, reason);
            return None;
        };
        let known = self.queue.get(entry)?;
        let number = self.issued.next_number();
        let association = self.associations.get_mut(&id)?;
        let mut sending = Sending::new(entry, known.precedence, known.body, reason);
        sending.number = number;
        association.begin_sending(sending);
        Some(record)
    }

    /// Has the record of an entry read, to be sent.
    pub(crate) fn load_to_send(&mut self, id: AssociationId, entry: EntryId, reason: StartReason) {
        let Some(known) = self.queue.get(entry) else {
            self.queue.scheduler.finished(entry);
            return;
        };
        let token = self.token(PendingAnswer::Load { association: id, entry });
        if let Some(association) = self.associations.get_mut(&id) {
            let mut sending = Sending::new(entry, known.precedence, known.body, reason);
            sending.number = token.0;
            association.begin_sending(sending);
        }
        self.output(Output::Load { token, precedence: known.precedence, id: entry });
    }

    pub(crate) fn need_content(&mut self, id: AssociationId, offset: u64, max: usize) {
        let Some(sending) = self.associations.get_mut(&id).and_then(|l| l.sending_mut()) else {
            return;
        };
        let Some(body) = sending.body else {
            self.request(id, Request::ContentFailed);
            return;
        };
        let left = sending.content_length.saturating_sub(offset);
        let len = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        sending.handed_out = offset + len as u64;
        sending.reading = true;
        let transfer = sending.number;
        let token = self.token(PendingAnswer::Content { association: id, transfer });
        self.output(Output::ReadContent { token, association: id, body, offset, len });
    }

    /// Only the confirm of what this association sends is missing.
    pub(crate) fn note_in_doubt(&mut self, id: AssociationId) {
        let sending = self.associations.get(&id).and_then(|association| association.sending());
        self.queue.in_doubt.extend(sending.map(|sending| sending.entry));
    }

    /// Whether this association is sending this entry.
    pub(crate) fn is_sending(&self, id: AssociationId, entry: EntryId) -> bool {
        let sending = self.associations.get(&id).and_then(|association| association.sending());
        sending.is_some_and(|sending| sending.entry == entry)
    }

    /// Content for a transfer or a delivery was read.
    pub(crate) fn content(
        &mut self,
        id: AssociationId,
        transfer: u64,
        result: Result<Bytes, ReadError>,
    ) {
        let sending = self.associations.get(&id).and_then(|l| l.sending());
        if sending.is_none_or(|s| s.number != transfer) {
            // The transfer it was read for failed meanwhile.
            return;
        }
        if let Some(sending) = self.associations.get_mut(&id).and_then(|l| l.sending_mut()) {
            sending.reading = false;
        }
        let sending = self.associations.get(&id).and_then(|l| l.sending());
        match result {
            Ok(octets) => self.request(id, Request::Content(octets)),
            Err(error) => {
                let about = sending.map(|s| (s.message.clone(), s.entry, s.precedence));
                let kind = match (&error, &about) {
                    (ReadError::Damaged(_), Some((_, entry, _))) => {
                        self.queue.damaged.insert(*entry);
                        Kind::Damaged
                    }
                    _ => Kind::StoreFailed,
                };
                let draft = self.event(LogLevel::Error, kind, error.to_string()).association(id);
                if let Some((message, entry, precedence)) = about {
                    draft.message(message).entry(entry).precedence(precedence);
                } else {
                    drop(draft);
                }
                // A peer may keep what is filled up: nothing is resumed.
                let association = self.associations.get_mut(&id);
                if let Some(sending) = association.and_then(|a| a.sending_mut()) {
                    sending.resume = None;
                }
                self.request(id, Request::ContentFailed);
            }
        }
    }

    /// The association is done with what it was sending.
    pub(crate) fn sent(&mut self, now: Now, id: AssociationId) {
        if let Some(association) = self.associations.get_mut(&id) {
            association.end_sending(now.mono);
        }
        if self.life.is_stopping() {
            self.finish(id);
        }
    }
}
