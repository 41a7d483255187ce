//! What a publication leaves open: parameters, and the one setting of all rows with printed values.

use router::policy::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Value;

/// A setting that was left open: its value, what it is set in, and why it has this value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a parameter")]
pub struct Parameter {
    /// What it belongs to. Every parameter of a study with a headline has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ParameterKind>,
    /// Whether the publication prints this value. What it does not print is a hypothesis of ours, and
    /// has a range.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
    /// The values that it may have, judged by what is printed and by the systems of its time: least and
    /// most of two, or each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<Value>,
    /// The printed values by which this value was chosen; it counts as fitted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fits: String,
    /// Its value where an experiment or a run has no other; a setting without one is left as the
    /// files have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Text to show.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Values with names, which stand for them wherever a value is given: short ones for tables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Name, Value>,
    /// The reason for this value.
    pub why: String,
    /// What it is set in, parameters in the order of their names: paths below `network` (the topology), `policy.NAME`, `mail`, `messages` and
    /// `loads`.
    pub sets: Vec<String>,
}

/// What a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// The MTAs and their channels.
    Messaging,
    /// The operating system of the hosts.
    Host,
    /// The routers and their policies.
    Router,
    /// The links.
    Network,
    /// The loads beside the messages.
    Load,
    /// How it is measured.
    Measurement,
}

impl ParameterKind {
    /// Whether all rows with printed values share one value: no row is fitted by it.
    pub fn is_shared(self) -> bool {
        matches!(self, ParameterKind::Messaging | ParameterKind::Host)
    }

    /// Its name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            ParameterKind::Messaging => "messaging",
            ParameterKind::Host => "host",
            ParameterKind::Router => "router",
            ParameterKind::Network => "network",
            ParameterKind::Load => "load",
            ParameterKind::Measurement => "measurement",
        }
    }
}

/// The one setting of messaging and hosts that every run with printed values has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table of a headline")]
pub struct Headline {
    /// Values of parameters. Runs without printed values have their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<Name, Value>,
    /// Why these.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// In simulation so many printed values at least are within 15 percent; it only grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_15_percent: Option<usize>,
    /// And so many within a factor of 2, these included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_factor_2: Option<usize>,
}
