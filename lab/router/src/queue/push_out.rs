//! Push-out. If a packet arrives at a full queue, the last packet of the lowest code point is
//! dropped, if that code point is lower than that of the arriving packet. The order of the others
//! remains. If lower packets would not free enough octets, none of them is dropped.
//!
//! Each code point has a lane whose key is the order of arrival, so each arrival and departure
//! costs O(log 64), whatever waits.

use super::QueueRoom;
use super::lanes::Lanes;
use crate::classify::FlowTables;
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::discipline::{Backlog, Discarded, Discipline, Readiness};
use crate::packet::Packet;
use crate::policy::Push;
use crate::time::Time;
use dscp::Dscp;

/// The number of code points, and so of ranks.
const RANKS: usize = 64;

/// A FIFO queue with push-out.
#[derive(Debug)]
pub(crate) struct PushOut {
    lanes: Lanes,
    /// Ranks by code point; 0 is the lowest.
    ranks: [u8; RANKS],
    /// Waiting packets by rank.
    waiting: [Backlog; RANKS],
    backlog: Backlog,
    room: QueueRoom,
    came: u128,
    counters: PacketCounters,
}

impl PushOut {
    /// An empty queue.
    pub(crate) fn new(room: QueueRoom, push: &Push) -> PushOut {
        PushOut {
            lanes: Lanes::new(RANKS),
            ranks: ranks(&push.lowest_first),
            waiting: [Backlog::default(); RANKS],
            backlog: Backlog::default(),
            room,
            came: 0,
            counters: PacketCounters::default(),
        }
    }

    fn rank(&self, packet: &Packet) -> usize {
        self.ranks.get(usize::from(packet.dscp().number())).copied().unwrap_or(0).into()
    }

    /// Whether a packet of this rank and length fits if all lower packets are dropped.
    fn could_fit(&self, rank: usize, length: usize) -> bool {
        let mut left = self.backlog;
        for lower in self.waiting.iter().take(rank) {
            left.packets = left.packets.saturating_sub(lower.packets);
            left.octets = left.octets.saturating_sub(lower.octets);
        }
        self.room.fits(left, length)
    }

    /// Removes the last packet of the lowest rank.
    fn push_out(&mut self) -> Option<Packet> {
        let lowest = self.waiting.iter().position(|waiting| waiting.packets > 0)?;
        let (_, packet) = self.lanes.take_back(lowest)?;
        self.took(lowest, &packet);
        Some(packet)
    }

    fn took(&mut self, rank: usize, packet: &Packet) {
        self.backlog.take(packet);
        if let Some(waiting) = self.waiting.get_mut(rank) {
            waiting.take(packet);
        }
    }
}

/// Ranks by code point. LE is lowest (RFC 8622 4) unless it is named; then the named code points in
/// their order; then the others in the order of their numbers.
fn ranks(lowest_first: &[Dscp]) -> [u8; RANKS] {
    let lower_effort = (!lowest_first.contains(&Dscp::LE)).then_some(Dscp::LE);
    let named = lower_effort.into_iter().chain(lowest_first.iter().copied());
    let others = (0..64)
        .filter_map(Dscp::new)
        .filter(|dscp| *dscp != Dscp::LE && !lowest_first.contains(dscp));
    let mut ranks = [0; RANKS];
    for (dscp, rank) in named.chain(others).zip(0..) {
        if let Some(place) = ranks.get_mut(usize::from(dscp.number())) {
            *place = rank;
        }
    }
    ranks
}

impl Discipline for PushOut {
    fn push(&mut self, now: Time, mut packet: Packet, _: &FlowTables, discarded: &mut Discarded) {
        let (dscp, length, rank) = (packet.dscp(), packet.length(), self.rank(&packet));
        self.counters.came(dscp, length);
        if !self.room.fits(self.backlog, length) {
            if !self.could_fit(rank, length) {
                self.counters.dropped(dscp, length, Cause::Tail);
                discarded.push((packet, Cause::Tail));
                return;
            }
            while !self.room.fits(self.backlog, length) {
                let Some(out) = self.push_out() else { break };
                self.counters.releases(now, out.dscp(), out.length());
                self.counters.dropped(out.dscp(), out.length(), Cause::PushedOut);
                discarded.push((out, Cause::PushedOut));
            }
        }
        packet.held_since = now;
        self.counters.holds(now, dscp, length);
        self.backlog.add(&packet);
        if let Some(waiting) = self.waiting.get_mut(rank) {
            waiting.add(&packet);
        }
        self.came += 1;
        self.lanes.push(rank, self.came, packet);
        self.counters.depth.set(now, self.backlog.packets, self.backlog.octets);
    }

    fn ready(&mut self, _: Time) -> Readiness {
        let front = self.lanes.next().and_then(|rank| self.lanes.front(rank));
        front.map_or(Readiness::Empty, |packet| Readiness::Now(packet.length()))
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        let rank = self.lanes.next()?;
        let (_, packet) = self.lanes.take_front(rank)?;
        self.took(rank, &packet);
        self.counters.releases(now, packet.dscp(), packet.length());
        self.counters.went_after(packet.dscp(), packet.length(), now.since(packet.held_since));
        self.counters.depth.set(now, self.backlog.packets, self.backlog.octets);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "push-out",
            counters: &self.counters,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{number, packet};
    use proptest::prelude::*;

    /// A model of the rule, as a plain list.
    fn model_push(
        list: &mut Vec<(u64, u8, usize)>,
        came: (u64, u8, usize),
        room: QueueRoom,
    ) -> Vec<u64> {
        let fits = |list: &[(u64, u8, usize)]| {
            list.len() < room.packets
                && list.iter().map(|one| one.2).sum::<usize>() + came.2 <= room.octets
        };
        let (mut out, mut left) = (Vec::new(), list.clone());
        while !fits(&left) {
            let lowest = left.iter().map(|one| one.1).min().filter(|rank| *rank < came.1);
            let Some(lowest) = lowest else { return vec![came.0] };
            let place = left.iter().rposition(|one| one.1 == lowest).unwrap();
            out.push(left.remove(place).0);
        }
        left.push(came);
        *list = left;
        out
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(
            packets in 1_usize..9,
            octets in 50_usize..4_000,
            ops in prop::collection::vec((0_u8..5, 40_usize..1_500, 0_usize..3), 1..120),
        ) {
            let room = QueueRoom { packets, octets };
            let lowest_first = vec![Dscp::CS3, Dscp::CS0];
            let mut queue = PushOut::new(room, &Push { lowest_first });
            let mut list = Vec::new();
            for (made, (class, length, pops)) in ops.into_iter().enumerate() {
                let dscp = Dscp::new(class * 8).unwrap();
                // CS3 lowest, then CS0, CS1, CS2, CS4.
                let rank = [1, 2, 3, 0, 4][usize::from(class)];
                let made = made as u64;
                let mut discarded = Vec::new();
                let came = packet(dscp, length, 1, made);
                queue.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
                let out: Vec<_> = discarded.iter().map(|(packet, _)| number(packet)).collect();
                prop_assert_eq!(out, model_push(&mut list, (made, rank, length), room));
                for _ in 0..pops {
                    let popped = queue.pop(Time::ZERO).map(|packet| number(&packet));
                    let expected = (!list.is_empty()).then(|| list.remove(0).0);
                    prop_assert_eq!(popped, expected);
                }
                prop_assert_eq!(queue.backlog().packets, list.len());
            }
        }
    }

    #[test]
    fn code_points_that_are_not_named_stand_above() {
        let ranks = ranks(&[Dscp::EF, Dscp::LE]);
        assert_eq!((ranks[46], ranks[1], ranks[0], ranks[2], ranks[63]), (0, 1, 2, 3, 63));
        let ranks = super::ranks(&[Dscp::CS0, Dscp::EF]);
        assert_eq!(
            (ranks[1], ranks[0], ranks[46], ranks[2]),
            (0, 1, 2, 3),
            "LE is pushed out first"
        );
    }
}
