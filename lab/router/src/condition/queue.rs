//! The queue of a shaper: the packets that wait for the tokens of one bucket.

use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{KeyFault, Span};
use crate::time::{SECOND, Time};
use std::collections::VecDeque;

/// Packets that can wait in one step.
const MAX_PACKETS: usize = 100_000;
/// Octets that can wait in one step.
const MAX_OCTETS: usize = 64_000_000;
/// Lateness of a release, in nanoseconds, that the bucket makes good beyond its burst. It covers
/// late timers of a busy machine. Tokens for more lateness are lost, as on a line that was idle.
const MAX_LATE: u64 = SECOND / 200;

/// The disposition of a packet that a queue was offered.
#[derive(Debug)]
pub(super) enum Offer {
    /// The tokens are there: the packet passes.
    Goes(Packet),
    /// The packet waits. `first`: no other packet waits before it.
    Waits { first: bool },
    /// The queue is full, or the packet would wait too long.
    Full(Packet),
}

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShaperRoom {
    /// Packets that can wait.
    pub(super) limit: usize,
    /// The longest wait, in nanoseconds.
    pub(super) delay: Option<u64>,
}

impl ShaperRoom {
    /// Limits within the allowed ranges.
    pub(super) fn new(
        limit: usize,
        delay: Option<Span>,
        path: &str,
    ) -> Result<ShaperRoom, KeyFault> {
        if limit == 0 {
            let what =
                "0 packets may wait: for a policer, write kind = \"meter\" or \"meter-flows\"";
            return Err(KeyFault::at(format!("{path}.limit"), what));
        }
        if limit > MAX_PACKETS {
            let what = format!("{limit} packets; at most {MAX_PACKETS} may wait");
            return Err(KeyFault::at(format!("{path}.limit"), what));
        }
        let delay = delay.map(|span| Time::from(span.0).0);
        Ok(ShaperRoom { limit, delay })
    }
}

/// The packets that wait in a whole step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldPackets {
    pub(super) packets: usize,
    pub(super) octets: usize,
}

impl HeldPackets {
    pub(super) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += length;
    }

    pub(super) fn take(&mut self, length: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(length);
    }

    /// Whether a packet of this length exceeds the limits of a step.
    pub(super) fn is_full_for(&self, length: usize) -> bool {
        self.packets >= MAX_PACKETS || self.octets.saturating_add(length) > MAX_OCTETS
    }
}

/// Packets that leave a queue at once, in order, because a changed table no longer assigns them to
/// it. Later packets wait behind them until all are fetched.
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

/// A bucket and the packets that wait for its tokens, in order.
///
/// A packet that waited takes its tokens as of the time it was due, not of the time it was fetched.
/// So a late fetch does not lower the rate.
#[derive(Debug)]
pub(super) struct ShaperQueue {
    pub(super) bucket: Bucket,
    waiting: VecDeque<Packet>,
    octets: u64,
    /// Time at which the first packet is due.
    due: Time,
}

impl ShaperQueue {
    pub(super) fn new(bucket: Bucket) -> ShaperQueue {
        ShaperQueue { bucket, waiting: VecDeque::new(), octets: 0, due: Time::ZERO }
    }

    /// Offers a packet to the queue. It is refused if `room.limit` packets wait, if it would wait
    /// longer than `room.delay`, or if the limits of the step (`held`) are reached. With `behind`
    /// it waits until it is fetched, even if its tokens are there.
    pub(super) fn offer(
        &mut self,
        now: Time,
        mut packet: Packet,
        room: ShaperRoom,
        held: HeldPackets,
        behind: bool,
    ) -> Offer {
        let length = packet.length() as u64;
        let first = self.waiting.is_empty();
        if first {
            self.bucket.refill(now);
        }
        let due = self.bucket.due(self.octets, length);
        if first && due <= now && !behind {
            self.bucket.decrement(length);
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

    /// Time at which the first packet is due; `None` if the queue is empty.
    pub(super) fn due(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.due)
    }

    /// Removes the first packet, which is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        let length = packet.length() as u64;
        self.octets = self.octets.saturating_sub(length);
        self.bucket.refill(self.due.max(Time(now.0.saturating_sub(MAX_LATE))));
        self.bucket.decrement(length);
        self.reckon();
        Some(packet)
    }

    /// Computes anew when the first packet is due, after a change of the bucket.
    pub(super) fn reckon(&mut self) {
        if let Some(next) = self.waiting.front() {
            self.due = self.bucket.due(0, next.length() as u64);
        }
    }

    /// The packets that wait, in order.
    pub(super) fn waiting(&self) -> &VecDeque<Packet> {
        &self.waiting
    }

    /// Removes all packets, in order; the tokens remain.
    pub(super) fn take_waiting(&mut self) -> VecDeque<Packet> {
        self.octets = 0;
        std::mem::take(&mut self.waiting)
    }
}
