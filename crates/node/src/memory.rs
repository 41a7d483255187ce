//! How much is held in memory for whom: envelopes being put together, from their first octet until
//! their commit is asked for. What the edge holds (contents, octets not yet written) it bounds
//! itself, by the same limits.

use crate::network::Origin;
use base::PeerId;
use std::collections::BTreeMap;

/// For whom memory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Payer {
    Peer(PeerId),
    /// The users at one address.
    Users(Origin),
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: BTreeMap<Payer, usize>,
    total: usize,
}

impl Memory {
    /// So much more is held, if that is within the limits; else the limit's key and size.
    pub(crate) fn take(
        &mut self,
        payer: Payer,
        octets: usize,
        limits: &crate::limits::Limits,
    ) -> Result<(), String> {
        if octets == 0 {
            return Ok(());
        }
        let held = self.held.get(&payer).copied().unwrap_or(0);
        let fits = |held: usize, most: usize| held.checked_add(octets).is_some_and(|h| h <= most);
        if !fits(held, limits.memory_per_peer) {
            return Err(format!("limits.memory_per_peer = {} octets", limits.memory_per_peer));
        }
        if !fits(self.total, limits.memory) {
            return Err(format!("limits.memory = {} octets", limits.memory));
        }
        self.held.insert(payer, held + octets);
        self.total += octets;
        Ok(())
    }

    /// So much is free again.
    pub(crate) fn give(&mut self, payer: Payer, octets: usize) {
        self.total = self.total.saturating_sub(octets);
        if let Some(held) = self.held.get_mut(&payer) {
            *held = held.saturating_sub(octets);
            if *held == 0 {
                self.held.remove(&payer);
            }
        }
    }

    /// Octets in all.
    pub(crate) fn total(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn one_cannot_take_what_all_have_and_all_no_more_than_there_is() {
        let limits = Limits { memory: 250, memory_per_peer: 100, ..Limits::default() };
        let peer = |n: &str| Payer::Peer(PeerId::of_name(n));
        let mut memory = Memory::default();
        assert_eq!(memory.take(peer("a"), 100, &limits), Ok(()));
        assert!(memory.take(peer("a"), 1, &limits).unwrap_err().contains("memory_per_peer = 100"));
        assert_eq!(memory.take(peer("b"), 100, &limits), Ok(()));
        assert!(memory.take(peer("c"), 51, &limits).unwrap_err().contains("limits.memory = 250"));
        assert_eq!(memory.take(peer("c"), 50, &limits), Ok(()));
        memory.give(peer("a"), 100);
        assert_eq!(memory.take(peer("a"), 100, &limits), Ok(()));
        assert!(memory.take(peer("a"), usize::MAX, &limits).is_err());
        for n in ["a", "b", "c"] {
            memory.give(peer(n), 100);
        }
        assert_eq!((memory.total(), memory.held.len()), (0, 0));
    }
}
