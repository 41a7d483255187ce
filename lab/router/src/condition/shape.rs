//! Shapes the packets of a class as one aggregate.

use super::Selector;
use super::queue::{HeldPackets, Leaving, Offer, ShaperQueue, ShaperRoom};
use crate::classify::FlowTables;
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{KeyFault, OctetSize};
use crate::time::{Rate, Time};
use dscp::Dscp;

/// One bucket and one queue.
///
/// The class may refer to a table that changes. If a waiting packet no longer matches the class,
/// all waiting packets leave at once. Otherwise later packets of its flow would overtake it.
#[derive(Debug)]
pub(super) struct ClassShaper {
    class: Selector,
    queue: ShaperQueue,
    room: ShaperRoom,
    leaving: Leaving,
    /// The version of the tables at the last check.
    version: u64,
    held: HeldPackets,
    counters: PacketCounters,
}

impl ClassShaper {
    pub(super) fn new(
        class: Selector,
        rate: Rate,
        burst: OctetSize,
        limit: usize,
        path: &str,
    ) -> Result<ClassShaper, KeyFault> {
        let room = ShaperRoom::new(limit, None, path)?;
        let queue = ShaperQueue::new(Bucket::new(rate, burst.0));
        Ok(ClassShaper {
            class,
            queue,
            room,
            leaving: Leaving::default(),
            version: 0,
            held: HeldPackets::default(),
            counters: PacketCounters::default(),
        })
    }

    fn hold(&mut self, now: Time, dscp: Dscp, length: usize) -> PacketVerdict {
        self.held.add(length);
        self.counters.holds(now, dscp, length);
        self.settle(now);
        PacketVerdict::Hold
    }

    fn settle(&mut self, now: Time) {
        self.counters.depth.set(now, self.held.packets, self.held.octets);
    }

    fn full(&mut self, packet: Packet) -> PacketVerdict {
        self.counters.dropped(packet.dscp(), packet.length(), Cause::ShaperFull);
        PacketVerdict::Drop(packet, Cause::ShaperFull)
    }
}

impl Conditioner for ClassShaper {
    fn follow(&mut self, now: Time, tables: &FlowTables) {
        if tables.version() == self.version {
            return;
        }
        self.version = tables.version();
        if self.queue.waiting().iter().any(|packet| !self.class.takes(packet, tables)) {
            self.leaving.add(now, self.queue.take_waiting());
        }
    }

    fn take(&mut self, now: Time, mut packet: Packet, tables: &FlowTables) -> PacketVerdict {
        self.follow(now, tables);
        let (dscp, length) = (packet.dscp(), packet.length());
        let behind = !self.leaving.is_empty();
        if !self.class.takes(&packet, tables) {
            if !behind {
                return PacketVerdict::Pass(packet);
            }
            self.counters.came(dscp, length);
            if self.held.is_full_for(length) {
                return self.full(packet);
            }
            packet.held_since = now;
            self.leaving.add(now, [packet]);
            return self.hold(now, dscp, length);
        }
        self.counters.came(dscp, length);
        match self.queue.offer(now, packet, self.room, self.held, behind) {
            Offer::Goes(packet) => {
                self.counters.went_after(dscp, length, 0);
                PacketVerdict::Pass(packet)
            }
            Offer::Waits { .. } => self.hold(now, dscp, length),
            Offer::Full(packet) => self.full(packet),
        }
    }

    fn release(&mut self, now: Time) -> Option<Packet> {
        let packet = match self.leaving.pop(now) {
            Some(packet) => packet,
            None => {
                self.queue.due().filter(|due| *due <= now)?;
                self.queue.pop(now)?
            }
        };
        self.held.take(packet.length());
        self.counters.releases(now, packet.dscp(), packet.length());
        let waited = now.since(packet.held_since);
        self.counters.went_after(packet.dscp(), packet.length(), waited);
        self.settle(now);
        Some(packet)
    }

    fn deadline(&self) -> Option<Time> {
        self.leaving.due().or_else(|| self.queue.due())
    }

    fn held(&self) -> usize {
        self.held.packets
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "shape", counters: &self.counters });
    }
}
