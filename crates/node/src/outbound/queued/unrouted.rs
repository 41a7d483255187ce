//! Entries for peers that are no longer configured.

use base::{EntryId, Instant, Now, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Entries for peers that are no longer configured.
#[derive(Debug, Default)]
pub(crate) struct UnroutedEntries {
    /// Peers that something may be queued for.
    pub(crate) peers: BTreeSet<PeerId>,
    /// Entries being read to be routed again.
    pub(crate) reading: BTreeSet<EntryId>,
    /// The store failed: none is read before.
    pub(crate) not_before: Option<Instant>,
    /// Entries whose routes lead back to where they came from, with the name of that peer: they wait for another
    /// configuration.
    pub(crate) led_back: BTreeMap<EntryId, String>,
    /// Peers for which nothing else is queued: they are not looked at again.
    pub(crate) looked_at: BTreeSet<PeerId>,
}

impl UnroutedEntries {
    /// No entry is read before this wait is over.
    pub(crate) fn read_later(&mut self, now: Now, wait: Duration) {
        self.not_before = Some(now.mono + wait);
    }
}
