//! The one place that reads the clocks.

use base::{Instant, Utc};
use std::time::{SystemTime, UNIX_EPOCH};

/// Monotonic time from the start of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// Counts from now on.
    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub(crate) fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    /// Microseconds since the start.
    pub(crate) fn now(self) -> Instant {
        Instant(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Universal time.
    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub(crate) fn utc() -> Utc {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Utc(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    /// When tokio is to wake us for this moment.
    pub(crate) fn at(self, instant: Instant) -> tokio::time::Instant {
        let origin = tokio::time::Instant::from_std(self.origin);
        origin + std::time::Duration::from_micros(instant.0)
    }
}
