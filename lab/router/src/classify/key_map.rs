//! A hash table from the tested fields of a packet to the rules that require these values. The hash
//! has no random seed, so the same rules give the same table. Keys come from policies and packets
//! are only looked up, so traffic cannot cause collisions on purpose.

use smallvec::SmallVec;

/// Fields of a packet; those that are not tested are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MatchKey {
    pub(super) source: u128,
    pub(super) destination: u128,
    /// Source port in the upper half, destination port in the lower half.
    pub(super) ports: u32,
    /// Code point, protocol and interface, as in [`super::index`].
    pub(super) rest: u64,
}

/// A rule with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyedRule {
    /// Its position in the order of the rules: the lowest applies.
    pub(super) position: u64,
    /// The value that a search returns.
    pub(super) value: usize,
    /// The key does not cover all conditions of the rule: the owner of the index checks the rest.
    pub(super) more: bool,
}

/// The end of a chain.
const NONE: u32 = u32::MAX;
const FIRST_SIZE: usize = 4;
/// At least this number of chains for each key. A search asks one map for each shape of rules, and
/// most maps have no match: an empty chain shows this without access to a node in distant memory.
const CHAINS: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct KeyMap {
    /// The first node of each chain. The number of chains is a power of two.
    heads: Vec<u32>,
    nodes: Vec<KeyNode>,
    /// Unused nodes.
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct KeyNode {
    key: MatchKey,
    /// Ordered by position.
    items: SmallVec<[KeyedRule; 1]>,
    next: u32,
}

impl MatchKey {
    /// Multiply and rotate, as in rustc's hash tables.
    #[inline]
    fn hash(&self) -> u64 {
        const ODD: u64 = 0x517c_c1b7_2722_0a95;
        let words = [
            self.source as u64,
            (self.source >> 64) as u64,
            self.destination as u64,
            (self.destination >> 64) as u64,
            u64::from(self.ports),
            self.rest,
        ];
        words.iter().fold(0u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(ODD))
    }
}

impl KeyMap {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == self.free.len()
    }

    #[inline]
    fn chain(&self, key: &MatchKey) -> usize {
        // The upper bits of a product are the best mixed.
        (key.hash() >> 32) as usize & self.heads.len().wrapping_sub(1)
    }

    #[inline]
    fn find(&self, key: &MatchKey) -> Option<u32> {
        let mut at = *self.heads.get(self.chain(key))?;
        while let Some(node) = self.nodes.get(at as usize) {
            if node.key == *key {
                return Some(at);
            }
            at = node.next;
        }
        None
    }

    /// The rules with this key, ordered by position.
    #[inline]
    pub(super) fn get(&self, key: &MatchKey) -> &[KeyedRule] {
        let node = self.find(key).and_then(|at| self.nodes.get(at as usize));
        node.map_or(&[], |node| &node.items)
    }

    pub(super) fn insert(&mut self, key: MatchKey, item: KeyedRule) {
        if let Some(node) = self.find(&key).and_then(|at| self.nodes.get_mut(at as usize)) {
            let at = node.items.partition_point(|other| other.position < item.position);
            node.items.insert(at, item);
            return;
        }
        if (self.nodes.len() - self.free.len() + 1) * CHAINS > self.heads.len() {
            self.grow();
        }
        let node = KeyNode { key, items: SmallVec::from_buf([item]), next: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.nodes.get_mut(at as usize) {
                    *place = node;
                }
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.link(at);
    }

    /// Removes the rule at this position, if there is one.
    pub(super) fn remove(&mut self, key: &MatchKey, position: u64) {
        let Some(at) = self.find(key) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(at as usize) else {
            return;
        };
        if let Ok(place) = node.items.binary_search_by_key(&position, |item| item.position) {
            node.items.remove(place);
        }
        if node.items.is_empty() {
            let next = node.next;
            self.unlink(key, at, next);
            self.free.push(at);
        }
    }

    fn link(&mut self, at: u32) {
        let Some(chain) = self.nodes.get(at as usize).map(|node| self.chain(&node.key)) else {
            return;
        };
        if let (Some(head), Some(node)) =
            (self.heads.get_mut(chain), self.nodes.get_mut(at as usize))
        {
            node.next = *head;
            *head = at;
        }
    }

    /// Makes the predecessor of this node point to `next`.
    fn unlink(&mut self, key: &MatchKey, at: u32, next: u32) {
        let chain = self.chain(key);
        let Some(head) = self.heads.get_mut(chain) else {
            return;
        };
        if *head == at {
            *head = next;
            return;
        }
        let mut before = *head;
        while let Some(node) = self.nodes.get_mut(before as usize) {
            if node.next == at {
                node.next = next;
                return;
            }
            before = node.next;
        }
    }

    fn grow(&mut self) {
        let size = (self.heads.len() * 2).max(FIRST_SIZE);
        self.heads = vec![NONE; size];
        for at in 0..self.nodes.len() {
            if self.nodes.get(at).is_some_and(|node| !node.items.is_empty()) {
                self.link(at as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    proptest! {
        /// The map equals an ordered map, through growth, chains and freed nodes.
        #[test]
        fn it_is_a_map(events in prop::collection::vec((0..40u32, 0..4u64, any::<bool>()), 0..400)) {
            let mut map = KeyMap::default();
            let mut model: BTreeMap<(u32, u64), usize> = BTreeMap::new();
            for (n, (ports, position, add)) in events.into_iter().enumerate() {
                let key = MatchKey { ports, ..MatchKey::default() };
                if !add {
                    map.remove(&key, position);
                    model.remove(&(ports, position));
                } else if let Entry::Vacant(place) = model.entry((ports, position)) {
                    map.insert(key, KeyedRule { position, value: n, more: false });
                    place.insert(n);
                }
                for ports in 0..40 {
                    let is = map.get(&MatchKey { ports, ..MatchKey::default() });
                    let is: Vec<_> = is.iter().map(|item| (item.position, item.value)).collect();
                    let should = model.range((ports, 0)..=(ports, 9));
                    let should: Vec<_> = should.map(|((_, p), value)| (*p, *value)).collect();
                    prop_assert_eq!(is, should);
                }
                prop_assert_eq!(map.is_empty(), model.is_empty());
            }
            prop_assert!(map.nodes.len() <= 40);
        }
    }
}
