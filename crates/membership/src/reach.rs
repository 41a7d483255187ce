//! The peers with open associations at this node, and what follows for who owns them.
//!
//! A peer that was reached or has called can be sent to at the node that has an association with it, and perhaps
//! nowhere else: it may allow one association, or take no calls. So a node that such a peer has called keeps it,
//! whatever its rank; and one that does not own it asks for it where its messages wait while the owner has none.

use crate::rows::{NodeEpoch, NodeRow, ShardRow};
use base::Instant;
use engine::journal::QueueId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A peer that had called this node and hung up is kept for so long: it calls again, perhaps.
const CALLED_LATELY: Duration = Duration::from_secs(60);

/// What a node knows of its associations with peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Peers with an open association here.
    open: BTreeSet<QueueId>,
    /// Those that opened all of theirs, and that can be sent to on one.
    held: BTreeSet<QueueId>,
    /// Until when those were open, and held, that are no longer.
    closed: BTreeMap<QueueId, Instant>,
    unheld: BTreeMap<QueueId, Instant>,
    /// Since when messages wait for a peer at another owner, and it has called this node; or at this node, which has no
    /// association with it.
    waiting: BTreeMap<QueueId, Instant>,
    /// Since when this node has asked for a shard that another one has.
    asked: BTreeMap<QueueId, Instant>,
    /// Who is to have a shard that another node has, or has given away.
    given_to: BTreeMap<QueueId, NodeEpoch>,
}

impl Reach {
    /// The associations of this node have changed.
    pub(crate) fn changed(
        &mut self,
        now: Instant,
        open: BTreeSet<QueueId>,
        held: BTreeSet<QueueId>,
    ) {
        self.closed.extend(self.open.difference(&open).map(|shard| (*shard, now)));
        self.unheld.extend(self.held.difference(&held).map(|shard| (*shard, now)));
        (self.open, self.held) = (open, held);
    }

    /// A peer has called another node: it is not kept for what it did here before.
    pub(crate) fn called_elsewhere(&mut self, shard: QueueId) {
        self.unheld.remove(&shard);
    }

    /// The node owns a shard from now on: it has some time to reach the peer.
    pub(crate) fn gained(&mut self, now: Instant, shard: QueueId) {
        self.closed.insert(shard, now);
    }

    /// What a look found. `before` gives the owner that the last one found.
    pub(crate) fn looked(
        &mut self,
        now: Instant,
        (own, lease): (NodeEpoch, Duration),
        (nodes, rows): (&[NodeRow], &[ShardRow]),
        before: impl Fn(QueueId) -> Option<NodeEpoch>,
    ) {
        let lives = |epoch: NodeEpoch| nodes.iter().any(|node| node.epoch == epoch);
        let (mut waiting, mut asked, mut given_to) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in rows.iter().filter(|row| !row.shard.is_of_mailbox()) {
            let shard = row.shard;
            let since = |earlier: &BTreeMap<QueueId, Instant>| {
                (shard, earlier.get(&shard).copied().unwrap_or(now))
            };
            let is_anothers = row.owner.is_some_and(|(owner, _)| owner != own);
            let is_elsewhere = match row.owner {
                Some(_) if is_anothers => self.is_kept(now, shard),
                Some(_) => !self.open.contains(&shard),
                None => false,
            };
            if is_elsewhere && row.waits.is_some() {
                waiting.extend([since(&self.waiting)]);
            }
            if is_anothers && row.asked_by == Some(own) {
                asked.extend([since(&self.asked)]);
            }
            let by = match row.owner {
                Some(_) => row.asked_by,
                // Who died gave nothing away.
                None if before(shard).is_some_and(|owner| !lives(owner)) => None,
                None => self.given_to.get(&shard).copied(),
            };
            given_to.extend(by.map(|by| (shard, by)));
        }
        (self.waiting, self.asked, self.given_to) = (waiting, asked, given_to);
        self.closed.retain(|_, at| now.since(*at) < lease);
        self.unheld.retain(|_, at| now.since(*at) < CALLED_LATELY);
    }

    /// This node, with this number, has asked for a shard.
    pub(crate) fn has_asked(&mut self, now: Instant, own: NodeEpoch, shard: QueueId) {
        if !shard.is_of_mailbox() {
            self.asked.insert(shard, now);
            self.given_to.insert(shard, own);
        }
    }

    /// The peer has called this node, which has no association of its own with it.
    pub(crate) fn is_held(&self, shard: QueueId) -> bool {
        self.held.contains(&shard)
    }

    /// The same, or it was so a while ago, and the peer has called no other node since.
    pub(crate) fn is_kept(&self, now: Instant, shard: QueueId) -> bool {
        let lately = |at: &Instant| now.since(*at) < CALLED_LATELY;
        let is_gone = !self.open.contains(&shard);
        self.is_held(shard) || is_gone && self.unheld.get(&shard).is_some_and(lately)
    }

    /// Messages wait for half a lease at another owner, and could be sent here; or the other way about.
    pub(crate) fn is_stuck(&self, now: Instant, lease: Duration, shard: QueueId) -> bool {
        self.waiting.get(&shard).is_some_and(|since| now.since(*since) >= lease / 2)
    }

    /// They wait here, and for half a lease there was no association with the peer.
    pub(crate) fn is_out_of_reach(&self, now: Instant, lease: Duration, shard: QueueId) -> bool {
        let lately = |at: &Instant| now.since(*at) < lease / 2;
        self.is_stuck(now, lease, shard) && !self.closed.get(&shard).is_some_and(lately)
    }

    /// This node has asked for a shard for a lease: the owner keeps it, perhaps for as long as its peer likes.
    pub(crate) fn asks_in_vain(&self, now: Instant, lease: Duration, shard: QueueId) -> bool {
        self.asked.get(&shard).is_some_and(|since| now.since(*since) >= lease)
    }

    /// The node for which a shard was given away, if it is free now.
    pub(crate) fn given_to(&self, shard: QueueId) -> Option<NodeEpoch> {
        self.given_to.get(&shard).copied()
    }
}
