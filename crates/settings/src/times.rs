//! How long copies may wait, and when a clock that was set is believed.

use engine::{Alerts, Periods};
use scheduler::wall::ClockRules;

/// How long copies may wait: until they are late, and until they are given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// Given up after so long.
    pub expire: Periods,
    /// Late after so long.
    pub alert: Alerts,
    /// When a wall clock that was set is believed.
    pub clock: ClockRules,
}
