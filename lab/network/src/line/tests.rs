use super::*;
use proptest::prelude::*;
use router::policy::Span;
use router::time::SECOND;
use router::{Rate, Rng};

const HOST: LineEnd = LineEnd { queue: 1_000_000, paced: false, tapped: false };

fn link(rate: &str, overhead: u16, delay_us: u64) -> TopologyLink {
    TopologyLink {
        rate: Some(rate.parse().unwrap()),
        overhead,
        delay: Span(Duration::from_micros(delay_us)),
        ..TopologyLink::between("a.eth0", "b.eth0")
    }
}

/// A packet of this length with a number in it.
fn packet(number: u32, length: usize) -> Vec<u8> {
    let mut octets = vec![0x45, 0xb8, 0, 0];
    octets.extend(number.to_be_bytes());
    octets.resize(length.max(8), 0);
    octets
}

fn number(octets: &[u8]) -> u32 {
    u32::from_be_bytes(octets[4..8].try_into().unwrap())
}

/// Ticks at each deadline until nothing is in flight. Returns arrivals as end, number, length and
/// time.
fn run(line: &mut LinkLine) -> Vec<(usize, u32, usize, Time)> {
    let mut arrived = Vec::new();
    loop {
        while let Some(event) = line.poll() {
            if let LineEvent::Arrived { end, octets, at } = event {
                arrived.push((end, number(&octets), octets.len(), at));
            }
        }
        let Some(due) = line.deadline() else { return arrived };
        line.tick(due);
    }
}

#[test]
fn the_rate_is_exact_over_ten_seconds_however_late_it_is_looked_at() {
    for text in ["512kbit", "2Mbit", "10Mbit", "100Mbit"] {
        let rate: Rate = text.parse().unwrap();
        let mut line = LinkLine::new(&link(text, 14, 300), [HOST; 2], 1);
        let mut sizes = Rng::new(7);
        let (mut now, mut waiting, mut passed, mut last) = (Time::ZERO, 0usize, 0u64, Time::ZERO);
        while now.0 < 10 * SECOND + SECOND / 10 {
            while waiting < 2_000 {
                line.offer(now, 0, packet(0, 40 + sizes.below(1_461) as usize));
                waiting += 1;
            }
            // At most 300 of the shortest packets pass between two ticks.
            now = Time(now.0 + 1 + sizes.below(rate.nanos_for(300 * 54)));
            line.tick(now);
            while let Some(event) = line.poll() {
                let LineEvent::Arrived { octets, at, .. } = event else { panic!("{event:?}") };
                waiting -= 1;
                if at.0 <= 10 * SECOND + 300_000 {
                    passed += octets.len() as u64 + 14;
                    last = at;
                }
            }
        }
        let sent = passed * 8 * SECOND / (last.0 - 300_000);
        assert!(sent.abs_diff(rate.bits()) <= 1, "{text}: {sent} bit/s");
        assert!(last.0 > 10 * SECOND - rate.nanos_for(1_514), "{text}: {last:?}");
    }
}

#[test]
fn delay_and_overhead_are_exact() {
    let mut line = LinkLine::new(&link("2Mbit", 38, 25_000), [HOST; 2], 1);
    line.offer(Time(1_000), 1, packet(9, 1_500));
    let wanted = 1_000 + 1_538 * 8 * 500 + 25_000_000;
    assert_eq!(run(&mut line), [(0, 9, 1_500, Time(wanted))]);
    // The line was idle: the next transmission begins at once.
    line.offer(Time(wanted + 1), 1, packet(10, 100));
    assert_eq!(run(&mut line)[0].3, Time(wanted + 1 + 138 * 8 * 500 + 25_000_000));
    let counters = line.counters(1).unwrap();
    assert_eq!(counters.row(Dscp::EF).went.octets, 1_600);
    assert_eq!(counters.delays(Dscp::EF).unwrap().max_ns(), wanted - 1_000);
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    let mut line = LinkLine::new(&link("1Mbit", 0, 0), [LineEnd { queue: 2, ..HOST }; 2], 1);
    for number in 0..5 {
        line.offer(Time::ZERO, 0, packet(number, 1_000));
    }
    line.offer(Time::ZERO, 0, packet(5, 1_501));
    line.offer(Time::ZERO, 0, Vec::new());
    let causes: Vec<Cause> = std::iter::from_fn(|| line.poll())
        .map(|event| match event {
            LineEvent::Dropped { cause, .. } => cause,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(causes, [Cause::Tail, Cause::Tail, Cause::TooLong, Cause::Malformed]);
    assert_eq!(line.counters(0).unwrap().depth.most().packets, 2);
    let numbers: Vec<u32> = run(&mut line).iter().map(|one| one.1).collect();
    assert_eq!(numbers, [0, 1, 2], "one on the line, two waiting");
    assert_eq!(line.inside(), 0);
}

#[test]
fn packets_in_flight_are_bounded() {
    let far =
        TopologyLink { rate: None, delay: Span(Duration::from_secs(1)), ..link("1Mbit", 0, 0) };
    let mut line = LinkLine::new(&far, [HOST; 2], 1);
    let each = 1_500 + FLIGHT_EACH;
    for number in 0..(MAX_FLIGHT / each) as u32 {
        line.offer(Time::ZERO, 0, packet(number, 1_500));
    }
    assert_eq!(line.poll(), None);
    line.offer(Time::ZERO, 0, packet(0, 1_500));
    assert!(matches!(line.poll(), Some(LineEvent::Dropped { cause: Cause::Limit, .. })));
}

#[test]
fn a_paced_end_is_notified_when_its_packet_has_been_sent() {
    let paced = LineEnd { queue: 1, paced: true, tapped: true };
    let mut line = LinkLine::new(&link("8Mbit", 0, 5), [paced, HOST], 1);
    line.offer(Time(100), 0, packet(1, 1_000));
    line.tick(Time(u64::from(u32::MAX)));
    let events: Vec<LineEvent> = std::iter::from_fn(|| line.poll()).collect();
    let octets = packet(1, 1_000);
    assert_eq!(
        events,
        [
            LineEvent::Began { end: 0, octets: octets.clone(), at: Time(100) },
            LineEvent::Free { end: 0, at: Time(1_000_100) },
            LineEvent::Arrived { end: 1, octets, at: Time(1_005_100) },
        ]
    );
}

#[test]
fn losses_have_the_configured_rate_and_depend_on_the_seed() {
    let lossy = TopologyLink { rate: None, loss: 0.1, ..link("1Mbit", 0, 0) };
    let arrived = |seed| {
        let mut line = LinkLine::new(&lossy, [HOST; 2], seed);
        for number in 0..100_000 {
            line.offer(Time(u64::from(number)), 0, packet(number, 40));
        }
        run(&mut line)
    };
    let (one, same, other) = (arrived(1), arrived(1), arrived(2));
    assert_eq!(one, same);
    assert_ne!(one, other);
    // Three standard deviations are 285.
    assert!((89_715..=90_285).contains(&one.len()), "{}", one.len());
    for (loss, count) in [(0.0, 1_000), (1.0, 0)] {
        let mut line = LinkLine::new(&TopologyLink { loss, ..lossy.clone() }, [HOST; 2], 3);
        (0..1_000).for_each(|number| line.offer(Time::ZERO, 0, packet(number, 40)));
        assert_eq!(run(&mut line).len(), count);
    }
}

#[test]
fn jitter_changes_the_order_only_if_it_may() {
    for reorder in [false, true] {
        let jitter = Span(Duration::from_millis(5));
        let link = TopologyLink { jitter, reorder, ..link("10Mbit", 0, 1_000) };
        let mut line = LinkLine::new(&link, [HOST; 2], 4);
        let mut offered = Vec::new();
        for number in 0..1_000 {
            let now = Time(u64::from(number) * 1_000_000);
            line.offer(now, 0, packet(number, 500));
            offered.push(now.0 + 400_000);
        }
        let arrived = run(&mut line);
        assert_eq!(arrived.len(), 1_000);
        assert!(arrived.is_sorted_by_key(|one| one.3));
        assert_eq!(arrived.is_sorted_by_key(|one| one.1), !reorder);
        let delays = arrived.iter().map(|one| one.3.0 - offered[one.1 as usize]);
        let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
        // If the order is kept, a packet may wait for the previous one.
        let low = if reorder { 1_100_000 } else { 2_000_000 };
        assert!((1_000_000..low).contains(&least), "{least}");
        assert!((5_900_000..=6_000_000).contains(&most), "{most}");
    }
}

#[test]
fn half_duplex_takes_turns_where_both_wait() {
    let mut line =
        LinkLine::new(&TopologyLink { duplex: Duplex::Half, ..link("1Mbit", 0, 0) }, [HOST; 2], 1);
    for number in 0..100 {
        line.offer(Time::ZERO, 0, packet(number, 1_500));
        line.offer(Time::ZERO, 1, packet(number, 40));
    }
    let from: Vec<usize> = run(&mut line).iter().map(|one| 1 - one.0).collect();
    assert!(from.chunks(2).all(|pair| pair == [0, 1]), "{from:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Offer { end: usize, length: usize },
    Wait { nanos: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0usize..2, 8usize..1_600).prop_map(|(end, length)| Step::Offer { end, length }),
        1 => (0u64..20_000_000).prop_map(|nanos| Step::Wait { nanos }),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// Every packet comes out once. Transmissions on one medium never overlap, the rate holds over
    /// every window, and the order is kept.
    #[test]
    fn a_line_keeps_its_promises(
        steps in steps(),
        bits in 100_000u64..20_000_000,
        overhead in 0u16..50,
        half in any::<bool>(),
        queue in 1usize..40,
        loss in prop_oneof![Just(0.0), 0.0..0.5],
    ) {
        let rate = Rate::from_bits(bits).unwrap();
        let duplex = if half { Duplex::Half } else { Duplex::Full };
        let link = TopologyLink { rate: Some(rate), duplex, loss, ..link("1Mbit", overhead, 1_000) };
        let mut line = LinkLine::new(&link, [LineEnd { queue, ..HOST }; 2], 5);
        let (mut now, mut offered) = (Time::ZERO, 0u32);
        let mut dropped = 0;
        let mut arrived = Vec::new();
        let mut drain = |line: &mut LinkLine| {
            while let Some(event) = line.poll() {
                match event {
                    LineEvent::Arrived { end, octets, at } => {
                        arrived.push((end, number(&octets), octets.len(), at));
                    }
                    LineEvent::Dropped { .. } => dropped += 1,
                    other => panic!("{other:?}"),
                }
            }
            (arrived.len(), dropped)
        };
        for step in steps {
            match step {
                Step::Offer { end, length } => {
                    line.offer(now, end, packet(offered, length));
                    offered += 1;
                }
                Step::Wait { nanos } => {
                    now = Time(now.0 + nanos);
                    line.tick(now);
                }
            }
            let (came, gone) = drain(&mut line);
            prop_assert_eq!(came + gone + line.inside(), offered as usize);
            prop_assert!(line.deadline().is_none_or(|due| due > now));
        }
        line.tick(Time(now.0 + 3_600 * SECOND));
        drain(&mut line);
        prop_assert_eq!(arrived.len() + dropped, offered as usize);
        prop_assert_eq!(line.deadline(), None);
        for end in 0..2 {
            let flow: Vec<u32> = arrived.iter().filter(|a| a.0 == end).map(|a| a.1).collect();
            prop_assert!(flow.is_sorted());
            let counters = line.counters(end).unwrap();
            let row = counters.row(Dscp::EF);
            prop_assert_eq!(row.came.packets, row.went.packets + row.dropped_in_all().packets);
        }
        for medium in 0..2 {
            let mut sent: Vec<_> = arrived.iter().filter(|a| half || a.0 == medium).collect();
            sent.sort_by_key(|one| one.3);
            for (place, first) in sent.iter().enumerate() {
                let mut octets = 0;
                for later in sent.iter().skip(place + 1) {
                    octets += later.2 as u64 + u64::from(overhead);
                    // Both ends of the window are rounded to a nanosecond.
                    let window = later.3.since(first.3) + 1;
                    prop_assert!(rate.nanos_for(octets) <= window, "{} in {}", octets, window);
                }
            }
        }
    }
}
