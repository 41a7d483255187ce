//! What the store forwards by itself: submitted in the name of the mailbox's user, in the commit of the delivery.

use super::Stores;
use crate::api::event::{Kind, LogLevel};
use crate::context::Context;
use crate::log::parties;
use base::{BodyId, EntryId, Now, Precedence};
use engine::{Submitted, journal::Batch};
use mailbox::forward::Forwarding;

impl Stores {
    /// Submits these copies of a message that is being delivered. The notification goes out only with all of them.
    pub(crate) fn forward(
        &mut self,
        cx: &mut Context,
        now: Now,
        whose: (EntryId, &str, BodyId),
        (copies, notice): (Vec<Forwarding>, Option<Forwarding>),
    ) {
        let mut batch = Batch::new();
        let mut is_all = true;
        for copy in &copies {
            is_all &= self.submit_forward(cx, now, whose, copy, &mut batch);
        }
        if let Some(notice) = notice.filter(|_| is_all) {
            self.submit_forward(cx, now, whose, &notice, &mut batch);
        }
        self.mailboxes.forwarded(now, whose.1, whose.0, (batch, is_all));
    }

    /// Whether it is accepted.
    fn submit_forward(
        &mut self,
        cx: &mut Context,
        now: Now,
        (entry, address, body): (EntryId, &str, BodyId),
        forwarding: &Forwarding,
        batch: &mut Batch,
    ) -> bool {
        let content = forwarding.content();
        match cx.engine.submit(now.utc, address, &forwarding.envelope, &content, &[]) {
            Ok(Submitted { mut accepted, message, notes, .. }) => {
                cx.outputs.log_notes(None, None, &message, &notes);
                if forwarding.part.is_some() {
                    accepted.entries.iter_mut().for_each(|entry| entry.record.digest = None);
                }
                batch.extend(engine::batch(&accepted, forwarding.source(body)));
                let detail = format!("forwarded by the store of {address}");
                let event = cx.event(LogLevel::Info, Kind::Submitted, detail);
                let level = accepted.entries.first().map_or(Precedence::Routine, |e| e.precedence);
                event
                    .parties(Some(parties::of_submission(&forwarding.envelope)))
                    .message(message)
                    .bytes(Some(content.length))
                    .precedence(level);
                if let Some(storing) = self.storing.get_mut(&entry) {
                    storing.reports.extend(accepted.entries);
                }
                true
            }
            Err(error) => {
                let detail = format!("not forwarded by the store of {address}: {error}");
                cx.event(LogLevel::Warning, Kind::SubmissionRefused, detail).entry(entry);
                false
            }
        }
    }
}
