//! A DiffServ router (RFC 2475) as one machine without a clock.
//!
//! ```text
//!  packet in ─▶ input conditioners ─▶ route ─▶ output conditioners ─▶ queueing ─▶ packet out
//!               classify, meter,               classify, meter,       a tree of schedulers and
//!               mark, police, shape            mark, police, shape    shapers over queues with
//!                                                                     their droppers
//! ```
//!
//! A [`Conditioner`] passes, drops or delays a packet. A [`Discipline`] holds the packets that wait
//! for an interface and selects the next. Both are built from a [`policy`], which is data. Time and
//! seeds are arguments: nothing here reads a clock, a socket or a random generator of the system.

pub mod classify;
pub mod condition;
pub mod conditioner;
pub mod count;
pub mod discipline;
pub mod icmp;
pub mod meter;
pub mod packet;
pub mod policy;
pub mod queue;
pub mod queueing;
pub mod router;
mod schedule;
mod shaper;
#[cfg(test)]
mod testing;
pub mod time;

pub use base::rng::Rng;
pub use classify::{Classifier, FlowTables};
pub use conditioner::{Conditioner, PacketVerdict};
pub use count::{Cause, PacketCounters};
pub use discipline::{Backlog, Discarded, Discipline, Readiness};
pub use packet::{Colour, Malformed, Packet, PacketHeader};
pub use router::{InterfaceRoute, InterfaceSetup, Router, RouterSetup};
pub use time::{Rate, Time};
