//! Packets that a router originates: ICMP errors and echo replies, for IPv4 (RFC 792, RFC 1812 4.3)
//! and IPv6 (RFC 4443).
//!
//! The functions build the octets of an answer, which the router then forwards like any other
//! packet. A token bucket limits the octets of all answers (RFC 1812 4.3.2.8, RFC 4443 2.4 f), so
//! that nobody can make a router flood others or itself.

use crate::meter::Bucket;
use crate::packet::{HeaderFields, Packet, checksum, compose};
use crate::time::Time;
use dscp::Dscp;
use std::net::{IpAddr, Ipv6Addr};

/// Time to live or hop limit of packets that a router originates.
const TTL: u8 = 64;
/// Longest ICMP error in octets; it quotes as much as fits (RFC 1812 4.3.2.3).
const MAX_V4_ERROR: usize = 576;
/// Longest ICMPv6 error in octets; it quotes as much as fits (RFC 4443 2.4 c).
const MAX_V6_ERROR: usize = 1_280;
/// Octets of an ICMP error before the quoted packet.
const ERROR_HEADER: usize = 8;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// IPv4: Don't Fragment; More Fragments, or a fragment offset.
const DONT_FRAGMENT: u16 = 0x4000;
const FRAGMENT: u16 = 0x3fff;

/// Why a packet was not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingError {
    /// The time to live or hop limit expired.
    Expired,
    /// No route leads to its destination.
    NoRoute,
    /// The packet is longer than the MTU of the output interface, and fragmentation is not allowed.
    TooLong {
        /// The MTU of the output interface in octets.
        mtu: usize,
    },
}

/// The ICMP error to the sender of a packet that was not forwarded. `from` is an address of the
/// router.
///
/// `None` where no error may be sent (RFC 1812 4.3.2.7, RFC 4443 2.4 e): about an ICMP error, a
/// later fragment, a packet to a multicast or broadcast address, or one whose source does not
/// identify a single host. `None` also if `from` has another IP version, or if the bucket has too
/// few tokens.
pub fn error(
    now: Time,
    packet: &Packet,
    trouble: ForwardingError,
    from: IpAddr,
    limit: &mut Bucket,
) -> Option<Vec<u8>> {
    let header = packet.header();
    let sent_to_many = !is_one(header.destination);
    // RFC 4443 2.4 e.3: Packet Too Big is also sent about multicast packets.
    let is_exempt = matches!(trouble, ForwardingError::TooLong { .. }) && header.source.is_ipv6();
    if (sent_to_many && !is_exempt)
        || !is_one(header.source)
        || header.later_fragment
        || is_icmp_error(packet)
    {
        return None;
    }
    let (kind, code, word, room) = match header.source {
        IpAddr::V4(_) => {
            let room = MAX_V4_ERROR - V4_HEADER - ERROR_HEADER;
            match trouble {
                ForwardingError::Expired => (11, 0, 0, room),
                ForwardingError::NoRoute => (3, 0, 0, room),
                ForwardingError::TooLong { .. } if flags(packet)? & DONT_FRAGMENT == 0 => {
                    return None;
                }
                // The MTU of the next hop in the lower half (RFC 1191 4).
                ForwardingError::TooLong { mtu } => {
                    (3, 4, u32::from(u16::try_from(mtu).unwrap_or(u16::MAX)), room)
                }
            }
        }
        IpAddr::V6(_) => {
            let room = MAX_V6_ERROR - V6_HEADER - ERROR_HEADER;
            match trouble {
                ForwardingError::Expired => (3, 0, 0, room),
                ForwardingError::NoRoute => (1, 0, 0, room),
                ForwardingError::TooLong { mtu } => {
                    (2, 0, u32::try_from(mtu).unwrap_or(u32::MAX), room)
                }
            }
        }
    };
    let quoted = packet.octets().get(..room).unwrap_or(packet.octets());
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend_from_slice(quoted);
    // Internetwork control (RFC 1812 4.3.2.5).
    limited(now, answer(from, header.source, Dscp::CS6, message)?, limit)
}

/// The reply to an echo request that was sent to the router (RFC 792, RFC 4443 4.2). Its source is
/// the destination of the request.
///
/// `None` if the packet is not a complete and correct echo request, if source or destination does
/// not identify a single host, or if the bucket has too few tokens.
pub fn echo_reply(now: Time, packet: &Packet, limit: &mut Bucket) -> Option<Vec<u8>> {
    let header = packet.header();
    if header.later_fragment || !is_one(header.source) || !is_one(header.destination) {
        return None;
    }
    let request = packet.octets().get(header.transport..)?;
    // The first fragment of an IPv6 request fails the checksum, which covers the whole message.
    let reply = match (header.source, header.protocol, request) {
        (IpAddr::V4(_), ICMP, [8, 0, _, _, _, _, _, _, ..]) if flags(packet)? & FRAGMENT == 0 => 0,
        (IpAddr::V6(_), ICMPV6, [128, 0, _, _, _, _, _, _, ..]) => 129,
        _ => return None,
    };
    if sum(header.source, header.destination, request)? != 0 {
        return None;
    }
    let mut message = vec![reply, 0, 0, 0];
    message.extend_from_slice(request.get(4..)?);
    let octets = answer(header.destination, header.source, header.dscp, message)?;
    limited(now, octets, limit)
}

fn limited(now: Time, octets: Vec<u8>, limit: &mut Bucket) -> Option<Vec<u8>> {
    limit.take(now, octets.len() as u64).then_some(octets)
}

/// A packet with this message, whose checksum is computed here.
fn answer(from: IpAddr, to: IpAddr, dscp: Dscp, mut message: Vec<u8>) -> Option<Vec<u8>> {
    let sum = sum(from, to, &message)?.to_be_bytes();
    message.splice(2..4, sum);
    let protocol = if to.is_ipv4() { ICMP } else { ICMPV6 };
    let fields = HeaderFields { source: from, destination: to, protocol, dscp, ecn: 0, ttl: TTL };
    compose(&fields, &message)
}

/// The checksum of a message; zero for a message that contains a correct checksum. In IPv6 it
/// covers the addresses (RFC 4443 2.3).
fn sum(from: IpAddr, to: IpAddr, message: &[u8]) -> Option<u16> {
    match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => Some(checksum(message)),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut octets = Vec::with_capacity(V6_HEADER + message.len());
            octets.extend(from.octets());
            octets.extend(to.octets());
            octets.extend(u32::try_from(message.len()).ok()?.to_be_bytes());
            octets.extend([0, 0, 0, ICMPV6]);
            octets.extend_from_slice(message);
            Some(checksum(&octets))
        }
        _ => None,
    }
}

/// Flags and fragment offset of an IPv4 packet.
fn flags(packet: &Packet) -> Option<u16> {
    packet.octets().get(6..8)?.first_chunk().map(|flags| u16::from_be_bytes(*flags))
}

/// Whether it is an ICMP error, or an ICMP message that may be one.
fn is_icmp_error(packet: &Packet) -> bool {
    let header = packet.header();
    let kind = packet.octets().get(header.transport);
    match header.protocol {
        // Queries and replies: echo, router discovery, timestamp, information, address mask.
        ICMP => !matches!(kind, Some(0 | 8..=10 | 13..=18)),
        // Errors are below 128 (RFC 4443 2.1). Redirect (137) never causes an error either (2.4
        // e.2).
        ICMPV6 => !matches!(kind, Some(128..) if kind != Some(&137)),
        _ => false,
    }
}

/// Whether the address identifies a single host: not multicast, broadcast, unspecified or loopback.
fn is_one(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            // 0/8, 127/8, multicast, and 240/4 with the limited broadcast (RFC 1812 5.3.7).
            !matches!(v4.octets(), [0 | 127 | 224.., ..])
        }
        IpAddr::V6(v6) => {
            !v6.is_multicast() && v6 != Ipv6Addr::UNSPECIFIED && v6 != Ipv6Addr::LOCALHOST
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{MAX_LENGTH, udp};
    use crate::time::Rate;
    use proptest::prelude::*;

    fn full() -> Bucket {
        Bucket::new(Rate::from_bits(8_000).unwrap(), 1_000_000)
    }

    fn fields(source: &str, destination: &str, protocol: u8) -> HeaderFields {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        HeaderFields { source, destination, protocol, dscp: Dscp::EF, ecn: 1, ttl: 3 }
    }

    fn read(octets: Vec<u8>) -> Packet {
        Packet::read(octets, 0, Time::ZERO).unwrap()
    }

    fn packet(fields: &HeaderFields, payload: &[u8]) -> Packet {
        read(compose(fields, payload).unwrap())
    }

    const V4: (&str, &str, &str) = ("10.0.0.1", "10.9.9.9", "10.0.0.254");
    const V6: (&str, &str, &str) = ("fd00::1", "fd09::9", "fd00::254");

    fn about(packet: &Packet, trouble: ForwardingError, from: &str) -> Option<Packet> {
        error(Time::ZERO, packet, trouble, from.parse().unwrap(), &mut full()).map(read)
    }

    /// Whether the checksum of the message is correct, computed in another way: the sum is all
    /// ones.
    fn is_sound(packet: &Packet) -> bool {
        let (header, message) = (packet.header(), &packet.octets()[packet.header().transport..]);
        let mut octets = Vec::new();
        if let (IpAddr::V6(from), IpAddr::V6(to)) = (header.source, header.destination) {
            octets.extend(from.octets());
            octets.extend(to.octets());
            octets.extend([0, 0, (message.len() >> 8) as u8, message.len() as u8, 0, 0, 0, 58]);
        }
        octets.extend(message);
        let words = octets
            .chunks(2)
            .map(|two| u64::from(two[0]) << 8 | two.get(1).map_or(0, |b| u64::from(*b)));
        words.fold(0, |sum, word| (sum + word) % 0xffff) == 0
    }

    #[test]
    fn errors_have_their_types_and_quote_the_packet() {
        let long = ForwardingError::TooLong { mtu: 1_400 };
        for (addresses, trouble, head) in [
            (V4, ForwardingError::Expired, [11, 0, 0, 0, 0, 0]),
            (V4, ForwardingError::NoRoute, [3, 0, 0, 0, 0, 0]),
            (V4, long, [3, 4, 0, 0, 5, 120]),
            (V6, ForwardingError::Expired, [3, 0, 0, 0, 0, 0]),
            (V6, ForwardingError::NoRoute, [1, 0, 0, 0, 0, 0]),
            (V6, long, [2, 0, 0, 0, 5, 120]),
        ] {
            let (source, destination, from) = addresses;
            let mut octets = udp(&fields(source, destination, 17), (7, 9), 1_500).unwrap();
            if octets[0] == 0x45 {
                octets[6] = 0x40;
                octets[10] -= 0x40;
            }
            let packet = read(octets);
            let error = about(&packet, trouble, from).unwrap();
            let header = error.header();
            assert_eq!(header.source, from.parse::<IpAddr>().unwrap());
            assert_eq!(header.destination, source.parse::<IpAddr>().unwrap());
            assert_eq!((header.dscp, header.ecn, header.ttl), (Dscp::CS6, 0, 64));
            let (most, message) = if header.source.is_ipv4() { (576, 20) } else { (1_280, 40) };
            assert_eq!(error.length(), most);
            let octets = &error.octets()[message..];
            assert_eq!([octets[0], octets[1], octets[4], octets[5], octets[6], octets[7]], head);
            assert!(packet.octets().starts_with(&octets[8..]));
            assert!(is_sound(&error));
        }
    }

    #[test]
    fn short_packets_are_quoted_whole() {
        let packet = packet(&fields(V4.0, V4.1, 17), &[1, 2, 3]);
        let error = about(&packet, ForwardingError::Expired, V4.2).unwrap();
        assert_eq!(error.octets()[28..], *packet.octets());
        assert!(is_sound(&error));
    }

    #[test]
    fn an_error_is_never_about_what_must_have_none() {
        let expired = ForwardingError::Expired;
        let silent = |packet: &Packet, from: &str| {
            assert_eq!(about(packet, expired, from).map(|_| ()), None, "{packet:?}");
        };
        for kind in [3, 4, 5, 11, 12, 1, 255] {
            silent(&packet(&fields(V4.0, V4.1, 1), &[kind, 0, 0, 0, 0, 0, 0, 0]), V4.2);
        }
        silent(&packet(&fields(V4.0, V4.1, 1), &[]), V4.2);
        assert!(about(&packet(&fields(V4.0, V4.1, 1), &[8, 0]), expired, V4.2).is_some());
        for kind in [1, 2, 3, 4, 100, 127, 137] {
            silent(&packet(&fields(V6.0, V6.1, 58), &[kind, 0, 0, 0, 0, 0, 0, 0]), V6.2);
        }
        assert!(about(&packet(&fields(V6.0, V6.1, 58), &[128, 0]), expired, V6.2).is_some());
        for (source, destination) in [
            ("0.0.0.0", V4.1),
            ("127.0.0.1", V4.1),
            ("224.0.0.5", V4.1),
            ("255.255.255.255", V4.1),
            ("240.0.0.1", V4.1),
            (V4.0, "239.1.1.1"),
            (V4.0, "255.255.255.255"),
        ] {
            silent(&packet(&fields(source, destination, 17), &[0; 8]), V4.2);
        }
        for (source, destination) in
            [("::", V6.1), ("::1", V6.1), ("ff02::1", V6.1), (V6.0, "ff0e::1")]
        {
            silent(&packet(&fields(source, destination, 17), &[0; 8]), V6.2);
        }
        silent(&packet(&fields(V4.0, V4.1, 17), &[0; 8]), V6.2);
        let many = packet(&fields(V6.0, "ff0e::1", 17), &[0; 8]);
        assert!(about(&many, ForwardingError::TooLong { mtu: 1_280 }, V6.2).is_some());
    }

    #[test]
    fn of_fragments_only_the_first_is_answered() {
        let mut octets = compose(&fields(V4.0, V4.1, 17), &[0; 8]).unwrap();
        for (flags, answered) in [(0x20, true), (0x00, true), (0x01, false)] {
            octets[6..8].copy_from_slice(&[flags & 0x20, flags & 1]);
            octets[10..12].fill(0);
            let sum = checksum(&octets[..20]).to_be_bytes();
            octets[10..12].copy_from_slice(&sum);
            let packet = read(octets.clone());
            assert_eq!(about(&packet, ForwardingError::NoRoute, V4.2).is_some(), answered);
            // The packet may be fragmented, so its sender gets no error.
            assert!(about(&packet, ForwardingError::TooLong { mtu: 1_000 }, V4.2).is_none());
        }
        let later = [17, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0];
        let packet = packet(&fields(V6.0, V6.1, 44), &later);
        assert!(about(&packet, ForwardingError::NoRoute, V6.2).is_none());
    }

    /// A correct echo request with this identifier and data.
    fn request(addresses: (&str, &str, &str), data: &[u8]) -> Packet {
        let (source, destination, _) = addresses;
        let (kind, protocol) = if source.contains(':') { (128, 58) } else { (8, 1) };
        let mut message = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 7];
        message.extend(data);
        let fields = fields(source, destination, protocol);
        let sum = sum(fields.source, fields.destination, &message).unwrap();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        packet(&fields, &message)
    }

    #[test]
    fn echo_is_replied_with_what_was_sent() {
        for (addresses, kind) in [(V4, 0), (V6, 129)] {
            let request = request(addresses, b"odd");
            assert!(is_sound(&request));
            let reply = read(echo_reply(Time::ZERO, &request, &mut full()).unwrap());
            let (asked, header) = (request.header(), reply.header());
            assert_eq!((header.source, header.destination), (asked.destination, asked.source));
            assert_eq!((header.dscp, header.ecn, header.ttl), (Dscp::EF, 0, 64));
            let message = &reply.octets()[header.transport..];
            assert_eq!((message[0], message[1]), (kind, 0));
            assert_eq!(&message[4..], b"\x12\x34\x00\x07odd");
            assert!(is_sound(&reply));
        }
    }

    #[test]
    fn what_is_no_sound_request_is_not_replied() {
        let silent = |octets: Vec<u8>| {
            assert_eq!(echo_reply(Time::ZERO, &read(octets), &mut full()), None);
        };
        for addresses in [V4, V6] {
            let good = request(addresses, b"data");
            let transport = good.header().transport;
            // A flipped bit, a reply instead of a request, another code, a truncated request.
            for (place, value) in [(transport + 9, 1), (transport, 0), (transport + 1, 1)] {
                let mut octets = good.octets().to_vec();
                octets[place] ^= value;
                if value == 0 {
                    octets[place] = if transport == 20 { 0 } else { 129 };
                }
                silent(octets);
            }
        }
        silent(compose(&fields(V4.0, V4.1, 1), &[8, 0, 0xf7, 0xff]).unwrap());
        silent(udp(&fields(V4.0, V4.1, 17), (8, 0), 100).unwrap());
        let broadcast = request((V4.0, "255.255.255.255", V4.2), b"");
        silent(broadcast.into_octets());
        let mut first = request(V4, b"data").into_octets();
        first[6] = 0x20;
        first[10] -= 0x20;
        silent(first);
    }

    #[test]
    fn answers_are_limited() {
        // 1,000 octets a second, a burst of 200; an answer has 56 + 31 octets.
        let mut limit = Bucket::new(Rate::from_bits(8_000).unwrap(), 200);
        let packet = packet(&fields(V4.0, V4.1, 17), &[0; 39]);
        let from = V4.2.parse().unwrap();
        let mut ask = |ms: u64| {
            let now = Time(ms * 1_000_000);
            error(now, &packet, ForwardingError::Expired, from, &mut limit)
                .map(|octets| octets.len())
        };
        assert_eq!([ask(0), ask(0), ask(0)], [Some(87), Some(87), None]);
        assert_eq!([ask(60), ask(61), ask(61)], [None, Some(87), None]);
        // A packet that gets no answer takes no tokens.
        let many = request((V4.0, "224.0.0.1", V4.2), b"");
        let mut limit = full();
        assert!(error(Time::ZERO, &many, ForwardingError::Expired, from, &mut limit).is_none());
        assert_eq!(limit, full());
    }

    proptest! {
        /// For any packet, the answer is a correct packet, within its limit of length, and never
        /// causes an error itself.
        #[test]
        fn answers_are_packets_and_end_there(
            v6 in any::<bool>(),
            protocol in prop::sample::select(vec![1u8, 58, 17, 44, 0, 60]),
            payload in prop::collection::vec(any::<u8>(), 0..1_500),
            trouble in prop::sample::select(vec![
                ForwardingError::Expired,
                ForwardingError::NoRoute,
                ForwardingError::TooLong { mtu: 1_280 },
                ForwardingError::TooLong { mtu: MAX_LENGTH },
            ]),
        ) {
            // Hop-by-hop options with a payload length of 0 are a jumbogram.
            prop_assume!(!(v6 && protocol == 0 && payload.is_empty()));
            let (source, destination, from) = if v6 { V6 } else { V4 };
            let packet = packet(&fields(source, destination, protocol), &payload);
            if let Some(error) = about(&packet, trouble, from) {
                prop_assert!(is_sound(&error));
                let most = if v6 { 1_280 } else { 576 };
                prop_assert!(error.length() <= most);
                prop_assert!(about(&error, ForwardingError::Expired, from).is_none());
                prop_assert!(echo_reply(Time::ZERO, &error, &mut full()).is_none());
            }
            if let Some(reply) = echo_reply(Time::ZERO, &packet, &mut full()) {
                prop_assert_eq!(reply.len(), packet.length());
            }
        }
    }
}
