//! What batches that are being committed do to entries.

use base::EntryId;
use engine::journal::{Batch, Op, QueueId};
use membership::Fence;
use node_api::ids::Token;
use std::collections::{BTreeMap, BTreeSet};

/// What a batch does to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// It is put there, or written anew.
    Put(QueueId, EntryId),
    /// It is deleted.
    Delete(EntryId),
}

/// The end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// It is durable.
    Durable,
    /// Nothing of it was made.
    NotDone,
    /// Nothing of it was made, because the store takes nothing of this node: its lease has ended there.
    NoLease,
    /// Nothing of it was made, because another node owns what it removes, or has removed it.
    Fenced,
}

/// What a batch does to entries, in order.
#[must_use]
pub fn changes_of(batch: &Batch) -> Vec<EntryChange> {
    let change = |op: &Op| match op {
        Op::PutEntry { id, queue, .. } => Some(EntryChange::Put(*queue, *id)),
        Op::DeleteEntry { id, .. } => Some(EntryChange::Delete(*id)),
        _ => None,
    };
    batch.iter().filter_map(change).collect()
}

/// A change of a batch. Of what is put: under which fence its shard was the node's when the batch was made, if it was.
type Begun = (EntryChange, Option<Fence>);

/// The batches that are being committed.
#[derive(Debug, Default)]
pub(crate) struct Batches(BTreeMap<Token, Vec<Begun>>);

impl Batches {
    /// A batch is handed over. `fence` gives that of a shard for the node, as it is now.
    pub(crate) fn begin(
        &mut self,
        token: Token,
        changes: Vec<EntryChange>,
        fence: impl Fn(QueueId) -> Option<Fence>,
    ) {
        let begun = |change| match change {
            EntryChange::Put(shard, _) => (change, fence(shard)),
            EntryChange::Delete(_) => (change, None),
        };
        if !changes.is_empty() {
            self.0.insert(token, changes.into_iter().map(begun).collect());
        }
    }

    /// The entries that are being put into a shard under this fence: the node takes them up itself.
    pub(crate) fn puts(&self, shard: QueueId, fence: Fence) -> BTreeSet<EntryId> {
        let put = |(change, begun): &Begun| match change {
            EntryChange::Put(of, id) if *of == shard && *begun == Some(fence) => Some(*id),
            EntryChange::Put(..) | EntryChange::Delete(_) => None,
        };
        self.0.values().flatten().filter_map(put).collect()
    }

    /// A batch has ended. Gives what it was to do.
    pub(crate) fn end(&mut self, token: Token) -> Vec<Begun> {
        self.0.remove(&token).unwrap_or_default()
    }
}
