//! Quantities as people write them in configuration, plans, policies and on command lines: one
//! grammar for times, octets and rates.
//!
//! A quantity is a decimal number and a unit, with or without a space between: `500ms`, `1.5s`,
//! `64KiB`, `10 MB`, `512kbit/s`. Units are case-sensitive. Decimal multiples (`kB`) are powers of
//! 1,000, binary ones (`KiB`) powers of 1,024. The value is exact: what is finer than the base
//! unit (a nanosecond, an octet, a bit per second) is an error and not rounded.

use std::time::Duration;

/// Most characters of a quantity.
const MAX_LENGTH: usize = 40;

/// Units of a time, in nanoseconds.
const TIME: &[Unit] = &[
    ("ns", 1, 1),
    ("us", 1_000, 1),
    ("ms", 1_000_000, 1),
    ("s", 1_000_000_000, 1),
    ("min", 60_000_000_000, 1),
    ("h", 3_600_000_000_000, 1),
    ("d", 86_400_000_000_000, 1),
];

/// Units of a number of octets.
const OCTETS: &[Unit] = &[
    ("B", 1, 1),
    ("kB", 1_000, 1),
    ("MB", 1_000_000, 1),
    ("GB", 1_000_000_000, 1),
    ("KiB", 1 << 10, 1),
    ("MiB", 1 << 20, 1),
    ("GiB", 1 << 30, 1),
    ("bit", 1, 8),
    ("kbit", 1_000, 8),
    ("Mbit", 1_000_000, 8),
];

/// Units of a rate, in bits per second; `/s` may follow.
const RATE: &[Unit] =
    &[("bit", 1, 1), ("kbit", 1_000, 1), ("Mbit", 1_000_000, 1), ("Gbit", 1_000_000_000, 1)];

/// A unit's name, and how many base units it is, as a fraction.
type Unit = (&'static str, u64, u64);

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not begin with a decimal number.
    #[error("{0:?} does not begin with a number")]
    Number(String),
    /// A number alone.
    #[error("{text:?} has no unit: use {units}")]
    NoUnit {
        /// The text.
        text: String,
        /// The units there are.
        units: String,
    },
    /// Another unit than there are.
    #[error("unknown unit {unit:?}: use {units}")]
    Unit {
        /// The unit.
        unit: String,
        /// The units there are.
        units: String,
    },
    /// Not a whole number of nanoseconds, octets or bits per second.
    #[error("{0:?} is not a whole number of {1}")]
    Fraction(String, &'static str),
    /// More than 64 bits hold.
    #[error("{0:?} is too large")]
    Large(String),
}

/// A time: `ns`, `us`, `ms`, `s`, `min`, `h` or `d`.
///
/// # Errors
/// [`QuantityError`].
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let nanos = quantity(text, TIME, "nanoseconds")?;
    let large = || QuantityError::Large(shortened(text));
    Ok(Duration::from_nanos(u64::try_from(nanos).map_err(|_| large())?))
}

/// A number of octets: `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`, `bit`, `kbit` or `Mbit`; a whole
/// number alone is a number of octets.
///
/// # Errors
/// [`QuantityError`].
pub fn octets(text: &str) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let is_plain = !trimmed.is_empty() && trimmed.bytes().all(|octet| octet.is_ascii_digit());
    let large = || QuantityError::Large(shortened(text));
    if is_plain {
        return trimmed.parse().map_err(|_| large());
    }
    u64::try_from(quantity(text, OCTETS, "octets")?).map_err(|_| large())
}

/// A rate in bits per second: `bit`, `kbit`, `Mbit` or `Gbit`, with or without `/s`.
///
/// # Errors
/// [`QuantityError`].
pub fn bit_rate(text: &str) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let bits = quantity(trimmed.strip_suffix("/s").unwrap_or(trimmed), RATE, "bits per second")?;
    u64::try_from(bits).map_err(|_| QuantityError::Large(shortened(text)))
}

/// The value in base units.
fn quantity(text: &str, units: &[Unit], base: &'static str) -> Result<u128, QuantityError> {
    let whole = shortened(text);
    let text = text.trim();
    if text.len() > MAX_LENGTH {
        return Err(QuantityError::Large(whole));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    let (mantissa, scale) = decimal(number).ok_or_else(|| QuantityError::Number(whole.clone()))?;
    let unit = unit.trim_start();
    let names = || names(units);
    let Some(&(_, numerator, denominator)) = units.iter().find(|(name, ..)| *name == unit) else {
        return Err(match unit {
            "" => QuantityError::NoUnit { text: whole, units: names() },
            _ => QuantityError::Unit { unit: shortened(unit), units: names() },
        });
    };
    let large = || QuantityError::Large(whole.clone());
    let scaled = mantissa.checked_mul(u128::from(numerator)).ok_or_else(large)?;
    let divisor = scale.checked_mul(u128::from(denominator)).ok_or_else(large)?;
    if !scaled.is_multiple_of(divisor) {
        return Err(QuantityError::Fraction(whole, base));
    }
    Ok(scaled / divisor)
}

/// `12.75` as 1,275 and 100.
fn decimal(number: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_wrong = whole.is_empty() || (fraction.is_empty() && number.contains('.'));
    if is_wrong || fraction.contains('.') {
        return None;
    }
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?))
}

/// The names of the units: `B, kB or MB`.
fn names(units: &[Unit]) -> String {
    let names: Vec<&str> = units.iter().map(|(name, ..)| *name).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The text as an error shows it: cut if it is long.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_exactly() {
        for (text, nanos) in [
            ("0s", 0),
            ("300us", 300_000),
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            (" 60 s ", 60_000_000_000),
            ("5min", 300_000_000_000),
            ("4h", 14_400_000_000_000),
            ("366d", 31_622_400_000_000_000),
            ("0.000000001s", 1),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn octets_are_decimal_or_binary() {
        for (text, expected) in [
            ("512", 512),
            ("1500B", 1_500),
            ("1kB", 1_000),
            ("10 MB", 10_000_000),
            ("64KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("512kbit", 64_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(octets(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn rates_may_name_the_second() {
        for (text, bits) in [("512kbit", 512_000), ("512 kbit/s", 512_000), ("2.4kbit/s", 2_400)] {
            assert_eq!(bit_rate(text), Ok(bits), "{text}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_and_what_there_is() {
        let text = |error: QuantityError| error.to_string();
        assert_eq!(
            text(duration("60").unwrap_err()),
            "\"60\" has no unit: use ns, us, ms, s, min, h or d"
        );
        assert_eq!(
            text(duration("5m").unwrap_err()),
            "unknown unit \"m\": use ns, us, ms, s, min, h or d"
        );
        assert_eq!(text(duration("s").unwrap_err()), "\"s\" does not begin with a number");
        assert_eq!(
            text(duration("0.5ns").unwrap_err()),
            "\"0.5ns\" is not a whole number of nanoseconds"
        );
        assert_eq!(text(octets("1bit").unwrap_err()), "\"1bit\" is not a whole number of octets");
        assert_eq!(text(octets("99999999999GB").unwrap_err()), "\"99999999999GB\" is too large");
        for wrong in
            ["", "-1s", "1..5s", ".5s", "5.s", "NaNs", "1e3s", "+1s", "1,5s", "infs", "1 s s"]
        {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "kB", "10 furlongs", "-1", "1.5", "10kb", "1K", "18446744073709551616"] {
            assert!(octets(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "512", "kbit", "1 MB", "512kbit/h", "512/s"] {
            assert!(bit_rate(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_errors_are_short(text in ".{0,80}") {
            for error in [
                duration(&text).err(),
                octets(&text).err(),
                bit_rate(&text).err(),
            ].into_iter().flatten() {
                prop_assert!(error.to_string().len() < 600);
            }
        }

        #[test]
        fn a_decimal_is_the_same_in_a_smaller_unit(whole in 0u64..1_000_000, part in 0u64..1_000) {
            let seconds = duration(&format!("{whole}.{part:03}s"));
            prop_assert_eq!(seconds, duration(&format!("{}ms", whole * 1_000 + part)));
            let octets_of = octets(&format!("{whole}.{part:03}kB"));
            prop_assert_eq!(octets_of, octets(&format!("{}B", whole * 1_000 + part)));
        }
    }
}
