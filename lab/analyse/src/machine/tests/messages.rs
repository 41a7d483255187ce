//! Messages of P1 over TPKT, in segments that are cut, lost and reordered.

use super::*;
use bytes::Bytes;
use osi::session::pdu::{ConnectSpdu, Spdu};
use p1::apdu::encode_message_head;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// A TSDU in DT TPDUs of at most `most` octets, each in its TPKT.
fn packets(tsdu: &[u8], most: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    let count = tsdu.chunks(most).count();
    for (place, part) in tsdu.chunks(most).enumerate() {
        octets.extend([3, 0]);
        octets.extend((part.len() as u16 + 7).to_be_bytes());
        octets.extend([2, 0xf0, if place + 1 == count { 0x80 } else { 0 }]);
        octets.extend(part);
    }
    octets
}

/// An element with a length of three octets.
fn element(tag: u8, inner: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (inner.len() as u32).to_be_bytes();
    [&[tag, 0x83][..], &length, inner].concat()
}

/// RTTR in a presentation data value: single-ASN1-type, or octet-aligned.
fn value(octets: &[u8], aligned: bool) -> Vec<u8> {
    let data = if aligned { element(0x81, octets) } else { element(0xa0, &element(0x04, octets)) };
    let list = [&[2, 1, 5][..], &data].concat();
    [&[1, 0, 1, 0][..], &element(0x61, &element(0x30, &list))].concat()
}

struct Transfer {
    stream: Vec<u8>,
    identifier: String,
    octets: u64,
}

/// What the sender sends: CR, CN, an activity with checkpoints, its end.
fn transfer(aligned: bool) -> Transfer {
    let mut runner = TestRunner::deterministic();
    let envelope = p1::testing::message().new_tree(&mut runner).unwrap().current();
    let content = vec![0x5a; 30_000];
    let apdu = [encode_message_head(&envelope, content.len() as u64), content].concat();
    let mut stream = vec![3, 0, 0, 11, 6, 0xe0, 0, 0, 0, 1, 0];
    let connect = ConnectSpdu {
        user_data: Bytes::from_static(&[0x31, 6, 0x06, 4, 0x56, 0, 1, 6]),
        ..ConnectSpdu::default()
    };
    stream.extend(packets(&Spdu::Connect(connect).encode_tsdu(), 2_000));
    let start = Spdu::ActivityStart(Bytes::from_static(&[2, 1, 1]));
    stream.extend(packets(&start.encode_tsdu(), 2_000));
    // In an EXTERNAL, as normal mode has it; and bare, as X.410 mode does.
    let external = element(0x28, &[&[2, 1, 5][..], &element(0xa0, &apdu)].concat());
    let rttr = if aligned { &apdu } else { &external };
    for (serial, part) in (1..).zip(rttr.chunks(8_000)) {
        stream.extend(packets(&value(part, aligned), 2_000));
        let sync = Spdu::MinorSync { serial, explicit: true };
        stream.extend(packets(&sync.encode_tsdu(), 2_000));
    }
    stream.extend(packets(&Spdu::ActivityEnd(9).encode_tsdu(), 2_000));
    let identifier = envelope.message_identifier.to_string();
    Transfer { stream, identifier, octets: apdu.len() as u64 }
}

/// Sends the stream in segments in this order, then the confirm.
fn send(bench: &mut Bench, stream: &[u8], segments: &[(usize, usize)]) {
    let there = Sent { dscp: Dscp::CS3, ..TCP };
    bench.packet(0, 0, &Sent { sequence: 999, flags: flag::SYN, ..there });
    for (place, (from, to)) in (1..).zip(segments) {
        let sent = Sent { sequence: 1_000 + *from as u32, payload: &stream[*from..*to], ..there };
        bench.packet(place * 10 * MS, 0, &sent);
    }
    let back = Sent { source: 2, destination: 1, ports: (5_000, 40_000), ..there };
    let octets = packets(&Spdu::ActivityEndAck(9).encode_tsdu(), 2_000);
    let at = (segments.len() as u64 + 3) * 10 * MS;
    bench.packet(at, 0, &Sent { sequence: 50, payload: &octets, ..back });
    bench.finish();
}

fn cut(stream: &[u8], size: usize) -> Vec<(usize, usize)> {
    (0..stream.len()).step_by(size).map(|at| (at, (at + size).min(stream.len()))).collect()
}

#[test]
fn a_message_is_a_row_with_the_fields_of_its_envelope() {
    for aligned in [false, true] {
        let transfer = transfer(aligned);
        let mut bench = Bench::new(Limits::default(), 1);
        let segments = cut(&transfer.stream, 1_448);
        send(&mut bench, &transfer.stream, &segments);
        let [message] = &bench.messages[..] else { panic!("{:?}", bench.messages) };
        assert_eq!((message.outcome, message.gaps), (TransferOutcome::Confirmed, false));
        assert_eq!(message.octets, transfer.octets);
        assert_eq!(message.envelope.as_ref().unwrap().identifier, transfer.identifier);
        assert_eq!((message.marks.as_slice(), message.checkpoints), (&[Dscp::CS3][..], 4));
        assert_eq!(message.span, (Time(10 * MS), Time((segments.len() as u64 + 3) * 10 * MS)));
        assert_eq!(message.sent, Some(Time(segments.len() as u64 * 10 * MS)));
        assert_eq!(message.source.port, Some(40_000));
        let all: u64 = message.series.iter().map(|(_, octets)| octets).sum();
        assert_eq!(all, message.octets);
        assert!(bench.flows.iter().all(|flow| flow.application == Application::P1));
    }
}

#[test]
fn lost_and_resent_segments_count_and_change_nothing() {
    let transfer = transfer(false);
    let mut segments = cut(&transfer.stream, 1_448);
    // One is lost before this point and comes late, one behind it and comes twice.
    let late = segments.remove(5);
    segments.insert(12, late);
    segments.insert(15, segments[9]);
    let mut bench = Bench::new(Limits::default(), 1);
    send(&mut bench, &transfer.stream, &segments);
    let [message] = &bench.messages[..] else { panic!("{:?}", bench.messages) };
    assert_eq!((message.octets, message.retransmissions), (transfer.octets, 2));
    assert_eq!((message.outcome, message.gaps), (TransferOutcome::Confirmed, false));
    assert_eq!(bench.analysis.kept(), (0, 0));
}

#[test]
fn what_the_capture_has_missed_leaves_a_row_with_gaps() {
    let transfer = transfer(false);
    let mut segments = cut(&transfer.stream, 1_448);
    segments.remove(5);
    let limits = Limits { waiting: 6_000, ..Limits::default() };
    let mut bench = Bench::new(limits, 1);
    send(&mut bench, &transfer.stream, &segments);
    let [message] = &bench.messages[..] else { panic!("{:?}", bench.messages) };
    assert!(message.gaps && message.octets < transfer.octets);
    assert_eq!(bench.analysis.kept(), (0, 0));
}

#[test]
fn a_capture_that_begins_and_ends_in_the_middle() {
    let transfer = transfer(false);
    let segments = cut(&transfer.stream, 1_448);
    let mut bench = Bench::new(Limits::default(), 1);
    for (place, (from, to)) in (0u64..).zip(&segments[..9]) {
        let sent = Sent { sequence: *from as u32, payload: &transfer.stream[*from..*to], ..TCP };
        bench.packet(place * MS, 0, &sent);
    }
    bench.finish();
    let [message] = &bench.messages[..] else { panic!("{:?}", bench.messages) };
    assert_eq!((message.outcome, message.span.1), (TransferOutcome::Broken, Time(8 * MS)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Any cuts, and any order within a window: the same row.
    #[test]
    fn cuts_and_order_do_not_matter(
        sizes in proptest::collection::vec(20usize..3_000, 30),
        swaps in proptest::collection::vec((0usize..60, 1usize..5), 0..30),
    ) {
        let transfer = transfer(true);
        let (mut segments, mut from) = (Vec::new(), 0);
        for size in sizes.iter().cycle() {
            let to = (from + size).min(transfer.stream.len());
            segments.push((from, to));
            from = to;
            if from == transfer.stream.len() {
                break;
            }
        }
        // The first stays: by it the stream is known.
        let count = segments.len();
        for (at, far) in swaps {
            let (a, b) = (1 + at % (count - 1), 1 + (at + far) % (count - 1));
            if a.abs_diff(b) <= 5 {
                segments.swap(a, b);
            }
        }
        let mut bench = Bench::new(Limits::default(), 1);
        send(&mut bench, &transfer.stream, &segments);
        prop_assert_eq!(bench.messages.len(), 1);
        let message = &bench.messages[0];
        prop_assert_eq!((message.octets, message.outcome), (transfer.octets, TransferOutcome::Confirmed));
        prop_assert_eq!(&message.envelope.as_ref().unwrap().identifier, &transfer.identifier);
    }
}
