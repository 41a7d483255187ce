//! The faults of a trial, drawn from its seed: never more than the site survives.

use base::rng::Rng;
use std::fmt;
use std::time::Duration;

/// Something that goes wrong, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node is killed, with a Flash in its queue that has not left yet, and is started again later.
    Kill(usize),
    /// A node is killed, started, and killed again while it starts.
    KillAgain(usize),
    /// An operator holds a Routine; the node that owns it is killed, and started again later. Then another operator
    /// releases it.
    Hold(usize),
    /// A node hangs: all its connections stay.
    Freeze(usize),
    /// A node is stopped in order and started, as for a new release.
    Restart(usize),
    /// A node and the foreign sites are cut from each other; without resets if it is silent.
    Isolate(usize, Network),
    /// A node and the database are cut from each other.
    CutDatabase(usize, Network),
    /// A standby of the database is killed, and started again.
    StandbyLost(usize),
    /// The primary is killed, and a standby promoted; the old one comes back as a standby.
    PrimaryLost,
    /// The primary hangs.
    PrimaryFrozen,
    /// The disk of the primary is full.
    FullDisk,
    /// As [`Fault::Kill`], and the node's own store is gone: more than an embedded store survives, so it is never
    /// drawn. It shows that the trial finds what is lost.
    StoreLost(usize),
}

/// How a network is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Connections are reset.
    Resets,
    /// Nothing passes, and nobody learns it.
    Silent,
}

impl Fault {
    /// Whether it is one of the database.
    pub(crate) fn is_of_database(&self) -> bool {
        use Fault::{FullDisk, PrimaryFrozen, PrimaryLost, StandbyLost};
        matches!(self, StandbyLost(_) | PrimaryLost | PrimaryFrozen | FullDisk)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |network: &Network| match network {
            Network::Resets => "with resets",
            Network::Silent => "silently",
        };
        match self {
            Fault::Kill(node) => write!(f, "node n{} is killed", node + 1),
            Fault::KillAgain(node) => write!(f, "node n{} is killed again and again", node + 1),
            Fault::Hold(node) => {
                write!(f, "a message of node n{} is held, and its owner killed", node + 1)
            }
            Fault::Freeze(node) => write!(f, "node n{} hangs", node + 1),
            Fault::Restart(node) => write!(f, "node n{} is stopped in order", node + 1),
            Fault::Isolate(node, network) => {
                write!(f, "node n{} is cut from the peers {}", node + 1, how(network))
            }
            Fault::CutDatabase(node, network) => {
                write!(f, "node n{} is cut from the database {}", node + 1, how(network))
            }
            Fault::StandbyLost(which) => write!(f, "the standby number {} is killed", which + 1),
            Fault::PrimaryLost => write!(f, "the primary is killed and a standby promoted"),
            Fault::PrimaryFrozen => write!(f, "the primary hangs"),
            Fault::FullDisk => write!(f, "the disk of the primary is full"),
            Fault::StoreLost(node) => write!(f, "node n{} is killed and loses its store", node + 1),
        }
    }
}

/// What the site has that can go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Nodes, at least one.
    pub nodes: usize,
    /// Three servers of a database.
    pub database: bool,
    /// The disks of the database can be filled.
    pub disks: bool,
}

/// Draws faults.
#[derive(Clone, Debug)]
pub struct Draw {
    rng: Rng,
    parts: Parts,
    number: u64,
}

impl Draw {
    /// From this seed.
    pub fn new(seed: u64, parts: Parts) -> Draw {
        Draw { rng: Rng::new(seed ^ 0xFA17), parts, number: 0 }
    }

    /// What goes wrong next, each for this time: one fault, or one of a node and one of the database at
    /// the same time. One node is enough for the site, and one server of three may be lost.
    pub fn strike(&mut self) -> Vec<(Fault, Duration)> {
        self.number += 1;
        let at_node = self.of_node();
        if !self.parts.database {
            return vec![at_node];
        }
        match self.rng.below(4) {
            0 => vec![at_node, self.of_database()],
            1 => vec![self.of_database()],
            _ => vec![at_node],
        }
    }

    fn time(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.rng.below(to - from))
    }

    fn network(&mut self) -> Network {
        if self.rng.below(2) == 0 { Network::Resets } else { Network::Silent }
    }

    fn of_node(&mut self) -> (Fault, Duration) {
        let node = usize::try_from(self.rng.below(self.parts.nodes as u64)).unwrap_or(0);
        // Longer than a lease where others can take over.
        let away =
            if self.parts.nodes > 1 { self.time(500, 12_000) } else { self.time(100, 1_500) };
        let others = if self.parts.database { 11 } else { 9 };
        match self.rng.below(others) {
            // Every third fault is a kill: the times of the takeover are measured there.
            0..3 => (Fault::Kill(node), away),
            3 => (Fault::KillAgain(node), self.time(50, 600)),
            4 | 5 => (Fault::Freeze(node), self.time(200, 12_000)),
            6 => (Fault::Restart(node), self.time(0, 2_000)),
            7 => (Fault::Hold(node), away),
            8 => (Fault::Isolate(node, self.network()), self.time(500, 8_000)),
            _ => (Fault::CutDatabase(node, self.network()), self.time(500, 10_000)),
        }
    }

    fn of_database(&mut self) -> (Fault, Duration) {
        let disks = if self.parts.disks { 6 } else { 5 };
        match self.rng.below(disks) {
            0 | 1 => (Fault::PrimaryLost, self.time(200, 8_000)),
            2 | 3 => {
                let which = usize::try_from(self.rng.below(2)).unwrap_or(0);
                (Fault::StandbyLost(which), self.time(500, 8_000))
            }
            4 => (Fault::PrimaryFrozen, self.time(500, 6_000)),
            _ => (Fault::FullDisk, self.time(1_000, 6_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_one_node_and_one_server() {
        let parts = Parts { nodes: 3, database: true, disks: true };
        let (mut draw, mut again) = (Draw::new(5, parts), Draw::new(5, parts));
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let strike = draw.strike();
            assert_eq!(strike, again.strike());
            let is_of_database = |(fault, _): &&(Fault, Duration)| {
                use Fault::{FullDisk, PrimaryFrozen, PrimaryLost, StandbyLost};
                matches!(fault, FullDisk | PrimaryFrozen | PrimaryLost | StandbyLost(_))
            };
            let of_database = strike.iter().filter(is_of_database).count();
            assert!(of_database <= 1 && strike.len() - of_database <= 1, "{strike:?}");
            kinds.extend(strike.iter().map(|(fault, _)| fault.to_string()));
        }
        assert!(kinds.len() > 20, "{kinds:?}");
    }

    #[test]
    fn one_node_without_a_database_has_its_own_faults_only() {
        let mut draw = Draw::new(1, Parts { nodes: 1, database: false, disks: false });
        for _ in 0..200 {
            let strike = draw.strike();
            assert_eq!(strike.len(), 1);
            assert!(!matches!(strike[0].0, Fault::CutDatabase(..) | Fault::PrimaryLost));
        }
    }
}
