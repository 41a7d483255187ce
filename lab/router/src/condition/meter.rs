//! Meters with what is done to each colour: pass, drop (a policer) or mark.

use super::per_flow::PerFlow;
use super::{Selector, mark, profile};
use crate::classify::Tables;
use crate::conditioner::{Conditioner, Verdict};
use crate::count::{Cause, Counters, Part};
use crate::meter::{Bucket, Meter, assured, came_with, drop_precedence};
use crate::packet::{Colour, Packet};
use crate::policy::Action;
use crate::time::Time;
use dscp::Dscp;

/// Meters the packets of a class together.
#[derive(Debug)]
pub(super) struct Metered {
    class: Selector,
    meter: Meter,
    /// For green, yellow and red.
    actions: [Action; 3],
    counters: Counters,
}

impl Metered {
    pub(super) fn new(class: Selector, meter: Meter, actions: [Action; 3]) -> Metered {
        Metered { class, meter, actions, counters: Counters::default() }
    }
}

impl Conditioner for Metered {
    fn take(&mut self, now: Time, packet: Packet, tables: &Tables) -> Verdict {
        if !self.class.takes(&packet, tables) {
            return Verdict::Pass(packet);
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

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "meter", counters: &self.counters });
    }
}

/// Meters each flow of a table by itself.
#[derive(Debug)]
pub(super) struct MeterFlows {
    table: usize,
    /// With the revision of the flow that each was filled for.
    buckets: PerFlow<(u64, Bucket)>,
    /// For green and red.
    actions: [Action; 2],
    counters: Counters,
}

impl MeterFlows {
    pub(super) fn new(table: usize, actions: [Action; 2]) -> MeterFlows {
        let (buckets, counters) = (PerFlow::default(), Counters::default());
        MeterFlows { table, buckets, actions, counters }
    }
}

impl Conditioner for MeterFlows {
    fn take(&mut self, now: Time, packet: Packet, tables: &Tables) -> Verdict {
        let found = tables.look_up(self.table, &packet);
        let Some((found, (rate, burst))) = found.and_then(|is| Some((is, profile(is.flow)?)))
        else {
            return Verdict::Pass(packet);
        };
        let revision = found.revision;
        let bucket = self.buckets.of(&found, || (revision, Bucket::new(rate, burst)));
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

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "meter-flows", counters: &self.counters });
    }
}

/// Does to a packet of this colour what its colour asks for, and counts it.
///
/// A packet that goes on as it is keeps the worse of the colours it came with and was found to have:
/// a policer that looks at none promotes nothing. One that is marked has the colour of its new drop
/// precedence, or that of this meter where its code point has none.
fn act(counters: &mut Counters, mut packet: Packet, colour: Colour, action: Action) -> Verdict {
    counters.came(packet.dscp(), packet.length());
    let dscp = match action {
        Action::Pass => None,
        Action::Drop => {
            counters.dropped(packet.dscp(), packet.length(), Cause::Policed);
            return Verdict::Drop(packet, Cause::Policed);
        }
        Action::Mark(dscp) => Some(dscp),
        Action::DropPrecedence => {
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
    Verdict::Pass(packet)
}
