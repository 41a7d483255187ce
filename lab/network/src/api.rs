//! What goes into a network and what comes out of it.

use crate::plan::PortId;
use router::Time;

/// A host: its place among the hosts in the order of their names, which is its place in
/// [`crate::Plan::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub usize);

/// What happens to a network.
#[derive(Debug)]
pub enum Input {
    /// A host sends a packet out of one of its ports.
    Packet {
        /// The host.
        host: HostId,
        /// The port's place among the host's, in the order of their names.
        port: usize,
        /// The packet, from its IP header on.
        octets: Vec<u8>,
    },
    /// Time has passed.
    Tick,
    /// Copies of what passes a port are wanted from now on, or no longer.
    Tap {
        /// The port, of any node.
        port: PortId,
        /// Whether they are wanted.
        on: bool,
    },
}

/// Which way a packet passes a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Into the node: the whole packet has come.
    In,
    /// Out of it: the line begins to send it.
    Out,
}

/// What a network wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet has come to a host.
    Deliver {
        /// The host.
        host: HostId,
        /// The port's place among the host's.
        port: usize,
        /// The packet.
        octets: Vec<u8>,
        /// When it came: not after the time of the last input.
        at: Time,
    },
    /// The packet that was in here is no more; its memory may be used again.
    Recycle(Vec<u8>),
    /// A packet passes a port that is tapped.
    Tap {
        /// The port.
        port: PortId,
        /// Which way.
        direction: Direction,
        /// When: not after the time of the last input.
        at: Time,
        /// A copy of the packet.
        octets: Vec<u8>,
    },
}
