//! IP headers as a capture has them: cut off by the snap length, with checksums that an interface
//! was to fill in. `router::packet` is stricter: a router forwards no such packet.
//!
//! The reader is written by hand: `etherparse` refuses a header whose options or extension headers
//! were cut off, and a capture of short snap length has only such headers.

use dscp::Dscp;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv6 extension headers that are walked.
const MAX_EXTENSIONS: usize = 8;

/// Protocol numbers that are distinguished here.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
}

/// A packet of which the IP header was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The code point.
    pub dscp: Dscp,
    /// The two bits beside it.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Of IPv4 the identification, of IPv6 the flow label, or of a fragment its identification.
    pub identification: u32,
    /// Whether it is a fragment.
    pub fragment: bool,
    /// Octets of its payload before this fragment.
    pub offset: u32,
    /// Octets with the IP header, by its length field; where that is 0 (segmentation offload), those
    /// of the frame.
    pub length: u32,
    /// The transport protocol, behind extension headers.
    pub protocol: u8,
    /// Octets of the transport header and what is behind, whether captured or not.
    pub transport_length: u32,
    /// As many of them as were captured.
    pub transport: &'a [u8],
}

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Neither version 4 nor 6.
    Version,
    /// Cut off within the IP header.
    Short,
    /// Header lengths that contradict each other.
    Length,
}

/// Reads the header at the front of `octets`; the frame had `original` octets from there.
///
/// # Errors
/// [`Broken`].
pub fn read(octets: &[u8], original: u32) -> Result<Packet<'_>, Broken> {
    match octets.first().map(|first| first >> 4) {
        Some(4) => v4(octets, original),
        Some(6) => v6(octets, original),
        Some(_) => Err(Broken::Version),
        None => Err(Broken::Short),
    }
}

fn v4(octets: &[u8], original: u32) -> Result<Packet<'_>, Broken> {
    let fixed = octets.first_chunk::<20>().ok_or(Broken::Short)?;
    let [first, tos, l0, l1, i0, i1, f0, f1, ttl, protocol, _, _, addresses @ ..] = *fixed;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    let header = usize::from(first & 0xf) * 4;
    let length = match u32::from(u16::from_be_bytes([l0, l1])) {
        0 => original,
        printed => printed,
    };
    if header < 20 || (length as usize) < header {
        return Err(Broken::Length);
    }
    let place = u16::from_be_bytes([f0, f1]);
    let behind = octets.get(header..octets.len().min(length as usize)).unwrap_or_default();
    Ok(Packet {
        source: IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3)),
        destination: IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3)),
        dscp: Dscp::from_tos(tos),
        ecn: tos & 3,
        ttl,
        identification: u32::from(u16::from_be_bytes([i0, i1])),
        fragment: place & 0x3fff != 0,
        offset: u32::from(place & 0x1fff) * 8,
        length,
        protocol,
        transport_length: length - header as u32,
        transport: behind,
    })
}

fn v6(octets: &[u8], original: u32) -> Result<Packet<'_>, Broken> {
    let (fixed, behind) = octets.split_first_chunk::<40>().ok_or(Broken::Short)?;
    let [c0, c1, c2, c3, l0, l1, next, ttl, addresses @ ..] = *fixed;
    let length = match u32::from(u16::from_be_bytes([l0, l1])) {
        // A jumbogram, or an offloaded segment.
        0 => original.max(40),
        printed => printed + 40,
    };
    let address = |half: Option<&[u8; 16]>| {
        IpAddr::V6(half.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets)))
    };
    let payload = length - 40;
    let behind = behind.get(..behind.len().min(payload as usize)).unwrap_or_default();
    let mut packet = Packet {
        source: address(addresses.first_chunk()),
        destination: address(addresses.last_chunk()),
        dscp: Dscp::from_tos((c0 & 0xf) << 4 | c1 >> 4),
        ecn: c1 >> 4 & 3,
        ttl,
        identification: u32::from_be_bytes([0, c1 & 0xf, c2, c3]),
        fragment: false,
        offset: 0,
        length,
        protocol: next,
        transport_length: payload,
        transport: behind,
    };
    walk(&mut packet);
    Ok(packet)
}

/// Walks the extension headers (RFC 8200 4), as far as they were captured.
fn walk(packet: &mut Packet<'_>) {
    for _ in 0..MAX_EXTENSIONS {
        let size = match (packet.protocol, packet.transport) {
            (0 | 43 | 60 | 135 | 139 | 140, [_, size, ..]) => 8 + usize::from(*size) * 8,
            (51, [_, size, ..]) => 8 + usize::from(*size) * 4,
            (44, [_, _, o0, o1, i0, i1, i2, i3, ..]) => {
                let place = u16::from_be_bytes([*o0, *o1]);
                packet.fragment = place & 0xfff9 != 0;
                packet.offset = u32::from(place & 0xfff8);
                packet.identification = u32::from_be_bytes([*i0, *i1, *i2, *i3]);
                8
            }
            _ => return,
        };
        let (Some(next), Some(behind)) = (packet.transport.first(), packet.transport.get(size..))
        else {
            return;
        };
        let Some(left) = packet.transport_length.checked_sub(size as u32) else { return };
        (packet.protocol, packet.transport, packet.transport_length) = (*next, behind, left);
        // The data of a later fragment does not begin with a header.
        if packet.offset != 0 {
            return;
        }
    }
}

impl<'a> Packet<'a> {
    /// Source and destination port of the protocols that begin with them; none of a fragment but the
    /// first.
    pub fn ports(&self) -> Option<(u16, u16)> {
        match (self.protocol, self.offset, self.transport) {
            (6 | 17 | 33 | 132 | 136, 0, [s0, s1, d0, d1, ..]) => {
                Some((u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1])))
            }
            _ => None,
        }
    }

    /// Its TCP header, where it has one that was captured; never of a later fragment.
    pub fn segment(&self) -> Option<Segment<'a>> {
        if self.protocol != protocol::TCP || self.offset != 0 {
            return None;
        }
        Segment::read(self.transport, self.transport_length)
    }

    /// The payload of UDP as far as it was captured, and how long it was; never of a fragment.
    pub fn datagram(&self) -> Option<(&'a [u8], u32)> {
        if self.protocol != protocol::UDP || self.fragment {
            return None;
        }
        Some((self.transport.get(8..)?, self.transport_length.checked_sub(8)?))
    }
}

/// Bits of [`Segment::flags`].
pub mod flag {
    /// FIN.
    pub const FIN: u8 = 1;
    /// SYN.
    pub const SYN: u8 = 2;
    /// RST.
    pub const RST: u8 = 4;
    /// ACK.
    pub const ACK: u8 = 16;
}

/// A TCP header (RFC 9293 3.1), and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number, where it counts.
    pub acknowledged: Option<u32>,
    /// See [`flag`].
    pub flags: u8,
    /// The window field, not scaled.
    pub window: u16,
    /// TSval and TSecr (RFC 7323 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Octets of payload, whether captured or not.
    pub length: u32,
    /// As much of it as was captured.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    fn read(octets: &'a [u8], length: u32) -> Option<Segment<'a>> {
        let fixed = octets.first_chunk::<20>()?;
        let [_, _, _, _, s0, s1, s2, s3, a0, a1, a2, a3, words, flags, w0, w1, _, _, _, _] = *fixed;
        let header = usize::from(words >> 4) * 4;
        let length = length.checked_sub(header as u32).filter(|_| header >= 20)?;
        let options = octets.get(20..header.min(octets.len())).unwrap_or_default();
        Some(Segment {
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            acknowledged: (flags & flag::ACK != 0).then_some(u32::from_be_bytes([a0, a1, a2, a3])),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            timestamps: timestamps(options),
            length,
            payload: octets.get(header..).unwrap_or_default(),
        })
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers it takes: its octets, and one each for SYN and FIN.
    pub fn span(&self) -> u32 {
        self.length + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }
}

fn timestamps(mut options: &[u8]) -> Option<(u32, u32)> {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [8, 10, v0, v1, v2, v3, e0, e1, e2, e3, ..] => {
                let (value, echo) = ([*v0, *v1, *v2, *v3], [*e0, *e1, *e2, *e3]);
                return Some((u32::from_be_bytes(value), u32::from_be_bytes(echo)));
            }
            [2..=255, size @ 2..=255, ..] => options.get(usize::from(*size)..)?,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests;
