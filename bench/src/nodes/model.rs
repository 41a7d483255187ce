//! What nodes and servers on machines of their own would carry, by the costs that were measured here.
//!
//! Each message costs processor time at the nodes, at the primary and at each standby, and octets of the log of the
//! database, which are written once at each server and sent to each standby. The first of these that is used up is the
//! limit. It is a model of costs, not of waits: it holds where enough users submit at once.

use serde::{Deserialize, Serialize};

/// The costs of a message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Costs {
    /// Processor time at all nodes together, microseconds.
    pub(super) nodes_us: f64,
    /// At the primary.
    pub(super) primary_us: f64,
    /// At each standby. Its replay is done by one process.
    pub(super) standby_us: f64,
    /// Octets of the log.
    pub(super) log_octets: f64,
}

/// The machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Machines {
    /// Processors of each.
    pub(super) processors: f64,
    /// Octets a second that the primary sends to its standbys.
    pub(super) network: f64,
    /// Octets a second that a disk writes and syncs.
    pub(super) disk: f64,
    /// Standbys.
    pub(super) standbys: f64,
    /// The part of a processor that may be used: beyond it queues grow.
    pub(super) load: f64,
}

/// What is used up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Limit {
    /// The processors of the nodes.
    Nodes,
    /// The processors of the primary.
    Primary,
    /// The one process of a standby that replays the log.
    Replay,
    /// The network from the primary to its standbys.
    Network,
    /// The disk of each server.
    Disk,
}

impl Limit {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Limit::Nodes => "processors of the nodes",
            Limit::Primary => "processors of the primary",
            Limit::Replay => "replay at a standby",
            Limit::Network => "network to the standbys",
            Limit::Disk => "disk of a server",
        }
    }
}

/// Messages a second with so many nodes, and what is used up first.
pub(super) fn limit(costs: &Costs, machines: &Machines, nodes: u32) -> (f64, Limit) {
    let per_second = |us: f64, processors: f64| processors * machines.load * 1e6 / us.max(1e-3);
    let octets = costs.log_octets.max(1e-3);
    let limits = [
        (per_second(costs.nodes_us, f64::from(nodes) * machines.processors), Limit::Nodes),
        (per_second(costs.primary_us, machines.processors), Limit::Primary),
        (per_second(costs.standby_us, 1.0), Limit::Replay),
        (machines.load * machines.network / (octets * machines.standbys.max(1e-3)), Limit::Network),
        (machines.load * machines.disk / octets, Limit::Disk),
    ];
    limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, Limit::Nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs =
        Costs { nodes_us: 400.0, primary_us: 500.0, standby_us: 50.0, log_octets: 6_000.0 };
    const MACHINES: Machines =
        Machines { processors: 4.0, network: 125e6, disk: 200e6, standbys: 2.0, load: 0.5 };

    #[test]
    fn nodes_are_the_limit_until_the_primary_is() {
        let dear = Costs { nodes_us: 1_000.0, ..COSTS };
        assert_eq!(limit(&dear, &MACHINES, 1), (2_000.0, Limit::Nodes));
        assert_eq!(limit(&dear, &MACHINES, 2), (4_000.0, Limit::Nodes));
        assert_eq!(limit(&COSTS, &MACHINES, 16), (4_000.0, Limit::Primary));
        let cheap = Costs { primary_us: 10.0, nodes_us: 10.0, ..COSTS };
        assert_eq!(limit(&cheap, &MACHINES, 16).1, Limit::Network);
        let replayed = Costs { standby_us: 1_000.0, ..cheap };
        assert_eq!(limit(&replayed, &MACHINES, 16), (500.0, Limit::Replay));
        let slow = Machines { disk: 1e6, ..MACHINES };
        assert_eq!(limit(&cheap, &slow, 16).1, Limit::Disk);
    }
}
