//! Meters with an action for each colour: pass, drop (a policer) or mark.

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

/// Meters the packets of a class as one aggregate.
#[derive(Debug)]
pub(super) struct Metered {
    class: Selector,
    meter: Meter,
    /// For green, yellow and red packets.
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

/// Meters each flow of a table separately.
#[derive(Debug)]
pub(super) struct MeterFlows {
    table: usize,
    /// Each bucket with the revision of the flow for which it was created or changed.
    buckets: PerFlow<(u64, Bucket)>,
    /// For green and red packets.
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

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "meter-flows", counters: &self.counters });
    }
}

/// Applies the action for this colour to the packet, and counts it.
///
/// A packet that passes unmarked keeps the worse of its previous colour and this colour, so a
/// colour-blind policer never promotes a packet. A marked packet takes the colour of its new drop
/// precedence; if its new code point has none, it takes the colour of this meter.
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
