//! What a running network counts, as `lab status` and the live view show it.

use crate::carrier::kind::DataPathKind;
use network::NetworkMachine;
use router::Time;
use router::count::{Amount, Cause, PartCounters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Packets and octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficCount {
    /// Packets.
    pub packets: u64,
    /// Their octets, IP headers included.
    pub bytes: u64,
}

impl TrafficCount {
    pub(crate) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
    }

    pub(crate) fn add_all(&mut self, other: TrafficCount) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }

    fn from_amount(amount: Amount) -> TrafficCount {
        TrafficCount { packets: amount.packets, bytes: amount.octets }
    }
}

/// What passed between the hosts' kernels and the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTraffic {
    /// Read from hosts.
    pub from_hosts: TrafficCount,
    /// Given to hosts.
    pub to_hosts: TrafficCount,
    /// Packets that hosts sent and that were lost before the network read them: the queue of the
    /// TUN device, or of the packet socket, was full.
    #[serde(default)]
    pub not_read: u64,
    /// Packets that a host's interface did not take.
    pub not_taken: u64,
    /// Packets that a capture was too slow for.
    pub captures_missed: u64,
}

/// A network at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NetworkStatus {
    /// Its name; set by who is asked from outside.
    #[serde(default)]
    pub name: String,
    /// The data path between hosts and routers.
    pub path: DataPathKind,
    /// Seconds since the network came up.
    pub uptime_seconds: f64,
    /// Between hosts and the network.
    pub carried: CarriedTraffic,
    /// Hosts, routers and gateways with their parts.
    pub nodes: Vec<NodeStatus>,
}

/// A node at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its parts, in the order in which packets pass them; a host's, and a gateway's, have the lines
    /// it sends on.
    pub parts: Vec<PartStatus>,
}

/// A part of a node at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartStatus {
    /// Interface, direction, and the names down to the part.
    pub part: String,
    /// The kind of part: a conditioner, a queue, a line, by its name in a policy.
    pub kind: String,
    /// Packets that wait in it now, with their octets.
    pub queue: TrafficCount,
    /// The most packets that ever did.
    pub queue_most: u64,
    /// Packets on the average over time.
    pub queue_average: f64,
    /// Its counters, one row for each code point that it has seen.
    pub rows: Vec<RowStatus>,
    /// Its totals, where code points are not distinguished (the kernel's interfaces).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
}

/// What an interface of the kernel did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Came in.
    pub came: TrafficCount,
    /// Went out.
    pub went: TrafficCount,
    /// Packets dropped, coming or going.
    pub dropped: u64,
}

/// What a part did with one code point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowStatus {
    /// The code point.
    pub dscp: u8,
    /// Its name.
    pub dscp_name: String,
    /// Came in.
    pub came: TrafficCount,
    /// Went on.
    pub went: TrafficCount,
    /// Were for the router or gateway itself.
    #[serde(default)]
    pub taken: TrafficCount,
    /// Wait now, where packets wait in the part itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<TrafficCount>,
    /// Packets that waited on the average since the first one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_average: Option<f64>,
    /// Were given this code point.
    pub marked: u64,
    /// Had congestion marked.
    pub congestion_marked: u64,
    /// Packets that went no further, by cause; none of a cause that is absent.
    pub dropped: BTreeMap<String, u64>,
    /// How long packets were held, where any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayStatus>,
}

/// The time that packets were held in a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DelayStatus {
    /// The mean, in ms.
    pub mean_ms: f64,
    /// The longest, in ms.
    pub max_ms: f64,
    /// A histogram: the number of packets, by the upper bound of the interval in microseconds.
    pub below_us: BTreeMap<u64, u64>,
}

impl NetworkStatus {
    pub(crate) fn new(
        path: DataPathKind,
        now: Time,
        carried: CarriedTraffic,
        nodes: Vec<NodeStatus>,
    ) -> NetworkStatus {
        let uptime_seconds = now.0 as f64 / 1e9;
        NetworkStatus { name: String::new(), path, uptime_seconds, carried, nodes }
    }
}

/// All nodes of a network that count something, in the order of their names.
pub(crate) fn nodes(network: &NetworkMachine, now: Time) -> Vec<NodeStatus> {
    let mut nodes: BTreeMap<String, Vec<PartStatus>> = BTreeMap::new();
    for part in network.report() {
        // `sar/wan/queueing`, or `naples.lan/line` for a line: no name has a point or a stroke.
        let (node, rest) = part.path.split_once(['/', '.']).unwrap_or((&part.path, ""));
        let part = part_of(&part, rest, now);
        nodes.entry(node.to_owned()).or_default().push(part);
    }
    nodes.into_iter().map(|(name, parts)| NodeStatus { name, parts }).collect()
}

fn part_of(part: &PartCounters<'_>, name: &str, now: Time) -> PartStatus {
    let counters = part.counters;
    let rows = counters.used().map(|(dscp, row)| {
        let dropped = Cause::ALL.iter().zip(&row.dropped).filter(|(_, amount)| amount.packets > 0);
        let depth = counters.depth_of(dscp);
        let delay = counters.delays(dscp).map(|delays| DelayStatus {
            mean_ms: delays.mean_ns() as f64 / 1e6,
            max_ms: delays.max_ns() as f64 / 1e6,
            below_us: delays.buckets().collect(),
        });
        RowStatus {
            dscp: dscp.number(),
            dscp_name: dscp.to_string(),
            came: TrafficCount::from_amount(row.came),
            went: TrafficCount::from_amount(row.went),
            taken: TrafficCount::from_amount(row.taken),
            queue: depth.map(|depth| TrafficCount::from_amount(depth.now())),
            queue_average: depth.map(|depth| depth.average(now)),
            marked: row.marked,
            congestion_marked: row.congestion_marked,
            dropped: dropped.map(|(cause, amount)| (cause_name(*cause), amount.packets)).collect(),
            delay,
        }
    });
    PartStatus {
        part: name.to_owned(),
        kind: part.kind.to_owned(),
        queue: TrafficCount::from_amount(counters.depth.now()),
        queue_most: counters.depth.most().packets,
        queue_average: counters.depth.average(now),
        rows: rows.collect(),
        total: None,
    }
}

/// As it is in JSON: `shaper_full`.
fn cause_name(cause: Cause) -> String {
    let name = serde_json::to_value(cause).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_else(|| format!("{cause:?}"))
}
