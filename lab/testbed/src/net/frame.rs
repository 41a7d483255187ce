//! Ethernet frames with TCP over IPv4 or IPv6: what a mark is read from, and how it is cleared.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV4_HEADER: usize = 20;
const IPV6: [u8; 2] = [0x86, 0xdd];
const IPV6_HEADER: usize = 40;
const TCP: u8 = 6;
const TCP_CHECKSUM: usize = 16;

/// FIN of RFC 9293.
pub const FIN: u8 = 0x01;
/// SYN.
pub const SYN: u8 = 0x02;
/// RST.
pub const RST: u8 = 0x04;
/// ACK.
pub const ACK: u8 = 0x10;

/// The headers of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// The DSCP, 0 to 63.
    pub dscp: u8,
    /// [`FIN`], [`SYN`], [`RST`], [`ACK`] and others.
    pub flags: u8,
    /// Octets of data.
    pub length: usize,
}

/// The parts of a frame with a TCP segment.
struct Parts<'a> {
    source: IpAddr,
    destination: IpAddr,
    dscp: u8,
    /// Header and data, without what pads the frame.
    tcp: &'a [u8],
}

impl Segment {
    /// Reads a frame; `None` where it carries no whole TCP segment, or IPv6 extension headers.
    pub fn of(frame: &[u8]) -> Option<Segment> {
        let parts = parts(frame)?;
        let port =
            |at: usize| Some(u16::from_be_bytes([*parts.tcp.get(at)?, *parts.tcp.get(at + 1)?]));
        let header = usize::from(parts.tcp.get(12)? >> 4) * 4;
        Some(Segment {
            source: SocketAddr::new(parts.source, port(0)?),
            destination: SocketAddr::new(parts.destination, port(2)?),
            dscp: parts.dscp,
            flags: *parts.tcp.get(13)?,
            length: parts.tcp.len().checked_sub(header)?,
        })
    }

    /// Whether it has all of these flags.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

fn parts(frame: &[u8]) -> Option<Parts<'_>> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
    if ethernet.ends_with(&IPV4) {
        let header = usize::from(packet.first()? & 0x0f) * 4;
        (header >= IPV4_HEADER).then_some(())?;
        let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        };
        let tcp = packet.get(header..total)?;
        (*packet.get(9)? == TCP).then_some(())?;
        let (source, destination) = (address(12)?, address(16)?);
        Some(Parts { source, destination, dscp: packet.get(1)? >> 2, tcp })
    } else if ethernet.ends_with(&IPV6) {
        let length = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        };
        let tcp = packet.get(IPV6_HEADER..IPV6_HEADER + length)?;
        (*packet.get(6)? == TCP).then_some(())?;
        let dscp = (packet.first()? & 0x0f) << 2 | packet.get(1)? >> 6;
        Some(Parts { source: address(8)?, destination: address(24)?, dscp, tcp })
    } else {
        None
    }
}

/// Clears the DSCP and makes the checksums right. The kernel leaves a TCP checksum to the network
/// card, which a frame that is passed on by hand never meets. What is not IP stays as it is.
pub fn bleach(frame: &mut [u8]) {
    let checksum = parts(frame).map(|parts| {
        let at = parts.tcp.as_ptr().addr() - frame.as_ptr().addr() + TCP_CHECKSUM;
        (at, tcp_checksum(&parts))
    });
    if let Some((at, sum)) = checksum
        && let Some(field) = frame.get_mut(at..at + 2)
    {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    let Some((ethernet, packet)) = frame.split_at_mut_checked(ETHERNET) else { return };
    if ethernet.ends_with(&IPV4) {
        let length = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
        let header = packet.get_mut(..length).filter(|header| header.len() >= IPV4_HEADER);
        let Some(header) = header else { return };
        if let [_, tos, _, _, _, _, _, _, _, _, high, low, ..] = header {
            *tos &= 0x03;
            (*high, *low) = (0, 0);
        }
        let sum = folded(words(header)).to_be_bytes();
        if let [_, _, _, _, _, _, _, _, _, _, high, low, ..] = header {
            [*high, *low] = sum;
        }
    } else if ethernet.ends_with(&IPV6)
        && let [first, second, ..] = packet
    {
        *first &= 0xf0;
        *second &= 0x3f;
    }
}

/// RFC 9293, 3.1: over the pseudo-header and the segment with a checksum of zero.
fn tcp_checksum(parts: &Parts<'_>) -> u16 {
    let address = |address: IpAddr| match address {
        IpAddr::V4(v4) => words(&v4.octets()),
        IpAddr::V6(v6) => words(&v6.octets()),
    };
    let (before, from) = parts.tcp.split_at_checked(TCP_CHECKSUM).unwrap_or((parts.tcp, &[]));
    let after = from.get(2..).unwrap_or_default();
    let pseudo = address(parts.source) + address(parts.destination) + u64::from(TCP);
    folded(pseudo + parts.tcp.len() as u64 + words(before) + words(after))
}

/// The sum of the 16-bit words, an odd octet at the end padded with zero.
fn words(octets: &[u8]) -> u64 {
    let pair = |pair: &[u8]| match pair {
        [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        _ => 0,
    };
    octets.chunks(2).map(pair).sum()
}

/// RFC 1071: the complement of the one's complement sum.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN from 127.0.0.1:0x1234 to 127.0.0.2:5003, CS3 with ECT(0), data "ab", padded.
    fn v4() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(IPV4);
        frame.extend([0x45, 0x62, 0, 42, 0, 1, 0, 0, 64, 6, 0, 0]);
        frame.extend([127, 0, 0, 1, 127, 0, 0, 2]);
        frame.extend(tcp());
        frame.extend([0xff; 4]);
        frame
    }

    fn v6() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(IPV6);
        frame.extend([0x66, 0x2a, 0xbc, 0xde, 0, 22, 6, 64]);
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend(tcp());
        frame
    }

    fn tcp() -> Vec<u8> {
        let mut tcp = vec![0x12, 0x34, 0x13, 0x8b, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, SYN, 1, 0];
        tcp.extend([0xde, 0xad, 0, 0, b'a', b'b']);
        tcp
    }

    #[test]
    fn the_mark_is_read_and_cleared_and_all_else_stays() {
        for (frame, source) in [(v4(), "127.0.0.1:4660"), (v6(), "[::1]:4660")] {
            let segment = Segment::of(&frame).unwrap();
            assert_eq!((segment.dscp, segment.flags, segment.length), (24, SYN, 2));
            assert_eq!(segment.source.to_string(), source);
            assert_eq!(segment.destination.port(), 5003);
            let mut bleached = frame.clone();
            bleach(&mut bleached);
            assert_eq!(Segment::of(&bleached).unwrap(), Segment { dscp: 0, ..segment });
            // ECN, flow label, the rest of the header, the padding.
            let ip = ETHERNET..ETHERNET + 2;
            let of = |frame: &[u8]| frame[ip.clone()].to_vec();
            let expected = if source.starts_with('[') { [0x60, 0x2a] } else { [0x45, 0x02] };
            assert_eq!(of(&bleached), expected);
            assert_eq!(bleached[bleached.len() - 2..], frame[frame.len() - 2..]);
        }
    }

    #[test]
    fn checksums_are_those_of_the_standards() {
        let mut frame = v4();
        bleach(&mut frame);
        // A header with its right checksum sums up to zero.
        assert_eq!(folded(words(&frame[ETHERNET..ETHERNET + 20])), 0);
        for mut frame in [v4(), v6()] {
            bleach(&mut frame);
            let parts = parts(&frame).unwrap();
            let addresses: u64 = [parts.source, parts.destination]
                .iter()
                .map(|a| match a {
                    IpAddr::V4(v4) => words(&v4.octets()),
                    IpAddr::V6(v6) => words(&v6.octets()),
                })
                .sum();
            assert_eq!(folded(addresses + 6 + 22 + words(parts.tcp)), 0);
        }
    }

    #[test]
    fn what_is_cut_or_something_else_is_no_segment() {
        for whole in [v4(), v6()] {
            for length in 0..ETHERNET + 42 {
                assert_eq!(Segment::of(&whole[..length]), None, "{length}");
                bleach(&mut whole[..length].to_vec());
            }
        }
        for words in 0..5 {
            let mut short = v4();
            short[ETHERNET] = 0x40 | words;
            let before = short.clone();
            assert_eq!(Segment::of(&short), None, "a header of {words} words");
            bleach(&mut short);
            assert_eq!(short, before);
        }
        let mut arp = v4();
        arp[13] = 0x06;
        assert_eq!(Segment::of(&arp), None);
        let before = arp.clone();
        bleach(&mut arp);
        assert_eq!(arp, before);
    }
}
