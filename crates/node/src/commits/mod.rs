//! Questions to the edge that are not answered, and changes that must be made.

pub(crate) mod pending;

use crate::commits::pending::{PendingAnswer, PendingRetry, VerifiedBind};
use crate::error::EdgeError;
use crate::ids::Token;
use base::{Instant, Now};
use engine::{KeyReservations, NewEntry, NextHop};
use node_api::removals::Removals;
use std::collections::BTreeMap;
use std::time::Duration;

/// Wait before a failed change that must be made is tried again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How often keys whose time is over are dropped from the store.
pub(crate) const FORGET_EVERY: Duration = Duration::from_secs(600);

/// Pause before the next of them are dropped, in which others commit.
const FORGET_PAUSE: Duration = Duration::from_millis(50);

/// Questions to the edge that are not answered, and changes that must be made.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    pending: BTreeMap<Token, PendingAnswer>,
    /// Changes that must be made and that the store could not make: tried again at the time given.
    retries: BTreeMap<(Instant, u64), PendingRetry>,
    last_retry: u64,
    /// Retries that the store was asked for and has not answered.
    retrying: usize,
    /// Keys of what is being committed.
    pub(crate) keys: KeyReservations,
    /// Entries that are being removed.
    pub(crate) removals: Removals,
    /// Next hops whose entries became this node's, with the last token that was given out before.
    gained: BTreeMap<NextHop, Token>,
    last: Option<Token>,
    /// When the store is next asked to forget old keys.
    forget_at: Option<Instant>,
    /// The request to forget keys that is not answered.
    forgetting: Option<Token>,
}

impl Commits {
    /// The answer with this token continues here.
    pub(crate) fn expect(&mut self, token: Token, pending: PendingAnswer) {
        self.last = Some(token);
        self.pending.insert(token, pending);
    }

    /// What waits for the answer with this token.
    pub(crate) fn take(&mut self, token: Token) -> Option<PendingAnswer> {
        self.pending.remove(&token)
    }

    /// Questions that are not answered.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// These mailboxes have another password or are gone: a check in progress is of no use.
    pub(crate) fn doubt_verifications(&mut self, changed: &[String]) {
        for pending in self.pending.values_mut() {
            if let PendingAnswer::Verify {
                bind: VerifiedBind::User { mailbox, stale, .. }, ..
            } = pending
            {
                *stale |= changed.contains(mailbox);
            }
        }
    }

    /// When keys are next to be forgotten, counted from the start.
    pub(crate) fn start(&mut self, now: Now) {
        self.forget_at = Some(now.mono + FORGET_EVERY);
    }

    /// Whether it is time to forget keys; then it is not again for a while.
    pub(crate) fn is_time_to_forget(&mut self, now: Now) -> bool {
        let due = self.forget_at.is_none_or(|at| at <= now.mono);
        if due {
            self.forget_at = Some(now.mono + FORGET_EVERY);
        }
        due
    }

    /// The store is asked to forget keys. This is not pending: nobody waits for it, and a stop does
    /// not wait for it.
    pub(crate) fn forget_begins(&mut self, token: Token) {
        self.forgetting = Some(token);
    }

    /// Some keys are forgotten. Where there are more, the next follow after a pause. After a failure
    /// it is tried again at the usual time.
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
        self.removals.wait(&retry.batch);
        self.retries.insert((now.mono + RETRY_AFTER, self.last_retry), retry);
    }

    /// The next change that is to be tried again by now.
    pub(crate) fn next_retry(&mut self, now: Now) -> Option<PendingRetry> {
        let first = self.retries.first_entry().filter(|entry| entry.key().0 <= now.mono)?;
        let retry = first.remove();
        self.removals.go_on(&retry.batch);
        Some(retry)
    }

    /// The entries for a next hop are this node's from now on. What is being put there is read with the others, if the
    /// owner of before has not sent it: the answer to its commit does not queue it.
    pub(crate) fn gained(&mut self, hop: &NextHop) {
        if let Some(last) = self.last {
            self.gained.insert(hop.clone(), last);
        }
    }

    /// Of the entries that the commit of this token has put, those that are queued here by its answer.
    pub(crate) fn retain_ours(&self, token: Token, entries: &mut Vec<NewEntry>) {
        let is_read = |hop: &NextHop| self.gained.get(hop).is_some_and(|last| token <= *last);
        entries.retain(|entry| !is_read(&entry.record.next_hop));
    }

    /// What waits is tried again now: the store takes it, perhaps.
    pub(crate) fn retry_now(&mut self, now: Now) {
        let waiting = std::mem::take(&mut self.retries);
        let due = |((at, number), retry): ((Instant, u64), PendingRetry)| {
            ((at.min(now.mono), number), retry)
        };
        self.retries = waiting.into_iter().map(due).collect();
    }

    /// Retries that the store was asked for; `None` while some wait, for the store takes nothing.
    pub(crate) fn retrying(&self) -> Option<usize> {
        self.retries.is_empty().then_some(self.retrying)
    }

    /// When the next change is tried again, or keys are forgotten.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let retry = self.retries.first_key_value().map(|((at, _), _)| *at);
        [retry, self.forget_at].into_iter().flatten().min()
    }
}
