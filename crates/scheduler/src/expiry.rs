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

    /// From now on nothing expires, or what has expired by now does again: for a caller who does not
    /// trust its wall clock. What would expire meanwhile goes on as if it were in time. What was told
    /// to have expired already stays so; the caller puts it back. O(k log n) in the number of those
    /// that it concerns.
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
            if slot.state == State::Expired {
                slot.state = State::Ready; // nobody was told: it is looked at anew
            }
            let to = slot.destination();
            self.settle(id);
            self.refresh_to(to);
        }
        self.tick(now);
    }

    /// How many items would have expired since expiry waits.
    pub fn spared_count(&self) -> usize {
        self.spared.len()
    }

    /// How many items would have expired by this time, if expiry did not wait. O(k log n) in the number
    /// of those with something to come until then.
    pub fn late_count(&self, by: Instant) -> usize {
        let due = self.timers.iter().map(|timer| timer.0).take_while(|(at, _)| *at <= by);
        let is_late = |id| {
            let late = self.items.get(id).is_some_and(|slot| slot.expires() <= by);
            late && !self.spared.contains(&id)
        };
        self.spared.len() + due.filter(|(_, id)| is_late(*id)).count()
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
            if self.expiry_waits && slot.expires() <= now {
                slot.set_spared(true);
                self.spared.insert(id);
            }
            slot.state = slot.waiting(now);
            if slot.state == State::Expired {
                self.expired.insert((slot.expires(), id));
            }
        }
        self.put_in(id);
    }
}
