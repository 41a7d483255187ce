//! Events of messages whose submission is not yet answered, so that their identifier is unknown.

use crate::burst::event::MessageEvent;
use std::collections::{BTreeMap, VecDeque};

/// Bound of the events kept.
pub(super) const MAX: usize = 65_536;

/// Events by identifier, so that an acceptance finds its own directly.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// In order of arrival.
    events: BTreeMap<u64, MessageEvent>,
    /// Their numbers by identifier.
    of: BTreeMap<String, VecDeque<u64>>,
    next: u64,
}

impl Early {
    /// Keeps one; `true` if the oldest was dropped for it.
    pub(super) fn put(&mut self, event: MessageEvent) -> bool {
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

    /// Takes those of an identifier, in order of arrival.
    pub(super) fn take(&mut self, identifier: &str) -> Vec<MessageEvent> {
        let numbers = self.of.remove(identifier).unwrap_or_default();
        numbers.into_iter().filter_map(|number| self.events.remove(&number)).collect()
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.of.clear();
    }

    /// The number of events that are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(self.events.len(), self.of.values().map(VecDeque::len).sum::<usize>());
        self.events.len()
    }
}
