//! The queues: waiting items by precedence, and their order (rule 3).

use base::steps::{Counted, step};
use base::{EntryId, Instant, Precedence, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// First in, first out: by acceptance time, then by identifier.
pub(crate) type Key = (Utc, EntryId);

/// The place of an item in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    Delayed,
    Operator,
    Expired,
    /// In transfer, with confirmed progress at this time.
    Live(Instant),
    /// In transfer, but paused (rule 8).
    Paused,
}

/// The items of one precedence for one destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrecedenceQueue {
    pub(crate) ready: Keys,
    pub(crate) delayed: Keys,
    pub(crate) operator: Keys,
    pub(crate) expired: Keys,
    live: BTreeSet<(Instant, EntryId)>,
    paused: BTreeSet<EntryId>,
    /// Octets of waiting items.
    pub(crate) bytes: u64,
    /// Overdue items, in any place.
    pub(crate) overdue: u64,
}

/// Items in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(BTreeSet<Counted<Key>>);

impl Keys {
    pub(crate) fn first(&self) -> Option<Key> {
        self.0.first().map(|key| key.0)
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The items after a key, in order.
    pub(crate) fn after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        let from = key.map_or(Bound::Unbounded, |key| Bound::Excluded(Counted(key)));
        self.0.range((from, Bound::Unbounded)).map(|key| key.0)
    }
}

impl PrecedenceQueue {
    pub(crate) fn insert(&mut self, place: Place, key: Key, size: u64) {
        self.bytes = self.bytes.saturating_add(if waits(place) { size } else { 0 });
        match place {
            Place::Ready => _ = self.ready.0.insert(Counted(key)),
            Place::Delayed => _ = self.delayed.0.insert(Counted(key)),
            Place::Operator => _ = self.operator.0.insert(Counted(key)),
            Place::Expired => _ = self.expired.0.insert(Counted(key)),
            Place::Live(progress) => _ = self.live.insert((progress, key.1)),
            Place::Paused => _ = self.paused.insert(key.1),
        }
    }

    pub(crate) fn remove(&mut self, place: Place, key: Key, size: u64) {
        self.bytes = self.bytes.saturating_sub(if waits(place) { size } else { 0 });
        match place {
            Place::Ready => _ = self.ready.0.remove(&Counted(key)),
            Place::Delayed => _ = self.delayed.0.remove(&Counted(key)),
            Place::Operator => _ = self.operator.0.remove(&Counted(key)),
            Place::Expired => _ = self.expired.0.remove(&Counted(key)),
            Place::Live(progress) => _ = self.live.remove(&(progress, key.1)),
            Place::Paused => _ = self.paused.remove(&key.1),
        }
    }

    /// The next item.
    pub(crate) fn first(&self) -> Option<EntryId> {
        self.ready.first().map(|(_, id)| id)
    }

    /// The transfer with the latest progress, paused ones excluded.
    pub(crate) fn liveliest(&self) -> Option<(Instant, EntryId)> {
        self.live.last().copied()
    }

    /// The transfers, and whether each is paused.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (EntryId, bool)> + '_ {
        let live = self.live.iter().map(|(_, id)| (*id, false));
        live.chain(self.paused.iter().map(|id| (*id, true))).inspect(|_| step())
    }

    /// The number of transfers, and how many of them are paused.
    pub(crate) fn in_transfer(&self) -> (u64, u64) {
        let paused = self.paused.len() as u64;
        (self.live.len() as u64 + paused, paused)
    }

    /// The number of waiting items, without expired ones.
    pub(crate) fn waiting(&self) -> u64 {
        self.ready.len() + self.delayed.len() + self.operator.len()
    }

    fn is_empty(&self) -> bool {
        self.waiting() + self.expired.len() == 0 && self.in_transfer().0 == 0
    }
}

fn waits(place: Place) -> bool {
    matches!(place, Place::Ready | Place::Delayed | Place::Operator)
}

/// The items of all precedences for one destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues(BTreeMap<Precedence, PrecedenceQueue>);

impl Queues {
    pub(crate) fn get(&self, precedence: Precedence) -> Option<&PrecedenceQueue> {
        self.0.get(&precedence)
    }

    pub(crate) fn at(&mut self, precedence: Precedence) -> &mut PrecedenceQueue {
        self.0.entry(precedence).or_default()
    }

    /// Drops an empty queue.
    pub(crate) fn tidy(&mut self, precedence: Precedence) {
        if self.0.get(&precedence).is_some_and(PrecedenceQueue::is_empty) {
            self.0.remove(&precedence);
        }
    }

    /// Items of a precedence that could start now.
    pub(crate) fn ready(&self, precedence: Precedence) -> u64 {
        self.0.get(&precedence).map_or(0, |queue| queue.ready.len())
    }

    /// Precedences with any item, highest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Precedence, &PrecedenceQueue)> {
        self.0.iter().rev().map(|(precedence, queue)| (*precedence, queue)).inspect(|_| step())
    }

    /// The highest item that could start now.
    pub(crate) fn first(&self) -> Option<EntryId> {
        self.iter().find_map(|(_, queue)| queue.first())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
