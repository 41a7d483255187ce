//! Orders of an operator that hold on all nodes of a site, and after a restart.

use base::{Precedence, Utc};
use serde::{Deserialize, Serialize};

/// The name of the value in the store that has the orders of MINIMIZE.
pub const MINIMIZED: &str = "minimize";

/// The name of the value in the store that has the last acceptance of the wall clock.
pub const ACCEPTED: &str = "clock-accepted";

/// An order of MINIMIZE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorOrder {
    /// The lowest precedence that goes out; none suspends the windows of the configuration.
    pub floor: Option<Precedence>,
    /// When it ends by itself.
    pub until: Option<Utc>,
    /// The operator, in words.
    pub by: String,
}

/// An operator accepted the wall clock of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAccepted {
    /// The time by that clock.
    pub at: Utc,
    /// The operator, in words.
    pub by: String,
}

impl ClockAccepted {
    /// The value of the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A text and a number can always be written.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The value of the store; `None` if it is damaged, or there is none.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<ClockAccepted> {
        postcard::from_bytes(value).ok()
    }
}
