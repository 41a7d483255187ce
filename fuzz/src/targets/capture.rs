//! Captures of anyone's traffic, as `lab analyse` takes them apart.

use crate::hash;
use analyse::file::{DecodeStep, FileDecoder};
use analyse::{Analysis, Frame, Limits, LinkType, Message, Output, Time};
use base::rng::Rng;
use bytes::Bytes;
use osi::session::tsdu;
use osi::{cotp, tpkt};

/// Few of everything, so that everything is full soon.
const TIGHT: Limits = Limits {
    flows: 2,
    associations: 1,
    waiting: 400,
    sightings: 3,
    window: 1_000_000_000,
    points: 2,
    interval: 1_000,
    intervals: 4,
};

/// A capture file: the same at any cut, every packet in one row and one sum, whatever the limits.
pub(super) fn file(octets: &[u8]) {
    let whole = read(octets, octets.len());
    let piece = 1 + (hash(octets) % 64) as usize;
    assert_eq!(read(octets, piece), whole, "cuts of {piece}");
    for limits in [Limits::default(), TIGHT] {
        analysed(octets, limits);
    }
}

/// Interface, time, length and octets of each packet.
type Found = (usize, Option<Time>, u32, Vec<u8>);

/// All packets, of a buffer that grows by so many octets; and whether it ended in an error.
fn read(file: &[u8], piece: usize) -> (Vec<Found>, bool) {
    let mut decoder = FileDecoder::default();
    let (mut packets, mut from, mut to) = (Vec::new(), 0, 0);
    loop {
        match decoder.next(file.get(from..to).unwrap_or_default()) {
            Ok(DecodeStep::Need(octets)) => {
                assert!(octets > to - from, "no more is needed than there is");
                if to == file.len() {
                    return (packets, false);
                }
                to = (to + piece).min(file.len());
            }
            Ok(DecodeStep::Passed(size)) => from += size,
            Ok(DecodeStep::Packet { size, packet }) => {
                from += size;
                let octets = packet.octets.to_vec();
                packets.push((packet.interface, packet.time, packet.original, octets));
            }
            Err(_) => return (packets, true),
        }
    }
}

fn analysed(file: &[u8], limits: Limits) {
    let (mut decoder, mut analysis, mut at) = (FileDecoder::default(), Analysis::new(limits), 0);
    let (mut frames, mut in_flows) = (0, 0);
    let mut points: Vec<usize> = Vec::new();
    while let Ok(step) = decoder.next(file.get(at..).unwrap_or_default()) {
        at += match step {
            DecodeStep::Need(_) => break,
            DecodeStep::Passed(size) => size,
            DecodeStep::Packet { size, packet } => {
                while let Some(interface) = decoder.interfaces().get(points.len()) {
                    points.push(analysis.point("x".to_owned(), interface.link));
                }
                let point = points.get(packet.interface).copied().expect("it is described");
                let (original, octets) = (packet.original, packet.octets);
                let now = packet.time.unwrap_or_default();
                analysis.handle(now, Frame { point, original, octets });
                frames += 1;
                in_flows += drained(&mut analysis).0;
                let (flows, waiting) = analysis.kept();
                assert!(flows <= limits.flows && waiting <= limits.waiting, "bounded");
                size
            }
        };
    }
    analysis.finish();
    in_flows += drained(&mut analysis).0;
    assert_eq!(analysis.kept(), (0, 0), "nothing is left");
    let totals = analysis.totals();
    assert_eq!(totals.frames, frames);
    let passed = totals.not_ip + totals.cut + totals.unknown_link + totals.broken;
    assert_eq!(totals.packets + passed, frames, "each frame is counted once");
    let summed: u64 = analysis.aggregates().map(|(_, of)| of.volume.packets).sum();
    assert_eq!((summed, in_flows), (totals.packets, totals.packets), "each packet once");
    let most = analysis.hops().iter().map(|of| of.packets).max().unwrap_or_default();
    assert!(most <= totals.packets);
}

/// Packets of the rows that are complete, and the messages.
fn drained(analysis: &mut Analysis) -> (u64, Vec<Message>) {
    let (mut packets, mut messages) = (0, Vec::new());
    while let Some(output) = analysis.poll() {
        match output {
            Output::Flow(flow) => {
                let marked: u64 = flow.marks.iter().map(|(_, packets)| packets).sum();
                assert_eq!(marked, flow.volume.packets, "each packet has one mark");
                packets += marked;
            }
            Output::Message(message) => messages.push(*message),
        }
    }
    (packets, messages)
}

/// What a peer sends on a connection, seen from outside: cuts, repetition and order of its segments
/// do not change the observed messages.
pub(super) fn stream(octets: &[u8]) {
    let octets = octets.get(..octets.len().min(200_000)).unwrap_or_default();
    let mut rng = Rng::new(hash(octets));
    let whole = shown(octets, &mut |_| 1_400, &mut |_| false);
    let mut sizes = rng.clone();
    // The first segment is whole: by it the stream is known for TPKT.
    let cut = &mut |place: usize| if place == 0 { 1_400 } else { 1 + sizes.below(900) as usize };
    let other = shown(octets, cut, &mut |place| place > 0 && rng.below(4) == 0);
    // Where something is wrong, the next segment that begins a packet is where it goes on: that is
    // another one with other cuts.
    if is_sound(octets) {
        assert_eq!(whole, other);
    }
}

/// Whether it begins as one may know TPKT, and no layer finds anything wrong.
fn is_sound(octets: &[u8]) -> bool {
    let known = match octets {
        [3, 0, _, _, 2, 0xf0, 0 | 0x80, ..] => true,
        [3, 0, high, low, indicator @ 6..=254, 0xd0..=0xef, ..] => {
            usize::from(u16::from_be_bytes([*high, *low])) == usize::from(*indicator) + 5
        }
        _ => false,
    };
    if !known {
        return false;
    }
    let (mut input, mut packets) = (Bytes::copy_from_slice(octets), tpkt::Decoder::default());
    let mut transport = cotp::pdu::Decoder::default();
    let mut session = tsdu::Decoder::default();
    loop {
        let piece = match packets.next(&mut input) {
            Ok(Some(piece)) => piece,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let Ok(items) = transport.push(piece) else { return false };
        for item in items {
            if let cotp::pdu::Item::Data { bytes, last } = item
                && session.push(bytes, last).is_err()
            {
                return false;
            }
        }
    }
}

/// Octets, gaps and envelope of each message.
fn shown(
    octets: &[u8],
    size: &mut dyn FnMut(usize) -> usize,
    swap: &mut dyn FnMut(usize) -> bool,
) -> Vec<(u64, bool, Option<String>)> {
    let (mut segments, mut from) = (Vec::new(), 0);
    while from < octets.len() {
        let to = (from + size(segments.len())).min(octets.len());
        segments.push(from..to);
        from = to;
    }
    let mut analysis = Analysis::new(Limits::default());
    let point = analysis.point("x".to_owned(), LinkType::Raw);
    let (mut order, mut messages): (Vec<usize>, _) = ((0..segments.len()).collect(), Vec::new());
    for place in 1..order.len().saturating_sub(1) {
        if swap(place) {
            order.swap(place, place + 1);
        }
    }
    for (time, place) in (0u64..).zip(order) {
        let range = segments.get(place).cloned().unwrap_or_default();
        let payload = octets.get(range.clone()).unwrap_or_default();
        let packet = segment(range.start as u32, payload);
        let original = packet.len() as u32;
        analysis.handle(Time(time * 1_000_000), Frame { point, original, octets: &packet });
        messages.extend(drained(&mut analysis).1);
    }
    analysis.finish();
    messages.extend(drained(&mut analysis).1);
    let shown = |of: &Message| {
        assert!(of.octets <= octets.len() as u64, "no more than was sent");
        (of.octets, of.gaps, of.envelope.as_ref().map(|of| of.identifier.clone()))
    };
    messages.iter().map(shown).collect()
}

/// IPv4 and TCP around a payload.
fn segment(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0x60];
    packet.extend((payload.len() as u16 + 40).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x13, 0x88]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}
