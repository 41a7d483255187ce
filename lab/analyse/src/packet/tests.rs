use super::*;
use proptest::prelude::*;

/// IPv4 with TCP: 20 octets, timestamps, 5 octets of payload.
fn v4_tcp() -> Vec<u8> {
    let mut octets =
        vec![0x45, 0x60, 0, 57, 0xab, 0xcd, 0x40, 0, 63, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    octets.extend([0x13, 0x88, 0, 80, 0, 0, 1, 0, 0, 0, 2, 0, 0x80, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    octets.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
    octets.extend(b"hello");
    octets
}

#[test]
fn a_segment_of_ipv4() {
    // Padding of a short Ethernet frame is none of the packet.
    let octets = [v4_tcp(), vec![0; 4]].concat();
    let packet = read(&octets, 61).unwrap();
    assert_eq!((packet.dscp, packet.ttl, packet.length), (Dscp::CS3, 63, 57));
    assert_eq!((packet.identification, packet.ports()), (0xabcd, Some((5000, 80))));
    let segment = packet.segment().unwrap();
    assert_eq!((segment.sequence, segment.acknowledged, segment.length), (256, Some(512), 5));
    assert_eq!((segment.timestamps, segment.payload), (Some((7, 9)), &b"hello"[..]));
}

#[test]
fn what_the_snap_length_cuts_off_is_known_by_its_length() {
    let octets = v4_tcp();
    let packet = read(&octets[..54], 57).unwrap();
    let segment = packet.segment().unwrap();
    assert_eq!((packet.length, segment.length, segment.payload), (57, 5, &b"he"[..]));
    let packet = read(&octets[..30], 57).unwrap();
    assert_eq!((packet.ports(), packet.segment()), (Some((5000, 80)), None));
    assert_eq!(read(&octets[..19], 57), Err(Broken::Short));
}

#[test]
fn a_length_of_zero_is_that_of_the_frame() {
    let mut octets = v4_tcp();
    (octets[2], octets[3]) = (0, 0);
    assert_eq!(read(&octets, 57).unwrap().segment().unwrap().length, 5);
    (octets[2], octets[3]) = (0, 19);
    assert_eq!(read(&octets, 57), Err(Broken::Length));
}

#[test]
fn extension_headers_and_fragments_of_ipv6() {
    let mut octets = vec![0x6b, 0x81, 0x23, 0x45, 0, 24, 0, 64];
    octets.extend([0; 32]);
    // Hop-by-hop options, then a fragment header of the first fragment, then UDP.
    octets.extend([44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 9, 0, 7, 0, 8, 0, 8, 0, 0]);
    let packet = read(&octets, 64).unwrap();
    assert_eq!((packet.dscp, packet.protocol, packet.fragment), (Dscp::EF, 17, true));
    assert_eq!((packet.ports(), packet.identification), (Some((7, 8)), 9));
    assert_eq!((packet.transport_length, packet.datagram()), (8, None));
    octets[51] = 9;
    let later = read(&octets, 64).unwrap();
    assert_eq!((later.ports(), later.offset), (None, 8));
}

proptest! {
    #[test]
    fn garbage_is_read_within_its_bounds(
        mut octets in proptest::collection::vec(any::<u8>(), 0..120), six in any::<bool>(), original in any::<u32>(),
    ) {
        if let Some(first) = octets.first_mut() {
            *first = if six { 0x60 } else { 0x45 };
        }
        if let Ok(packet) = read(&octets, original) {
            prop_assert!(packet.transport.len() <= octets.len());
            if let Some(segment) = packet.segment() {
                prop_assert!(segment.payload.len() <= packet.transport.len());
            }
            let _ = (packet.ports(), packet.datagram());
        }
    }
}
