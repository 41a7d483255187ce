//! Composes packets: the answers of a router, the packets of tests and of loads.

use super::MAX_LENGTH;
use super::read::{V4_HEADER, V6_HEADER};
use dscp::Dscp;
use std::net::IpAddr;

/// Octets of a UDP header.
const UDP_HEADER: usize = 8;

/// The fields of a header, without lengths and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same version.
    pub destination: IpAddr,
    /// The protocol number of the payload: a transport protocol, or an IPv6 extension header.
    pub protocol: u8,
    /// The DSCP (RFC 2474 3).
    pub dscp: Dscp,
    /// The ECN field (RFC 3168 5): the low two bits; others are ignored.
    pub ecn: u8,
    /// Time to live, or hop limit of IPv6.
    pub ttl: u8,
}

/// A packet with this header, without options, and this payload. Routers may fragment an IPv4
/// packet. `None` if the addresses have different versions, or if the packet would be too long.
pub fn compose(fields: &HeaderFields, payload: &[u8]) -> Option<Vec<u8>> {
    let tos = fields.dscp.tos() | fields.ecn & 3;
    let mut octets = Vec::with_capacity(V6_HEADER + payload.len().min(MAX_LENGTH));
    match (fields.source, fields.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [l0, l1] = u16::try_from(V4_HEADER + payload.len()).ok()?.to_be_bytes();
            octets.extend([0x45, tos, l0, l1, 0, 0, 0, 0, fields.ttl, fields.protocol, 0, 0]);
            octets.extend(source.octets());
            octets.extend(destination.octets());
            let sum = checksum(&octets).to_be_bytes();
            octets.splice(10..12, sum);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let [l0, l1] = u16::try_from(payload.len()).ok()?.to_be_bytes();
            octets.extend([0x60 | tos >> 4, tos << 4, 0, 0, l0, l1, fields.protocol, fields.ttl]);
            octets.extend(source.octets());
            octets.extend(destination.octets());
        }
        _ => return None,
    }
    octets.extend_from_slice(payload);
    Some(octets)
}

/// A UDP packet of `length` octets with zeros as payload; at least its headers. It ignores
/// `fields.protocol`.
pub fn udp(fields: &HeaderFields, ports: (u16, u16), length: usize) -> Option<Vec<u8>> {
    let header = if fields.source.is_ipv4() { V4_HEADER } else { V6_HEADER };
    datagram(fields, ports, &vec![0; length.saturating_sub(header + UDP_HEADER)])
}

/// A UDP packet with this payload. It ignores `fields.protocol`. An IPv4 packet has no UDP checksum
/// (RFC 768), an IPv6 packet has one (RFC 8200 8.1).
pub fn datagram(fields: &HeaderFields, ports: (u16, u16), payload: &[u8]) -> Option<Vec<u8>> {
    let [s0, s1] = ports.0.to_be_bytes();
    let [d0, d1] = ports.1.to_be_bytes();
    let [l0, l1] = u16::try_from(UDP_HEADER + payload.len()).ok()?.to_be_bytes();
    let mut segment = vec![s0, s1, d0, d1, l0, l1, 0, 0];
    segment.extend_from_slice(payload);
    if let (IpAddr::V6(source), IpAddr::V6(destination)) = (fields.source, fields.destination) {
        let mut pseudo = Vec::with_capacity(V6_HEADER + segment.len());
        pseudo.extend(source.octets());
        pseudo.extend(destination.octets());
        pseudo.extend([0, 0, l0, l1, 0, 0, 0, 17]);
        pseudo.extend_from_slice(&segment);
        let sum = checksum(&pseudo);
        segment.splice(6..8, if sum == 0 { [0xff; 2] } else { sum.to_be_bytes() });
    }
    compose(&HeaderFields { protocol: 17, ..*fields }, &segment)
}

/// The Internet checksum (RFC 1071) of octets whose checksum field is zero.
pub fn checksum(octets: &[u8]) -> u16 {
    !sum_of(octets)
}

/// The ones' complement sum of 16-bit words; a last odd octet is the high half of a word.
pub(super) fn sum_of(octets: &[u8]) -> u16 {
    let (words, odd) = octets.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    let mut sum = sum + odd.first().map_or(0, |octet| u64::from(*octet) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
