//! A model of the store that nodes share: each call is made whole at one moment, as by serialisable transactions.
//! Its only clock is the moment that each call is given.

use crate::machine::{Answer, Call};
use crate::rows::{Acquired, Fence, NodeEpoch, NodeRow, Renewal, ShardRow};
use base::{Instant, Precedence};
use engine::journal::QueueId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Faults that simulations have to find: each leaves a check out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A commit is made whoever owns the shard.
    FenceNotChecked,
    /// A key that has to be absent is not looked up in the commit.
    KeyNotChecked,
    /// A commit of a node whose lease has ended, or that is dead, is made.
    LeaseNotChecked,
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    lease: Duration,
    until: Instant,
    draining: bool,
}

#[derive(Clone, Debug, Default)]
struct Shard {
    name: String,
    owner: Option<NodeEpoch>,
    fence: u64,
    since: Instant,
    asked_by: Option<NodeEpoch>,
}

/// A change of an entry, or of a remembered key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new entry of a shard.
    Insert {
        /// Its number.
        id: u64,
        /// Its shard.
        shard: QueueId,
    },
    /// Writes an entry again, which must be there, by the fence that the node had for the shard.
    Rewrite {
        /// Its number.
        id: u64,
        /// Its shard.
        shard: QueueId,
        /// The fence.
        fence: Fence,
    },
    /// Deletes an entry, by the fence that the node had for the shard.
    Delete {
        /// Its number.
        id: u64,
        /// Its shard.
        shard: QueueId,
        /// The fence.
        fence: Fence,
    },
    /// Remembers a key that is absent.
    Key(u64),
}

/// The end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// All of it is made.
    Durable,
    /// A key was there: nothing is made.
    Conflict,
    /// The node does not own what it changes, or is dead: nothing is made.
    Fenced,
}

/// The store.
#[derive(Clone, Debug, Default)]
pub struct Database {
    nodes: BTreeMap<NodeEpoch, Node>,
    last_epoch: u32,
    shards: BTreeMap<QueueId, Shard>,
    /// Entries with their shards, and the number of the commit that put them there.
    entries: BTreeMap<u64, (QueueId, u64)>,
    keys: BTreeSet<u64>,
    commits: u64,
    mutant: Option<Mutant>,
}

impl Database {
    /// An empty one, perhaps with a check left out.
    #[must_use]
    pub fn with(mutant: Option<Mutant>) -> Database {
        Database { mutant, ..Database::default() }
    }

    /// Makes a call of the node that has this number, if it has one.
    pub fn call(
        &mut self,
        now: Instant,
        (name, lease): (&str, Duration),
        own: Option<NodeEpoch>,
        call: &Call,
    ) -> Answer {
        match (call, own) {
            (Call::Join, _) => Answer::Joined(self.join(now, name, lease)),
            (_, None) => Answer::Failed,
            (Call::Renew { draining }, Some(own)) => {
                Answer::Renewed(match self.nodes.get_mut(&own) {
                    Some(node) => {
                        (node.until, node.draining) = (now + node.lease, *draining);
                        Renewal::Renewed
                    }
                    None => Renewal::Dead,
                })
            }
            (Call::Bury(nodes), Some(own)) => {
                for epoch in nodes {
                    let is_over = self.nodes.get(epoch).is_some_and(|node| node.until <= now);
                    if is_over || *epoch == own {
                        self.bury(now, *epoch);
                    }
                }
                Answer::Done
            }
            (Call::Acquire { shard, name }, Some(own)) => {
                Answer::Acquired(self.acquire(now, own, *shard, name))
            }
            (Call::Release { shard, .. }, Some(own)) => {
                if let Some(shard) = self.shards.get_mut(shard).filter(|s| s.owner == Some(own)) {
                    (shard.owner, shard.since, shard.asked_by) = (None, now, None);
                }
                Answer::Done
            }
            (Call::Ask(shard), Some(own)) => {
                if let Some(shard) = self.shards.get_mut(shard) {
                    shard.asked_by = Some(own);
                }
                Answer::Done
            }
            (Call::Withdraw(shard), Some(own)) => {
                let asked = self.shards.get_mut(shard).filter(|s| s.asked_by == Some(own));
                asked.into_iter().for_each(|shard| shard.asked_by = None);
                Answer::Done
            }
            (Call::Look, Some(_)) => {
                Answer::Looked { nodes: self.nodes(now), shards: self.shards(now) }
            }
        }
    }

    fn join(&mut self, now: Instant, name: &str, lease: Duration) -> NodeEpoch {
        let earlier = self.nodes.iter().filter(|(_, node)| node.name == name);
        for epoch in earlier.map(|(epoch, _)| *epoch).collect::<Vec<_>>() {
            self.bury(now, epoch);
        }
        self.last_epoch += 1;
        let epoch = NodeEpoch(self.last_epoch);
        let node = Node { name: name.to_owned(), lease, until: now + lease, draining: false };
        self.nodes.insert(epoch, node);
        epoch
    }

    fn bury(&mut self, now: Instant, epoch: NodeEpoch) {
        self.nodes.remove(&epoch);
        for shard in self.shards.values_mut() {
            if shard.owner == Some(epoch) {
                (shard.owner, shard.since) = (None, now);
            }
            if shard.asked_by == Some(epoch) {
                shard.asked_by = None;
            }
        }
    }

    fn is_alive(&self, now: Instant, epoch: NodeEpoch) -> bool {
        self.nodes.get(&epoch).is_some_and(|node| now < node.until)
    }

    fn acquire(&mut self, now: Instant, own: NodeEpoch, id: QueueId, name: &str) -> Acquired {
        if !self.is_alive(now, own) {
            return Acquired::Dead;
        }
        let shard = self.shards.entry(id).or_default();
        match shard.owner {
            Some(owner) if owner != own => Acquired::Owned(owner),
            _ => {
                name.clone_into(&mut shard.name);
                shard.fence += 1;
                (shard.owner, shard.since, shard.asked_by) = (Some(own), now, None);
                Acquired::Ours(Fence(shard.fence))
            }
        }
    }

    /// Whether a commit of this node is taken, for its lease.
    #[must_use]
    pub fn holds_lease(&self, now: Instant, own: NodeEpoch) -> bool {
        self.is_alive(now, own) || self.mutant == Some(Mutant::LeaseNotChecked)
    }

    /// Whether a commit of this node may change entries of this shard under this fence.
    #[must_use]
    pub fn may_change(&self, own: NodeEpoch, shard: QueueId, fence: Fence) -> bool {
        self.owner(shard) == Some((own, fence)) || self.mutant == Some(Mutant::FenceNotChecked)
    }

    /// Who owns a shard, and its fence.
    #[must_use]
    pub fn owner(&self, shard: QueueId) -> Option<(NodeEpoch, Fence)> {
        let shard = self.shards.get(&shard)?;
        shard.owner.map(|owner| (owner, Fence(shard.fence)))
    }

    /// There is such a shard: somebody puts an entry into it.
    pub fn know(&mut self, shard: QueueId) {
        self.shards.entry(shard).or_default();
    }

    /// The nodes that are not dead.
    #[must_use]
    pub fn nodes(&self, now: Instant) -> Vec<NodeRow> {
        let row = |(epoch, node): (&NodeEpoch, &Node)| NodeRow {
            epoch: *epoch,
            name: node.name.clone(),
            lease_left: node.until.since(now),
            draining: node.draining,
        };
        self.nodes.iter().map(row).collect()
    }

    /// The shards.
    #[must_use]
    pub fn shards(&self, now: Instant) -> Vec<ShardRow> {
        let mut rows: BTreeMap<QueueId, ShardRow> = BTreeMap::new();
        for (id, shard) in &self.shards {
            let owner = shard.owner.map(|owner| (owner, Fence(shard.fence)));
            let (name, asked_by) = (shard.name.clone(), shard.asked_by);
            let since = now.since(shard.since);
            rows.insert(*id, ShardRow { shard: *id, name, owner, since, asked_by, waits: None });
        }
        for (shard, _) in self.entries.values() {
            let since = now.since(Instant(0));
            rows.entry(*shard).or_insert_with(|| ShardRow {
                shard: *shard,
                name: String::new(),
                owner: None,
                since,
                asked_by: None,
                waits: None,
            });
        }
        for (shard, _) in self.entries.values().filter(|(shard, _)| !shard.is_of_mailbox()) {
            rows.entry(*shard).and_modify(|row| row.waits = Some(Precedence::Routine));
        }
        rows.into_values().collect()
    }

    /// Commits changes of a node, all or none.
    pub fn commit(&mut self, now: Instant, own: NodeEpoch, changes: &[Change]) -> Commit {
        let lease = self.is_alive(now, own) || self.mutant == Some(Mutant::LeaseNotChecked);
        let fenced = |change: &Change| match change {
            Change::Rewrite { shard, fence, .. } | Change::Delete { shard, fence, .. } => {
                let shard = self.shards.get(shard);
                !shard.is_some_and(|s| s.owner == Some(own) && s.fence == fence.0)
            }
            Change::Insert { .. } | Change::Key(_) => false,
        };
        let is_fenced = changes.iter().any(fenced) && self.mutant != Some(Mutant::FenceNotChecked);
        if !lease || is_fenced {
            return Commit::Fenced;
        }
        let is_there =
            |change: &Change| matches!(change, Change::Key(key) if self.keys.contains(key));
        if changes.iter().any(is_there) && self.mutant != Some(Mutant::KeyNotChecked) {
            return Commit::Conflict;
        }
        self.commits += 1;
        for change in changes {
            match change {
                Change::Insert { id, shard } | Change::Rewrite { id, shard, .. } => {
                    self.entries.insert(*id, (*shard, self.commits));
                }
                Change::Delete { id, .. } => _ = self.entries.remove(id),
                Change::Key(key) => _ = self.keys.insert(*key),
            }
        }
        Commit::Durable
    }

    /// The entries of a shard, in the order of their commits.
    #[must_use]
    pub fn entries(&self, shard: QueueId) -> Vec<u64> {
        let mut listed: Vec<(u64, u64)> = Vec::new();
        listed.extend(
            self.entries.iter().filter(|(_, (of, _))| *of == shard).map(|(id, (_, at))| (*at, *id)),
        );
        listed.sort_unstable();
        listed.into_iter().map(|(_, id)| id).collect()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
