//! What waits for one bucket: the queue of one flow of a shaper.

use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{Span, Wrong};
use crate::time::{SECOND, Time};
use std::collections::VecDeque;

/// Packets that may wait in one step.
const MAX_PACKETS: usize = 100_000;
/// Their octets.
const MAX_OCTETS: usize = 64_000_000;
/// Who fetches late makes good what was due so long ago and is held up no longer for it, beside the
/// burst: what timers of a busy machine are late. What is later is lost, as the line would have lost
/// it.
const MAX_LATE: u64 = SECOND / 200;

/// What became of a packet that was offered.
#[derive(Debug)]
pub(super) enum Offer {
    /// Its tokens are there: it goes on.
    Goes(Packet),
    /// It waits; whether it is the first that does.
    Waits { first: bool },
    /// There is no room, or it would wait too long.
    Full(Packet),
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Packets.
    pub(super) limit: usize,
    /// Nanoseconds that a packet may wait.
    pub(super) delay: Option<u64>,
}

impl Room {
    /// The same, checked.
    pub(super) fn new(limit: usize, delay: Option<Span>, path: &str) -> Result<Room, Wrong> {
        if limit == 0 {
            let what =
                "0 packets may wait: for a policer, write kind = \"meter\" or \"meter-flows\"";
            return Err(Wrong::at(format!("{path}.limit"), what));
        }
        if limit > MAX_PACKETS {
            let what = format!("{limit} packets; at most {MAX_PACKETS} may wait");
            return Err(Wrong::at(format!("{path}.limit"), what));
        }
        let delay = delay.map(|span| Time::from(span.0).0);
        Ok(Room { limit, delay })
    }
}

/// What waits in a whole step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) packets: usize,
    pub(super) octets: usize,
}

impl Held {
    pub(super) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += length;
    }

    pub(super) fn take(&mut self, length: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(length);
    }

    /// Whether a packet of this length has no room any more.
    pub(super) fn is_full_for(&self, length: usize) -> bool {
        self.packets >= MAX_PACKETS || self.octets.saturating_add(length) > MAX_OCTETS
    }
}

/// What waited and goes on at once, in order, because where it waited is no longer its place. What
/// comes until all of it is fetched waits behind it.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    packets: VecDeque<Packet>,
    since: Time,
}

impl Leaving {
    pub(super) fn add(&mut self, now: Time, packets: impl IntoIterator<Item = Packet>) {
        self.since = now;
        self.packets.extend(packets);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Packet> {
        if self.since > now { None } else { self.packets.pop_front() }
    }

    pub(super) fn due(&self) -> Option<Time> {
        (!self.packets.is_empty()).then_some(self.since)
    }
}

/// A bucket and what waits for its tokens, in order.
///
/// A packet that waited takes its tokens as of the moment it was due, not of the moment it was
/// fetched: who is a little late with fetching does not lower the rate.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) bucket: Bucket,
    waiting: VecDeque<Packet>,
    octets: u64,
    /// When the first may go.
    due: Time,
}

impl Queue {
    pub(super) fn new(bucket: Bucket) -> Queue {
        Queue { bucket, waiting: VecDeque::new(), octets: 0, due: Time::ZERO }
    }

    /// Offers it a packet. At most `room.limit` wait, and none for more than `room.delay`, and none
    /// where what the step holds is full. With `behind` it waits even if its tokens are there: until
    /// it is fetched.
    pub(super) fn offer(
        &mut self,
        now: Time,
        mut packet: Packet,
        room: Room,
        held: Held,
        behind: bool,
    ) -> Offer {
        let length = packet.length() as u64;
        let first = self.waiting.is_empty();
        if first {
            self.bucket.refill(now);
        }
        let due = self.bucket.due(self.octets, length);
        if first && due <= now && !behind {
            self.bucket.pay(length);
            return Offer::Goes(packet);
        }
        let too_long = room.delay.is_some_and(|delay| due.since(now) > delay);
        let is_full = self.waiting.len() >= room.limit || held.is_full_for(packet.length());
        if is_full || too_long {
            return Offer::Full(packet);
        }
        if first {
            self.due = due;
        }
        packet.held_since = now;
        self.octets += length;
        self.waiting.push_back(packet);
        Offer::Waits { first }
    }

    /// When the first may go; `None` where none waits.
    pub(super) fn due(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.due)
    }

    /// Takes the first out; it is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        let length = packet.length() as u64;
        self.octets = self.octets.saturating_sub(length);
        self.bucket.refill(self.due.max(Time(now.0.saturating_sub(MAX_LATE))));
        self.bucket.pay(length);
        self.reckon();
        Some(packet)
    }

    /// Works out anew when the first is due, after its bucket changed.
    pub(super) fn reckon(&mut self) {
        if let Some(next) = self.waiting.front() {
            self.due = self.bucket.due(0, next.length() as u64);
        }
    }

    /// What waits, in order.
    pub(super) fn waiting(&self) -> &VecDeque<Packet> {
        &self.waiting
    }

    /// Takes out all that waits, in order; its tokens stay.
    pub(super) fn take_waiting(&mut self) -> VecDeque<Packet> {
        self.octets = 0;
        std::mem::take(&mut self.waiting)
    }
}
