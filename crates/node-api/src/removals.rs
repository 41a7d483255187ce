//! Entries whose removal is being committed, or is to be, where several nodes share the store.
//!
//! A node that gains a shard reads its entries. Some of them it may have had before, and concluded, and their removal
//! is not durable yet: these are not queued again. Where the removal fails for good, the entry is read once more.

use crate::ids::Token;
use base::EntryId;
use engine::journal::{FIRST_ITEM, Op};
use scheduler::Destination;
use std::collections::BTreeMap;

/// The removals of a node. Without others beside it, it keeps none.
#[derive(Debug, Default)]
pub struct Removals {
    is_one_of_several: bool,
    commits: BTreeMap<Token, Vec<EntryId>>,
    /// How many changes remove an entry.
    counts: BTreeMap<EntryId, usize>,
    /// Where those went that were sent or concluded here.
    destinations: BTreeMap<EntryId, Destination>,
    /// Of these no change is left, unless one is to be made again.
    ended: Vec<EntryId>,
}

fn removed(batch: &[Op]) -> impl Iterator<Item = EntryId> + '_ {
    batch.iter().filter_map(|op| match op {
        Op::DeleteEntry { id, .. } if id.0 < FIRST_ITEM => Some(*id),
        _ => None,
    })
}

impl Removals {
    /// There are several nodes.
    pub fn keep(&mut self) {
        self.is_one_of_several = true;
    }

    /// A batch is handed to the store. `destination` gives where an entry was to go, if that is known.
    pub fn begin(
        &mut self,
        token: Token,
        batch: &[Op],
        destination: impl Fn(EntryId) -> Option<Destination>,
    ) {
        let ids: Vec<EntryId> = removed(batch).filter(|_| self.is_one_of_several).collect();
        if !ids.is_empty() {
            let known = ids.iter().filter_map(|id| Some((*id, destination(*id)?)));
            self.destinations.extend(known);
            self.count(&ids);
            self.commits.insert(token, ids);
        }
    }

    /// It has ended.
    pub fn end(&mut self, token: Token) {
        if let Some(ids) = self.commits.remove(&token) {
            self.discount(&ids);
        }
    }

    /// A batch is to be handed to the store later.
    pub fn wait(&mut self, batch: &[Op]) {
        let ids: Vec<EntryId> = removed(batch).filter(|_| self.is_one_of_several).collect();
        self.count(&ids);
    }

    /// It waits no longer.
    pub fn go_on(&mut self, batch: &[Op]) {
        let ids: Vec<EntryId> = removed(batch).filter(|_| self.is_one_of_several).collect();
        self.discount(&ids);
    }

    /// Whether an entry is being removed, or is to be.
    #[must_use]
    pub fn has(&self, id: EntryId) -> bool {
        self.counts.contains_key(&id)
    }

    /// Whether an entry for this destination is being removed, or is to be: to another owner it would be one to send.
    #[must_use]
    pub fn has_any_for(&self, to: Destination) -> bool {
        self.destinations.iter().any(|(id, its)| *its == to && self.has(*id))
    }

    /// Forgets where those were to go of which no change is left.
    pub fn forget_ended(&mut self) {
        for id in std::mem::take(&mut self.ended) {
            if !self.has(id) {
                self.destinations.remove(&id);
            }
        }
    }

    fn count(&mut self, ids: &[EntryId]) {
        for id in ids {
            *self.counts.entry(*id).or_default() += 1;
        }
    }

    fn discount(&mut self, ids: &[EntryId]) {
        for id in ids {
            if let Some(count) = self.counts.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(id);
                    self.ended.push(*id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Precedence;

    fn removal(ids: &[u64]) -> Vec<Op> {
        let precedence = Precedence::Flash;
        ids.iter().map(|id| Op::DeleteEntry { precedence, id: EntryId(*id) }).collect()
    }

    #[test]
    fn an_entry_is_being_removed_until_all_changes_have_ended() {
        let mut removals = Removals::default();
        let to = |id: EntryId| (id.0 == 1).then_some(Destination::Mailbox(3));
        removals.begin(Token(9), &removal(&[9]), to);
        assert!(!removals.has(EntryId(9)), "nobody else reads it");
        removals.keep();
        removals.begin(Token(1), &removal(&[1, 2, FIRST_ITEM]), to);
        // Nothing of it was made: it waits, and is handed over again.
        removals.end(Token(1));
        removals.wait(&removal(&[1, 2]));
        removals.forget_ended();
        let has_any = |removals: &Removals| {
            [3, 4].map(|number| removals.has_any_for(Destination::Mailbox(number)))
        };
        assert_eq!(has_any(&removals), [true, false]);
        assert!(removals.has(EntryId(1)) && !removals.has(EntryId(FIRST_ITEM)));
        removals.go_on(&removal(&[1, 2]));
        removals.begin(Token(2), &removal(&[1, 2]), |_| None);
        removals.begin(Token(3), &removal(&[2]), |_| None);
        assert_eq!(has_any(&removals), [true, false], "it is known from before");
        removals.end(Token(2));
        removals.forget_ended();
        assert_eq!((has_any(&removals), removals.destinations.len()), ([false, false], 0));
        assert_eq!([1, 2].map(|id| removals.has(EntryId(id))), [false, true]);
        removals.end(Token(3));
        assert!(!removals.has(EntryId(2)));
    }
}
