//! What every queueing discipline keeps to: it holds what waits for an interface and says what goes
//! next. Schedulers and shapers hold other disciplines; queues hold packets.

use crate::classify::Tables;
use crate::count::{Cause, Part};
use crate::packet::Packet;
use crate::time::Time;

/// When a discipline can give a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It holds nothing.
    Empty,
    /// Not before this moment, if nothing else comes: a shaper holds it back.
    At(Time),
    /// Now; the next one has this many octets.
    Now(usize),
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// Their octets, IP headers included.
    pub octets: usize,
}

/// Packets that went no further, with why; the router hands them out, so that their memory can be
/// used again and someone can say where they went.
pub type Discarded = Vec<(Packet, Cause)>;

/// A queue, a scheduler of disciplines, or a shaper of one.
///
/// Every packet pushed comes out once: by `pop`, or in `discarded`, which may hold another packet
/// than the one that came. `pop` gives a packet if and only if `ready` at the same moment says
/// [`Ready::Now`], and then one of that length; between two calls only `push` and time change the
/// answer.
pub trait Discipline: std::fmt::Debug + Send {
    /// Takes a packet, or drops it or another.
    fn push(&mut self, now: Time, packet: Packet, tables: &Tables, discarded: &mut Discarded);

    /// Whether a packet can go now.
    fn ready(&mut self, now: Time) -> Ready;

    /// The packet that goes now.
    fn pop(&mut self, now: Time) -> Option<Packet>;

    /// All that waits inside.
    fn backlog(&self) -> Backlog;

    /// Adds its counters, and those of the parts inside, under this path.
    fn report<'a>(&'a self, path: &str, into: &mut Vec<Part<'a>>);
}
