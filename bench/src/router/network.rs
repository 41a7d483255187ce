//! A running network of the lab, a load through it, and the outcome.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::clock::Deadline;

/// Two hosts, and a router without a policy: what the kernel does, too.
pub(super) const TOPOLOGY: &str = r#"
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

/// Of the headers of IPv4 and UDP.
pub(super) const HEADERS: u64 = 28;
/// Round trips measured at a time, one each 5 ms.
const PINGS: &str = "400";
/// The longest wait for a network to be up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network that is up.
pub(super) struct Network<'a> {
    lab: &'a Path,
    name: String,
    child: Child,
}

impl<'a> Network<'a> {
    pub(super) fn up(lab: &'a Path, path: &str, topology: &Path) -> Result<Network<'a>> {
        let name = format!("bench-{}-{}", std::process::id(), path);
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

    /// A load from one host to the other: these arguments, so many flows and seconds.
    pub(super) fn send(&self, load: &[&str], flows: usize, seconds: u64) -> Result<Outcome> {
        let lab = self.lab.to_str().context("a path that is not UTF-8")?;
        let (limit, flows) = (format!("{}s", seconds + 20), flows.to_string());
        let receive = [lab, "load", "receive", "10.0.2.2:5000", "--for", &limit, "--json"];
        let mut receiver = self.command("b", &[&receive[..], &["--flows", &flows]].concat());
        let mut receiver = receiver.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stderr = receiver.stderr.take().context("no standard error")?;
        // It writes its address once it listens.
        let mut stderr = std::io::BufReader::new(stderr);
        std::io::BufRead::read_line(&mut stderr, &mut line)?;
        let send = [&[lab, "load", "send"], load, &["--json"]].concat();
        let sent = self.command("a", &send).output().context("lab load send")?;
        let received = receiver.wait_with_output()?;
        // Exit code 3 is a sender below its rate, which is expected here.
        if !matches!(sent.status.code(), Some(0 | 3)) || !received.status.success() {
            let errors = String::from_utf8_lossy(&sent.stderr);
            bail!("the sender: {}; the receiver: {}; {line}{errors}", sent.status, received.status);
        }
        let sent: Value = serde_json::from_slice(&sent.stdout).context("lab load send")?;
        let received = serde_json::from_slice(&received.stdout).context("lab load receive")?;
        Outcome::from_results(&sent, received)
    }

    /// The median round trip of an otherwise idle network, in ms.
    pub(super) fn round_trip(&self) -> Result<f64> {
        let words = ["ping", "-n", "-c", PINGS, "-i", "0.005", "10.0.2.2"];
        let output = self.command("a", &words).output().context("ping")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
        let times: Vec<f64> = text.lines().filter_map(time).collect();
        super::median(times).with_context(|| format!("ping: {text}"))
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The outcome of a load.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) sent: u64,
    received: u64,
    pub(super) dropped_at_receiver: u64,
    pub(super) packets_per_second: f64,
    json: Value,
}

impl Outcome {
    /// From the results of sender and receiver.
    fn from_results(sent: &Value, received: Value) -> Result<Outcome> {
        let number = |of: &Value, key: &str| {
            of.get(key).and_then(Value::as_u64).with_context(|| format!("no {key}"))
        };
        let duration = received.get("duration_ms").and_then(Value::as_f64);
        let duration = duration.context("no duration_ms")?;
        let arrived = number(&received, "received")?;
        // n packets have n - 1 gaps.
        let gaps = arrived.saturating_sub(1) as f64;
        Ok(Outcome {
            sent: number(sent, "sent")?,
            received: arrived,
            dropped_at_receiver: number(&received, "dropped_at_receiver")?,
            packets_per_second: if duration > 0.0 { gaps / (duration / 1e3) } else { 0.0 },
            json: received,
        })
    }

    /// Packets that the sender's system took and that never came to the receiver's socket.
    pub(super) fn lost_in_transit(&self) -> u64 {
        self.sent.saturating_sub(self.received).saturating_sub(self.dropped_at_receiver)
    }

    /// The rate of a flow in IP packets, in kbit/s.
    pub(super) fn flow_kbit_s(&self, flow: usize) -> Result<f64> {
        let rate = self.json.pointer(&format!("/flows/{flow}/ip_kbit_s")).and_then(Value::as_f64);
        rate.with_context(|| format!("nothing arrived of flow {flow}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_dropped_by_the_receiver_are_not_lost_in_transit() {
        let sent = serde_json::json!({ "sent": 100 });
        let received = serde_json::json!({
            "received": 91, "dropped_at_receiver": 4, "duration_ms": 9.0,
            "flows": [{ "ip_kbit_s": 8.0 }],
        });
        let outcome = Outcome::from_results(&sent, received).unwrap();
        assert_eq!((outcome.lost_in_transit(), outcome.packets_per_second), (5, 10_000.0));
        assert_eq!(outcome.flow_kbit_s(0).unwrap(), 8.0);
        assert!(outcome.flow_kbit_s(1).is_err());
    }
}
