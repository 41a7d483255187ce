//! A line: the behaviour of the link between two ports, with rate, delay, jitter and loss, in both
//! directions.
//!
//! ```text
//!  offer ─▶ waiting ─▶ medium (one transmission at a time) ─▶ in flight ─▶ Arrived
//!                        │ the last bit has been sent           (delay, jitter)
//!                        └──▶ Free, Lost
//! ```

mod clock;

use crate::topology::{Duplex, TopologyLink};
use clock::MediumClock;
use dscp::Dscp;
use router::packet::MAX_LENGTH;
use router::{Cause, PacketCounters, Rng, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Octets in flight in one direction, at most: those of the packets and 64 for each. This is 0.5 s
/// at 1 Gbit/s. A packet that exceeds it is dropped, as [`Cause::Limit`].
pub const MAX_FLIGHT: usize = 64 << 20;
const FLIGHT_EACH: usize = 64;

/// The properties of one end of a line.
#[derive(Clone, Copy, Debug)]
pub struct LineEnd {
    /// Packets that can wait for the line.
    pub queue: usize,
    /// Whether the end gets [`LineEvent::Free`] when its packet has been sent: it offers one at a
    /// time.
    pub paced: bool,
    /// Whether the end gets [`LineEvent::Began`] when a transmission from it begins.
    pub tapped: bool,
}

/// An output of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// A whole packet has arrived at an end.
    Arrived {
        /// The end, 0 or 1.
        end: usize,
        /// The packet.
        octets: Vec<u8>,
        /// The time.
        at: Time,
    },
    /// The last bit of a packet of a paced end has been sent; the end may offer the next one.
    Free {
        /// The end, 0 or 1.
        end: usize,
        /// The time.
        at: Time,
    },
    /// A packet was dropped and counted.
    Dropped {
        /// The packet.
        octets: Vec<u8>,
        /// The cause.
        cause: Cause,
    },
    /// A transmission from a tapped end begins.
    Began {
        /// The end that sends, 0 or 1.
        end: usize,
        /// A copy of the packet.
        octets: Vec<u8>,
        /// The time.
        at: Time,
    },
}

#[derive(Debug)]
struct LinePacket {
    octets: Vec<u8>,
    since: Time,
}

/// A packet whose last bit has been sent, or is being sent.
#[derive(Debug)]
struct Flying {
    item: LinePacket,
    arrives: Time,
}

/// The packets sent by one end, and their state.
#[derive(Debug)]
struct LineDirection {
    end: LineEnd,
    medium: usize,
    waiting: VecDeque<LinePacket>,
    flying: VecDeque<Flying>,
    flying_octets: usize,
    rng: Rng,
    counters: PacketCounters,
}

/// A medium: one transmission at a time. A half-duplex line has one medium for both directions.
#[derive(Debug)]
struct Medium {
    clock: MediumClock,
    /// The end that is sending, until the end of its transmission is handled.
    sending: Option<usize>,
    /// The end that sends first if packets wait at both.
    turn: usize,
}

/// A line. After each `offer` and `tick`, call `poll` until it returns `None`.
#[derive(Debug)]
pub struct LinkLine {
    directions: [LineDirection; 2],
    media: Vec<Medium>,
    overhead: usize,
    mtu: usize,
    delay: Duration,
    jitter_ns: u64,
    reorder: bool,
    /// A packet is lost if a random number of 64 bits is below this.
    loss: u128,
    events: VecDeque<LineEvent>,
}

impl LinkLine {
    /// The line of a link, with the properties of its ends. The seed determines loss and jitter.
    pub fn new(link: &TopologyLink, ends: [LineEnd; 2], seed: u64) -> LinkLine {
        let media = if link.duplex == Duplex::Half { 1 } else { 2 };
        let mut seeds = Rng::new(seed);
        let mut number = 0;
        let directions = ends.map(|end| {
            number += 1;
            LineDirection {
                end,
                medium: (number - 1).min(media - 1),
                waiting: VecDeque::new(),
                flying: VecDeque::new(),
                flying_octets: 0,
                rng: Rng::new(seeds.next_u64()),
                counters: PacketCounters::default(),
            }
        });
        let medium = |turn| Medium { clock: MediumClock::new(link.rate), sending: None, turn };
        LinkLine {
            directions,
            media: (0..media).map(medium).collect(),
            overhead: link.overhead.into(),
            mtu: link.mtu,
            delay: link.delay.0,
            jitter_ns: u64::try_from(link.jitter.0.as_nanos()).unwrap_or(u64::MAX),
            reorder: link.reorder,
            loss: (link.loss.clamp(0.0, 1.0) * (1u128 << 64) as f64) as u128,
            events: VecDeque::new(),
        }
    }

    /// Takes a packet to send from an end, 0 or 1. It waits while the medium is in use, or is
    /// dropped if `queue` packets wait.
    pub fn offer(&mut self, now: Time, end: usize, octets: Vec<u8>) {
        self.tick(now);
        let (end, mtu) = (end.min(1), self.mtu);
        let Some(direction) = self.directions.get_mut(end) else { return };
        let (dscp, length) = (dscp_of(&octets), octets.len());
        direction.counters.came(dscp, length);
        let cause = if length == 0 || length > MAX_LENGTH {
            Some(Cause::Malformed)
        } else if length > mtu {
            Some(Cause::TooLong)
        } else if direction.waiting.len() >= direction.end.queue {
            Some(Cause::Tail)
        } else {
            None
        };
        if let Some(cause) = cause {
            direction.counters.dropped(dscp, length, cause);
            return self.events.push_back(LineEvent::Dropped { octets, cause });
        }
        let medium = direction.medium;
        direction.waiting.push_back(LinePacket { octets, since: now });
        self.begin(now, medium);
        if let Some(direction) = self.directions.get_mut(end)
            && !direction.waiting.is_empty()
        {
            direction.depth(now);
        }
    }

    /// Handles everything that is due until `now`.
    pub fn tick(&mut self, now: Time) {
        while let Some((due, step)) = self.next().filter(|(due, _)| *due <= now) {
            match step {
                LineStep::Gone(medium) => self.gone(due, medium),
                LineStep::Arrival(end) => self.arrival(end),
            }
        }
    }

    /// The next output; `None` if there is none.
    pub fn poll(&mut self) -> Option<LineEvent> {
        self.events.pop_front()
    }

    /// The time at which the line needs a `tick`; `None` while it is idle.
    pub fn deadline(&self) -> Option<Time> {
        self.next().map(|(due, _)| due)
    }

    /// The counters of the packets sent from an end, 0 or 1.
    pub fn counters(&self, end: usize) -> Option<&PacketCounters> {
        self.directions.get(end).map(|direction| &direction.counters)
    }

    /// Packets inside: waiting, or in flight.
    pub fn inside(&self) -> usize {
        self.directions
            .iter()
            .map(|direction| direction.waiting.len() + direction.flying.len())
            .sum()
    }

    /// Switches [`LineEvent::Began`] of an end on or off.
    pub fn tap(&mut self, end: usize, on: bool) {
        if let Some(direction) = self.directions.get_mut(end) {
            direction.end.tapped = on;
        }
    }

    /// The next thing that is due. The end of a transmission matters only if its sender is paced or
    /// packets wait for the medium.
    fn next(&self) -> Option<(Time, LineStep)> {
        let mut next: Option<(Time, LineStep)> = None;
        let mut earlier = |due: Time, step| {
            if next.is_none_or(|(other, _)| due < other) {
                next = Some((due, step));
            }
        };
        for (number, medium) in self.media.iter().enumerate() {
            let Some(sending) = medium.sending else { continue };
            let is_paced =
                self.directions.get(sending).is_some_and(|direction| direction.end.paced);
            let wanted = |direction: &LineDirection| {
                direction.medium == number && !direction.waiting.is_empty()
            };
            if is_paced || self.directions.iter().any(wanted) {
                earlier(medium.clock.free(), LineStep::Gone(number));
            }
        }
        for (end, direction) in self.directions.iter().enumerate() {
            if let Some(flying) = direction.flying.front() {
                earlier(flying.arrives, LineStep::Arrival(end));
            }
        }
        next
    }

    fn gone(&mut self, at: Time, medium: usize) {
        let sending = self.media.get_mut(medium).and_then(|medium| medium.sending.take());
        if let Some(end) = sending
            && self.directions.get(end).is_some_and(|direction| direction.end.paced)
        {
            self.events.push_back(LineEvent::Free { end, at });
        }
        self.begin(at, medium);
    }

    /// Begins the next transmission, if the medium is free and a packet waits for it.
    fn begin(&mut self, now: Time, number: usize) {
        let Some(medium) = self.media.get_mut(number) else { return };
        if let Some(sending) = medium.sending {
            let is_paced =
                self.directions.get(sending).is_some_and(|direction| direction.end.paced);
            if is_paced || medium.clock.free() > now {
                return;
            }
        }
        let waits = |end: &usize| {
            let direction = self.directions.get(*end);
            direction.is_some_and(|direction| {
                direction.medium == number && !direction.waiting.is_empty()
            })
        };
        let Some(end) = [medium.turn, 1 - medium.turn].into_iter().find(waits) else { return };
        let Some(direction) = self.directions.get_mut(end) else { return };
        let Some(item) = direction.waiting.pop_front() else { return };
        if direction.counters.depth.now().packets > 0 {
            direction.depth(now);
        }
        if direction.end.tapped {
            let octets = item.octets.clone();
            self.events.push_back(LineEvent::Began { end, octets, at: now });
        }
        let gone = medium.clock.send(now, item.octets.len() + self.overhead);
        medium.sending = Some(end);
        medium.turn = 1 - end;
        self.fly(end, item, gone);
    }

    /// A packet whose last bit is sent at `gone`: lost, or in flight.
    fn fly(&mut self, end: usize, item: LinePacket, gone: Time) {
        let Some(direction) = self.directions.get_mut(end) else { return };
        let lost = self.loss > 0 && u128::from(direction.rng.next_u64()) < self.loss;
        let held = item.octets.len() + FLIGHT_EACH;
        let cause = if lost {
            Some(Cause::Lost)
        } else {
            (direction.flying_octets + held > MAX_FLIGHT).then_some(Cause::Limit)
        };
        if let Some(cause) = cause {
            direction.counters.dropped(dscp_of(&item.octets), item.octets.len(), cause);
            return self.events.push_back(LineEvent::Dropped { octets: item.octets, cause });
        }
        direction.flying_octets += held;
        let mut arrives = gone + self.delay;
        if self.jitter_ns > 0 {
            let jitter = direction.rng.below(self.jitter_ns.saturating_add(1));
            arrives = Time(arrives.0.saturating_add(jitter));
        }
        let last = direction.flying.back().map_or(Time::ZERO, |flying| flying.arrives);
        if arrives >= last || !self.reorder {
            direction.flying.push_back(Flying { item, arrives: arrives.max(last) });
        } else {
            let place = direction.flying.partition_point(|other| other.arrives <= arrives);
            direction.flying.insert(place, Flying { item, arrives });
        }
    }

    fn arrival(&mut self, end: usize) {
        let Some(direction) = self.directions.get_mut(end) else { return };
        let Some(Flying { item, arrives }) = direction.flying.pop_front() else { return };
        direction.flying_octets =
            direction.flying_octets.saturating_sub(item.octets.len() + FLIGHT_EACH);
        let held = arrives.since(item.since);
        direction.counters.went_after(dscp_of(&item.octets), item.octets.len(), held);
        self.events.push_back(LineEvent::Arrived {
            end: 1 - end,
            octets: item.octets,
            at: arrives,
        });
    }
}

#[derive(Clone, Copy, Debug)]
enum LineStep {
    /// The transmission of a medium ends.
    Gone(usize),
    /// The first packet in flight from an end arrives.
    Arrival(usize),
}

impl LineDirection {
    fn depth(&mut self, now: Time) {
        // The depth is counted in packets; to add up octets would cost a pass over the queue.
        self.counters.depth.set(now, self.waiting.len(), 0);
    }
}

/// The DSCP of octets that may be a packet; best effort if they are not.
pub(crate) fn dscp_of(octets: &[u8]) -> Dscp {
    let field = match octets {
        [first, second, ..] if first >> 4 == 4 => second >> 2,
        [first, second, ..] if first >> 4 == 6 => (first & 0xf) << 2 | second >> 6,
        _ => 0,
    };
    Dscp::new(field).unwrap_or_default()
}

#[cfg(test)]
mod tests;
