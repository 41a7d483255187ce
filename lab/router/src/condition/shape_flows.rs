//! Shapes each flow of a table to its own rate: the premium shaper of the Bern study's edge router.

use super::profile;
use super::queue::{HeldPackets, Leaving, Offer, ShaperQueue, ShaperRoom};
use crate::classify::{FlowTables, FoundFlow, MAX_SHAPED};
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::meter::Bucket;
use crate::packet::Packet;
use crate::policy::{KeyFault, Name, RouterPolicy, Span};
use crate::time::{Rate, Time};
use dscp::Dscp;
use std::collections::BTreeSet;

/// Packets that can wait in a flow, if the policy gives no limit.
const LIMIT: usize = 100;

/// A bucket and a queue for each flow that had a packet.
///
/// Flows are added, changed and removed while packets wait. If a flow is removed or has no rate any
/// more, its waiting packets leave at once, in order. If the table has a flow of the same name with
/// a rate again, they leave at that rate. If a waiting packet now matches another flow, all packets
/// that wait with it leave at once. Otherwise later packets of that flow would overtake it.
#[derive(Debug)]
pub(super) struct ShapeFlows {
    table: usize,
    room: ShaperRoom,
    /// By slot of the flow in the table.
    flows: Vec<Option<Box<ShapedFlow>>>,
    /// For each flow with waiting packets: the time at which its first packet is due, and its slot.
    due: BTreeSet<(Time, usize)>,
    leaving: Leaving,
    /// The version of the table at the last check.
    version: u64,
    held: HeldPackets,
    counters: PacketCounters,
}

#[derive(Debug)]
struct ShapedFlow {
    number: u64,
    revision: u64,
    name: Name,
    queue: ShaperQueue,
}

impl ShapeFlows {
    pub(super) fn new(
        policy: &RouterPolicy,
        table: usize,
        delay: Option<Span>,
        limit: Option<usize>,
        path: &str,
    ) -> Result<ShapeFlows, KeyFault> {
        let room = ShaperRoom::new(limit.unwrap_or(LIMIT), delay, path)?;
        let of_table = policy.tables.values().nth(table).into_iter().flat_map(|table| &table.flows);
        let rated = of_table.filter(|flow| flow.rate.is_some()).count();
        if rated > MAX_SHAPED {
            let what = format!("{rated} flows have a rate; a shaper takes {MAX_SHAPED}");
            return Err(KeyFault::at(format!("{path}.table"), what));
        }
        Ok(ShapeFlows {
            table,
            room,
            flows: Vec::new(),
            due: BTreeSet::new(),
            leaving: Leaving::default(),
            version: 0,
            held: HeldPackets::default(),
            counters: PacketCounters::default(),
        })
    }

    /// Applies the changes of the table.
    fn take_over(&mut self, now: Time, tables: &FlowTables) {
        self.version = tables.version_of(self.table);
        let mut gone = Vec::new();
        for (slot, place) in self.flows.iter_mut().enumerate() {
            let there = tables.at(self.table, slot);
            let there = there.map(|found| (found.number, found.revision));
            gone.extend(place.take_if(|flow| Some((flow.number, flow.revision)) != there));
        }
        // Sorted, so that the order of the leaving packets is fixed.
        gone.sort_by_key(|flow| flow.number);
        for mut flow in gone {
            let again = tables.named(self.table, &flow.name);
            match again.and_then(|found| Some((found, profile(found.flow)?))) {
                Some((found, (rate, burst))) => {
                    flow.queue.bucket.change(now, rate, burst);
                    flow.queue.reckon();
                    (flow.number, flow.revision) = (found.number, found.revision);
                    if let Some(place) = place_of(&mut self.flows, found.slot) {
                        *place = Some(flow);
                    }
                }
                None => self.leaving.add(now, flow.queue.take_waiting()),
            }
        }
        self.due.clear();
        for (slot, flow) in self.flows.iter_mut().enumerate() {
            let Some(flow) = flow else { continue };
            let number = |packet| tables.look_up(self.table, packet).map(|found| found.number);
            if flow.queue.waiting().iter().any(|packet| number(packet) != Some(flow.number)) {
                self.leaving.add(now, flow.queue.take_waiting());
            }
            self.due.extend(flow.queue.due().map(|due| (due, slot)));
        }
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

    /// The first packet that is due.
    fn pop(&mut self, now: Time) -> Option<Packet> {
        let (due, slot) = *self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, slot));
        let flow = self.flows.get_mut(slot)?.as_mut()?;
        let packet = flow.queue.pop(now);
        if let Some(due) = flow.queue.due() {
            self.due.insert((due, slot));
        }
        packet
    }

    fn offer(
        &mut self,
        now: Time,
        packet: Packet,
        found: &FoundFlow<'_>,
        (rate, burst): (Rate, u64),
        behind: bool,
    ) -> Offer {
        let Some(place) = place_of(&mut self.flows, found.slot) else {
            return Offer::Full(packet);
        };
        let flow = place.get_or_insert_with(|| {
            Box::new(ShapedFlow {
                number: found.number,
                revision: found.revision,
                name: found.flow.name.clone(),
                queue: ShaperQueue::new(Bucket::new(rate, burst)),
            })
        });
        let offer = flow.queue.offer(now, packet, self.room, self.held, behind);
        if let (Offer::Waits { first: true }, Some(due)) = (&offer, flow.queue.due()) {
            self.due.insert((due, found.slot));
        }
        offer
    }
}

impl Conditioner for ShapeFlows {
    fn follow(&mut self, now: Time, tables: &FlowTables) {
        if tables.version_of(self.table) != self.version {
            self.take_over(now, tables);
        }
    }

    fn take(&mut self, now: Time, mut packet: Packet, tables: &FlowTables) -> PacketVerdict {
        self.follow(now, tables);
        let (dscp, length) = (packet.dscp(), packet.length());
        let found = tables.look_up(self.table, &packet);
        let behind = !self.leaving.is_empty();
        let shaped = found.and_then(|found| Some((found, profile(found.flow)?)));
        let Some((found, profile)) = shaped else {
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
        };
        self.counters.came(dscp, length);
        match self.offer(now, packet, &found, profile, behind) {
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
            None => self.pop(now)?,
        };
        self.held.take(packet.length());
        self.counters.releases(now, packet.dscp(), packet.length());
        self.settle(now);
        let waited = now.since(packet.held_since);
        self.counters.went_after(packet.dscp(), packet.length(), waited);
        Some(packet)
    }

    fn deadline(&self) -> Option<Time> {
        self.leaving.due().or_else(|| self.due.first().map(|(due, _)| *due))
    }

    fn held(&self) -> usize {
        self.held.packets
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "shape-flows",
            counters: &self.counters,
        });
    }
}

/// The entry for a slot, created if there is none; never `None`.
fn place_of(
    flows: &mut Vec<Option<Box<ShapedFlow>>>,
    slot: usize,
) -> Option<&mut Option<Box<ShapedFlow>>> {
    if flows.len() <= slot {
        flows.resize_with(slot + 1, || None);
    }
    flows.get_mut(slot)
}
