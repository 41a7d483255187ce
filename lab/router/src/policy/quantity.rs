//! Durations and sizes in the text form of a policy.

use base::quantity;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration as text with a unit: `25ms`, `300us`, `1.5s`; at most an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A size in octets: a number, or text with a unit (`1500B`, `64kB`, `10MB`, in bits `512kbit`); at
/// most 10 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OctetSize(pub u64);

const MAX_SPAN: Duration = Duration::from_hours(1);
const MAX_OCTETS: u64 = 10_000_000_000;

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        match quantity::duration(text).map_err(|error| error.to_string())? {
            time if time <= MAX_SPAN => Ok(Span(time)),
            _ => Err(format!("{text:?} is more than an hour")),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let unit = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        match unit.into_iter().find(|(_, factor)| nanos.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{}{unit}", nanos / factor),
            None => write!(f, "{nanos}ns"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for OctetSize {
    type Err = String;

    fn from_str(text: &str) -> Result<OctetSize, String> {
        match quantity::octets(text).map_err(|error| error.to_string())? {
            octets if octets <= MAX_OCTETS => Ok(OctetSize(octets)),
            _ => Err(format!("{text:?} is more than 10 GB")),
        }
    }
}

impl Serialize for OctetSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for OctetSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OctetSize, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = OctetSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("octets as a number, or text with a unit as in 64kB")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<OctetSize, E> {
                self.visit_u64(u64::try_from(value).map_err(E::custom)?)
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<OctetSize, E> {
                if value > MAX_OCTETS {
                    return Err(E::custom(format!("{value} octets, more than 10 GB")));
                }
                Ok(OctetSize(value))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OctetSize, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_shown() {
        for (text, nanos) in [("25ms", 25_000_000), ("300us", 300_000), ("1s", 1_000_000_000)] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_nanos(), span.to_string().as_str()), (nanos, text));
        }
        assert_eq!("1.5s".parse::<Span>().unwrap().to_string(), "1500ms");
        assert_eq!("2min".parse::<Span>().unwrap().0, Duration::from_secs(120));
        for wrong in ["", "5", "-1ms", "2h", "61min", "NaNs"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
        for (text, octets) in [("512kbit", 64_000), ("64kB", 64_000), ("1500B", 1_500)] {
            assert_eq!(text.parse::<OctetSize>().unwrap(), OctetSize(octets));
        }
        assert!("11000MB".parse::<OctetSize>().is_err());
    }
}
