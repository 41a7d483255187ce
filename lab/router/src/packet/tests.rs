use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// 20 octets of UDP from 10.0.0.1:5000 to 10.0.0.2:6000, with these IPv4 options.
fn v4(options: &[u8], flags: u16, payload: &[u8]) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let length = (words * 4 + payload.len()) as u16;
    let mut octets = vec![0x40 | words as u8, 0xb9];
    octets.extend(length.to_be_bytes());
    octets.extend([0x12, 0x34]);
    octets.extend(flags.to_be_bytes());
    octets.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    octets.extend(options);
    let sum = checksum(&octets).to_be_bytes();
    octets[10..12].copy_from_slice(&sum);
    octets.extend(payload);
    octets
}

const UDP: [u8; 8] = [0x13, 0x88, 0x17, 0x70, 0, 8, 0, 0];

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x6b, 0x9f, 0xff, 0xff];
    octets.extend((payload.len() as u16).to_be_bytes());
    octets.extend([next, 7]);
    octets.extend(Ipv6Addr::LOCALHOST.octets());
    octets.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
    octets.extend(payload);
    octets
}

fn read(octets: Vec<u8>) -> Result<Packet, (Vec<u8>, Malformed)> {
    Packet::read(octets, 3, Time(9))
}

fn why(octets: &[u8]) -> Malformed {
    let (back, why) = read(octets.to_owned()).unwrap_err();
    assert_eq!(back, octets, "refused octets come back untouched");
    why
}

/// The checksum over the whole header, computed anew, is correct.
fn sound(packet: &Packet) -> bool {
    let header = usize::from(packet.octets[0] & 0xf) * 4;
    let mut octets = packet.octets[..header].to_vec();
    let written = u16::from_be_bytes([octets[10], octets[11]]);
    octets[10..12].fill(0);
    checksum(&octets) == written
}

/// RFC 1071 3 sums these octets to ddf2.
#[test]
fn the_checksum_is_that_of_rfc_1071() {
    assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    assert_eq!(checksum(&[0x01]), !0x0100);
}

#[test]
fn ipv4_is_read() {
    let packet = read(v4(&[], 0x4000, &UDP)).unwrap();
    let header = packet.header();
    assert_eq!(header.source, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(header.destination, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
    assert_eq!((header.protocol, header.ports, header.ttl), (17, Some((5000, 6000)), 64));
    assert_eq!((header.dscp, header.ecn, header.transport), (Dscp::EF, 1, 20));
    assert!(!header.later_fragment);
    assert_eq!((packet.interface, packet.arrived, packet.colour), (3, Time(9), None));
}

#[test]
fn options_are_passed_over_and_padding_is_cut() {
    let mut octets = v4(&[1, 1, 1, 0], 0, &UDP);
    octets.extend([0xee; 18]);
    let packet = read(octets).unwrap();
    assert_eq!((packet.length(), packet.header().transport), (32, 24));
    assert_eq!(packet.header().ports, Some((5000, 6000)));
}

#[test]
fn only_the_first_fragment_has_ports() {
    let first = read(v4(&[], 0x2000, &UDP)).unwrap();
    assert_eq!((first.header().ports, first.header().later_fragment), (Some((5000, 6000)), false));
    let later = read(v4(&[], 0x2001, &UDP)).unwrap();
    assert_eq!((later.header().ports, later.header().later_fragment), (None, true));
    let cut_off = read(v4(&[], 0, &UDP[..3])).unwrap();
    assert_eq!(cut_off.header().ports, None);
}

#[test]
fn damaged_ipv4_is_refused() {
    assert_eq!(why(&[]), Malformed::Short(0));
    assert_eq!(why(&[0x50]), Malformed::Version(5));
    assert_eq!(why(&v4(&[], 0, &UDP)[..19]), Malformed::Short(19));
    assert_eq!(why(&v4(&[], 0, &UDP)[..27]), Malformed::Length { stated: 28, there: 27 });
    let mut octets = v4(&[], 0, &UDP);
    octets[0] = 0x44;
    assert_eq!(why(&octets), Malformed::HeaderLength(4));
    octets[0] = 0x48;
    assert_eq!(why(&octets), Malformed::Short(28));
    octets[0] = 0x46;
    octets[3] = 20;
    assert_eq!(why(&octets), Malformed::Length { stated: 20, there: 28 });
    let mut octets = v4(&[], 0, &UDP);
    octets[8] = 63;
    assert_eq!(why(&octets), Malformed::Checksum);
}

#[test]
fn ipv6_is_read_through_its_extension_headers() {
    let plain = read(v6(17, &UDP)).unwrap();
    assert_eq!(plain.header().source, IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert_eq!(plain.header().destination, "fd00::2".parse::<IpAddr>().unwrap());
    let header = plain.header();
    assert_eq!((header.dscp.number(), header.ecn, header.ttl), (0xb9 >> 2, 1, 7));
    assert_eq!((header.ports, header.transport), (Some((5000, 6000)), 40));

    // Hop-by-hop of 8 octets, routing of 16, authentication of 24, fragment 0, destination options.
    let mut chain = vec![43, 0, 1, 4, 0, 0, 0, 0];
    chain.extend([51, 1]);
    chain.extend([0; 14]);
    chain.extend([44, 4]);
    chain.extend([0; 22]);
    chain.extend([60, 0, 0, 1, 0, 0, 0, 1]);
    chain.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    chain.extend(UDP);
    let packet = read(v6(0, &chain)).unwrap();
    let header = packet.header();
    assert_eq!((header.protocol, header.ports), (17, Some((5000, 6000))));
    assert_eq!((header.transport, header.later_fragment), (104, false));
}

#[test]
fn ipv6_stops_where_there_is_nothing_to_walk() {
    // A later fragment: the next octets are data.
    let mut later = vec![17, 0, 0, 8, 0, 0, 0, 1];
    later.extend(UDP);
    let packet = read(v6(44, &later)).unwrap();
    let header = packet.header();
    assert_eq!((header.protocol, header.ports, header.later_fragment), (17, None, true));
    assert_eq!(header.transport, 48);
    // An extension header that the end of the packet truncates.
    let packet = read(v6(60, &[17, 4, 0, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!((packet.header().protocol, packet.header().ports), (60, None));
    assert_eq!(packet.header().transport, 40);
    // One extension header more than is read.
    let options = [60, 0, 1, 4, 0, 0, 0, 0];
    for (count, ports) in [(MAX_EXTENSIONS, Some((5000, 6000))), (MAX_EXTENSIONS + 1, None)] {
        let mut chain = options.repeat(count - 1);
        chain.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        chain.extend(UDP);
        assert_eq!(read(v6(60, &chain)).unwrap().header().ports, ports, "{count}");
    }
    // ESP and no next header end a chain.
    for next in [50, 59] {
        let packet = read(v6(next, &UDP)).unwrap();
        assert_eq!((packet.header().protocol, packet.header().ports), (next, None));
    }
}

#[test]
fn damaged_ipv6_is_refused_and_padding_is_cut() {
    assert_eq!(why(&v6(17, &UDP)[..39]), Malformed::Short(39));
    assert_eq!(why(&v6(17, &UDP)[..47]), Malformed::Length { stated: 48, there: 47 });
    let mut octets = v6(17, &UDP);
    octets.push(0);
    assert_eq!(read(octets).unwrap().length(), 48);
}

#[test]
fn a_packet_does_not_outlive_its_time() {
    for octets in [v4(&[], 0, &UDP), v6(17, &UDP)] {
        let mut packet = read(octets).unwrap();
        let hops = packet.header().ttl;
        for left in (1..hops).rev() {
            assert!(packet.decrement_ttl());
            assert_eq!(packet.header().ttl, left);
            assert_eq!(read(packet.octets.clone()).unwrap().header(), packet.header());
        }
        let before = packet.octets.clone();
        assert!(!packet.decrement_ttl());
        assert_eq!(packet.octets, before);
    }
}

#[test]
fn congestion_is_marked_only_where_it_is_understood() {
    for (ecn, marked, after) in [(0, false, 0), (1, true, 3), (2, true, 3), (3, true, 3)] {
        let fields = HeaderFields {
            source: Ipv4Addr::LOCALHOST.into(),
            destination: Ipv4Addr::LOCALHOST.into(),
            protocol: 6,
            dscp: Dscp::AF11,
            ecn,
            ttl: 2,
        };
        let mut packet = read(compose(&fields, &[]).unwrap()).unwrap();
        assert_eq!((packet.set_congestion(), packet.header().ecn), (marked, after));
        assert_eq!(packet.dscp(), Dscp::AF11);
        assert!(sound(&packet));
    }
}

/// The UDP checksum of IPv6 packets is correct: the sum with the pseudo header is all ones.
#[test]
fn composed_udp_is_sound() {
    let fields = HeaderFields {
        source: Ipv6Addr::LOCALHOST.into(),
        destination: "fd00::7".parse().unwrap(),
        protocol: 0,
        dscp: Dscp::CS3,
        ecn: 0,
        ttl: 64,
    };
    let octets = udp(&fields, (7, 9), 128).unwrap();
    let packet = read(octets.clone()).unwrap();
    assert_eq!((packet.length(), packet.header().ports), (128, Some((7, 9))));
    let mut pseudo = octets[8..40].to_vec();
    pseudo.extend([0, 0, 0, 88, 0, 0, 0, 17]);
    pseudo.extend(&octets[40..]);
    assert_eq!(checksum(&pseudo), 0);
    assert!(compose(&HeaderFields { source: Ipv4Addr::LOCALHOST.into(), ..fields }, &[]).is_none());
    assert!(compose(&fields, &[0; 65_536]).is_none());
}

/// One change of a header.
#[derive(Clone, Copy, Debug)]
enum Change {
    Dscp(u8),
    Ttl,
    Congestion,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one =
        prop_oneof![(0..64u8).prop_map(Change::Dscp), Just(Change::Ttl), Just(Change::Congestion)];
    prop::collection::vec(one, 1..12)
}

proptest! {
    /// The incrementally updated checksum equals one computed anew, for any header. Nothing else
    /// changes than what was requested.
    #[test]
    fn checksums_follow_changes(
        fixed in any::<[u8; 18]>(),
        options in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
        ones in any::<bool>(),
        changes in changes(),
    ) {
        let mut octets = vec![0x45 + options.len() as u8, fixed[0]];
        octets.extend(((20 + options.len() * 4) as u16).to_be_bytes());
        octets.extend(&fixed[1..7]);
        octets.extend([0, 0]);
        octets.extend(&fixed[7..15]);
        octets.extend(options.concat());
        let sum = checksum(&octets);
        // A checksum of zero may also be written as all ones; both are correct.
        let sum = if sum == 0 && ones { 0xffff } else { sum };
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        let before = octets.clone();
        let mut packet = read(octets).unwrap();
        let mut changed = false;
        for change in changes {
            let (dscp, ecn, ttl) =
                (packet.header.dscp, packet.header.ecn, packet.header.ttl);
            let was = packet.octets.clone();
            match change {
                Change::Dscp(to) => {
                    prop_assert_eq!(packet.set_dscp(Dscp::new(to).unwrap()), to != dscp.number());
                    prop_assert_eq!((packet.header.ecn, packet.header.ttl), (ecn, ttl));
                }
                Change::Ttl => {
                    prop_assert_eq!(packet.decrement_ttl(), ttl > 1);
                    prop_assert_eq!((packet.header.dscp, packet.header.ecn), (dscp, ecn));
                }
                Change::Congestion => {
                    prop_assert_eq!(packet.set_congestion(), ecn != 0);
                    prop_assert_eq!((packet.header.dscp, packet.header.ttl), (dscp, ttl));
                }
            }
            changed |= was != packet.octets;
            prop_assert!(!changed || sound(&packet));
            let again = read(packet.octets.clone()).unwrap();
            prop_assert_eq!(again.header(), packet.header());
        }
        for (place, (was, is)) in before.iter().zip(&packet.octets).enumerate() {
            prop_assert!(was == is || [1, 8, 10, 11].contains(&place), "octet {}", place);
        }
    }

    /// The same for IPv6, which has no checksum.
    #[test]
    fn ipv6_changes_stay_in_their_bits(class in any::<u8>(), flow in 0..1u32 << 20, to in 0..64u8) {
        let mut octets = v6(17, &UDP);
        octets[..4].copy_from_slice(&(6 << 28 | u32::from(class) << 20 | flow).to_be_bytes());
        let mut packet = read(octets.clone()).unwrap();
        packet.set_dscp(Dscp::new(to).unwrap());
        let word = u32::from_be_bytes(*packet.octets.first_chunk().unwrap());
        prop_assert_eq!(word, 6 << 28 | u32::from(to << 2 | class & 3) << 20 | flow);
        prop_assert_eq!(&packet.octets[4..], &octets[4..]);
    }

    /// Octets that are not a packet are refused and returned. An accepted packet has the length in
    /// its header.
    #[test]
    fn any_octets_are_read_or_refused(
        version in prop::sample::select(vec![4u8, 6, 0]),
        mut octets in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Some(first) = octets.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        match read(octets.clone()) {
            Ok(packet) => {
                prop_assert!(octets.starts_with(packet.octets()));
                prop_assert!(packet.header().transport <= packet.length());
            }
            Err((back, _)) => prop_assert_eq!(back, octets),
        }
    }
}
