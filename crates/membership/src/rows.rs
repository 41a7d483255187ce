//! What a shared store knows of nodes and shards, and its answers.

use base::Precedence;
use engine::journal::{Entry, QueueId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The number of a joining of a node: never used again, so a node that joins again has another one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct NodeEpoch(pub u32);

impl fmt::Display for NodeEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an ownership of a shard: higher than all earlier ones of that shard.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Fence(pub u64);

/// A node that is not dead, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its number.
    pub epoch: NodeEpoch,
    /// Its name in the configuration.
    pub name: String,
    /// What is left of its lease by the store's clock; zero if it has ended.
    pub lease_left: Duration,
    /// It gives its shards away and takes no other ones: it is to be stopped.
    pub draining: bool,
}

/// A shard, as the store knows it. A shard that never had an owner or an entry may be unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRow {
    /// The shard.
    pub shard: QueueId,
    /// What people call it: the name of the peer, or the address of the mailbox.
    pub name: String,
    /// Its owner and the fence, if it has one.
    pub owner: Option<(NodeEpoch, Fence)>,
    /// How long that has been so.
    pub since: Duration,
    /// Another node asks the owner to give it away.
    pub asked_by: Option<NodeEpoch>,
    /// The highest precedence that waits in it; `None` for a mailbox that has an owner, or where nothing waits.
    pub waits: Option<Precedence>,
}

/// The end of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Renewal {
    /// The lease lasts for its full time from the call on, or longer.
    Renewed,
    /// Another node has written that this one is dead: it owns nothing any more, and has to join again.
    Dead,
}

/// The end of an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acquired {
    /// This node owns the shard, by this fence.
    Ours(Fence),
    /// Another node owns it.
    Owned(NodeEpoch),
    /// This node is dead, or its lease has ended.
    Dead,
}

/// A place in a shard, between two entries in the order in which they were committed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Place {
    /// All that was committed before this number is before the place.
    pub horizon: u64,
    /// The last entry that was listed has this number.
    pub last: u64,
}

/// Entries of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardPage {
    /// The entries, in the order in which they were committed. Some may have been listed before.
    pub entries: Vec<Entry>,
    /// Where the next page begins.
    pub next: Place,
    /// Whether more entries are there now.
    pub more: bool,
}

/// What has changed in the store, perhaps: whoever learns of it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Shards into which somebody put entries.
    pub shards: Vec<QueueId>,
    /// Names of values that were written.
    pub values: Vec<String>,
    /// Peers, by shard, that have called a node which does not own it, and that node.
    pub bound: Vec<(QueueId, NodeEpoch)>,
    /// Nodes or owners have changed, or a shard is asked for.
    pub members: bool,
    /// Users were added, changed or removed.
    pub users: bool,
    /// The connection was lost: anything may have changed.
    pub all: bool,
}
