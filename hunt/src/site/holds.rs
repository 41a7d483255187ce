//! What an operator holds and releases at any node, and that it does not leave meanwhile.

use super::database::LEASE;
use base::{EntryId, Instant};
use node::operator::{ActError, ActOutcome};
use std::collections::BTreeMap;
use std::time::Duration;

/// A node that had the entry before may begin to send it until its lease ends, and the new owner until it has read
/// what is held.
const GRACE: Duration = LEASE;
/// The requests of holds have even numbers, those of releases odd ones.
pub(super) const RELEASES: u64 = 1;

/// The holds that were acknowledged.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Since when each entry is held.
    held: BTreeMap<EntryId, Instant>,
    /// The request of the last release of each entry. A hold that was ordered before, and is answered after it, holds
    /// nothing.
    released: BTreeMap<EntryId, u64>,
    /// How often a hold was acknowledged.
    pub(super) count: usize,
}

impl Holds {
    /// An operator orders a release: from now on they may leave.
    pub(super) fn releases(&mut self, request: u64, entries: &[EntryId]) {
        for id in entries {
            self.held.remove(id);
            self.released.insert(*id, request);
        }
    }

    /// A node answers.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        request: u64,
        result: &Result<Vec<(EntryId, ActOutcome)>, ActError>,
    ) {
        let Ok(outcomes) = result else { return };
        if request % 2 == RELEASES {
            return;
        }
        for (id, outcome) in outcomes {
            let is_over = self.released.get(id).is_some_and(|release| request < *release);
            if *outcome == ActOutcome::Done && !is_over {
                self.count += 1;
                self.held.entry(*id).or_insert(now);
            }
        }
    }

    /// Whether this entry may not leave now.
    pub(super) fn keeps(&self, now: Instant, id: EntryId) -> bool {
        self.held.get(&id).is_some_and(|since| now > *since + GRACE)
    }
}
