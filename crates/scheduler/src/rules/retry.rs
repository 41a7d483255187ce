//! Rule 9, first half: the delay of a message after its transfer failed.
//!
//! The delay follows the consecutive failures of the message or of its peer, whichever are more:
//! so a new message to a peer that refuses everything waits from its first failure on. Failures
//! within the delay that follows the last counted failure of the peer count as one. The delay thus
//! grows with the time for which the peer has been failing, not with the number of messages tried.

use base::rng::Rng;
use base::{Instant, Precedence};
use std::time::Duration;

/// The delays of one precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Retry {
    /// After the first failure, before jitter; it grows by half each time.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

impl Retry {
    /// By [`Precedence::number`]: Override and Flash 10 s to 10 min, Immediate and Priority 30 s to
    /// 20 min, Routine and Deferred 60 s to 30 min.
    pub const DEFAULTS: [Retry; 6] = [SLOW, SLOW, MIDDLE, MIDDLE, FAST, FAST];

    /// The delay after this many failures: `first`, growing by half each time up to `longest`,
    /// shortened by up to a fifth with `seed`, so that messages that failed together are not
    /// retried together.
    pub fn delay(&self, failures: u32, seed: u64) -> Duration {
        let full = self.full(failures);
        let shorter = Rng::new(seed ^ u64::from(failures) << 32).below(full / 5 + 1);
        Duration::from_micros(full - shorter)
    }

    /// The shortest result of [`Retry::delay`].
    pub(crate) fn least(&self, failures: u32) -> Duration {
        let full = self.full(failures);
        Duration::from_micros(full - full / 5)
    }

    /// In microseconds, without jitter.
    fn full(&self, failures: u32) -> u64 {
        let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX / 2);
        let longest = micros(self.longest);
        let mut full = micros(self.first);
        for _ in 1..failures {
            if full >= longest || full == 0 {
                break;
            }
            full += full / 2 + 1;
        }
        full.min(longest)
    }
}

const fn retry(first_s: u64, longest_min: u64) -> Retry {
    Retry { first: Duration::from_secs(first_s), longest: Duration::from_mins(longest_min) }
}

const FAST: Retry = retry(10, 10);
const MIDDLE: Retry = retry(30, 20);
const SLOW: Retry = retry(60, 30);

/// The delays of a precedence.
pub(crate) fn for_precedence(retry: &[Retry; 6], precedence: Precedence) -> Retry {
    retry.get(usize::from(precedence.number())).copied().unwrap_or(SLOW)
}

/// A peer's consecutive failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    in_a_row: u32,
    last: Instant,
    /// Transfers that started before this time count with the last failure.
    until: Instant,
}

impl Failures {
    /// Counts the failure of a transfer that started at `started`; returns the consecutive
    /// failures counted.
    pub(crate) fn failed(&mut self, now: Instant, started: Instant, retry: &Retry) -> u32 {
        if self.in_a_row == 0 || (started > self.last && started >= self.until) {
            self.in_a_row = self.in_a_row.saturating_add(1);
            (self.last, self.until) = (now, now + retry.least(self.in_a_row));
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
        let (mut failures, retry) = (Failures::default(), Retry::DEFAULTS[4]);
        let mut failed = |now: u64, started: u64| {
            failures.failed(Instant(now * 1_000_000), Instant(started * 1_000_000), &retry)
        };
        assert_eq!(failed(50, 10), 1);
        assert_eq!(failed(51, 20), 1, "was in transfer at the first");
        for other in 52..58 {
            assert_eq!(failed(other, other), 1, "others that were tried within its wait");
        }
        assert_eq!(failed(58, 58), 2, "the first, when it is tried again");
        assert_eq!(failed(69, 69), 2);
        assert_eq!(failed(71, 71), 3);
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
