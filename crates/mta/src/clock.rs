//! The one place that reads the clocks.

use base::{Instant, Now, Utc};
use std::time::Duration;

/// The monotonic clock and its origin: the start of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that counts from now.
    #[expect(clippy::disallowed_methods, reason = "this is the edge's clock")]
    pub fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    /// Both clocks.
    #[expect(clippy::disallowed_methods, reason = "this is the edge's clock")]
    pub fn now(&self) -> Now {
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Now { mono: Instant(micros(self.origin.elapsed())), utc: Utc(micros(since_1970)) }
    }

    /// The moment of `instant` for tokio's timer.
    pub fn at(&self, instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + Duration::from_micros(instant.0))
    }
}
