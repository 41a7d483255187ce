//! The clocks. No other module reads them.

use base::{Instant, Utc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Both clocks; monotonic time counts from the start of the program.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that counts from now.
    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    /// Microseconds since the start.
    pub fn now(self) -> Instant {
        Instant(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Universal time.
    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub fn utc() -> Utc {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Utc(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    /// The deadline for tokio's timer.
    pub fn at(self, instant: Instant) -> tokio::time::Instant {
        let origin = tokio::time::Instant::from_std(self.origin);
        origin + Duration::from_micros(instant.0)
    }
}
