//! The offset between the wall clock and the clock of timers.

use crate::Shift;
use base::{Instant, Now, Utc};
use std::time::Duration;

/// The name of the durable times in the store: see [`Noted`].
pub const CLOCK: &str = "clock";

/// The times that are durable, in microseconds since 1970: eight octets each. Older releases have the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// By the clock that was trusted last.
    pub trusted: Utc,
    /// The latest that the queue has gone by: what was deferred until then may have left.
    pub gone: Utc,
}

impl Noted {
    /// The value in the store.
    pub fn encode(self) -> [u8; 16] {
        let mut value = [0; 16];
        let (trusted, gone) = value.split_at_mut(8);
        trusted.copy_from_slice(&self.trusted.0.to_be_bytes());
        gone.copy_from_slice(&self.gone.0.to_be_bytes());
        value
    }

    /// Reads it; `None`: it has another form.
    pub fn read(value: &[u8]) -> Option<Noted> {
        let (trusted, rest) = value.split_first_chunk()?;
        let trusted = Utc(u64::from_be_bytes(*trusted));
        match rest {
            [] => Some(Noted { trusted, gone: trusted }),
            gone => Some(Noted { trusted, gone: Utc(u64::from_be_bytes(gone.try_into().ok()?)) }),
        }
    }
}

/// When a clock that was set is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// That the clock is doubted.
#[derive(Clone, Debug)]
pub struct Doubt {
    /// By the clock itself, when that began.
    pub since: Utc,
    /// Why, in words.
    pub because: String,
    /// The clocks when the wall clock was last set: steady since then.
    pub steady: Now,
}

/// How the two clocks stood when the times of what is queued were last reckoned: all of them by the
/// same, so that neither jitter nor a slow drift adds up.
#[derive(Clone, Debug, Default)]
pub struct Wall {
    /// How they stood then.
    pub at: Option<Now>,
    /// How they stood when the clock was last trusted.
    pub trusted: Option<Now>,
    /// When they were last compared.
    pub looked: Instant,
    /// Steps that followed each other, and when the last was.
    pub stepped: Duration,
    /// When the last of them was.
    pub last_step: Instant,
    /// That it is doubted.
    pub doubt: Option<Doubt>,
    /// When the time was last made durable.
    pub written: Option<Instant>,
    /// What was made durable then, or was found at the start.
    pub noted: Option<Noted>,
    /// What was deferred until then may have left before this process was started.
    pub gone: Option<Utc>,
}

/// The time at this moment, by a standing of the clocks.
pub fn reckoned(from: Now, mono: Instant) -> Utc {
    from.utc + mono.since(from.mono)
}

/// How far a clock is from where another standing would have it.
pub fn step(from: Now, to: Now) -> Shift {
    let expected = reckoned(from, to.mono);
    if to.utc >= expected {
        Shift::Sooner(to.utc.since(expected))
    } else {
        Shift::Later(expected.since(to.utc))
    }
}

/// How far.
pub fn size(shift: Shift) -> Duration {
    let (Shift::Sooner(by) | Shift::Later(by)) = shift;
    by
}

/// Which way, in words.
pub fn way(shift: Shift) -> &'static str {
    match shift {
        Shift::Sooner(_) => "forward",
        Shift::Later(_) => "back",
    }
}

impl Wall {
    /// A wall-clock time on the clock of timers.
    pub fn instant(&self, at: Utc) -> Instant {
        let Now { mono, utc } = self.at.unwrap_or_default();
        if at > utc { mono + at.since(utc) } else { mono - utc.since(at) }
    }

    /// Whether the clock is doubted.
    pub fn is_doubted(&self) -> bool {
        self.doubt.is_some()
    }

    /// The time by which the queue goes.
    pub fn queue_time(&self, mono: Instant) -> Option<Utc> {
        self.at.map(|at| reckoned(at, mono))
    }

    /// The time by the clock that was trusted last, and by the clock of timers since.
    pub fn believed(&self, mono: Instant) -> Option<Utc> {
        self.trusted.map(|then| reckoned(then, mono))
    }

    /// The latest of the times it may be: what is stamped with it does not seem old.
    pub fn stamp(&self, now: Now) -> Now {
        let believed = self.doubt.as_ref().and_then(|_| self.believed(now.mono));
        Now { utc: believed.map_or(now.utc, |utc| utc.max(now.utc)), ..now }
    }

    /// The earliest of them: what is over by it is over.
    pub fn earliest(&self, now: Now) -> Utc {
        let believed = self.doubt.as_ref().and_then(|_| self.believed(now.mono));
        believed.map_or(now.utc, |utc| utc.min(now.utc))
    }

    /// When the clock is trusted again, if nobody sets it: after so long without a step.
    pub fn trusted_at(&self, steady: Duration) -> Option<Instant> {
        self.doubt.as_ref().map(|doubt| doubt.steady.mono + steady)
    }
}
