//! Rule 9, second half: what happens to an item when its time has come.
//!
//! An item that is not in transfer when it expires leaves the queues at once: it neither
//! starts nor holds. It stays known until the caller is done with it, who reads its record meanwhile
//! and may put it back. One in transfer may still arrive: it expires when it comes
//! back.

use crate::items::{Destination, State};
use crate::machine::Scheduler;
use base::{EntryId, Instant, Precedence};

impl Scheduler {
    /// An item that has expired, each once: it waits for [`Scheduler::finished`] from then on.
    pub fn expired(&mut self, now: Instant) -> Option<EntryId> {
        self.tick(now);
        self.expired.pop_first().map(|(_, id)| id)
    }

    /// An item that has become overdue, each once, whatever its state.
    pub fn overdue(&mut self, now: Instant) -> Option<EntryId> {
        self.tick(now);
        self.overdue.pop_first().map(|(_, id)| id)
    }

    /// How many items of a precedence for a destination are overdue and still here.
    pub fn overdue_count(&self, to: Destination, precedence: Precedence) -> u64 {
        let queue = self.queues(to).and_then(|queues| queues.get(precedence));
        queue.map_or(0, |queue| queue.overdue)
    }

    /// When to ask again though nothing happened: an item's delay ends, it expires or is overdue, a
    /// transfer stalls, a channel begins to count as down or has an association too many.
    pub fn deadline(&self) -> Option<Instant> {
        let items = self.timers.first().map(|timer| timer.0.0);
        let rules = self.deadlines.first().map(|(at, _)| *at);
        items.into_iter().chain(rules).min()
    }

    /// Does what the time brings. Every verb that takes a time does so.
    pub fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((_, id)) =
            self.timers.first().map(|timer| timer.0).filter(|t| t.0 <= self.now)
        {
            self.time_has_come(id);
        }
        while let Some((_, peer)) =
            self.deadlines.first().copied().filter(|(at, _)| *at <= self.now)
        {
            self.refresh(peer);
        }
    }

    fn time_has_come(&mut self, id: EntryId) {
        self.take_out(id);
        let now = self.now;
        let Some(slot) = self.items.get_mut(id) else { return };
        let to = slot.destination();
        if slot.alert_at() <= now && !slot.is_overdue() {
            slot.set_overdue(true);
            let (at, precedence) = (slot.alert_at(), slot.precedence);
            self.overdue.insert((at, id));
            self.queues_mut(to).at(precedence).overdue += 1;
        }
        self.settle(id);
        self.refresh_to(to);
    }

    /// Puts an item that is nowhere where it belongs now.
    pub(crate) fn settle(&mut self, id: EntryId) {
        let now = self.now;
        let Some(slot) = self.items.get_mut(id) else { return };
        if slot.state != State::InTransfer && slot.state != State::Expired {
            slot.state = slot.waiting(now);
            if slot.state == State::Expired {
                self.expired.insert((slot.expires(), id));
            }
        }
        self.put_in(id);
    }
}
