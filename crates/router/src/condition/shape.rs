//! Shapes all packets of a class together.

use super::Selector;
use super::queue::{Offer, Queue, Room};
use crate::classify::Tables;
use crate::conditioner::{Conditioner, Verdict};
use crate::count::{Cause, Counters, Part};
use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{Octets, Wrong};
use crate::time::{Rate, Time};

/// One bucket, one queue.
#[derive(Debug)]
pub(super) struct Shape {
    class: Selector,
    queue: Queue,
    room: Room,
    counters: Counters,
}

impl Shape {
    pub(super) fn new(
        class: Selector,
        rate: Rate,
        burst: Octets,
        limit: usize,
        path: &str,
    ) -> Result<Shape, Wrong> {
        let room = Room::new(limit, None, path)?;
        let queue = Queue::new(Bucket::new(rate, burst.0));
        Ok(Shape { class, queue, room, counters: Counters::default() })
    }

    fn settle(&mut self, now: Time) {
        self.counters.depth.set(now, self.queue.len(), self.queue.octets() as usize);
    }
}

impl Conditioner for Shape {
    fn take(&mut self, now: Time, packet: Packet, tables: &Tables) -> Verdict {
        if !self.class.takes(&packet, tables) {
            return Verdict::Pass(packet);
        }
        let (dscp, length) = (packet.dscp(), packet.length());
        self.counters.came(dscp, length);
        match self.queue.offer(now, packet, self.room, false) {
            Offer::Goes(packet) => {
                self.counters.went_after(dscp, length, 0);
                Verdict::Pass(packet)
            }
            Offer::Waits { .. } => {
                self.settle(now);
                Verdict::Hold
            }
            Offer::Full(packet) => {
                self.counters.dropped(dscp, length, Cause::ShaperFull);
                Verdict::Drop(packet, Cause::ShaperFull)
            }
        }
    }

    fn release(&mut self, now: Time) -> Option<Packet> {
        if self.queue.due()? > now {
            return None;
        }
        let packet = self.queue.pop()?;
        let waited = now.since(packet.held_since);
        self.counters.went_after(packet.dscp(), packet.length(), waited);
        self.settle(now);
        Some(packet)
    }

    fn deadline(&self) -> Option<Time> {
        self.queue.due()
    }

    fn held(&self) -> usize {
        self.queue.len()
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "shape", counters: &self.counters });
    }
}
