//! The items: one dense slot of 64 octets each, found by identifier.
//!
//! A million items may wait, so a slot holds only the fields every item has; the fields of the few
//! transfers are kept apart. A freed slot is filled with the last one: memory follows the number
//! of items.

use base::steps::Counted;
use base::{BodyId, EntryId, Instant, PeerId, Precedence, Utc};
use std::collections::BTreeMap;

/// A time that never comes.
pub const NEVER: Instant = Instant(u64::MAX);

/// The destination of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// A peer, on any channel that may carry it.
    Peer(PeerId),
    /// A mailbox, by a number that the caller assigns.
    Mailbox(u32),
}

/// One copy of a message, as the caller describes it to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its entry in the durable queue.
    pub id: EntryId,
    /// The peer or mailbox that it goes to.
    pub destination: Destination,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of content.
    pub size: u64,
    /// When the MTA accepted it: the order within its precedence.
    pub accepted: Utc,
    /// Earliest start: end of deferral, later the end of its last backoff; `Instant(0)` for none.
    pub not_before: Instant,
    /// Expires at this time (rule 9); [`NEVER`] for none.
    pub expires: Instant,
    /// Overdue from this time on; [`NEVER`] for none.
    pub alert_at: Instant,
    /// Its content, for the caller's use.
    pub body: Option<BodyId>,
}

/// The state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// It may start now, considering the item alone.
    Ready,
    /// Waits for its deferral or its own backoff to end.
    Delayed,
    /// Held until an operator releases it.
    Operator,
    /// In transfer.
    InTransfer,
    /// Expired, until the caller has finished with it.
    Expired,
}

/// An item, packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) id: EntryId,
    pub(crate) accepted: Utc,
    pub(crate) size: u64,
    /// End of the delay, past or future.
    pub(crate) until: Instant,
    expires: Instant,
    alert_at: Instant,
    body: u64,
    to: u32,
    pub(crate) precedence: Precedence,
    pub(crate) state: SlotState,
    pub(crate) failures: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Slot>() == 64, "what a million of them take is promised");

/// The destination is a mailbox.
const MAILBOX: u8 = 1;
/// It has a content.
const BODY: u8 = 1 << 1;
/// An operator holds it, or will once its transfer ends.
const OPERATOR: u8 = 1 << 2;
/// Its hold was returned by `Scheduler::newly_held`.
const NOTIFIED: u8 = 1 << 3;
/// It is overdue.
const OVERDUE: u8 = 1 << 4;
/// It would have expired, but expiry is suspended.
const SPARED: u8 = 1 << 5;

impl Slot {
    pub(crate) fn new(item: &Item) -> Slot {
        let (to, mailbox) = match item.destination {
            Destination::Peer(peer) => (peer.0, 0),
            Destination::Mailbox(number) => (number, MAILBOX),
        };
        Slot {
            id: item.id,
            accepted: item.accepted,
            size: item.size,
            until: item.not_before,
            expires: item.expires,
            alert_at: item.alert_at,
            body: item.body.map_or(0, |body| body.0),
            to,
            precedence: item.precedence,
            state: SlotState::Ready,
            failures: 0,
            flags: mailbox | if item.body.is_some() { BODY } else { 0 },
        }
    }

    pub(crate) fn item(&self) -> Item {
        Item {
            id: self.id,
            destination: self.destination(),
            precedence: self.precedence,
            size: self.size,
            accepted: self.accepted,
            not_before: self.until,
            expires: self.expires,
            alert_at: self.alert_at,
            body: self.has(BODY).then_some(BodyId(self.body)),
        }
    }

    pub(crate) fn destination(&self) -> Destination {
        if self.has(MAILBOX) {
            Destination::Mailbox(self.to)
        } else {
            Destination::Peer(PeerId(self.to))
        }
    }

    pub(crate) fn key(&self) -> (Utc, EntryId) {
        (self.accepted, self.id)
    }

    /// The current state of an item that is not in transfer.
    pub(crate) fn waiting(&self, now: Instant) -> SlotState {
        if self.expires <= now && !self.has(SPARED) {
            SlotState::Expired
        } else if self.has(OPERATOR) {
            SlotState::Operator
        } else if self.until > now {
            SlotState::Delayed
        } else {
            SlotState::Ready
        }
    }

    /// The next time at which its state changes by itself.
    pub(crate) fn timer(&self) -> Option<Instant> {
        let delay = if self.state == SlotState::Delayed { self.until } else { NEVER };
        let waits =
            !matches!(self.state, SlotState::InTransfer | SlotState::Expired) && !self.has(SPARED);
        let expires = if waits { self.expires } else { NEVER };
        let alert = if self.has(OVERDUE) { NEVER } else { self.alert_at };
        Some(delay.min(expires).min(alert)).filter(|at| *at != NEVER)
    }

    pub(crate) fn expires(&self) -> Instant {
        self.expires
    }

    pub(crate) fn alert_at(&self) -> Instant {
        self.alert_at
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }

    pub(crate) fn is_operators(&self) -> bool {
        self.has(OPERATOR)
    }

    pub(crate) fn set_operators(&mut self, on: bool) {
        self.set(OPERATOR, on);
    }

    pub(crate) fn is_notified(&self) -> bool {
        self.has(NOTIFIED)
    }

    pub(crate) fn set_notified(&mut self) {
        self.set(NOTIFIED, true);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.has(OVERDUE)
    }

    pub(crate) fn set_overdue(&mut self, on: bool) {
        self.set(OVERDUE, on);
    }

    pub(crate) fn set_spared(&mut self, on: bool) {
        self.set(SPARED, on);
    }

    pub(crate) fn set_times(&mut self, expires: Instant, alert_at: Instant) {
        (self.expires, self.alert_at) = (expires, alert_at);
    }
}

/// Slots per page.
const PAGE: usize = 1024;

/// All items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    /// The place of each item in the pages.
    index: BTreeMap<Counted<EntryId>, u32>,
    /// All full except the last.
    pages: Vec<Vec<Slot>>,
}

impl Items {
    fn at(&self, id: EntryId) -> Option<(usize, usize)> {
        let at = usize::try_from(*self.index.get(&Counted(id))?).ok()?;
        Some((at / PAGE, at % PAGE))
    }

    pub(crate) fn get(&self, id: EntryId) -> Option<&Slot> {
        let (page, place) = self.at(id)?;
        self.pages.get(page)?.get(place)
    }

    pub(crate) fn get_mut(&mut self, id: EntryId) -> Option<&mut Slot> {
        let (page, place) = self.at(id)?;
        self.pages.get_mut(page)?.get_mut(place)
    }

    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.index.contains_key(&Counted(id))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = EntryId> + '_ {
        self.index.keys().map(|id| id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Adds an item with a new identifier. False if there is no room: 2^32 items.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let Ok(at) = u32::try_from(self.index.len()) else { return false };
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        if let Some(page) = self.pages.last_mut() {
            page.push(slot);
        }
        self.index.insert(Counted(slot.id), at);
        true
    }

    pub(crate) fn remove(&mut self, id: EntryId) -> Option<Slot> {
        let at = self.index.remove(&Counted(id))?;
        let last = self.pages.last_mut().and_then(Vec::pop)?;
        if self.pages.last().is_some_and(Vec::is_empty) {
            self.pages.pop();
        }
        if last.id == id {
            return Some(last);
        }
        // The last slot fills the gap.
        if let Some(moved) = self.index.get_mut(&Counted(last.id)) {
            *moved = at;
        }
        let at = usize::try_from(at).ok()?;
        let gap = self.pages.get_mut(at / PAGE)?.get_mut(at % PAGE)?;
        Some(std::mem::replace(gap, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_stay_dense_and_found() {
        let mut items = Items::default();
        let item = |id| Item {
            id: EntryId(id),
            destination: Destination::Mailbox(3),
            precedence: Precedence::Flash,
            size: id,
            accepted: Utc(id),
            not_before: Instant(0),
            expires: NEVER,
            alert_at: NEVER,
            body: Some(BodyId(id)),
        };
        for id in 0..3_000 {
            assert!(items.insert(Slot::new(&item(id))));
        }
        for id in (0..3_000).filter(|id| id % 3 != 0) {
            assert_eq!(items.remove(EntryId(id)).map(|slot| slot.item()), Some(item(id)));
            assert!(items.remove(EntryId(id)).is_none());
        }
        assert_eq!((items.len(), items.pages.len()), (1_000, 1));
        for id in (0..3_000).filter(|id| id % 3 == 0) {
            assert_eq!(items.get(EntryId(id)).map(Slot::item), Some(item(id)));
        }
    }
}
