//! A table of bounded size: a new entry replaces the one that was unused for longest.

use std::collections::BTreeMap;

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<K, V> {
    entry: Option<(K, V)>,
    newer: u32,
    older: u32,
}

/// Entries by key, and in the order in which they were touched.
#[derive(Clone, Debug)]
pub(crate) struct BoundedTable<K, V> {
    index: BTreeMap<K, u32>,
    slots: Vec<Slot<K, V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    most: usize,
}

impl<K: Ord + Clone, V> BoundedTable<K, V> {
    /// For at most so many entries, at least one.
    pub(crate) fn new(most: usize) -> BoundedTable<K, V> {
        let most = most.clamp(1, NONE as usize - 1);
        let (index, slots, free) = (BTreeMap::new(), Vec::new(), Vec::new());
        BoundedTable { index, slots, free, newest: NONE, oldest: NONE, most }
    }

    /// Entries that are there.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The entry of a key, which becomes the one touched last.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
        self.value(at)
    }

    /// The entry of a key, without touching it.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        self.value(at)
    }

    /// A new entry; gives the one that had to go for it: that of the same key, or where the table is
    /// full the oldest.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<(K, V)> {
        let before = self.remove(&key).map(|value| (key.clone(), value));
        let gone = if before.is_none() && self.len() >= self.most { self.pop() } else { before };
        let slot = Slot { entry: Some((key.clone(), value)), newer: NONE, older: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.slots.get_mut(at as usize) {
                    *place = slot;
                }
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.link(at);
        self.index.insert(key, at);
        gone
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.index.remove(key)?;
        self.unlink(at);
        self.free.push(at);
        self.slots.get_mut(at as usize)?.entry.take().map(|(_, value)| value)
    }

    /// Takes the oldest entry out.
    pub(crate) fn pop(&mut self) -> Option<(K, V)> {
        let key = self.oldest()?.0.clone();
        self.remove(&key).map(|value| (key, value))
    }

    /// The entry that was longest not touched.
    pub(crate) fn oldest(&self) -> Option<(&K, &V)> {
        let (key, value) = self.slots.get(self.oldest as usize)?.entry.as_ref()?;
        Some((key, value))
    }

    fn value(&mut self, at: u32) -> Option<&mut V> {
        self.slots.get_mut(at as usize)?.entry.as_mut().map(|(_, value)| value)
    }

    fn unlink(&mut self, at: u32) {
        let Some(slot) = self.slots.get(at as usize) else { return };
        let (newer, older) = (slot.newer, slot.older);
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link(&mut self, at: u32) {
        let before = std::mem::replace(&mut self.newest, at);
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
        if let Some(slot) = self.slots.get_mut(at as usize) {
            (slot.newer, slot.older) = (NONE, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list in which every operation looks at everything.
        #[test]
        fn it_does_as_a_plain_list_does(
            most in 1usize..6,
            steps in proptest::collection::vec((0u8..4, 0u8..9), 0..200),
        ) {
            let mut table = BoundedTable::new(most);
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (number, (what, key)) in steps.into_iter().enumerate() {
                let place = list.iter().position(|(k, _)| *k == key);
                match what {
                    0 => {
                        let gone = match place {
                            Some(at) => Some(list.remove(at)),
                            None if list.len() == most => Some(list.remove(0)),
                            None => None,
                        };
                        list.push((key, number));
                        prop_assert_eq!(table.insert(key, number), gone);
                    }
                    1 => {
                        let found = place.map(|at| {
                            let entry = list.remove(at);
                            list.push(entry);
                            entry.1
                        });
                        prop_assert_eq!(table.touch(&key).copied(), found);
                    }
                    2 => prop_assert_eq!(table.remove(&key), place.map(|at| list.remove(at).1)),
                    _ => {
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(table.pop(), first);
                    }
                }
                prop_assert_eq!(table.len(), list.len());
                prop_assert_eq!(table.oldest().map(|(k, v)| (*k, *v)), list.first().copied());
                prop_assert!(table.slots.len() <= most);
            }
        }
    }
}
