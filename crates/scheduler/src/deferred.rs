//! Entries that are deferred, by the message they are copies of: for its cancelling.

use crate::Shift;
use base::{EntryId, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Deferred entries.
#[derive(Debug, Default)]
pub struct Deferred {
    by_message: BTreeMap<String, BTreeSet<EntryId>>,
    by_time: BTreeSet<(Instant, EntryId)>,
    messages: BTreeMap<EntryId, (Instant, String)>,
    /// Messages of which some may have left before this process was started.
    left: BTreeSet<String>,
}

impl Deferred {
    /// An entry of this message is deferred until then.
    pub fn add(&mut self, id: EntryId, until: Instant, message: &str) {
        self.remove(id);
        self.by_message.entry(message.to_owned()).or_default().insert(id);
        self.by_time.insert((until, id));
        self.messages.insert(id, (until, message.to_owned()));
    }

    /// Some of its message may have left already: it is deferred, and its message is not cancelled any more, whatever
    /// entries others make of it.
    pub fn keep(&mut self, id: EntryId) {
        if let Some((_, message)) = self.messages.get(&id) {
            self.left.insert(message.clone());
        }
    }

    /// Whether this entry is deferred.
    pub fn has(&self, id: EntryId) -> bool {
        self.messages.contains_key(&id)
    }

    /// Until when it waits.
    pub fn until(&self, id: EntryId) -> Option<Instant> {
        self.messages.get(&id).map(|(until, _)| *until)
    }

    /// An entry is gone.
    pub fn remove(&mut self, id: EntryId) {
        let Some((until, message)) = self.messages.remove(&id) else { return };
        self.by_time.remove(&(until, id));
        if let Some(entries) = self.by_message.get_mut(&message) {
            entries.remove(&id);
            if entries.is_empty() {
                self.by_message.remove(&message);
            }
        }
    }

    /// Forgets those whose time has come.
    pub fn pass(&mut self, now: Instant) {
        while let Some((_, id)) = self.by_time.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(id);
        }
    }

    /// The wall clock was set. What had its time has it still: some of the message may be delivered.
    pub fn shift(&mut self, now: Instant, shift: Shift) {
        self.pass(now);
        self.by_time = self.by_time.iter().map(|(until, id)| (shift.apply(*until), *id)).collect();
        for (until, _) in self.messages.values_mut() {
            *until = shift.apply(*until);
        }
        self.pass(now);
    }

    /// The deferred entries of a message that may be cancelled.
    pub fn entries(&self, message: &str) -> Vec<EntryId> {
        let entries = self.by_message.get(message).filter(|_| !self.left.contains(message));
        entries.into_iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn entries_are_known_until_their_time() {
        let mut deferred = Deferred::default();
        for (id, until) in [(1, 10), (2, 10), (3, 30)] {
            deferred.add(EntryId(id), Instant(until), "a");
        }
        deferred.add(EntryId(4), Instant(20), "b");
        deferred.remove(EntryId(2));
        assert_eq!(deferred.entries("a"), [EntryId(1), EntryId(3)]);
        deferred.pass(Instant(10));
        assert_eq!(deferred.entries("a"), [EntryId(3)]);
        deferred.shift(Instant(11), Shift::Later(Duration::from_micros(5)));
        assert_eq!(deferred.until(EntryId(4)), Some(Instant(25)));
        deferred.shift(Instant(12), Shift::Sooner(Duration::from_micros(5)));
        deferred.pass(Instant(29));
        assert_eq!((deferred.entries("b"), deferred.entries("a").len()), (Vec::new(), 1));
        deferred.pass(Instant(30));
        assert!(deferred.by_message.is_empty() && deferred.messages.is_empty());
    }

    #[test]
    fn what_may_have_left_is_deferred_and_not_cancelled() {
        let mut deferred = Deferred::default();
        deferred.add(EntryId(1), Instant(10), "a");
        deferred.keep(EntryId(1));
        assert_eq!((deferred.entries("a"), deferred.has(EntryId(1))), (Vec::new(), true));
        // An operator reroutes one of its entries.
        deferred.add(EntryId(2), Instant(10), "a");
        assert_eq!(deferred.entries("a"), []);
        deferred.pass(Instant(10));
        assert!(deferred.by_message.is_empty() && deferred.messages.is_empty());
    }
}
