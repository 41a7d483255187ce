//! The caller's wall clock was set: the times that came from it move against the clock of timers.
//!
//! What the rules count themselves stays: the delay after a failed transfer, stall and patience. An
//! item that has not failed was deferred by its `not_before`; one that failed waits for a retry.

use crate::items::{Destination, NEVER, Slot, State};
use crate::machine::Scheduler;
use base::{EntryId, Instant, PeerId};
use std::time::Duration;

/// How wall-clock times move on the clock of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The wall clock was set forward: they come sooner.
    Sooner(Duration),
    /// It was set back: they come later.
    Later(Duration),
}

impl Shift {
    fn of(self, at: Instant) -> Instant {
        match self {
            _ if at == NEVER => NEVER,
            Shift::Sooner(by) => at - by,
            Shift::Later(by) => at + by,
        }
    }
}

impl Slot {
    fn shift(&mut self, shift: Shift) {
        if self.failures == 0 && self.until != Instant(0) {
            self.until = shift.of(self.until);
        }
        self.set_times(shift.of(self.expires()), shift.of(self.alert_at()));
    }
}

impl Scheduler {
    /// Moves the times that came from the wall clock: the end of a deferral, expiry, the alert.
    /// [`NEVER`] stays. What was told already of an item that is overdue no longer is told again at
    /// its new time; one that was told to be expired stays so. O(n log n): the clock is rarely set.
    pub fn shift(&mut self, now: Instant, shift: Shift) {
        self.tick(now);
        let ids: Vec<EntryId> = self.items.ids().collect();
        for id in ids {
            self.shift_one(id, shift);
        }
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.refresh(peer);
        }
        self.tick(now);
    }

    fn shift_one(&mut self, id: EntryId, shift: Shift) {
        self.take_out(id);
        let now = self.now;
        let Some(slot) = self.items.get_mut(id) else { return };
        if self.expired.remove(&(slot.expires(), id)) {
            slot.state = State::Ready; // nobody was told: it is looked at anew
        }
        if self.spared.remove(&id) {
            slot.set_spared(false); // it may have more time now
        }
        let untold = self.overdue.remove(&(slot.alert_at(), id));
        slot.shift(shift);
        let (to, precedence, alert_at) = (slot.destination(), slot.precedence, slot.alert_at());
        if slot.is_overdue() && alert_at > now {
            slot.set_overdue(false);
            self.queues_mut(to).at(precedence).overdue -= 1;
        } else if untold {
            self.overdue.insert((alert_at, id));
        }
        self.settle(id);
        if let Destination::Mailbox(mailbox) = to {
            self.changed_mailboxes.insert(mailbox);
        }
    }
}
