//! The loads of a run: a `lab load receive` and a `lab load send` for each, or the network itself.

mod inside;
mod probed;

pub(super) use probed::PathSkews;

use super::up::Network;
use super::{Moment, PATIENCE, TestbedRunner};
use crate::sites::end;
use anyhow::{Context as _, Result, bail};
use emulator::FloodStatus;
use emulator::client::ControlClient;
use nix::sys::signal::Signal;
use router::Rate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use study::file::{Protocol, StudyLoad};
use study::measured::{LoadMeasured, step};
use study::{Planned, Scale};
use testbed::child::Child;
use testbed::clock::{Deadline, is_interrupted, pause};

/// The port of the first load's receiver.
const PORT: u16 = 7_000;
/// Rate of TCP that is not limited.
const UNLIMITED: u64 = 10_000_000_000;

#[derive(Debug)]
pub(super) struct Loads {
    /// In the order of the study.
    loads: Vec<StudyLoad>,
    /// Those that are programs, by their places.
    running: BTreeMap<usize, Running>,
    /// Those that the network makes itself, by their places.
    inside: Vec<usize>,
    found: PathSkews,
    client: ControlClient,
}

#[derive(Debug)]
struct Running {
    of: StudyLoad,
    sender: Program,
    receiver: Program,
}

/// A program and the file of what it prints.
#[derive(Debug)]
struct Program {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Loads {
    /// Starts all receivers, then all senders, each of which waits for its own time.
    ///
    /// # Errors
    /// One cannot be started.
    pub(super) fn start(
        runner: &TestbedRunner,
        network: &Network,
        planned: &Planned,
        scale: Scale,
        found: PathSkews,
        origin: Moment,
    ) -> Result<Loads> {
        let mut receivers = Vec::new();
        let all = || planned.loads.iter().enumerate();
        for (place, load) in all().filter(|(_, load)| !load.inside) {
            let port = port(load, place)?;
            let longest = (planned.limit + PATIENCE).min(Duration::from_secs(3_600));
            let interval = step(load.time.map_or(planned.limit, |time| time.0), scale);
            let mut command = network.direct(&load.to)?.command(&runner.programs.lab);
            let at = match load.protocol {
                // What is sent back has to come from where it was sent to.
                Protocol::Echo => SocketAddr::new(end(planned, load)?, port).to_string(),
                _ => port.to_string(),
            };
            command.args(["load", "--with-input", "receive", &at, "--json"]);
            if load.protocol == Protocol::Echo {
                command.arg("--echo");
            }
            command.args(["--for", &ms(longest), "--interval", &ms(interval)]);
            command.args(["--flows", &load.flows.to_string()]);
            command.args(found.arguments(place, load));
            let receiver =
                Program::start(command, network.directory(), &format!("receive-{place}"))?;
            receivers.push((port, receiver));
        }
        for (_, receiver) in &receivers {
            receiver.listens()?;
        }
        let mut running = BTreeMap::new();
        for ((place, load), (port, receiver)) in all().filter(|(_, l)| !l.inside).zip(receivers) {
            let to = SocketAddr::new(end(planned, load)?, port);
            let command = sender(runner, network, planned, load, to, origin)?;
            let sender = Program::start(command, network.directory(), &format!("send-{place}"))?;
            running.insert(place, Running { of: load.clone(), sender, receiver });
        }
        let mut inside = Vec::new();
        for (place, load) in all().filter(|(_, load)| load.inside) {
            for flow in 0..load.flows {
                network.client().flood(inside::ask(
                    runner,
                    planned,
                    (place, flow),
                    load,
                    origin,
                )?)?;
            }
            inside.push(place);
        }
        let client = network.client().clone();
        Ok(Loads { loads: planned.loads.clone(), running, inside, found, client })
    }

    /// Waits until the loads that have an end have ended.
    ///
    /// # Errors
    /// The system does not report it.
    pub(super) fn wait(&self, end: Deadline, origin: Moment) -> Result<()> {
        let ends = |load: &&Running| load.of.time.is_some() || load.of.octets.is_some();
        while !end.has_passed() && !is_interrupted() {
            let mut waiting = self.running.values().filter(ends);
            // Sent octets are in transit for a while, and the end of TCP arrives after them.
            let is_over = |load: &Running| match load.of.octets {
                Some(_) => load.receiver.has_results(),
                None => load.sender.has_results(),
            };
            if waiting.all(is_over) && self.inside_are_over(origin) {
                break;
            }
            pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether the loads that the network makes itself have ended, as far as they have an end.
    fn inside_are_over(&self, origin: Moment) -> bool {
        let all = self.inside.iter().filter_map(|place| self.loads.get(*place));
        let ends = all.filter_map(|load| Some(load.start.0 + load.time?.0));
        ends.max().is_none_or(|end| origin.seconds() > end.as_secs_f64())
    }

    /// Ends all loads. Returns their results, and notes for the reader.
    ///
    /// # Errors
    /// One failed; with its output.
    pub(super) fn end(mut self, origin: Moment) -> Result<(Vec<LoadMeasured>, Vec<String>)> {
        for load in self.running.values_mut() {
            load.sender.interrupt()?;
        }
        let mut sent = Vec::new();
        for load in self.running.values_mut() {
            sent.push(load.sender.result()?);
        }
        // Packets in transit arrive within this time, or never.
        if self.running.values().any(|load| !load.receiver.has_results()) {
            pause(Duration::from_millis(500));
        }
        let mut measured = BTreeMap::new();
        for ((place, load), sent) in self.running.iter_mut().zip(sent) {
            load.receiver.interrupt()?;
            let received = load.receiver.result()?;
            let skew = self.found.skew(*place);
            let one = load_results(&load.of, &sent, &received, origin);
            measured.insert(*place, LoadMeasured { skew, ..one });
        }
        let floods = if self.inside.is_empty() { Vec::new() } else { self.client.floods()? };
        let notes = floods.iter().filter_map(inside::note).collect();
        let mut floods = floods.into_iter();
        for place in &self.inside {
            let Some(load) = self.loads.get(*place) else { continue };
            let flows: Vec<FloodStatus> = floods.by_ref().take(load.flows.into()).collect();
            measured.insert(*place, inside::measured(load, &flows, origin));
        }
        Ok((measured.into_values().collect(), notes))
    }
}

/// The port at which a load is received.
fn port(load: &StudyLoad, place: usize) -> Result<u16> {
    let own = u16::try_from(place).ok().and_then(|place| PORT.checked_add(place));
    load.port.or(own).context("a port")
}

fn sender(
    runner: &TestbedRunner,
    network: &Network,
    planned: &Planned,
    load: &StudyLoad,
    to: SocketAddr,
    origin: Moment,
) -> Result<Command> {
    let rate = match load.rate {
        Some(rate) => rate.bits() / u64::from(load.flows.max(1)),
        None => UNLIMITED,
    };
    let rate = Rate::from_bits(rate.max(1)).context("a rate")?;
    let time = load.time.map_or(planned.limit, |time| time.0).min(Duration::from_secs(3_600));
    let wait = load.start.0.as_secs_f64() - origin.seconds();
    // It waits by itself, so that all programs have the same beginning.
    let script = "sleep \"$1\"; shift; exec \"$@\"";
    let mut command = network.direct(&load.from)?.command("sh");
    command.args(["-c", script, "sh", &format!("{:.3}", wait.max(0.0))]);
    command.arg(&runner.programs.lab);
    command.args(["load", "--with-input", "send", &to.to_string(), "--json"]);
    command.args(["--rate", &rate.to_string(), "--size", &load.payload.to_string()]);
    command.args(["--dscp", &load.dscp.to_string(), "--flows", &load.flows.to_string()]);
    command.args(["--for", &ms(time), "--jitter", &load.jitter_percent.min(50).to_string()]);
    command.args(["--seed", &runner.seed.to_string()]);
    match load.protocol {
        Protocol::Udp => {}
        Protocol::Tcp => {
            command.arg("--tcp");
            if let Some(segment) = load.segment {
                command.args(["--segment", &segment.max(study::file::MIN_SEGMENT).to_string()]);
            }
        }
        Protocol::Echo => {
            command.arg("--echo");
        }
    }
    if let Some(source) = load.source {
        command.args(["--from", &source.to_string()]);
    }
    if let Some(octets) = load.octets {
        let each = u64::from(load.payload) * u64::from(load.flows.max(1));
        command.args(["--packets", &octets.0.div_ceil(each).to_string()]);
    }
    Ok(command)
}

fn ms(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// The results of a load, from those of its sender and its receiver.
fn load_results(load: &StudyLoad, sent: &Value, received: &Value, origin: Moment) -> LoadMeasured {
    let back = sent.get("back").filter(|_| load.protocol == Protocol::Echo);
    let is_echo = back.is_some();
    // The receiver of an echo is its sender.
    let received = back.unwrap_or(received);
    let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_f64);
    let spread = |which: &str, key: &str| received.get(which)?.get(key)?.as_f64();
    let count = |of: &Value, key: &str| of.get(key).and_then(Value::as_u64).unwrap_or(0);
    let is_tcp = load.protocol == Protocol::Tcp;
    let (unit, rate) =
        if is_tcp { ("payload_size", "payload_kbit_s") } else { ("sent", "ip_kbit_s") };
    let (went, came) = (count(sent, unit), count(received, if is_tcp { unit } else { "received" }));
    let loss = (went > 0 && !is_tcp).then(|| (1.0 - came as f64 / went as f64).max(0.0) * 100.0);
    let duration = number(sent, "duration_ms").unwrap_or_default() / 1e3;
    let interval = number(received, "interval_ms").unwrap_or_default() / 1e3;
    LoadMeasured {
        name: load.name.clone(),
        started: load.start.0.as_secs_f64(),
        ended: (load.start.0.as_secs_f64() + duration).min(origin.seconds()),
        sent: went,
        received: came,
        kbit_s: number(received, rate).unwrap_or_default(),
        loss_percent: loss,
        delay_ms: spread("delay", "p50_ms"),
        delay_p99_ms: spread("delay", "p99_ms"),
        jitter_ms: spread("jitter", "p50_ms").filter(|_| !is_echo),
        round_trip_ms: spread("round_trip", "p50_ms"),
        round_trip_p99_ms: spread("round_trip", "p99_ms"),
        dscp_seen: seen(received, "dscp"),
        tos_seen: seen(received, "tos"),
        over_time: over_time(received, rate),
        delay_over_time: means_over_time(received, "delay_mean_ms"),
        jitter_over_time: means_over_time(received, "jitter_mean_ms"),
        interval,
        ..LoadMeasured::default()
    }
}

/// The rates of all flows together, from each one's first packet on.
fn over_time(received: &Value, rate: &str) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for flow in flows(received) {
        let rows = flow.get("intervals").and_then(Value::as_array).into_iter().flatten();
        for (place, row) in rows.enumerate() {
            let value = row.get(rate).and_then(Value::as_f64).unwrap_or_default();
            match sums.get_mut(place) {
                Some(sum) => *sum += value,
                None => sums.push(value),
            }
        }
    }
    sums
}

/// Means of all flows together, weighted by the packets received of each.
fn means_over_time(received: &Value, key: &str) -> Vec<Option<f64>> {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for flow in flows(received) {
        let rows = flow.get("intervals").and_then(Value::as_array).into_iter().flatten();
        for (place, row) in rows.enumerate() {
            if sums.len() <= place {
                sums.push((0.0, 0.0));
            }
            let number = |key: &str| row.get(key).and_then(Value::as_f64);
            let of = sums.get_mut(place).zip(number(key).zip(number("received")));
            if let Some(((sum, count), (mean, received))) = of {
                *sum += mean * received;
                *count += received;
            }
        }
    }
    sums.iter().map(|(sum, count)| (*count > 0.0).then(|| sum / count)).collect()
}

/// Packets of all flows by the mark that they arrived with. `key` names the mark.
fn seen(received: &Value, key: &str) -> BTreeMap<u8, u64> {
    let list = format!("{key}_seen");
    let mut seen = BTreeMap::new();
    for flow in flows(received) {
        for one in flow.get(&list).and_then(Value::as_array).into_iter().flatten() {
            let number = |key: &str| one.get(key).and_then(Value::as_u64);
            let mark = number(key).and_then(|mark| u8::try_from(mark).ok());
            if let (Some(mark), Some(packets)) = (mark, number("packets")) {
                *seen.entry(mark).or_default() += packets;
            }
        }
    }
    seen
}

fn flows(received: &Value) -> impl Iterator<Item = &Value> {
    received.get("flows").and_then(Value::as_array).into_iter().flatten()
}

impl Program {
    fn start(mut command: Command, directory: &Path, name: &str) -> Result<Program> {
        let stdout = directory.join(format!("{name}.out"));
        let stderr = directory.join(format!("{name}.err"));
        command.stdin(Stdio::piped());
        Ok(Program { child: Child::spawn(command, &stdout, &stderr)?, stdout, stderr })
    }

    /// Waits until it reports that it listens.
    fn listens(&self) -> Result<()> {
        Deadline::after(PATIENCE).wait_for("a receiver", || {
            let log = std::fs::read_to_string(&self.stderr).unwrap_or_default();
            Ok(log.contains("listening").then_some(()))
        })
    }

    /// Whether it has written its results.
    fn has_results(&self) -> bool {
        std::fs::metadata(&self.stdout).is_ok_and(|file| file.len() > 0)
    }

    fn interrupt(&mut self) -> Result<()> {
        if self.child.ended()?.is_none() {
            self.child.signal(Signal::SIGINT)?;
        }
        Ok(())
    }

    fn result(&mut self) -> Result<Value> {
        let status = self.child.wait(PATIENCE)?;
        let results = std::fs::read_to_string(&self.stdout)?;
        if results.trim().is_empty() {
            let why = std::fs::read_to_string(&self.stderr).unwrap_or_default();
            // A sender that had not started when the run ended has no results.
            if status.code().is_none() || why.trim().is_empty() {
                return Ok(Value::Null);
            }
            bail!("lab load ended with {status}: {}", why.trim());
        }
        serde_json::from_str(&results).context("the results of lab load")
    }
}
