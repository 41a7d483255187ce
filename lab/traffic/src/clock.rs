//! The clocks of a load, in nanoseconds, and waiting for them.

use anyhow::Result;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use serde::{Deserialize, Serialize};

/// A clock of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LoadClock {
    /// CLOCK_MONOTONIC: one for the whole machine, the same in all network namespaces; nobody sets
    /// it. One-way delays are right only where sender and receiver are on one machine.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME: comparable between machines, as well as their clocks agree.
    Realtime,
}

impl LoadClock {
    /// The clock of a packet's sender.
    pub(crate) fn from_header(header: &load_header::LoadHeader) -> LoadClock {
        if header.realtime { LoadClock::Realtime } else { LoadClock::Monotonic }
    }

    /// Nanoseconds since its origin.
    pub fn now(self) -> u64 {
        // Both clocks exist on every Linux; a failure would show as a time of zero.
        let Ok(time) = clock_gettime(self.id()) else { return 0 };
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LoadClock::Monotonic => "monotonic",
            LoadClock::Realtime => "realtime",
        }
    }

    fn id(self) -> ClockId {
        match self {
            LoadClock::Monotonic => ClockId::CLOCK_MONOTONIC,
            LoadClock::Realtime => ClockId::CLOCK_REALTIME,
        }
    }
}

/// Sleeps until CLOCK_MONOTONIC shows this many nanoseconds; shorter if a signal comes.
///
/// # Errors
/// The system does not know the clock.
pub(super) fn sleep_until(nanos: u64) -> Result<()> {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let at = nix::sys::time::TimeSpec::new(seconds as i64, rest as i64);
    let slept = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
    match slept {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_no_earlier_than_asked() {
        let at = LoadClock::Monotonic.now() + 2_000_000;
        sleep_until(at).unwrap();
        assert!(LoadClock::Monotonic.now() >= at);
        assert!(LoadClock::Realtime.now() > 1_700_000_000_000_000_000);
    }
}
