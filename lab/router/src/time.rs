//! Time in nanoseconds, rates in bits a second, and exact arithmetic between them.
//!
//! The microseconds of `base::time` are too coarse here: a packet of 128 octets takes one at 1
//! Gbit/s.

use base::quantity;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// A time: nanoseconds since an origin that the edge selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// Nanoseconds since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub fn duration_since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.since(earlier))
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Time {
        Time(nanos(duration))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A rate, 1 to 10^12 bits a second. As text it has a decimal unit: `512kbit`, `2Mbit`, `1.5Mbit`,
/// `100bit`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// The text is not a rate, or the rate is outside 1 bit/s to 1 Tbit/s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a rate from 1bit to 1000Gbit: write 512kbit, 2Mbit or 512kbit/s")]
pub struct NoRate(String);

const MAX_RATE: u64 = 1_000_000_000_000;
const RATE_UNITS: [(&str, u64); 4] =
    [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl Rate {
    /// A rate in bits a second; `None` outside 1 to 10^12.
    pub fn from_bits(bits_per_second: u64) -> Option<Rate> {
        (1..=MAX_RATE).contains(&bits_per_second).then_some(Rate(bits_per_second))
    }

    /// The rate in bits a second.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Nanoseconds that these octets take at the rate, rounded up.
    pub fn nanos_for(self, octets: u64) -> u64 {
        let bit_nanos = u128::from(octets) * 8 * u128::from(SECOND);
        u64::try_from(bit_nanos.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
    }

    /// Whole octets that the rate sends in these nanoseconds.
    pub fn octets_in(self, nanos: u64) -> u64 {
        let octets = u128::from(self.0) * u128::from(nanos) / (8 * u128::from(SECOND));
        u64::try_from(octets).unwrap_or(u64::MAX)
    }

    /// This percentage of the rate, 0 to 100; at least 1 bit/s.
    pub fn percent(self, percent: f64) -> Rate {
        let bits = self.0 as f64 * percent.clamp(0.0, 100.0) / 100.0;
        Rate((bits as u64).clamp(1, MAX_RATE))
    }
}

impl FromStr for Rate {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Rate, NoRate> {
        let no_rate = || NoRate(text.chars().take(40).collect());
        quantity::bit_rate(text).ok().and_then(Rate::from_bits).ok_or_else(no_rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = RATE_UNITS.iter().find(|(_, bits)| self.0.is_multiple_of(*bits));
        match whole {
            Some((unit, bits)) => write!(f, "{}{unit}", self.0 / bits),
            None => write!(f, "{}bit", self.0),
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_shown_in_the_same_words() {
        for (text, bits) in
            [("512kbit", 512_000), ("2Mbit", 2_000_000), ("1Gbit", 1_000_000_000), ("7bit", 7)]
        {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.bits(), rate.to_string().as_str()), (bits, text));
        }
        assert_eq!("1.5Mbit".parse::<Rate>().unwrap().to_string(), "1500kbit");
        for wrong in ["", "512", "kbit", "0bit", "-1Mbit", "1001Gbit", "NaNbit", "1 MB", "infbit"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_and_octets_agree() {
        let rate = Rate::from_bits(512_000).unwrap();
        assert_eq!(rate.nanos_for(1500), 23_437_500);
        assert_eq!(rate.octets_in(23_437_500), 1500);
        assert_eq!(rate.octets_in(23_437_499), 1499);
        assert_eq!(Rate::from_bits(3).unwrap().nanos_for(1), 2_666_666_667);
        assert_eq!(Rate::from_bits(1).unwrap().nanos_for(u64::MAX), u64::MAX);
        assert_eq!(rate.percent(50.0).bits(), 256_000);
    }
}
