//! The output shaper: lets what is below it send at a rate.
//!
//! **Continuous.** It keeps the *theoretical departure time* of the next packet (the form of the
//! generic cell rate algorithm, ITU-T I.371): a packet may go from that time on, and moves it by the
//! time it takes at the rate. A caller that comes late finds the time in the past and catches up; what
//! it may catch up is bounded by the burst, which is also what may go at once after idleness. With a
//! burst of 0 every lateness is lost. In any time t it sends at most burst + rate t + one packet.
//!
//! **By interval** (Cisco's Tc). The bucket is given what the rate makes in an interval at each
//! interval's begin, and holds the burst, or that grant where it is more. A packet may go while
//! there is anything in the bucket and may leave a debt. Intervals count from the first packet. In
//! any time t it sends at most burst + rate t + one grant + one packet.
//!
//! All arithmetic is exact, in integers: nothing is lost to rounding, however long it runs.

use crate::classify::Tables;
use crate::count::{Counters, Part};
use crate::discipline::{Backlog, Discarded, Discipline, Ready};
use crate::packet::Packet;
use crate::time::{Rate, SECOND, Time};

/// A shaper of one child.
#[derive(Debug)]
pub(crate) struct Shaper {
    gate: Gate,
    /// Octets counted for each packet beside its own.
    overhead: usize,
    child: Box<dyn Discipline>,
    counters: Counters,
}

impl Shaper {
    /// Without an interval (in nanoseconds, above 0) tokens come continuously.
    pub(crate) fn new(
        rate: Rate,
        burst: u64,
        interval: Option<u64>,
        overhead: u16,
        child: Box<dyn Discipline>,
    ) -> Shaper {
        let gate = match interval {
            None => Gate::Paced(Paced::new(rate, burst)),
            Some(interval) => Gate::Lumps(Lumps::new(rate, burst, interval)),
        };
        Shaper { gate, overhead: overhead.into(), child, counters: Counters::default() }
    }
}

impl Discipline for Shaper {
    fn push(&mut self, now: Time, packet: Packet, tables: &Tables, discarded: &mut Discarded) {
        self.counters.came(packet.dscp(), packet.length());
        self.child.push(now, packet, tables, discarded);
        let backlog = self.child.backlog();
        self.counters.depth.set(now, backlog.packets, backlog.octets);
    }

    fn ready(&mut self, now: Time) -> Ready {
        match self.child.ready(now) {
            Ready::Empty => Ready::Empty,
            Ready::At(moment) => {
                Ready::At(self.gate.opens(now).map_or(moment, |at| at.max(moment)))
            }
            Ready::Now(length) => self.gate.opens(now).map_or(Ready::Now(length), Ready::At),
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

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "shaper", counters: &self.counters });
        self.child.report(&format!("{path}/shaped"), into);
    }
}

#[derive(Debug)]
enum Gate {
    Paced(Paced),
    Lumps(Lumps),
}

impl Gate {
    /// `None` where a packet may go now, else when one may.
    fn opens(&mut self, now: Time) -> Option<Time> {
        match self {
            Gate::Paced(paced) => paced.opens(now),
            Gate::Lumps(lumps) => lumps.opens(now),
        }
    }

    fn sent(&mut self, now: Time, octets: usize) {
        match self {
            Gate::Paced(paced) => paced.sent(now, octets),
            Gate::Lumps(lumps) => lumps.tokens -= bit_nanos(octets as u64),
        }
    }
}

/// What so many octets take: bits times the nanoseconds of a second.
fn bit_nanos(octets: u64) -> i128 {
    i128::from(octets) * 8 * i128::from(SECOND)
}

/// A moment in whole nanoseconds and a rest of bits times nanoseconds, below the rate: exact.
type Exact = (i128, u64);

/// By theoretical departure time.
#[derive(Debug)]
struct Paced {
    rate: u64,
    /// How long before now the departure time may lie, rounded to no less and with the rest that was
    /// added by that.
    burst: Exact,
    /// The theoretical departure time of the next packet.
    next: Exact,
    /// The same, rounded up.
    opens: Time,
}

impl Paced {
    fn new(rate: Rate, burst: u64) -> Paced {
        let (rate, bits) = (rate.bits(), bit_nanos(burst));
        let nanos = bits.cast_unsigned().div_ceil(u128::from(rate)).cast_signed();
        let rest = u64::try_from(nanos * i128::from(rate) - bits).unwrap_or(0);
        Paced { rate, burst: (nanos, rest), next: (-nanos, rest), opens: Time::ZERO }
    }

    fn opens(&self, now: Time) -> Option<Time> {
        (now < self.opens).then_some(self.opens)
    }

    fn sent(&mut self, now: Time, octets: usize) {
        let earliest = (i128::from(now.0) - self.burst.0, self.burst.1);
        let (nanos, rest) = self.next.max(earliest);
        // A packet of 80 kB is 6.4e14, a rest below 1e12: far below 2^64.
        let cost = (octets as u64).saturating_mul(8 * SECOND).saturating_add(rest);
        self.next = (nanos + i128::from(cost / self.rate), cost % self.rate);
        let opens = self.next.0 + i128::from(self.next.1 > 0);
        self.opens = Time(u64::try_from(opens.max(0)).unwrap_or(u64::MAX));
    }
}

/// By grants at intervals.
#[derive(Debug)]
struct Lumps {
    /// In nanoseconds.
    interval: u64,
    /// What each interval adds.
    grant: i128,
    /// The most the bucket holds.
    most: i128,
    tokens: i128,
    /// When the next interval begins; the first one with the first packet.
    next: Option<Time>,
}

impl Lumps {
    fn new(rate: Rate, burst: u64, interval: u64) -> Lumps {
        let interval = interval.max(1);
        let grant = i128::from(rate.bits()) * i128::from(interval);
        let most = bit_nanos(burst).max(grant);
        Lumps { interval, grant, most, tokens: most, next: None }
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
        // So many intervals more, beside the one that begins next, until a debt is paid.
        let more = u64::try_from(-self.tokens / self.grant).unwrap_or(u64::MAX);
        let next = self.next.unwrap_or(now).0;
        Some(Time(next.saturating_add(more.saturating_mul(self.interval))))
    }
}

#[cfg(test)]
mod tests;
