//! Holds of an operator: durable before they are answered, so that they outlive a restart.
//!
//! Which entries are held is one small named value of the store, written whole: holds are few, and
//! the records of the queue stay as they are.

use crate::error::EdgeError;
use base::EntryId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the value in the store.
pub const HELD: &str = "held";

/// Entries that an operator may hold at once.
pub const MAX_HELD: usize = 10_000;

/// The outcome for one entry that an operator named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// Held, or released, as asked.
    Done,
    /// Marked. The transfer in progress continues: it is held only if that does not succeed.
    InTransfer,
    /// It was so before.
    Unchanged,
    /// There is no such entry: it may have gone.
    Unknown,
    /// It was routed again, and is these entries now.
    Became(Vec<EntryId>),
}

/// Nothing was held or released.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HoldError {
    /// Beyond the bound.
    #[error("more than {MAX_HELD} entries would be held: release some first")]
    TooMany,
    /// It could not be made durable.
    #[error(transparent)]
    NotStored(EdgeError),
}
