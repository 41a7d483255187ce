//! What waits, precedence by precedence, and its order (rule 3).

use base::{EntryId, Instant, Precedence, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// First in, first out: by acceptance time, then by identifier.
type Key = (Utc, EntryId);

/// Where an item waits, or that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It could go now, by what is known of it alone.
    Ready,
    /// Until a deferred delivery time, or the end of its own backoff.
    Delayed,
    /// Until the operator releases it.
    Operator,
    /// In transfer, with confirmed progress at this time.
    InTransfer(Instant),
}

/// What waits in one queue, delayed and held items included, those in transfer not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// How many, by [`Precedence::number`].
    pub by_precedence: [u64; 6],
    /// Octets of content.
    pub bytes: u64,
    /// Acceptance time of the oldest.
    pub oldest: Option<Utc>,
    /// How many of them are held by rule 1 or by an operator, by [`Precedence::number`].
    pub held: [u64; 6],
    /// The held one that was accepted first.
    pub oldest_held: Option<EntryId>,
}

/// The items of one precedence for one destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    ready: BTreeSet<Key>,
    delayed: BTreeSet<Key>,
    operator: BTreeSet<Key>,
    transfers: BTreeSet<(Instant, EntryId)>,
    /// Octets of what waits.
    bytes: u64,
}

impl Queue {
    fn waiting_place(&mut self, place: Place) -> Option<&mut BTreeSet<Key>> {
        match place {
            Place::Ready => Some(&mut self.ready),
            Place::Delayed => Some(&mut self.delayed),
            Place::Operator => Some(&mut self.operator),
            Place::InTransfer(_) => None,
        }
    }

    pub(crate) fn insert(&mut self, place: Place, accepted: Utc, id: EntryId, size: u64) {
        match (place, self.waiting_place(place)) {
            (_, Some(set)) => {
                set.insert((accepted, id));
                self.bytes = self.bytes.saturating_add(size);
            }
            (Place::InTransfer(progress), _) => {
                self.transfers.insert((progress, id));
            }
            (_, None) => {}
        }
    }

    pub(crate) fn remove(&mut self, place: Place, accepted: Utc, id: EntryId, size: u64) {
        match (place, self.waiting_place(place)) {
            (_, Some(set)) => {
                set.remove(&(accepted, id));
                self.bytes = self.bytes.saturating_sub(size);
            }
            (Place::InTransfer(progress), _) => {
                self.transfers.remove(&(progress, id));
            }
            (_, None) => {}
        }
    }

    /// The one that goes next.
    pub(crate) fn first(&self) -> Option<EntryId> {
        self.ready.first().map(|(_, id)| *id)
    }

    /// The transfer that made progress last.
    pub(crate) fn liveliest(&self) -> Option<(Instant, EntryId)> {
        self.transfers.last().copied()
    }

    /// How many could go now.
    pub(crate) fn ready(&self) -> u64 {
        self.ready.len() as u64
    }

    fn waiting(&self) -> u64 {
        (self.ready.len() + self.delayed.len() + self.operator.len()) as u64
    }

    fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.transfers.is_empty()
    }

    /// Adds this queue to a status; `held` says whether rule 1 holds what is ready.
    fn report(&self, to: &mut QueueStatus, precedence: Precedence, held: bool) {
        let at = usize::from(precedence.number());
        if let Some(count) = to.by_precedence.get_mut(at) {
            *count += self.waiting();
        }
        to.bytes = to.bytes.saturating_add(self.bytes);
        let fronts = [self.ready.first(), self.delayed.first(), self.operator.first()];
        let oldest = fronts.into_iter().flatten().map(|(accepted, _)| *accepted);
        to.oldest = to.oldest.into_iter().chain(oldest).min();
        if let Some(count) = to.held.get_mut(at) {
            *count += self.operator.len() as u64 + if held { self.ready() } else { 0 };
        }
    }

    /// The first accepted of what is held.
    fn oldest_held(&self, held: bool) -> Option<Key> {
        let by_rule = self.ready.first().filter(|_| held);
        by_rule.into_iter().chain(self.operator.first()).min().copied()
    }
}

/// What waits in these queues, each with whether rule 1 holds what is ready in it.
pub(crate) fn status<'q>(
    queues: impl Iterator<Item = (Precedence, &'q Queue, bool)>,
) -> QueueStatus {
    let mut status = QueueStatus::default();
    let mut oldest_held = None;
    for (precedence, queue, held) in queues {
        queue.report(&mut status, precedence, held);
        oldest_held = oldest_held.into_iter().chain(queue.oldest_held(held)).min();
    }
    status.oldest_held = oldest_held.map(|(_, id)| id);
    status
}

/// The items of all precedences for one destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues(BTreeMap<Precedence, Queue>);

impl Queues {
    pub(crate) fn get(&self, precedence: Precedence) -> Option<&Queue> {
        self.0.get(&precedence)
    }

    pub(crate) fn at(&mut self, precedence: Precedence) -> &mut Queue {
        self.0.entry(precedence).or_default()
    }

    /// Drops what an item left empty.
    pub(crate) fn tidy(&mut self, precedence: Precedence) {
        if self.0.get(&precedence).is_some_and(Queue::is_empty) {
            self.0.remove(&precedence);
        }
    }

    /// How many of a precedence could go now.
    pub(crate) fn ready(&self, precedence: Precedence) -> u64 {
        self.0.get(&precedence).map_or(0, Queue::ready)
    }

    /// Precedences of which there is something, highest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Precedence, &Queue)> {
        self.0.iter().rev().map(|(precedence, queue)| (*precedence, queue))
    }

    /// The highest that could go now.
    pub(crate) fn first(&self) -> Option<EntryId> {
        self.iter().find_map(|(_, queue)| queue.first())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
