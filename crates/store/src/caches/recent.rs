//! A cache of the latest commits: most messages leave soon after their arrival, and are then sent
//! without reading them back from the disk.
//!
//! It holds nothing that the database does not hold, so it may drop anything at any time.

use crate::queue::EntryKey;
use base::BodyId;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Most octets held.
const MAX_BYTES: usize = 32 << 20;
/// Approximate overhead of an item, in octets.
const OVERHEAD: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Entry(EntryKey),
    Body(BodyId),
}

/// The cache: records of entries, and bodies that are in the database.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    items: BTreeMap<Key, (u64, Bytes)>,
    /// Oldest first. A removed item stays here until its turn, recognised by its number.
    order: VecDeque<(u64, Key)>,
    octets: usize,
    last: u64,
}

fn cost(octets: &Bytes) -> usize {
    octets.len() + OVERHEAD
}

impl Recent {
    pub(crate) fn get(&self, key: Key) -> Option<&Bytes> {
        self.items.get(&key).map(|(_, octets)| octets)
    }

    pub(crate) fn insert(&mut self, key: Key, octets: Bytes) {
        self.forget(key);
        self.last += 1;
        self.octets += cost(&octets);
        self.items.insert(key, (self.last, octets));
        self.order.push_back((self.last, key));
        while self.octets > MAX_BYTES || self.order.len() > 2 * self.items.len() + 64 {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.items.get(&key).is_some_and(|(current, _)| *current == number) {
                // The cache is too large, or has so many removed items that this one would be
                // added again.
                if self.octets > MAX_BYTES {
                    self.forget(key);
                } else {
                    self.order.push_back((number, key));
                }
            }
        }
    }

    pub(crate) fn forget(&mut self, key: Key) {
        if let Some((_, octets)) = self.items.remove(&key) {
            self.octets -= cost(&octets);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Recent { last: self.last, ..Recent::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(n: u64) -> Key {
        Key::Body(BodyId(n))
    }

    #[test]
    fn the_oldest_go_first_and_a_new_value_counts_once() {
        let mut recent = Recent::default();
        let quarter = Bytes::from(vec![0; MAX_BYTES / 4 - OVERHEAD]);
        for n in 0..4 {
            recent.insert(body(n), quarter.clone());
        }
        recent.insert(body(0), quarter.clone());
        assert!((0..4).all(|n| recent.get(body(n)).is_some()), "0 is new again");
        recent.insert(body(4), quarter);
        assert!(recent.get(body(1)).is_none() && recent.get(body(0)).is_some());
        recent.clear();
        assert!(recent.get(body(4)).is_none());
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_never_wrong(
            steps in prop::collection::vec((0u64..60, prop::option::of(0usize..1 << 20)), 0..300)
        ) {
            let mut recent = Recent::default();
            let mut model = BTreeMap::new();
            for (at, (n, size)) in steps.into_iter().enumerate() {
                match size {
                    Some(size) => {
                        let octets = Bytes::from(vec![at as u8; size]);
                        model.insert(n, octets.clone());
                        recent.insert(body(n), octets);
                        prop_assert!(recent.order.len() <= 2 * recent.items.len() + 64);
                    }
                    None => {
                        model.remove(&n);
                        recent.forget(body(n));
                    }
                }
                let held: usize = recent.items.values().map(|(_, o)| cost(o)).sum();
                prop_assert_eq!(held, recent.octets);
                prop_assert!(held <= MAX_BYTES);
                for n in 0..60 {
                    prop_assert!(recent.get(body(n)).is_none_or(|o| model.get(&n) == Some(o)));
                }
            }
        }
    }
}
