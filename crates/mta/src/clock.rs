//! The one place that reads the clocks.

use base::{Instant, Now, Utc};
use std::time::Duration;

/// What the monotonic clock shows at the start: times before it can be told apart, of messages that
/// waited in the store or for a wall clock that is set. A hundred years.
const AT_START: Duration = Duration::from_secs(100 * 365 * 86_400);

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
        Now {
            mono: Instant(micros(AT_START + self.origin.elapsed())),
            utc: Utc(micros(since_1970)),
        }
    }

    /// The moment of `instant` for tokio's timer.
    pub fn at(&self, instant: Instant) -> tokio::time::Instant {
        let since_start = Duration::from_micros(instant.0).saturating_sub(AT_START);
        tokio::time::Instant::from_std(self.origin + since_start)
    }
}
