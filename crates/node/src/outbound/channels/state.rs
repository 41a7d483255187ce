//! How a channel stands, and what follows when one of its associations ends.

use crate::association::ended::EndedAssociation;
use crate::association::failed::Failure;
use crate::association::line::LineEstimate;
use crate::association::refused::ChannelRefusals;
use crate::config::Reopen;
use crate::outbound::channels::schedule::Schedule;
use base::{Instant, Now, Utc};
use status::FailureStatus;

#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// Do not open before.
    pub not_before: Option<Instant>,
    /// When an association of ours was last tried to open.
    pub tried: Option<Instant>,
    /// Failures in a row.
    pub failures: u32,
    /// Associations in a row that did not live long.
    pub short_lived: u32,
    /// The last error, for the status.
    pub last_error: Option<String>,
    /// Why none is open, and since when.
    pub failure: Option<(Failure, Utc)>,
    /// Since when no association of ours could be opened, or the last one was lost.
    pub down_since: Option<Utc>,
    /// What a peer refused that trying again does not change; the channel counts as down.
    pub refused: ChannelRefusals,
    /// Where it has hours.
    pub schedule: Schedule,
    /// How fast it is.
    pub line: LineEstimate,
    /// When a bind of its peer ended its wait last.
    pub peer_bound: Option<Instant>,
    /// Operators who want it opened and were not answered yet.
    pub asked: Vec<u64>,
}

impl ChannelState {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.not_before, self.schedule.deadline()].into_iter().flatten().min()
    }

    /// An association was lost, or could not be opened.
    pub(crate) fn note_loss(
        &mut self,
        now: Now,
        ended: &EndedAssociation,
        reopen: &Reopen,
        seed: u64,
    ) {
        self.down_since.get_or_insert(now.utc);
        self.failures = if ended.was_open { 1 } else { self.failures.saturating_add(1) };
        // One that opens and is soon lost again waits as long as one that does not open.
        self.short_lived = if ended.long_lived { 0 } else { self.short_lived.saturating_add(1) };
        self.last_error = Some(ended.given_up.clone().unwrap_or_else(|| ended.detail.clone()));
        self.failure = Some((ended.failure.clone(), now.utc));
        let wait = if ended.given_up.is_some() {
            self.refused.give_up();
            reopen.wait_refused(seed)
        } else {
            reopen.wait(self.failures.max(self.short_lived), seed)
        };
        self.not_before = (!ended.at_once).then(|| now.mono + wait);
    }

    /// Why none is open, for the status.
    pub(crate) fn failure(&self, now: Now) -> Option<FailureStatus> {
        let (failure, at) = self.failure.as_ref()?;
        Some(failure.status(now, *at, self.failures, self.not_before))
    }

    /// The wait before the next try is over: it is tried as soon as it may be.
    pub(crate) fn end_wait(&mut self) {
        self.not_before = None;
        self.short_lived = 0;
        self.failures = self.failures.min(1);
    }

    /// Whether nothing but time or an operator lets us open it, so that it counts as down at once.
    pub(crate) fn is_barred(&self, now: Instant) -> bool {
        let waits = self.not_before.is_some_and(|at| at > now);
        !self.schedule.is_open() || (self.refused.is_down() && waits)
    }
}
