//! Events of messages whose identifier the MTA has not told us yet.

use crate::burst::event::Event;
use std::collections::{BTreeMap, VecDeque};

/// Most events kept.
pub(super) const MAX: usize = 65_536;

/// By identifier, so that an acceptance takes its own without a look at the others.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// In the order they came.
    events: BTreeMap<u64, Event>,
    /// Which of them are of an identifier.
    of: BTreeMap<String, VecDeque<u64>>,
    next: u64,
}

impl Early {
    /// Keeps one; whether the oldest had to go for it.
    pub(super) fn put(&mut self, event: Event) -> bool {
        let is_full = self.events.len() >= MAX;
        if is_full && let Some((_, oldest)) = self.events.pop_first() {
            // The oldest of all is the oldest of its identifier.
            if let Some(numbers) = self.of.get_mut(&oldest.mts_identifier) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.of.remove(&oldest.mts_identifier);
                }
            }
        }
        self.of.entry(event.mts_identifier.clone()).or_default().push_back(self.next);
        self.events.insert(self.next, event);
        self.next += 1;
        is_full
    }

    /// Takes those of an identifier, in the order they came.
    pub(super) fn take(&mut self, identifier: &str) -> Vec<Event> {
        let numbers = self.of.remove(identifier).unwrap_or_default();
        numbers.into_iter().filter_map(|number| self.events.remove(&number)).collect()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.of.clear();
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(self.events.len(), self.of.values().map(VecDeque::len).sum::<usize>());
        self.events.len()
    }
}
