//! Sizes and times of options and plans: the grammar of [`base::quantity`], with limits.

use base::quantity::{self, QuantityError};
use std::time::Duration;

/// Largest size, in octets.
const MAX_SIZE: u64 = 1_000_000_000_000;
/// Longest time.
const MAX_TIME: Duration = Duration::from_hours(24);

/// Why a text is not a size or a time of an option or a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitedQuantityError {
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error("{0} is more than 1 TB")]
    TooLarge(String),
    #[error("{0} is over a day")]
    TooLong(String),
}

/// A size up to 1 TB: `1kB`, `10 MB`, `64KiB`, `512`.
pub(crate) fn parse_size(text: &str) -> Result<u64, LimitedQuantityError> {
    match quantity::octets(text)? {
        size if size <= MAX_SIZE => Ok(size),
        _ => Err(LimitedQuantityError::TooLarge(text.to_owned())),
    }
}

/// A time up to a day: `500ms`, `60s`, `5min`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, LimitedQuantityError> {
    match quantity::duration(text)? {
        time if time <= MAX_TIME => Ok(time),
        _ => Err(LimitedQuantityError::TooLong(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal() {
        for (text, size) in
            [("1kB", 1_000), ("10 MB", 10_000_000), ("512", 512), ("1.5MB", 1_500_000)]
        {
            assert_eq!(parse_size(text), Ok(size));
        }
        for bad in ["", "kB", "10 furlongs", "-1", "99999999GB", "10kb"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("0s", 0), ("500ms", 500), ("60 s", 60_000), ("5min", 300_000)] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(ms)));
        }
        for bad in ["", "60", "s", "-1s", "5m", "25h", "99999min", "99999999999999999999ms"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
