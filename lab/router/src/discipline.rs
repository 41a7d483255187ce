//! The contract of a queueing discipline: it holds the packets that wait for an interface and
//! selects the next. Schedulers and shapers hold other disciplines; queues hold packets.

use crate::classify::FlowTables;
use crate::count::{Cause, PartCounters};
use crate::packet::Packet;
use crate::time::Time;

/// When a discipline can release a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It holds no packet.
    Empty,
    /// A shaper holds the next packet until this time, unless another packet becomes ready first.
    At(Time),
    /// Now. The next packet has this length in octets.
    Now(usize),
}

/// The packets that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// Octets, IP headers included.
    pub octets: usize,
}

/// Dropped packets, each with its cause. The router returns them to the caller, which uses their
/// memory again or records the drops.
pub type Discarded = Vec<(Packet, Cause)>;

/// A queue, a scheduler of disciplines, or a shaper of one.
///
/// Every packet that is pushed comes out once: from `pop`, or in `discarded`, which may receive
/// another packet than the one pushed. `pop` returns a packet if and only if `ready` at the same
/// time returns [`Readiness::Now`], and the packet has the announced length. Between two calls, only
/// `push` and the time change the answer.
pub trait Discipline: std::fmt::Debug + Send {
    /// Queues a packet, or drops it or another one.
    fn push(&mut self, now: Time, packet: Packet, tables: &FlowTables, discarded: &mut Discarded);

    /// The time at which the next packet can leave.
    fn ready(&mut self, now: Time) -> Readiness;

    /// Removes the next packet, if one can leave now.
    fn pop(&mut self, now: Time) -> Option<Packet>;

    /// The packets that wait in it.
    fn backlog(&self) -> Backlog;

    /// Appends its counters, and those of the parts inside it, with `path` as the first part of
    /// their paths.
    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>);
}
