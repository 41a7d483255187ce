//! Probes the paths of a run before it begins, in real time.

use super::super::up::Network;
use super::super::{PATIENCE, TestbedRunner};
use super::{Program, flows, ms};
use crate::idle::{self, idle_ms};
use crate::sites::end;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use study::Planned;
use study::file::StudyLoad;
use study::skew::{self, FittedLine, Skew};
use testbed::clock::{Deadline, is_interrupted, pause};
use traffic::LoadClock;

/// The port of the first load's probes.
const PORT: u16 = 6_000;
/// The interval of the results: so short that no two probes are in one.
const INTERVAL: Duration = Duration::from_millis(10);

/// The skews of the receivers' clocks.
#[derive(Debug, Default)]
pub(in crate::testbed_run) struct PathSkews {
    /// When probing began, in nanoseconds of the clock.
    since: u64,
    /// By the place of the load.
    skews: BTreeMap<usize, Skew>,
}

impl PathSkews {
    /// Probes the paths of a run whose loads require it.
    ///
    /// # Errors
    /// A program fails, or no probes arrive.
    pub(in crate::testbed_run) fn probe(
        runner: &TestbedRunner,
        network: &Network,
        planned: &Planned,
    ) -> Result<PathSkews> {
        let mut found = PathSkews { since: LoadClock::Monotonic.now(), skews: BTreeMap::new() };
        let probed = planned.loads.iter().enumerate();
        let probed: Vec<_> =
            probed.filter_map(|(place, load)| Some((place, load, load.probing?.0))).collect();
        let mut running = Vec::new();
        for (place, load, time) in &probed {
            let port = PORT + u16::try_from(*place)?;
            let mut command = network.direct(&load.to)?.command(&runner.programs.lab);
            command.args(["load", "--with-input", "receive", &port.to_string(), "--json"]);
            command.args(["--for", &ms(*time + PATIENCE), "--interval", &ms(INTERVAL)]);
            command.args(found.arguments(*place, load));
            let name = format!("probes-{place}");
            running.push((port, Program::start(command, network.directory(), &name)?));
        }
        for (_, receiver) in &running {
            receiver.listens()?;
        }
        let mut senders = Vec::new();
        for ((place, load, time), (port, _)) in probed.iter().zip(&running) {
            let to = SocketAddr::new(end(planned, load)?, *port);
            let rate = format!("{}bit", idle::rate(*time, to.is_ipv4()));
            let mut command = network.direct(&load.from)?.command(&runner.programs.lab);
            command.args(["load", "--with-input", "send", &to.to_string(), "--json"]);
            command.args(["--rate", &rate, "--size", &idle::PAYLOAD.to_string()]);
            command.args(["--dscp", &load.dscp.to_string(), "--for", &ms(*time)]);
            let name = format!("probe-{place}");
            senders.push(Program::start(command, network.directory(), &name)?);
        }
        let last = Deadline::after(planned.probing() + PATIENCE);
        while !running.iter().all(|(_, receiver)| receiver.has_results()) {
            if is_interrupted() {
                bail!("interrupted");
            }
            if last.has_passed() {
                bail!("the probes of a path do not end");
            }
            pause(Duration::from_millis(20));
        }
        for ((place, load, _), (_, receiver)) in probed.iter().zip(&mut running) {
            let samples = found.samples(&receiver.result()?);
            let skew = skew::find(&samples, idle_ms(planned, load)?);
            let skew = skew.with_context(|| format!("{}: no two probes arrived", load.name))?;
            found.skews.insert(*place, skew);
        }
        drop(senders);
        Ok(found)
    }

    /// The skew of a load's receiver.
    pub(super) fn skew(&self, place: usize) -> Option<Skew> {
        self.skews.get(&place).copied()
    }

    /// What its receiver subtracts: the skew found, without the skew that the study gives its clock.
    /// Nothing where the study gives it none: both ends read one clock, and what probes show beside the time
    /// of the lines is the time that the hosts take.
    pub(super) fn arguments(&self, place: usize, load: &StudyLoad) -> Vec<String> {
        let found = self.skew(place).filter(|_| load.clock.is_some());
        let removed = found.map(|skew| skew.removed).unwrap_or_default();
        let made = load.clock.unwrap_or_default();
        let off = FittedLine {
            offset_ms: removed.offset_ms - made.ahead_ms,
            drift_ppm: removed.drift_ppm - made.drift_ppm,
        };
        let numbers = [
            ("--ahead", (off.offset_ms * 1e6).round().to_string()),
            ("--drift", (off.drift_ppm * 1e3).round().to_string()),
            ("--since", self.since.to_string()),
        ];
        numbers.into_iter().map(|(name, number)| format!("{name}={number}")).collect()
    }

    /// Seconds since probing began, and delays in ms, from the results of a receiver.
    fn samples(&self, received: &Value) -> Vec<(f64, f64)> {
        let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_f64);
        let began = received.get("began_ns").and_then(Value::as_u64).unwrap_or(self.since);
        let began = began.saturating_sub(self.since) as f64 / 1e9;
        let rows = flows(received).filter_map(|flow| flow.get("intervals")?.as_array()).flatten();
        let one = |row: &Value| {
            let middle = number(row, "from_ms")? + INTERVAL.as_secs_f64() * 500.0;
            Some((began + middle / 1e3, number(row, "transit_mean_ms")?))
        };
        rows.filter_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_receiver_gets_the_skew_without_what_its_clock_is_made_to_do() {
        let removed = FittedLine { offset_ms: -3.5, drift_ppm: 42.0 };
        let skew = Skew { removed, ..Skew::default() };
        let found = PathSkews { since: 1_000, skews: [(1, skew)].into() };
        let mut load: StudyLoad = toml::from_str("name = 'x'\nfrom = 'a'\nto = 'b'").unwrap();
        // Both ends read one clock.
        assert_eq!(found.arguments(1, &load), ["--ahead=0", "--drift=0", "--since=1000"]);
        load.clock = Some(study::file::StudyClock { ahead_ms: 0.0, drift_ppm: 0.0 });
        let arguments = ["--ahead=-3500000", "--drift=42000", "--since=1000"];
        assert_eq!(found.arguments(1, &load), arguments);
        load.clock = Some(study::file::StudyClock { ahead_ms: -3.5, drift_ppm: 42.0 });
        assert_eq!(found.arguments(1, &load)[..2], ["--ahead=0", "--drift=0"]);
        assert_eq!(found.arguments(0, &load)[..2], ["--ahead=3500000", "--drift=-42000"]);
    }

    #[test]
    fn times_of_samples_count_from_the_beginning_of_probing() {
        let found = PathSkews { since: 2_000_000_000, ..PathSkews::default() };
        let rows = json!([
            { "from_ms": 0.0, "transit_mean_ms": -1.5 },
            { "from_ms": 10.0, "transit_mean_ms": null },
            { "from_ms": 20.0, "transit_mean_ms": 2.5 },
        ]);
        let received = json!({ "began_ns": 3_000_000_000u64, "flows": [{ "intervals": rows }] });
        assert_eq!(found.samples(&received), [(1.005, -1.5), (1.025, 2.5)]);
    }
}
