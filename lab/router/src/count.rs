//! What every part counts, by code point.

use crate::time::Time;
use dscp::Dscp;
use serde::Serialize;

/// Code points there are.
const CODE_POINTS: usize = 64;
/// Buckets of a delay histogram: bucket n holds delays below 2^n microseconds and not below half.
const BUCKETS: usize = 32;

/// Why a packet went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No IP packet, or a damaged one.
    Malformed,
    /// Its time to live ran out.
    Expired,
    /// No route leads to its destination.
    NoRoute,
    /// From or to an address that no router forwards for (RFC 1812 5.3.7, RFC 4291 2.5).
    Martian,
    /// Longer than the way out takes, and not to be divided.
    TooLong,
    /// A rule said so.
    Refused,
    /// A policer found it outside its profile.
    Policed,
    /// The queue of a shaper was full.
    ShaperFull,
    /// The queue was full.
    Tail,
    /// The queue was above the threshold of its code point.
    Threshold,
    /// Another packet of a higher code point took its place.
    PushedOut,
    /// By chance, the average queue between minimum and maximum.
    Early,
    /// The average queue was above the maximum.
    Forced,
    /// A limit over several queues was reached.
    Limit,
    /// Lost on the line.
    Lost,
}

impl Cause {
    /// All of them, in the order of their declaration.
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

/// Packets and octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Their octets, IP headers included.
    pub octets: u64,
}

impl Amount {
    /// One more packet of this length.
    pub fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += length as u64;
    }
}

/// What one part did to the packets of one code point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodePointCount {
    /// Came in.
    pub came: Amount,
    /// Went on, by the code point they went on with.
    pub went: Amount,
    /// Were for the router itself, and went no further.
    pub taken: Amount,
    /// Were given this code point here, and had another.
    pub marked: u64,
    /// Had their ECN field set to CE here (RFC 3168 5).
    pub congestion_marked: u64,
    /// Went no further, by cause.
    pub dropped: [Amount; Cause::ALL.len()],
}

impl CodePointCount {
    /// All that went no further.
    pub fn dropped_in_all(&self) -> Amount {
        self.dropped.iter().fold(Amount::default(), |sum, one| Amount {
            packets: sum.packets + one.packets,
            octets: sum.octets + one.octets,
        })
    }
}

/// How long packets stayed, in powers of two of a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays { buckets: [0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Delays {
    /// One more delay, in nanoseconds.
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

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, in nanoseconds; 0 where there are none.
    pub fn mean_ns(&self) -> u64 {
        u64::try_from(self.sum_ns / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// The longest, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The buckets in use: an upper bound in microseconds (not included), and how many are below it
    /// and not in an earlier one. The last has everything longer, too.
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
    /// It is this deep from now on.
    pub fn set(&mut self, now: Time, packets: usize, octets: usize) {
        self.settle(now);
        self.now = Amount { packets: packets as u64, octets: octets as u64 };
        self.most.packets = self.most.packets.max(self.now.packets);
        self.most.octets = self.most.octets.max(self.now.octets);
    }

    /// A packet of this length more, or less.
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

    /// What waits now.
    pub fn now(&self) -> Amount {
        self.now
    }

    /// The most that ever waited.
    pub fn most(&self) -> Amount {
        self.most
    }

    /// Packets on the average over time, since the first one came.
    pub fn average(&self, now: Time) -> f64 {
        let mut settled = *self;
        settled.settle(now);
        let whole = settled.first.map_or(0, |first| settled.since.since(first));
        if whole == 0 { 0.0 } else { settled.packet_ns as f64 / whole as f64 }
    }
}

/// The counters of one part, by code point.
#[derive(Clone, Debug)]
pub struct Counters {
    rows: Box<[CodePointCount; CODE_POINTS]>,
    delays: Box<[Option<Box<Delays>>; CODE_POINTS]>,
    depths: Box<[Option<Box<Depth>>; CODE_POINTS]>,
    /// The depth of what it holds; stays at zero in parts that hold nothing.
    pub depth: Depth,
    averages: Averages,
}

/// The averages a random dropper goes by.
#[derive(Clone, Copy, Debug, Default)]
struct Averages {
    packets: [f64; 3],
    used: usize,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            rows: Box::new([CodePointCount::default(); CODE_POINTS]),
            delays: Box::new([const { None }; CODE_POINTS]),
            depths: Box::new([const { None }; CODE_POINTS]),
            depth: Depth::default(),
            averages: Averages::default(),
        }
    }
}

impl Counters {
    #[expect(clippy::indexing_slicing, reason = "six bits, and an array of 64")]
    fn row_mut(&mut self, dscp: Dscp) -> &mut CodePointCount {
        &mut self.rows[usize::from(dscp.number()) & (CODE_POINTS - 1)]
    }

    /// What was counted of this code point.
    #[expect(clippy::indexing_slicing, reason = "six bits, and an array of 64")]
    pub fn row(&self, dscp: Dscp) -> &CodePointCount {
        &self.rows[usize::from(dscp.number()) & (CODE_POINTS - 1)]
    }

    /// A packet came in.
    pub fn came(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).came.add(length);
    }

    /// A packet was for the router itself.
    pub fn taken(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).taken.add(length);
    }

    /// A packet goes on.
    pub fn went(&mut self, dscp: Dscp, length: usize) {
        self.row_mut(dscp).went.add(length);
    }

    /// A packet goes on that was held for so many nanoseconds.
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

    /// A packet that [`Counters::holds`] counted waits no longer.
    pub fn releases(&mut self, now: Time, dscp: Dscp, length: usize) {
        if let Some(Some(depth)) = self.depths.get_mut(usize::from(dscp.number())) {
            depth.change(now, u64::saturating_sub, length);
        }
    }

    /// What waits here of this code point, and waited: its average is over the time since the first
    /// packet of any code point, so that the averages add up to that of the whole. `None` where none
    /// ever waited, and in parts that hold packets in other parts.
    pub fn depth_of(&self, dscp: Dscp) -> Option<Depth> {
        let depth = self.depths.get(usize::from(dscp.number()))?.as_deref()?;
        Some(Depth { first: self.depth.first.or(depth.first), ..*depth })
    }

    /// A packet was given this code point, having had another.
    pub fn marked(&mut self, dscp: Dscp) {
        self.row_mut(dscp).marked += 1;
    }

    /// A packet had its ECN field set to CE.
    pub fn congestion_marked(&mut self, dscp: Dscp) {
        self.row_mut(dscp).congestion_marked += 1;
    }

    /// A packet went no further.
    pub fn dropped(&mut self, dscp: Dscp, length: usize, cause: Cause) {
        if let Some(amount) = self.row_mut(dscp).dropped.get_mut(cause as usize) {
            amount.add(length);
        }
    }

    /// A random dropper goes by this average now, in packets; `place` is 0 to 2.
    pub fn set_average(&mut self, place: usize, packets: f64) {
        if let Some(average) = self.averages.packets.get_mut(place) {
            *average = packets;
            self.averages.used = self.averages.used.max(place + 1);
        }
    }

    /// The averages that a random dropper goes by, in packets, as of the last packet that came: one
    /// of RED and WRED; what green, yellow and red meet, of TRIO; else none.
    pub fn averages(&self) -> &[f64] {
        self.averages.packets.get(..self.averages.used).unwrap_or_default()
    }

    /// How long packets of this code point were held; `None` where none was.
    pub fn delays(&self, dscp: Dscp) -> Option<&Delays> {
        self.delays.get(usize::from(dscp.number()))?.as_deref()
    }

    /// The code points anything was counted for, in rising order, with their rows.
    pub fn used(&self) -> impl Iterator<Item = (Dscp, &CodePointCount)> {
        let rows =
            self.rows.iter().enumerate().filter(|(_, row)| **row != CodePointCount::default());
        rows.filter_map(|(value, row)| Some((Dscp::new(u8::try_from(value).ok()?)?, row)))
    }
}

/// The counters of one part, with its place in the router: `wan/output/gold/queue`.
#[derive(Debug)]
pub struct Part<'a> {
    /// Interface, direction, and the names down to the part.
    pub path: String,
    /// What kind of part it is: `meter`, `wred`, ...
    pub kind: &'static str,
    /// What it counted.
    pub counters: &'a Counters,
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
        let mut counters = Counters::default();
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
        let mut delays = Delays::default();
        for nanos in [0, 999, 1_000, 1_999, 2_000, u64::MAX] {
            delays.add(nanos);
        }
        let buckets: Vec<_> = delays.buckets().collect();
        assert_eq!(buckets, [(1, 2), (2, 2), (4, 1), (1 << 31, 1)]);
        assert_eq!((delays.count(), delays.max_ns()), (6, u64::MAX));
    }

    #[test]
    fn rows_are_kept_apart_by_code_point_and_cause() {
        let mut counters = Counters::default();
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
