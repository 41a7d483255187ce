//! What batches that are being committed do to entries.

use base::EntryId;
use engine::journal::{Batch, Op, QueueId};
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

/// The batches that are being committed.
#[derive(Debug, Default)]
pub(crate) struct Batches(BTreeMap<Token, Vec<EntryChange>>);

impl Batches {
    pub(crate) fn begin(&mut self, token: Token, changes: Vec<EntryChange>) {
        if !changes.is_empty() {
            self.0.insert(token, changes);
        }
    }

    /// The entries that are being put.
    pub(crate) fn puts(&self) -> BTreeSet<EntryId> {
        let put = |change: &EntryChange| match change {
            EntryChange::Put(_, id) => Some(*id),
            EntryChange::Delete(_) => None,
        };
        self.0.values().flatten().filter_map(put).collect()
    }

    /// A batch has ended. Gives what it was to do.
    pub(crate) fn end(&mut self, token: Token) -> Vec<EntryChange> {
        self.0.remove(&token).unwrap_or_default()
    }
}
