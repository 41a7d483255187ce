//! Chains of conditioners: what is done to a packet before it is routed, or before it is queued.

use super::{Name, Octets, Span};
use crate::time::Rate;
use dscp::Dscp;
use serde::{Deserialize, Serialize};

/// A step of a chain. It touches only packets of its class; without a class, all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Gives packets a code point.
    Mark {
        /// Which ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// The code point.
        dscp: Dscp,
    },
    /// Drops packets.
    Drop {
        /// Which ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
    },
    /// Meters packets together, and does to each what its colour asks for.
    Meter {
        /// Which ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// How.
        meter: Meter,
        /// What is done to green ones.
        #[serde(default)]
        green: Action,
        /// To yellow ones; a token bucket finds none.
        #[serde(default)]
        yellow: Action,
        /// To red ones.
        #[serde(default)]
        red: Action,
    },
    /// Demotes packets of one AF class by what is left of the shares of its drop precedences, and
    /// drops what no share takes (DEGEB, Table 4-1).
    Demote(Demotion),
    /// Gives packets the code point of the first flow of the table that matches; others stay.
    MarkFlows {
        /// The table.
        table: Name,
    },
    /// Meters each flow of a table by its own rate and burst; flows without a rate pass.
    MeterFlows {
        /// The table.
        table: Name,
        /// What is done to packets within the rate.
        #[serde(default)]
        green: Action,
        /// To others.
        #[serde(default)]
        red: Action,
    },
    /// Shapes each flow of a table to its own rate and burst, in order; flows without a rate and
    /// what is in no flow pass. At most 256 flows have a rate.
    ShapeFlows {
        /// The table.
        table: Name,
        /// What would wait longer than this is dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<Span>,
        /// Packets that may wait in a flow; 100 where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Shapes all packets of the class together.
    Shape {
        /// Which ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<Name>,
        /// To this rate.
        rate: Rate,
        /// After this burst in octets.
        burst: Octets,
        /// Packets that may wait.
        limit: usize,
    },
    /// Leads a packet through the steps of the first of several classes it belongs to: one
    /// classification, by what it was when it came, so that none sees what another has marked (a
    /// policy map). What belongs to no class goes on. Shapers stand outside.
    FirstMatch {
        /// The classes, looked at in this order.
        classes: Vec<Case>,
    },
}

/// A class and what is done to its packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Which packets; absent for those of no other class, wherever it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// What is done to them, in this order; nothing where it is empty.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// What is done to a packet of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It goes on as it is.
    #[default]
    Pass,
    /// It is dropped.
    Drop,
    /// It is given this code point.
    Mark(Dscp),
    /// Its AF drop precedence is that of its colour: AFx1 green, AFx2 yellow, AFx3 red (RFC 2597
    /// 2); what is not AF stays as it is.
    DropPrecedence,
}

/// A meter. Octets are those of the IP packet; rates count no link headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Meter {
    /// One bucket: green while it has enough, red otherwise.
    TokenBucket {
        /// Its rate.
        rate: Rate,
        /// Its size in octets.
        burst: Octets,
    },
    /// Single rate, three colours (RFC 2697).
    SingleRate {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size in octets.
        cbs: Octets,
        /// Excess burst size in octets.
        ebs: Octets,
        /// Looks at the colour a packet comes with (its AF drop precedence, or an earlier meter's).
        #[serde(default)]
        colour_aware: bool,
    },
    /// Two rates, three colours (RFC 2698).
    TwoRate {
        /// Committed information rate.
        cir: Rate,
        /// Committed burst size in octets.
        cbs: Octets,
        /// Peak information rate, not below the committed.
        pir: Rate,
        /// Peak burst size in octets.
        pbs: Octets,
        /// Looks at the colour a packet comes with (its AF drop precedence, or an earlier meter's).
        #[serde(default)]
        colour_aware: bool,
    },
}

/// The shares of the three drop precedences of one AF class. A packet of AFx1 takes from the first
/// share; where that is used up it becomes AFx2 and takes from the second, and so on; what the last
/// does not take either is dropped. So AFx1 may use all three, AFx2 the last two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demotion {
    /// The AF class, 1 to 4.
    pub af_class: u8,
    /// The share of each drop precedence by itself: not the sums that Table 4-1 prints.
    pub rates: [Rate; 3],
    /// The burst of each share in octets.
    pub burst: Octets,
}
