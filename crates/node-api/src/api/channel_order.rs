//! Orders of an operator for a channel: disabled, enabled, disconnected.

use base::{Precedence, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the value in the store that has the channels which are disabled.
pub const DISABLED: &str = "channels-disabled";

/// What an operator orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOrder {
    /// Nothing goes over it in either direction until it is enabled: its associations end, none is opened, and
    /// the peer's binds are refused as busy.
    Disable,
    /// It opens again as configured.
    Enable,
    /// Its associations end; it opens again as configured, after the first wait of `reopen`.
    Disconnect,
}

impl ChannelOrder {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ChannelOrder::Disable => "disable",
            ChannelOrder::Enable => "enable",
            ChannelOrder::Disconnect => "disconnect",
        }
    }
}

/// Who disabled a channel, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    /// The operator, in words.
    pub by: String,
    /// When.
    pub since: Utc,
}

impl std::fmt::Display for Disabled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "disabled by {} since {}", base::shown::line(&self.by), self.since)
    }
}

/// A transfer on an association that is to end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferInProgress {
    /// The association.
    pub association: String,
    /// The entry that it sends; absent where the peer sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Since when nothing of it was confirmed or taken, RFC 3339; absent where that is not longer than
    /// `stall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_since: Option<String>,
}

/// What an order does, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelOutcome {
    /// Whether it changes anything.
    pub changed: bool,
    /// Associations that end.
    pub ending: usize,
    /// Of these, those with a transfer in progress: interrupted at the next checkpoint and resumed later, or, at
    /// once, cut off.
    pub in_transfer: usize,
    /// Those transfers: each association lives until its own has ended, unless it is cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferInProgress>,
    /// What is queued for the channel, by precedence.
    pub queued: BTreeMap<Precedence, u64>,
    /// The other channels of the peer that take a queued precedence while this one is down; a queued precedence
    /// that is not here waits.
    pub elsewhere: BTreeMap<Precedence, Vec<String>>,
    /// Who disabled it, if it is disabled after the order. The time is text, as others in JSON.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "as_text")]
    pub disabled: Option<Disabled>,
}

/// [`Disabled`] with its time as RFC 3339. In the store it is a number.
mod as_text {
    use super::Disabled;
    use base::Utc;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Shown {
        by: String,
        since: String,
    }

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(
        disabled: &Option<Disabled>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let shown = |d: &Disabled| Shown { by: d.by.clone(), since: d.since.to_string() };
        disabled.as_ref().map(shown).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Disabled>, D::Error> {
        let Some(Shown { by, since }) = Option::deserialize(deserializer)? else { return Ok(None) };
        let since = utc(&since).ok_or_else(|| D::Error::custom("since is not a time"))?;
        Ok(Some(Disabled { by, since }))
    }

    /// The time of `2026-01-02T03:04:05.000006Z`.
    fn utc(text: &str) -> Option<Utc> {
        let (second, fraction) = text.strip_suffix('Z')?.split_once('.')?;
        let digits: String = second.chars().filter(char::is_ascii_digit).collect();
        let seconds = Utc::from_utc_time(format!("{}Z", digits.get(2..)?).as_bytes())?;
        let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
        Some(Utc(seconds.0.checked_add(micros)?))
    }
}
