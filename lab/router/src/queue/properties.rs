//! Droppers compared with plain models: thresholds, the average queues of WRED and TRIO, and the
//! distribution of drops.

use super::average::ONE;
use super::red::{DropDraw, DropFunction};
use super::{EarlyDropper, Fifo, QueueRoom, Red, Thresholds, Trio};
use crate::classify::FlowTables;
use crate::count::{Cause, PartCounters};
use crate::discipline::Discipline;
use crate::packet::Packet;
use crate::policy::{Curve, WredLine};
use crate::testing::with_ecn;
use crate::time::Time;
use base::rng::Rng;
use dscp::Dscp;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// For green, yellow and red packets.
const COLOURS: [Dscp; 3] = [Dscp::AF11, Dscp::AF12, Dscp::AF13];
const LIMIT: usize = 12;

/// A packet arrives after a time in nanoseconds: its colour, whether its transport is ECN-capable,
/// and how many packets leave after it.
type Step = (u64, usize, bool, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![2 => Just(0), 3 => 1_u64..3_000_000, 1 => 3_000_000_u64..50_000_000];
    prop::collection::vec((pause, 0_usize..3, any::<bool>(), 0_usize..3), 1..200)
}

fn room() -> QueueRoom {
    QueueRoom { packets: LIMIT, octets: usize::MAX }
}

fn averages(fifo: &Fifo) -> Vec<f64> {
    let mut parts: Vec<PartCounters<'_>> = Vec::new();
    fifo.report("q", &mut parts);
    parts[0].counters.averages().to_vec()
}

/// The average queues by the formulas of Floyd and Jacobson, one for each colour.
struct Model {
    exponent: i32,
    averages: [f64; 3],
    waiting: VecDeque<usize>,
    /// The time since which a packet waits, or at which the last departure left packets behind.
    since: u64,
    /// Whether no packet left since the queue was empty.
    fresh: bool,
    /// When the queue became empty, or was last seen empty by an arrival.
    empty: Option<u64>,
    busy: f64,
    left: f64,
}

impl Model {
    fn new(exponent: u8) -> Model {
        Model {
            exponent: exponent.into(),
            averages: [0.0; 3],
            waiting: VecDeque::new(),
            since: 0,
            fresh: true,
            empty: None,
            busy: 0.0,
            left: 0.0,
        }
    }

    fn came(&mut self, now: u64) {
        let weight = 0.5_f64.powi(self.exponent);
        if self.waiting.is_empty() {
            let idle = self.empty.replace(now).map(|since| (now - since) as f64);
            let packets = match idle {
                None => 0.0,
                Some(_) if self.busy == 0.0 => 1.0,
                Some(idle) => (idle * self.left / self.busy).floor(),
            };
            self.averages = self.averages.map(|average| average * (1.0 - weight).powf(packets));
            (self.since, self.fresh) = (now, true);
            return;
        }
        for (colour, average) in self.averages.iter_mut().enumerate() {
            let met = self.waiting.iter().filter(|one| **one <= colour).count();
            *average += (met as f64 - *average) * weight;
        }
    }

    fn went(&mut self, now: u64) -> Option<usize> {
        let colour = self.waiting.pop_front()?;
        if !self.fresh || now > self.since {
            self.busy += (now - self.since) as f64;
            self.left += 1.0;
        }
        (self.since, self.fresh) = (now, false);
        if self.waiting.is_empty() {
            self.empty = Some(now);
        }
        Some(colour)
    }
}

/// Runs a queue beside the model. `place` gives the average queue of a colour, `line` the range of
/// averages in which it is dropped at random.
fn follows(
    mut fifo: Fifo,
    exponent: u8,
    steps: &[Step],
    place: fn(usize) -> usize,
    line: impl Fn(usize) -> (f64, f64),
) -> Result<(), TestCaseError> {
    let mut model = Model::new(exponent);
    let mut now = 0;
    for (made, (pause, colour, capable, pops)) in steps.iter().enumerate() {
        now += pause;
        let mut discarded = Vec::new();
        let came = with_ecn(COLOURS[*colour], 100, 1, made as u64, u8::from(*capable));
        model.came(now);
        let full = model.waiting.len() >= LIMIT;
        fifo.push(Time(now), came, &FlowTables::default(), &mut discarded);
        for (shown, average) in averages(&fifo).iter().zip(model.averages.iter().skip(place(0))) {
            prop_assert!((shown - average).abs() < 1e-5, "{shown} for {average}");
        }
        let average = model.averages[place(*colour)];
        let (min, max) = line(*colour);
        let cause = discarded.first().map(|(_, cause)| *cause);
        match cause {
            Some(Cause::Forced) => prop_assert!(average > max - 1e-5),
            Some(Cause::Early) => {
                prop_assert!(average > min - 1e-5 && average < max + 1e-5 && !capable);
            }
            Some(Cause::Tail) => prop_assert!(full && average < max + 1e-5),
            Some(other) => prop_assert!(false, "{other:?}"),
            None => {
                prop_assert!(!full && average < max + 1e-5);
                model.waiting.push_back(*colour);
            }
        }
        for _ in 0..*pops {
            let popped = fifo.pop(Time(now));
            let expected = model.went(now).map(|colour| COLOURS[colour]);
            prop_assert_eq!(popped.as_ref().map(Packet::dscp), expected);
        }
    }
    Ok(())
}

fn curve() -> impl Strategy<Value = Curve> {
    (0_u8..=100, 0_u8..=100, 1_u8..=100).prop_map(|(a, b, most)| Curve {
        from: f64::from(a.min(b)),
        all: f64::from(a.max(b)),
        most: f64::from(most) / 100.0,
    })
}

fn line() -> impl Strategy<Value = WredLine> {
    (0_u32..12, 1_u32..12, 1_u32..40).prop_map(|(min, more, denominator)| WredLine {
        min,
        max: min + more,
        denominator,
    })
}

proptest! {
    #[test]
    fn trio_goes_by_the_average_of_its_colour(
        steps in steps(),
        curves in [curve(), curve(), curve()],
        exponent in 1_u8..8,
        seed: u64,
    ) {
        let [green, yellow, red] = &curves;
        let trio = Trio::new([green, yellow, red], LIMIT, exponent, true, Rng::new(seed));
        let packets = |percent: f64| percent / 100.0 * LIMIT as f64;
        let line = |colour: usize| (packets(curves[colour].from), packets(curves[colour].all));
        follows(Fifo::new(room(), EarlyDropper::Trio(trio)), exponent, &steps, |colour| colour, line)?;
    }

    #[test]
    fn wred_goes_by_one_average_and_the_line_of_the_code_point(
        steps in steps(),
        lines in [line(), line()],
        exponent in 1_u8..8,
        seed: u64,
    ) {
        let by_dscp = BTreeMap::from([(COLOURS[0], lines[0])]);
        let red = Red::wred(&by_dscp, Some(&lines[1]), exponent, true, Rng::new(seed));
        let line = |colour: usize| {
            let line = &lines[usize::from(colour > 0)];
            (f64::from(line.min), f64::from(line.max))
        };
        follows(Fifo::new(room(), EarlyDropper::Red(red)), exponent, &steps, |_| 2, line)?;
    }

    #[test]
    fn thresholds_equal_a_plain_list(
        packets in prop::collection::btree_map(prop::sample::select(COLOURS.to_vec()), 0_usize..9, 0..3),
        others in 0_usize..9,
        steps in steps(),
    ) {
        let mut fifo = Fifo::new(room(), EarlyDropper::Thresholds(Thresholds::new(&packets, others)));
        let mut list = VecDeque::new();
        for (made, (_, colour, _, pops)) in steps.into_iter().enumerate() {
            let dscp = COLOURS[colour];
            let mut discarded = Vec::new();
            let came = with_ecn(dscp, 100, 1, made as u64, 0);
            fifo.push(Time::ZERO, came, &FlowTables::default(), &mut discarded);
            let kept = list.len() < packets.get(&dscp).copied().unwrap_or(others);
            let cause = discarded.first().map(|(_, cause)| *cause);
            prop_assert_eq!(cause, (!kept).then_some(Cause::Threshold));
            list.extend(kept.then_some(dscp));
            for _ in 0..pops {
                prop_assert_eq!(fifo.pop(Time::ZERO).map(|packet| packet.dscp()), list.pop_front());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// At a constant average, the fraction of the drop function is dropped, and no gap exceeds the
    /// maximum.
    #[test]
    fn drops_have_the_configured_rate_and_are_spread(
        min in 0_u64..20,
        more in 1_u64..20,
        most in (1_u64..=8, 8_u64..60),
        height in 0.05_f64..0.95,
        seed: u64,
    ) {
        const DRAWS: u32 = 20_000;
        let mut function = DropFunction::new(min * ONE, (min + more) * ONE, most);
        let mut rng = Rng::new(seed);
        let average = ((min as f64 + height * more as f64) * ONE as f64) as u64;
        let p = height * most.0 as f64 / most.1 as f64;
        let (mut dropped, mut gap) = (0_u32, 0_u32);
        for _ in 0..DRAWS {
            gap += 1;
            if function.draw(average, &mut rng) == DropDraw::Early {
                dropped += 1;
                gap = 0;
            }
            // Floyd and Jacobson, method 2, stretched to a mean gap of 1/p.
            prop_assert!(p >= 0.49 || f64::from(gap) <= 2.0 / p + 1.0, "{gap} at {p}");
        }
        let share = f64::from(dropped) / f64::from(DRAWS);
        let allowed = 5.0 * (p / f64::from(DRAWS)).sqrt() + 1e-4;
        prop_assert!((share - p).abs() <= allowed, "{share} for {p}");
    }
}
