//! Synthetic Ethernet frames with IPv4 or IPv6 and TCP, with valid checksums.

use std::net::{IpAddr, SocketAddr};
use std::ops::BitOr;

/// TCP's flags (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const FIN: Flags = Flags(0x01);
    pub(crate) const SYN: Flags = Flags(0x02);
    pub(crate) const PSH: Flags = Flags(0x08);
    pub(crate) const ACK: Flags = Flags(0x10);

    fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One end of the connection and its next sequence number.
pub(crate) struct End {
    address: SocketAddr,
    /// A locally administered MAC address.
    mac: [u8; 6],
    /// Sequence number of the next octet.
    next: u32,
}

impl End {
    pub(crate) fn new(address: SocketAddr, number: u8) -> End {
        End { address, mac: [0x02, 0, 0, 0, 0, number], next: 0 }
    }

    /// SYN and FIN take one sequence number each, data one per octet; numbers wrap.
    pub(crate) fn advance(&mut self, flags: Flags, data: usize) {
        let marks = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
        self.next = self.next.wrapping_add(marks).wrapping_add(data as u32);
    }
}

/// Both addresses in one family: IPv4 if both are, else IPv6 with IPv4 mapped.
pub(crate) fn same_family(a: SocketAddr, b: SocketAddr) -> (SocketAddr, SocketAddr) {
    let (mut x, mut y) = (a.ip().to_canonical(), b.ip().to_canonical());
    if x.is_ipv4() != y.is_ipv4() {
        let six = |ip| match ip {
            IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
            six => six,
        };
        (x, y) = (six(x), six(y));
    }
    (SocketAddr::new(x, a.port()), SocketAddr::new(y, b.port()))
}

/// A packet about to be written.
pub(crate) struct Packet<'a> {
    pub(crate) source: &'a End,
    pub(crate) destination: &'a End,
    pub(crate) flags: Flags,
    pub(crate) tos: u8,
    pub(crate) data: &'a [u8],
}

const TCP_HEADER: u16 = 20;
const PROTOCOL_TCP: u8 = 6;

impl Packet<'_> {
    pub(crate) fn to_frame(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(74 + self.data.len());
        frame.extend(self.destination.mac);
        frame.extend(self.source.mac);
        let length = TCP_HEADER + self.data.len() as u16;
        let pseudo = match (self.source.address.ip(), self.destination.address.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                frame.extend([0x08, 0x00]);
                frame.extend(self.ipv4(length, from.octets(), to.octets()));
                [&from.octets()[..], &to.octets()].concat()
            }
            (from, to) => {
                let six = |ip| match ip {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                frame.extend([0x86, 0xdd]);
                frame.extend(self.ipv6(length, six(from), six(to)));
                [six(from), six(to)].concat()
            }
        };
        let segment = self.segment();
        let mut sum = Checksum::default();
        sum.add(&pseudo);
        sum.add(&[0, PROTOCOL_TCP]);
        sum.add(&length.to_be_bytes());
        sum.add(&segment);
        sum.add(self.data);
        let (head, tail) = segment.split_at(16);
        frame.extend(head);
        frame.extend(sum.finish().to_be_bytes());
        frame.extend(tail.iter().skip(2));
        frame.extend(self.data);
        frame
    }

    /// RFC 791; identification 0 with "do not fragment" (RFC 6864).
    fn ipv4(&self, payload: u16, from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
        let mut header = vec![0x45, self.tos];
        header.extend((20 + payload).to_be_bytes());
        header.extend([0, 0, 0x40, 0, 64, PROTOCOL_TCP]);
        let mut sum = Checksum::default();
        sum.add(&header);
        sum.add(&from);
        sum.add(&to);
        header.extend(sum.finish().to_be_bytes());
        header.extend(from);
        header.extend(to);
        header
    }

    /// RFC 8200.
    fn ipv6(&self, payload: u16, from: [u8; 16], to: [u8; 16]) -> Vec<u8> {
        let mut header = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
        header.extend(payload.to_be_bytes());
        header.extend([PROTOCOL_TCP, 64]);
        header.extend(from);
        header.extend(to);
        header
    }

    /// TCP's header with a zero checksum.
    fn segment(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(usize::from(TCP_HEADER));
        header.extend(self.source.address.port().to_be_bytes());
        header.extend(self.destination.address.port().to_be_bytes());
        header.extend(self.source.next.to_be_bytes());
        let acknowledged = if self.flags.has(Flags::ACK) { self.destination.next } else { 0 };
        header.extend(acknowledged.to_be_bytes());
        header.extend([0x50, self.flags.0, 0xff, 0xff, 0, 0, 0, 0]);
        header
    }
}

/// The Internet checksum (RFC 1071) over parts of which only the last may have odd length.
#[derive(Default)]
struct Checksum(u32);

impl Checksum {
    fn add(&mut self, octets: &[u8]) {
        let (pairs, rest) = octets.as_chunks::<2>();
        self.0 += pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum::<u32>();
        if let [last] = rest {
            self.0 += u32::from(u16::from_be_bytes([*last, 0]));
        }
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}
