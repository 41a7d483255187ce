//! Entries that are replaced by others.

use base::EntryId;
use engine::journal::{Digest, Op};
use std::collections::BTreeMap;

/// Replaced entries that an operator may still ask for; the oldest have to make room.
const REMEMBERED: usize = 10_000;

/// What replaced entries, and is to.
#[derive(Debug, Default)]
pub struct Reroutes {
    /// Reserved keys, by the entry that is replaced: until that is durable.
    pub keys: BTreeMap<EntryId, Vec<Digest>>,
    /// What replaced an entry.
    pub became: BTreeMap<EntryId, Vec<EntryId>>,
}

impl Reroutes {
    /// The entries that this one became in this run of the daemon, if any.
    #[must_use]
    pub fn became(&self, id: EntryId) -> Option<&[EntryId]> {
        self.became.get(&id).map(Vec::as_slice)
    }

    /// These replace an entry.
    pub fn remember(&mut self, id: EntryId, copies: &[EntryId]) {
        if copies.is_empty() {
            return;
        }
        self.became.insert(id, copies.to_vec());
        if self.became.len() > REMEMBERED {
            self.became.pop_first();
        }
    }

    /// A batch is not made: what it was to replace has become nothing else.
    pub fn forget(&mut self, batch: &[Op]) {
        for op in batch {
            if let Op::DeleteEntry { id, .. } = op {
                self.became.remove(id);
            }
        }
    }
}

/// Entries in words.
#[must_use]
pub fn list(entries: &[EntryId]) -> String {
    entries.iter().map(EntryId::to_string).collect::<Vec<_>>().join(", ")
}
