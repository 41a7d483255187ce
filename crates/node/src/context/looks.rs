//! When to ask how much the peer of an association has taken.

use crate::api::Output;
use crate::association::Association;
use crate::association::p3::DELIVERY_TIMEOUT;
use crate::context::Context;
use base::{AssociationId, EntryId, Instant, Now, Utc};
use std::time::Duration;

/// Least time between two looks at what a connection has outstanding.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The same where a timer is so short that it would expire between two.
const MIN_OF_SHORT_TIMER: Duration = Duration::from_millis(250);

impl Context {
    /// Files when to look at an association's connection: while there is anything to be seen.
    pub(crate) fn plan_look(&mut self, now: Now, id: AssociationId) {
        let Some(association) = self.associations.get(&id) else { return };
        let awaits = association.stack.outstanding() > 0;
        if awaits == association.looks.at.is_some() {
            return;
        }
        let timer = self.progress_timer(association);
        let pause = (timer / 4).max(MIN_PAUSE).min(timer / 2).max(MIN_OF_SHORT_TIMER);
        if let Some(association) = self.associations.get_mut(&id) {
            association.looks.at = awaits.then_some(now.mono + pause);
            if !awaits {
                association.looks.last = None;
            }
        }
    }

    /// Within how long octets that are outstanding must make progress.
    pub(crate) fn progress_timer(&self, association: &Association) -> Duration {
        match association.channel().and_then(|channel| self.peer_and_channel(channel)) {
            Some((_, channel)) => channel.rts.transfer_timeout.min(self.config.hold.stall),
            None => DELIVERY_TIMEOUT,
        }
    }

    /// Since when nothing of a transfer was confirmed or taken, where that is longer than `stall`.
    pub(crate) fn stalled_since(&self, now: Now, entry: EntryId) -> Option<Instant> {
        let last = self.queue.scheduler.last_progress(entry)?;
        (last + self.config.hold.stall <= now.mono).then_some(last)
    }

    /// The same by the wall clock, as text.
    pub(crate) fn stalled_since_utc(&self, now: Now, entry: EntryId) -> Option<String> {
        let ago = now.mono.since(self.stalled_since(now, entry)?);
        let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        Some(Utc(now.utc.0.saturating_sub(ago)).to_string())
    }

    /// Asks how much the peer has taken.
    pub(crate) fn look(&mut self, id: AssociationId) {
        self.output(Output::Measure { association: id });
    }

    /// Octets that the peer has not taken yet.
    pub(crate) fn outstanding(&self, id: AssociationId) -> u64 {
        self.associations.get(&id).map_or(0, |association| association.stack.outstanding())
    }
}
