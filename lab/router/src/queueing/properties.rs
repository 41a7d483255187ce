//! Properties of every queueing, for any tree and any traffic.

use super::build;
use crate::classify::FlowTables;
use crate::count::Amount;
use crate::discipline::{Discipline, Readiness};
use crate::packet::Packet;
use crate::policy::{
    Branch, BranchShare, Curve, Dropper, OctetSize, Push, QueueLimit, Queueing, RouterPolicy, Span,
    WredLine,
};
use crate::testing::{number, with_ecn};
use crate::time::{Rate, SECOND, Time};
use dscp::Dscp;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The code points of the traffic. Class `cN` has the Nth; the last two are in no class.
const DSCPS: [Dscp; 7] =
    [Dscp::EF, Dscp::CS6, Dscp::AF11, Dscp::AF13, Dscp::CS3, Dscp::CS0, Dscp::LE];
const CLASSES: usize = 5;

fn policy() -> RouterPolicy {
    let mut text = String::new();
    for (n, dscp) in DSCPS.iter().take(CLASSES).enumerate() {
        text += &format!("[classes.c{n}]\nmatch = [{{ dscp = [\"{dscp}\"] }}]\n");
    }
    toml::from_str(&text).unwrap()
}

fn rate() -> impl Strategy<Value = Rate> {
    (1_000_000_u64..20_000_000).prop_map(|bits| Rate::from_bits(bits).unwrap())
}

fn line() -> impl Strategy<Value = WredLine> {
    (0_u32..5, 1_u32..8, 1_u32..10).prop_map(|(min, more, denominator)| WredLine {
        min,
        max: min + more,
        denominator,
    })
}

fn curve() -> impl Strategy<Value = Curve> {
    (0_u8..=100, 0_u8..=100, 1_u8..=100).prop_map(|(a, b, most)| Curve {
        from: f64::from(a.min(b)),
        all: f64::from(a.max(b)),
        most: f64::from(most) / 100.0,
    })
}

fn dscp() -> impl Strategy<Value = Dscp> {
    prop::sample::select(DSCPS.to_vec())
}

fn dropper() -> impl Strategy<Value = Dropper> {
    let exponent = || prop::option::of(1_u8..=4);
    prop_oneof![
        Just(Dropper::Tail {}),
        (prop::collection::btree_map(dscp(), 0_usize..8, 0..4), prop::option::of(0_usize..8))
            .prop_map(|(packets, others)| Dropper::Thresholds { packets, others }),
        (line(), exponent(), any::<bool>()).prop_map(|(line, weight_exponent, ecn)| Dropper::Red {
            line,
            weight_exponent,
            ecn
        }),
        (
            prop::collection::btree_map(dscp(), line(), 0..4),
            prop::option::of(line()),
            exponent(),
            any::<bool>()
        )
            .prop_map(|(lines, others, weight_exponent, ecn)| Dropper::Wred {
                lines,
                others,
                weight_exponent,
                ecn
            }),
        (curve(), curve(), curve(), exponent(), any::<bool>()).prop_map(
            |(green, yellow, red, weight_exponent, ecn)| Dropper::Trio {
                green,
                yellow,
                red,
                weight_exponent,
                ecn
            }
        ),
    ]
}

fn leaf() -> impl Strategy<Value = Queueing> {
    let limit = || {
        let octets = prop::option::of((50_u64..9_000).prop_map(OctetSize));
        let delay = prop::option::of((1_u64..40, rate()));
        (1_usize..12, octets, delay).prop_map(|(packets, octets, delay)| QueueLimit {
            packets: Some(packets),
            octets,
            delay: delay.map(|(ms, rate)| (Span(Duration::from_millis(ms)), rate)),
        })
    };
    prop_oneof![
        3 => (limit(), dropper()).prop_map(|(limit, dropper)| Queueing::Fifo { limit, dropper }),
        1 => limit().prop_map(|limit| Queueing::Fifo {
            limit,
            dropper: Dropper::PushOut(Push { lowest_first: vec![Dscp::LE, Dscp::CS0] }),
        }),
        1 => (1_usize..5, 1_usize..12, any::<bool>(), dropper()).prop_map(
            |(queues, limit, by_precedence, dropper)| Queueing::FairFlows {
                queues: Some(queues),
                limit: Some(limit),
                by_precedence: Some(by_precedence),
                dropper,
            }
        ),
    ]
}

fn shaper(child: impl Strategy<Value = Queueing>) -> impl Strategy<Value = Queueing> {
    let interval = prop::option::of((1_u64..100).prop_map(|ms| Span(Duration::from_millis(ms))));
    (rate(), 0_u64..6_000, interval, 0_u16..30, child).prop_map(
        |(rate, burst, interval, overhead, child)| Queueing::Shaper {
            rate,
            // With an interval: its grant, or more.
            burst: OctetSize(match interval {
                Some(_) if burst % 2 == 0 => 0,
                Some(Span(interval)) => {
                    burst + rate.octets_in(u64::try_from(interval.as_nanos()).unwrap())
                }
                None => burst,
            }),
            interval,
            overhead,
            child: Box::new(child),
        },
    )
}

/// Branches of the classes from `first` on, each with a share that `share` derives from a number.
fn branches(
    parts: Vec<(Queueing, u32)>,
    others: bool,
    share: fn(u32, usize) -> BranchShare,
) -> Vec<Branch> {
    let last = parts.len() - 1;
    let branch = |(place, (queueing, number)): (usize, (Queueing, u32))| Branch {
        class: (!others || place != last).then(|| format!("c{place}")),
        share: share(number, place),
        queueing,
    };
    parts.into_iter().enumerate().map(branch).collect()
}

fn class_based_share(number: u32, place: usize) -> BranchShare {
    match number % 5 {
        0 => BranchShare::None,
        1 => BranchShare::Weight(f64::from(number)),
        2 => BranchShare::Percent(f64::from(number % 25)),
        3 => BranchShare::Bandwidth(Rate::from_bits(u64::from(number) * 2_000).unwrap()),
        _ if place == 0 => {
            let rate = Rate::from_bits(u64::from(number) * 2_000).unwrap();
            BranchShare::Priority { rate, burst: Some(OctetSize(3_000)) }
        }
        _ => BranchShare::Percent(5.0),
    }
}

fn tree() -> impl Strategy<Value = Queueing> {
    let inner = leaf().prop_recursive(3, 16, 4, |child| {
        let parts = prop::collection::vec((child.clone(), 1_u32..100), 1..=4);
        let scheduler = (parts, any::<bool>(), 0_u8..4, 1_u64..3_000).prop_map(
            |(parts, others, kind, quantum)| match kind {
                0 => Queueing::Priority {
                    branches: branches(parts, others, |_, _| BranchShare::None),
                },
                1 => Queueing::RoundRobin {
                    quantum: Some(OctetSize(quantum)),
                    branches: branches(parts, others, |n, _| {
                        BranchShare::Weight(f64::from(n) / 9.0)
                    }),
                },
                2 => Queueing::WeightedFair {
                    branches: branches(parts, others, |n, _| BranchShare::Weight(f64::from(n))),
                },
                _ => Queueing::ClassBased {
                    rate: Rate::from_bits(1_000_000),
                    branches: branches(parts, others, class_based_share),
                },
            },
        );
        prop_oneof![3 => scheduler, 1 => shaper(child)]
    });
    prop_oneof![2 => inner.clone(), 1 => shaper(inner)]
}

/// After some nanoseconds, a packet arrives and some are taken.
type Step = (u64, usize, usize, u16, u8, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![3 => Just(0), 2 => 1_u64..3_000_000, 1 => 3_000_000_u64..SECOND];
    prop::collection::vec(
        (pause, 0..DSCPS.len(), 40_usize..1_500, 0_u16..3, 0_u8..4, 0_usize..3),
        1..80,
    )
}

/// The path to the queue of this code point: the positions of the branches. Packets of a flow that
/// wait in one queue keep their order, whatever their code points.
fn queue_of(queueing: &Queueing, dscp: Dscp) -> Vec<usize> {
    match queueing {
        Queueing::Fifo { .. } | Queueing::FairFlows { .. } => Vec::new(),
        Queueing::Shaper { child, .. } => queue_of(child, dscp),
        Queueing::Priority { branches }
        | Queueing::RoundRobin { branches, .. }
        | Queueing::WeightedFair { branches }
        | Queueing::ClassBased { branches, .. } => {
            let class = DSCPS.iter().take(CLASSES).position(|of| *of == dscp);
            let class = class.map(|n| format!("c{n}"));
            let own = branches.iter().position(|one| class.is_some() && one.class == class);
            let place = own.or_else(|| branches.iter().position(|one| one.class.is_none()));
            let Some(branch) = place.and_then(|place| branches.get(place)) else {
                return vec![branches.len()];
            };
            let mut path = vec![place.unwrap()];
            path.extend(queue_of(&branch.queueing, dscp));
            path
        }
    }
}

/// A discipline whose every output is checked.
struct Watched {
    tree: Box<dyn Discipline>,
    now: u64,
    came: u64,
    came_octets: usize,
    gone_octets: usize,
    gone: BTreeSet<u64>,
    queueing: Queueing,
    /// The last packet sent, by port and queue of its code point.
    last: BTreeMap<(u16, Vec<usize>), u64>,
    /// Time of departure, number and length of each packet.
    sent: Vec<(u64, u64, usize)>,
    lost: Vec<u64>,
}

impl Watched {
    fn new(queueing: &Queueing, seed: u64) -> Watched {
        Watched {
            tree: build(&policy(), &[], queueing, "q", seed).unwrap(),
            queueing: queueing.clone(),
            now: SECOND,
            came: 0,
            came_octets: 0,
            gone_octets: 0,
            gone: BTreeSet::new(),
            last: BTreeMap::new(),
            sent: Vec::new(),
            lost: Vec::new(),
        }
    }

    fn is_gone(&mut self, packet: &Packet) {
        assert!(self.gone.insert(number(packet)), "a packet came out twice");
        self.gone_octets += packet.length();
    }

    fn push(&mut self, packet: Packet) {
        self.came += 1;
        self.came_octets += packet.length();
        let mut discarded = Vec::new();
        self.tree.push(Time(self.now), packet, &FlowTables::default(), &mut discarded);
        for (packet, _) in &discarded {
            self.is_gone(packet);
            self.lost.push(number(packet));
        }
        self.conserves();
    }

    /// Every packet that arrived is inside or has left.
    fn conserves(&self) {
        let backlog = self.tree.backlog();
        assert_eq!(self.came as usize, self.gone.len() + backlog.packets);
        assert_eq!(self.came_octets, self.gone_octets + backlog.octets);
    }

    /// Takes a packet if one is ready; else returns when one may be.
    fn pop(&mut self) -> Readiness {
        let now = Time(self.now);
        let ready = self.tree.ready(now);
        assert_eq!(self.tree.ready(now), ready, "asked again");
        assert_eq!(ready == Readiness::Empty, self.tree.backlog().packets == 0);
        let popped = self.tree.pop(now);
        match ready {
            Readiness::Now(length) => {
                let packet = popped.expect("it is ready");
                assert_eq!(packet.length(), length);
                let (from, _) = packet.header().ports.unwrap();
                let before = self
                    .last
                    .insert((from, queue_of(&self.queueing, packet.dscp())), number(&packet));
                assert!(before.is_none_or(|before| before < number(&packet)), "out of order");
                self.is_gone(&packet);
                self.sent.push((self.now, number(&packet), packet.length()));
            }
            Readiness::At(moment) => {
                assert!(popped.is_none());
                assert!(moment > now, "it would never go on");
                self.conserves_work();
            }
            Readiness::Empty => assert!(popped.is_none()),
        }
        self.conserves();
        ready
    }

    /// Nothing waits unless a shaper is above it.
    fn conserves_work(&self) {
        let mut parts = Vec::new();
        self.tree.report("q", &mut parts);
        for part in &parts {
            let inside = |other: &str| {
                other.strip_prefix(&part.path).is_some_and(|rest| rest.starts_with('/'))
            };
            let is_leaf = !parts.iter().any(|other| inside(&other.path));
            if is_leaf && !part.path.contains("/shaped") {
                assert_eq!(part.counters.depth.now().packets, 0, "{} waits", part.path);
            }
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for (made, (pause, dscp, length, port, ecn, pops)) in steps.iter().enumerate() {
            self.now += pause;
            self.push(with_ecn(DSCPS[*dscp], *length, *port, made as u64, *ecn));
            for _ in 0..*pops {
                self.pop();
            }
        }
    }

    /// Takes all packets, and returns exactly at each announced time.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            match self.pop() {
                Readiness::Empty => return,
                Readiness::Now(_) => {}
                Readiness::At(moment) => {
                    if moment.0 - 1 > self.now {
                        let early = self.tree.ready(Time(moment.0 - 1));
                        assert!(!matches!(early, Readiness::Now(_)), "announced too late a time");
                    }
                    self.now = moment.0;
                }
            }
        }
        panic!("it never ends");
    }

    /// Every part counted the packets that it let in, sent and dropped.
    fn counts_add_up(&self) {
        let mut parts = Vec::new();
        self.tree.report("q", &mut parts);
        for part in &parts {
            // The depths by code point add up to the depth of the part.
            let all = (0..64).filter_map(Dscp::new);
            let depths: Vec<_> = all.filter_map(|dscp| part.counters.depth_of(dscp)).collect();
            let inside = format!("{}/", part.path);
            if !parts.iter().any(|other| other.path.starts_with(&inside)) {
                let now: u64 = depths.iter().map(|depth| depth.now().octets).sum();
                assert_eq!(now, part.counters.depth.now().octets, "{}", part.path);
                let at = Time(self.now);
                let averages: f64 = depths.iter().map(|depth| depth.average(at)).sum();
                let whole = part.counters.depth.average(at);
                assert!((averages - whole).abs() <= 1e-6 * whole, "{averages} of {whole}");
            }
            let mut sums = [Amount::default(); 3];
            for (_, row) in part.counters.used() {
                for (sum, one) in sums.iter_mut().zip([row.came, row.went, row.dropped_in_all()]) {
                    sum.packets += one.packets;
                    sum.octets += one.octets;
                }
            }
            let [came, went, dropped] = sums;
            let inside: u64 = parts
                .iter()
                .filter(|other| other.path.starts_with(&format!("{}/", part.path)))
                .flat_map(|other| other.counters.used())
                .map(|(_, row)| row.dropped_in_all().packets)
                .sum();
            assert_eq!(came.packets, went.packets + dropped.packets + inside, "{}", part.path);
        }
        let all: u64 = parts[0].counters.used().map(|(_, row)| row.came.packets).sum();
        assert_eq!(all, self.came);
    }
}

/// The smallest burst in octets with which these departures conform to the rate.
fn burst_of(sent: &[(u64, u64, usize)], rate: Rate, overhead: u16) -> f64 {
    let (mut level, mut last, mut most) = (0.0_f64, 0, 0.0_f64);
    for (at, _, length) in sent {
        level = (level - (at - last) as f64 * rate.bits() as f64 / 8e9).max(0.0);
        level += *length as f64 + f64::from(overhead);
        last = *at;
        most = most.max(level);
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_queueing_keeps_to_its_contract(queueing in tree(), steps in steps(), seed: u64) {
        let mut watched = Watched::new(&queueing, seed);
        watched.run(&steps);
        watched.drain();
        watched.counts_add_up();
        if let Queueing::Shaper { rate, burst, interval, overhead, .. } = &queueing {
            let grant = interval.map_or(0.0, |span| {
                rate.bits() as f64 * span.0.as_secs_f64() / 8.0
            });
            let burst = if interval.is_some() { grant.max(burst.0 as f64) } else { burst.0 as f64 };
            let allowed = burst + grant + 1_500.0 + f64::from(*overhead) + 1e-3;
            let sent = burst_of(&watched.sent, *rate, *overhead);
            prop_assert!(sent <= allowed, "{sent} octets of {allowed}");
        }
        let mut again = Watched::new(&queueing, seed);
        again.run(&steps);
        again.drain();
        prop_assert_eq!(again.sent, watched.sent);
        prop_assert_eq!(again.lost, watched.lost);
    }

    #[test]
    fn weights_are_honoured_while_all_wait(
        parts in prop::collection::vec((1_u32..200, 40_usize..1_500, 40_usize..1_500), 2..=5),
        kind in 0_u8..3,
        quantum in 100_u64..5_000,
        late in 0_u64..50,
    ) {
        let lanes: Vec<_> = parts
            .iter()
            .map(|(weight, _, _)| (Queueing::default(), *weight))
            .collect();
        let weighted = |share| branches(lanes.clone(), true, share);
        let queueing = match kind {
            0 => Queueing::WeightedFair { branches: weighted(|n, _| BranchShare::Weight(f64::from(n))) },
            1 => Queueing::RoundRobin {
                quantum: Some(OctetSize(quantum)),
                branches: weighted(|n, _| BranchShare::Weight(f64::from(n))),
            },
            _ => Queueing::ClassBased {
                rate: Rate::from_bits(1_000_000),
                branches: weighted(|n, _| BranchShare::Bandwidth(Rate::from_bits(u64::from(n) * 1_000).unwrap())),
            },
        };
        let mut watched = Watched::new(&queueing, 1);
        let last = parts.len() - 1;
        let dscp_of = |lane: usize| if lane == last { Dscp::CS0 } else { DSCPS[lane] };
        let mut lengths = BTreeMap::new();
        let mut waiting = vec![0_u32; parts.len()];
        let mut served = vec![0_f64; parts.len()];
        let sum: f64 = parts.iter().map(|(weight, _, _)| f64::from(*weight)).sum();
        let most = |lane: usize| parts[lane].1.max(parts[lane].2) as f64;
        let longest = (0..parts.len()).map(most).fold(0.0, f64::max);
        let slowest = |lane: usize| most(lane) / f64::from(parts[lane].0);
        let slowest = (0..parts.len()).map(slowest).fold(0.0, f64::max);
        // The lowest and highest difference of two lanes, while all have packets waiting.
        let mut spans: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
        for round in 0..400_u64 {
            for (lane, (_, a, b)) in parts.iter().enumerate() {
                // The first lane begins later than the others.
                while waiting[lane] < 2 && (lane > 0 || round >= late) {
                    let length = if watched.came.is_multiple_of(3) { *a } else { *b };
                    lengths.insert(watched.came, lane);
                    watched.push(with_ecn(dscp_of(lane), length, lane as u16, watched.came, 0));
                    waiting[lane] += 1;
                }
            }
            prop_assert!(matches!(watched.pop(), Readiness::Now(_)));
            let (_, number, length) = *watched.sent.last().unwrap();
            let lane = lengths[&number];
            waiting[lane] -= 1;
            served[lane] += length as f64 / f64::from(parts[lane].0);
            if round < late {
                continue;
            }
            for i in 0..parts.len() {
                for j in 0..i {
                    let difference = served[i] - served[j];
                    let span = spans.entry((i, j)).or_insert((difference, difference));
                    *span = (span.0.min(difference), span.1.max(difference));
                    let [wi, wj] = [i, j].map(|n| f64::from(parts[n].0));
                    let packets = most(i) / wi + most(j) / wj;
                    let allowed = match kind {
                        1 => quantum as f64 + packets,
                        2 => 2.0 * (slowest + packets + longest / sum),
                        _ => 2.0 * (packets + longest / sum),
                    };
                    let within = span.1 - span.0;
                    prop_assert!(within <= allowed * 1.000_001, "{within} of {allowed}: {i} and {j}");
                }
            }
        }
    }
}
