//! Markers, and the dropper of a class (RFC 2475 2.3.3).

use super::{Selector, mark};
use crate::classify::FlowTables;
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::packet::Packet;
use crate::time::Time;
use dscp::Dscp;

/// Sets the DSCP of the packets of a class.
#[derive(Debug)]
pub(super) struct ClassMarker {
    class: Selector,
    dscp: Dscp,
    counters: PacketCounters,
}

impl ClassMarker {
    pub(super) fn new(class: Selector, dscp: Dscp) -> ClassMarker {
        ClassMarker { class, dscp, counters: PacketCounters::default() }
    }
}

impl Conditioner for ClassMarker {
    fn take(&mut self, _now: Time, mut packet: Packet, tables: &FlowTables) -> PacketVerdict {
        if self.class.takes(&packet, tables) {
            self.counters.came(packet.dscp(), packet.length());
            mark(&mut self.counters, &mut packet, self.dscp);
            self.counters.went(packet.dscp(), packet.length());
        }
        PacketVerdict::Pass(packet)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "mark", counters: &self.counters });
    }
}

/// Drops the packets of a class.
#[derive(Debug)]
pub(super) struct ClassDropper {
    class: Selector,
    counters: PacketCounters,
}

impl ClassDropper {
    pub(super) fn new(class: Selector) -> ClassDropper {
        ClassDropper { class, counters: PacketCounters::default() }
    }
}

impl Conditioner for ClassDropper {
    fn take(&mut self, _now: Time, packet: Packet, tables: &FlowTables) -> PacketVerdict {
        if !self.class.takes(&packet, tables) {
            return PacketVerdict::Pass(packet);
        }
        self.counters.came(packet.dscp(), packet.length());
        self.counters.dropped(packet.dscp(), packet.length(), Cause::Refused);
        PacketVerdict::Drop(packet, Cause::Refused)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: "drop", counters: &self.counters });
    }
}

/// Sets the DSCP of the packets of each flow of a table to the one agreed for the flow.
#[derive(Debug)]
pub(super) struct MarkFlows {
    table: usize,
    counters: PacketCounters,
}

impl MarkFlows {
    pub(super) fn new(table: usize) -> MarkFlows {
        MarkFlows { table, counters: PacketCounters::default() }
    }
}

impl Conditioner for MarkFlows {
    fn take(&mut self, _now: Time, mut packet: Packet, tables: &FlowTables) -> PacketVerdict {
        if let Some(dscp) = tables.find(self.table, &packet).and_then(|flow| flow.mark) {
            self.counters.came(packet.dscp(), packet.length());
            mark(&mut self.counters, &mut packet, dscp);
            self.counters.went(packet.dscp(), packet.length());
        }
        PacketVerdict::Pass(packet)
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "mark-flows",
            counters: &self.counters,
        });
    }
}
