//! Packets as a router reads, changes, divides and answers them.

use crate::hash;
use dscp::Dscp;
use router::icmp::{ForwardingError, echo_reply, error};
use router::meter::Bucket;
use router::packet::{checksum, fragment};
use router::{Packet, Rate, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As the octets are, and with the lengths and the checksum of a sound IPv4 header, which damage
/// hardly leaves.
pub(super) fn packet(octets: &[u8]) {
    each(octets, changed);
}

/// The same, and what a router answers.
pub(super) fn answers(octets: &[u8]) {
    each(octets, answered);
}

fn each(octets: &[u8], run: fn(&Packet)) {
    for octets in [octets.to_vec(), mended(octets)] {
        match Packet::read(octets.clone(), 0, Time::ZERO) {
            Err((back, _)) => assert_eq!(back, octets, "refused octets come back"),
            Ok(packet) => {
                assert!(octets.starts_with(packet.octets()));
                assert!(packet.header().transport <= packet.length());
                run(&packet);
            }
        }
    }
}

/// The same octets with a header of IPv4 that is right about itself.
fn mended(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let header = usize::from(octets.first().map_or(0, |first| first & 0xf)) * 4;
    let is_v4 = octets.first().is_some_and(|first| first >> 4 == 4);
    if !is_v4 || header < 20 || header > octets.len() {
        return octets;
    }
    let length = u16::try_from(octets.len()).unwrap_or(u16::MAX);
    octets.splice(2..4, length.to_be_bytes());
    octets.splice(10..12, [0, 0]);
    let sum = checksum(octets.get(..header).unwrap_or_default());
    octets.splice(10..12, sum.to_be_bytes());
    octets
}

/// Reading it again gives the same packet.
fn same(packet: &Packet) {
    let again = Packet::read(packet.octets().to_vec(), 0, Time::ZERO).expect("still a packet");
    assert_eq!((again.header(), again.length()), (packet.header(), packet.length()));
}

fn changed(packet: &Packet) {
    let seed = hash(packet.octets());
    let (mut changed, before) = (packet.clone(), *packet.header());
    let dscp = Dscp::from_tos(seed as u8);
    assert_eq!(changed.set_dscp(dscp), before.dscp != dscp);
    assert_eq!((changed.header().ecn, changed.dscp()), (before.ecn, dscp));
    assert_eq!(changed.set_congestion(), before.ecn != 0);
    assert_eq!(changed.decrement_ttl(), before.ttl > 1);
    same(&changed);
    let mtu = 20 + (seed >> 8) as usize % 1_500;
    match fragment::divide(changed.clone(), mtu) {
        Err(back) => assert_eq!(back.octets(), changed.octets()),
        Ok(pieces) => {
            for piece in pieces {
                assert!(piece.length() <= mtu);
                same(&piece);
            }
        }
    }
}

fn answered(packet: &Packet) {
    let rate = Rate::from_bits(1).expect("a rate");
    let mut limit = Bucket::new(rate, 1 << 20);
    let from = match packet.header().source {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 254)),
    };
    for trouble in [
        ForwardingError::Expired,
        ForwardingError::NoRoute,
        ForwardingError::TooLong { mtu: 1_280 },
    ] {
        let Some(octets) = error(Time::ZERO, packet, trouble, from, &mut limit) else {
            continue;
        };
        assert!(octets.len() <= if from.is_ipv4() { 576 } else { 1_280 });
        let error_packet = Packet::read(octets, 0, Time::ZERO).expect("an answer is a packet");
        assert_eq!(error_packet.header().destination, packet.header().source);
        let again = error(Time::ZERO, &error_packet, ForwardingError::Expired, from, &mut limit);
        assert_eq!(again, None, "an error about an error");
        assert_eq!(echo_reply(Time::ZERO, &error_packet, &mut limit), None);
    }
    if let Some(octets) = echo_reply(Time::ZERO, packet, &mut limit) {
        let reply = Packet::read(octets, 0, Time::ZERO).expect("an answer is a packet");
        assert_eq!(reply.header().destination, packet.header().source);
        assert_eq!(echo_reply(Time::ZERO, &reply, &mut limit), None, "a reply to a reply");
    }
}
