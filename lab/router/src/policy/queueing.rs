//! The queueing of an interface: a tree of schedulers and shapers over queues.

use super::{Name, OctetSize, Span};
use crate::time::Rate;
use dscp::Dscp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Queueing {
    /// A single queue, first in, first out.
    Fifo {
        /// Its limit.
        #[serde(default)]
        limit: QueueLimit,
        /// Its dropper, which drops packets before the queue is full.
        #[serde(default)]
        dropper: Dropper,
    },
    /// Strict priority: the first branch with a packet always sends first.
    Priority {
        /// The branches, highest priority first.
        branches: Vec<Branch>,
    },
    /// Deficit round robin, weighted.
    RoundRobin {
        /// Octets that a branch of weight 1 sends in a round; 1,500 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<OctetSize>,
        /// The branches, with [`BranchShare::Weight`].
        branches: Vec<Branch>,
    },
    /// Weighted fair queueing by virtual finish times.
    WeightedFair {
        /// The branches, with [`BranchShare::Weight`].
        branches: Vec<Branch>,
    },
    /// Class-based weighted fair queueing (Cisco's CBWFQ and LLQ). Branches reserve bandwidth.
    /// Branches without a reservation share the rest, at least 1 %. Branches with traffic share the
    /// bandwidth that others do not use, in proportion. Priority branches send first and are
    /// policed.
    ClassBased {
        /// The rate that the branches share, at most that of the shaper above. If absent, the rate
        /// that the shaper above leaves; without a shaper above, only percentages are allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>,
        /// The branches, with any shares.
        branches: Vec<Branch>,
    },
    /// Flow-based fair queueing. A flow is addresses, protocol and ports (fragments: without
    /// ports), and has a queue whose weight depends on the IP precedence p of its packets: a packet
    /// waits in proportion to 32384 / (p + 1).
    FairFlows {
        /// Number of queues; flows with the same hash share one. 256 if absent; at most 65,536 for
        /// one interface.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<usize>,
        /// Packets in all queues together; above it, the packet with the latest virtual finish time
        /// is dropped. 64 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Weights by precedence (the default), or equal weights.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_precedence: Option<bool>,
        /// The dropper of all queues together, which drops packets before the limit is reached.
        #[serde(default)]
        dropper: Dropper,
    },
    /// A shaper: limits the rate of its child.
    Shaper {
        /// The rate in bits a second, with `overhead` counted.
        rate: Rate,
        /// Octets that can leave at once after idle time. They also make good late offers of the
        /// line, so at least the lateness times the rate is useful. With an interval: 0, or at
        /// least the octets of one interval.
        burst: OctetSize,
        /// The interval at whose begin the octets of the whole interval are granted at once
        /// (Cisco's Tc; its Bc is rate x interval). If absent, tokens arrive continuously.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Span>,
        /// Octets counted in addition to each packet, such as 14 for Ethernet headers.
        #[serde(default)]
        overhead: u16,
        /// The queueing that it shapes.
        child: Box<Queueing>,
    },
}

/// A branch of a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a branch")]
pub struct Branch {
    /// The class of its packets; if absent, all packets that match no other branch. At most one
    /// branch has no class. If all have one, a FIFO of 100 packets without a share is added as the
    /// last branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// Its share. Each scheduler states the kinds that it accepts.
    #[serde(default)]
    pub share: BranchShare,
    /// The queueing of its packets.
    #[serde(default)]
    pub queueing: Queueing,
}

/// The share of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BranchShare {
    /// None stated: weight 1, no reservation.
    #[default]
    None,
    /// A weight, 0.000001 to 1,000,000: the branch sends in proportion to the weights. In
    /// class-based queueing, it shares the bandwidth that is not reserved.
    Weight(f64),
    /// Priority up to this rate. Packets that exceed it are dropped while any packet waits.
    Bandwidth(Rate),
    /// A reservation in percent of the shared rate, 0 to 100; 0 reserves nothing.
    Percent(f64),
    /// Priority up to this rate. Packets that exceed it are dropped while other packets wait.
    #[serde(rename_all = "kebab-case")]
    Priority {
        /// The rate of its policer.
        rate: Rate,
        /// The burst of its policer in octets, at least 1,500; if absent, a fifth of a second at
        /// the rate, at least 1,500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<OctetSize>,
    },
    /// Priority up to a part of the shared rate (Cisco's `priority percent`).
    #[serde(rename_all = "kebab-case")]
    PriorityPercent {
        /// Percent of the shared rate, above 0, up to 100.
        percent: f64,
        /// The burst in octets, as for `priority`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<OctetSize>,
    },
}

/// The limit of a queue. An absent key sets no limit; if all are absent, the limit is 100 packets.
/// No queue holds more than 1,000,000 packets or 1 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a limit")]
pub struct QueueLimit {
    /// Packets, 1 to 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
    /// Octets, 1 octet to 1 GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<OctetSize>,
    /// The octets that this rate sends in this time: Bern's "maximum queue delay".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<(Span, Rate)>,
}

/// Which packets a queue drops before it is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Dropper {
    /// Tail drop: none before the queue is full.
    Tail {},
    /// Drops an arriving packet while the number of waiting packets is at or above the threshold of
    /// its code point.
    Thresholds {
        /// Thresholds in packets, by code point.
        packets: BTreeMap<Dscp, usize>,
        /// The threshold of all other code points; the limit of the queue if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<usize>,
    },
    /// Push-out: in a full queue, drops the last packet of the lowest code point.
    PushOut(Push),
    /// Random early detection, RED (Floyd and Jacobson 1993).
    Red {
        /// The drop function of all packets.
        line: WredLine,
        /// The weight exponent n of the average queue: each packet moves it by 2^-n of the
        /// difference. 1 to 16; 9 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// Marks packets of ECN-capable transports instead of dropping them at random (RFC 3168 7).
        #[serde(default)]
        ecn: bool,
    },
    /// Weighted random early detection, WRED: a drop function for each code point, one average
    /// queue for all.
    Wred {
        /// Drop functions by code point.
        lines: BTreeMap<Dscp, WredLine>,
        /// The drop function of all other code points; if absent, they are dropped only when the
        /// queue is full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<WredLine>,
        /// The weight exponent, as for RED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// ECN marking, as for RED.
        #[serde(default)]
        ecn: bool,
    },
    /// RED with a drop function for each colour (Bern's TRIO; with two equal functions, RIO). The
    /// average queue of a colour counts packets of this colour and of better ones. The queue needs
    /// a limit in packets.
    Trio {
        /// For green packets, and packets without a colour.
        green: Curve,
        /// For yellow packets.
        yellow: Curve,
        /// For red packets.
        red: Curve,
        /// The weight exponent, as for RED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// ECN marking, as for RED.
        #[serde(default)]
        ecn: bool,
    },
}

impl Default for Dropper {
    fn default() -> Dropper {
        Dropper::Tail {}
    }
}

/// The order of push-out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of push-out")]
pub struct Push {
    /// Code points, lowest first. Those that are not named are above them, ordered by number; but
    /// LE is below all (RFC 8622 4).
    #[serde(default)]
    pub lowest_first: Vec<Dscp>,
}

/// A drop function of Cisco's `random-detect dscp`. No packet is dropped below an average queue of
/// `min` packets. From there the probability rises to 1/`denominator` at `max`. At `max` and above,
/// every packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a line of WRED")]
pub struct WredLine {
    /// Lower threshold in packets.
    pub min: u32,
    /// Upper threshold in packets, not below `min`.
    pub max: u32,
    /// Mark probability denominator, 1 to 65,536.
    pub denominator: u32,
}

/// A drop function of TRIO. No packet is dropped below `from`. From there the probability rises to
/// `most` just below `all`. At `all` and above, every packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a drop curve")]
pub struct Curve {
    /// Lower threshold in percent of the queue's limit, 0 to 100.
    pub from: f64,
    /// Upper threshold in percent of the queue's limit, `from` to 100.
    pub all: f64,
    /// The probability just below `all`: above 0, up to 1; 1 if absent.
    #[serde(default = "certain", skip_serializing_if = "is_certain")]
    pub most: f64,
}

fn certain() -> f64 {
    1.0
}

fn is_certain(most: &f64) -> bool {
    *most >= 1.0
}

impl Default for Queueing {
    fn default() -> Queueing {
        Queueing::Fifo { limit: QueueLimit::default(), dropper: Dropper::default() }
    }
}
