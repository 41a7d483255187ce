//! The outer packet: an IP header, ESP's SPI and sequence number (RFC 4303 2), the inner packet,
//! and zeros for the other octets that a cipher adds.
//!
//! The header is written by hand in the memory of the inner packet, because every packet of a
//! tunnel passes here.

use crate::plan::tunnel::{V4_HEADER, V6_HEADER};
use router::packet::checksum;
use std::net::IpAddr;

/// Protocol number of the encapsulating security payload.
pub(super) const ESP: u8 = 50;
/// Octets of SPI and sequence number.
const ESP_HEADER: usize = 8;
/// Time to live of outer packets: the default of RFC 1700.
const TTL: u8 = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Esp {
    pub(super) spi: u32,
    pub(super) sequence: u32,
}

/// The outer packet around this inner one, in the same memory. Its IPv4 header sets Don't Fragment,
/// because the far gateway does not reassemble.
pub(super) fn wrap(
    mut octets: Vec<u8>,
    (source, destination): (IpAddr, IpAddr),
    traffic_class: u8,
    esp: Esp,
    overhead: usize,
) -> Vec<u8> {
    let inner = octets.len();
    let mut head = Vec::with_capacity(V6_HEADER + ESP_HEADER);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let length = u16::try_from(V4_HEADER + overhead + inner).unwrap_or(u16::MAX);
            head.extend([0x45, traffic_class]);
            head.extend(length.to_be_bytes());
            head.extend([0, 0, 0x40, 0, TTL, ESP, 0, 0]);
            head.extend(source.octets());
            head.extend(destination.octets());
            write_checksum(&mut head);
        }
        (source, destination) => {
            let length = u16::try_from(overhead + inner).unwrap_or(u16::MAX);
            head.extend([0x60 | traffic_class >> 4, traffic_class << 4, 0, 0]);
            head.extend(length.to_be_bytes());
            head.extend([ESP, TTL]);
            for address in [source, destination] {
                let six = match address {
                    IpAddr::V6(six) => six,
                    IpAddr::V4(four) => four.to_ipv6_mapped(),
                };
                head.extend(six.octets());
            }
        }
    }
    head.extend(esp.spi.to_be_bytes());
    head.extend(esp.sequence.to_be_bytes());
    octets.resize(head.len() + inner + overhead.saturating_sub(ESP_HEADER), 0);
    octets.copy_within(..inner, head.len());
    if let Some(front) = octets.get_mut(..head.len()) {
        front.copy_from_slice(&head);
    }
    if let Some(tail) = octets.get_mut(head.len() + inner..) {
        tail.fill(0);
    }
    octets
}

fn outer_length(octets: &[u8]) -> usize {
    if octets.first().is_some_and(|first| first >> 4 == 6) { V6_HEADER } else { V4_HEADER }
}

/// The security parameters index of an outer packet without IP options.
pub(super) fn spi(octets: &[u8]) -> Option<u32> {
    if octets.first().is_some_and(|first| first >> 4 == 4 && *first != 0x45) {
        return None;
    }
    let at = outer_length(octets);
    let field = octets.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().ok()?))
}

/// The inner packet of an outer one, in the same memory; empty if there is none.
pub(super) fn unwrap(mut octets: Vec<u8>, overhead: usize) -> Vec<u8> {
    let start = outer_length(&octets) + ESP_HEADER;
    let end = octets.len().saturating_sub(overhead.saturating_sub(ESP_HEADER));
    if start >= end {
        octets.clear();
        return octets;
    }
    octets.copy_within(start..end, 0);
    octets.truncate(end - start);
    octets
}

/// The ECN field of a packet that leaves a tunnel, by the inner and outer ones (RFC 6040 4.2,
/// Figure 4); `None` if the packet is to be dropped.
pub(super) fn inward(inner: u8, outer: u8) -> Option<u8> {
    const NOT_ECT: u8 = 0;
    const ECT_1: u8 = 1;
    const ECT_0: u8 = 2;
    const CE: u8 = 3;
    match (inner, outer) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

/// The packet with this ECN field.
pub(super) fn with_ecn(mut octets: Vec<u8>, ecn: u8) -> Vec<u8> {
    match octets.as_mut_slice() {
        [first, second, ..] if *first >> 4 == 4 => {
            *second = *second & !3 | ecn & 3;
            let header = usize::from(*first & 0xf) * 4;
            if let Some(header) = octets.get_mut(..header) {
                write_checksum(header);
            }
        }
        [_, second, ..] => *second = *second & !0x30 | (ecn & 3) << 4,
        _ => {}
    }
    octets
}

/// Computes the checksum of an IPv4 header.
fn write_checksum(header: &mut [u8]) {
    if let Some(field) = header.get_mut(10..12) {
        field.fill(0);
    }
    let sum = checksum(header).to_be_bytes();
    if let Some(field) = header.get_mut(10..12) {
        field.copy_from_slice(&sum);
    }
}
