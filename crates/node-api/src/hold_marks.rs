//! Which entries an operator holds: a named value of the store, written whole, which the nodes of a site change in
//! common.

use crate::api::operator::HELD;
use base::EntryId;
use bytes::Bytes;
use engine::journal::{Batch, KnownValue, Op};
use std::collections::{BTreeMap, BTreeSet};

/// The marks of held entries, some of them perhaps gone.
#[derive(Debug, Default)]
pub struct HoldMarks {
    held: BTreeSet<EntryId>,
    /// What was changed here and is not durable yet: it holds whatever another node writes meanwhile.
    changing: BTreeMap<EntryId, bool>,
    /// Held entries that went from here, where there are several nodes.
    gone: BTreeSet<EntryId>,
    /// Held entries that a change takes out which is not made yet, and the copies that have their marks.
    taken: BTreeMap<EntryId, Vec<EntryId>>,
    known: KnownValue,
}

/// What another value of the store changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedMarks {
    /// Entries that are held now, and were not before.
    pub held: Vec<EntryId>,
    /// Entries that were held before, and are not now.
    pub released: Vec<EntryId>,
}

fn ids(value: &[u8]) -> impl Iterator<Item = EntryId> + '_ {
    let ids = value.chunks_exact(8).filter_map(|id| id.try_into().ok());
    ids.map(|id| EntryId(u64::from_be_bytes(id)))
}

impl HoldMarks {
    /// Takes over the value of [`HELD`]: at the start, or when another node has changed it. An empty one is none.
    pub fn recovered(&mut self, value: &[u8]) -> ChangedMarks {
        self.known = KnownValue::from_octets(value);
        let mut held: BTreeSet<EntryId> = ids(value).collect();
        self.gone.retain(|id| held.contains(id));
        for (id, hold) in &self.changing {
            match hold {
                true => held.insert(*id),
                false => held.remove(id),
            };
        }
        let before = std::mem::replace(&mut self.held, held);
        ChangedMarks {
            held: self.held.difference(&before).copied().collect(),
            released: before.difference(&self.held).copied().collect(),
        }
    }

    /// Whether an entry has a mark.
    #[must_use]
    pub fn contains(&self, id: &EntryId) -> bool {
        self.held.contains(id)
    }

    /// How many entries have a mark.
    #[must_use]
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// The change that makes the marks durable.
    #[must_use]
    pub fn put(&mut self) -> Op {
        let value: Vec<u8> = self.held.iter().flat_map(|id| id.0.to_be_bytes()).collect();
        self.known.replace(HELD, Bytes::from(value))
    }

    /// Marks an entry as held, or no longer. Gives whether that changed anything. Until that is durable it holds,
    /// whatever another node writes meanwhile.
    pub fn mark(&mut self, id: EntryId, hold: bool) -> bool {
        let is_new = match hold {
            true => self.held.insert(id),
            false => self.held.remove(&id),
        };
        if is_new {
            self.changing.insert(id, hold);
        }
        is_new
    }

    /// The marks of these are durable, or were undone.
    pub fn settled(&mut self, entries: &[EntryId]) {
        for id in entries {
            self.changing.remove(id);
        }
    }

    /// A batch is durable: so are the marks that it wrote.
    pub fn written(&mut self, batch: &Batch) {
        for op in batch {
            if let Op::DeleteEntry { id, .. } = op {
                self.taken.remove(id);
            }
            if let Op::ReplaceMeta { name, value, .. } = op
                && name == HELD
            {
                let held: BTreeSet<EntryId> = ids(value).collect();
                self.changing.retain(|id, hold| held.contains(id) != *hold);
            }
        }
    }

    /// An entry went from a node that has others beside it: its mark goes with the next change.
    pub fn note_gone(&mut self, id: EntryId) {
        if self.held.contains(&id) {
            self.gone.insert(id);
        }
    }

    /// Drops the marks of entries that were noted as gone. An entry that is not here may be another node's.
    pub fn drop_gone(&mut self) {
        let HoldMarks { held, gone, .. } = self;
        held.retain(|id| !gone.contains(id));
    }

    /// Drops the marks of entries that are not there, where there is one node.
    pub fn drop_all_but(&mut self, mut is_there: impl FnMut(EntryId) -> bool) {
        self.held.retain(|id| is_there(*id));
    }

    /// A change that is written late holds what is held then.
    pub fn renew(&mut self, batch: &mut Batch) {
        let is_held = |op: &&mut Op| matches!(op, Op::ReplaceMeta { name, .. } if name == HELD);
        for op in batch.iter_mut().filter(is_held) {
            *op = self.put();
        }
    }

    /// An entry is taken out: if it is held, the copies that take its place are held as it was. Gives whether it is.
    pub fn take(&mut self, id: EntryId, copies: &[EntryId]) -> bool {
        let is_held = self.mark(id, false);
        if is_held {
            for copy in copies {
                self.mark(*copy, true);
            }
            self.taken.insert(id, copies.to_vec());
        }
        is_held
    }

    /// A batch is not made, and will not be: the entries that it was to take out are held as before.
    pub fn give_back(&mut self, batch: &Batch) {
        for op in batch {
            if let Op::DeleteEntry { id, .. } = op
                && let Some(copies) = self.taken.remove(id)
            {
                self.gone.remove(id);
                self.mark(*id, true);
                for copy in &copies {
                    self.mark(*copy, false);
                }
                self.settled(&copies);
                self.settled(&[*id]);
            }
        }
    }

    /// A held entry is rerouted: the copies that take its place are held as it was. Returns what
    /// belongs into the commit that replaces it.
    pub fn pass_on(&mut self, id: EntryId, copies: &[EntryId]) -> Option<Op> {
        self.take(id, copies).then(|| self.put())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|id| id.to_be_bytes()).collect()
    }

    fn written(marks: &mut HoldMarks) -> Vec<u8> {
        match marks.put() {
            Op::ReplaceMeta { value, .. } => value.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_durable_yet_outlasts_what_another_node_writes() {
        let mut marks = HoldMarks::default();
        assert_eq!(marks.recovered(&value(&[1, 2])).held, [EntryId(1), EntryId(2)]);
        assert!(marks.mark(EntryId(3), true) && marks.mark(EntryId(1), false));
        let changed = marks.recovered(&value(&[1, 9]));
        let expected = ChangedMarks { held: vec![EntryId(9)], released: vec![EntryId(2)] };
        assert_eq!(changed, expected);
        assert_eq!(written(&mut marks), value(&[3, 9]));
        let batch = vec![marks.put()];
        marks.written(&batch);
        assert_eq!(marks.recovered(&value(&[1])).held, [EntryId(1)]);
        assert_eq!((marks.contains(&EntryId(3)), marks.count()), (false, 1));
    }

    #[test]
    fn a_mark_goes_with_its_entry_and_to_its_copies() {
        let mut marks = HoldMarks::default();
        marks.recovered(&value(&[1, 2, 3]));
        marks.note_gone(EntryId(2));
        marks.note_gone(EntryId(7));
        marks.drop_gone();
        assert_eq!(written(&mut marks), value(&[1, 3]));
        assert_eq!(marks.pass_on(EntryId(2), &[EntryId(8)]), None);
        assert!(marks.pass_on(EntryId(3), &[EntryId(8)]).is_some());
        marks.drop_all_but(|id| id != EntryId(1));
        assert_eq!(written(&mut marks), value(&[8]));
    }

    #[test]
    fn a_change_that_is_not_made_leaves_the_marks_as_they_were() {
        let removal = |id: u64| {
            vec![Op::DeleteEntry { precedence: base::Precedence::Flash, id: EntryId(id) }]
        };
        let mut marks = HoldMarks::default();
        marks.recovered(&value(&[1, 2]));
        marks.note_gone(EntryId(1));
        assert!(marks.take(EntryId(1), &[EntryId(8)]) && marks.take(EntryId(2), &[]));
        assert!(!marks.take(EntryId(3), &[EntryId(9)]), "it was not held");
        assert_eq!(written(&mut marks), value(&[8]));
        marks.give_back(&removal(1));
        marks.give_back(&removal(3));
        assert_eq!(written(&mut marks), value(&[1]));
        // What was made is not given back any more.
        marks.written(&removal(2));
        marks.give_back(&removal(2));
        assert_eq!(written(&mut marks), value(&[1]));
        // The store decides on what is not held or released here.
        marks.drop_gone();
        assert_eq!(marks.recovered(&value(&[1, 8])).held, [EntryId(8)]);
    }
}
