//! The results of a load in the simulation.

use sim::{DelaySum, LOAD_INTERVAL, LoadCount, Spread};
use std::collections::BTreeMap;
use std::time::Duration;
use study::Scale;
use study::file::{Protocol, StudyLoad};
use study::measured::{LoadMeasured, step};

/// The results of a load's flows. `begin` is when everything but the probes begins.
pub(super) fn measured(
    load: &StudyLoad,
    flows: &[&LoadCount],
    begin: Duration,
    ended: Duration,
) -> LoadMeasured {
    let is_udp = load.protocol != Protocol::Tcp;
    let count = |of: &sim::TrafficCount| if is_udp { of.packets } else { of.octets };
    let sent: u64 = flows.iter().map(|flow| count(&flow.sent)).sum();
    let received: u64 = flows.iter().map(|flow| count(&flow.received)).sum();
    // Of one packet there is no rate: none, and not the negative zero of an empty sum.
    let rate = flows.iter().filter_map(|flow| flow.received.rate()).fold(0.0, |all, one| all + one);
    let spread = |of: fn(&LoadCount) -> &Spread| {
        let mut all = Spread::default();
        flows.iter().for_each(|flow| all.merge(of(flow)));
        all
    };
    let (delays, jitter) = (spread(|flow| &flow.delays), spread(|flow| &flow.jitter));
    let round_trips = spread(|flow| &flow.round_trips);
    let ms = |of: &Spread, share| Some(rounded(of.percentile(share)?.as_secs_f64() * 1e3));
    let last = flows.iter().filter_map(|flow| flow.sent.last).max().unwrap_or(ended);
    let started = begin + load.start.0;
    let last = load.time.map_or(last, |time| ended.min(started + time.0));
    let long = last.saturating_sub(started);
    let interval = step(long, Scale::ONE);
    let steps = Steps::new(started, long, interval);
    LoadMeasured {
        name: load.name.clone(),
        started: load.start.0.as_secs_f64(),
        ended: last.saturating_sub(begin).as_secs_f64(),
        sent,
        received,
        kbit_s: rate / 1e3,
        loss_percent: (is_udp && sent > 0)
            .then(|| (1.0 - received as f64 / sent as f64).max(0.0) * 100.0),
        delay_ms: ms(&delays, 0.5),
        delay_p99_ms: ms(&delays, 0.99),
        jitter_ms: ms(&jitter, 0.5),
        round_trip_ms: ms(&round_trips, 0.5),
        round_trip_p99_ms: ms(&round_trips, 0.99),
        dscp_seen: dscp_seen(flows),
        over_time: steps.rates(flows),
        delay_over_time: steps.means(flows, |flow| &flow.delay_over_time),
        jitter_over_time: steps.means(flows, |flow| &flow.jitter_over_time),
        interval: interval.as_secs_f64(),
        ..LoadMeasured::default()
    }
}

/// To a nanosecond of milliseconds: what is written to a file is read as it was.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn dscp_seen(flows: &[&LoadCount]) -> BTreeMap<u8, u64> {
    let mut seen = BTreeMap::new();
    for (dscp, packets) in flows.iter().flat_map(|flow| &flow.dscp_seen) {
        *seen.entry(dscp.number()).or_default() += packets;
    }
    seen
}

/// The steps of a load, each of several of the simulation's.
struct Steps {
    first: usize,
    together: usize,
    count: usize,
}

impl Steps {
    fn new(started: Duration, long: Duration, interval: Duration) -> Steps {
        let steps = |of: Duration| of.as_nanos() / LOAD_INTERVAL.as_nanos();
        let number = |of: u128| usize::try_from(of).unwrap_or(usize::MAX);
        let together = number(steps(interval)).max(1);
        // The time after the last whole step is not a step.
        let count = number(long.as_nanos() / interval.as_nanos().max(1));
        Steps { first: number(steps(started)), together, count }
    }

    /// The simulation's steps of each of ours; fewer where nothing more came.
    fn each<'a, T>(&self, of: &'a [T]) -> impl Iterator<Item = &'a [T]> {
        let from = |place: usize| self.first + place * self.together;
        let starts: Vec<usize> = (0..self.count).map(from).collect();
        let together = self.together;
        starts.into_iter().map(move |from| {
            let until = from.saturating_add(together).min(of.len());
            of.get(from.min(until)..until).unwrap_or_default()
        })
    }

    fn rates(&self, flows: &[&LoadCount]) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        let seconds = LOAD_INTERVAL.as_secs_f64() * self.together as f64;
        for flow in flows {
            for (sum, octets) in sums.iter_mut().zip(self.each(&flow.over_time)) {
                *sum += octets.iter().sum::<u64>() as f64 * 8e-3 / seconds;
            }
        }
        sums.into_iter().map(rounded).collect()
    }

    fn means(
        &self,
        flows: &[&LoadCount],
        of: fn(&LoadCount) -> &Vec<DelaySum>,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![DelaySum::default(); self.count];
        for flow in flows {
            for (sum, all) in sums.iter_mut().zip(self.each(of(flow))) {
                sum.count += all.iter().map(|one| one.count).sum::<u64>();
                sum.nanos = sum.nanos.saturating_add(all.iter().map(|one| one.nanos).sum());
            }
        }
        let mean = |sum: &DelaySum| {
            (sum.count > 0).then(|| rounded(sum.nanos as f64 / 1e6 / sum.count as f64))
        };
        sums.iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_together_from_the_beginning_of_the_load() {
        let ms = Duration::from_millis;
        let steps = Steps::new(ms(300), ms(1_050), ms(200));
        let of: Vec<u64> = (0..9).collect();
        let taken: Vec<&[u64]> = steps.each(&of).collect();
        assert_eq!(taken, [&[3, 4][..], &[5, 6], &[7, 8], &[], &[]]);
        let sum = |count, nanos| DelaySum { count, nanos };
        let count = LoadCount {
            over_time: vec![9, 9, 9, 1_000, 1_500],
            delay_over_time: vec![sum(0, 0), sum(9, 9), sum(0, 0), sum(1, 1_000_000)],
            ..LoadCount::default()
        };
        assert_eq!(steps.rates(&[&count])[..2], [100.0, 0.0]);
        assert_eq!(steps.means(&[&count], |of| &of.delay_over_time)[..2], [Some(1.0), None]);
    }
}
