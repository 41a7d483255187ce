use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn data(sequence: u32, length: u32) -> Segment<'static> {
    Segment {
        sequence,
        acknowledged: Some(1),
        flags: flag::ACK,
        window: 100,
        timestamps: None,
        length,
        payload: &[],
    }
}

/// Feeds segments at these milliseconds.
fn feed(track: &mut Track, segments: &[(u64, u32, u32)]) -> Vec<SegmentKind> {
    let each = segments.iter();
    each.map(|(ms, from, length)| track.segment(Time(ms * MS), &data(*from, *length), false, None))
        .collect()
}

#[test]
fn a_segment_seen_before_was_lost_behind_this_point() {
    let mut track = Track::default();
    let seen = feed(&mut track, &[(0, 100, 10), (1, 110, 10), (900, 100, 10), (901, 115, 10)]);
    assert_eq!(
        seen,
        [SegmentKind::New, SegmentKind::New, SegmentKind::Again(10), SegmentKind::Again(5)]
    );
    let counts = track.finish();
    assert_eq!((counts.segments, counts.retransmissions, counts.lost_before), (4, 2, 0));
    assert_eq!((counts.retransmitted_octets, counts.spurious), (15, 0));
}

#[test]
fn what_fills_a_gap_was_overtaken_or_lost_before_this_point() {
    let mut track = Track::default();
    let seen = feed(&mut track, &[(0, 0, 10), (1, 20, 10), (2, 10, 10), (3, 40, 10), (90, 30, 10)]);
    assert_eq!(seen[2..], [SegmentKind::OutOfOrder, SegmentKind::New, SegmentKind::Again(10)]);
    let counts = track.finish();
    assert_eq!((counts.out_of_order, counts.retransmissions, counts.lost_before), (1, 1, 1));
    assert_eq!(counts.missing_octets, 0);
    // With a round-trip time of 200 ms, 87 ms are too soon for a retransmission.
    let mut track = Track::default();
    let trip = Some(200 * MS);
    for (ms, from) in [(3, 0), (4, 20), (91, 10)] {
        track.segment(Time(ms * MS), &data(from, 10), false, trip);
    }
    assert_eq!(track.counts.out_of_order, 1);
}

#[test]
fn what_was_seen_in_part_was_sent_again_however_soon() {
    let mut track = Track::default();
    let seen = feed(&mut track, &[(0, 0, 10), (1, 20, 10), (2, 5, 15)]);
    assert_eq!(seen[2], SegmentKind::Again(15));
    assert_eq!((track.counts.out_of_order, track.finish().missing_octets), (0, 0));
}

#[test]
fn probes_are_not_retransmissions_and_spurious_ones_are_reported() {
    let mut track = Track::default();
    feed(&mut track, &[(0, 0, 10)]);
    assert_eq!(feed(&mut track, &[(1, 9, 1)]), [SegmentKind::Probe]);
    let probe = track.segment(Time(2 * MS), &data(10, 1), true, None);
    assert_eq!(probe, SegmentKind::Probe);
    assert_eq!(track.acknowledge(10, true), Acknowledged::UpTo(1 << 40 | 10));
    assert_eq!(track.acknowledge(10, true), Acknowledged::Nothing);
    feed(&mut track, &[(3, 10, 10)]);
    assert_eq!(track.acknowledge(10, true), Acknowledged::Again);
    assert_eq!(track.acknowledge(10, false), Acknowledged::Nothing);
    feed(&mut track, &[(900, 0, 10)]);
    assert_eq!((track.counts.spurious, track.counts.probes), (1, 2));
}

#[test]
fn numbers_wrap() {
    let mut track = Track::default();
    let seen = feed(&mut track, &[(0, u32::MAX - 4, 10), (1, 5, 10), (900, u32::MAX - 4, 10)]);
    assert_eq!(seen, [SegmentKind::New, SegmentKind::New, SegmentKind::Again(10)]);
    assert!(track.is_near(3) && !track.is_near(1 << 31));
}

#[test]
fn gaps_are_bounded_and_what_never_came_is_missing() {
    let mut track = Track::default();
    for number in 0..1_000u32 {
        feed(&mut track, &[(0, number * 20, 10)]);
        assert!(track.holes.len() <= MAX_HOLES);
    }
    assert_eq!(track.finish().missing_octets, 999 * 10);
}

proptest! {
    /// Against a map of every octet: segments of one unit each pass in some order, some twice, some
    /// never; no more gaps than are remembered.
    #[test]
    fn it_counts_as_a_map_of_all_octets_does(
        start in any::<u32>(),
        order in proptest::collection::vec((0u32..60, 0u64..8), 1..200),
    ) {
        let mut track = Track::default();
        let mut passed: BTreeMap<i64, u64> = BTreeMap::new();
        let (mut now, mut expected) = (0, TcpCounts::default());
        let mut highest: Option<i64> = None;
        let mut since: BTreeMap<i64, u64> = BTreeMap::new();
        for (unit, pause) in order {
            now += pause * MS;
            let unit_at = i64::from(unit);
            // Two octets each, so that none is taken for a probe.
            track.segment(Time(now), &data(start.wrapping_add(unit * 2), 2), false, None);
            expected.segments += 1;
            match highest {
                Some(high) if unit_at <= high => {
                    // Below the first is as if seen: nobody knows.
                    let missing = since.remove(&unit_at);
                    match missing {
                        Some(since) if now - since < REORDERING => expected.out_of_order += 1,
                        missing => {
                            expected.retransmissions += 1;
                            expected.retransmitted_octets += 2;
                            expected.lost_before += u64::from(missing.is_some());
                        }
                    }
                }
                Some(high) => {
                    for gap in high + 1..unit_at {
                        since.insert(gap, now);
                    }
                }
                None => {}
            }
            highest = highest.max(Some(unit_at));
            *passed.entry(unit_at).or_default() += 1;
        }
        expected.missing_octets = since.len() as u64 * 2;
        prop_assert_eq!(track.finish(), expected);
    }
}
