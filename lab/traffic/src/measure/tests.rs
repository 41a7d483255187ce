use super::*;
use proptest::prelude::*;

fn key(flow: u32) -> FlowKey {
    FlowKey { run: 1, flow, source: "10.0.1.2:40000".parse().unwrap() }
}

fn arrival(flow: u32, sequence: u64, sent: u64, received: u64) -> Arrival {
    let flow = key(flow);
    Arrival { flow, sequence, sent, received, octets: 100, overhead: 28, tos: Some(0xb9) }
}

#[test]
fn a_few_packets_by_hand() {
    let mut meter = Meter::new(100);
    // 0 on time, 2 before 1, 1 again, 4 lost; delays 10, 12, 35, 30.
    for (sequence, sent, received) in
        [(0, 1000, 1010), (2, 1020, 1032), (1, 1010, 1045), (1, 1010, 1050), (3, 1100, 1130)]
    {
        meter.take(&arrival(7, sequence, sent, received));
    }
    meter.ended(key(7), 5, 1140);
    let measured = meter.measured();
    let [flow] = &measured.flows[..] else { panic!("one flow") };
    let counts = Counts {
        sent: 5,
        received: 4,
        lost: 1,
        duplicates: 1,
        reordered: 1,
        stale: 0,
        payload_octets: 400,
        ip_octets: 512,
    };
    assert_eq!((&flow.counts, &measured.counts), (&counts, &counts));
    assert_eq!((flow.delay.min, flow.delay.mean, flow.delay.max), (10, 21, 35));
    // |22 - 20|, |13 - (-10)|, |85 - 90|
    assert_eq!((flow.jitter.count, flow.jitter.min, flow.jitter.max), (3, 2, 23));
    assert_eq!(flow.jitter.mean, 10);
    assert_eq!(flow.dscp, BTreeMap::from([(46, 4)]));
    assert_eq!(flow.tos, BTreeMap::from([(0xb9, 4)]));
    let rows: Vec<_> = flow.rows.iter().map(|r| (r.from, r.received, r.skipped)).collect();
    assert_eq!(rows, [(0, 3, 1), (100, 1, 0)]);
    assert_eq!((flow.rows[0].duplicates, flow.rows[0].reordered), (1, 1));
    assert_eq!((flow.rows[0].delay_sum, flow.rows[1].jitter_sum), (57, 5));
    assert_eq!(measured.duration, 120);
    assert_eq!(measured.counts.loss_percent(), 20.0);
    // Three packets in 120 ns since the first.
    let [payload, ip] = [300.0, 384.0].map(|octets| octets * 8.0 / 120.0 * 1e6);
    assert_eq!((flow.kbit_s(), measured.kbit_s()), ([payload, ip], [payload, ip]));
}

#[test]
fn the_throughput_of_a_steady_flow_is_its_rate_however_short_it_is() {
    // 128 octets each ms: 1,024 kbit/s.
    for packets in [2, 3, 100] {
        let mut meter = Meter::new(100_000_000);
        for sequence in 0..packets {
            let sent = sequence * 1_000_000;
            meter.take(&arrival(0, sequence, sent, sent + 500));
        }
        let measured = meter.measured();
        assert_eq!(measured.kbit_s(), [800.0, 1_024.0]);
        assert_eq!(measured.flows[0].kbit_s(), [800.0, 1_024.0]);
    }
}

#[test]
fn senders_of_the_same_run_are_distinguished() {
    let mut meter = Meter::new(100);
    for source in ["10.0.1.2:1", "10.0.1.2:2", "[fd00::2]:1"] {
        let flow = FlowKey { source: source.parse().unwrap(), ..key(0) };
        meter.take(&Arrival { flow, ..arrival(0, 0, 0, 1) });
        meter.ended(flow, 1, 1);
    }
    let measured = meter.measured();
    assert_eq!((measured.flows.len(), measured.counts.duplicates), (3, 0));
    assert!(meter.all_ended(3) && !meter.all_ended(4));
}

#[test]
fn an_outage_has_rows_and_the_last_interval_its_own_rate() {
    // 1,024 kbit/s from 0 to 250 ms; the network is dead from 50 ms to 180 ms.
    let mut meter = Meter::new(50_000_000);
    for sequence in (0..50).chain(180..=250) {
        let sent = sequence * 1_000_000;
        meter.take(&arrival(0, sequence, sent, sent));
    }
    // A flow that begins within an interval, and whose end never arrives.
    for sequence in 0..90 {
        let sent = 30_000_000 + sequence * 1_000_000;
        meter.take(&arrival(1, sequence, sent, sent));
    }
    meter.ended(key(0), 251, 270_000_000);
    meter.ended(key(0), 251, 320_000_000);
    let measured = meter.measured();
    let rows = |flow: &FlowMeasured| -> Vec<_> {
        let one =
            |r: &TrafficRow| (r.from / 1_000_000, r.length / 1_000_000, r.received, r.kbit_s());
        flow.rows.iter().map(one).collect()
    };
    let rate = Some([800.0, 1_024.0]);
    assert_eq!(
        rows(&measured.flows[0]),
        [
            (0, 50, 50, rate),
            (50, 50, 0, Some([0.0; 2])),
            (100, 50, 0, Some([0.0; 2])),
            (150, 50, 20, Some([320.0, 409.6])),
            (200, 50, 50, rate),
            (250, 20, 1, None),
        ]
    );
    let flow = rows(&measured.flows[1]);
    assert_eq!(flow[..2], [(0, 20, 20, rate), (50, 50, 50, rate)]);
    assert_eq!(flow[3..], [(150, 50, 0, Some([0.0; 2])), (200, 50, 0, Some([0.0; 2]))]);
}

#[test]
fn a_long_silence_does_not_fill_the_memory() {
    let mut meter = Meter::new(1);
    for received in [0, 1 << 62] {
        meter.take(&arrival(0, received, received, received));
    }
    let measured = meter.measured();
    assert_eq!(measured.flows[0].rows.len(), MAX_ROWS);
    assert_eq!(measured.rows_left_out, (1 << 62) + 1 - MAX_ROWS as u64);
}

#[test]
fn clocks_that_disagree_are_reported() {
    let mut meter = Meter::new(100);
    meter.take(&arrival(0, 0, 500, 400));
    let flow = &meter.measured().flows[0];
    assert_eq!((flow.negative_delays, flow.delay.max), (1, 0));
}

#[test]
fn flows_beyond_the_limit_are_foreign() {
    let mut meter = Meter::new(100);
    for flow in 0..=MAX_FLOWS as u32 {
        meter.take(&arrival(flow, 0, 0, 1));
    }
    let measured = meter.measured();
    assert_eq!((measured.flows.len(), measured.foreign), (MAX_FLOWS, 1));
    assert!(!meter.all_ended(1));
}

#[test]
fn nothing_at_all_is_no_division_by_zero() {
    let measured = Meter::new(0).measured();
    assert_eq!((measured.kbit_s(), measured.counts.loss_percent()), ([0.0; 2], 0.0));
    assert_eq!(measured.delay, Summary::default());
}

/// The definitions, computed from the whole list each time.
fn naive(arrivals: &[Arrival], key: FlowKey, sent: u64) -> (Counts, Vec<u64>, Vec<u64>) {
    let mine: Vec<_> = arrivals.iter().filter(|a| a.flow == key).collect();
    let came_before = |at: usize| mine[..at].iter().any(|b| b.sequence == mine[at].sequence);
    let first_times: Vec<_> = (0..mine.len()).filter(|at| !came_before(*at)).collect();
    let received = first_times.len() as u64;
    let late = |at: &&usize| mine[..**at].iter().any(|b| b.sequence > mine[**at].sequence);
    let highest = mine.iter().map(|a| a.sequence + 1).max().unwrap_or(0);
    let sent = sent.max(highest);
    let counts = Counts {
        sent,
        received,
        lost: sent - received,
        duplicates: mine.len() as u64 - received,
        reordered: first_times.iter().filter(late).count() as u64,
        stale: 0,
        payload_octets: first_times.iter().map(|at| u64::from(mine[*at].octets)).sum(),
        ip_octets: first_times.iter().map(|at| u64::from(mine[*at].octets) + 28).sum(),
    };
    let delay = |a: &Arrival| a.received.saturating_sub(a.sent);
    let delays = first_times.iter().map(|at| delay(mine[*at])).collect();
    let jitters = first_times.windows(2).map(|pair| {
        let (a, b) = (mine[pair[0]], mine[pair[1]]);
        ((b.received as i64 - a.received as i64) - (b.sent as i64 - a.sent as i64)).unsigned_abs()
    });
    (counts, delays, jitters.collect())
}

proptest! {
    #[test]
    fn the_meter_agrees_with_a_naive_model(
        packets in prop::collection::vec((0u32..3, 0u64..40, 0u64..50, 0u64..3_000, 60u32..200), 0..120),
        printed in prop::collection::vec(0u64..60, 3),
        interval in 1u64..500,
    ) {
        let mut clock = 1_000_000u64;
        let arrivals: Vec<Arrival> = packets.iter().map(|&(flow, sequence, step, delay, octets)| {
            clock += step;
            Arrival { octets, ..arrival(flow, sequence, clock - delay, clock) }
        }).collect();
        let mut meter = Meter::new(interval);
        arrivals.iter().for_each(|a| meter.take(a));
        for (flow, sent) in (0..).zip(&printed) {
            meter.ended(key(flow), *sent, clock);
        }
        prop_assert!(meter.all_ended(3));
        let measured = meter.measured();
        prop_assert_eq!(measured.flows.len(), 3);
        let (mut all_delays, mut all_jitters) = (Vec::new(), Vec::new());
        for flow in &measured.flows {
            let sent = printed[flow.key.flow as usize];
            let (counts, delays, jitters) = naive(&arrivals, flow.key, sent);
            prop_assert_eq!(&flow.counts, &counts);
            for (summary, values) in [(flow.delay, &delays), (flow.jitter, &jitters)] {
                let sum: u64 = values.iter().sum();
                let count = values.len() as u64;
                prop_assert_eq!((summary.count, summary.min), (count, values.iter().copied().min().unwrap_or(0)));
                prop_assert_eq!(summary.max, values.iter().copied().max().unwrap_or(0));
                prop_assert_eq!(summary.mean, sum.checked_div(count).unwrap_or(0));
                // The histogram's percentile is the value of that rank, within 1 %.
                let mut sorted = values.clone();
                sorted.sort_unstable();
                if let Some(rank) = count.checked_sub(1) {
                    let exact = sorted[(rank / 2) as usize];
                    prop_assert!(summary.p50.abs_diff(exact) <= exact / 100 + 1, "{} {}", summary.p50, exact);
                }
            }
            // Rows: what they hold adds up to the whole, each at its time.
            let sum = |of: fn(&TrafficRow) -> u64| flow.rows.iter().map(of).sum::<u64>();
            prop_assert_eq!(sum(|r| r.received), counts.received);
            prop_assert_eq!(sum(|r| r.payload_octets), counts.payload_octets);
            prop_assert_eq!(sum(|r| r.ip_octets), counts.ip_octets);
            prop_assert_eq!(sum(|r| r.duplicates), counts.duplicates);
            prop_assert_eq!(sum(|r| r.reordered), counts.reordered);
            prop_assert_eq!(sum(|r| r.delay_sum), delays.iter().sum::<u64>());
            prop_assert_eq!(sum(|r| r.jitter_sum), jitters.iter().sum::<u64>());
            prop_assert_eq!(sum(|r| r.skipped) + counts.received - counts.reordered,
                arrivals.iter().filter(|a| a.flow == flow.key).map(|a| a.sequence + 1).max().unwrap_or(0));
            // No interval is left out, and together they last as long as the flow.
            prop_assert!(flow.rows.iter().all(|r| r.from % interval == 0));
            prop_assert!(flow.rows.windows(2).all(|pair| pair[0].from + interval == pair[1].from));
            if let Some(first) = arrivals.iter().find(|a| a.flow == flow.key) {
                prop_assert_eq!(sum(|r| r.length), clock - first.received);
            }
            all_delays.extend(delays);
            all_jitters.extend(jitters);
        }
        prop_assert_eq!(measured.delay.count, all_delays.len() as u64);
        prop_assert_eq!(measured.delay.max, all_delays.iter().copied().max().unwrap_or(0));
        prop_assert_eq!(measured.jitter.max, all_jitters.iter().copied().max().unwrap_or(0));
        prop_assert_eq!(measured.counts.received, all_delays.len() as u64);
    }
}
