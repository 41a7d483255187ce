//! The answer to an operator's request to open a channel.

use serde::{Deserialize, Serialize};

/// The outcome of an operator's request to open a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ConnectOutcome {
    /// It was opened.
    Opened,
    /// So many associations of ours were open already: nothing was done.
    Open {
        /// How many.
        associations: usize,
    },
    /// It is being opened; the outcome is not known yet.
    Opening,
    /// It could not be opened; it is tried again later.
    Failed {
        /// Why, as in the status.
        reason: String,
    },
}
