//! Reads the header: IPv4 (RFC 791 3.1), and IPv6 with its extension headers (RFC 8200 3, 4).
//!
//! This parser is written by hand: a router reads every packet, and this path has no allocation and
//! no second pass. Elsewhere in the lab, `etherparse` builds and reads packets.

use super::{MAX_EXTENSIONS, Malformed, Packet, PacketHeader, compose::sum_of};
use crate::time::Time;
use dscp::Dscp;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of an IPv4 header without options.
pub(super) const V4_HEADER: usize = 20;
/// Octets of an IPv6 header.
pub(super) const V6_HEADER: usize = 40;
/// The Hop-by-Hop Options header (RFC 8200 4.3).
const HOP_BY_HOP: u8 = 0;

/// The header fields, and the length of the packet that the header states.
type Read = Result<(PacketHeader, usize), Malformed>;

impl Packet {
    /// Reads a packet from octets that begin with its IP header. Octets beyond the length in the
    /// header are cut off, because links pad short frames.
    ///
    /// # Errors
    /// The unchanged octets, and why they are not a packet that can be forwarded. Errors after the
    /// IP header cause no refusal: the packet then has no ports.
    pub fn read(
        mut octets: Vec<u8>,
        interface: usize,
        now: Time,
    ) -> Result<Packet, (Vec<u8>, Malformed)> {
        match header_of(&octets) {
            Ok((header, length)) => {
                octets.truncate(length);
                Ok(Packet {
                    octets,
                    header,
                    interface,
                    arrived: now,
                    held_since: now,
                    colour: None,
                })
            }
            Err(malformed) => Err((octets, malformed)),
        }
    }
}

fn header_of(octets: &[u8]) -> Read {
    match octets.first().map(|first| first >> 4) {
        Some(4) => v4(octets),
        Some(6) => v6(octets),
        Some(version) => Err(Malformed::Version(version)),
        None => Err(Malformed::Short(0)),
    }
}

fn v4(octets: &[u8]) -> Read {
    let Some(fixed) = octets.first_chunk::<V4_HEADER>() else {
        return Err(Malformed::Short(octets.len()));
    };
    let [first, tos, l0, l1, _, _, f0, f1, ttl, protocol, _, _, addresses @ ..] = *fixed;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    let words = first & 0xf;
    if words < 5 {
        return Err(Malformed::HeaderLength(words));
    }
    let transport = usize::from(words) * 4;
    let Some(header) = octets.get(..transport) else {
        return Err(Malformed::Short(octets.len()));
    };
    let stated = usize::from(u16::from_be_bytes([l0, l1]));
    if stated < transport || stated > octets.len() {
        return Err(Malformed::Length { stated, there: octets.len() });
    }
    // The sum over a correct header, its checksum included, is all ones (RFC 1071 1).
    if sum_of(header) != 0xffff {
        return Err(Malformed::Checksum);
    }
    let place = u16::from_be_bytes([f0, f1]);
    let (more, offset) = (place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
    let later_fragment = offset != 0;
    let end = offset + stated - transport;
    if end > usize::from(u16::MAX) {
        return Err(Malformed::Fragment(end));
    }
    let behind = octets.get(transport..stated).unwrap_or_default();
    let header = PacketHeader {
        source: IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3)),
        destination: IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3)),
        protocol,
        ports: if later_fragment { None } else { ports(protocol, behind) },
        fragment: more || later_fragment,
        later_fragment,
        transport,
        dscp: Dscp::from_tos(tos),
        ecn: tos & 3,
        ttl,
    };
    Ok((header, stated))
}

fn v6(octets: &[u8]) -> Read {
    let Some((fixed, behind)) = octets.split_first_chunk::<V6_HEADER>() else {
        return Err(Malformed::Short(octets.len()));
    };
    let [c0, c1, _, _, l0, l1, next, ttl, addresses @ ..] = *fixed;
    let stated = V6_HEADER + usize::from(u16::from_be_bytes([l0, l1]));
    let Some(behind) = behind.get(..stated - V6_HEADER) else {
        return Err(Malformed::Length { stated, there: octets.len() });
    };
    if behind.is_empty() && next == HOP_BY_HOP {
        return Err(Malformed::Jumbogram);
    }
    let address = |half: Option<&[u8; 16]>| {
        IpAddr::V6(half.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets)))
    };
    let tos = (c0 & 0xf) << 4 | c1 >> 4;
    let chain = walk(next, behind);
    let header = PacketHeader {
        source: address(addresses.first_chunk()),
        destination: address(addresses.last_chunk()),
        protocol: chain.protocol,
        ports: chain.ports,
        fragment: chain.fragment,
        later_fragment: chain.later_fragment,
        transport: stated - chain.rest,
        dscp: Dscp::from_tos(tos),
        ecn: tos & 3,
        ttl,
    };
    Ok((header, stated))
}

/// The end of the extension headers.
struct Chain {
    protocol: u8,
    ports: Option<(u16, u16)>,
    fragment: bool,
    later_fragment: bool,
    /// Octets from there to the end of the packet.
    rest: usize,
}

/// Follows the extension headers (RFC 8200 4.1; RFC 7045 4 lists them).
fn walk(first: u8, behind: &[u8]) -> Chain {
    let (mut protocol, mut rest) = (first, behind);
    let mut fragment = false;
    let stop = |protocol, rest: &[u8], fragment, later_fragment| Chain {
        protocol,
        ports: None,
        fragment,
        later_fragment,
        rest: rest.len(),
    };
    for _ in 0..=MAX_EXTENSIONS {
        let octets = match (protocol, rest) {
            // Hop-by-hop options, routing, destination options, mobility, HIP, shim6: the length is
            // in units of 8 octets, without the first 8.
            (0 | 43 | 60 | 135 | 139 | 140, [_, length, ..]) => 8 + usize::from(*length) * 8,
            // Authentication header: the length is in units of 4 octets, minus 2 (RFC 4302 2.2).
            (51, [_, length, ..]) => 8 + usize::from(*length) * 4,
            // Fragment header of a later fragment: the octets after it are data, not a header.
            (44, [_, _, o0, o1, ..]) if u16::from_be_bytes([*o0, *o1]) & 0xfff8 != 0 => {
                return match rest.get(8..) {
                    Some(behind) => {
                        stop(rest.first().copied().unwrap_or(protocol), behind, true, true)
                    }
                    None => stop(protocol, rest, true, true),
                };
            }
            // The first of several fragments. A single fragment is a whole packet (RFC 6946).
            (44, [_, _, _, flags, ..]) => {
                fragment |= flags & 1 != 0;
                8
            }
            (0 | 43 | 44 | 51 | 60 | 135 | 139 | 140, _) => {
                return stop(protocol, rest, fragment, false);
            }
            _ => {
                let ports = ports(protocol, rest);
                return Chain { ports, ..stop(protocol, rest, fragment, false) };
            }
        };
        let (Some(next), Some(behind)) = (rest.first(), rest.get(octets..)) else {
            return stop(protocol, rest, fragment, false);
        };
        (protocol, rest) = (*next, behind);
    }
    stop(protocol, rest, fragment, false)
}

/// The ports of the transport protocols whose headers begin with ports.
fn ports(protocol: u8, transport: &[u8]) -> Option<(u16, u16)> {
    match (protocol, transport) {
        (6 | 17 | 33 | 132 | 136, [s0, s1, d0, d1, ..]) => {
            Some((u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1])))
        }
        _ => None,
    }
}
