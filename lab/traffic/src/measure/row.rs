//! Octets over time, and the intervals of a flow.

use super::{Arrival, Effect, MeteredFlow};
use crate::measure::seen::SequenceVerdict;
use serde::Serialize;

/// Octets of packets, or of the blocks of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Octets {
    /// Of their payload.
    pub payload: u64,
    /// The same with IP and transport headers.
    pub ip: u64,
}

impl Octets {
    pub(super) fn from_arrival(arrival: &Arrival) -> Octets {
        let payload = u64::from(arrival.octets);
        Octets { payload, ip: payload + u64::from(arrival.overhead) }
    }

    /// What comes in so many nanoseconds, as payload and as IP packets, in kbit/s; 0 for no time.
    pub fn kbit_s(self, nanos: u64) -> [f64; 2] {
        [kbit_s(self.payload, nanos), kbit_s(self.ip, nanos)]
    }
}

/// So many octets in so many nanoseconds, in kbit/s; 0 for no time.
pub fn kbit_s(octets: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { octets as f64 * 8e6 / nanos as f64 }
}

/// One interval of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrafficRow {
    /// The interval's beginning, in nanoseconds since the first arrival of all.
    pub from: u64,
    /// Nanoseconds of it between the flow's first arrival and its end: fewer than the interval's in
    /// the first and in the last as a rule.
    pub length: u64,
    /// Whether that is the interval whole.
    pub whole: bool,
    /// The first arrival in it, in nanoseconds since the first of all, and what came with it.
    pub first: (u64, Octets),
    /// The last arrival in it, duplicates not counted.
    pub last: u64,
    /// Received in it, duplicates not counted.
    pub received: u64,
    /// Octets of payload.
    pub payload_octets: u64,
    /// Octets with IP and transport headers.
    pub ip_octets: u64,
    /// Sequences passed over in it: lost, or late.
    pub skipped: u64,
    /// Came late in it.
    pub reordered: u64,
    /// Came again in it.
    pub duplicates: u64,
    /// Sum of delays, in nanoseconds.
    pub delay_sum: u64,
    /// Sum of received minus sent, negative values included.
    pub transit_sum: i64,
    /// The longest delay.
    pub delay_max: u64,
    /// Differences that make up the jitter.
    pub jitter_count: u64,
    /// Their sum, in nanoseconds.
    pub jitter_sum: u64,
    /// The largest.
    pub jitter_max: u64,
}

impl TrafficRow {
    /// Throughput as payload and as IP packets, in kbit/s. Where it is not a whole interval, that
    /// after its first packet; `None` where there is no second one.
    pub fn kbit_s(&self) -> Option<[f64; 2]> {
        let all = Octets { payload: self.payload_octets, ip: self.ip_octets };
        if self.whole || (self.received == 0 && self.length > 0) {
            return Some(all.kbit_s(self.length));
        }
        let (first, octets) = self.first;
        let after_first = Octets { payload: all.payload - octets.payload, ip: all.ip - octets.ip };
        let nanos = self.last.saturating_sub(first);
        (nanos > 0).then(|| after_first.kbit_s(nanos))
    }

    pub(super) fn take(&mut self, arrival: &Arrival, effect: &Effect, since: u64) {
        match effect.verdict {
            SequenceVerdict::Stale => {}
            SequenceVerdict::Again => self.duplicates += 1,
            SequenceVerdict::Late => self.reordered += 1,
            SequenceVerdict::Next { skipped } => {
                self.skipped = self.skipped.saturating_add(skipped);
            }
        }
        if let Some(delay) = effect.delay {
            let octets = Octets::from_arrival(arrival);
            if self.received == 0 {
                self.first = (since, octets);
            }
            self.last = self.last.max(since);
            self.received += 1;
            self.payload_octets += octets.payload;
            self.ip_octets += octets.ip;
            self.delay_sum = self.delay_sum.saturating_add(delay);
            self.transit_sum = self.transit_sum.saturating_add(effect.transit);
            self.delay_max = self.delay_max.max(delay);
        }
        if let Some(jitter) = effect.jitter {
            self.jitter_count += 1;
            self.jitter_sum = self.jitter_sum.saturating_add(jitter);
            self.jitter_max = self.jitter_max.max(jitter);
        }
    }
}

impl MeteredFlow {
    /// Its rows from the first arrival to the end, and how many empty ones had no room.
    pub(super) fn rows(&self, interval: u64, end: u64, room: &mut u64) -> (Vec<TrafficRow>, u64) {
        let (mut rows, mut without) = (Vec::new(), 0u64);
        let end = end.max(self.last_activity);
        let mut next = self.first / interval;
        let mut fill = |rows: &mut Vec<TrafficRow>, next: u64, to: u64| {
            let empty = to.saturating_sub(next);
            let kept = empty.min(*room);
            *room -= kept;
            without = without.saturating_add(empty - kept);
            let of = |number| TrafficRow { from: number * interval, ..TrafficRow::default() };
            rows.extend((next..next.saturating_add(kept)).map(of));
        };
        for (number, row) in &self.rows {
            fill(&mut rows, next, *number);
            rows.push(row.clone());
            next = number.saturating_add(1);
        }
        if !self.rows.is_empty() {
            fill(&mut rows, next, end.div_ceil(interval));
        }
        for row in &mut rows {
            let to = row.from.saturating_add(interval).min(end);
            row.length = to.saturating_sub(row.from.max(self.first));
            row.whole = row.length == interval;
        }
        (rows, without)
    }
}
