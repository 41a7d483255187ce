//! The rate of a transfer, from the octets that were confirmed over the last seconds.

use crate::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Older confirms do not count for the rate.
const WINDOW: Duration = Duration::from_secs(10);

/// Confirms closer together than this count as one.
const APART: Duration = Duration::from_millis(500);

/// Confirmed octets, and the times of their confirms.
#[derive(Clone, Debug, Default)]
pub struct RateMeter {
    seen: VecDeque<(Instant, u64)>,
}

impl RateMeter {
    /// Records how many octets in all are confirmed at `now`; the first call gives the beginning.
    pub fn at(&mut self, now: Instant, octets: u64) {
        let mut back = self.seen.iter().rev();
        let close = back.next().zip(back.next()).is_some_and(|(_, (at, _))| *at + APART > now);
        if close {
            self.seen.pop_back();
        }
        self.seen.push_back((now, octets));
        while self.seen.get(1).is_some_and(|(at, _)| *at + WINDOW < now) {
            self.seen.pop_front();
        }
    }

    /// Octets confirmed, once any are.
    pub fn octets(&self) -> Option<u64> {
        self.seen.back().map(|(_, octets)| *octets).filter(|_| self.seen.len() > 1)
    }

    /// Bits a second divided by 1,000, over the last 10 s at most; less and less while nothing is
    /// confirmed. `None` before the first confirm.
    pub fn kbit_s(&self, now: Instant) -> Option<f64> {
        let (_, last) = self.seen.back()?;
        let recent = self.seen.iter().find(|(at, _)| *at + WINDOW >= now);
        let (at, octets) = recent.or(self.seen.back())?;
        let seconds = now.since(*at).as_secs_f64();
        let moved = last.saturating_sub(*octets);
        // Octets are far below 2^53.
        (self.seen.len() > 1 && seconds > 0.0).then(|| moved as f64 * 8.0 / 1_000.0 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000)
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut meter = RateMeter::default();
        meter.at(ms(0), 0);
        assert_eq!((meter.octets(), meter.kbit_s(ms(100))), (None, None));
        for second in 1..=4 {
            meter.at(ms(second * 1_000), second * 64_000);
        }
        assert_eq!((meter.octets(), meter.kbit_s(ms(4_000))), (Some(256_000), Some(512.0)));
        // A halt is seen while it lasts, and ends in nothing.
        assert_eq!(meter.kbit_s(ms(8_000)), Some(256.0));
        assert_eq!(meter.kbit_s(ms(60_000)), Some(0.0));
        // Slower from here; what was before is forgotten.
        for second in 60..=75 {
            meter.at(ms(second * 1_000), 256_000 + (second - 59) * 8_000);
        }
        assert_eq!(meter.kbit_s(ms(75_000)), Some(64.0));
        assert!(meter.seen.len() <= 12, "{}", meter.seen.len());
    }

    #[test]
    fn many_confirms_at_once_are_few_samples() {
        let mut meter = RateMeter::default();
        for n in 0..10_000 {
            meter.at(ms(n), n * 125);
        }
        assert!(meter.seen.len() <= 25, "{}", meter.seen.len());
        let rate = meter.kbit_s(ms(9_999)).unwrap();
        assert!((rate - 1_000.0).abs() < 1.0, "{rate}");
    }
}
