//! Rule 9, second half: expiry and overdue alerts.
//!
//! An item that expires outside a transfer leaves the queues at once: it neither starts nor holds.
//! It stays known until the caller has finished with it: the caller reads its record meanwhile and
//! may put it back. An item in transfer may still arrive: it expires when it returns to the queue.

use crate::items::{Destination, SlotState};
use crate::machine::Scheduler;
use base::{EntryId, Instant, Precedence};

impl Scheduler {
    /// The next item that has expired, each once: it then waits for [`Scheduler::finished`].
    pub fn expired(&mut self, now: Instant) -> Option<EntryId> {
        self.tick(now);
        self.expired.pop_first().map(|(_, id)| id)
    }

    /// The next item that has become overdue, each once, whatever its state.
    pub fn overdue(&mut self, now: Instant) -> Option<EntryId> {
        self.tick(now);
        self.overdue.pop_first().map(|(_, id)| id)
    }

    /// Suspends or resumes expiry, for a caller whose wall clock is not trusted. While suspended,
    /// items past their time are processed as if in time. Items already returned by
    /// [`Scheduler::expired`] stay expired; the caller puts them back. O(k log n) for the k items
    /// affected.
    pub fn let_expiry_wait(&mut self, now: Instant, waits: bool) {
        self.tick(now);
        if std::mem::replace(&mut self.expiry_waits, waits) == waits {
            return;
        }
        let concerned: Vec<EntryId> = if waits {
            std::mem::take(&mut self.expired).into_iter().map(|(_, id)| id).collect()
        } else {
            std::mem::take(&mut self.spared).into_iter().collect()
        };
        for id in concerned {
            self.take_out(id);
            let Some(slot) = self.items.get_mut(id) else { continue };
            slot.set_spared(false);
            if slot.state == SlotState::Expired {
                slot.state = SlotState::Ready; // not yet reported: it is checked again
            }
            let to = slot.destination();
            self.settle(id);
            self.refresh_to(to);
        }
        self.tick(now);
    }

    /// Items that would have expired since expiry was suspended.
    pub fn spared_count(&self) -> usize {
        self.spared.len()
    }

    /// Items that would have expired by this time, if expiry were not suspended. O(k log n) for
    /// the k items due until then.
    pub fn late_count(&self, by: Instant) -> usize {
        let due = self.timers.iter().map(|timer| timer.0).take_while(|(at, _)| *at <= by);
        let is_late = |id| {
            let late = self.items.get(id).is_some_and(|slot| slot.expires() <= by);
            late && !self.spared.contains(&id)
        };
        self.spared.len() + due.filter(|(_, id)| is_late(*id)).count()
    }

    /// Overdue items of a precedence still queued for a destination.
    pub fn overdue_count(&self, to: Destination, precedence: Precedence) -> u64 {
        let queue = self.queues(to).and_then(|queues| queues.get(precedence));
        queue.map_or(0, |queue| queue.overdue)
    }

    /// The next time at which an answer may change without an event: an item's delay ends, it
    /// expires or becomes overdue, a transfer stalls, a channel begins to count as down, or an
    /// association becomes surplus.
    pub fn deadline(&self) -> Option<Instant> {
        let items = self.timers.first().map(|timer| timer.0.0);
        let rules = self.deadlines.first().map(|(at, _)| *at);
        items.into_iter().chain(rules).min()
    }

    /// Executes everything due by `now`. Every verb with a time calls it.
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

    /// Files an item that is in no index by its current state.
    pub(crate) fn settle(&mut self, id: EntryId) {
        let now = self.now;
        let Some(slot) = self.items.get_mut(id) else { return };
        if slot.state != SlotState::InTransfer && slot.state != SlotState::Expired {
            if self.expiry_waits && slot.expires() <= now {
                slot.set_spared(true);
                self.spared.insert(id);
            }
            slot.state = slot.waiting(now);
            if slot.state == SlotState::Expired {
                self.expired.insert((slot.expires(), id));
            }
        }
        self.put_in(id);
    }
}
