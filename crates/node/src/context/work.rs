//! Which associations to go on with.

use crate::context::marks::Due;
use base::AssociationId;
use std::collections::BTreeSet;

/// Associations that have requests to hand to their stacks, and when each is due.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) dirty: BTreeSet<AssociationId>,
    pub(crate) deadlines: Due<AssociationId>,
}

impl Work {
    /// Marks an association as having requests to hand to its stack.
    pub(crate) fn touch(&mut self, id: AssociationId) {
        self.dirty.insert(id);
    }
}
