//! Packets for tests.

use crate::packet::{HeaderFields, Packet, compose};
use crate::time::Time;
use dscp::Dscp;
use std::net::Ipv4Addr;

/// Octets before the number: the IPv4 and UDP headers.
const HEADERS: usize = 28;

/// A UDP packet of this code point and length in octets (at least 36), from this source port, with
/// this number in its payload.
pub(crate) fn packet(dscp: Dscp, length: usize, port: u16, number: u64) -> Packet {
    with_ecn(dscp, length, port, number, 0)
}

/// As [`packet`], with an ECN field.
pub(crate) fn with_ecn(dscp: Dscp, length: usize, port: u16, number: u64, ecn: u8) -> Packet {
    let fields = HeaderFields {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        destination: Ipv4Addr::new(10, 0, 1, 1).into(),
        protocol: 17,
        dscp,
        ecn,
        ttl: 64,
    };
    let mut payload = vec![0; (length - 20).max(16)];
    payload[..2].copy_from_slice(&port.to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
    let octets = compose(&fields, &payload).unwrap();
    Packet::read(octets, 0, Time::ZERO).unwrap()
}

/// The number in a packet of [`packet`].
pub(crate) fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.octets()[HEADERS..HEADERS + 8].try_into().unwrap())
}
