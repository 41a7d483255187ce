//! From what arrived to numbers: (flow, sequence, sent, received) in; throughput, loss, duplicates,
//! reordering, one-way delay and jitter out. No clock and no socket: the times are arguments.
//!
//! * *Loss*: sent minus received. The end of the flow has the number of packets sent. Before it
//!   arrives, the highest sequence seen counts instead.
//! * *Reordered*: arrived after one with a higher sequence (RFC 4737 3).
//! * *Duplicate*: arrived before, within the last [`WINDOW`] sequences; older than that is *stale*
//!   and counted neither as received nor as duplicate.
//! * *Throughput*: octets that arrived after the first packet, over the time since it did: n packets
//!   have n - 1 gaps.
//! * *Delay*: received minus sent. A negative delay (clocks that disagree) counts as zero, and is
//!   reported.
//! * *Jitter*: the absolute difference of inter-arrival and inter-departure of two successive
//!   packets of a flow, as in the Bern study; duplicates take no part.

use crate::measure::seen::{SequenceVerdict, SequenceWindow};
use crate::measure::spread::{Spread, Summary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

mod row;
pub(crate) mod seen;
pub(crate) mod spread;

pub use crate::measure::seen::WINDOW;
pub use row::{Octets, TrafficRow, kbit_s};

/// Flows that are measured; what belongs to others is counted as foreign.
pub const MAX_FLOWS: usize = 1_024;
/// Rows of intervals that are kept, of all flows together.
pub const MAX_ROWS: usize = 1_000_000;

/// A packet or block that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The flow that it belongs to.
    pub flow: FlowKey,
    /// From 0.
    pub sequence: u64,
    /// Nanoseconds of the sender's clock.
    pub sent: u64,
    /// Nanoseconds of the same clock.
    pub received: u64,
    /// Octets of its payload.
    pub octets: u32,
    /// Octets of IP and transport headers that came with it.
    pub overhead: u32,
    /// The octet with its code point, where the system reports it.
    pub tos: Option<u8>,
}

/// What identifies a flow at a receiver. The source distinguishes senders that choose the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FlowKey {
    /// The sender's run.
    pub run: u32,
    /// Its number in the plan.
    pub flow: u32,
    /// The address and port of the sender's socket.
    pub source: SocketAddr,
}

/// Counts of packets, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Sent, as far as it is known.
    pub sent: u64,
    /// Received, duplicates and stale ones not counted.
    pub received: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Received again.
    pub duplicates: u64,
    /// Received after a later one.
    pub reordered: u64,
    /// Too old to determine whether they are duplicates.
    pub stale: u64,
    /// Octets of payload received, duplicates not counted.
    pub payload_octets: u64,
    /// The same with IP and transport headers.
    pub ip_octets: u64,
}

/// The measurement of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowMeasured {
    /// The flow that was measured.
    pub key: FlowKey,
    /// Packets and octets.
    pub counts: Counts,
    /// Whether its end arrived, so that `sent` is the sender's count.
    pub ended: bool,
    /// First arrival, in nanoseconds since the first of all.
    pub first: u64,
    /// Last arrival, likewise.
    pub last: u64,
    /// What arrived after the first packet, duplicates not counted.
    pub after_first: Octets,
    /// One-way delay in nanoseconds.
    pub delay: Summary,
    /// Packets that arrived before they were sent: the clocks disagree.
    pub negative_delays: u64,
    /// Jitter in nanoseconds.
    pub jitter: Summary,
    /// Packets by the code point they arrived with; empty where the system does not report it.
    pub dscp: BTreeMap<u8, u64>,
    /// The same by the whole octet, with the two bits of ECN.
    pub tos: BTreeMap<u8, u64>,
    /// By interval, from the first arrival to the end: where the flow has not ended, to the last
    /// arrival of all flows.
    #[serde(skip)]
    pub rows: Vec<TrafficRow>,
}

/// The measurement of all flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Of all flows together.
    pub counts: Counts,
    /// Nanoseconds from the first arrival to the last.
    pub duration: u64,
    /// What arrived after the first packet of all, duplicates not counted.
    pub after_first: Octets,
    /// Delay over all flows, in nanoseconds.
    pub delay: Summary,
    /// Jitter over all flows (always within each), in nanoseconds.
    pub jitter: Summary,
    /// By flow, in their order.
    pub flows: Vec<FlowMeasured>,
    /// Packets that are not of this load, or of a flow beyond [`MAX_FLOWS`].
    pub foreign: u64,
    /// Arrivals, and intervals without one, that have no row, there being too many.
    pub rows_left_out: u64,
    /// The length of an interval in nanoseconds.
    pub interval: u64,
    /// When the first of all arrived, in nanoseconds of the receiver's clock.
    pub began: u64,
}

impl FlowMeasured {
    /// Nanoseconds from its first arrival to its last.
    pub fn duration(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }

    /// Throughput as payload and as IP packets, in kbit/s; 0 where there is one moment only.
    pub fn kbit_s(&self) -> [f64; 2] {
        self.after_first.kbit_s(self.duration())
    }
}

impl Measured {
    /// Throughput as payload and as IP packets, in kbit/s; 0 where there is one moment only.
    pub fn kbit_s(&self) -> [f64; 2] {
        self.after_first.kbit_s(self.duration)
    }
}

/// How far one clock is ahead of another: an offset and a drift. A study determines it and corrects
/// for it, or adds one to check that it is determined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ahead {
    /// So many nanoseconds ahead.
    pub nanos: i64,
    /// At this time of the receiver's clock, in nanoseconds.
    pub since: u64,
    /// So much faster: 1,000 gains a microsecond a second.
    pub drift_ppb: i64,
}

impl Ahead {
    /// How far it is ahead at a time of the receiver's clock, in nanoseconds.
    pub fn at(self, time: u64) -> i64 {
        let passed = i128::from(time) - i128::from(self.since);
        let drifted = passed * i128::from(self.drift_ppb) / 1_000_000_000;
        i64::try_from(i128::from(self.nanos) + drifted).unwrap_or_default()
    }
}

/// Takes arrivals and measures.
#[derive(Debug)]
pub struct Meter {
    interval: u64,
    ahead: Ahead,
    first: Option<u64>,
    first_octets: Octets,
    last: u64,
    flows: BTreeMap<FlowKey, MeteredFlow>,
    delay: Spread,
    jitter: Spread,
    foreign: u64,
    rows: usize,
    rows_left_out: u64,
}

#[derive(Debug)]
struct MeteredFlow {
    seen: SequenceWindow,
    counts: Counts,
    ended: Option<u64>,
    first: u64,
    first_octets: Octets,
    last: u64,
    /// The last packet of it, duplicates and its end included.
    last_activity: u64,
    previous: Option<(u64, u64)>,
    delay: Spread,
    jitter: Spread,
    negative: u64,
    tos: BTreeMap<u8, u64>,
    rows: BTreeMap<u64, TrafficRow>,
}

impl Meter {
    /// One with intervals of so many nanoseconds, at least one.
    pub fn new(interval: u64) -> Meter {
        Meter {
            interval: interval.max(1),
            ahead: Ahead::default(),
            first: None,
            first_octets: Octets::default(),
            last: 0,
            flows: BTreeMap::new(),
            delay: Spread::fine(),
            jitter: Spread::fine(),
            foreign: 0,
            rows: 0,
            rows_left_out: 0,
        }
    }

    /// With a clock of the receiver that is ahead; arrival times are corrected by it.
    #[must_use]
    pub fn ahead(self, ahead: Ahead) -> Meter {
        Meter { ahead, ..self }
    }

    /// A packet arrived that is not of this load.
    pub fn foreign(&mut self) {
        self.foreign += 1;
    }

    /// Whether as many flows as these were seen, and each of them has ended.
    pub fn all_ended(&self, flows: usize) -> bool {
        self.flows.len() >= flows && self.flows.values().all(|flow| flow.ended.is_some())
    }

    /// The end of a flow arrived at `received`; its sender has sent `sent` packets.
    pub fn ended(&mut self, key: FlowKey, sent: u64, received: u64) {
        let since = received.saturating_sub(self.first.unwrap_or(received));
        match self.flow(key) {
            // A sender repeats the end.
            Some(flow) if flow.ended == Some(sent) => {}
            Some(flow) => {
                flow.ended = Some(sent);
                flow.last_activity = flow.last_activity.max(since);
            }
            None => self.foreign += 1,
        }
    }

    fn flow(&mut self, key: FlowKey) -> Option<&mut MeteredFlow> {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return None;
        }
        Some(self.flows.entry(key).or_insert_with(MeteredFlow::new))
    }

    /// Something arrived.
    pub fn take(&mut self, arrival: &Arrival) {
        if self.first.is_none() {
            self.first_octets = Octets::from_arrival(arrival);
        }
        let first = *self.first.get_or_insert(arrival.received);
        let since = arrival.received.saturating_sub(first);
        let (number, interval) = (since / self.interval, self.interval);
        let ahead = self.ahead.at(arrival.received);
        let at = |time: u64| time.saturating_add_signed(ahead.saturating_neg());
        let arrival = &Arrival { received: at(arrival.received), ..*arrival };
        let room = self.rows < MAX_ROWS;
        let Some(flow) = self.flow(arrival.flow) else {
            self.foreign += 1;
            return;
        };
        let effect = flow.take(arrival, since);
        let known = flow.rows.contains_key(&number);
        if known || room {
            let row = flow.rows.entry(number).or_default();
            row.from = number * interval;
            row.take(arrival, &effect, since);
        }
        self.rows += usize::from(!known && room);
        self.rows_left_out += u64::from(!known && !room);
        self.last = self.last.max(first.saturating_add(since));
        if let Some(delay) = effect.delay {
            self.delay.add(delay);
        }
        if let Some(jitter) = effect.jitter {
            self.jitter.add(jitter);
        }
    }

    /// The numbers, so far.
    pub fn measured(&self) -> Measured {
        let duration = self.last.saturating_sub(self.first.unwrap_or(0));
        let mut rows_left_out = self.rows_left_out;
        let mut room = MAX_ROWS.saturating_sub(self.rows) as u64;
        let mut flows = Vec::new();
        for (key, flow) in &self.flows {
            let end = if flow.ended.is_some() { flow.last_activity } else { duration };
            let (rows, without) = flow.rows(self.interval, end, &mut room);
            rows_left_out = rows_left_out.saturating_add(without);
            flows.push(flow.measured(*key, rows));
        }
        let mut counts = Counts::default();
        for flow in &flows {
            counts.add(&flow.counts);
        }
        let after_first = counts.without(self.first_octets);
        Measured {
            counts,
            after_first,
            duration,
            delay: self.delay.summary(),
            jitter: self.jitter.summary(),
            flows,
            foreign: self.foreign,
            rows_left_out,
            interval: self.interval,
            began: self.first.unwrap_or(0),
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received += other.received;
        self.lost = self.lost.saturating_add(other.lost);
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.stale += other.stale;
        self.payload_octets += other.payload_octets;
        self.ip_octets += other.ip_octets;
    }

    fn without(&self, octets: Octets) -> Octets {
        Octets {
            payload: self.payload_octets.saturating_sub(octets.payload),
            ip: self.ip_octets.saturating_sub(octets.ip),
        }
    }

    /// Lost of what was sent, in percent; 0 where nothing was sent.
    pub fn loss_percent(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.sent as f64 }
    }
}

/// The effect of one arrival on the counts.
struct Effect {
    verdict: SequenceVerdict,
    delay: Option<u64>,
    /// Received minus sent; negative where the clocks disagree.
    transit: i64,
    jitter: Option<u64>,
}

impl MeteredFlow {
    fn new() -> MeteredFlow {
        MeteredFlow {
            seen: SequenceWindow::new(),
            counts: Counts::default(),
            ended: None,
            first: 0,
            first_octets: Octets::default(),
            last: 0,
            last_activity: 0,
            previous: None,
            delay: Spread::coarse(),
            jitter: Spread::coarse(),
            negative: 0,
            tos: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    fn take(&mut self, arrival: &Arrival, since: u64) -> Effect {
        let verdict = self.seen.take(arrival.sequence);
        self.last_activity = self.last_activity.max(since);
        match verdict {
            SequenceVerdict::Stale => self.counts.stale += 1,
            SequenceVerdict::Again => self.counts.duplicates += 1,
            SequenceVerdict::Late => self.counts.reordered += 1,
            SequenceVerdict::Next { .. } => {}
        }
        if !verdict.is_new() {
            return Effect { verdict, delay: None, transit: 0, jitter: None };
        }
        if self.counts.received == 0 {
            self.first = since;
            self.first_octets = Octets::from_arrival(arrival);
        }
        self.last = self.last.max(since);
        self.counts.received += 1;
        self.counts.payload_octets += u64::from(arrival.octets);
        self.counts.ip_octets += u64::from(arrival.octets) + u64::from(arrival.overhead);
        if let Some(tos) = arrival.tos {
            *self.tos.entry(tos).or_default() += 1;
        }
        let delay = arrival.received.checked_sub(arrival.sent);
        self.negative += u64::from(delay.is_none());
        let delay = delay.unwrap_or(0);
        self.delay.add(delay);
        let jitter = self.previous.map(|(sent, received)| {
            let departure = i128::from(arrival.sent) - i128::from(sent);
            let arrived = i128::from(arrival.received) - i128::from(received);
            u64::try_from((arrived - departure).unsigned_abs()).unwrap_or(u64::MAX)
        });
        if let Some(jitter) = jitter {
            self.jitter.add(jitter);
        }
        self.previous = Some((arrival.sent, arrival.received));
        let transit = i128::from(arrival.received) - i128::from(arrival.sent);
        let transit = i64::try_from(transit).unwrap_or_default();
        Effect { verdict, delay: Some(delay), transit, jitter }
    }

    fn measured(&self, key: FlowKey, rows: Vec<TrafficRow>) -> FlowMeasured {
        let mut counts = self.counts.clone();
        // A count below the highest sequence seen cannot be right.
        counts.sent = self.ended.unwrap_or(0).max(self.seen.next());
        counts.lost = counts.sent.saturating_sub(counts.received);
        let after_first = counts.without(self.first_octets);
        let mut dscp = BTreeMap::new();
        for (tos, packets) in &self.tos {
            *dscp.entry(tos >> 2).or_default() += packets;
        }
        FlowMeasured {
            key,
            counts,
            after_first,
            ended: self.ended.is_some(),
            first: self.first,
            last: self.last,
            delay: self.delay.summary(),
            negative_delays: self.negative,
            jitter: self.jitter.summary(),
            dscp,
            tos: self.tos.clone(),
            rows,
        }
    }
}

#[cfg(test)]
mod tests;
