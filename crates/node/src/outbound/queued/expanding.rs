//! What waits for a distribution list: it is replaced by copies for the members, or is a report and passed
//! on. A few at a time are read. Whether the list expanded the same message before is looked up first.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{self, EdgeError, ReadError};
use crate::outbound::Outbound;
use base::{EntryId, Now};
use bytes::Bytes;
use engine::journal::Digest;
use engine::{Note, NoteKind, Record};

/// Most records read at once, or not yet durably expanded: each may become thousands of copies.
const MAX_EXPANDING: usize = 4;

impl Outbound {
    /// Expands what waits for a list.
    pub(crate) fn expand_next(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        while self.room_to_expand(cx) {
            let Some(id) = cx.queue.scheduler.next_for_mailbox(now.mono, mailbox) else { return };
            let Some(item) = cx.queue.get(id) else { return };
            self.expanding.insert(id, mailbox);
            let token = cx.token(PendingAnswer::Expand { entry: id });
            cx.output(Output::Load { token, precedence: item.precedence, id });
        }
        self.expand_later.insert(mailbox);
    }

    fn room_to_expand(&self, cx: &Context) -> bool {
        cx.room_for_retries(self.expanding.len(), MAX_EXPANDING) > 0
    }

    /// Lists for which something waits until others are expanded.
    pub(crate) fn take_expandable(&mut self, cx: &Context) -> Vec<u32> {
        if !self.room_to_expand(cx) {
            return Vec::new();
        }
        std::mem::take(&mut self.expand_later).into_iter().collect()
    }

    /// The record of what waits for a list was read.
    pub(crate) fn expand_loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        let mailbox = self.expanded_next(id);
        if cx.queue.get(id).is_none() {
            return; // it went meanwhile
        }
        match error::record(result) {
            Ok(record) => match (cx.engine.expansion_key(&record), mailbox) {
                (Some(key), Some(mailbox)) if cx.commits.keys.reserve(&[key]) => {
                    self.expanding.insert(id, mailbox);
                    let (precedence, record) = (record.precedence, Box::new(record));
                    let token = cx.token(PendingAnswer::ExpandLookUp { entry: id, record, key });
                    cx.output(Output::LookUp { token, precedence, keys: vec![key] });
                }
                // The same is being expanded: its outcome is known when this one is read again.
                (Some(_), _) => self.expand_again(cx, now, id),
                (None, _) => self.expand(cx, now, id, &record, None),
            },
            Err(error) if error.is_damage() => {
                cx.queue.scheduler.put_back(now.mono, id);
                self.set_record_aside(cx, now, None, id, &error);
            }
            Err(error) if cx.queue.went(id, &error) => {}
            Err(error) => {
                cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string()).entry(id);
                self.expand_again(cx, now, id);
            }
        }
    }

    /// What is remembered of an expansion was looked up.
    pub(crate) fn expand_looked_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        (record, key): (&Record, Digest),
        result: Result<Vec<Option<Bytes>>, EdgeError>,
    ) {
        self.expanded_next(id);
        match result {
            Ok(seen) if cx.queue.get(id).is_some() => {
                self.reroutes.keys.insert(id, vec![key]);
                self.expand(cx, now, id, record, seen.first().and_then(Option::as_ref));
            }
            Ok(_) => cx.commits.keys.release(&[key]),
            Err(error) => {
                cx.commits.keys.release(&[key]);
                cx.event(LogLevel::Error, Kind::StoreFailed, error.0).entry(id);
                self.expand_again(cx, now, id);
            }
        }
    }

    /// An entry leaves room for the next. Gives the number of its list.
    fn expanded_next(&mut self, id: EntryId) -> Option<u32> {
        let mailbox = self.expanding.remove(&id)?;
        self.expand_later.insert(mailbox);
        Some(mailbox)
    }

    /// It is read again in a while.
    fn expand_again(&mut self, cx: &mut Context, now: Now, id: EntryId) {
        let seed = cx.rng.next_u64();
        cx.queue.scheduler.retry(now.mono, id, seed);
    }

    fn expand(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        record: &Record,
        seen: Option<&Bytes>,
    ) {
        let mut concluded = cx.engine.expand(now.utc, record, seen);
        let copies = concluded.entries.iter().filter(|e| e.record.kind() == record.kind());
        let copies: Vec<EntryId> = copies.map(|e| e.id).collect();
        // The expansion is the end of this entry.
        let is_expansion = |note: &mut Note| note.kind == NoteKind::Expanded;
        for note in concluded.notes.extract_if(.., is_expansion) {
            cx.event(LogLevel::Info, Kind::Expanded, note.detail)
                .message(record.message.clone())
                .entry(id)
                .precedence(record.precedence)
                .became(copies.len());
        }
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let (batch, bodies) = cx.queue.replace(id, record, &concluded);
        self.reroutes.remember(id, &copies);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }
}
