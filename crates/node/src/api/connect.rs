//! What an operator hears who wants a channel opened.

use serde::{Deserialize, Serialize};

/// What came of an operator's wish to open a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Connected {
    /// It was opened.
    Opened,
    /// So many associations of ours were open already: nothing was done.
    Open {
        /// How many.
        associations: usize,
    },
    /// It is being opened: how that ends is not known yet.
    Opening,
    /// It could not be opened; it is tried again as ever.
    Failed {
        /// Why, as in the status.
        reason: String,
    },
}
