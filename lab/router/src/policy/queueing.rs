//! What holds packets that wait for an interface: a tree of schedulers and shapers over queues.

use super::{Name, Octets, Span};
use crate::time::Rate;
use dscp::Dscp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Queueing {
    /// One queue, first in, first out.
    Fifo {
        /// How much it holds.
        #[serde(default)]
        limit: Limit,
        /// What it drops before it is full.
        #[serde(default)]
        dropper: Dropper,
    },
    /// The first branch that has a packet goes first, always.
    Priority {
        /// Highest first.
        branches: Vec<Branch>,
    },
    /// Deficit round robin by the branches' weights.
    RoundRobin {
        /// Octets a branch of weight 1 may send in a round; 1,500 where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<Octets>,
        /// Branches with [`Share::Weight`].
        branches: Vec<Branch>,
    },
    /// Weighted fair queueing by the branches' weights: by virtual finish times.
    WeightedFair {
        /// Branches with [`Share::Weight`].
        branches: Vec<Branch>,
    },
    /// Class-based weighted fair queueing: branches reserve bandwidth; what is not reserved, a
    /// hundredth at least, is shared by the branches without a reservation; what a branch does not use
    /// goes to those that have traffic, in proportion; priority branches go first and are policed.
    ClassBased {
        /// What is shared, no more than the shaper above lets pass. Where absent, what a shaper above leaves to it; without that, there can
        /// only be percentages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>,
        /// Any shares.
        branches: Vec<Branch>,
    },
    /// Flow-based fair queueing: each flow (addresses, protocol, ports; of fragments, no ports) has a queue, of a weight by
    /// its IP precedence: a flow of precedence p waits in proportion to 32384 / (p + 1).
    FairFlows {
        /// Queues; flows that meet in one share it. 256 where absent; at one interface 65,536 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queues: Option<usize>,
        /// Packets in all queues together; the packet with the latest virtual finish loses. 64 where
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Weights by precedence (the default), or all alike.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_precedence: Option<bool>,
        /// What is dropped before it is full, over all queues together.
        #[serde(default)]
        dropper: Dropper,
    },
    /// Lets the child send at a rate.
    Shaper {
        /// The rate.
        rate: Rate,
        /// What may go at once after idleness, in octets. It is also what can be made good where the
        /// line is offered late: at least the lateness times the rate. With an interval, 0 for its
        /// grant, or at least that.
        burst: Octets,
        /// The interval at which what the rate makes in it is granted at once (Cisco's Tc; its Bc is
        /// rate x interval); where absent, tokens come continuously.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Span>,
        /// Octets counted for each packet beside its own: 14 for Ethernet headers.
        #[serde(default)]
        overhead: u16,
        /// What it shapes.
        child: Box<Queueing>,
    },
}

/// A branch of a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its packets; absent for those of no other branch, which one branch at most may be for. Where
    /// there is none, a FIFO of 100 packets without a share stands last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// Its share; schedulers say which kind they take.
    #[serde(default)]
    pub share: Share,
    /// What holds its packets.
    #[serde(default)]
    pub queueing: Queueing,
}

/// A branch's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Share {
    /// Nothing is said: weight 1, no reservation.
    #[default]
    None,
    /// In proportion to the others' weights; 0.000001 to 1,000,000. In class-based queueing: of
    /// what is not reserved.
    Weight(f64),
    /// So much is reserved.
    Bandwidth(Rate),
    /// So many percent of what is shared are reserved, 0 to 100; 0 is no reservation.
    Percent(f64),
    /// First of all, up to this rate; what is beyond it is dropped while anything waits. The
    /// burst is in octets, at least 1,500; where absent, a fifth of a second at the rate, at least
    /// 1,500.
    #[serde(rename_all = "kebab-case")]
    Priority {
        /// The rate.
        rate: Rate,
        /// The burst.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<Octets>,
    },
    /// The same, up to a part of what is shared (Cisco's `priority percent`).
    #[serde(rename_all = "kebab-case")]
    PriorityPercent {
        /// Above 0, up to 100.
        percent: f64,
        /// The burst.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<Octets>,
    },
}

/// How much a queue holds. What is absent does not limit; where all are, 100 packets. No queue holds
/// more than 1,000,000 packets or 1 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Packets, 1 to 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
    /// Octets, 1 to 1 GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<Octets>,
    /// The time its octets would take at this rate: Bern's "maximum queue delay".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<(Span, Rate)>,
}

/// What a queue drops before it is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Dropper {
    /// Nothing: only what does not fit.
    Tail {},
    /// What comes while as many packets as the threshold of its code point are waiting, or more.
    Thresholds {
        /// By code point, in packets.
        packets: BTreeMap<Dscp, usize>,
        /// For all others; the queue's limit where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<usize>,
    },
    /// Where the queue is full, the last packet of the lowest code point in it.
    PushOut(Push),
    /// Random early detection (Floyd and Jacobson 1993).
    Red {
        /// Its one line.
        line: WredLine,
        /// The average moves by 2^-n of the difference at each packet, n from 1 to 16; 9 where
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// Marks packets of ECN-capable transports instead of dropping them early (RFC 3168 7).
        #[serde(default)]
        ecn: bool,
    },
    /// Weighted random early detection: a line by code point, one average for all.
    Wred {
        /// By code point.
        lines: BTreeMap<Dscp, WredLine>,
        /// For all others; where absent, they are dropped only if the queue is full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<WredLine>,
        /// As with RED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// As with RED.
        #[serde(default)]
        ecn: bool,
    },
    /// RED with three functions by colour (Bern's TRIO; with two alike, RIO). The average a colour
    /// meets counts the packets of its own colour and of the better ones. The queue needs a limit in
    /// packets.
    Trio {
        /// For green, and for what has no colour.
        green: Curve,
        /// For yellow.
        yellow: Curve,
        /// For red.
        red: Curve,
        /// As with RED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_exponent: Option<u8>,
        /// As with RED.
        #[serde(default)]
        ecn: bool,
    },
}

impl Default for Dropper {
    fn default() -> Dropper {
        Dropper::Tail {}
    }
}

/// Which packet gives way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// Code points, lowest first; those not named are above these, in their numbers' order, but LE is
    /// below all (RFC 8622 4).
    #[serde(default)]
    pub lowest_first: Vec<Dscp>,
}

/// A line of Cisco's `random-detect dscp`: no drop below an average of `min` packets, then rising to
/// 1 in `denominator` at `max`, and every packet from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WredLine {
    /// Packets.
    pub min: u32,
    /// Packets, not below `min`.
    pub max: u32,
    /// 1 to 65,536.
    pub denominator: u32,
}

/// A drop function of TRIO, in percent of the queue's limit: none below `from`, rising to `most` just
/// below `all`, and every packet from there on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Percent of the limit, 0 to 100.
    pub from: f64,
    /// Percent of the limit, not below `from`, up to 100.
    pub all: f64,
    /// The share of packets dropped just below `all`: above 0, up to 1, which it is where absent.
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
        Queueing::Fifo { limit: Limit::default(), dropper: Dropper::default() }
    }
}
