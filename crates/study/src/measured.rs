//! What a run gave, the same from either ground.

use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of a run. Times are in seconds from the run's beginning, as its clock has them: a network made
/// faster is not made slower again here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `experiment/run`.
    pub id: String,
    /// Where it was made.
    pub ground: Ground,
    /// How much faster than the study's the network was.
    pub scale: u32,
    /// The data path, the TCP and its congestion control.
    #[serde(default)]
    pub how: BTreeMap<String, String>,
    /// The seed of all dice.
    #[serde(default)]
    pub seed: u64,
    /// In the order of the study.
    pub messages: Vec<MessageTimes>,
    /// In the order of the study.
    pub loads: Vec<LoadMeasured>,
    /// What passed and waited at ports of routers.
    #[serde(default)]
    pub series: Vec<Series>,
    /// How long it took.
    pub seconds: f64,
    /// Whether it was given up at its limit.
    #[serde(default)]
    pub given_up: bool,
    /// What else a reader has to know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Where a number was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    /// Real time, processes and TCP of the kernel.
    #[default]
    Real,
    /// Virtual time: the same router and node, and TCP in the program.
    Virtual,
}

impl Ground {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Ground::Real => "real",
            Ground::Virtual => "virtual",
        }
    }
}

/// What became of a message; what did not happen is absent.
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
    /// How often its transfer began.
    #[serde(default)]
    pub transfers: u32,
}

/// What became of a load. All is as the receiver has it, but what was sent; of an echo, all is as the
/// sender has it, and received is what came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasured {
    /// Its name.
    pub name: Name,
    /// When it began to send.
    pub started: f64,
    /// When it had ended.
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
    /// Arrived in each of equal times, in kbit/s, from `started` on.
    #[serde(default)]
    pub over_time: Vec<f64>,
    /// How long each of them is, in seconds.
    #[serde(default)]
    pub interval: f64,
}

/// What a port of a router did over time, by code point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `router.port`.
    pub port: String,
    /// How long each step is, in seconds; the first begins with the run.
    pub interval: f64,
    /// By code point, only of those that were seen.
    pub rows: BTreeMap<u8, Steps>,
}

/// Of one code point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Octets sent in each step.
    pub octets: Vec<u64>,
    /// Packets dropped in each step.
    pub dropped: Vec<u64>,
    /// Packets waiting at the end of each step.
    pub waiting: Vec<u64>,
}
