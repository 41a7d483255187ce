//! How long copies may wait, and when a clock that was set is believed.

use base::PerPrecedence;
use engine::Periods;
use std::time::Duration;

/// When a clock that was set is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRules {
    /// Steps up to so much, alone or together, are followed at once.
    pub step: Duration,
    /// After a longer one the clock must be steady for so long.
    pub steady: Duration,
}

impl Default for ClockRules {
    /// 1 min and 10 min.
    fn default() -> ClockRules {
        ClockRules { step: Duration::from_secs(60), steady: Duration::from_secs(600) }
    }
}

/// How long copies may wait: until they are late, and until they are given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Given up after so long.
    pub expire: Periods,
    /// Late after so long.
    pub alert: Alerts,
    /// When a wall clock that was set is believed.
    pub clock: ClockRules,
}

/// The age from which on a copy is late, counted from our acceptance or the end of its deferral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alerts(pub PerPrecedence<Duration>);

impl Default for Alerts {
    /// Override 30 s, Flash 60 s, Immediate 5 min, Priority 30 min, Routine 3 h, Deferred 24 h.
    fn default() -> Alerts {
        let seconds = [24 * 3_600, 3 * 3_600, 1_800, 300, 60, 30];
        Alerts(PerPrecedence::new(seconds.map(Duration::from_secs)))
    }
}
