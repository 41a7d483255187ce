//! What every traffic conditioner keeps to (RFC 2475 2.3.3): it passes a packet, drops it, or holds
//! it for a while.

use crate::classify::Tables;
use crate::count::{Cause, Part};
use crate::packet::Packet;
use crate::time::Time;

/// What became of a packet.
#[derive(Debug)]
pub enum Verdict {
    /// It goes on, perhaps changed.
    Pass(Packet),
    /// It goes no further.
    Drop(Packet, Cause),
    /// It is held, and comes out of [`Conditioner::release`] later.
    Hold,
}

/// A step of a chain: meters, markers, policers, per-flow shapers.
pub trait Conditioner: std::fmt::Debug + Send {
    /// Takes a packet. The tables are those of the moment: they may change between two packets.
    fn take(&mut self, now: Time, packet: Packet, tables: &Tables) -> Verdict;

    /// The tables have changed, which may change when held packets go.
    fn follow(&mut self, _now: Time, _tables: &Tables) {}

    /// A packet whose time has come; the caller asks until there is none.
    fn release(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    /// When the next held packet may go; `None` where none is held.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Packets held now.
    fn held(&self) -> usize {
        0
    }

    /// Adds its counters, and those of the parts inside, under this path.
    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>);
}
