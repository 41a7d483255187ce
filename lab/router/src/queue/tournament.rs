//! Finds the lowest of many keys that change one at a time, with a tree of winners: O(log n) for a
//! change, O(1) for a query, and no allocation after construction.

/// The key of a place without an entry.
const NONE: u128 = u128::MAX;

/// The lowest key and its place; of equal keys, the lower place.
#[derive(Debug)]
pub(crate) struct Tournament {
    /// The root is at 1, the children of n at 2n and 2n + 1; the leaves are the places.
    nodes: Vec<(u128, u32)>,
    leaves: usize,
}

impl Tournament {
    /// A tournament of `places` places without keys.
    pub(crate) fn new(places: usize) -> Tournament {
        let leaves = places.max(1).next_power_of_two();
        let mut nodes = vec![(NONE, 0); 2 * leaves];
        for (node, place) in nodes.iter_mut().skip(leaves).zip(0..) {
            node.1 = place;
        }
        Tournament { nodes, leaves }
    }

    /// Sets the key of a place, or removes it.
    pub(crate) fn set(&mut self, place: usize, key: Option<u128>) {
        let mut at = self.leaves + place;
        let Some(leaf) = self.nodes.get_mut(at) else { return };
        leaf.0 = key.unwrap_or(NONE);
        let mut winner = *leaf;
        while at > 1 {
            let other = self.nodes.get(at ^ 1).copied().unwrap_or(winner);
            winner = winner.min(other);
            at /= 2;
            match self.nodes.get_mut(at) {
                Some(node) if *node != winner => *node = winner,
                _ => return,
            }
        }
    }

    /// The place with the lowest key.
    pub(crate) fn least(&self) -> Option<usize> {
        let (key, place) = self.nodes.get(1)?;
        (*key != NONE).then_some(*place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_the_least(
            places in 1_usize..40,
            changes in prop::collection::vec((0_usize..40, prop::option::of(0_u128..9)), 0..200),
        ) {
            let mut tournament = Tournament::new(places);
            let mut model = vec![None; places];
            for (place, key) in changes {
                let place = place % places;
                tournament.set(place, key);
                model[place] = key;
                let keys = model.iter().enumerate().filter_map(|(n, key)| Some(((*key)?, n)));
                prop_assert_eq!(tournament.least(), keys.min().map(|(_, place)| place));
            }
        }
    }
}
