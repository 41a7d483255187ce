use super::*;
use crate::queue::{EarlyDropper, Fifo, QueueRoom};
use crate::testing::packet;
use dscp::Dscp;
use proptest::prelude::*;

const LATE: u64 = 200_000;

/// A shaper over a FIFO that always has packets, with lengths drawn from `lengths`.
struct Run {
    shaper: Shaper,
    rng: base::rng::Rng,
    lengths: Vec<usize>,
    /// Time of departure of each packet, and its length with overhead.
    sent: Vec<(u64, usize)>,
    now: u64,
}

impl Run {
    fn new(rate: u64, burst: u64, interval: Option<u64>, overhead: u16, lengths: &[usize]) -> Run {
        let rate = Rate::from_bits(rate).unwrap();
        let fifo =
            Box::new(Fifo::new(QueueRoom { packets: 10, octets: 100_000 }, EarlyDropper::Tail));
        let shaper = Shaper::new(rate, burst, interval, overhead, fifo);
        Run {
            shaper,
            rng: base::rng::Rng::new(7),
            lengths: lengths.to_vec(),
            sent: Vec::new(),
            now: 0,
        }
    }

    /// Sends until `end`. After each wait, it is late by up to `late` nanoseconds.
    fn until(&mut self, end: u64, late: u64) {
        while self.now < end {
            let now = Time(self.now);
            while self.shaper.backlog().packets < 2 {
                let length = self.lengths[self.rng.below(self.lengths.len() as u64) as usize];
                let packet = packet(Dscp::CS0, length, 1, 0);
                self.shaper.push(now, packet, &FlowTables::default(), &mut Vec::new());
            }
            match self.shaper.ready(now) {
                Readiness::Now(length) => {
                    let packet = self.shaper.pop(now).unwrap();
                    assert_eq!(packet.length(), length);
                    self.sent.push((self.now, length + self.shaper.overhead));
                }
                Readiness::At(moment) => {
                    assert!(moment > now, "it would never go on");
                    assert!(self.shaper.pop(now).is_none());
                    self.now = moment.0 + self.rng.below(late + 1);
                }
                Readiness::Empty => panic!("two packets wait"),
            }
        }
    }

    /// Bits a second from the first to the last departure in this time.
    fn rate(&self, from: u64, to: u64) -> f64 {
        let mut inside =
            self.sent.iter().filter(|(at, _)| (from..to).contains(at)).map(|(at, _)| *at);
        let (first, last) = (inside.next().unwrap(), inside.next_back().unwrap());
        self.octets(first, last) as f64 * 8e9 / (last - first) as f64
    }

    /// Octets sent in this time, without its end.
    fn octets(&self, from: u64, to: u64) -> u64 {
        let sent = self.sent.iter().filter(|(at, _)| (from..to).contains(at));
        sent.map(|(_, length)| *length as u64).sum()
    }
}

#[test]
fn ten_seconds_are_within_a_thousandth_also_with_a_late_caller() {
    for (rate, burst) in
        [(512_000, 3_000), (2_000_000, 3_000), (10_000_000, 6_000), (100_000_000, 62_500)]
    {
        for late in [0, LATE] {
            let mut run = Run::new(rate, burst, None, 0, &[40, 576, 1_500]);
            run.until(11 * SECOND, late);
            let sent = run.rate(SECOND, 11 * SECOND);
            let off = (sent / rate as f64 - 1.0).abs();
            assert!(off < 0.001, "{rate} bit/s, late by {late} ns: {sent} bit/s");
        }
    }
}

#[test]
fn a_burst_too_small_for_the_lateness_loses_rate() {
    let mut run = Run::new(100_000_000, 0, None, 0, &[1_500]);
    run.until(SECOND, LATE);
    assert!(run.octets(0, SECOND) * 8 < 70_000_000, "{}", run.octets(0, SECOND));
}

#[test]
fn overhead_counts_against_the_rate() {
    let mut run = Run::new(1_000_000, 2_000, None, 14, &[86]);
    run.until(11 * SECOND, 0);
    let packets = run.octets(SECOND, 11 * SECOND) / 100;
    assert!(packets.abs_diff(12_500) <= 1, "{packets} packets of 86 and 14 octets in 10 s");
}

#[test]
fn ciscos_interval_grants_in_lumps() {
    // `shape average 512000 512000`: Bc is 64,000 octets, Tc a second.
    let mut run = Run::new(512_000, 64_000, Some(SECOND), 0, &[1_000]);
    run.until(10 * SECOND, 0);
    let moments: std::collections::BTreeSet<_> = run.sent.iter().map(|(at, _)| *at).collect();
    let seconds: Vec<_> = (0..10).map(|second| second * SECOND).collect();
    assert_eq!(moments.into_iter().collect::<Vec<_>>(), seconds);
    assert!(run.sent.iter().filter(|(at, _)| *at == 3 * SECOND).count() == 64);
}

#[test]
fn negative_tokens_larger_than_a_grant_are_waited_for() {
    // 125 octets every millisecond, packets of 1,500: one every 12 ms.
    let mut run = Run::new(1_000_000, 0, Some(1_000_000), 0, &[1_500]);
    run.until(121_000_000, 0);
    let gaps: Vec<_> = run.sent.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(gaps.iter().all(|gap| (12_000_000..=13_000_000).contains(gap)), "{gaps:?}");
    assert_eq!(run.octets(0, 120_000_000), 15_000);
}

/// The most octets by which any period between two departures exceeds the rate: the smallest burst
/// to which the departures conform.
fn excess(sent: &[(u64, usize)], rate: u64) -> f64 {
    // The highest level of a bucket that drains at the rate and that each packet fills.
    let (mut level, mut last, mut most) = (0.0_f64, 0, 0.0_f64);
    for (at, length) in sent {
        level = (level - (at - last) as f64 * rate as f64 / 8e9).max(0.0) + *length as f64;
        last = *at;
        most = most.max(level);
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_window_sees_more_than_burst_rate_and_a_packet(
        rate in 10_000_u64..1_000_000_000,
        burst in 0_u64..50_000,
        interval in prop::option::of(1_000_000_u64..200_000_000),
        overhead in 0_u16..30,
        late in prop::sample::select(vec![0, LATE, 50_000_000]),
        idle in 0_u64..SECOND,
    ) {
        let mut run = Run::new(rate, burst, interval, overhead, &[40, 300, 1_500]);
        let span = (8 * SECOND * 50_000 / rate).min(10 * SECOND);
        run.until(span, late);
        run.now += idle;
        run.until(run.now + span, late);
        let grant = interval.map_or(0.0, |interval| interval as f64 * rate as f64 / 8e9);
        let burst = if interval.is_some() { grant.max(burst as f64) } else { burst as f64 };
        let packet = 1_500.0 + f64::from(overhead);
        let excess = excess(&run.sent, rate);
        prop_assert!(excess <= burst + grant + packet + 1e-3, "{excess} octets");
    }
}
