//! What an operator orders of entries: durable before it is answered, so that it outlives a restart.
//!
//! Which entries are held is one small named value of the store, written whole: the records of the
//! queue stay as they are.

use crate::error::EdgeError;
use base::EntryId;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use thiserror::Error;

/// The name of the value in the store.
pub const HELD: &str = "held";

/// Entries that an operator may hold at once.
pub const MAX_HELD: usize = 100_000;

/// Most entries of one order. The records of those that are to be reported or rerouted are in memory at
/// the same time.
pub const MAX_ORDERED: usize = 500;

/// Who orders something: the user at the other end of the admin socket (SO_PEERCRED).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// Numeric user identifier.
    pub uid: u32,
    /// Name, if the system has one for it.
    pub name: Option<String>,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (uid {})", self.uid),
            None => write!(f, "uid {}", self.uid),
        }
    }
}

/// What an operator orders of entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// They start no transfer until they are released.
    Hold,
    /// They are held no longer.
    Release,
    /// Their wait after a failure ends, and that of their peer's channels.
    Retry,
    /// They go to this peer or, if none is named, where the routes lead now.
    Reroute {
        /// The name of a peer.
        to: Option<String>,
    },
    /// They are given up, with non-delivery reports.
    Expire,
    /// They are deleted, without any report.
    Delete,
    /// Only what the outcomes of this would be is asked for: a reroute, an expiry or a deletion.
    Trial(#[serde(deserialize_with = "untried")] Box<Act>),
}

/// Reads what is tried, which is not a trial itself: otherwise octets from outside could nest so deep that no stack is
/// enough.
fn untried<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Act>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case", rename = "Act")]
    enum Untried {
        Hold,
        Release,
        Retry,
        Reroute { to: Option<String> },
        Expire,
        Delete,
    }
    Ok(Box::new(match Untried::deserialize(from)? {
        Untried::Hold => Act::Hold,
        Untried::Release => Act::Release,
        Untried::Retry => Act::Retry,
        Untried::Reroute { to } => Act::Reroute { to },
        Untried::Expire => Act::Expire,
        Untried::Delete => Act::Delete,
    }))
}

impl Act {
    /// Hold or release.
    #[must_use]
    pub fn holding(hold: bool) -> Act {
        if hold { Act::Hold } else { Act::Release }
    }

    /// The word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Act::Hold => "hold",
            Act::Release => "release",
            Act::Retry => "retry",
            Act::Reroute { .. } => "reroute",
            Act::Expire => "expire",
            Act::Delete => "delete",
            Act::Trial(act) => act.name(),
        }
    }
}

/// The outcome for one entry that an operator named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActOutcome {
    /// As ordered.
    Done,
    /// As ordered, and nobody gets a report: none was asked for, or it is a report itself.
    Silent,
    /// As ordered. But all of it was sent before, and the confirm was lost: its receiver may have it.
    Doubted,
    /// It would be done, and how: of a trial.
    Would(String),
    /// It is in transfer, which continues. A hold is kept in mind: it applies if the transfer does not
    /// succeed. Of all other orders nothing is done.
    InTransfer,
    /// It was so before.
    Unchanged,
    /// There is no such entry: it may have gone.
    Unknown,
    /// It was routed again, and is these entries now.
    Became(Vec<EntryId>),
    /// Nothing was done with it, for this reason.
    Refused(String),
}

/// What [`ActOutcome::Doubted`] states, in words.
pub const IN_DOUBT: &str = "all of it was sent, and the confirm was lost: its receiver may have it";

/// Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ActError {
    /// Beyond the bound.
    #[error("more than {MAX_HELD} entries would be held: release some first")]
    TooMany,
    /// More than [`MAX_ORDERED`].
    #[error("more than {MAX_ORDERED} entries in one order: divide it")]
    TooLong,
    /// A peer that is not configured.
    #[error("there is no peer {0:?}: `mta status` shows those there are")]
    NoPeer(String),
    /// Nobody's address.
    #[error("{0} is nobody's address here: `mta user list` shows the users")]
    NoUser(String),
    /// It could not be made durable.
    #[error(transparent)]
    NotStored(EdgeError),
}
