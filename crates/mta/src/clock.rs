//! The daemon's clocks. No other module reads them.

use base::{Instant, Now, Utc};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Reading of the monotonic clock at start: a hundred years. Messages recovered from the store,
/// and those from before the wall clock was set, then have times before the start.
const AT_START: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Longest sleep of a tokio timer. Tokio's timers stop while the machine is suspended, so the
/// driver wakes at least this often and compares with CLOCK_BOOTTIME.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The monotonic clock and its origin, the start of the daemon. It continues while the machine is
/// suspended (CLOCK_BOOTTIME); otherwise a suspend would look like a step of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Duration,
}

/// Time since the machine was booted.
pub(crate) fn since_boot() -> Duration {
    // Linux has this clock since 2.6.39.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

impl Clock {
    /// A clock that counts from now.
    pub fn start() -> Clock {
        Clock { origin: since_boot() }
    }

    /// Reads both clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the edge's clock")]
    pub fn now(&self) -> Now {
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let elapsed = since_boot().saturating_sub(self.origin);
        Now { mono: Instant(micros(AT_START + elapsed)), utc: Utc(micros(since_1970)) }
    }

    /// `instant` for tokio's timer, if the machine is not suspended until then.
    pub fn at(&self, instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::now() + instant.since(self.now().mono)
    }

    /// The same, at most `LOOK_AGAIN` from now.
    pub fn wake(&self, instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::now() + instant.since(self.now().mono).min(LOOK_AGAIN)
    }
}

/// The time since this call, for the pace of work in the background.
pub(crate) fn stopwatch() -> impl Fn() -> Duration {
    let begun = since_boot();
    move || since_boot().saturating_sub(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_for_its_moment_and_looks_again_before_a_late_one() {
        let clock = Clock::start();
        let now = clock.now();
        assert!(now.mono >= Instant(0) + AT_START && now.utc > Utc(0));
        assert!(clock.now().mono >= now.mono);
        let begun = tokio::time::Instant::now();
        let late = now.mono + Duration::from_secs(3_600);
        assert!(clock.at(late) > begun + Duration::from_secs(3_500));
        assert!(clock.wake(late) < begun + Duration::from_secs(3_500));
        // A time in the past is due now.
        assert!(clock.wake(now.mono) <= tokio::time::Instant::now());
    }
}
