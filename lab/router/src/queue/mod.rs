//! Queues: what holds packets in their order, and what it drops to stay within its limit.
//!
//! | File | Drops |
//! |---|---|
//! | `fifo` | what comes while it is full, and what `early` says |
//! | `push_out` | while it is full, the last packet of the lowest code point |
//! | `early` | which of the droppers below a queue has |
//! | `thresholds` | what comes while the queue is above the threshold of its code point |
//! | `red` | by chance, by the average queue: RED and WRED |
//! | `trio` | the same with a function and an average by colour |
//! | `average` | how the average is taken, for the two above |
//!
//! `lanes` is the memory of those that are several queues in one, `tournament` what finds the next
//! among them.

mod average;
mod early;
mod fifo;
mod lanes;
mod push_out;
mod red;
mod thresholds;
mod tournament;
mod trio;

pub(crate) use average::DEFAULT_EXPONENT;
pub(crate) use early::{Disposition, Early};
pub(crate) use fifo::Fifo;
pub(crate) use lanes::Lanes;
pub(crate) use push_out::PushOut;
pub(crate) use red::Red;
pub(crate) use thresholds::Thresholds;
pub(crate) use tournament::Tournament;
pub(crate) use trio::Trio;

use crate::discipline::Backlog;
use crate::packet::Packet;

/// The most packets a queue may be told to hold.
pub const MAX_PACKETS: usize = 1_000_000;
/// The most octets a queue holds, whatever its limit says; and all queues of an interface together.
pub const MAX_OCTETS: u64 = 1_000_000_000;

/// How much a queue holds: both hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Packets, 1 to [`MAX_PACKETS`].
    pub(crate) packets: usize,
    /// Octets, 1 to [`MAX_OCTETS`].
    pub(crate) octets: usize,
}

impl Room {
    /// Whether another packet of this length fits.
    pub(crate) fn fits(&self, backlog: Backlog, length: usize) -> bool {
        backlog.packets < self.packets && backlog.octets.saturating_add(length) <= self.octets
    }
}

impl Backlog {
    /// One packet more.
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.octets += packet.length();
    }

    /// One packet less.
    pub(crate) fn take(&mut self, packet: &Packet) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(packet.length());
    }
}

#[cfg(test)]
mod properties;
