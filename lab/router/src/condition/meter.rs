//! Meters with an action for each colour: pass, drop (a policer) or mark.

use super::per_flow::PerFlow;
use super::{Selector, mark, profile};
use crate::classify::FlowTables;
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::meter::{Bucket, ColourMeter, assured, came_with, drop_precedence};
use crate::packet::{Colour, Packet};
use crate::policy::MeterAction;
use crate::time::Time;
use dscp::Dscp;

/// Meters the packets of a class as one aggregate.
#[derive(Debug)]
pub(super) struct ClassMeter {
    class: Selector,
    meter: ColourMeter,
    /// For green, yellow and red packets.
    actions: [MeterAction; 3],
    counters: PacketCounters,
}

impl ClassMeter {
    pub(super) fn new(
        class: Selector,
        meter: ColourMeter,
        actions: [MeterAction; 3],
    ) -> ClassMeter {
        ClassMeter { class, meter, actions, counters: PacketCounters::default() }
    }
}

impl Conditioner for ClassMeter {
    fn take(&mut self, now: Time, packet: Packet, tables: &FlowTables) -> PacketVerdict {
        if !self.class.takes(&packet, tables) {
            return PacketVerdict::Pass(packet);
        }
        let colour = self.meter.colour(now, packet.length() as u64, came_with(&packet));
        let [green, yellow, red] = self.actions;
        let action = match colour {
            Colour::Green => green,
            Colour::Yellow => yellow,
            Colour::Red => red,
        };
        act(&mut self.counters, packet, colour, action)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "meter", counters: &self.counters });
    }
}

/// Meters each flow of a table separately.
#[derive(Debug)]
pub(super) struct MeterFlows {
    table: usize,
    /// Each bucket with the revision of the flow for which it was created or changed.
    buckets: PerFlow<(u64, Bucket)>,
    /// For green and red packets.
    actions: [MeterAction; 2],
    counters: PacketCounters,
}

impl MeterFlows {
    pub(super) fn new(table: usize, actions: [MeterAction; 2]) -> MeterFlows {
        let (buckets, counters) = (PerFlow::default(), PacketCounters::default());
        MeterFlows { table, buckets, actions, counters }
    }
}

impl Conditioner for MeterFlows {
    fn take(&mut self, now: Time, packet: Packet, tables: &FlowTables) -> PacketVerdict {
        let found = tables.look_up(self.table, &packet);
        let Some((found, (rate, burst))) = found.and_then(|is| Some((is, profile(is.flow)?)))
        else {
            return PacketVerdict::Pass(packet);
        };
        let revision = found.revision;
        let bucket =
            self.buckets.get_or_insert_with(&found, || (revision, Bucket::new(rate, burst)));
        let within = bucket.is_some_and(|(last, bucket)| {
            if *last != revision {
                *last = revision;
                bucket.change(now, rate, burst);
            }
            bucket.take(now, packet.length() as u64)
        });
        let [green, red] = self.actions;
        let (colour, action) = if within { (Colour::Green, green) } else { (Colour::Red, red) };
        act(&mut self.counters, packet, colour, action)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "meter-flows",
            counters: &self.counters,
        });
    }
}

/// Applies the action for this colour to the packet, and counts it.
///
/// A packet that passes unmarked keeps the worse of its previous colour and this colour, so a
/// colour-blind policer never promotes a packet. A marked packet takes the colour of its new drop
/// precedence; if its new code point has none, it takes the colour of this meter.
fn act(
    counters: &mut PacketCounters,
    mut packet: Packet,
    colour: Colour,
    action: MeterAction,
) -> PacketVerdict {
    counters.came(packet.dscp(), packet.length());
    let dscp = match action {
        MeterAction::Pass => None,
        MeterAction::Drop => {
            counters.dropped(packet.dscp(), packet.length(), Cause::Policed);
            return PacketVerdict::Drop(packet, Cause::Policed);
        }
        MeterAction::Mark(dscp) => Some(dscp),
        MeterAction::DropPrecedence => {
            assured(&packet).and_then(|(class, _)| Dscp::assured(class, drop_precedence(colour)))
        }
    };
    match dscp {
        None => packet.colour = Some(colour.max(came_with(&packet))),
        Some(dscp) => {
            mark(counters, &mut packet, dscp);
            packet.colour = assured(&packet).is_none().then_some(colour);
        }
    }
    counters.went(packet.dscp(), packet.length());
    PacketVerdict::Pass(packet)
}
