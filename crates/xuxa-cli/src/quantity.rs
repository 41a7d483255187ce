//! Sizes and times as people write them.

use std::time::Duration;

/// A size as people write it: `1kB`, `10 MB`, `512`. Decimal; up to 1 TB.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => return Err(format!("unknown unit {unit:?}: use B, kB, MB or GB (decimal)")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no size: try 10kB"))?;
    number
        .checked_mul(factor)
        .filter(|n| *n <= 1_000_000_000_000)
        .ok_or_else(|| format!("{text} is more than 1 TB"))
}

/// A time as people write it: `500ms`, `60s`, `5m`; up to a day.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        _ => return Err(format!("{text:?}: write a time with its unit, as 500ms, 60s or 5m")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no time: try 60s"))?;
    let time = number.checked_mul(factor).map(Duration::from_millis);
    time.filter(|t| *t <= Duration::from_hours(24)).ok_or_else(|| format!("{text} is over a day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal() {
        for (text, size) in
            [("1kB", 1_000), ("10 MB", 10_000_000), ("512", 512), ("1GB", 1_000_000_000)]
        {
            assert_eq!(parse_size(text), Ok(size));
        }
        for bad in ["", "kB", "10 furlongs", "-1", "99999999GB", "1.5MB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("0s", 0), ("500ms", 500), ("60 s", 60_000), ("5m", 300_000)] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(ms)));
        }
        for bad in ["", "60", "s", "-1s", "1h", "99999m", "99999999999999999999ms"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
