//! Rule 9, first half: how long a message waits after its transfer failed.
//!
//! The delay follows the failures of the message or those of its peer in a row, whichever are more:
//! what comes new to a peer that refuses everything need not find that out by itself. Transfers
//! that were under way together fail together, and count once for the peer.

use base::rng::Rng;
use base::{Instant, Precedence};
use std::time::Duration;

/// The delays of one precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// After the first failure, before jitter; growing by half each time.
    pub first: Duration,
    /// No delay is longer.
    pub longest: Duration,
}

impl Retry {
    /// By [`Precedence::number`]: Override and Flash 10 s to 10 min, Immediate and Priority 30 s to
    /// 20 min, Routine and Deferred 60 s to 30 min.
    pub const DEFAULTS: [Retry; 6] = [SLOW, SLOW, MIDDLE, MIDDLE, FAST, FAST];

    /// How long to wait after so many failures: `first`, growing by half each time up to `longest`,
    /// made up to a fifth shorter by `seed`, so that what failed together does not come back
    /// together.
    pub fn delay(&self, failures: u32, seed: u64) -> Duration {
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX / 2);
        let longest = micros(self.longest);
        let mut full = micros(self.first);
        for _ in 1..failures {
            if full >= longest || full == 0 {
                break;
            }
            full += full / 2 + 1;
        }
        let full = full.min(longest);
        let shorter = Rng::new(seed ^ u64::from(failures) << 32).below(full / 5 + 1);
        Duration::from_micros(full - shorter)
    }
}

const fn retry(first_s: u64, longest_min: u64) -> Retry {
    Retry { first: Duration::from_secs(first_s), longest: Duration::from_mins(longest_min) }
}

const FAST: Retry = retry(10, 10);
const MIDDLE: Retry = retry(30, 20);
const SLOW: Retry = retry(60, 30);

/// Of these, the delays of a precedence.
pub(crate) fn of(retry: &[Retry; 6], precedence: Precedence) -> Retry {
    retry.get(usize::from(precedence.number())).copied().unwrap_or(SLOW)
}

/// A peer's failures in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    in_a_row: u32,
    last: Instant,
}

impl Failures {
    /// A transfer that began at `started` failed; gives how many there were in a row.
    pub(crate) fn failed(&mut self, now: Instant, started: Instant) -> u32 {
        if self.in_a_row == 0 || started > self.last {
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.last = now;
        }
        self.in_a_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grows_by_half_to_the_longest() {
        for retry in Retry::DEFAULTS {
            // 10 s * 1.5^11 is beyond 10 min.
            let mut full = retry.first.as_secs_f64();
            for failures in 1..20 {
                let d = retry.delay(failures, 1).as_secs_f64();
                assert!(d <= full + 1e-3 && d >= full * 0.8 - 1e-3, "{failures}: {d} of {full}");
                full = (full * 1.5).min(retry.longest.as_secs_f64());
            }
        }
        assert!(Retry::DEFAULTS.is_sorted_by_key(|r| std::cmp::Reverse(r.longest)));
    }

    #[test]
    fn what_fails_together_counts_once() {
        let mut failures = Failures::default();
        assert_eq!(failures.failed(Instant(50), Instant(10)), 1);
        assert_eq!(failures.failed(Instant(51), Instant(20)), 1, "was under way at the first");
        assert_eq!(failures.failed(Instant(90), Instant(60)), 2);
    }

    proptest! {
        #[test]
        fn bounded_and_repeatable(failures: u32, seed: u64, first in 0u64..1 << 50, longest in 0u64..1 << 50) {
            let (first, longest) = (Duration::from_micros(first), Duration::from_micros(longest));
            let retry = Retry { first, longest };
            let d = retry.delay(failures, seed);
            prop_assert!(d >= first.min(longest) * 4 / 5 - Duration::from_micros(1).min(d) && d <= longest);
            prop_assert_eq!(d, retry.delay(failures, seed));
        }
    }
}
