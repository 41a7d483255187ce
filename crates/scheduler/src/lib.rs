//! Which message goes next on which association: one pure machine.
//!
//! The scheduler knows identifiers, queues, precedences, sizes and times, never PDUs or sockets.
//! A *queue* is whatever the caller sends to one at a time: a channel of a peer, or a mailbox; its
//! key is the caller's type. Within a queue the highest precedence goes first, and within a
//! precedence first in, first out by acceptance time.
//!
//! An item is *waiting* (ready, or delayed until its time), or *in transfer* after [`Scheduler::next`]
//! named it. It leaves with [`Scheduler::finished`], or goes back to waiting with
//! [`Scheduler::retry`] (after growing delays) or [`Scheduler::put_back`] (at once).

mod backoff;
mod queue;

pub use backoff::{FIRST_DELAY, LONGEST_DELAY, delay};
pub use queue::QueueStatus;

use base::{EntryId, Instant, Precedence, Utc};
use queue::{Place, Queue};
use std::collections::{BTreeMap, BTreeSet};

/// What the scheduler is told of one copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<K> {
    /// Its entry in the durable queue.
    pub id: EntryId,
    /// The queue it waits in.
    pub queue: K,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of content.
    pub size: u64,
    /// When we accepted it: the order within its precedence.
    pub accepted: Utc,
    /// Not to be started earlier (deferred delivery); `Instant(0)` where there is no such time.
    pub not_before: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Delayed { until: Instant },
    InTransfer,
}

#[derive(Clone, Debug)]
struct Held<K> {
    item: Item<K>,
    state: State,
    failures: u32,
}

/// The machine. Every verb costs O(log n) in the number of items, and O(1) in the number of queues.
#[derive(Clone, Debug)]
pub struct Scheduler<K> {
    items: BTreeMap<EntryId, Held<K>>,
    queues: BTreeMap<K, Queue>,
    delayed: BTreeSet<(Instant, EntryId)>,
}

impl<K> Default for Scheduler<K> {
    fn default() -> Self {
        Scheduler { items: BTreeMap::new(), queues: BTreeMap::new(), delayed: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Scheduler<K> {
    /// An empty scheduler.
    pub fn new() -> Scheduler<K> {
        Scheduler::default()
    }

    /// Takes an item. False where its identifier is already here: nothing changes then.
    pub fn insert(&mut self, now: Instant, item: Item<K>) -> bool {
        if self.items.contains_key(&item.id) {
            return false;
        }
        let (id, until) = (item.id, item.not_before);
        self.items.insert(id, Held { item, state: State::InTransfer, failures: 0 });
        self.wait(now, id, until);
        true
    }

    /// The item that goes next from this queue, which is in transfer from now on.
    pub fn next(&mut self, now: Instant, queue: &K) -> Option<EntryId> {
        self.tick(now);
        let id = self.queues.get(queue)?.first()?;
        self.take_out(id);
        if let Some(held) = self.items.get_mut(&id) {
            held.state = State::InTransfer;
        }
        Some(id)
    }

    /// The item that [`Scheduler::next`] would name, without taking it.
    pub fn peek(&mut self, now: Instant, queue: &K) -> Option<(EntryId, Precedence)> {
        self.tick(now);
        let id = self.queues.get(queue)?.first()?;
        Some((id, self.items.get(&id)?.item.precedence))
    }

    /// The transfer succeeded, or the item was given up: it is forgotten.
    pub fn finished(&mut self, id: EntryId) -> Option<Item<K>> {
        self.remove(id)
    }

    /// The transfer failed: the item waits for 10 s, each time 1.5 times longer up to 10 min, with
    /// a jitter of a fifth that `seed` decides. Gives the time it may go again; `None` where the
    /// item is not in transfer.
    pub fn retry(&mut self, now: Instant, id: EntryId, seed: u64) -> Option<Instant> {
        let held = self.items.get_mut(&id).filter(|h| h.state == State::InTransfer)?;
        held.failures = held.failures.saturating_add(1);
        let until = now + delay(held.failures, seed ^ id.0);
        self.wait(now, id, until);
        Some(until)
    }

    /// The transfer did not happen for no fault of the item's (its association was lost): it may
    /// go again at once. False where the item is not in transfer.
    pub fn put_back(&mut self, now: Instant, id: EntryId) -> bool {
        match self.items.get(&id) {
            Some(held) if held.state == State::InTransfer => {
                self.wait(now, id, Instant(0));
                true
            }
            _ => false,
        }
    }

    /// Forgets an item in any state.
    pub fn remove(&mut self, id: EntryId) -> Option<Item<K>> {
        self.take_out(id);
        self.items.remove(&id).map(|held| held.item)
    }

    /// An item as it was inserted.
    pub fn get(&self, id: EntryId) -> Option<&Item<K>> {
        self.items.get(&id).map(|held| &held.item)
    }

    /// How often the item's transfer failed.
    pub fn failures(&self, id: EntryId) -> u32 {
        self.items.get(&id).map_or(0, |held| held.failures)
    }

    /// How many items wait in this queue, delayed ones included, those in transfer not.
    pub fn waiting(&self, queue: &K) -> u64 {
        self.queues.get(queue).map_or(0, Queue::waiting)
    }

    /// How many items of this queue could go now, by the time last handed in.
    pub fn ready(&self, queue: &K) -> u64 {
        self.queues.get(queue).map_or(0, Queue::ready)
    }

    /// What waits in this queue.
    pub fn status(&self, queue: &K) -> QueueStatus {
        self.queues.get(queue).map_or_else(QueueStatus::default, Queue::status)
    }

    /// The queues in which something waits.
    pub fn queues(&self) -> impl Iterator<Item = &K> {
        self.queues.keys()
    }

    /// How many items there are, in any state.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Makes ready what was delayed until now or earlier. [`Scheduler::next`] does so too.
    pub fn tick(&mut self, now: Instant) {
        while let Some((until, id)) = self.delayed.first().copied() {
            if until > now {
                break;
            }
            self.take_out(id);
            self.wait(now, id, Instant(0));
        }
    }

    /// When the next delayed item becomes ready.
    pub fn deadline(&self) -> Option<Instant> {
        self.delayed.first().map(|(until, _)| *until)
    }

    /// Puts an item that is in no queue into its queue.
    fn wait(&mut self, now: Instant, id: EntryId, until: Instant) {
        let Some(held) = self.items.get_mut(&id) else { return };
        let place = if until > now {
            held.state = State::Delayed { until };
            self.delayed.insert((until, id));
            Place::Delayed
        } else {
            held.state = State::Ready;
            Place::Ready
        };
        self.queues.entry(held.item.queue.clone()).or_default().insert(place, &held.item);
    }

    /// Takes an item out of its queue; one in transfer is in none.
    fn take_out(&mut self, id: EntryId) {
        let Some(held) = self.items.get(&id) else { return };
        let place = match held.state {
            State::InTransfer => return,
            State::Ready => Place::Ready,
            State::Delayed { until } => {
                self.delayed.remove(&(until, id));
                Place::Delayed
            }
        };
        if let Some(queue) = self.queues.get_mut(&held.item.queue) {
            queue.remove(place, &held.item);
            if queue.waiting() == 0 {
                self.queues.remove(&held.item.queue);
            }
        }
    }
}

#[cfg(test)]
mod tests;
