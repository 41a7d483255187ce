//! One packet at several points: delay, loss and marks on its path.
//!
//! A packet is known again by what no router changes: addresses, identification or flow label, ports,
//! sequence numbers and the front of its payload. Which point came first follows from the time to live
//! where that differs, else by the clocks.

use crate::numbered::Jitter;
use crate::packet::{Packet, protocol};
use crate::report::Hop;
use crate::table::BoundedTable;
use crate::{Limits, Mean, Series, Summary, Time};
use dscp::Dscp;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Octets of a payload that distinguish packets.
const FRONT: usize = 64;
/// Most rows: pairs of points, by code point.
const MAX_HOPS: usize = 4_096;

#[derive(Clone, Copy, Debug)]
struct Spot {
    point: u16,
    at: Time,
    ttl: u8,
    dscp: u8,
}

/// A packet in transit.
#[derive(Clone, Debug)]
struct Sighting {
    flow: u64,
    spots: SmallVec<[Spot; 3]>,
}

/// What is known of a flow between two points.
#[derive(Clone, Debug)]
struct Stretch {
    from: u16,
    to: u16,
    jitter: Jitter,
    /// Packets seen at the first point alone since one was seen at both, by code point.
    alone: SmallVec<[(u8, u64); 1]>,
}

#[derive(Clone, Debug, Default)]
struct PathRow {
    packets: u64,
    lost: u64,
    delay: Summary,
    jitter_sum: f64,
    jitter_count: u64,
    jitter_most: f64,
    remarked: BTreeMap<u8, u64>,
    series: Option<Series<Mean>>,
}

/// All packets in transit, and the statistics of those that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    in_transit: BoundedTable<u64, (Time, Sighting)>,
    flows: BoundedTable<u64, SmallVec<[Stretch; 2]>>,
    rows: BTreeMap<(u16, u16, u8), PathRow>,
    window: u64,
    interval: u64,
    intervals: usize,
    most: usize,
    /// Packets that had to go before their time.
    pub(crate) evicted: u64,
}

impl Paths {
    pub(crate) fn new(limits: &Limits) -> Paths {
        Paths {
            in_transit: BoundedTable::new(limits.sightings),
            flows: BoundedTable::new(limits.flows),
            rows: BTreeMap::new(),
            window: limits.window,
            interval: limits.interval,
            intervals: limits.intervals,
            most: limits.sightings,
            evicted: 0,
        }
    }

    /// A packet at a point.
    pub(crate) fn packet(&mut self, now: Time, point: u16, packet: &Packet<'_>, flow: u64) {
        self.expire(now);
        let spot = Spot { point, at: now, ttl: packet.ttl, dscp: packet.dscp.number() };
        let key = fingerprint(packet);
        if let Some((_, sighting)) = self.in_transit.get_mut(&key)
            && sighting.spots.iter().all(|spot| spot.point != point)
        {
            sighting.spots.push(spot);
            return;
        }
        // The same again at the same point is another packet: the one before has arrived.
        if let Some((_, before)) = self.in_transit.remove(&key) {
            self.arrived(before);
        }
        if self.in_transit.len() >= self.most
            && let Some((_, (_, oldest))) = self.in_transit.pop()
        {
            self.evicted += 1;
            self.arrived(oldest);
        }
        let sighting = Sighting { flow, spots: SmallVec::from_slice(&[spot]) };
        self.in_transit.insert(key, (now, sighting));
    }

    /// Packets in transit for longer than the window count as arrived at the last point seen.
    fn expire(&mut self, now: Time) {
        while self.in_transit.oldest().is_some_and(|(_, (at, _))| now.since(*at) > self.window) {
            if let Some((_, (_, sighting))) = self.in_transit.pop() {
                self.arrived(sighting);
            }
        }
    }

    fn arrived(&mut self, mut sighting: Sighting) {
        // In the order of its path.
        sighting.spots.sort_by_key(|spot| (std::cmp::Reverse(spot.ttl), spot.at));
        let Some(last) = sighting.spots.last().copied() else { return };
        if sighting.spots.len() == 1 {
            return self.alone(sighting.flow, &sighting.spots);
        }
        let pairs: SmallVec<[(Spot, Spot); 3]> = {
            let spots = sighting.spots.iter().copied();
            let next = sighting.spots.iter().copied().skip(1);
            spots.zip(next).collect()
        };
        for (from, to) in &pairs {
            self.passed(sighting.flow, *from, *to);
        }
        // From end to end, where there is something between.
        if let (Some(first), 3..) = (sighting.spots.first().copied(), sighting.spots.len()) {
            self.passed(sighting.flow, first, last);
        }
        self.alone(sighting.flow, &sighting.spots);
    }

    /// A packet was seen at both.
    fn passed(&mut self, flow: u64, from: Spot, to: Spot) {
        if self.flows.touch(&flow).is_none() {
            self.flows.insert(flow, SmallVec::new());
        }
        let Some(stretches) = self.flows.get_mut(&flow) else { return };
        let of = |stretch: &Stretch| (stretch.from, stretch.to) == (from.point, to.point);
        let place = stretches.iter().position(of).unwrap_or_else(|| {
            let (jitter, alone) = (Jitter::default(), SmallVec::new());
            stretches.push(Stretch { from: from.point, to: to.point, jitter, alone });
            stretches.len() - 1
        });
        let Some(stretch) = stretches.get_mut(place) else { return };
        let jitter = stretch.jitter.packet(to.at, from.at.0);
        let lost = std::mem::take(&mut stretch.alone);
        for (dscp, packets) in lost {
            if let Some(row) = self.row((from.point, to.point, dscp)) {
                row.lost += packets;
            }
        }
        let (interval, intervals) = (self.interval, self.intervals);
        let Some(row) = self.row((from.point, to.point, from.dscp)) else { return };
        row.packets += 1;
        let delay = to.at.signed_since(from.at);
        row.delay.push(delay);
        let series = row.series.get_or_insert_with(|| Series::new(interval, intervals));
        if let Some(mean) = series.at(from.at) {
            mean.push(delay);
        }
        if let Some(jitter) = jitter {
            row.jitter_sum += jitter;
            row.jitter_count += 1;
            row.jitter_most = row.jitter_most.max(jitter);
        }
        if from.dscp != to.dscp {
            *row.remarked.entry(to.dscp).or_default() += 1;
        }
    }

    /// A packet went no further than the last of these points: lost where others of its flow go on
    /// from there.
    fn alone(&mut self, flow: u64, spots: &[Spot]) {
        let Some(stretches) = self.flows.get_mut(&flow) else { return };
        let Some(last) = spots.last() else { return };
        let onward = stretches.iter().filter(|stretch| stretch.from == last.point);
        let missed: SmallVec<[u16; 2]> = onward.map(|stretch| stretch.to).collect();
        for stretch in stretches.iter_mut().filter(|stretch| missed.contains(&stretch.to)) {
            let Some(spot) = spots.iter().find(|spot| spot.point == stretch.from) else { continue };
            match stretch.alone.iter_mut().find(|(dscp, _)| *dscp == spot.dscp) {
                Some((_, packets)) => *packets += 1,
                None => stretch.alone.push((spot.dscp, 1)),
            }
        }
    }

    fn row(&mut self, key: (u16, u16, u8)) -> Option<&mut PathRow> {
        if self.rows.len() >= MAX_HOPS && !self.rows.contains_key(&key) {
            return None;
        }
        Some(self.rows.entry(key).or_default())
    }

    /// Everything has arrived.
    pub(crate) fn finish(&mut self) {
        while let Some((_, (_, sighting))) = self.in_transit.pop() {
            self.arrived(sighting);
        }
    }

    pub(crate) fn hops(&self) -> Vec<Hop> {
        let named = |number| Dscp::new(number).unwrap_or_default();
        let rows = self.rows.iter().filter(|(_, row)| row.packets + row.lost > 0);
        rows.map(|((from, to, dscp), row)| Hop {
            from: usize::from(*from),
            to: usize::from(*to),
            dscp: named(*dscp),
            packets: row.packets,
            lost: row.lost,
            delay: row.delay.clone(),
            jitter: (row.jitter_count > 0)
                .then(|| (row.jitter_sum / row.jitter_count as f64, row.jitter_most)),
            remarked: row.remarked.iter().map(|(to, packets)| (named(*to), *packets)).collect(),
            series: row
                .series
                .clone()
                .unwrap_or_else(|| Series::new(self.interval, self.intervals)),
        })
        .collect()
    }
}

/// What no router changes of a packet. Checksums are left out: a sender leaves them to its interface.
fn fingerprint(packet: &Packet<'_>) -> u64 {
    let mut hash = Hash::default();
    hash.address(packet.source);
    hash.address(packet.destination);
    hash.word(u64::from(packet.protocol) << 32 | u64::from(packet.identification));
    hash.word(u64::from(packet.offset) << 32 | u64::from(packet.transport_length));
    let octets = packet.transport;
    let (head, checksum) = match packet.protocol {
        _ if packet.offset != 0 => (0, 0..0),
        protocol::TCP => (20, 16..18),
        protocol::UDP => (8, 6..8),
        protocol::ICMP | protocol::ICMPV6 => (4, 2..4),
        _ => (0, 0..0),
    };
    hash.octets(octets.get(..checksum.start).unwrap_or_default());
    let front = octets.len().min(head + FRONT);
    hash.octets(octets.get(checksum.end..front).unwrap_or_default());
    hash.0
}

/// A hash that is the same on every run (wyhash's mixing).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(pub(crate) u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0x9e37_79b9_7f4a_7c15)
    }
}

impl Hash {
    pub(crate) fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f;
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(23);
    }

    pub(crate) fn address(&mut self, address: std::net::IpAddr) {
        match address {
            std::net::IpAddr::V4(four) => self.word(u64::from(four.to_bits())),
            std::net::IpAddr::V6(six) => {
                self.word(six.to_bits() as u64);
                self.word((six.to_bits() >> 64) as u64);
            }
        }
    }

    fn octets(&mut self, octets: &[u8]) {
        let (words, rest) = octets.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.word(u64::from_le_bytes(last) ^ (octets.len() as u64) << 56);
    }
}
