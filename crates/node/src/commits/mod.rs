//! What the edge was asked for and has not answered, and changes that must be made.

pub(crate) mod committing;
pub(crate) mod key_reservations;
pub(crate) mod pending;

use crate::commits::pending::{Pending, PendingRetry};
use crate::error::EdgeError;
use crate::ids::Token;
use base::{Instant, Now};
use std::collections::BTreeMap;
use std::time::Duration;

/// Wait before a failed change that must be made is tried again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Pause before the next of them are dropped, in which others commit.
const FORGET_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct Commits {
    pub(crate) pending: BTreeMap<Token, Pending>,
    /// Changes the store could not make that must be made: tried again at the time given.
    pub(crate) retries: BTreeMap<(Instant, u64), PendingRetry>,
    pub(crate) last_retry: u64,
    /// How many retries the store was asked for and has not answered.
    pub(crate) retrying: usize,
    /// When the store is next asked to forget old keys.
    pub(crate) forget_at: Option<Instant>,
    /// The request to forget some that is under way.
    pub(crate) forgetting: Option<Token>,
}

impl Commits {
    /// Some keys are forgotten: the next, where there are more, after a pause. After a failure it is
    /// tried again at the usual time.
    pub(crate) fn forgot(&mut self, now: Now, token: Token, result: &Result<bool, EdgeError>) {
        if self.forgetting.take_if(|asked| *asked == token).is_some() && *result == Ok(true) {
            self.forget_at = Some(now.mono + FORGET_PAUSE);
        }
    }

    /// The store is asked for a change again.
    pub(crate) fn retry_begins(&mut self) {
        self.retrying += 1;
    }

    /// A retry was answered.
    pub(crate) fn retry_answered(&mut self) {
        self.retrying = self.retrying.saturating_sub(1);
    }

    /// A change that could not be made is tried again in a while.
    pub(crate) fn retry_later(&mut self, now: Now, retry: PendingRetry) {
        self.last_retry += 1;
        self.retries.insert((now.mono + RETRY_AFTER, self.last_retry), retry);
    }
}
