//! `cargo xtask bench router`: packets a second from host to host and the delay on the way, over
//! each data path of the lab beside the kernel's own forwarding; and through the pipeline alone.

use super::figures::{aligned, thousands};
use crate::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context as _, Result, bail};
use lab::clock::{self, Deadline};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Two hosts, and a router without a policy: what the kernel does, too.
const TOPOLOGY: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24"]
[routers.r]
ports.left = { addresses = ["10.0.1.1/24"] }
ports.right = { addresses = ["10.0.2.1/24"] }
[[links]]
ends = ["a.eth0", "r.left"]
[[links]]
ends = ["r.right", "b.eth0"]
"#;

/// The kernel's forwarding first: the others are told beside it.
const PATHS: [&str; 3] = ["tc", "tun", "packet"];
/// Octets of an IPv4 packet, and the rate that is offered: more than any path carries.
const SIZES: [(u64, &str); 2] = [(128, "2Gbit"), (1_500, "12Gbit")];
/// Of the headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// Round trips measured at a time, one each 5 ms.
const PINGS: &str = "400";
/// Packets of one iteration of the bench `pipeline`.
const BATCH: f64 = 32.0;
/// The longest wait for a network to be up, and for a load beyond its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends as much as a host can to another one, with UDP, over each data path by turns; measures round
/// trips on an idle network; and runs the bench `pipeline` of the crate `router`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Seconds of each load
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often all paths are measured by turns; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Without the pipeline
    #[arg(long)]
    no_pipeline: bool,
    /// The program `lab` as it is built, from this directory, instead of building it
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// All that was measured.
#[derive(Debug, Default, Serialize)]
struct Report {
    seconds: u64,
    rounds: usize,
    rows: Vec<Row>,
    pipeline: Vec<Pipeline>,
}

/// A data path and a size.
#[derive(Debug, Serialize)]
struct Row {
    path: &'static str,
    /// Octets of a packet with its IP header.
    size: u64,
    /// What arrived, the median of the rounds.
    packets_per_second: f64,
    /// Beside the kernel's forwarding in the same round, the median.
    ratio_to_kernel: f64,
    /// Half of the median round trip of an idle network, and that without the kernel's.
    one_way_ms: f64,
    added_ms: f64,
}

/// A router's machine alone, on one core.
#[derive(Debug, Serialize)]
struct Pipeline {
    policy: String,
    size: u64,
    packets_per_second: f64,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let directory = match &self.programs {
            Some(directory) => directory.clone(),
            None => {
                workspace.cargo(&["build", "--release", "-p", "lab"]).run_aside()?;
                workspace.built("release")?
            }
        };
        ctrlc::set_handler(clock::interrupt).context("for Ctrl-C")?;
        let mut report =
            Report { seconds: self.seconds, rounds: self.rounds.max(1), ..Report::default() };
        report.rows = measure(&directory.join("lab"), self.seconds, report.rounds)?;
        if !self.no_pipeline {
            report.pipeline = pipeline(workspace)?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            print!("{}", report.text());
        }
        Ok(Outcome::of(true))
    }
}

/// A network that is up.
struct Network<'a> {
    lab: &'a Path,
    name: String,
    child: Child,
}

impl<'a> Network<'a> {
    fn up(lab: &'a Path, path: &str, topology: &Path) -> Result<Network<'a>> {
        let name = format!("bench-{}-{path}", std::process::id());
        let child = Command::new(lab)
            .arg("up")
            .arg(topology)
            .args(["--name", &name, "--path", path, "--quiet"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", lab.display()))?;
        let mut network = Network { lab, name, child };
        Deadline::after(PATIENCE).wait_for("the network", || {
            if let Some(status) = network.child.try_wait()? {
                bail!("lab up ended with {status}");
            }
            let asked = Command::new(lab).args(["status", &network.name]).output()?;
            Ok(asked.status.success().then_some(()))
        })?;
        Ok(network)
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.lab);
        command.args(["exec", "--lab", &self.name, host]).args(words).stdin(Stdio::null());
        command
    }

    /// Packets a second that arrive of a load beyond what can be carried.
    fn load(&self, size: u64, rate: &str, seconds: u64) -> Result<f64> {
        let lab = self.lab.to_str().context("a path that is not UTF-8")?;
        let limit = format!("{}s", seconds + 20);
        let receive = [lab, "load", "receive", "10.0.2.2:5000", "--for", &limit, "--json"];
        let mut receiver = self.command("b", &receive);
        let mut receiver = receiver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stderr = receiver.stderr.take().context("no standard error")?;
        // It says where it listens once it does.
        let mut stderr = std::io::BufReader::new(stderr);
        std::io::BufRead::read_line(&mut stderr, &mut line)?;
        let (payload, time) = ((size - HEADERS).to_string(), format!("{seconds}s"));
        let send = [lab, "load", "send", "10.0.2.2:5000", "--rate", rate, "--size", &payload];
        let send = [&send[..], &["--for", &time, "--pacing", "busy", "--json"]].concat();
        let sent = self.command("a", &send).output().context("lab load send")?;
        let received = receiver.wait_with_output()?;
        let received: Value = serde_json::from_slice(&received.stdout)
            .with_context(|| format!("{line}{}", String::from_utf8_lossy(&sent.stderr)))?;
        let number = |key: &str| {
            received.get(key).and_then(Value::as_f64).with_context(|| format!("no {key}"))
        };
        Ok(number("received")? / (number("duration_ms")? / 1e3))
    }

    /// The median round trip of an otherwise idle network, in ms.
    fn round_trip(&self) -> Result<f64> {
        let words = ["ping", "-n", "-c", PINGS, "-i", "0.005", "10.0.2.2"];
        let output = self.command("a", &words).output().context("ping")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
        let times: Vec<f64> = text.lines().filter_map(time).collect();
        median(times).with_context(|| format!("ping: {text}"))
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

fn measure(lab: &Path, seconds: u64, rounds: usize) -> Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let topology = directory.path().join("bench.toml");
    std::fs::write(&topology, TOPOLOGY)?;
    let mut rates: BTreeMap<(usize, u64), Vec<f64>> = BTreeMap::new();
    let mut trips: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        for (place, path) in PATHS.into_iter().enumerate() {
            eprintln!("round {} of {rounds}: {path}", round + 1);
            let network = Network::up(lab, path, &topology)?;
            trips.entry(place).or_default().push(network.round_trip()?);
            for (size, rate) in SIZES {
                let rate = network.load(size, rate, seconds)?;
                rates.entry((place, size)).or_default().push(rate);
            }
        }
    }
    let trip = |place: usize| trips.get(&place).cloned().and_then(median).context("no round trips");
    let mut rows = Vec::new();
    for (place, path) in PATHS.into_iter().enumerate() {
        for (size, _) in SIZES {
            let own = rates.get(&(place, size)).context("no rates")?;
            let kernel = rates.get(&(0, size)).context("no rates")?;
            let ratios = own.iter().zip(kernel).map(|(own, kernel)| own / kernel).collect();
            rows.push(Row {
                path,
                size,
                packets_per_second: median(own.clone()).context("no rounds")?,
                ratio_to_kernel: median(ratios).context("no rounds")?,
                one_way_ms: trip(place)? / 2.0,
                added_ms: (trip(place)? - trip(0)?) / 2.0,
            });
        }
    }
    Ok(rows)
}

/// What criterion's bench says of a router alone.
fn pipeline(workspace: &Workspace) -> Result<Vec<Pipeline>> {
    let bench = ["bench", "-p", "router", "--bench", "pipeline", "--", "--noplot"];
    workspace.cargo(&bench).run_aside()?;
    let release = workspace.built("release")?;
    let criterion = release.parent().context("the target directory")?.join("criterion/pipeline");
    let mut measured = Vec::new();
    for policy in ["plain", "classes"] {
        for (size, _) in SIZES {
            let file = criterion.join(format!("{policy}_{size}/new/estimates.json"));
            let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
            let estimates: Value = serde_json::from_slice(&text)?;
            let nanos = estimates.pointer("/median/point_estimate").and_then(Value::as_f64);
            let nanos = nanos.with_context(|| format!("no median in {}", file.display()))?;
            measured.push(Pipeline {
                policy: policy.to_owned(),
                size,
                packets_per_second: BATCH * 1e9 / nanos,
            });
        }
    }
    Ok(measured)
}

impl Report {
    fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            vec![
                if row.path == "tc" { "kernel (tc)" } else { row.path }.to_owned(),
                row.size.to_string(),
                thousands(row.packets_per_second as u64),
                format!("{:.2}", row.ratio_to_kernel),
                format!("{:.0}", row.one_way_ms * 1e3),
                format!("{:.0}", row.added_ms * 1e3),
            ]
        });
        let header = ["path", "octets", "packets/s", "to kernel", "one way us", "added us"];
        let paths = aligned(&header, &rows.collect::<Vec<_>>());
        let rows = self.pipeline.iter().map(|row| {
            vec![row.policy.clone(), row.size.to_string(), thousands(row.packets_per_second as u64)]
        });
        let pipeline = aligned(&["pipeline", "octets", "packets/s"], &rows.collect::<Vec<_>>());
        if self.pipeline.is_empty() { paths } else { format!("{paths}\n{pipeline}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(4.0));
        assert_eq!(median(Vec::new()), None);
    }
}
