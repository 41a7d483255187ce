//! Queues: they keep packets in order and drop packets to stay within a limit.
//!
//! | File | Drops |
//! |---|---|
//! | `fifo` | arriving packets while it is full, and those that `early` selects |
//! | `push_out` | while it is full, the last packet of the lowest code point |
//! | `early` | selects one of the droppers below |
//! | `thresholds` | arriving packets while the queue is at or above their threshold |
//! | `red` | at random, by the average queue: RED and WRED |
//! | `trio` | as `red`, with a drop function and an average queue for each colour |
//! | `average` | computes the average queue for `red` and `trio` |
//!
//! `lanes` is the memory of disciplines with several queues; `tournament` finds the next of them.

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
pub(crate) use early::{EarlyDropper, EarlyVerdict};
pub(crate) use fifo::Fifo;
pub(crate) use lanes::Lanes;
pub(crate) use push_out::PushOut;
pub(crate) use red::Red;
pub(crate) use thresholds::Thresholds;
pub(crate) use tournament::Tournament;
pub(crate) use trio::Trio;

use crate::discipline::Backlog;
use crate::packet::Packet;

/// Limit of the packets in a queue.
pub const MAX_PACKETS: usize = 1_000_000;
/// Limit of the octets in a queue, whatever its policy, and in all queues of an interface together.
pub const MAX_OCTETS: u64 = 1_000_000_000;

/// The limits of a queue; both apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRoom {
    /// Packets, 1 to [`MAX_PACKETS`].
    pub(crate) packets: usize,
    /// Octets, 1 to [`MAX_OCTETS`].
    pub(crate) octets: usize,
}

impl QueueRoom {
    /// Whether another packet of this length fits.
    pub(crate) fn fits(&self, backlog: Backlog, length: usize) -> bool {
        backlog.packets < self.packets && backlog.octets.saturating_add(length) <= self.octets
    }
}

impl Backlog {
    /// Adds a packet.
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.octets += packet.length();
    }

    /// Removes a packet.
    pub(crate) fn take(&mut self, packet: &Packet) {
        self.packets = self.packets.saturating_sub(1);
        self.octets = self.octets.saturating_sub(packet.length());
    }
}

#[cfg(test)]
mod properties;
