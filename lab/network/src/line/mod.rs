//! A line: the behaviour of the link between two ports, with rate, delay, jitter and loss, in both
//! directions.
//!
//! ```text
//!  offer ─▶ waiting ─▶ medium (one transmission at a time) ─▶ in flight ─▶ Arrived
//!                        │ the last bit has been sent           (delay, jitter)
//!                        └──▶ Free, Lost
//! ```

mod clock;

use crate::topology::{Duplex, Link};
use clock::Clock;
use dscp::Dscp;
use router::packet::MAX_LENGTH;
use router::{Cause, Counters, Rng, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Octets in flight in one direction, at most: those of the packets and 64 for each. This is 0.5 s
/// at 1 Gbit/s. A packet that exceeds it is dropped, as [`Cause::Limit`].
pub const MAX_FLIGHT: usize = 64 << 20;
const FLIGHT_EACH: usize = 64;

/// The properties of one end of a line.
#[derive(Clone, Copy, Debug)]
pub struct End {
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
struct Item {
    octets: Vec<u8>,
    since: Time,
}

/// A packet whose last bit has been sent, or is being sent.
#[derive(Debug)]
struct Flying {
    item: Item,
    arrives: Time,
}

/// The packets sent by one end, and their state.
#[derive(Debug)]
struct Direction {
    end: End,
    medium: usize,
    waiting: VecDeque<Item>,
    flying: VecDeque<Flying>,
    flying_octets: usize,
    rng: Rng,
    counters: Counters,
}

/// A medium: one transmission at a time. A half-duplex line has one medium for both directions.
#[derive(Debug)]
struct Medium {
    clock: Clock,
    /// The end that is sending, until the end of its transmission is handled.
    sending: Option<usize>,
    /// The end that sends first if packets wait at both.
    turn: usize,
}

/// A line. After each `offer` and `tick`, call `poll` until it returns `None`.
#[derive(Debug)]
pub struct Line {
    directions: [Direction; 2],
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

impl Line {
    /// The line of a link, with the properties of its ends. The seed determines loss and jitter.
    pub fn new(link: &Link, ends: [End; 2], seed: u64) -> Line {
        let media = if link.duplex == Duplex::Half { 1 } else { 2 };
        let mut seeds = Rng::new(seed);
        let mut number = 0;
        let directions = ends.map(|end| {
            number += 1;
            Direction {
                end,
                medium: (number - 1).min(media - 1),
                waiting: VecDeque::new(),
                flying: VecDeque::new(),
                flying_octets: 0,
                rng: Rng::new(seeds.next_u64()),
                counters: Counters::default(),
            }
        });
        let medium = |turn| Medium { clock: Clock::new(link.rate), sending: None, turn };
        Line {
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
        let Some(route) = self.directions.get_mut(end) else { return };
        let (dscp, length) = (dscp_of(&octets), octets.len());
        route.counters.came(dscp, length);
        let cause = if length == 0 || length > MAX_LENGTH {
            Some(Cause::Malformed)
        } else if length > mtu {
            Some(Cause::TooLong)
        } else if route.waiting.len() >= route.end.queue {
            Some(Cause::Tail)
        } else {
            None
        };
        if let Some(cause) = cause {
            route.counters.dropped(dscp, length, cause);
            return self.events.push_back(LineEvent::Dropped { octets, cause });
        }
        let medium = route.medium;
        route.waiting.push_back(Item { octets, since: now });
        self.begin(now, medium);
        if let Some(route) = self.directions.get_mut(end)
            && !route.waiting.is_empty()
        {
            route.depth(now);
        }
    }

    /// Handles everything that is due until `now`.
    pub fn tick(&mut self, now: Time) {
        while let Some((due, step)) = self.next().filter(|(due, _)| *due <= now) {
            match step {
                Step::Gone(medium) => self.gone(due, medium),
                Step::Arrival(end) => self.arrival(end),
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
    pub fn counters(&self, end: usize) -> Option<&Counters> {
        self.directions.get(end).map(|route| &route.counters)
    }

    /// Packets inside: waiting, or in flight.
    pub fn inside(&self) -> usize {
        self.directions.iter().map(|route| route.waiting.len() + route.flying.len()).sum()
    }

    /// Switches [`LineEvent::Began`] of an end on or off.
    pub fn tap(&mut self, end: usize, on: bool) {
        if let Some(route) = self.directions.get_mut(end) {
            route.end.tapped = on;
        }
    }

    /// The next thing that is due. The end of a transmission matters only if its sender is paced or
    /// packets wait for the medium.
    fn next(&self) -> Option<(Time, Step)> {
        let mut next: Option<(Time, Step)> = None;
        let mut earlier = |due: Time, step| {
            if next.is_none_or(|(other, _)| due < other) {
                next = Some((due, step));
            }
        };
        for (number, medium) in self.media.iter().enumerate() {
            let Some(sending) = medium.sending else { continue };
            let notified = self.directions.get(sending).is_some_and(|route| route.end.paced);
            let wanted = |route: &Direction| route.medium == number && !route.waiting.is_empty();
            if notified || self.directions.iter().any(wanted) {
                earlier(medium.clock.free(), Step::Gone(number));
            }
        }
        for (end, route) in self.directions.iter().enumerate() {
            if let Some(flying) = route.flying.front() {
                earlier(flying.arrives, Step::Arrival(end));
            }
        }
        next
    }

    fn gone(&mut self, at: Time, medium: usize) {
        let sending = self.media.get_mut(medium).and_then(|medium| medium.sending.take());
        if let Some(end) = sending
            && self.directions.get(end).is_some_and(|route| route.end.paced)
        {
            self.events.push_back(LineEvent::Free { end, at });
        }
        self.begin(at, medium);
    }

    /// Begins the next transmission, if the medium is free and a packet waits for it.
    fn begin(&mut self, now: Time, number: usize) {
        let Some(medium) = self.media.get_mut(number) else { return };
        if let Some(sending) = medium.sending {
            let notified = self.directions.get(sending).is_some_and(|route| route.end.paced);
            if notified || medium.clock.free() > now {
                return;
            }
        }
        let waits = |end: &usize| {
            let route = self.directions.get(*end);
            route.is_some_and(|route| route.medium == number && !route.waiting.is_empty())
        };
        let Some(end) = [medium.turn, 1 - medium.turn].into_iter().find(waits) else { return };
        let Some(route) = self.directions.get_mut(end) else { return };
        let Some(item) = route.waiting.pop_front() else { return };
        if route.counters.depth.now().packets > 0 {
            route.depth(now);
        }
        if route.end.tapped {
            let octets = item.octets.clone();
            self.events.push_back(LineEvent::Began { end, octets, at: now });
        }
        let gone = medium.clock.send(now, item.octets.len() + self.overhead);
        medium.sending = Some(end);
        medium.turn = 1 - end;
        self.fly(end, item, gone);
    }

    /// A packet whose last bit is sent at `gone`: lost, or in flight.
    fn fly(&mut self, end: usize, item: Item, gone: Time) {
        let Some(route) = self.directions.get_mut(end) else { return };
        let lost = self.loss > 0 && u128::from(route.rng.next_u64()) < self.loss;
        let held = item.octets.len() + FLIGHT_EACH;
        let cause = if lost {
            Some(Cause::Lost)
        } else {
            (route.flying_octets + held > MAX_FLIGHT).then_some(Cause::Limit)
        };
        if let Some(cause) = cause {
            route.counters.dropped(dscp_of(&item.octets), item.octets.len(), cause);
            return self.events.push_back(LineEvent::Dropped { octets: item.octets, cause });
        }
        route.flying_octets += held;
        let mut arrives = gone + self.delay;
        if self.jitter_ns > 0 {
            let jitter = route.rng.below(self.jitter_ns.saturating_add(1));
            arrives = Time(arrives.0.saturating_add(jitter));
        }
        let last = route.flying.back().map_or(Time::ZERO, |flying| flying.arrives);
        if arrives >= last || !self.reorder {
            route.flying.push_back(Flying { item, arrives: arrives.max(last) });
        } else {
            let place = route.flying.partition_point(|other| other.arrives <= arrives);
            route.flying.insert(place, Flying { item, arrives });
        }
    }

    fn arrival(&mut self, end: usize) {
        let Some(route) = self.directions.get_mut(end) else { return };
        let Some(Flying { item, arrives }) = route.flying.pop_front() else { return };
        route.flying_octets = route.flying_octets.saturating_sub(item.octets.len() + FLIGHT_EACH);
        let held = arrives.since(item.since);
        route.counters.went_after(dscp_of(&item.octets), item.octets.len(), held);
        self.events.push_back(LineEvent::Arrived {
            end: 1 - end,
            octets: item.octets,
            at: arrives,
        });
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The transmission of a medium ends.
    Gone(usize),
    /// The first packet in flight from an end arrives.
    Arrival(usize),
}

impl Direction {
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
