//! Time of capture files: nanoseconds since 1970.

use std::time::Duration;

/// A moment: nanoseconds since 1970-01-01T00:00:00Z, as a capture has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Nanoseconds since `earlier`; zero where `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Nanoseconds since `earlier`; below zero where `earlier` is later.
    pub fn signed_since(self, earlier: Time) -> i64 {
        let difference = i128::from(self.0) - i128::from(earlier.0);
        let bound = if difference < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(difference).unwrap_or(bound)
    }
}

impl From<Duration> for Time {
    fn from(since_1970: Duration) -> Time {
        Time(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
    }
}
