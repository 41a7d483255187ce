//! Messages that the disk has damaged: one whose envelope can be read is reported to its originator, any
//! other is set aside, and nothing else waits for it.

use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::LoadError;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now};
use engine::Record;

impl Outbound {
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
        let detail = format!("{error}: set aside; `mta store check` lists it");
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
        let detail =
            "its content is damaged on our disk: it is not sent, and its originator gets a report";
        cx.event(LogLevel::Error, Kind::Damaged, detail)
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size));
        self.blame.forget(entry);
        let concluded = cx.engine.damaged(now.utc, record);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let (mut batch, bodies) = cx.queue.forget(entry);
        batch.extend(engine::put_entries(&concluded.entries));
        let retry = PendingRetry { batch, entries: concluded.entries, bodies };
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }
}
