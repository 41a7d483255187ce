//! What waits for one bucket: the queue of one flow of a shaper.

use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{Span, Wrong};
use crate::time::Time;
use std::collections::VecDeque;

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
        let delay = delay.map(|span| Time::from(span.0).0);
        Ok(Room { limit, delay })
    }
}

/// A bucket and what waits for its tokens, in order.
///
/// A packet that waited takes its tokens as of the moment it was due, not of the moment it was
/// fetched: who is late with fetching does not lower the rate.
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

    /// Offers it a packet. At most `room.limit` wait, and none for more than `room.delay`. With
    /// `behind` it waits even if its tokens are there: until it is fetched.
    pub(super) fn offer(
        &mut self,
        now: Time,
        mut packet: Packet,
        room: Room,
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
        if self.waiting.len() >= room.limit || too_long {
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
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        let length = packet.length() as u64;
        self.octets = self.octets.saturating_sub(length);
        self.bucket.refill(self.due);
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

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Their octets.
    pub(super) fn octets(&self) -> u64 {
        self.octets
    }

    /// All that waits, in order.
    pub(super) fn into_waiting(self) -> VecDeque<Packet> {
        self.waiting
    }
}
