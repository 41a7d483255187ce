//! An IP packet on its way through, and what a router may know of it.
//!
//! The octets begin with the IP header; whatever link carries them has none here. Everything is
//! read once, when the packet is made; what changes later (DS field, TTL) changes both.

mod change;
mod compose;
pub mod fragment;
mod read;

pub use compose::{Fields, checksum, compose, datagram, udp};

use crate::time::Time;
use dscp::Dscp;
use std::net::IpAddr;

/// The longest packet there can be, in octets: of IPv6, 40 and a payload of 65,535.
pub const MAX_LENGTH: usize = 65_575;

/// IPv6 extension headers that are walked; who has more is forwarded, but shows no ports.
pub const MAX_EXTENSIONS: usize = 8;

/// What a meter found (RFC 2697 2, RFC 2698 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// Within the committed rate.
    #[default]
    Green,
    /// Above the committed, within the excess or peak rate.
    Yellow,
    /// Above both.
    Red,
}

/// Why octets are no packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Shorter than its header.
    #[error("{0} octets, fewer than the header of this version")]
    Short(usize),
    /// Neither 4 nor 6.
    #[error("IP version {0}")]
    Version(u8),
    /// Of IPv4, the header length in 32-bit words.
    #[error("a header of {0} words of 32 bits (RFC 791 3.1: at least 5)")]
    HeaderLength(u8),
    /// Of IPv4, RFC 791 3.1.
    #[error("the header's checksum is wrong")]
    Checksum,
    /// The length in the header is not that of the octets.
    #[error("the header says {said} octets, there are {there}")]
    Length {
        /// What the header says, its own included.
        said: usize,
        /// What there is.
        there: usize,
    },
    /// Of IPv4, a fragment that would end behind the longest packet there is.
    #[error("a fragment that ends at octet {0} of its packet (RFC 791 3.1: at most 65,535)")]
    Fragment(usize),
    /// Of IPv6, hop-by-hop options where the length says that there is nothing: a jumbogram (RFC 2675),
    /// which is not taken.
    #[error("a jumbogram")]
    Jumbogram,
}

/// The fields a classifier may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The transport protocol, behind any IPv6 extension headers. Where these cannot be walked to
    /// their end (a fragment but the first, one cut off, more than [`MAX_EXTENSIONS`]), the number of
    /// the first header that was not walked.
    pub protocol: u8,
    /// Source and destination port of TCP, UDP, DCCP, SCTP and UDP-Lite; none in a fragment but the
    /// first, or where it has no room for them.
    pub ports: Option<(u16, u16)>,
    /// Whether it is a fragment: one of several that make up a packet.
    pub fragment: bool,
    /// Whether it is a fragment, and not the first of its packet.
    pub later_fragment: bool,
    /// Where `protocol` begins, in octets; at most the packet's length.
    pub transport: usize,
    /// The code point (RFC 2474 3).
    pub dscp: Dscp,
    /// The two bits beside it (RFC 3168 5).
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

/// A packet in the router.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) octets: Vec<u8>,
    pub(crate) header: Header,
    /// The interface it came in at: its place in the router's list.
    pub interface: usize,
    /// When it came into this router.
    pub arrived: Time,
    /// When the part that holds it now took it; for that part's delay.
    pub held_since: Time,
    /// The colour some meter gave it; `None` where none has looked.
    pub colour: Option<Colour>,
}

impl Packet {
    /// Its length in octets, IP header included, link header not.
    pub fn length(&self) -> usize {
        self.octets.len()
    }

    /// What can be read of it.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The code point it bears now.
    pub fn dscp(&self) -> Dscp {
        self.header.dscp
    }

    /// The octets as they would be sent now.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The octets, for the interface that sends them, or to use the memory again.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}

#[cfg(test)]
mod tests;
