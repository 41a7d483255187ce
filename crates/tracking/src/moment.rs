//! Times as people write them.

use base::time::Civil;
use base::{Utc, quantity};

/// The text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a time in UTC as 2026-01-02, 2026-01-02T03:04 or 2026-01-02T03:04:05Z, or how long ago as 90s, 30min, 2h or 7d"
)]
pub struct NoMoment;

/// A date, a date and time, or how long before `now`.
///
/// # Errors
/// [`NoMoment`].
pub fn moment(text: &str, now: Utc) -> Result<Utc, NoMoment> {
    if let Ok(ago) = quantity::duration(text) {
        let us = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        return Ok(Utc(now.0.saturating_sub(us)));
    }
    let text = text.trim().trim_end_matches('Z');
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let date: Vec<u32> = numbers(date, '-', &[4, 2, 2])?;
    let time = numbers(time, ':', &[2, 2, 2]).or_else(|_| numbers(time, ':', &[2, 2]))?;
    if fraction.is_empty() || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NoMoment);
    }
    let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| NoMoment)?;
    let ([year, month, day], [hour, minute, rest @ ..]) = (date.as_slice(), time.as_slice()) else {
        return Err(NoMoment);
    };
    let civil = Civil {
        year: *year,
        month: *month,
        day: *day,
        hour: *hour,
        minute: *minute,
        second: rest.first().copied().unwrap_or(0),
    };
    Utc::from_civil(civil).map(|at| Utc(at.0 + micros)).ok_or(NoMoment)
}

/// Numbers of so many digits with something between them.
fn numbers(text: &str, between: char, digits: &[usize]) -> Result<Vec<u32>, NoMoment> {
    let parts: Vec<&str> = text.split(between).collect();
    let sound = parts.len() == digits.len()
        && parts
            .iter()
            .zip(digits)
            .all(|(part, n)| part.len() == *n && part.bytes().all(|b| b.is_ascii_digit()));
    if !sound {
        return Err(NoMoment);
    }
    parts.iter().map(|part| part.parse().map_err(|_| NoMoment)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_a_while_ago() {
        let now = moment("2026-01-02T03:04:05Z", Utc(0)).unwrap();
        assert_eq!(now.to_string(), "2026-01-02T03:04:05.000000Z");
        for (text, expected) in [
            ("2026-01-02", "2026-01-02T00:00:00.000000Z"),
            ("2026-01-02 03:04", "2026-01-02T03:04:00.000000Z"),
            ("2026-01-02T03:04:05.25Z", "2026-01-02T03:04:05.250000Z"),
            ("2h", "2026-01-02T01:04:05.000000Z"),
            ("0s", "2026-01-02T03:04:05.000000Z"),
        ] {
            assert_eq!(moment(text, now).unwrap().to_string(), expected, "{text}");
        }
        for wrong in [
            "",
            "yesterday",
            "2026-1-2",
            "2026-13-01",
            "2026-01-02T25:00",
            "5",
            "2026-01-02T03:04:05.",
            "03:04",
        ] {
            assert_eq!(moment(wrong, now), Err(NoMoment), "{wrong}");
        }
    }
}
