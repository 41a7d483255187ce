//! Commits: those that are asked for, tried again, and made from time to time.

use crate::api::Output;
use crate::commits::pending::{Pending, PendingRetry};
use crate::context::Context;
use crate::ids::Token;
use crate::log::event::{Kind, Level};
use base::{BodyId, Now, Precedence};
use engine::journal::{self, Batch, Op};
use std::time::Duration;

/// How often keys whose time is over are dropped from the store.
pub(crate) const FORGET_EVERY: Duration = Duration::from_secs(600);

/// Keys dropped by one commit: 10 ms of work, or less, that others' commits wait for.
const FORGET_MOST: usize = 500;

impl Context {
    /// Lets the store forget keys whose time is over.
    pub(crate) fn forget_seen(&mut self, now: Now) {
        if self.commits.forget_at.is_some_and(|at| at > now.mono) {
            return;
        }
        self.commits.forget_at = Some(now.mono + FORGET_EVERY);
        if self.queue.wall.is_doubted() {
            return; // what is forgotten by a wrong clock may be taken again
        }
        self.write_clock(now);
        // Not among what is pending: nobody waits for it, a stop does not either.
        self.issued.token += 1;
        let token = Token(self.issued.token);
        self.commits.forgetting = Some(token);
        self.output(Output::ForgetSeen { token, before: now.utc, most: FORGET_MOST });
    }

    /// How many more records may be read whose reading ends in a retry, of at most so many: each is
    /// whole in memory until it is made. None while some wait: the store takes nothing now.
    pub(crate) fn room_for_retries(&self, reading: usize, most: usize) -> usize {
        if !self.life.started || self.life.stopping || !self.commits.retries.is_empty() {
            return 0;
        }
        most.saturating_sub(reading + self.commits.retrying)
    }

    pub(crate) fn retry_due(&mut self, now: Now) {
        while let Some(first) = self.commits.retries.first_entry().filter(|e| e.key().0 <= now.mono)
        {
            let mut retry = first.remove();
            self.queue.renew_held(&mut retry.batch);
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    /// Drops of these contents those that no entry needs.
    pub(crate) fn drop_unneeded(&mut self, bodies: Vec<BodyId>) {
        if self.life.unreadable || self.life.started {
            return;
        }
        let unneeded = bodies.into_iter().filter(|body| !self.queue.needs(*body));
        let batch: Batch = unneeded.map(|id| Op::DeleteBody { id }).collect();
        if !batch.is_empty() {
            let detail = format!("{} contents that nothing needed any more", batch.len());
            self.event(Level::Info, Kind::Discarded, detail);
            let retry = PendingRetry { batch, entries: Vec::new(), bodies: Vec::new() };
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    /// Asks for a commit that nobody waits for, or an operator.
    pub(crate) fn commit(&mut self, batch: Batch, pending: Pending) {
        let level = match &pending {
            Pending::Operation(_) => Precedence::Override,
            _ => Precedence::Deferred,
        };
        self.commit_for(level, batch, pending);
    }

    /// Asks for a commit, with the highest precedence it is for: that of its entries, or else the
    /// level of the association that waits for it.
    pub(crate) fn commit_for(&mut self, level: Precedence, mut batch: Batch, pending: Pending) {
        self.put_clock(&mut batch);
        let precedence = journal::highest(&batch).unwrap_or(level);
        if matches!(pending, Pending::Retry(_)) {
            self.commits.retry_begins();
        }
        let token = self.token(pending);
        self.output(Output::Commit { token, precedence, batch });
    }

    /// Copies of these contents are durably forgotten.
    pub(crate) fn release_bodies(&mut self, bodies: Vec<BodyId>) {
        let batch: Vec<Op> = bodies.into_iter().filter_map(|b| self.queue.release(b)).collect();
        if !batch.is_empty() {
            let retry = PendingRetry { batch, entries: Vec::new(), bodies: Vec::new() };
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }
}
