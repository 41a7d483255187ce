//! The policy of a router: classes, tables of flows, chains of conditioners, queueings, and which
//! interface uses which. It is data only, and the same from TOML, from an imported IOS
//! configuration and from a test.
//!
//! Names are those of the file. An unknown name or a number out of range is refused when a router
//! is built, with the path of its key.

mod check;
mod class;
mod condition;
mod quantity;
mod queueing;

pub use class::{FlowTable, IpPrefix, IpProtocol, Match, PacketClass, PortRange, TableFlow};
pub use condition::{ChainStep, ClassSteps, Demotion, MeterAction, MeterProfile};
pub use quantity::{OctetSize, Span};
pub use queueing::{Branch, BranchShare, Curve, Dropper, Push, QueueLimit, Queueing, WredLine};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A name in a policy.
pub type Name = String;

/// The whole policy of a router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a policy")]
pub struct RouterPolicy {
    /// A description for people.
    pub about: String,
    /// Tables of flows. They can change while the router runs.
    pub tables: BTreeMap<Name, FlowTable>,
    /// Behaviour aggregates and multi-field classes.
    pub classes: BTreeMap<Name, PacketClass>,
    /// Chains of conditioners.
    pub chains: BTreeMap<Name, Vec<ChainStep>>,
    /// Queueings, each for the packets that wait for an interface.
    pub queueings: BTreeMap<Name, Queueing>,
    /// The chains and the queueing of each interface. `"*"` applies to all interfaces that are not
    /// named.
    pub interfaces: BTreeMap<Name, Attachment>,
}

/// The chains and the queueing of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "a table of an attachment")]
pub struct Attachment {
    /// Chains for packets that arrive at this interface, in this order.
    pub input: Vec<Name>,
    /// Chains for packets that leave by this interface, before queueing, in this order.
    pub output: Vec<Name>,
    /// The queueing; if absent, a FIFO of 100 packets.
    pub queueing: Option<Name>,
}

/// A fault of a policy and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct KeyFault {
    /// The path of the key, such as `queueings.wan.branches[1].queueing.dropper`.
    pub path: String,
    /// The fault, and what to write instead.
    pub what: String,
}

impl KeyFault {
    /// A fault at this path.
    pub fn at(path: impl Into<String>, what: impl Into<String>) -> KeyFault {
        KeyFault { path: path.into(), what: what.into() }
    }
}
