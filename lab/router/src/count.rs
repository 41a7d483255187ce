//! Counters of every part, by code point.

use crate::time::Time;
use dscp::Dscp;
use serde::Serialize;

/// The number of code points (RFC 2474 3: six bits).
const CODE_POINTS: usize = 64;
/// Buckets of a delay histogram. Bucket n counts delays from 2^(n-1) to below 2^n microseconds.
const BUCKETS: usize = 32;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Not an IP packet, or a damaged one.
    Malformed,
    /// Its time to live or hop limit expired.
    Expired,
    /// No route leads to its destination.
    NoRoute,
    /// Its source or destination is an address that no router forwards (RFC 1812 5.3.7, RFC 4291
    /// 2.5).
    Martian,
    /// Longer than the MTU of the output interface, and fragmentation is not allowed.
    TooLong,
    /// A `drop` step of the policy matched it.
    Refused,
    /// A policer found it out of profile (RFC 2475 2.3.3.3).
    Policed,
    /// The queue of a shaper was full.
    ShaperFull,
    /// The queue was full.
    Tail,
    /// The queue was at the threshold of its code point or above it.
    Threshold,
    /// Push-out: a packet of a higher code point took its place.
    PushedOut,
    /// Random early detection dropped it at random, the average queue between `min` and `max`.
    Early,
    /// Random early detection dropped it because the average queue was `max` or above.
    Forced,
    /// The common limit of several queues was reached.
    Limit,
    /// Lost on the line.
    Lost,
}

impl Cause {
    /// All causes, in the order of declaration.
    pub const ALL: [Cause; 15] = [
        Cause::Malformed,
        Cause::Expired,
        Cause::NoRoute,
        Cause::Martian,
        Cause::TooLong,
        Cause::Refused,
        Cause::Policed,
        Cause::ShaperFull,
        Cause::Tail,
        Cause::Threshold,
        Cause::PushedOut,
        Cause::Early,
        Cause::Forced,
        Cause::Limit,
        Cause::Lost,
    ];
}

/// A number of packets and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Octets, IP headers included, link headers not.
    pub octets: u64,
}

impl Amount {
    /// Adds a packet of this length in octets.
    pub fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += length as u64;
    }
}

/// The counters of one part for one code point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodePointCount {
    /// Packets that entered, by the code point they entered with.
    pub came: Amount,
    /// Packets that left, by the code point they left with.
    pub went: Amount,
    /// Packets addressed to the router itself, which it consumed.
    pub taken: Amount,
    /// Packets that this part re-marked to this code point from another.
    pub marked: u64,
    /// Packets whose ECN field this part set to CE (RFC 3168 5).
    pub congestion_marked: u64,
    /// Packets that this part dropped, by cause.
    pub dropped: [Amount; Cause::ALL.len()],
}

impl CodePointCount {
    /// The packets dropped for any cause.
    pub fn dropped_in_all(&self) -> Amount {
        self.dropped.iter().fold(Amount::default(), |sum, one| Amount {
            packets: sum.packets + one.packets,
            octets: sum.octets + one.octets,
        })
    }
}

/// A histogram of delays in powers of two of a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayHistogram {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for DelayHistogram {
    fn default() -> DelayHistogram {
        DelayHistogram { buckets: [0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl DelayHistogram {
    /// Adds a delay in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        let micros = nanos / 1_000;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        if let Some(bucket) = self.buckets.get_mut(bucket.min(BUCKETS - 1)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_ns += u128::from(nanos);
        self.max_ns = self.max_ns.max(nanos);
    }

    /// Number of delays added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean delay in nanoseconds; 0 without delays.
    pub fn mean_ns(&self) -> u64 {
        u64::try_from(self.sum_ns / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The longest delay in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The buckets in use: the exclusive upper bound of each in microseconds, and the number of
    /// delays in it. The last bucket also counts all longer delays.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let buckets = self.buckets.iter().enumerate();
        buckets.filter(|(_, count)| **count > 0).map(|(n, count)| (1 << n, *count))
    }
}

/// The depth of a queue over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    now: Amount,
    most: Amount,
    since: Time,
    first: Option<Time>,
    packet_ns: u128,
}

impl Depth {
    /// Sets the current depth.
    pub fn set(&mut self, now: Time, packets: usize, octets: usize) {
        self.settle(now);
        self.now = Amount { packets: packets as u64, octets: octets as u64 };
        self.most.packets = self.most.packets.max(self.now.packets);
        self.most.octets = self.most.octets.max(self.now.octets);
    }

    /// Adds or removes a packet of this length.
    fn change(&mut self, now: Time, by: fn(u64, u64) -> u64, length: usize) {
        self.settle(now);
        self.now.packets = by(self.now.packets, 1);
        self.now.octets = by(self.now.octets, length as u64);
        self.most.packets = self.most.packets.max(self.now.packets);
        self.most.octets = self.most.octets.max(self.now.octets);
    }

    fn settle(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.packet_ns += u128::from(self.now.packets) * u128::from(now.since(self.since));
        self.since = self.since.max(now);
    }

    /// The current depth.
    pub fn now(&self) -> Amount {
        self.now
    }

    /// The highest depth so far, in packets and in octets.
    pub fn most(&self) -> Amount {
        self.most
    }

    /// The mean depth in packets over time, since the first packet.
    pub fn average(&self, now: Time) -> f64 {
        let mut settled = *self;
        settled.settle(now);
        let whole = settled.first.map_or(0, |first| settled.since.since(first));
        if whole == 0 { 0.0 } else { settled.packet_ns as f64 / whole as f64 }
    }
}

/// The counters of one part, by code point.
#[derive(Clone, Debug)]
pub struct PacketCounters {
    rows: Box<[CodePointCount; CODE_POINTS]>,
    delays: Box<[Option<Box<DelayHistogram>>; CODE_POINTS]>,
    depths: Box<[Option<Box<Depth>>; CODE_POINTS]>,
    /// The depth of its queue; zero in parts that hold no packets.
    pub depth: Depth,
    averages: Averages,
}

/// The average queues of a random dropper.
#[derive(Clone, Copy, Debug, Default)]
struct Averages {
    packets: [f64; 3],
    used: usize,
}

impl Default for PacketCounters {
    fn default() -> PacketCounters {
        PacketCounters {
            rows: Box::new([CodePointCount::default(); CODE_POINTS]),
            delays: Box::new([const { None }; CODE_POINTS]),
            depths: Box::new([const { None }; CODE_POINTS]),
            depth: Depth::default(),
            averages: Averages::default(),
        }
    }
}

impl PacketCounters {
    #[expect(clippy::indexing_slicing, reason = "six bits, and an array of 64")]
    fn row_mut(&mut self, dscp: Dscp) -> &mut CodePointCount {
        &mut self.rows[usize::from(dscp.number()) & (CODE_POINTS - 1)]
    }

    /// The counters of this code point.
    #[expect(clippy::indexing_slicing, reason = "six bits, and an array of 64")]
    pub fn row(&self, dscp: Dscp) -> &CodePointCount {
        &self.rows[usize::from(dscp.number()) & (CODE_POINTS - 1)]
    }

    /// A packet entered.
    pub fn came(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).came.add(length);
    }

    /// A packet was addressed to the router itself.
    pub fn taken(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).taken.add(length);
    }

    /// A packet left.
    pub fn went(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).went.add(length);
    }

    /// A packet left after it was held for `nanos` nanoseconds.
    pub fn went_after(&mut self, dscp: Dscp, length: usize, nanos: u64) {
        self.went(dscp, length);
        if let Some(delays) = self.delays.get_mut(usize::from(dscp.number())) {
            delays.get_or_insert_default().add(nanos);
        }
    }

    /// A packet of this code point waits here from now on.
    pub fn holds(&mut self, now: Time, dscp: Dscp, length: usize) {
        if let Some(depth) = self.depths.get_mut(usize::from(dscp.number())) {
            depth.get_or_insert_default().change(now, |was, by| was + by, length);
        }
    }

    /// A packet counted by [`PacketCounters::holds`] no longer waits.
    pub fn releases(&mut self, now: Time, dscp: Dscp, length: usize) {
        if let Some(Some(depth)) = self.depths.get_mut(usize::from(dscp.number())) {
            depth.change(now, u64::saturating_sub, length);
        }
    }

    /// The depth of the packets of this code point. Its mean is over the time since the first
    /// packet of any code point, so the means of all code points add up to that of the queue.
    /// `None` if no packet of this code point ever waited, and in parts whose packets wait in parts
    /// inside them.
    pub fn depth_of(&self, dscp: Dscp) -> Option<Depth> {
        let depth = self.depths.get(usize::from(dscp.number()))?.as_deref()?;
        Some(Depth { first: self.depth.first.or(depth.first), ..*depth })
    }

    /// A packet was re-marked to this code point from another.
    pub fn marked(&mut self, dscp: Dscp) {
        self.row_mut(dscp).marked += 1;
    }

    /// The ECN field of a packet was set to CE.
    pub fn congestion_marked(&mut self, dscp: Dscp) {
        self.row_mut(dscp).congestion_marked += 1;
    }

    /// A packet was dropped.
    pub fn dropped(&mut self, dscp: Dscp, length: usize, cause: Cause) {
        if let Some(amount) = self.row_mut(dscp).dropped.get_mut(cause as usize) {
            amount.add(length);
        }
    }

    /// Sets an average queue of a random dropper, in packets; `place` is 0 to 2.
    pub fn set_average(&mut self, place: usize, packets: f64) {
        if let Some(average) = self.averages.packets.get_mut(place) {
            *average = packets;
            self.averages.used = self.averages.used.max(place + 1);
        }
    }

    /// The average queues of a random dropper, in packets, as of its last arrival: one value for
    /// RED and WRED; those of green, yellow and red packets for TRIO; none for others.
    pub fn averages(&self) -> &[f64] {
        self.averages.packets.get(..self.averages.used).unwrap_or_default()
    }

    /// The delays of the packets of this code point; `None` if none was held.
    pub fn delays(&self, dscp: Dscp) -> Option<&DelayHistogram> {
        self.delays.get(usize::from(dscp.number()))?.as_deref()
    }

    /// The code points with non-zero counters, in rising order, with their counters.
    pub fn used(&self) -> impl Iterator<Item = (Dscp, &CodePointCount)> {
        let rows =
            self.rows.iter().enumerate().filter(|(_, row)| **row != CodePointCount::default());
        rows.filter_map(|(value, row)| Some((Dscp::new(u8::try_from(value).ok()?)?, row)))
    }
}

/// The counters of one part, with its path in the router, such as `wan/output/gold/queue`.
#[derive(Debug)]
pub struct PartCounters<'a> {
    /// Interface, direction, and the names down to the part, separated by `/`.
    pub path: String,
    /// The kind of the part, such as `meter` or `wred`.
    pub kind: &'static str,
    /// Its counters.
    pub counters: &'a PacketCounters,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn depth_is_averaged_over_time() {
        let mut depth = Depth::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        depth.set(at(100), 4, 400);
        depth.set(at(200), 0, 0);
        depth.set(at(300), 2, 100);
        assert_eq!(depth.average(at(400)), 2.0);
        assert_eq!(depth.most(), Amount { packets: 4, octets: 400 });
        assert_eq!(Depth::default().average(at(1)), 0.0);
    }

    #[test]
    fn depth_is_kept_by_code_point() {
        let mut counters = PacketCounters::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        counters.depth.set(at(0), 1, 100);
        counters.holds(at(0), Dscp::EF, 100);
        counters.holds(at(100), Dscp::CS1, 40);
        counters.holds(at(100), Dscp::CS1, 60);
        counters.releases(at(200), Dscp::CS1, 40);
        counters.releases(at(200), Dscp::EF, 100);
        let [ef, cs1] = [Dscp::EF, Dscp::CS1].map(|dscp| counters.depth_of(dscp).unwrap());
        assert_eq!((ef.now(), ef.most()), (Amount::default(), Amount { packets: 1, octets: 100 }));
        assert_eq!(cs1.now(), Amount { packets: 1, octets: 60 });
        assert_eq!(cs1.most(), Amount { packets: 2, octets: 100 });
        assert_eq!((ef.average(at(400)), cs1.average(at(400))), (0.5, 1.0), "over 400 ms");
        assert!(counters.depth_of(Dscp::CS0).is_none());
    }

    #[test]
    fn delays_fall_into_powers_of_two() {
        let mut delays = DelayHistogram::default();
        for nanos in [0, 999, 1_000, 1_999, 2_000, u64::MAX] {
            delays.add(nanos);
        }
        let buckets: Vec<_> = delays.buckets().collect();
        assert_eq!(buckets, [(1, 2), (2, 2), (4, 1), (1 << 31, 1)]);
        assert_eq!((delays.count(), delays.max_ns()), (6, u64::MAX));
    }

    #[test]
    fn rows_are_kept_apart_by_code_point_and_cause() {
        let mut counters = PacketCounters::default();
        counters.came(Dscp::EF, 100);
        counters.dropped(Dscp::EF, 100, Cause::Lost);
        counters.came(Dscp::CS7, 50);
        counters.went_after(Dscp::CS7, 50, 5_000);
        let used: Vec<_> = counters.used().map(|(dscp, row)| (dscp, row.came.octets)).collect();
        assert_eq!(used, [(Dscp::EF, 100), (Dscp::CS7, 50)]);
        assert_eq!(counters.row(Dscp::EF).dropped_in_all(), Amount { packets: 1, octets: 100 });
        assert_eq!(counters.delays(Dscp::CS7).unwrap().mean_ns(), 5_000);
        assert!(counters.delays(Dscp::EF).is_none());
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(place, cause as usize);
        }
    }
}
