//! Time as an argument: a monotonic instant and a wall-clock time, both in microseconds.
//!
//! Serialisable and constructible, so that a recorded run can be replayed. Only the edge tier
//! reads a clock, and hands the readings in.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Monotonic time: microseconds since an origin the edge chose at start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(pub u64);

impl Instant {
    /// Time since `earlier`; zero where `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(micros(d)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(micros(d)))
    }
}

/// Wall-clock time: microseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Utc(pub u64);

/// Both clocks, read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// For timers.
    pub mono: Instant,
    /// For what is written into messages and logs.
    pub utc: Utc,
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// Calendar fields of a UTC time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year, 1970 and later.
    pub year: u32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day, 1 to 31.
    pub day: u32,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute, 0 to 59.
    pub minute: u32,
    /// Second, 0 to 59.
    pub second: u32,
}

impl Utc {
    /// Calendar fields (proleptic Gregorian; the algorithm counts days in 400-year eras).
    pub fn civil(self) -> Civil {
        let seconds = self.0 / 1_000_000;
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let z = days + 719_468;
        let era = z / 146_097;
        let doe = z % 146_097;
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + u64::from(month <= 2);
        Civil {
            year: year as u32,
            month: month as u32,
            day: day as u32,
            hour: (rest / 3_600) as u32,
            minute: (rest / 60 % 60) as u32,
            second: (rest % 60) as u32,
        }
    }

    /// The time of these fields, or `None` where a field is out of range.
    pub fn from_civil(c: Civil) -> Option<Utc> {
        let leap =
            c.year.is_multiple_of(4) && (!c.year.is_multiple_of(100) || c.year.is_multiple_of(400));
        let days_in_month = match c.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            _ => return None,
        };
        let in_range = (1970..=9999).contains(&c.year)
            && (1..=days_in_month).contains(&c.day)
            && c.hour < 24
            && c.minute < 60
            && c.second < 60;
        if !in_range {
            return None;
        }
        let (y, m) = (u64::from(c.year) - u64::from(c.month <= 2), u64::from(c.month));
        let (era, yoe) = (y / 400, y % 400);
        let doy = (153 * (if m > 2 { m - 3 } else { m + 9 }) + 2) / 5 + u64::from(c.day) - 1;
        let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
        let days = era * 146_097 + doe - 719_468;
        let seconds = days * 86_400
            + u64::from(c.hour) * 3_600
            + u64::from(c.minute) * 60
            + u64::from(c.second);
        Some(Utc(seconds * 1_000_000))
    }

    /// UTCTime as X.411 uses it, `YYMMDDhhmmssZ`: whole seconds.
    pub fn to_utc_time(self) -> String {
        let c = self.civil();
        format!(
            "{:02}{:02}{:02}{:02}{:02}{:02}Z",
            c.year % 100,
            c.month,
            c.day,
            c.hour,
            c.minute,
            c.second
        )
    }

    /// Reads a UTCTime: `YYMMDDhhmm[ss](Z|+hhmm|-hhmm)`. Years 50 to 99 are 19xx, 00 to 49 are 20xx.
    /// `None` for anything else: the caller decides whether a bad time matters (it must not lose
    /// a message).
    pub fn from_utc_time(text: &[u8]) -> Option<Utc> {
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits != 10 && digits != 12 {
            return None;
        }
        let field = |at: usize| -> Option<u32> {
            let (tens, ones) = (text.get(at)?, text.get(at + 1)?);
            (tens.is_ascii_digit() && ones.is_ascii_digit())
                .then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
        };
        let yy = field(0)?;
        let local = Utc::from_civil(Civil {
            year: if yy >= 50 { 1900 + yy } else { 2000 + yy },
            month: field(2)?,
            day: field(4)?,
            hour: field(6)?,
            minute: field(8)?,
            second: if digits == 12 { field(10)? } else { 0 },
        })?;
        let zone = text.get(digits..)?;
        match zone {
            [b'Z'] => Some(local),
            [sign @ (b'+' | b'-'), _, _, _, _] => {
                let (hours, minutes) = (field(digits + 1)?, field(digits + 3)?);
                if hours > 14 || minutes > 59 {
                    return None;
                }
                let offset = u64::from(hours * 60 + minutes) * 60_000_000;
                let micros = if *sign == b'+' {
                    local.0.checked_sub(offset)?
                } else {
                    local.0.checked_add(offset)?
                };
                Some(Utc(micros))
            }
            _ => None,
        }
    }

    /// Time since `earlier`; zero where `earlier` is later.
    pub fn since(self, earlier: Utc) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Utc {
    type Output = Utc;
    fn add(self, d: Duration) -> Utc {
        Utc(self.0.saturating_add(micros(d)))
    }
}

/// RFC 3339 with microseconds: `2026-01-02T03:04:05.678901Z`.
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.civil();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            c.year,
            c.month,
            c.day,
            c.hour,
            c.minute,
            c.second,
            self.0 % 1_000_000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_forms_peers_send() {
        let t = Utc::from_utc_time(b"070814093000Z").unwrap();
        assert_eq!(t.to_string(), "2007-08-14T09:30:00.000000Z");
        assert_eq!(Utc::from_utc_time(b"0708140930Z"), Some(t));
        assert_eq!(Utc::from_utc_time(b"070814113000+0200"), Some(t));
        assert_eq!(Utc::from_utc_time(b"070814043000-0500"), Some(t));
        assert_eq!(t.to_utc_time(), "070814093000Z");
        for bad in
            [&b""[..], b"Z", b"0708140930", b"071314093000Z", b"07081409300Z", b"7A0814093000Z"]
        {
            assert_eq!(Utc::from_utc_time(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn civil_round_trips(seconds in 0u64..253_402_300_799) {
            let t = Utc(seconds * 1_000_000);
            prop_assert_eq!(Utc::from_civil(t.civil()), Some(t));
        }

        #[test]
        fn utc_time_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            let _ = Utc::from_utc_time(&bytes);
        }
    }
}
