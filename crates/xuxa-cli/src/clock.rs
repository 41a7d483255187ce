//! The one place that reads the clocks.

use base::{Instant, Utc};
use std::time::{SystemTime, UNIX_EPOCH};

/// Both clocks; monotonic time counts from the start of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub(crate) fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    pub(crate) fn mono(self) -> Instant {
        Instant(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Lets time pass.
    #[expect(clippy::disallowed_methods, reason = "an MTA that is away gives no event to wait for")]
    pub(crate) fn pause(time: std::time::Duration) {
        std::thread::sleep(time);
    }

    #[expect(clippy::disallowed_methods, reason = "the edge reads the clock here and nowhere else")]
    pub(crate) fn utc() -> Utc {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Utc(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}
