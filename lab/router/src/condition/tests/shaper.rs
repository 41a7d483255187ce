//! Shapers: exact times, order, and tables that change while packets wait.

use super::*;
use crate::policy::{Match, OctetSize, Span, TableFlow};
use crate::time::{Rate, SECOND};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

fn flow(name: &str, host: u8, rate: Option<u64>, burst: u64) -> TableFlow {
    let source = Some(format!("10.0.0.{host}").parse().unwrap());
    TableFlow {
        name: name.to_owned(),
        matches: Match { source, ..Match::default() },
        mark: None,
        rate: rate.map(|bits| Rate::from_bits(bits).unwrap()),
        burst: Some(OctetSize(burst)),
    }
}

/// A shaper of the flows of table `t`, which is empty.
fn shaper(limit: usize, delay: Option<u64>) -> Run {
    let mut policy = policy("[tables.t]\n[[chains.test]]\nkind = 'shape-flows'\ntable = 't'\n");
    if let Some(crate::policy::ChainStep::ShapeFlows { limit: l, delay: d, .. }) =
        policy.chains.get_mut("test").unwrap().first_mut()
    {
        *l = Some(limit);
        *d = delay.map(|nanos| Span(Duration::from_nanos(nanos)));
    }
    Run::new(&policy)
}

/// A model of one flow at one octet a nanosecond, computed for every nanosecond.
#[derive(Clone, Debug)]
struct Literal {
    now: u64,
    tokens: i64,
    burst: i64,
    waiting: VecDeque<(u32, i64)>,
    out: Vec<(u64, u32)>,
}

impl Literal {
    fn send(&mut self) {
        while let Some((number, octets)) = self.waiting.front().copied() {
            if self.tokens < octets.min(self.burst) {
                return;
            }
            self.tokens -= octets;
            self.waiting.pop_front();
            self.out.push((self.now, number));
        }
    }

    fn run_to(&mut self, now: u64) {
        while self.now < now {
            self.now += 1;
            self.tokens = self.burst.min(self.tokens + 1);
            self.send();
        }
    }

    /// Accepts a packet if the queue has room and the wait is not too long.
    fn take(&mut self, number: u32, octets: i64, limit: usize, delay: Option<u64>) -> bool {
        let mut tried = self.clone();
        tried.waiting.push_back((number, octets));
        tried.send();
        let waits = tried.waiting.len() > self.waiting.len();
        let mut later = tried.clone();
        later.run_to(self.now + delay.unwrap_or(0));
        let too_long = delay.is_some() && later.waiting.iter().any(|(is, _)| *is == number);
        if waits && (self.waiting.len() >= limit || too_long) {
            return false;
        }
        *self = tried;
        true
    }
}

proptest! {
    /// Every packet leaves at the nanosecond at which the model sends it, or is dropped where the
    /// model drops it. Flows do not influence each other.
    #[test]
    fn packets_go_at_the_exact_nanosecond(
        packets in prop::collection::vec((0..300u64, 0..3u8, 32..400usize), 1..80),
        burst in prop::sample::select(vec![1u64, 100, 399, 1_000]),
        limit in 1..8usize,
        delay in prop::option::of(0..1_500u64),
    ) {
        let mut run = shaper(limit, delay);
        let mut literals = Vec::new();
        for host in 0..3u8 {
            run.tables.add("t", flow(&host.to_string(), host, Some(8 * SECOND), burst)).unwrap();
            literals.push(Literal {
                now: 0,
                tokens: burst as i64,
                burst: burst as i64,
                waiting: VecDeque::new(),
                out: Vec::new(),
            });
        }
        let mut now = 0;
        for (n, (gap, host, length)) in packets.into_iter().enumerate() {
            now += gap;
            let (n, dropped) = (n as u32, run.dropped.len());
            run.take(Time(now), packet(n, host, Dscp::EF, length));
            let literal = &mut literals[usize::from(host)];
            literal.run_to(now);
            let taken = literal.take(n, length as i64, limit, delay);
            prop_assert_eq!(taken, run.dropped.len() == dropped, "packet {}", n);
        }
        run.drain();
        for (host, literal) in literals.iter_mut().enumerate() {
            literal.run_to(now + 100_000);
            let out = run.out.iter().filter(|(_, is)| usize::from(super::host(is)) == host);
            let out: Vec<_> = out.map(|(at, is)| (at.0, number(is))).collect();
            prop_assert_eq!(&out, &literal.out);
        }
        prop_assert!(run.dropped.iter().all(|(_, cause)| *cause == Cause::ShaperFull));
    }
}

/// The required accuracy is 0.1 % over 10 s; the bucket is exact to the packet.
#[test]
fn shapers_are_exact_over_ten_seconds() {
    for bits in [512_000, 2_000_000, 10_000_000, 100_000_000u64] {
        let text = format!(
            "[[chains.test]]\nkind = 'shape'\nrate = '{bits}bit'\nburst = 1500\nlimit = 50"
        );
        let mut run = Run::text(&text);
        let rate = Rate::from_bits(bits).unwrap();
        // The offered load is 150 %.
        let gap = rate.nanos_for(1_500) * 2 / 3;
        for n in 0..10 * SECOND / gap {
            run.take(Time(n * gap), packet(n as u32, 1, Dscp::CS0, 1_500));
        }
        run.advance(Time(10 * SECOND));
        let sent: usize = run.out.iter().map(|(_, is)| is.length()).sum();
        let should = rate.octets_in(10 * SECOND) + 1_500;
        assert!(should.abs_diff(sent as u64) <= 1_500, "{bits}: {sent} of {should}");
    }
}

#[test]
fn who_fetches_late_does_not_lower_the_rate() {
    let text = "[[chains.test]]\nkind = 'shape'\nrate = '100Mbit'\nburst = 1500\nlimit = 1000";
    let mut run = Run::text(text);
    for n in 0..1_000 {
        run.put(0, Time::ZERO, packet(n, 1, Dscp::CS0, 1_500));
    }
    // 120 us a packet, fetched every millisecond.
    for ms in 1..=60 {
        run.fetch(Time(ms * 1_000_000));
    }
    assert_eq!(run.out.len(), 1 + 60_000 / 120);
    let numbers: Vec<_> = run.out.iter().map(|(_, is)| number(is)).collect();
    assert!(numbers.is_sorted());
}

#[test]
fn a_packet_longer_than_the_burst_passes_and_takes_its_tokens() {
    let text = "[[chains.test]]\nkind = 'shape'\nrate = '8kbit'\nburst = 0\nlimit = 9";
    let mut run = Run::text(text);
    for n in 0..3 {
        run.take(Time::ZERO, packet(n, 1, Dscp::CS0, 500));
    }
    run.drain();
    let times: Vec<_> = run.out.iter().map(|(at, _)| at.0).collect();
    assert_eq!(times, [0, SECOND / 2, SECOND]);
    let delays = run.counters(0).delays(Dscp::CS0).unwrap();
    assert_eq!((delays.count(), delays.mean_ns()), (3, SECOND / 2));
    assert_eq!(run.counters(0).depth.most().packets, 2);
}

#[test]
fn of_257_flows_with_a_rate_the_last_is_refused() {
    let mut run = shaper(9, None);
    for n in 0..256u32 {
        run.tables.add("t", flow(&n.to_string(), n as u8, Some(8_000), 100)).unwrap();
    }
    let wrong = run.tables.add("t", flow("more", 0, Some(8_000), 100)).unwrap_err();
    assert!(wrong.to_string().starts_with("tables.t.more: 256 flows"), "{wrong}");
    run.tables.add("t", flow("free", 0, None, 100)).unwrap();
    run.tables.remove("t", "17").unwrap();
    run.tables.add("t", flow("more", 17, Some(8_000), 100)).unwrap();
    // Two packets for each flow at once: one of each waits, and leaves a tenth of a second later.
    for n in 0..512u32 {
        run.take(Time::ZERO, packet(n, n as u8, Dscp::EF, 100));
    }
    assert_eq!((run.out.len(), run.held()), (256, 256));
    run.drain();
    assert!(run.out[256..].iter().all(|(at, _)| *at == Time(SECOND / 10)));

    let mut policy = policy("[tables.t]\n");
    let table = policy.tables.get_mut("t").unwrap();
    table.flows = (0..257u32).map(|n| flow(&n.to_string(), 1, Some(8_000), 100)).collect();
    let step = crate::policy::ChainStep::ShapeFlows { table: "t".into(), delay: None, limit: None };
    let wrong = build(&policy, &[], &[step], "chains.x").unwrap_err();
    assert_eq!(wrong.path, "chains.x[0].table");
}

/// Four packets of 100 octets at once, in a flow of 100 octets in a tenth of a second.
fn waiting() -> Run {
    let mut run = shaper(9, None);
    run.tables.add("t", flow("a", 1, Some(8_000), 100)).unwrap();
    for n in 0..4 {
        run.take(Time::ZERO, packet(n, 1, Dscp::EF, 100));
    }
    assert_eq!((run.out.len(), run.held()), (1, 3));
    run
}

fn numbers(run: &Run) -> Vec<(u64, u32)> {
    run.out.iter().map(|(at, is)| (at.0, number(is))).collect()
}

#[test]
fn what_waits_for_a_flow_taken_away_goes_at_once_and_first() {
    let mut run = waiting();
    run.tables.remove("t", "a").unwrap();
    run.take(Time(1_000), packet(4, 1, Dscp::EF, 100));
    assert_eq!(numbers(&run), [(0, 0), (1_000, 1), (1_000, 2), (1_000, 3), (1_000, 4)]);
    run.take(Time(1_001), packet(5, 1, Dscp::EF, 100));
    assert_eq!((run.held(), run.out.len()), (0, 6));
    // The first packet after the change was counted because it waited; the next passed uncounted.
    assert_eq!((run.sums(0).0.packets, run.sums(0).1.packets), (5, 5));
}

#[test]
fn without_a_packet_it_goes_when_it_would_have() {
    let mut run = waiting();
    run.tables.remove("t", "a").unwrap();
    run.drain();
    let tenth = SECOND / 10;
    assert_eq!(numbers(&run), [(0, 0), (tenth, 1), (2 * tenth, 2), (3 * tenth, 3)]);
}

#[test]
fn a_flow_of_the_same_name_takes_over_what_waits() {
    let mut run = waiting();
    run.tables.remove("t", "a").unwrap();
    // Another flow uses the slot first.
    run.tables.add("t", flow("b", 2, Some(8_000), 100)).unwrap();
    run.tables.add("t", flow("a", 1, Some(80_000), 100)).unwrap();
    run.take(Time::ZERO, packet(4, 1, Dscp::EF, 100));
    run.take(Time::ZERO, packet(5, 2, Dscp::EF, 100));
    run.drain();
    let ms = 1_000_000;
    let expected = [(0, 0), (0, 5), (10 * ms, 1), (20 * ms, 2), (30 * ms, 3), (40 * ms, 4)];
    assert_eq!(numbers(&run), expected);
}

#[test]
fn another_flow_that_now_matches_does_not_overtake() {
    let mut run = waiting();
    run.tables.add("t", flow("wide", 1, Some(8_000_000), 1_000)).unwrap();
    run.tables.remove("t", "a").unwrap();
    run.take(Time(5), packet(4, 1, Dscp::EF, 100));
    assert_eq!(numbers(&run), [(0, 0), (5, 1), (5, 2), (5, 3), (5, 4)]);
}

#[test]
fn a_flow_replaced_in_its_place_keeps_what_waits_and_its_bucket() {
    let mut run = waiting();
    // A flow after it in the table would match its packets if it were added anew.
    run.tables.add("t", flow("wide", 1, Some(8_000_000), 1_000)).unwrap();
    let old = run.tables.replace("t", flow("a", 1, Some(80_000), 100)).unwrap();
    assert_eq!(old.rate, Rate::from_bits(8_000));
    run.take(Time::ZERO, packet(4, 1, Dscp::EF, 100));
    run.drain();
    let ms = 1_000_000;
    assert_eq!(numbers(&run), [(0, 0), (10 * ms, 1), (20 * ms, 2), (30 * ms, 3), (40 * ms, 4)]);
}

/// Waiting packets leave at once if the next packet of the flow would match another flow: one that
/// now precedes it, or one that followed it until it was added anew.
#[test]
fn nothing_overtakes_what_waits_in_a_flow_that_moved() {
    for moves in [0, 1] {
        let mut run = waiting();
        let wide = flow("wide", 1, Some(8_000_000), 1_000);
        if moves == 0 {
            run.tables.add_before("t", wide, "a").unwrap();
        } else {
            run.tables.add("t", wide).unwrap();
            run.tables.remove("t", "a").unwrap();
            run.tables.add("t", flow("a", 1, Some(16_000), 100)).unwrap();
        }
        run.take(Time(5), packet(4, 1, Dscp::EF, 100));
        assert_eq!(numbers(&run), [(0, 0), (5, 1), (5, 2), (5, 3), (5, 4)]);
    }
}

#[test]
fn a_class_over_a_table_that_changes_does_not_reorder() {
    let mut run = Run::text(
        r#"
        [classes.listed]
        match = [{ table = "t" }]
        [tables.t]
        flows = [{ name = "a", match = { source = "10.0.0.1" } }]
        [chains]
        test = [{ kind = "shape", class = "listed", rate = "8kbit", burst = 100, limit = 9 }]
        "#,
    );
    for n in 0..3 {
        run.take(Time::ZERO, packet(n, 1, Dscp::EF, 100));
    }
    run.tables.add("t", flow("b", 2, None, 100)).unwrap();
    run.take(Time(4), packet(3, 2, Dscp::EF, 100));
    assert_eq!((run.out.len(), run.held()), (1, 3), "who waits is still listed");
    run.tables.remove("t", "a").unwrap();
    run.take(Time(5), packet(4, 1, Dscp::EF, 100));
    assert_eq!(numbers(&run), [(0, 0), (5, 1), (5, 2), (5, 3), (5, 4)]);
}

/// A shaper fetched 60 ms late releases at once the packets of its burst and of 5 ms, not of 60 ms.
#[test]
fn what_is_made_good_after_late_fetching_is_bounded() {
    for step in ["shape'\nrate = '100Mbit'\nburst = 1500", "shape-flows'\ntable = 't'"] {
        let mut run = Run::text(&format!(
            "[[chains.test]]\nkind = '{step}\nlimit = 1000\n[[tables.t.flows]]\nname = 'a'\n\
             rate = '100Mbit'\nburst = 1500\nmatch = {{}}"
        ));
        for n in 0..1_000 {
            run.put(0, Time::ZERO, packet(n, 1, Dscp::CS0, 1_500));
        }
        run.fetch(Time(60_000_000));
        // 41 packets in 5 ms, one from the bucket, and the first one.
        assert!((41..=44).contains(&run.out.len()), "{}", run.out.len());
    }
}

#[test]
fn what_may_wait_is_bounded_in_packets_and_octets() {
    let limit = |limit: usize| {
        let text = format!("kind = 'shape'\nrate = '8kbit'\nburst = 100\nlimit = {limit}");
        let policy = policy(&format!("[[chains.test]]\n{text}"));
        build(&policy, &[], &policy.chains["test"], "chains.test").map(|_| ())
    };
    limit(100_000).unwrap();
    assert_eq!(limit(100_001).unwrap_err().path, "chains.test[0].limit");
    let text = "[[chains.test]]\nkind = 'shape'\nrate = '8kbit'\nburst = 100\nlimit = 9000";
    let mut run = Run::text(text);
    for n in 0..1_100 {
        run.put(0, Time::ZERO, packet(n, 1, Dscp::CS0, 60_000));
    }
    assert_eq!((run.held(), run.out.len()), (64_000_000 / 60_000, 1));
}
