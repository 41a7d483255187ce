//! Commits: those that are asked for, tried again, and made from time to time.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use base::{BodyId, Now, Precedence};
use engine::journal::{self, Batch, Op};
use engine::space::{DiskSpace, refused_text};

/// Keys dropped by one commit: 10 ms of work, or less, that others' commits wait for.
const MAX_FORGOTTEN: usize = 500;

impl Context {
    /// Lets the store forget keys whose time is over.
    pub(crate) fn forget_seen(&mut self, now: Now) {
        if !self.commits.is_time_to_forget(now) {
            return;
        }
        if self.queue.wall.is_doubted() {
            return; // what is forgotten by a wrong clock may be taken again
        }
        self.write_clock(now);
        let token = self.issued.next_token();
        self.commits.forget_begins(token);
        self.output(Output::ForgetSeen { token, before: now.utc, most: MAX_FORGOTTEN });
    }

    /// How many more records may be read whose reading ends in a retry, of at most so many: each is
    /// whole in memory until it is made. None while some wait: the store takes nothing now.
    pub(crate) fn room_for_retries(&self, reading: usize, most: usize) -> usize {
        match self.commits.retrying() {
            Some(retrying) if self.life.is_running() => most.saturating_sub(reading + retrying),
            _ => 0,
        }
    }

    pub(crate) fn retry_due(&mut self, now: Now) {
        while let Some(mut retry) = self.commits.next_retry(now) {
            self.queue.held.renew(&mut retry.batch);
            self.closed.renew(&mut retry.batch);
            self.floor_orders.renew(&mut retry.batch);
            self.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
        }
    }

    /// Drops of these contents, found at start, those that no entry needs.
    pub(crate) fn drop_unneeded(&mut self, mut bodies: Vec<BodyId>) {
        if self.queue.copies.is_complete() || self.life.has_unreadable() {
            return;
        }
        let own = self.engine.first_number();
        bodies.retain(|body| body.0 < own && !self.queue.copies.has(*body));
        if !bodies.is_empty() {
            let detail = format!("{} contents that nothing needed any more", bodies.len());
            self.event(LogLevel::Info, Kind::Discarded, detail);
            self.drop_bodies(bodies);
        }
    }

    /// All that the store held at the start is known.
    pub(crate) fn finish_recovery(&mut self) {
        let bodies = self.queue.copies.complete();
        self.drop_bodies(bodies);
    }

    fn drop_bodies(&mut self, bodies: Vec<BodyId>) {
        let batch: Batch = bodies.into_iter().map(|id| Op::DeleteBody { id }).collect();
        if !batch.is_empty() {
            let retry = PendingRetry::alone(batch);
            self.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
        }
    }

    /// The edge looked how much room there is on the disk.
    pub(crate) fn disk_space(&mut self, space: DiskSpace) {
        if !self.disk.update(space) {
            return;
        }
        let refused = self
            .disk
            .refused()
            .map(|level| format!("{}, higher precedences are taken", refused_text(level)));
        let no_room = self.disk.no_room_for();
        let no_room = no_room.map(|level| format!("the store had no room for a {level} message"));
        let found: Vec<String> = refused.into_iter().chain(no_room).collect();
        let (log, kind, what) = match found.is_empty() {
            true => (LogLevel::Info, Kind::SpaceBack, "all precedences are taken".to_owned()),
            false => (LogLevel::Warning, Kind::SpaceLow, found.join("; ")),
        };
        let detail = format!("{space}: {what}");
        self.event(log, kind, detail);
    }

    /// Asks for a commit that nobody waits for, or an operator.
    pub(crate) fn commit(&mut self, batch: Batch, pending: PendingAnswer) {
        let level = match &pending {
            PendingAnswer::Operation(_) => Precedence::Override,
            _ => Precedence::Deferred,
        };
        self.commit_for(level, batch, pending);
    }

    /// Asks for a commit, with the highest precedence it is for: that of its entries, or else the
    /// level of the association that waits for it.
    pub(crate) fn commit_for(
        &mut self,
        level: Precedence,
        mut batch: Batch,
        pending: PendingAnswer,
    ) {
        self.put_clock(&mut batch);
        self.engine.keep_numbers(&mut batch);
        let precedence = journal::highest(&batch).unwrap_or(level);
        if matches!(pending, PendingAnswer::Retry(_)) {
            self.commits.retry_begins();
        }
        let token = self.token(pending);
        let queue = &self.queue;
        self.commits.removals.begin(token, &batch, |id| queue.concluded(id));
        self.output(Output::Commit { token, precedence, batch });
    }

    /// Copies of these contents are durably forgotten.
    pub(crate) fn release_bodies(&mut self, bodies: Vec<BodyId>) {
        let batch: Vec<Op> =
            bodies.into_iter().filter_map(|b| self.queue.copies.release(b)).collect();
        if !batch.is_empty() {
            let retry = PendingRetry::alone(batch);
            self.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
        }
    }
}
