//! Several nodes of one site on one store: who is a node, and which node owns which shard.
//!
//! Every entry belongs to a *shard*: the queue of a peer or of a mailbox ([`QueueId`]). A shard has at most one
//! owner, with a *fence*: a number that grows with each owner. A commit that changes or deletes an entry of a shard
//! is made only if its node owns the shard under that fence, and what it deletes is there; what is new goes into any
//! shard, as long as the lease of its node lasts. So every node accepts for every peer, and one node alone sends to
//! it. The items of a mailbox are put by the owner of their queue only.
//!
//! A node lives by its *lease*, which it renews. The store takes no commit of a node whose lease has ended. Whoever
//! takes over first has the store write that the node is dead, which waits for commits of that node that have begun;
//! from then on its lease cannot be renewed, and each of its commits ends with [`StoreError::NoLease`].

pub mod reads;

use crate::error::StoreError;
use crate::queue::BatchId;
use engine::journal::QueueId;
use std::time::Duration;

pub use membership::rows::{
    Acquired, Changes, Fence, NodeEpoch, NodeRow, Place, Renewal, ShardPage, ShardRow,
};

/// The calls by which nodes share a store. All of them block on it, and each has a time limit.
pub trait Cluster: Send + Sync + std::fmt::Debug {
    /// This process is a node of this name from now on, with a lease of this length. An earlier joining of that
    /// name is dead with it, at once.
    ///
    /// # Errors
    /// Those of the engine.
    fn join(&self, name: &str, lease: Duration) -> Result<NodeEpoch, StoreError>;

    /// Prolongs the lease. `draining`: see [`NodeRow::draining`].
    ///
    /// # Errors
    /// Those of the engine: it may have been prolonged or not.
    fn renew(&self, draining: bool) -> Result<Renewal, StoreError>;

    /// Writes that these nodes are dead, if their leases have ended or it is this node itself; their shards are free
    /// then. Waits for commits of theirs that have begun. Gives those that are dead.
    ///
    /// # Errors
    /// Those of the engine.
    fn bury(&self, nodes: &[NodeEpoch]) -> Result<Vec<NodeEpoch>, StoreError>;

    /// Owns a shard, if it is free or this node's own already: the fence is a new one then too. Batches with a number of `from` or below do not profit from it: they are of an
    /// earlier ownership.
    ///
    /// # Errors
    /// Those of the engine.
    fn acquire(&self, shard: QueueId, name: &str, from: BatchId) -> Result<Acquired, StoreError>;

    /// Gives shards away. No batch that changes their entries is in progress.
    ///
    /// # Errors
    /// Those of the engine.
    fn release(&self, shards: &[QueueId]) -> Result<(), StoreError>;

    /// Asks the owner of a shard to give it away.
    ///
    /// # Errors
    /// Those of the engine.
    fn ask(&self, shard: QueueId) -> Result<(), StoreError>;

    /// Does not ask for it any longer.
    ///
    /// # Errors
    /// Those of the engine.
    fn withdraw(&self, shard: QueueId) -> Result<(), StoreError>;

    /// Has the other nodes learn that the peer of a shard has opened an association with this one:
    /// [`Changes::bound`].
    ///
    /// # Errors
    /// Those of the engine.
    fn announce(&self, shard: QueueId) -> Result<(), StoreError>;

    /// The nodes that are not dead.
    ///
    /// # Errors
    /// Those of the engine.
    fn nodes(&self) -> Result<Vec<NodeRow>, StoreError>;

    /// All shards that have or had an owner, and all others that have entries.
    ///
    /// # Errors
    /// Those of the engine.
    fn shards(&self) -> Result<Vec<ShardRow>, StoreError>;

    /// These shards, in any order; one that never had an owner is among them.
    ///
    /// # Errors
    /// Those of the engine.
    fn shards_of(&self, shards: &[QueueId]) -> Result<Vec<ShardRow>, StoreError>;

    /// Of these shards those that have entries after a place, and some others perhaps.
    ///
    /// # Errors
    /// Those of the engine.
    fn news(&self, places: &[(QueueId, Place)]) -> Result<Vec<QueueId>, StoreError>;

    /// Entries of a shard after a place, and some before it perhaps: at most `limit` of them and about 8 MiB of
    /// records. An entry that another node commits late is not missed: it comes with a later call.
    ///
    /// # Errors
    /// Those of the engine.
    fn shard_entries(
        &self,
        shard: QueueId,
        after: Place,
        limit: usize,
    ) -> Result<ShardPage, StoreError>;

    /// Waits for changes by other nodes, at most so long. What changed between two calls is not missed.
    ///
    /// # Errors
    /// Those of the engine.
    fn watch(&self, at_most: Duration) -> Result<Changes, StoreError>;
}
