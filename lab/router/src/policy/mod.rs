//! What a router is told: classes, tables of flows, chains of conditioners and queueings, and which
//! interface uses which. Data only; the same whether it comes from TOML, from an imported IOS
//! configuration or from a test.
//!
//! Names are those of the file. What refers to a name that is not there, or has numbers out of
//! range, is refused when a router is built from it, with the path of the key.

mod check;
mod class;
mod condition;
mod quantity;
mod queueing;

pub use class::{Class, Flow, Match, Ports, Prefix, Protocol, Table};
pub use condition::{Action, Case, Demotion, Meter, Step};
pub use quantity::{Octets, Span};
pub use queueing::{Branch, Curve, Dropper, Limit, Push, Queueing, Share, WredLine};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A name in a policy.
pub type Name = String;

/// The whole policy of a router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What it is for, for people.
    pub about: String,
    /// Tables of flows, which can be changed while the router runs.
    pub tables: BTreeMap<Name, Table>,
    /// Behaviour aggregates and multi-field classes.
    pub classes: BTreeMap<Name, Class>,
    /// Chains of conditioners.
    pub chains: BTreeMap<Name, Vec<Step>>,
    /// What holds packets that wait for an interface.
    pub queueings: BTreeMap<Name, Queueing>,
    /// Which interface uses what; `"*"` for all that are not named.
    pub interfaces: BTreeMap<Name, Attachment>,
}

/// What an interface uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Attachment {
    /// Chains that a packet passes when it comes in here, in this order.
    pub input: Vec<Name>,
    /// Chains that a packet passes before it is queued to go out here.
    pub output: Vec<Name>,
    /// The queueing; where there is none, a FIFO of 100 packets.
    pub queueing: Option<Name>,
}

/// What is wrong with a policy, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct Wrong {
    /// The keys down to it: `queueings.wan.branches[1].queueing.dropper`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Wrong {
    /// This is wrong there.
    pub fn at(path: impl Into<String>, what: impl Into<String>) -> Wrong {
        Wrong { path: path.into(), what: what.into() }
    }
}
