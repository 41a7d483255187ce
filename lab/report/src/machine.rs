//! Where and how a study was run, as the program that ran it states.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Texts; what is empty is not known and not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The time at which the run ended: RFC 3339, in UTC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The command that repeats it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The programs' version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The system's name and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Number and model of the processors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Size of the main memory, with its unit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// Further facts, by name.
    #[serde(flatten)]
    pub more: BTreeMap<String, String>,
}

impl Machine {
    /// All known facts except date and command, which are shown elsewhere.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = [
            ("commit", &self.commit),
            ("kernel", &self.kernel),
            ("processors", &self.cpus),
            ("memory", &self.memory),
        ];
        let more = self.more.iter().map(|(name, value)| (name.as_str(), value));
        let all = named.into_iter().chain(more);
        all.filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, value.as_str()))
    }
}
