//! Values that were touched, and times that are due, so that an input costs only what it touches.

use crate::Instant;
use crate::steps::step;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

/// A map that notes which of its values may have changed since the marks were last taken.
#[derive(Debug)]
pub struct Marked<K, V> {
    values: BTreeMap<K, V>,
    marks: BTreeSet<K>,
}

impl<K, V> Default for Marked<K, V> {
    fn default() -> Marked<K, V> {
        Marked { values: BTreeMap::new(), marks: BTreeSet::new() }
    }
}

impl<K: Ord + Copy, V> Marked<K, V> {
    /// The value of a key; it is not marked.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    /// Marks the value: it is about to change.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let value = self.values.get_mut(key)?;
        self.marks.insert(*key);
        Some(value)
    }

    /// Adds a value, and marks it.
    pub fn insert(&mut self, key: K, value: V) {
        self.marks.insert(key);
        self.values.insert(key, value);
    }

    /// The key stays marked.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.marks.insert(*key);
        self.values.remove(key)
    }

    /// Whether there is a value with this key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.values.contains_key(key)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All of them: for rare work.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.values.values().inspect(|_| step())
    }

    /// All of them: for rare work.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.values.keys().inspect(|_| step())
    }

    /// The keys within a range, in order.
    pub fn keys_in(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = K> {
        self.values.range(range).map(|(key, _)| *key).inspect(|_| step())
    }

    /// Marks all of them.
    pub fn mark_all(&mut self) {
        self.marks.extend(self.values.keys().inspect(|_| step()));
    }

    /// Whether any key is marked.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// The marked keys in order, removed ones too. Afterwards none is marked.
    pub fn take_marks(&mut self) -> BTreeSet<K> {
        std::mem::take(&mut self.marks)
    }
}

/// Keys in the order of their due times; each has at most one time.
#[derive(Debug)]
#[cfg_attr(debug_assertions, derive(Clone, PartialEq))]
pub struct Due<K> {
    order: BTreeSet<(Instant, K)>,
    times: BTreeMap<K, Instant>,
}

impl<K> Default for Due<K> {
    fn default() -> Due<K> {
        Due { order: BTreeSet::new(), times: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Due<K> {
    /// Sets or removes the due time of a key. Gives whether it changed.
    pub fn set(&mut self, key: K, at: Option<Instant>) -> bool {
        step();
        let old = match at {
            Some(at) => self.times.insert(key.clone(), at),
            None => self.times.remove(&key),
        };
        if old == at {
            return false;
        }
        if let Some(old) = old {
            self.order.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
        true
    }

    /// The earliest due time of all keys; `None` if there is none.
    pub fn first(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the first one out, if it is due now.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        step();
        if self.first()? > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.times.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_may_have_changed_is_marked_and_what_was_read_is_not() {
        let mut map: Marked<u8, &str> = Marked::default();
        map.insert(1, "a");
        map.insert(2, "b");
        map.insert(3, "c");
        assert_eq!(map.take_marks(), [1, 2, 3].into());
        assert!(map.get(&1).is_some() && map.contains_key(&2) && !map.has_marks());
        assert_eq!((map.values().count(), map.keys_in(2..).collect::<Vec<_>>()), (3, vec![2, 3]));
        assert!(!map.has_marks());
        if let Some(value) = map.get_mut(&2) {
            *value = "B";
        }
        assert!(map.get_mut(&9).is_none() && map.remove(&3).is_some());
        assert_eq!(map.take_marks(), [2, 3].into(), "a removed one too, an unknown one not");
        map.mark_all();
        assert_eq!(map.take_marks(), [1, 2].into());
    }

    proptest! {
        #[test]
        fn due_gives_what_a_plain_list_gives(
            steps in prop::collection::vec((0u8..6, prop::option::of(0u64..20), 0u64..25), 1..60),
        ) {
            let mut due: Due<u8> = Due::default();
            let mut plain: Vec<(u64, u8)> = Vec::new();
            for (key, at, now) in steps {
                let before = plain.iter().find(|(_, k)| *k == key).map(|(at, _)| *at);
                plain.retain(|(_, k)| *k != key);
                plain.extend(at.map(|at| (at, key)));
                plain.sort_unstable();
                prop_assert_eq!(due.set(key, at.map(Instant)), before != at);
                prop_assert_eq!(due.first(), plain.first().map(|(at, _)| Instant(*at)));
                let expected = plain.first().filter(|(at, _)| *at <= now).map(|(_, k)| *k);
                prop_assert_eq!(due.pop(Instant(now)), expected);
                if expected.is_some() {
                    plain.remove(0);
                }
            }
        }
    }
}
