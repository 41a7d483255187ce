//! Synthetic Ethernet frames with IPv4 or IPv6 and TCP, with valid checksums.

use etherparse::{EtherType, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader};
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

/// Time to live, and hop limit.
const TTL: u8 = 64;

impl Packet<'_> {
    pub(crate) fn to_frame(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(74 + self.data.len());
        frame.extend(self.destination.mac);
        frame.extend(self.source.mac);
        let mut tcp = self.tcp();
        let length = tcp.header_len_u16() + self.data.len() as u16;
        match (self.source.address.ip(), self.destination.address.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let (from, to) = (from.octets(), to.octets());
                frame.extend(EtherType::IPV4.0.to_be_bytes());
                frame.extend(self.ipv4(length, from, to));
                tcp.checksum = tcp.calc_checksum_ipv4_raw(from, to, self.data).unwrap_or_default();
            }
            (from, to) => {
                let six = |ip| match ip {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                let (from, to) = (six(from), six(to));
                frame.extend(EtherType::IPV6.0.to_be_bytes());
                frame.extend(self.ipv6(length, from, to));
                tcp.checksum = tcp.calc_checksum_ipv6_raw(from, to, self.data).unwrap_or_default();
            }
        }
        frame.extend(tcp.to_bytes());
        frame.extend(self.data);
        frame
    }

    /// RFC 791; identification 0 with "do not fragment" (RFC 6864).
    fn ipv4(
        &self,
        payload: u16,
        source: [u8; 4],
        destination: [u8; 4],
    ) -> impl Iterator<Item = u8> {
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(self.tos >> 2).unwrap_or_default(),
            ecn: IpEcn::try_new(self.tos & 3).unwrap_or_default(),
            total_len: Ipv4Header::MIN_LEN_U16.saturating_add(payload),
            dont_fragment: true,
            time_to_live: TTL,
            protocol: IpNumber::TCP,
            source,
            destination,
            ..Ipv4Header::default()
        };
        header.header_checksum = header.calc_header_checksum();
        header.to_bytes().into_iter()
    }

    /// RFC 8200.
    fn ipv6(&self, payload_length: u16, source: [u8; 16], destination: [u8; 16]) -> [u8; 40] {
        let header = Ipv6Header {
            traffic_class: self.tos,
            payload_length,
            next_header: IpNumber::TCP,
            hop_limit: TTL,
            source,
            destination,
            ..Ipv6Header::default()
        };
        header.to_bytes()
    }

    /// TCP's header with a zero checksum.
    fn tcp(&self) -> TcpHeader {
        TcpHeader {
            source_port: self.source.address.port(),
            destination_port: self.destination.address.port(),
            sequence_number: self.source.next,
            acknowledgment_number: match self.flags.has(Flags::ACK) {
                true => self.destination.next,
                false => 0,
            },
            fin: self.flags.has(Flags::FIN),
            syn: self.flags.has(Flags::SYN),
            psh: self.flags.has(Flags::PSH),
            ack: self.flags.has(Flags::ACK),
            window_size: u16::MAX,
            ..TcpHeader::default()
        }
    }
}
