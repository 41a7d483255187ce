//! Keys whose commit is under way.

use engine::journal::{Digest, SpoolId};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct KeyReservations {
    pub(crate) committing: BTreeSet<Digest>,
    /// Arrivals that wait for keys of others, and whether some were freed.
    pub(crate) blocked: Vec<SpoolId>,
    pub(crate) unblock: bool,
}

impl KeyReservations {
    /// Others may use these keys.
    pub(crate) fn release_keys(&mut self, keys: &[Digest]) {
        for key in keys {
            self.committing.remove(key);
        }
        self.unblock = !self.blocked.is_empty();
    }
}
