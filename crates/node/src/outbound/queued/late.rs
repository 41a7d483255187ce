//! Copies that have expired or are late, and whose records are being read.

use base::{EntryId, Instant};
use std::collections::BTreeSet;

/// Copies that have expired or are late.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Those that were late when they were recovered.
    pub(crate) at_start: u64,
    /// Those that were late for long when they came from another node: that one has logged it.
    pub(crate) logged: BTreeSet<EntryId>,
    pub(crate) reading: usize,
    /// Expired ones whose record could not be read.
    pub(crate) again: BTreeSet<(Instant, EntryId)>,
}
