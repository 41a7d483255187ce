//! Flow-based fair queueing, weighted by IP precedence, like Cisco's WFQ.
//!
//! A flow is addresses, protocol and ports (fragments: without ports). A hash of them selects one
//! of the lanes; flows with the same lane share it. A packet of L octets and precedence p (the
//! first three bits of its DSCP) gets the virtual finish time F = max(V, F of the previous packet
//! of its lane) + L x 32384/(p + 1). The lowest F leaves first; V is the F of the packet sent last
//! (self-clocked fair queueing, Golestani 1994). So flows that always have packets waiting share in
//! proportion to p + 1: what two of them send, divided by p + 1, differs by at most
//! `Lmax/(pi + 1) + Lmax/(pj + 1)`. The code uses 840 instead of 32384: every p + 1 divides it, so
//! nothing is rounded, and only proportions matter.
//!
//! All lanes have a common limit, in packets and in octets. When it is reached, the packet with the
//! *latest finish time* of all is dropped: the arriving packet, or the last packet of its lane.
//! Cisco does the same. The alternative, to drop from the longest queue, would take packets from a
//! Flash flow that has its queue because of its weight, and spare a flow of little weight whose few
//! packets will wait longest.
//!
//! A lane keeps the order of a flow, also if its packets differ in precedence. Each arrival and
//! departure costs O(log lanes).

use crate::classify::FlowTables;
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::discipline::{Backlog, Discarded, Discipline, Readiness};
use crate::packet::Packet;
use crate::queue::{EarlyDropper, EarlyVerdict, Lanes, QueueRoom, Tournament};
use crate::time::Time;
use std::net::IpAddr;

/// A multiple of every p + 1 from 1 to 8.
const WEIGHT: u128 = 840;

/// Flow-based fair queueing.
#[derive(Debug)]
pub(crate) struct FairFlows {
    lanes: Lanes,
    /// The number of lanes.
    places: u64,
    /// The latest finish time at the back of any lane; stored as its complement, because a
    /// tournament finds the lowest key.
    latest: Tournament,
    now: u128,
    /// The limit of all lanes together.
    room: QueueRoom,
    by_precedence: bool,
    early: EarlyDropper,
    /// With different seeds, different flows share a lane in each router.
    seed: u64,
    backlog: Backlog,
    counters: PacketCounters,
}

impl FairFlows {
    /// Empty lanes, at least 1, with this common limit.
    pub(crate) fn new(
        lanes: usize,
        room: QueueRoom,
        by_precedence: bool,
        early: EarlyDropper,
        seed: u64,
    ) -> FairFlows {
        FairFlows {
            lanes: Lanes::new(lanes),
            places: lanes as u64,
            latest: Tournament::new(lanes),
            now: 0,
            room,
            by_precedence,
            early,
            seed,
            backlog: Backlog::default(),
            counters: PacketCounters::default(),
        }
    }

    fn lane(&self, packet: &Packet) -> usize {
        let header = packet.header();
        let (source, destination) = (folded(header.source), folded(header.destination));
        // Later fragments have no ports, so no fragment uses them: all fragments of a packet share
        // a lane.
        let ports = header.ports.filter(|_| !header.fragment);
        let ports = ports.map_or(0, |(from, to)| u64::from(from) << 16 | u64::from(to));
        let mut hash = mixed(self.seed ^ source);
        hash = mixed(hash ^ destination);
        hash = mixed(hash ^ ports ^ u64::from(header.protocol) << 32);
        usize::try_from((u128::from(hash) * u128::from(self.places)) >> 64).unwrap_or(0)
    }

    fn steps(&self, packet: &Packet) -> u128 {
        let precedence = if self.by_precedence { packet.dscp().number() >> 3 } else { 0 };
        packet.length() as u128 * WEIGHT / (u128::from(precedence) + 1)
    }

    /// The lane whose last packet has the latest finish time.
    fn last(&self) -> Option<(usize, u128)> {
        let lane = self.latest.least()?;
        Some((lane, self.lanes.back_key(lane)?))
    }

    fn settle(&mut self, now: Time, lane: usize) {
        self.latest.set(lane, self.lanes.back_key(lane).map(|key| !key));
        self.counters.depth.set(now, self.backlog.packets, self.backlog.octets);
    }

    fn drop(&mut self, packet: Packet, cause: Cause, discarded: &mut Discarded) {
        self.counters.dropped(packet.dscp(), packet.length(), cause);
        discarded.push((packet, cause));
    }
}

/// An address as 64 bits.
fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => u64::from(u32::from(v4)),
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            (bits >> 64) as u64 ^ mixed(bits as u64)
        }
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on all bits of the argument.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Discipline for FairFlows {
    fn push(&mut self, now: Time, mut packet: Packet, _: &FlowTables, discarded: &mut Discarded) {
        self.counters.came(packet.dscp(), packet.length());
        let waiting = self.backlog.packets;
        let disposition = self.early.judge(now, &packet, waiting, &mut self.counters);
        if let EarlyVerdict::Drop(cause) = disposition {
            self.drop(packet, cause, discarded);
            return;
        }
        let lane = self.lane(&packet);
        let mut start = self.lanes.back_key(lane).unwrap_or(0).max(self.now);
        while !self.room.fits(self.backlog, packet.length()) {
            let finish = start + self.steps(&packet);
            let loser = self.last().filter(|(_, latest)| *latest > finish);
            let lost = loser.and_then(|(lane, _)| Some((lane, self.lanes.take_back(lane)?.1)));
            let Some((loser, lost)) = lost else {
                self.drop(packet, Cause::Limit, discarded);
                return;
            };
            self.backlog.take(&lost);
            self.early.lost(&lost);
            self.counters.releases(now, lost.dscp(), lost.length());
            self.settle(now, loser);
            self.drop(lost, Cause::Limit, discarded);
            // The dropped packet may have been the previous packet of this lane.
            start = self.lanes.back_key(lane).unwrap_or(0).max(self.now);
        }
        self.early.kept(&mut packet, disposition, &mut self.counters);
        packet.held_since = now;
        self.counters.holds(now, packet.dscp(), packet.length());
        self.backlog.add(&packet);
        let finish = start + self.steps(&packet);
        self.lanes.push(lane, finish, packet);
        self.settle(now, lane);
    }

    fn ready(&mut self, _: Time) -> Readiness {
        let front = self.lanes.next().and_then(|lane| self.lanes.front(lane));
        front.map_or(Readiness::Empty, |packet| Readiness::Now(packet.length()))
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        let lane = self.lanes.next()?;
        let (finish, packet) = self.lanes.take_front(lane)?;
        self.now = finish;
        self.backlog.take(&packet);
        self.early.went(now, &packet, self.backlog.packets);
        self.counters.releases(now, packet.dscp(), packet.length());
        self.counters.went_after(packet.dscp(), packet.length(), now.since(packet.held_since));
        self.settle(now, lane);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "fair-flows",
            counters: &self.counters,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, number, packet};
    use dscp::Dscp;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn flows(limit: usize) -> FairFlows {
        FairFlows::new(
            256,
            QueueRoom { packets: limit, octets: usize::MAX },
            true,
            EarlyDropper::Tail,
            1,
        )
    }

    fn push(flows: &mut FairFlows, dscp: Dscp, port: u16, number: u64) -> Vec<u64> {
        let mut discarded = Vec::new();
        let came = packet(dscp, 500, port, number);
        flows.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
        discarded.iter().map(|(packet, _)| testing::number(packet)).collect()
    }

    #[test]
    fn flows_share_in_proportion_to_precedence_plus_one() {
        let mut flows = flows(10_000);
        for number in 0..1_000 {
            assert!(push(&mut flows, Dscp::CS0, 1, number).is_empty());
            assert!(push(&mut flows, Dscp::CS3, 2, number).is_empty());
        }
        let mut sent = [0_i64; 2];
        for _ in 0..1_000 {
            let packet = flows.pop(Time::ZERO).unwrap();
            let flow = usize::from(packet.dscp() == Dscp::CS3);
            assert_eq!(number(&packet) as i64, sent[flow], "in order");
            sent[flow] += 1;
            // In packets: at most 1/1 + 1/4.
            assert!((4 * sent[0] - sent[1]).abs() <= 5, "{sent:?}");
        }
        assert_eq!(sent, [200, 800]);
    }

    #[test]
    fn the_latest_finish_loses() {
        let mut flows = flows(10);
        for number in 0..10 {
            push(&mut flows, Dscp::CS0, 1, number);
        }
        assert_eq!(push(&mut flows, Dscp::CS0, 1, 10), [10], "the one that came is the latest");
        assert_eq!(push(&mut flows, Dscp::CS0, 2, 11), [9], "a new flow takes a place");
        for number in 12..40 {
            let lost = push(&mut flows, Dscp::CS4, 3, number);
            assert_eq!(lost.len(), 1);
        }
        let mut left = Vec::new();
        while let Some(packet) = flows.pop(Time::ZERO) {
            left.push((packet.dscp(), number(&packet)));
        }
        assert_eq!(left.len(), 10);
        let flash = left.iter().filter(|(dscp, _)| *dscp == Dscp::CS4).count();
        assert!((7..=8).contains(&flash), "five times as much as each of two others: {left:?}");
    }

    #[test]
    fn a_flow_whose_precedence_changes_keeps_its_order() {
        let mut flows = flows(100);
        for number in 0..40 {
            let dscp = if number % 3 == 0 { Dscp::CS4 } else { Dscp::CS0 };
            push(&mut flows, dscp, 7, number);
            push(&mut flows, Dscp::CS1, 8, 1_000 + number);
        }
        let mut of_flow = Vec::new();
        while let Some(packet) = flows.pop(Time::ZERO) {
            of_flow.extend(Some(number(&packet)).filter(|number| *number < 1_000));
        }
        assert_eq!(of_flow, (0..40).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn shares_keep_to_the_bound(
            parts in prop::collection::vec((0_u8..8, 40_usize..1_500, 40_usize..1_500), 2..=6),
            late in 0_u64..60,
        ) {
            let mut flows = FairFlows::new(4_096, QueueRoom { packets: 100_000, octets: usize::MAX }, true, EarlyDropper::Tail, 3);
            let port = |flow: usize| 1_000 + flow as u16;
            let lanes: Vec<_> =
                (0..6).map(|flow| flows.lane(&packet(Dscp::CS0, 100, port(flow), 0))).collect();
            prop_assert!((1..6).all(|n| !lanes[..n].contains(&lanes[n])), "they do not meet");
            let mut waiting = vec![0; parts.len()];
            // By flow: octets sent, divided by precedence + 1.
            let mut served = vec![0_f64; parts.len()];
            let mut spans = BTreeMap::new();
            let weight = |flow: usize| f64::from(parts[flow].0) + 1.0;
            let packet_of = |flow: usize| parts[flow].1.max(parts[flow].2) as f64 / weight(flow);
            for round in 0..300_u64 {
                for (flow, (precedence, a, b)) in parts.iter().enumerate() {
                    // The first flow begins later than the others.
                    while waiting[flow] < 2 && (flow > 0 || round >= late) {
                        let length = if round.is_multiple_of(3) { *a } else { *b };
                        let dscp = Dscp::new(precedence * 8).unwrap();
                        let came = packet(dscp, length, port(flow), flow as u64);
                        flows.push(Time::ZERO, came, &FlowTables::default(), &mut Vec::new());
                        waiting[flow] += 1;
                    }
                }
                let went = flows.pop(Time::ZERO).unwrap();
                let flow = number(&went) as usize;
                waiting[flow] -= 1;
                served[flow] += went.length() as f64 / weight(flow);
                if round < late {
                    continue;
                }
                for i in 0..parts.len() {
                    for j in 0..i {
                        let difference = served[i] - served[j];
                        let span = spans.entry((i, j)).or_insert((difference, difference));
                        *span = (span.0.min(difference), span.1.max(difference));
                        let allowed = packet_of(i) + packet_of(j);
                        prop_assert!(span.1 - span.0 <= allowed + 1e-6, "{span:?} of {allowed}");
                    }
                }
            }
        }
    }

    #[test]
    fn fragments_of_a_packet_stay_together() {
        let flows = flows(1);
        let whole = packet(Dscp::CS0, 1_400, 5_000, 1);
        let parts = crate::packet::fragment::divide(whole, 576).unwrap();
        assert!(parts.len() > 2 && parts[0].header().ports.is_some());
        let lanes: Vec<_> = parts.iter().map(|part| flows.lane(part)).collect();
        assert!(lanes.iter().all(|lane| *lane == lanes[0]), "{lanes:?}");
    }

    /// A model of the rule in plain lists: for each lane, a list of number, length and finish time.
    /// Returns the dropped packets.
    fn model_push(
        lanes: &mut [Vec<(u64, usize, u128)>],
        came: (usize, u64, usize, u128),
        virtual_now: u128,
        room: QueueRoom,
    ) -> Vec<u64> {
        let (lane, number, length, steps) = came;
        let mut lost = Vec::new();
        loop {
            let finish = lanes[lane].last().map_or(0, |last| last.2).max(virtual_now) + steps;
            let all = || lanes.iter().flatten();
            let octets: usize = all().map(|one| one.1).sum();
            if all().count() < room.packets && octets + length <= room.octets {
                lanes[lane].push((number, length, finish));
                return lost;
            }
            let latest = all().map(|one| one.2).max().unwrap_or(0);
            if latest <= finish {
                lost.push(number);
                return lost;
            }
            // Of two equal lanes, the first one.
            let loser = lanes.iter_mut().find(|lane| lane.last().is_some_and(|l| l.2 == latest));
            lost.push(loser.unwrap().pop().unwrap().0);
        }
    }

    proptest! {
        #[test]
        fn who_loses_is_as_in_plain_lists(
            packets in 1_usize..12,
            octets in 500_usize..9_000,
            ops in prop::collection::vec((0_u16..5, 0_u8..8, 40_usize..1_500, 0_usize..3), 1..150),
        ) {
            let room = QueueRoom { packets, octets };
            let mut flows = FairFlows::new(7, room, true, EarlyDropper::Tail, 3);
            let mut lanes = vec![Vec::new(); 7];
            let mut virtual_now = 0;
            for (made, (port, precedence, length, pops)) in ops.into_iter().enumerate() {
                let made = made as u64;
                let came = packet(Dscp::new(precedence * 8).unwrap(), length, port, made);
                let steps = length as u128 * 840 / (u128::from(precedence) + 1);
                let came_to = (flows.lane(&came), made, length, steps);
                let mut discarded = Vec::new();
                flows.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
                let lost: Vec<_> = discarded.iter().map(|(packet, _)| number(packet)).collect();
                prop_assert_eq!(lost, model_push(&mut lanes, came_to, virtual_now, room));
                for _ in 0..pops {
                    let fronts = lanes.iter().enumerate();
                    let fronts = fronts.filter_map(|(n, lane)| Some((lane.first()?.2, n)));
                    let expected = fronts.min().map(|(finish, lane)| {
                        virtual_now = finish;
                        lanes[lane].remove(0).0
                    });
                    prop_assert_eq!(flows.pop(Time::ZERO).map(|packet| number(&packet)), expected);
                }
                let left: usize = lanes.iter().flatten().map(|one| one.1).sum();
                prop_assert_eq!(flows.backlog().octets, left);
            }
        }
    }

    #[test]
    fn flows_spread_over_the_lanes() {
        let flows = flows(1);
        let mut used = std::collections::BTreeSet::new();
        for port in 0..1_000 {
            used.insert(flows.lane(&packet(Dscp::CS0, 100, port, 0)));
        }
        // Of 256 lanes, 1,000 flows leave 5 empty on average.
        assert!(used.len() > 240, "{}", used.len());
    }
}
