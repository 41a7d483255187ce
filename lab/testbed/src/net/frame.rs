//! Ethernet frames with TCP over IPv4 or IPv6: reading and clearing the DSCP.

use etherparse::checksum::Sum16BitWords;
use etherparse::{EtherType, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, TcpSlice};
use std::net::{IpAddr, SocketAddr};

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = EtherType::IPV4.0.to_be_bytes();
const IPV6: [u8; 2] = EtherType::IPV6.0.to_be_bytes();
/// Offsets of the flags and the checksum in a TCP header.
const TCP_FLAGS: usize = 13;
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
pub struct TcpSegment {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
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
    /// Header and data, without the padding of the frame.
    tcp: &'a [u8],
}

impl TcpSegment {
    /// Reads a frame; `None` where it has no whole TCP segment, or has IPv6 extension headers.
    pub fn from_frame(frame: &[u8]) -> Option<TcpSegment> {
        let parts = parts(frame)?;
        let tcp = TcpSlice::from_slice(parts.tcp).ok()?;
        Some(TcpSegment {
            source: SocketAddr::new(parts.source, tcp.source_port()),
            destination: SocketAddr::new(parts.destination, tcp.destination_port()),
            dscp: parts.dscp,
            flags: *parts.tcp.get(TCP_FLAGS)?,
            length: tcp.payload().len(),
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
        let header = Ipv4HeaderSlice::from_slice(packet).ok()?;
        (header.protocol() == IpNumber::TCP).then_some(())?;
        Some(Parts {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            dscp: header.dcp().value(),
            tcp: packet.get(header.slice().len()..usize::from(header.total_len()))?,
        })
    } else if ethernet.ends_with(&IPV6) {
        let header = Ipv6HeaderSlice::from_slice(packet).ok()?;
        (header.next_header() == IpNumber::TCP).then_some(())?;
        let behind = packet.get(header.slice().len()..)?;
        Some(Parts {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            dscp: header.dscp().value(),
            tcp: behind.get(..usize::from(header.payload_length()))?,
        })
    } else {
        None
    }
}

/// Clears the DSCP and corrects the checksums. The kernel leaves a TCP checksum to the network card,
/// which does not see a frame that a program passes on. A frame without IP stays as it is.
pub fn bleach(frame: &mut [u8]) {
    let checksum = parts(frame).and_then(|parts| {
        let at = parts.tcp.as_ptr().addr() - frame.as_ptr().addr() + TCP_CHECKSUM;
        Some((at, tcp_checksum(&parts)?))
    });
    if let Some((at, sum)) = checksum
        && let Some(field) = frame.get_mut(at..at + 2)
    {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    let Some((ethernet, packet)) = frame.split_at_mut_checked(ETHERNET) else { return };
    if ethernet.ends_with(&IPV4) {
        let Ok(length) = Ipv4HeaderSlice::from_slice(packet).map(|header| header.slice().len())
        else {
            return;
        };
        let Some(header) = packet.get_mut(..length) else { return };
        if let [_, tos, _, _, _, _, _, _, _, _, high, low, ..] = header {
            *tos &= 0x03;
            (*high, *low) = (0, 0);
        }
        let sum = Sum16BitWords::new().add_slice(header).ones_complement().to_be().to_be_bytes();
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
fn tcp_checksum(parts: &Parts<'_>) -> Option<u16> {
    let tcp = TcpSlice::from_slice(parts.tcp).ok()?;
    match (parts.source, parts.destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            tcp.calc_checksum_ipv4(from.octets(), to.octets()).ok()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            tcp.calc_checksum_ipv6(from.octets(), to.octets()).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

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
            let segment = TcpSegment::from_frame(&frame).unwrap();
            assert_eq!((segment.dscp, segment.flags, segment.length), (24, SYN, 2));
            assert_eq!(segment.source.to_string(), source);
            assert_eq!(segment.destination.port(), 5003);
            let mut bleached = frame.clone();
            bleach(&mut bleached);
            assert_eq!(
                TcpSegment::from_frame(&bleached).unwrap(),
                TcpSegment { dscp: 0, ..segment }
            );
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
    fn truncated_and_other_frames_are_not_segments() {
        for whole in [v4(), v6()] {
            for length in 0..ETHERNET + 42 {
                assert_eq!(TcpSegment::from_frame(&whole[..length]), None, "{length}");
                bleach(&mut whole[..length].to_vec());
            }
        }
        for words in 0..5 {
            let mut short = v4();
            short[ETHERNET] = 0x40 | words;
            let before = short.clone();
            assert_eq!(TcpSegment::from_frame(&short), None, "a header of {words} words");
            bleach(&mut short);
            assert_eq!(short, before);
        }
        let mut arp = v4();
        arp[13] = 0x06;
        assert_eq!(TcpSegment::from_frame(&arp), None);
        let before = arp.clone();
        bleach(&mut arp);
        assert_eq!(arp, before);
    }
}
