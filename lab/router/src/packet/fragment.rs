//! Fragmentation of an IPv4 packet that is longer than the MTU (RFC 791 3.2, RFC 1812 4.2.2.7).

use super::read::V4_HEADER;
use super::{Packet, checksum};
use std::net::IpAddr;

/// Don't Fragment, in the word of flags and offset.
const DONT_FRAGMENT: u16 = 0x4000;
/// More Fragments.
const MORE: u16 = 0x2000;
/// The fragment offset, in units of eight octets.
const OFFSET: u16 = 0x1fff;

/// The fragments of a packet in their order, none longer than `mtu` octets.
///
/// # Errors
/// The unchanged packet, if it must not be fragmented (IPv6, RFC 8200 5; Don't Fragment), or if
/// `mtu` leaves no room for eight octets after the header.
pub fn divide(packet: Packet, mtu: usize) -> Result<Vec<Packet>, Packet> {
    let Some(flags) = flags_of(&packet) else { return Err(packet) };
    let (header, data) = packet.octets.split_at(packet.header.transport.min(packet.length()));
    let later = later_header(header);
    // The header of later fragments is never longer than the first.
    let room = mtu.saturating_sub(header.len()) / 8 * 8;
    let later_room = mtu.saturating_sub(later.len()) / 8 * 8;
    if flags & DONT_FRAGMENT != 0 || room == 0 {
        return Err(packet);
    }
    let mut pieces = Vec::with_capacity(data.len().div_ceil(room));
    let (mut at, mut offset) = (0, flags & OFFSET);
    while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
        let (header, room) = if at == 0 { (header, room) } else { (later.as_slice(), later_room) };
        let piece = rest.get(..room).unwrap_or(rest);
        let is_last = piece.len() == rest.len();
        let more = if is_last { flags & MORE } else { MORE };
        let Some(octets) = written(header, piece, more | offset) else { return Err(packet) };
        let mut header = packet.header;
        header.transport = octets.len() - piece.len();
        header.fragment = flags & MORE != 0 || offset != 0 || !is_last;
        if offset != 0 {
            (header.later_fragment, header.ports) = (true, None);
        }
        pieces.push(Packet { octets, header, ..packet.clone_without_octets() });
        at += piece.len();
        offset += u16::try_from(piece.len() / 8).unwrap_or(OFFSET);
    }
    Ok(pieces)
}

/// The word of flags and offset; `None` for IPv6.
fn flags_of(packet: &Packet) -> Option<u16> {
    match packet.header.source {
        IpAddr::V4(_) => Some(u16::from_be_bytes([*packet.octets.get(6)?, *packet.octets.get(7)?])),
        IpAddr::V6(_) => None,
    }
}

/// The header of all fragments but the first: only options with the copied flag (RFC 791 3.1).
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at(V4_HEADER.min(header.len()));
    let mut later = fixed.to_vec();
    while let [kind, rest @ ..] = options {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => rest.first().map_or(usize::MAX, |length| usize::from(*length).max(2)),
        };
        let Some((option, behind)) = options.split_at_checked(length) else { break };
        if kind & 0x80 != 0 {
            later.extend_from_slice(option);
        }
        options = behind;
    }
    later.resize(later.len().next_multiple_of(4), 0);
    later
}

/// A fragment with its length, flags and checksum.
fn written(header: &[u8], data: &[u8], flags: u16) -> Option<Vec<u8>> {
    let words = u8::try_from(header.len() / 4).ok()?;
    let [l0, l1] = u16::try_from(header.len() + data.len()).ok()?.to_be_bytes();
    let [f0, f1] = flags.to_be_bytes();
    let mut octets = Vec::with_capacity(header.len() + data.len());
    octets.extend_from_slice(header);
    if let [first, _, length0, length1, _, _, flags0, flags1, _, _, c0, c1, ..] =
        octets.as_mut_slice()
    {
        *first = 0x40 | words;
        (*length0, *length1, *flags0, *flags1, *c0, *c1) = (l0, l1, f0, f1, 0, 0);
    }
    let sum = checksum(&octets).to_be_bytes();
    octets.get_mut(10..12)?.copy_from_slice(&sum);
    octets.extend_from_slice(data);
    Some(octets)
}

impl Packet {
    fn clone_without_octets(&self) -> Packet {
        Packet { octets: Vec::new(), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{HeaderFields, udp};
    use crate::time::Time;
    use dscp::Dscp;
    use proptest::prelude::*;

    fn packet(length: usize, flags: u16, options: &[u8]) -> Packet {
        let fields = HeaderFields {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            protocol: 17,
            dscp: Dscp::EF,
            ecn: 1,
            ttl: 9,
        };
        let mut octets = udp(&fields, (1, 2), length).unwrap();
        for (at, octet) in octets.iter_mut().enumerate().skip(28) {
            *octet = at as u8;
        }
        let mut header = octets[..20].to_vec();
        header.extend_from_slice(options);
        let octets = written(&header, &octets[20..], flags).unwrap();
        Packet::read(octets, 3, Time(7)).unwrap()
    }

    proptest! {
        #[test]
        fn pieces_are_packets_that_make_up_the_whole(
            length in 29usize..5_000,
            mtu in 68usize..1_600,
            more in any::<bool>(),
            offset in 0u16..1_000,
            options in prop::sample::select(vec![
                vec![], vec![1, 1, 1, 0], vec![0x83, 3, 4, 1], vec![7, 3, 4, 0x88, 4, 0, 1, 0],
            ]),
        ) {
            let flags = if more { MORE } else { 0 } | offset;
            let whole = packet(length, flags, &options);
            let pieces = divide(whole.clone(), mtu).unwrap();
            let (mut at, mut data) = (offset, Vec::new());
            for (number, piece) in pieces.iter().enumerate() {
                prop_assert!(piece.length() <= mtu);
                // The fragment can be read again: lengths and checksum are correct.
                let again = Packet::read(piece.octets().to_vec(), 3, Time(7)).unwrap();
                prop_assert_eq!(again.header(), piece.header());
                prop_assert_eq!((piece.dscp(), piece.interface), (Dscp::EF, 3));
                let is_last = number + 1 == pieces.len();
                let flags = flags_of(piece).unwrap();
                prop_assert_eq!(flags & OFFSET, at);
                prop_assert_eq!(flags & MORE != 0, more || !is_last);
                let part = &piece.octets()[piece.header().transport..];
                prop_assert!(is_last || part.len() % 8 == 0);
                at += (part.len() / 8) as u16;
                data.extend_from_slice(part);
            }
            prop_assert_eq!(data, &whole.octets()[whole.header().transport..]);
        }
    }

    #[test]
    fn what_must_not_be_divided_comes_back() {
        let whole = packet(2_000, DONT_FRAGMENT, &[]);
        let back = divide(whole.clone(), 1_500).unwrap_err();
        assert_eq!(back.octets(), whole.octets());
        assert!(divide(packet(2_000, 0, &[]), 27).is_err(), "no room for eight octets");
        assert_eq!(divide(packet(2_000, 0, &[]), 28).unwrap().len(), 248);
    }

    #[test]
    fn only_copied_options_are_in_later_fragments() {
        // A route without the copied flag, and a security option with it.
        let whole = packet(100, 0, &[7, 3, 4, 0x88, 4, 0, 1, 0]);
        let pieces = divide(whole, 68).unwrap();
        assert_eq!(pieces[0].header().transport, 28);
        assert_eq!(&pieces[1].octets()[20..pieces[1].header().transport], [0x88, 4, 0, 1]);
    }
}
