//! A step of the caller's wall clock: times derived from it move relative to the timers' clock.
//!
//! Times that the rules count themselves do not move: the delay after a failed transfer, stall and
//! patience. `not_before` of an item without failures is a deferral; of one with failures, a
//! retry.

use crate::items::{Destination, NEVER, Slot, SlotState};
use crate::machine::Scheduler;
use base::{EntryId, Instant, PeerId};
use std::time::Duration;

/// The direction and size of the shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The wall clock was set forward: times come sooner.
    Sooner(Duration),
    /// The wall clock was set back: times come later.
    Later(Duration),
}

impl Shift {
    /// This time after the shift.
    pub fn apply(self, at: Instant) -> Instant {
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
            self.until = shift.apply(self.until);
        }
        self.set_times(shift.apply(self.expires()), shift.apply(self.alert_at()));
    }
}

impl Scheduler {
    /// Moves the times derived from the wall clock: end of deferral, expiry, alert. [`NEVER`]
    /// stays. An item that is no longer overdue is reported again at its new time; one already
    /// returned as expired stays expired. O(n log n): the clock is rarely set.
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
            slot.state = SlotState::Ready; // not yet reported: it is checked again
        }
        if self.spared.remove(&id) {
            slot.set_spared(false); // it may have more time now
        }
        let not_notified = self.overdue.remove(&(slot.alert_at(), id));
        slot.shift(shift);
        let (to, precedence, alert_at) = (slot.destination(), slot.precedence, slot.alert_at());
        if slot.is_overdue() && alert_at > now {
            slot.set_overdue(false);
            self.queues_mut(to).at(precedence).overdue -= 1;
        } else if not_notified {
            self.overdue.insert((alert_at, id));
        }
        self.settle(id);
        if let Destination::Mailbox(mailbox) = to {
            self.changed_mailboxes.insert(mailbox);
        }
    }
}
