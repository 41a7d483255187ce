//! The offset between the wall clock and the clock of timers.

use crate::config::times::ClockRules;
use base::{Instant, Now, Utc};
use scheduler::Shift;
use std::time::Duration;

/// The name of the durable time in the store: microseconds since 1970, eight octets.
pub const CLOCK: &str = "clock";

/// That the clock is doubted.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    /// By the clock itself, when that began.
    pub(crate) since: Utc,
    pub(crate) because: String,
    /// The clocks when the wall clock was last set: steady since then.
    pub(crate) steady: Now,
}

/// How the two clocks stood when the times of what is queued were last reckoned: all of them by the
/// same, so that neither jitter nor a slow drift adds up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wall {
    pub(crate) at: Option<Now>,
    /// How they stood when the clock was last trusted.
    pub(crate) trusted: Option<Now>,
    pub(crate) looked: Instant,
    /// Steps that followed each other, and when the last was.
    pub(crate) stepped: Duration,
    pub(crate) last_step: Instant,
    pub(crate) doubt: Option<Doubt>,
    /// When the time was last made durable.
    pub(crate) written: Option<Instant>,
}

pub(crate) fn reckoned(from: Now, mono: Instant) -> Utc {
    from.utc + mono.since(from.mono)
}

/// How far a clock is from where another standing would have it.
pub(crate) fn step(from: Now, to: Now) -> Shift {
    let expected = reckoned(from, to.mono);
    if to.utc >= expected {
        Shift::Sooner(to.utc.since(expected))
    } else {
        Shift::Later(expected.since(to.utc))
    }
}

pub(crate) fn size(shift: Shift) -> Duration {
    let (Shift::Sooner(by) | Shift::Later(by)) = shift;
    by
}

pub(crate) fn way(shift: Shift) -> &'static str {
    match shift {
        Shift::Sooner(_) => "forward",
        Shift::Later(_) => "back",
    }
}

impl Wall {
    /// A wall-clock time on the clock of timers.
    pub(crate) fn instant(&self, at: Utc) -> Instant {
        let Now { mono, utc } = self.at.unwrap_or_default();
        if at > utc { mono + at.since(utc) } else { mono - utc.since(at) }
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.doubt.is_some()
    }

    /// The time by the clock that was trusted last, and by the clock of timers since.
    pub(crate) fn believed(&self, mono: Instant) -> Option<Utc> {
        self.trusted.map(|then| reckoned(then, mono))
    }

    /// The latest of the times it may be: what is stamped with it does not seem old.
    pub(crate) fn stamp(&self, now: Now) -> Now {
        let believed = self.doubt.as_ref().and_then(|_| self.believed(now.mono));
        Now { utc: believed.map_or(now.utc, |utc| utc.max(now.utc)), ..now }
    }

    /// The earliest of them: what is over by it is over.
    pub(crate) fn earliest(&self, now: Now) -> Utc {
        let believed = self.doubt.as_ref().and_then(|_| self.believed(now.mono));
        believed.map_or(now.utc, |utc| utc.min(now.utc))
    }

    /// When the clock is trusted again, if nobody sets it.
    pub(crate) fn trusted_at(&self, rules: &ClockRules) -> Option<Instant> {
        self.doubt.as_ref().map(|doubt| doubt.steady.mono + rules.steady)
    }
}
