use super::*;
use crate::policy::OctetSize;
use crate::time::{Rate, SECOND};
use proptest::prelude::*;

const COLOURS: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];

fn rate(bits: u64) -> Rate {
    Rate::from_bits(bits).unwrap()
}

/// A literal model of RFC 2697 3 and RFC 2698 3: counters of whole octets, incremented by one at
/// the rate. Time is in ticks of the common increment.
#[derive(Debug)]
struct Literal {
    tc: u64,
    /// Te (RFC 2697) or Tp (RFC 2698).
    t2: u64,
    cbs: u64,
    bs2: u64,
    /// Of the two-rate marker: increments of Tp for each of Tc. `None` for the single-rate marker.
    peak: Option<u64>,
    aware: bool,
}

impl Literal {
    fn new(cbs: u64, bs2: u64, peak: Option<u64>, aware: bool) -> Literal {
        Literal { tc: cbs, t2: bs2, cbs, bs2, peak, aware }
    }

    /// One increment at the committed rate, and the corresponding ones at the peak rate.
    fn tick(&mut self) {
        match self.peak {
            None => {
                if self.tc < self.cbs {
                    self.tc += 1;
                } else if self.t2 < self.bs2 {
                    self.t2 += 1;
                }
            }
            Some(times) => {
                if self.tc < self.cbs {
                    self.tc += 1;
                }
                for _ in 0..times {
                    if self.t2 < self.bs2 {
                        self.t2 += 1;
                    }
                }
            }
        }
    }

    fn colour(&mut self, b: u64, came: Colour) -> Colour {
        use Colour::{Green, Red, Yellow};
        match (self.peak.is_some(), self.aware) {
            (false, false) if self.tc >= b => {
                self.tc -= b;
                Green
            }
            (false, false) if self.t2 >= b => {
                self.t2 -= b;
                Yellow
            }
            (false, false) => Red,
            (false, true) if came == Green && self.tc >= b => {
                self.tc -= b;
                Green
            }
            (false, true) if (came == Green || came == Yellow) && self.t2 >= b => {
                self.t2 -= b;
                Yellow
            }
            (false, true) => Red,
            (true, false) if self.t2 < b => Red,
            (true, false) if self.tc < b => {
                self.t2 -= b;
                Yellow
            }
            (true, true) if came == Red || self.t2 < b => Red,
            (true, true) if came == Yellow || self.tc < b => {
                self.t2 -= b;
                Yellow
            }
            (true, _) => {
                self.t2 -= b;
                self.tc -= b;
                Green
            }
        }
    }
}

/// Packets: ticks since the previous one, octets, previous colour.
fn packets() -> impl Strategy<Value = Vec<(u64, u64, Colour)>> {
    prop::collection::vec((0..60u64, 1..50u64, prop::sample::select(&COLOURS)), 1..200)
}

proptest! {
    /// If a token takes a whole number of nanoseconds and packets arrive with the tokens, the
    /// counters of the RFCs are exact, and the meters give the same colours.
    #[test]
    fn meters_follow_the_rfcs(
        packets in packets(),
        tick in prop::sample::select(vec![1u64, 2, 5, 1_000, 15_625]),
        (cbs, bs2) in (1..120u64, 1..120u64),
        peak in prop::option::of(1..4u64),
        aware in any::<bool>(),
    ) {
        let cir = rate(8 * SECOND / tick);
        let policy = match peak {
            None => policy::MeterProfile::SingleRate {
                cir, cbs: OctetSize(cbs), ebs: OctetSize(bs2), colour_aware: aware,
            },
            Some(times) => policy::MeterProfile::TwoRate {
                cir,
                cbs: OctetSize(cbs),
                pir: rate(cir.bits() * times),
                pbs: OctetSize(bs2),
                colour_aware: aware,
            },
        };
        let mut meter = ColourMeter::new(&policy, "meter").unwrap();
        let mut literal = Literal::new(cbs, bs2, peak, aware);
        let mut now = Time::ZERO;
        for (ticks, octets, came) in packets {
            now.0 += ticks * tick;
            (0..ticks).for_each(|_| literal.tick());
            let (is, should) = (meter.colour(now, octets, came), literal.colour(octets, came));
            prop_assert_eq!(is, should, "{:?} at {:?}", literal, now);
        }
    }

    /// At any times, the octets with at most a given colour within a window do not exceed the
    /// bursts and the tokens of that window.
    #[test]
    fn rates_hold_over_every_window(
        packets in prop::collection::vec((0..3_000_000u64, 1..1_500u64), 1..60),
        bits in 1_000..20_000_000u64,
        (cbs, bs2) in (1_500..4_000u64, 1_500..9_000u64),
        kind in 0..3,
    ) {
        let (cir, cbs, bs2) = (rate(bits), OctetSize(cbs), OctetSize(bs2));
        let pir = rate(bits * 3 / 2);
        let (policy, yellow_rate, yellow_burst) = match kind {
            0 => (policy::MeterProfile::TokenBucket { rate: cir, burst: cbs }, cir, cbs.0),
            1 => {
                let meter = policy::MeterProfile::SingleRate { cir, cbs, ebs: bs2, colour_aware: false };
                (meter, cir, cbs.0 + bs2.0)
            }
            _ => {
                let meter =
                    policy::MeterProfile::TwoRate { cir, cbs, pir, pbs: bs2, colour_aware: false };
                (meter, pir, bs2.0)
            }
        };
        let mut meter = ColourMeter::new(&policy, "meter").unwrap();
        let mut now = 0;
        let coloured: Vec<(u64, u64, Colour)> = packets
            .into_iter()
            .map(|(nanos, octets)| {
                now += nanos;
                (now, octets, meter.colour(Time(now), octets, Colour::Green))
            })
            .collect();
        for (worst, rate, burst) in
            [(Colour::Green, cir, cbs.0), (Colour::Yellow, yellow_rate, yellow_burst)]
        {
            for first in 0..coloured.len() {
                let mut octets = 0;
                for (at, length, colour) in &coloured[first..] {
                    octets += if *colour <= worst { *length } else { 0 };
                    let bit_nanos = u128::from(burst) * 8 * u128::from(SECOND)
                        + u128::from(rate.bits()) * u128::from(at - coloured[first].0);
                    prop_assert!(u128::from(octets) * 8 * u128::from(SECOND) <= bit_nanos);
                }
            }
        }
    }

    /// A packet conforms when it is due, and not a nanosecond earlier.
    #[test]
    fn due_is_the_first_nanosecond(
        bits in 1..2_000_000_000u64,
        size in 1..10_000u64,
        taken in 0..30_000u64,
        octets in 1..10_000u64,
    ) {
        let mut bucket = Bucket::new(rate(bits), size);
        bucket.decrement(taken);
        let octets = octets.min(size);
        let due = bucket.due(0, octets);
        prop_assert!(bucket.clone().take(due, octets));
        prop_assert!(due == Time::ZERO || !bucket.clone().take(Time(due.0 - 1), octets));
        // With octets ahead: as if their tokens had been removed before.
        let ahead = bucket.due(777, octets);
        bucket.decrement(777);
        prop_assert_eq!(ahead, bucket.due(0, octets));
    }
}

#[test]
fn a_bucket_never_drifts_and_never_loses() {
    // 3 bit/s for a day, filled every 7 ns or so: exactly 32,400 octets.
    let mut bucket = Bucket::empty(rate(3), 1_000_000);
    for step in 0..10_000u64 {
        bucket.refill(Time(step * 7));
    }
    bucket.refill(Time(86_400 * SECOND - 1));
    assert!(!bucket.has(32_400));
    bucket.refill(Time(86_400 * SECOND));
    assert!(bucket.has(32_400));
    bucket.refill(Time(5));
    assert!(!bucket.has(32_401), "time that runs backwards gives nothing");
    bucket.change(Time(86_400 * SECOND), rate(8), 100);
    assert!(bucket.has(100) && !bucket.has(101));
}

#[test]
fn extremes_do_not_overflow() {
    let mut bucket = Bucket::new(rate(1_000_000_000_000), 10_000_000_000);
    assert!(bucket.take(Time(u64::MAX), 10_000_000_000));
    assert!(!bucket.take(Time(u64::MAX), 1));
    let slow = Bucket::empty(rate(1), 10_000_000_000);
    assert_eq!(slow.due(u64::MAX, 1), Time(u64::MAX));
}

#[test]
fn senseless_meters_are_refused() {
    let (cir, none, some) = (rate(1_000), OctetSize(0), OctetSize(1_500));
    let refused = [
        (policy::MeterProfile::TokenBucket { rate: cir, burst: none }, "meter.burst"),
        (
            policy::MeterProfile::SingleRate { cir, cbs: none, ebs: none, colour_aware: true },
            "meter.cbs",
        ),
        (
            policy::MeterProfile::TwoRate {
                cir,
                cbs: some,
                pir: rate(999),
                pbs: some,
                colour_aware: true,
            },
            "meter.pir",
        ),
        (
            policy::MeterProfile::TwoRate {
                cir,
                cbs: some,
                pir: cir,
                pbs: none,
                colour_aware: true,
            },
            "meter.pbs",
        ),
    ];
    for (policy, path) in refused {
        assert_eq!(ColourMeter::new(&policy, "meter").unwrap_err().path, path);
    }
}
