//! A single queue, first in, first out. Packets that its dropper selects or that do not fit are
//! dropped on arrival.

use super::{EarlyDropper, EarlyVerdict, QueueRoom};
use crate::classify::FlowTables;
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::discipline::{Backlog, Discarded, Discipline, Readiness};
use crate::packet::Packet;
use crate::time::Time;
use std::collections::VecDeque;

/// A FIFO queue with a dropper.
#[derive(Debug)]
pub(crate) struct Fifo {
    packets: VecDeque<Packet>,
    backlog: Backlog,
    room: QueueRoom,
    early: EarlyDropper,
    counters: PacketCounters,
}

impl Fifo {
    /// An empty queue.
    pub(crate) fn new(room: QueueRoom, early: EarlyDropper) -> Fifo {
        Fifo {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
            room,
            early,
            counters: PacketCounters::default(),
        }
    }
}

impl Discipline for Fifo {
    fn push(&mut self, now: Time, mut packet: Packet, _: &FlowTables, discarded: &mut Discarded) {
        let (dscp, length) = (packet.dscp(), packet.length());
        self.counters.came(dscp, length);
        let judged = self.early.judge(now, &packet, self.backlog.packets, &mut self.counters);
        let disposition = match judged {
            EarlyVerdict::Keep | EarlyVerdict::Mark if !self.room.fits(self.backlog, length) => {
                EarlyVerdict::Drop(Cause::Tail)
            }
            disposition => disposition,
        };
        if let EarlyVerdict::Drop(cause) = disposition {
            self.counters.dropped(dscp, length, cause);
            discarded.push((packet, cause));
            return;
        }
        self.early.kept(&mut packet, disposition, &mut self.counters);
        packet.held_since = now;
        self.counters.holds(now, dscp, length);
        self.backlog.add(&packet);
        self.packets.push_back(packet);
        self.counters.depth.set(now, self.backlog.packets, self.backlog.octets);
    }

    fn ready(&mut self, _: Time) -> Readiness {
        self.packets.front().map_or(Readiness::Empty, |packet| Readiness::Now(packet.length()))
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog.take(&packet);
        self.early.went(now, &packet, self.backlog.packets);
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
            kind: self.early.kind(),
            counters: &self.counters,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{number, packet};
    use dscp::Dscp;
    use std::time::Duration;

    fn fifo(packets: usize, octets: usize) -> Fifo {
        Fifo::new(QueueRoom { packets, octets }, EarlyDropper::Tail)
    }

    fn push(fifo: &mut Fifo, length: usize, number: u64) -> Discarded {
        let mut discarded = Vec::new();
        let now = Time::ZERO;
        fifo.push(now, packet(Dscp::EF, length, 1, number), &FlowTables::default(), &mut discarded);
        discarded
    }

    #[test]
    fn what_does_not_fit_is_dropped_at_the_tail() {
        let mut fifo = fifo(3, 1_000);
        assert_eq!(fifo.ready(Time::ZERO), Readiness::Empty);
        assert!(push(&mut fifo, 400, 1).is_empty());
        assert!(push(&mut fifo, 600, 2).is_empty(), "just fits");
        let dropped = push(&mut fifo, 40, 3);
        assert_eq!((number(&dropped[0].0), dropped[0].1), (3, Cause::Tail));
        assert_eq!(fifo.ready(Time::ZERO), Readiness::Now(400));
        assert_eq!(number(&fifo.pop(Time::ZERO).unwrap()), 1);
        assert!(push(&mut fifo, 40, 4).is_empty() && push(&mut fifo, 40, 5).is_empty());
        assert_eq!(push(&mut fifo, 40, 6).len(), 1, "three packets are the limit");
        assert_eq!(fifo.backlog(), Backlog { packets: 3, octets: 680 });
    }

    #[test]
    fn it_counts_depth_and_delay() {
        let mut fifo = fifo(9, 9_000);
        push(&mut fifo, 500, 1);
        let later = Time::ZERO + Duration::from_millis(3);
        fifo.pop(later).unwrap();
        assert!(fifo.pop(later).is_none());
        let mut parts = Vec::new();
        fifo.report("wan", &mut parts);
        let counters = parts[0].counters;
        assert_eq!(counters.row(Dscp::EF).went.octets, 500);
        assert_eq!(counters.delays(Dscp::EF).unwrap().max_ns(), 3_000_000);
        assert_eq!((counters.depth.most().octets, counters.depth.now().octets), (500, 0));
    }
}
