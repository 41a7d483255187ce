use crate::Item;
use base::{EntryId, Precedence, Utc};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The order of service: highest precedence, then first accepted, then lowest identifier.
type Key = (Reverse<Precedence>, Utc, EntryId);

/// Where in its queue an item waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    Delayed,
}

/// What waits in one queue, delayed items included, those in transfer not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// How many, by [`Precedence::number`].
    pub by_precedence: [u64; 6],
    /// Octets of content.
    pub bytes: u64,
    /// Acceptance time of the oldest.
    pub oldest: Option<Utc>,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ready: BTreeSet<Key>,
    delayed: BTreeSet<Key>,
    counts: [u64; 6],
    bytes: u64,
}

fn key<K>(item: &Item<K>) -> Key {
    (Reverse(item.precedence), item.accepted, item.id)
}

/// The first accepted of each precedence is at the front of its range.
fn oldest(set: &BTreeSet<Key>) -> Option<Utc> {
    let first = |p: Precedence| set.range((Reverse(p), Utc(0), EntryId(0))..).next();
    Precedence::ALL.into_iter().filter_map(first).map(|(_, accepted, _)| *accepted).min()
}

impl Queue {
    fn place(&mut self, place: Place) -> &mut BTreeSet<Key> {
        match place {
            Place::Ready => &mut self.ready,
            Place::Delayed => &mut self.delayed,
        }
    }

    pub(crate) fn insert<K>(&mut self, place: Place, item: &Item<K>) {
        if self.place(place).insert(key(item)) {
            if let Some(count) = self.counts.get_mut(usize::from(item.precedence.number())) {
                *count += 1;
            }
            self.bytes = self.bytes.saturating_add(item.size);
        }
    }

    pub(crate) fn remove<K>(&mut self, place: Place, item: &Item<K>) {
        if self.place(place).remove(&key(item)) {
            if let Some(count) = self.counts.get_mut(usize::from(item.precedence.number())) {
                *count -= 1;
            }
            self.bytes = self.bytes.saturating_sub(item.size);
        }
    }

    pub(crate) fn first(&self) -> Option<EntryId> {
        self.ready.first().map(|(_, _, id)| *id)
    }

    pub(crate) fn ready(&self) -> u64 {
        self.ready.len() as u64
    }

    pub(crate) fn waiting(&self) -> u64 {
        (self.ready.len() + self.delayed.len()) as u64
    }

    pub(crate) fn status(&self) -> QueueStatus {
        let oldest = [oldest(&self.ready), oldest(&self.delayed)].into_iter().flatten().min();
        QueueStatus { by_precedence: self.counts, bytes: self.bytes, oldest }
    }
}
