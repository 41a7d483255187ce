//! Slow lines. While the peer's answer to sent data is outstanding, the edge measures how many octets
//! the peer's TCP acknowledged. Enough of them are progress, even if no checkpoint was confirmed for
//! minutes. They also give the rate of the line, from which the next association's checkpoint size follows.

use std::time::Duration;

/// What a checkpoint takes on the line, where its size follows the rate.
const STEP: Duration = Duration::from_secs(10);

/// Octets in a unit of checkpointSize (X.228 7.1.1).
const UNIT: u64 = 1024;

/// How fast the line of a channel was for one association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineEstimate {
    /// Bits a second; `None` where nothing was measured.
    pub bit_s: Option<u64>,
}

/// The rate in bits a second at which so many octets took this time.
#[must_use]
pub fn rate(octets: u64, took: Duration) -> u64 {
    let micros = took.as_micros().max(1);
    u64::try_from(u128::from(octets) * 8_000_000 / micros).unwrap_or(u64::MAX)
}

impl LineEstimate {
    /// So many octets went over it in this time, while octets waited without a break.
    pub fn measured(&mut self, octets: u64, took: Duration) {
        let new = rate(octets, took);
        self.bit_s = Some(self.bit_s.map_or(new, |old| old / 2 + new / 2));
    }

    /// So many octets went over it in this time, and perhaps more could have.
    pub fn at_least(&mut self, octets: u64, took: Duration) {
        self.bit_s = self.bit_s.map(|old| old.max(rate(octets, took)));
    }

    /// Bits a second; `None` until it was measured.
    pub fn bit_s(self) -> Option<u64> {
        self.bit_s
    }

    /// The checkpoint size that suits it, in units of 1,024 octets: a power of two, ten seconds long or
    /// somewhat less, 1 to `most`; `most` where the rate is not known.
    pub fn checkpoint(self, most: u32) -> u32 {
        let Some(bit_s) = self.bit_s else { return most };
        let units = bit_s.saturating_mul(STEP.as_secs()) / (8 * UNIT);
        let units = u32::try_from(units).unwrap_or(1 << 31).max(1);
        (1u32 << units.ilog2()).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_checkpoint_takes_ten_seconds_or_less() {
        let of = |bit_s: u64| LineEstimate { bit_s: Some(bit_s) }.checkpoint(64);
        let sizes = [0, 75, 800, 1_600, 2_400, 4_800, 9_600, 19_200, 52_429, 64_000, u64::MAX];
        assert_eq!(sizes.map(of), [1, 1, 1, 1, 2, 4, 8, 16, 64, 64, 64]);
        assert_eq!(LineEstimate::default().checkpoint(64), 64, "not measured yet");
        assert_eq!(LineEstimate { bit_s: Some(2_400) }.checkpoint(1), 1, "never above the largest");
        assert_eq!(
            LineEstimate { bit_s: Some(2_400) }.checkpoint(0),
            0,
            "nor any where there are none"
        );
    }

    #[test]
    fn the_rate_follows_what_is_measured() {
        let mut line = LineEstimate::default();
        line.at_least(1_000_000, SECOND);
        assert_eq!(line.bit_s(), None, "it could be anything above");
        line.measured(6_000, 20 * SECOND);
        assert_eq!(line.bit_s(), Some(2_400));
        line.measured(24_000, 20 * SECOND);
        assert_eq!(line.bit_s(), Some(6_000));
        line.at_least(1_000, SECOND);
        assert_eq!(line.bit_s(), Some(8_000), "the line was changed");
        line.at_least(100, SECOND);
        assert_eq!(line.bit_s(), Some(8_000), "a short message does not count");
        line.measured(u64::MAX, Duration::ZERO);
    }
}
