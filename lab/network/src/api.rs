//! The inputs and outputs of a network.

use crate::plan::PortId;
use router::Time;

/// A host: its position among the hosts ordered by name, which is its position in
/// [`crate::NetworkPlan::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub usize);

/// An input of a network.
#[derive(Debug)]
pub enum Input {
    /// A host sends a packet by one of its ports.
    Packet {
        /// The host.
        host: HostId,
        /// The position of the port among the host's ports, ordered by name.
        port: usize,
        /// The packet, beginning with its IP header.
        octets: Vec<u8>,
    },
    /// Time has passed: a deadline is due.
    Tick,
    /// Switches the copies of packets that pass a port on or off.
    Tap {
        /// The port, of any node.
        port: PortId,
        /// `true` switches them on, `false` off.
        on: bool,
    },
}

/// The direction in which a packet passes a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TapDirection {
    /// Into the node: the whole packet has arrived.
    In,
    /// Out of the node: the line begins to send it.
    Out,
}

/// An output of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet has arrived at a host.
    Deliver {
        /// The host.
        host: HostId,
        /// The position of the port among the host's ports.
        port: usize,
        /// The packet.
        octets: Vec<u8>,
        /// The time of arrival, not after the time of the last input.
        at: Time,
    },
    /// Memory of a packet that is no longer in the network, to be used again.
    Recycle(Vec<u8>),
    /// A packet passes a tapped port.
    Tap {
        /// The port.
        port: PortId,
        /// The direction.
        direction: TapDirection,
        /// The time, not after the time of the last input.
        at: Time,
        /// A copy of the packet.
        octets: Vec<u8>,
    },
}
