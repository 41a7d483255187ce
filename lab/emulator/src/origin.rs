//! The clock of a machine that carries packets: its time starts with the process.

#![expect(clippy::disallowed_methods, reason = "the kernel's packets come in real time")]

use std::time::{Duration, Instant};
use testbed::clock::since_1970;

/// The moment from which a machine's time is counted.
#[derive(Clone, Copy, Debug)]
pub struct TimeOrigin {
    at: Instant,
    since_1970: Duration,
}

impl TimeOrigin {
    /// This moment.
    pub fn now() -> TimeOrigin {
        TimeOrigin { at: Instant::now(), since_1970: since_1970() }
    }

    /// The time by now.
    pub fn time(&self) -> router::Time {
        router::Time::from(self.at.elapsed())
    }

    /// A time as nanoseconds since 1970, by the system's clock at the origin.
    pub fn since_1970(&self, time: router::Time) -> u64 {
        u64::try_from(self.since_1970.as_nanos()).unwrap_or(u64::MAX).saturating_add(time.0)
    }
}
