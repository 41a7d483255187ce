//! The contract of a traffic conditioner (RFC 2475 2.3.3): it passes a packet, drops it, or delays
//! it.

use crate::classify::FlowTables;
use crate::count::{Cause, PartCounters};
use crate::packet::Packet;
use crate::time::Time;

/// The disposition of a packet.
#[derive(Debug)]
pub enum PacketVerdict {
    /// The packet passes; its header may be changed.
    Pass(Packet),
    /// The packet is dropped, for this cause.
    Drop(Packet, Cause),
    /// The conditioner delays the packet; [`Conditioner::release`] returns it later.
    Hold,
}

/// A step of a chain: meters, markers, policers, per-flow shapers.
pub trait Conditioner: std::fmt::Debug + Send {
    /// Takes a packet. `tables` are the current ones; they can change between two packets.
    fn take(&mut self, now: Time, packet: Packet, tables: &FlowTables) -> PacketVerdict;

    /// The tables have changed, so held packets may become due earlier. Call it before the next
    /// `release`.
    fn follow(&mut self, _now: Time, _tables: &FlowTables) {}

    /// A held packet that is due. The caller repeats the call until it returns `None`.
    fn release(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    /// The time at which the next held packet is due; `None` if no packet is held.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Number of packets held now.
    fn held(&self) -> usize {
        0
    }

    /// Appends its counters, and those of the parts inside it, with `path` as the first part of
    /// their paths.
    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>);
}
