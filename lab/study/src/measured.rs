//! The results of a run, in either environment.

use crate::Scale;
use crate::skew::Skew;
use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The results of a run. Times are in seconds from the run's beginning, on its clock: those of a faster
/// network are not scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `experiment/run`.
    pub id: String,
    /// The environment in which the run was made.
    pub environment: Environment,
    /// How much faster than the study's the network was.
    pub scale: Scale,
    /// The data path, the TCP and its congestion control.
    #[serde(default)]
    pub how: BTreeMap<String, String>,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// In the order of the study.
    pub messages: Vec<MessageTimes>,
    /// In the order of the study.
    pub loads: Vec<LoadMeasured>,
    /// What passed and waited at ports of routers.
    #[serde(default)]
    pub series: Vec<PortSeries>,
    /// What passed the ports that are analysed, by code point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<CodePointPassed>,
    /// What TCP sent between hosts, and what came; in simulation only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpCount>,
    /// The duration of the run, in seconds.
    pub seconds: f64,
    /// Whether it was given up at its limit.
    #[serde(default)]
    pub given_up: bool,
    /// Notes for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// An environment of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// In namespaces of this machine: processes, real time, TCP of the kernel.
    #[default]
    Testbed,
    /// In one process: the same router and node, simulated time and TCP.
    Simulation,
}

impl Environment {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Environment::Testbed => "testbed",
            Environment::Simulation => "simulation",
        }
    }
}

/// The times of a message; what did not happen is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageTimes {
    /// Its name.
    pub name: Name,
    /// Octets of its content.
    #[serde(default)]
    pub content: Option<u64>,
    /// The first octet of its submission.
    pub submitted: Option<f64>,
    /// Its submission was answered.
    pub accepted: Option<f64>,
    /// Its transfer began, the last time it did.
    pub started: Option<f64>,
    /// Its transfer was confirmed.
    pub confirmed: Option<f64>,
    /// Its recipient had it.
    pub delivered: Option<f64>,
    /// Octets of it that had been transferred when the run was given up.
    #[serde(default)]
    pub transferred: Option<u64>,
    /// The number of times its transfer began.
    #[serde(default)]
    pub transfers: u32,
    /// How much of it had been confirmed when.
    #[serde(default, skip_serializing_if = "Progress::is_empty")]
    pub progress: Progress,
}

/// What TCP sent from one host to another with a mark, in all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCount {
    /// The address that sent.
    pub from: IpAddr,
    /// The other one.
    pub to: IpAddr,
    /// The mark that it sent with.
    pub dscp: u8,
    /// Segments with payload that it sent, those that it sent again among them.
    pub sent: u64,
    /// Those that came to the other host.
    pub received: u64,
}

impl TcpCount {
    /// What was lost of the segments with payload, 0 to 1. Those that are on the path when a run ends, a
    /// window at most, count as lost.
    pub fn loss(&self) -> f64 {
        let lost = self.sent.saturating_sub(self.received);
        if self.sent > 0 { lost as f64 / self.sent as f64 } else { 0.0 }
    }
}

/// Octets of a message that the next MTA has confirmed, envelope included, over time: seconds from the
/// run's beginning, and the octets, each time that they were seen to be more or fewer than before. They
/// are fewer where a transfer began anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Progress(Vec<(f64, u64)>);

impl Progress {
    /// So much is confirmed at a time after all others.
    pub fn seen(&mut self, at: f64, octets: u64) {
        if self.0.last().is_none_or(|(_, before)| *before != octets) {
            // To a microsecond: what is written to a file is read as it was.
            self.0.push(((at * 1e6).round() / 1e6, octets));
        }
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Seconds and octets, by time.
    pub fn steps(&self) -> &[(f64, u64)] {
        &self.0
    }
}

/// The results of a load. The receiver counts all but what was sent. Of an echo, the sender counts all, and
/// `received` is what came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasured {
    /// Its name.
    pub name: Name,
    /// The time of its first packet or octet, in seconds.
    pub started: f64,
    /// The time at which it ended, in seconds.
    pub ended: f64,
    /// Packets sent (UDP), or octets of payload taken by TCP.
    pub sent: u64,
    /// The same as received.
    pub received: u64,
    /// Bits a second of IP packets that arrived, in 1,000; of TCP, its payload's.
    pub kbit_s: f64,
    /// Lost of those sent, in percent.
    #[serde(default)]
    pub loss_percent: Option<f64>,
    /// One-way delay, median, in ms.
    #[serde(default)]
    pub delay_ms: Option<f64>,
    /// Its 99th percentile, in ms.
    #[serde(default)]
    pub delay_p99_ms: Option<f64>,
    /// Difference of the delays of neighbours, median, in ms.
    #[serde(default)]
    pub jitter_ms: Option<f64>,
    /// Of an echo, the time there and back, median, in ms.
    #[serde(default)]
    pub round_trip_ms: Option<f64>,
    /// Its 99th percentile, in ms.
    #[serde(default)]
    pub round_trip_p99_ms: Option<f64>,
    /// Packets by the code point they arrived with; of an echo, with which they came back.
    #[serde(default)]
    pub dscp_seen: BTreeMap<u8, u64>,
    /// The same by the whole TOS octet; empty where the two bits beside the code point cannot be other
    /// than they were sent.
    #[serde(default)]
    pub tos_seen: BTreeMap<u8, u64>,
    /// Arrived in each of equal times, in kbit/s, from `started` on.
    #[serde(default)]
    pub over_time: Vec<f64>,
    /// How long each of them is, in seconds.
    #[serde(default)]
    pub interval: f64,
    /// Mean one-way delay in each of them, in ms; of TCP from when octets were written to when they
    /// came. Absent where nothing came.
    #[serde(default)]
    pub delay_over_time: Vec<Option<f64>>,
    /// Mean jitter in each of them, in ms.
    #[serde(default)]
    pub jitter_over_time: Vec<Option<f64>>,
    /// What the receiver's clock did beside the sender's, where the path was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// Whether its packets were made and taken off in the process of the routers.
    #[serde(default)]
    pub inside: bool,
}

/// The most steps of a load over time; those of a longer load are longer.
pub const MAX_STEPS: u32 = 1_200;
/// The shortest step of a load over time, as the Bern study's.
pub const STEP: Duration = Duration::from_millis(100);

/// How long the steps of a load that lasts so long are: a tenth of a second at the study's rates, or as
/// many of them as are needed that there are no more than [`MAX_STEPS`].
pub fn step(time: Duration, scale: Scale) -> Duration {
    let step = STEP.max(scale.time(STEP));
    let most = step.saturating_mul(MAX_STEPS).as_nanos().max(1);
    let together = time.as_nanos().div_ceil(most).max(1);
    step.saturating_mul(u32::try_from(together).unwrap_or(u32::MAX))
}

/// What a port of a router did over time, by code point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortSeries {
    /// `router.port`.
    pub port: String,
    /// How long each step is, in seconds; the first begins with the run.
    pub interval: f64,
    /// By code point, only of those that were seen.
    pub rows: BTreeMap<u8, PortSteps>,
}

/// Of one code point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortSteps {
    /// Octets sent in each step.
    pub octets: Vec<u64>,
    /// Packets sent in each step.
    #[serde(default)]
    pub packets: Vec<u64>,
    /// Packets dropped in each step.
    pub dropped: Vec<u64>,
    /// Packets waiting at the end of each step.
    pub waiting: Vec<u64>,
}

/// What of a code point passed a router, found in two ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePointPassed {
    /// The code point.
    pub dscp: u8,
    /// Found by analysis of the packets captured at both ports.
    pub analysed: PassedCount,
    /// Counted by the router.
    pub counted: PassedCount,
}

/// Packets that left a router, and those that came and did not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedCount {
    /// Packets that left.
    pub packets: u64,
    /// Their octets, IP headers included.
    pub octets: u64,
    /// Packets that were lost.
    pub lost: u64,
}

impl PassedCount {
    /// Lost of those that came, in percent.
    pub fn loss_percent(self) -> Option<f64> {
        let came = self.packets.saturating_add(self.lost);
        (came > 0).then(|| self.lost as f64 * 100.0 / came as f64)
    }
}
