//! The state of a peer: its channels and its queues.

use crate::items::Items;
use crate::queue::Queues;
use crate::rules::retry::Failures;
use crate::rules::share::Credit;
use crate::rules::{Associations, ChannelRules, Policy};
use base::steps::step;
use base::{Instant, PeerId, Precedence};
use std::collections::BTreeMap;

/// The state besides the peer that the rules read.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) policy: &'a Policy,
    /// The floor of the MTA.
    pub(crate) floor: Option<Precedence>,
    pub(crate) items: &'a Items,
}

#[derive(Clone, Debug)]
pub(crate) struct ChannelState {
    pub(crate) rules: ChannelRules,
    pub(crate) associations: Associations,
    /// Rule 6: lower precedences do not start here.
    pub(crate) floor: Option<Precedence>,
    /// Since when it has no usable association although it should.
    absent_since: Option<Instant>,
    /// Since when one of its associations has been free without interruption.
    free_since: Option<Instant>,
    /// Transfers on it by precedence.
    transfers: BTreeMap<Precedence, u32>,
}

impl ChannelState {
    pub(crate) fn new(rules: ChannelRules) -> ChannelState {
        ChannelState {
            rules,
            associations: Associations::default(),
            floor: None,
            absent_since: None,
            free_since: None,
            transfers: BTreeMap::new(),
        }
    }

    /// Attempts to open after a failure do not restart the count: otherwise a channel that cannot
    /// be opened would hold lower messages at every attempt. For a barred channel the count
    /// restarts when it is no longer barred.
    pub(crate) fn see(&mut self, now: Instant, associations: Associations) {
        self.associations = associations;
        let at_rest = associations.free > 0 && associations.changing == 0;
        self.free_since = at_rest.then(|| self.free_since.unwrap_or(now));
        let lacking = associations.usable == 0
            && !associations.barred
            && (associations.changing > 0 || associations.failing);
        // A channel closed in order can be opened at any time.
        self.absent_since = lacking.then(|| self.absent_since.unwrap_or(now));
    }

    /// Whether it may have no association now, or has had none for longer than `patience`.
    pub(crate) fn is_down(&self, view: &View<'_>) -> bool {
        self.is_barred() || self.down_at(view.policy).is_some_and(|at| at <= view.now)
    }

    fn is_barred(&self) -> bool {
        self.associations.barred && self.associations.usable == 0
    }

    /// When it will count as down, or since when it does, for lack of an association.
    pub(crate) fn down_at(&self, policy: &Policy) -> Option<Instant> {
        self.absent_since.map(|since| since + policy.patience)
    }

    /// When one of several associations will have been free long enough to be closed.
    pub(crate) fn shrinks_at(&self) -> Option<Instant> {
        let several = self.associations.ours > 1;
        self.free_since.filter(|_| several).map(|since| since + self.rules.keep)
    }

    pub(crate) fn started(&mut self, precedence: Precedence) {
        *self.transfers.entry(precedence).or_default() += 1;
    }

    pub(crate) fn ended(&mut self, precedence: Precedence) {
        if let Some(count) = self.transfers.get_mut(&precedence) {
            *count -= 1;
            if *count == 0 {
                self.transfers.remove(&precedence);
            }
        }
    }

    /// The highest precedence in transfer on it.
    pub(crate) fn highest_in_transfer(&self) -> Option<Precedence> {
        self.transfers.last_key_value().map(|(precedence, _)| *precedence)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) id: PeerId,
    /// By [`crate::ChannelId::index`].
    pub(crate) by_index: BTreeMap<u32, ChannelState>,
    pub(crate) queues: Queues,
    /// Rule 6: lower precedences do not start to this peer.
    pub(crate) floor: Option<Precedence>,
    /// Rule 7.
    pub(crate) credit: Credit,
    /// Rule 9.
    pub(crate) failures: Failures,
    /// The next time at which its rules may give another answer, as indexed.
    pub(crate) deadline: Option<Instant>,
}

impl Peer {
    pub(crate) fn new(id: PeerId) -> Peer {
        Peer {
            id,
            by_index: BTreeMap::new(),
            queues: Queues::default(),
            floor: None,
            credit: Credit::default(),
            failures: Failures::default(),
            deadline: None,
        }
    }

    pub(crate) fn channels(&self) -> impl Iterator<Item = &ChannelState> {
        self.by_index.values().inspect(|_| step())
    }

    /// Whether a peer without channels has no state to keep.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing = self.by_index.is_empty() && self.queues.is_empty() && self.floor.is_none();
        nothing && self.credit == Credit::default() && self.failures == Failures::default()
    }

    /// The next time at which the rules may give another answer without an event: a transfer
    /// stalls, a channel begins to count as down, or an association becomes surplus. The first
    /// matters only if an item waits for it, the second only if the peer has any item: an
    /// interrupted transfer may wait for its channel.
    pub(crate) fn next_deadline(&self, view: &View<'_>) -> Option<Instant> {
        let waits = self
            .queues
            .iter()
            .any(|(_, queue)| queue.first().is_some() || queue.in_transfer().1 > 0);
        let stall = view.policy.stall;
        let live = self.queues.iter().filter_map(|(_, queue)| queue.liveliest());
        let stalls = live.map(|(progress, _)| progress + stall);
        let stalls = stalls.filter(|_| waits);
        let any = !self.queues.is_empty();
        let losses = self.channels().filter_map(|c| c.down_at(view.policy)).filter(|_| any);
        let shrinks = self.channels().filter_map(ChannelState::shrinks_at);
        stalls.chain(losses).chain(shrinks).filter(|at| *at > view.now).min()
    }
}
