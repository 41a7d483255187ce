//! What is under way for copies that have expired or are late.

use base::{EntryId, Instant};
use std::collections::BTreeSet;

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Late {
    pub(crate) reading: usize,
    /// Expired ones whose record could not be read.
    pub(crate) again: BTreeSet<(Instant, EntryId)>,
}
