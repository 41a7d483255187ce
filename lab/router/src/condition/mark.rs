//! Markers, and the dropper of a class (RFC 2475 2.3.3).

use super::{Selector, mark};
use crate::classify::Tables;
use crate::conditioner::{Conditioner, Verdict};
use crate::count::{Cause, Counters, Part};
use crate::packet::Packet;
use crate::time::Time;
use dscp::Dscp;

/// Sets the DSCP of the packets of a class.
#[derive(Debug)]
pub(super) struct Mark {
    class: Selector,
    dscp: Dscp,
    counters: Counters,
}

impl Mark {
    pub(super) fn new(class: Selector, dscp: Dscp) -> Mark {
        Mark { class, dscp, counters: Counters::default() }
    }
}

impl Conditioner for Mark {
    fn take(&mut self, _now: Time, mut packet: Packet, tables: &Tables) -> Verdict {
        if self.class.takes(&packet, tables) {
            self.counters.came(packet.dscp(), packet.length());
            mark(&mut self.counters, &mut packet, self.dscp);
            self.counters.went(packet.dscp(), packet.length());
        }
        Verdict::Pass(packet)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "mark", counters: &self.counters });
    }
}

/// Drops the packets of a class.
#[derive(Debug)]
pub(super) struct Drop {
    class: Selector,
    counters: Counters,
}

impl Drop {
    pub(super) fn new(class: Selector) -> Drop {
        Drop { class, counters: Counters::default() }
    }
}

impl Conditioner for Drop {
    fn take(&mut self, _now: Time, packet: Packet, tables: &Tables) -> Verdict {
        if !self.class.takes(&packet, tables) {
            return Verdict::Pass(packet);
        }
        self.counters.came(packet.dscp(), packet.length());
        self.counters.dropped(packet.dscp(), packet.length(), Cause::Refused);
        Verdict::Drop(packet, Cause::Refused)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "drop", counters: &self.counters });
    }
}

/// Sets the DSCP of the packets of each flow of a table to the one agreed for the flow.
#[derive(Debug)]
pub(super) struct MarkFlows {
    table: usize,
    counters: Counters,
}

impl MarkFlows {
    pub(super) fn new(table: usize) -> MarkFlows {
        MarkFlows { table, counters: Counters::default() }
    }
}

impl Conditioner for MarkFlows {
    fn take(&mut self, _now: Time, mut packet: Packet, tables: &Tables) -> Verdict {
        if let Some(dscp) = tables.find(self.table, &packet).and_then(|flow| flow.mark) {
            self.counters.came(packet.dscp(), packet.length());
            mark(&mut self.counters, &mut packet, dscp);
            self.counters.went(packet.dscp(), packet.length());
        }
        Verdict::Pass(packet)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>) {
        into.push(Part { path: path.to_owned(), kind: "mark-flows", counters: &self.counters });
    }
}
