//! A change that must be made, and that the store does not take: a record in it is too long, and would be so
//! at every attempt.

use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::outbound::Outbound;
use base::{EntryId, Now};
use engine::journal::Op;
use std::collections::BTreeSet;

impl Outbound {
    /// Reports take the place of the copies whose records have more than `most` octets.
    pub(crate) fn replace_long(
        &mut self,
        cx: &mut Context,
        now: Now,
        mut retry: PendingRetry,
        most: usize,
    ) {
        let is_long = |op: &Op| match op {
            Op::PutEntry { id, record, .. } => (record.len() > most).then_some(*id),
            _ => None,
        };
        let long: BTreeSet<EntryId> = retry.batch.iter().filter_map(is_long).collect();
        if long.is_empty() {
            return cx.commits.retry_later(now, retry);
        }
        retry.batch.retain(|op| is_long(op).is_none());
        for entry in
            retry.entries.extract_if(.., |entry| long.contains(&entry.id)).collect::<Vec<_>>()
        {
            cx.queue.held.mark(entry.id, false);
            let concluded = cx.engine.unstorable(now.utc, &entry.record, most);
            cx.outputs.log_notes(None, None, &entry.record.message, &concluded.notes);
            retry.batch.extend(engine::put_entries(&concluded.entries));
            retry.entries.extend(concluded.entries);
        }
        cx.queue.held.renew(&mut retry.batch);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }
}
