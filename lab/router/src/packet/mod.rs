//! An IP packet inside a router, and its header fields.
//!
//! The octets begin with the IP header, without a link header. The header is read once, when the
//! packet is made. Later changes (DS field, TTL) update both the octets and the fields.

mod change;
mod compose;
pub mod fragment;
mod read;

pub use compose::{HeaderFields, checksum, compose, datagram, udp};

use crate::time::Time;
use dscp::Dscp;
use std::net::IpAddr;

/// The longest packet in octets: an IPv6 header of 40 and a payload of 65,535.
pub const MAX_LENGTH: usize = 65_575;

/// IPv6 extension headers that are read. A packet with more is forwarded, but has no ports.
pub const MAX_EXTENSIONS: usize = 8;

/// The colour of a meter (RFC 2697 2, RFC 2698 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// Conforms to the committed rate.
    #[default]
    Green,
    /// Exceeds the committed rate, within the excess burst or the peak rate.
    Yellow,
    /// Exceeds both.
    Red,
}

/// Why octets are not a packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer octets than the header.
    #[error("{0} octets, fewer than the header of this version")]
    Short(usize),
    /// An IP version that is neither 4 nor 6.
    #[error("IP version {0}")]
    Version(u8),
    /// IPv4: an invalid header length, in words of 32 bits.
    #[error("a header of {0} words of 32 bits (RFC 791 3.1: at least 5)")]
    HeaderLength(u8),
    /// IPv4: a wrong header checksum (RFC 791 3.1).
    #[error("the header's checksum is wrong")]
    Checksum,
    /// The length in the header exceeds the number of octets, or is below that of the header.
    #[error("the header states {stated} octets, there are {there}")]
    Length {
        /// The length that the header states, header included.
        stated: usize,
        /// The number of octets.
        there: usize,
    },
    /// IPv4: a fragment that ends beyond octet 65,535 of its packet.
    #[error("a fragment that ends at octet {0} of its packet (RFC 791 3.1: at most 65,535)")]
    Fragment(usize),
    /// IPv6: hop-by-hop options with a payload length of 0. This is a jumbogram (RFC 2675), which
    /// is not supported.
    #[error("a jumbogram")]
    Jumbogram,
}

/// The header fields that classifiers can test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The transport protocol, after any IPv6 extension headers. If these cannot be read to their
    /// end (a later fragment, a truncated header, more than [`MAX_EXTENSIONS`]), the number of the
    /// first header that was not read.
    pub protocol: u8,
    /// Source and destination port of TCP, UDP, DCCP, SCTP and UDP-Lite; none in a later fragment,
    /// or if the packet ends before them.
    pub ports: Option<(u16, u16)>,
    /// Whether the packet is one of several fragments.
    pub fragment: bool,
    /// Whether the packet is a fragment other than the first.
    pub later_fragment: bool,
    /// Offset of the header `protocol` in octets; at most the length of the packet.
    pub transport: usize,
    /// The DSCP (RFC 2474 3).
    pub dscp: Dscp,
    /// The ECN field, 0 to 3 (RFC 3168 5).
    pub ecn: u8,
    /// Time to live, or hop limit of IPv6.
    pub ttl: u8,
}

/// A packet in the router.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) octets: Vec<u8>,
    pub(crate) header: PacketHeader,
    /// The input interface: its position in the router's list.
    pub interface: usize,
    /// The time at which it arrived at this router.
    pub arrived: Time,
    /// When the part that holds it now accepted it; from this the part computes the delay.
    pub held_since: Time,
    /// The colour of the last meter; `None` before any meter.
    pub colour: Option<Colour>,
}

impl Packet {
    /// Its length in octets: IP header included, link header not.
    pub fn length(&self) -> usize {
        self.octets.len()
    }

    /// Its header fields.
    pub fn header(&self) -> &PacketHeader {
        &self.header
    }

    /// Its current DSCP.
    pub fn dscp(&self) -> Dscp {
        self.header.dscp
    }

    /// Its octets, as they would be sent now.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Its octets, to send them or to use their memory again.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}

#[cfg(test)]
mod tests;
