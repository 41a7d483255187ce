//! What the store forwards by itself: submitted in the name of the mailbox's user, in the commit of the delivery.

use super::Stores;
use crate::api::event::{Kind, LogLevel};
use crate::context::Context;
use base::{BodyId, EntryId, Now};
use engine::journal::Batch;
use engine::{Content, Submitted};
use mailbox::forward::Forwarding;
use sha2::{Digest as _, Sha256};

impl Stores {
    /// Submits these copies of a message that is being delivered.
    pub(crate) fn forward(
        &mut self,
        cx: &mut Context,
        now: Now,
        (entry, address, body): (EntryId, &str, BodyId),
        forwards: Vec<Forwarding>,
    ) {
        let mut batch = Batch::new();
        for forwarding in forwards {
            let (head, length) = (&forwarding.head, forwarding.length());
            // Of a content that is joined in the commit nobody knows the digest: that of its head stands for it, and
            // the copies have none.
            let digest = Sha256::digest(head).into();
            let prefix = head.slice(..head.len().min(p772::PEEK_OCTETS));
            let content = Content { length, digest, prefix };
            match cx.engine.submit(now.utc, address, &forwarding.envelope, &content, &[]) {
                Ok(Submitted { mut accepted, message, notes, .. }) => {
                    cx.outputs.log_notes(None, None, &message, &notes);
                    if forwarding.part.is_some() {
                        accepted.entries.iter_mut().for_each(|entry| entry.record.digest = None);
                    }
                    batch.extend(engine::batch(&accepted, forwarding.source(body)));
                    let made = accepted.entries.first().map(|made| made.precedence);
                    if let Some(storing) = self.storing.get_mut(&entry) {
                        storing.reports.extend(accepted.entries);
                    }
                    let detail = format!("forwarded by the store of {address}");
                    let mut event = cx.event(LogLevel::Info, Kind::Submitted, detail);
                    event = event.message(message).bytes(Some(length));
                    if let Some(precedence) = made {
                        event.precedence(precedence);
                    }
                }
                Err(error) => {
                    let detail = format!("not forwarded by the store of {address}: {error}");
                    cx.event(LogLevel::Warning, Kind::SubmissionRefused, detail).entry(entry);
                }
            }
        }
        self.mailboxes.forwarded(now, address, entry, batch);
    }
}
