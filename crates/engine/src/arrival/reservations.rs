//! Keys of what is being committed: no other arrival may use them until the commit is done.

use crate::journal::{Digest, SpoolId};
use std::collections::BTreeSet;

/// The keys that are being committed, and the arrivals that wait for one of them.
#[derive(Debug, Default)]
pub struct KeyReservations {
    committing: BTreeSet<Digest>,
    /// Arrivals that wait for reserved keys, and whether some keys were released.
    blocked: Vec<SpoolId>,
    unblock: bool,
}

impl KeyReservations {
    /// Reserves these keys, unless one of them is reserved. Gives whether they are now.
    pub fn reserve(&mut self, keys: &[Digest]) -> bool {
        let free = !keys.iter().any(|key| self.committing.contains(key));
        if free {
            self.committing.extend(keys.iter().copied());
        }
        free
    }

    /// This arrival waits until keys are released.
    pub fn wait(&mut self, spool: SpoolId) {
        self.blocked.push(spool);
    }

    /// Others may use these keys.
    pub fn release(&mut self, keys: &[Digest]) {
        for key in keys {
            self.committing.remove(key);
        }
        self.unblock = !self.blocked.is_empty();
    }

    /// Arrivals that waited and may try again, once keys were released.
    pub fn take_unblocked(&mut self) -> Vec<SpoolId> {
        match std::mem::take(&mut self.unblock) {
            true => std::mem::take(&mut self.blocked),
            false => Vec::new(),
        }
    }

    /// Reserved keys, and arrivals that wait for them.
    pub fn count(&self) -> usize {
        self.committing.len() + self.blocked.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_key_tries_again_once_keys_are_released() {
        let mut keys = KeyReservations::default();
        let (a, b) = (Digest([1; 32]), Digest([2; 32]));
        assert!(keys.reserve(&[a]) && keys.reserve(&[]));
        assert!(!keys.reserve(&[a, b]) && keys.reserve(&[b]), "all or none");
        keys.wait(SpoolId(7));
        assert_eq!((keys.count(), keys.take_unblocked()), (3, vec![]));
        keys.release(&[a]);
        assert_eq!(keys.take_unblocked(), [SpoolId(7)]);
        assert!(keys.take_unblocked().is_empty() && keys.reserve(&[a]));
    }
}
