//! The output shaper: limits the rate of the discipline below it.
//!
//! **Continuous.** It keeps the *theoretical departure time* of the next packet (as in the generic
//! cell rate algorithm, ITU-T I.371). A packet may leave from that time on, and advances it by its
//! transmission time at the rate. A late caller finds the time in the past and catches up. The
//! burst limits the lateness that can be made good; it is also what can leave at once after idle
//! time. With a burst of 0, no lateness is made good. In any time t the shaper sends at most
//! burst + rate t + one packet.
//!
//! **By interval** (Cisco's Tc). At the begin of each interval the bucket gets the tokens of the
//! whole interval. It holds the burst, or the tokens of one interval if they are more. A packet may
//! leave while the bucket has any tokens, and the tokens may become negative. Intervals begin with
//! the first packet. In any time t the shaper sends at most burst + rate t + one grant + one
//! packet.
//!
//! The arithmetic is exact, in integers: no rounding errors accumulate.

use crate::classify::FlowTables;
use crate::count::{PacketCounters, PartCounters};
use crate::discipline::{Backlog, Discarded, Discipline, Readiness};
use crate::packet::Packet;
use crate::time::{Rate, SECOND, Time};

/// A shaper of one child discipline.
#[derive(Debug)]
pub(crate) struct Shaper {
    gate: Gate,
    /// Octets counted in addition to each packet.
    overhead: usize,
    child: Box<dyn Discipline>,
    counters: PacketCounters,
}

impl Shaper {
    /// `interval` is in nanoseconds, above 0; without it, tokens arrive continuously.
    pub(crate) fn new(
        rate: Rate,
        burst: u64,
        interval: Option<u64>,
        overhead: u16,
        child: Box<dyn Discipline>,
    ) -> Shaper {
        let gate = match interval {
            None => Gate::Continuous(ContinuousGate::new(rate, burst)),
            Some(interval) => Gate::ByInterval(IntervalGate::new(rate, burst, interval)),
        };
        Shaper { gate, overhead: overhead.into(), child, counters: PacketCounters::default() }
    }
}

impl Discipline for Shaper {
    fn push(&mut self, now: Time, packet: Packet, tables: &FlowTables, discarded: &mut Discarded) {
        self.counters.came(packet.dscp(), packet.length());
        self.child.push(now, packet, tables, discarded);
        let backlog = self.child.backlog();
        self.counters.depth.set(now, backlog.packets, backlog.octets);
    }

    fn ready(&mut self, now: Time) -> Readiness {
        match self.child.ready(now) {
            Readiness::Empty => Readiness::Empty,
            Readiness::At(moment) => {
                Readiness::At(self.gate.opens(now).map_or(moment, |at| at.max(moment)))
            }
            Readiness::Now(length) => {
                self.gate.opens(now).map_or(Readiness::Now(length), Readiness::At)
            }
        }
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        if self.gate.opens(now).is_some() {
            return None;
        }
        let packet = self.child.pop(now)?;
        self.gate.sent(now, packet.length().saturating_add(self.overhead));
        self.counters.went_after(packet.dscp(), packet.length(), now.since(packet.held_since));
        let backlog = self.child.backlog();
        self.counters.depth.set(now, backlog.packets, backlog.octets);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.child.backlog()
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "shaper", counters: &self.counters });
        self.child.report(&format!("{path}/shaped"), into);
    }
}

#[derive(Debug)]
enum Gate {
    Continuous(ContinuousGate),
    ByInterval(IntervalGate),
}

impl Gate {
    /// `None` if a packet may leave now; else the time at which one may.
    fn opens(&mut self, now: Time) -> Option<Time> {
        match self {
            Gate::Continuous(continuous) => continuous.opens(now),
            Gate::ByInterval(interval) => interval.opens(now),
        }
    }

    fn sent(&mut self, now: Time, octets: usize) {
        match self {
            Gate::Continuous(continuous) => continuous.sent(now, octets),
            Gate::ByInterval(interval) => interval.tokens -= bit_nanos(octets as u64),
        }
    }
}

/// The cost of these octets: bits times the nanoseconds of a second.
fn bit_nanos(octets: u64) -> i128 {
    i128::from(octets) * 8 * i128::from(SECOND)
}

/// An exact time: whole nanoseconds, and a remainder in bits times nanoseconds, below the rate.
type Exact = (i128, u64);

/// The continuous form, with a theoretical departure time.
#[derive(Debug)]
struct ContinuousGate {
    rate: u64,
    /// How far the departure time may be before now, rounded up, with the remainder that rounding
    /// added.
    burst: Exact,
    /// The theoretical departure time of the next packet.
    next: Exact,
    /// The theoretical departure time, rounded up.
    opens: Time,
}

impl ContinuousGate {
    fn new(rate: Rate, burst: u64) -> ContinuousGate {
        let (rate, bits) = (rate.bits(), bit_nanos(burst));
        let nanos = bits.cast_unsigned().div_ceil(u128::from(rate)).cast_signed();
        let rest = u64::try_from(nanos * i128::from(rate) - bits).unwrap_or(0);
        ContinuousGate { rate, burst: (nanos, rest), next: (-nanos, rest), opens: Time::ZERO }
    }

    fn opens(&self, now: Time) -> Option<Time> {
        (now < self.opens).then_some(self.opens)
    }

    fn sent(&mut self, now: Time, octets: usize) {
        let earliest = (i128::from(now.0) - self.burst.0, self.burst.1);
        let (nanos, rest) = self.next.max(earliest);
        // A packet of 80 kB is 6.4e14, the remainder is below 1e12: far below 2^64.
        let cost = (octets as u64).saturating_mul(8 * SECOND).saturating_add(rest);
        self.next = (nanos + i128::from(cost / self.rate), cost % self.rate);
        let opens = self.next.0 + i128::from(self.next.1 > 0);
        self.opens = Time(u64::try_from(opens.max(0)).unwrap_or(u64::MAX));
    }
}

/// The form with grants at intervals.
#[derive(Debug)]
struct IntervalGate {
    /// In nanoseconds.
    interval: u64,
    /// The tokens of each interval.
    grant: i128,
    /// The size of the bucket.
    most: i128,
    tokens: i128,
    /// The begin of the next interval; the first packet begins the first one.
    next: Option<Time>,
}

impl IntervalGate {
    fn new(rate: Rate, burst: u64, interval: u64) -> IntervalGate {
        let interval = interval.max(1);
        let grant = i128::from(rate.bits()) * i128::from(interval);
        let most = bit_nanos(burst).max(grant);
        IntervalGate { interval, grant, most, tokens: most, next: None }
    }

    fn opens(&mut self, now: Time) -> Option<Time> {
        let next = *self.next.get_or_insert(Time(now.0.saturating_add(self.interval)));
        if now >= next {
            let begun = now.since(next) / self.interval + 1;
            self.tokens = self
                .tokens
                .saturating_add(self.grant.saturating_mul(i128::from(begun)))
                .min(self.most);
            let next = next.0.saturating_add(begun.saturating_mul(self.interval));
            self.next = Some(Time(next));
        }
        if self.tokens > 0 {
            return None;
        }
        // The number of further intervals, after the next one, until the tokens are no longer
        // negative.
        let more = u64::try_from(-self.tokens / self.grant).unwrap_or(u64::MAX);
        let next = self.next.unwrap_or(now).0;
        Some(Time(next.saturating_add(more.saturating_mul(self.interval))))
    }
}

#[cfg(test)]
mod tests;
