//! Messages that the disk has damaged: one whose envelope can be read is reported to its originator, any
//! other is set aside, and nothing else waits for it.

use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{LoadError, ReadError};
use crate::outbound::Outbound;
use crate::queue::is_at_rest;
use base::{AssociationId, BodyId, EntryId, Now, Precedence};
use engine::{Record, RecordKind};
use std::collections::BTreeSet;

const RECORD: &str = "the record of the entry is damaged: who sent it, and to whom, is not known";

impl Outbound {
    /// These are damaged: entries without records are set aside, messages without contents are reported. What
    /// is in transfer meets it itself.
    pub(crate) fn found_damaged(
        &mut self,
        cx: &mut Context,
        now: Now,
        records: &[(Precedence, EntryId)],
        contents: &BTreeSet<BodyId>,
    ) {
        for (precedence, entry) in records {
            let queued = cx.queue.scheduler.listed(*entry);
            if queued.is_some_and(|listed| !is_at_rest(listed.at)) {
                continue;
            }
            match queued {
                Some(_) => {
                    let error = LoadError::from(ReadError::Damaged(RECORD.to_owned()));
                    self.set_record_aside(cx, now, None, *entry, &error);
                }
                None if self.set_aside.insert(*entry) => {
                    cx.event(LogLevel::Error, Kind::Damaged, aside(RECORD))
                        .entry(*entry)
                        .precedence(*precedence);
                }
                None => {}
            }
        }
        if !contents.is_empty() {
            let entries = cx.queue.scheduler.with_bodies(contents);
            cx.queue.damaged.extend(entries);
        }
    }

    /// The record of an entry, which was perhaps to go out on an association, is damaged: who is to get
    /// it, and who sent it, is not known.
    pub(crate) fn set_record_aside(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: Option<AssociationId>,
        entry: EntryId,
        error: &LoadError,
    ) {
        let Some(item) = cx.queue.get(entry) else { return };
        self.set_aside.insert(entry);
        let detail = aside(&error.to_string());
        let draft = cx.event(LogLevel::Error, Kind::Damaged, detail);
        draft.entry(entry).precedence(item.precedence);
        if let Some(association) = id.and_then(|id| cx.associations.get_mut(&id)) {
            association.take_sending();
            cx.queue.scheduler.put_back(now.mono, entry);
        }
        self.blame.forget(entry);
        cx.queue.set_aside(entry);
    }

    /// The content of a message is damaged: it is forgotten, and its report queued, in one commit.
    pub(crate) fn report_damaged(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        record: &Record,
    ) {
        let detail = match record.kind() {
            RecordKind::Report => "the content it returns is damaged on our disk: it goes without",
            RecordKind::Message | RecordKind::Probe => {
                "its content is damaged on our disk: it is not sent, and its originator gets a report"
            }
        };
        cx.event(LogLevel::Error, Kind::Damaged, detail)
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size));
        self.blame.forget(entry);
        let concluded = cx.engine.damaged(now.utc, record);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let (batch, bodies) = cx.queue.replace(entry, record, &concluded);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }
}

fn aside(why: &str) -> String {
    format!("{why}: set aside; `mta store check` lists it")
}
