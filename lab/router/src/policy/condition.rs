//! Chains of traffic conditioners (RFC 2475 2.3.3): applied to a packet before it is routed, or
//! before it is queued.

use super::{Name, OctetSize, Span};
use crate::time::Rate;
use dscp::Dscp;
use serde::{Deserialize, Serialize};

/// A step of a chain. It applies to the packets of its class; without a class, to all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ChainStep {
    /// A marker: sets the DSCP of packets.
    Mark {
        /// The class of the packets; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// The DSCP to set.
        dscp: Dscp,
    },
    /// A dropper: drops all packets of the class.
    Drop {
        /// The class of the packets; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
    },
    /// Meters the packets of a class as one aggregate, and applies the action for the colour of
    /// each.
    Meter {
        /// The class of the packets; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// The meter.
        meter: MeterProfile,
        /// The action for green packets.
        #[serde(default)]
        green: MeterAction,
        /// The action for yellow packets. A token bucket gives no yellow.
        #[serde(default)]
        yellow: MeterAction,
        /// The action for red packets.
        #[serde(default)]
        red: MeterAction,
    },
    /// Demotes packets of one AF class that exceed the share of their drop precedence, and drops
    /// those that exceed all shares (DEGEB, Table 4-1).
    Demote(Demotion),
    /// Sets the DSCP of a packet to the mark of the first flow of the table that matches. Other
    /// packets pass unchanged.
    MarkFlows {
        /// The name of the table.
        table: Name,
    },
    /// Meters each flow of a table by its own rate and burst. Flows without a rate pass.
    MeterFlows {
        /// The name of the table.
        table: Name,
        /// The action for packets that conform to the rate.
        #[serde(default)]
        green: MeterAction,
        /// The action for packets that exceed it.
        #[serde(default)]
        red: MeterAction,
    },
    /// Shapes each flow of a table to its own rate and burst, in order. Flows without a rate and
    /// packets of no flow pass. At most 256 flows have a rate.
    ShapeFlows {
        /// The name of the table.
        table: Name,
        /// The longest wait: a packet that would wait longer is dropped. No limit if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<Span>,
        /// Packets of one flow that can wait, 1 to 100,000; 100 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Shapes the packets of a class as one aggregate.
    Shape {
        /// The class of the packets; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// The rate to shape to.
        rate: Rate,
        /// The burst in octets.
        burst: OctetSize,
        /// Packets that can wait, 1 to 100,000.
        limit: usize,
    },
    /// Applies the steps of the first class that matches the packet (a policy map). The packet is
    /// classified once, as it arrived, so no case sees the marks of another. A packet of no class
    /// passes. Shapers are not allowed inside.
    FirstMatch {
        /// The classes, tested in this order.
        classes: Vec<ClassSteps>,
    },
}

/// A class and the steps for its packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a class and its steps")]
pub struct ClassSteps {
    /// The class; if absent, all packets that match no other class, at any position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// The steps, in this order; if empty, the packets pass unchanged.
    #[serde(default)]
    pub steps: Vec<ChainStep>,
}

/// The action for packets of one colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeterAction {
    /// The packet passes unchanged.
    #[default]
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet is marked with this DSCP.
    Mark(Dscp),
    /// The packet gets the AF drop precedence of its colour: AFx1 for green, AFx2 for yellow, AFx3
    /// for red (RFC 2597 2). A packet without an AF code point passes unchanged.
    DropPrecedence,
}

/// A meter (RFC 2475 2.3.3.1). Rates and bursts count octets of IP packets, without link headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MeterProfile {
    /// A token bucket: green while it has enough tokens, else red.
    TokenBucket {
        /// The rate of the tokens.
        rate: Rate,
        /// The size of the bucket in octets.
        burst: OctetSize,
    },
    /// The single rate three color marker (RFC 2697).
    SingleRate {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size in octets.
        cbs: OctetSize,
        /// Excess burst size in octets.
        ebs: OctetSize,
        /// Colour-aware mode: uses the packet's previous colour (of an earlier meter, else its AF
        /// drop precedence).
        #[serde(default)]
        colour_aware: bool,
    },
    /// The two rate three color marker (RFC 2698).
    TwoRate {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size in octets.
        cbs: OctetSize,
        /// Peak information rate, not below `cir`.
        pir: Rate,
        /// Peak burst size in octets.
        pbs: OctetSize,
        /// Colour-aware mode: uses the packet's previous colour (of an earlier meter, else its AF
        /// drop precedence).
        #[serde(default)]
        colour_aware: bool,
    },
}

/// The shares of the three drop precedences of one AF class. An AFx1 packet takes tokens of the
/// first share. If that has too few, it becomes AFx2 and takes tokens of the second share, and so
/// on. If the last share also has too few, the packet is dropped. So AFx1 can use all three shares,
/// AFx2 the last two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a demotion")]
pub struct Demotion {
    /// The AF class, 1 to 4.
    pub af_class: u8,
    /// The rate of each share by itself, not the sums that Table 4-1 prints.
    pub rates: [Rate; 3],
    /// The burst of each share in octets.
    pub burst: OctetSize,
}
