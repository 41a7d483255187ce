//! Memory is bounded whatever passes.

use super::*;

#[test]
fn of_half_a_million_flows_only_so_many_are_kept_and_none_is_lost() {
    let limits = Limits { flows: 1_000, sightings: 1_000, ..Limits::default() };
    let mut bench = Bench::new(limits, 2);
    let (flows, packets) = (500_000u32, 2_000_000u64);
    let mut seen = (0, 0);
    for n in 0..packets {
        // Four packets of a flow in a row, at both points; half of them TCP that looks like TPKT.
        let flow = (n / 4) as u32;
        let of = if flow.is_multiple_of(2) { TCP } else { UDP };
        let payload = [3, 0, 0, 200, 2, 0xf0, 0x80, n as u8];
        let sent = Sent {
            source: 100 + flow / 50_000,
            ports: ((flow % 50_000) as u16, 5_000),
            dscp: Dscp::new((flow % 64) as u8).unwrap(),
            sequence: (n % 4) as u32 * 5_000,
            payload: &payload,
            identification: n as u16,
            ..of
        };
        let octets = sent.octets();
        let original = octets.len() as u32;
        let point = (n % 2) as usize;
        bench.analysis.handle(Time(n * 1_000), Frame { point, original, octets: &octets });
        while let Some(output) = bench.analysis.poll() {
            seen.0 += u64::from(matches!(output, Output::Flow(_)));
        }
        let (kept, waiting) = bench.analysis.kept();
        assert!(kept <= limits.flows && waiting <= limits.waiting);
        assert!(bench.analysis.associations <= limits.associations);
        assert!(bench.analysis.outputs.capacity() <= 64);
        seen.1 = seen.1.max(kept);
    }
    bench.analysis.finish();
    while let Some(output) = bench.analysis.poll() {
        seen.0 += u64::from(matches!(output, Output::Flow(_)));
    }
    let totals = bench.analysis.totals();
    // Each flow at two points.
    assert_eq!((seen.0, seen.1), (u64::from(flows) * 2, limits.flows));
    assert_eq!(totals.flows, u64::from(flows) * 2);
    assert_eq!(totals.flows_evicted, u64::from(flows) * 2 - limits.flows as u64);
    let counted: u64 = bench.analysis.aggregates().map(|(_, of)| of.volume.packets).sum();
    assert_eq!((totals.packets, counted), (packets, packets));
    let bins = bench.analysis.aggregates().map(|(_, of)| of.series.iter().count()).max();
    assert!(bins.unwrap() <= limits.intervals);
    assert_eq!(bench.analysis.kept(), (0, 0));
}

#[test]
fn connections_that_are_followed_and_what_waits_in_them_are_bounded() {
    let limits = Limits { associations: 10, waiting: 50_000, ..Limits::default() };
    let mut bench = Bench::new(limits, 1);
    let first = [3, 0, 0xff, 0xff, 2, 0xf0, 0x80, 1];
    let later = vec![0; 1_000];
    for n in 0..100u16 {
        let of = Sent { ports: (n, 5_000), ..TCP };
        bench.packet(u64::from(n), 0, &Sent { payload: &first, ..of });
        for k in 1..100u32 {
            // Never what is next.
            bench.packet(u64::from(n), 0, &Sent { sequence: k * 2_000, payload: &later, ..of });
            assert!(bench.analysis.kept().1 <= limits.waiting);
        }
    }
    assert_eq!(bench.analysis.associations, 10);
    assert_eq!(bench.analysis.totals().associations_passed, 90);
    bench.finish();
    assert_eq!((bench.analysis.kept(), bench.analysis.associations), ((0, 0), 0));
}

#[test]
fn points_beyond_the_limit_are_the_last_one() {
    let limits = Limits { points: 3, ..Limits::default() };
    let mut analysis = Analysis::new(limits);
    let places: Vec<usize> = (0..5).map(|n| analysis.point(n.to_string(), LinkType::Raw)).collect();
    assert_eq!((places, analysis.totals().points_passed), (vec![0, 1, 2, 2, 2], 2));
}
