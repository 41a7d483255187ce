//! Values of a plan without a TOML type: sizes, times, weights. Errors name the expected form.

use crate::quantity::{LimitedQuantityError, parse_size, parse_time};
use base::Precedence;
use base::precedence::UnknownPrecedence;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Highest weight of one choice.
pub(crate) const MAX_WEIGHT: u64 = 1_000_000;

/// Why a value of a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error(transparent)]
    Quantity(#[from] LimitedQuantityError),
    #[error(transparent)]
    Precedence(#[from] UnknownPrecedence),
    #[error("a weight is a whole number up to {MAX_WEIGHT}")]
    TooHeavy,
    #[error("at least one weight must be above 0")]
    NoWeight,
    #[error("the weight of {0} is not a whole number")]
    NotAWeight(String),
    #[error("{0} is not a text: write it in quotes")]
    NotAText(String),
    #[error("a range of sizes goes from at least 1 B upward")]
    Range,
    #[error("the mean of a Poisson process is above 0")]
    ZeroMean,
    #[error("the one key here is poisson: {{ poisson = \"100ms\" }}")]
    NoMean,
    #[error("the key group is missing")]
    NoGroup,
    #[error("{0:?} is not a stage: accepted, started or delivered")]
    Stage(String),
    #[error("unknown key {0:?}: there are group and stage")]
    UnknownKey(String),
}

/// Choices with their relative weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weights<T>(Vec<(T, u64)>);

impl<T: Copy + Ord> Weights<T> {
    pub(crate) fn one(choice: T) -> Weights<T> {
        Weights(vec![(choice, 1)])
    }

    /// Weights from choices in any order.
    ///
    /// # Errors
    /// No choice has a weight, or one has too large a weight.
    fn new(mut choices: Vec<(T, u64)>) -> Result<Weights<T>, ValueError> {
        choices.sort_unstable();
        if choices.iter().any(|(_, weight)| *weight > MAX_WEIGHT) {
            return Err(ValueError::TooHeavy);
        }
        if choices.iter().all(|(_, weight)| *weight == 0) {
            return Err(ValueError::NoWeight);
        }
        Ok(Weights(choices))
    }

    /// The sum of all weights: at least 1.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// The choice for a number below the total.
    pub(crate) fn choose(&self, mut number: u64) -> Option<T> {
        for (choice, weight) in &self.0 {
            match number.checked_sub(*weight) {
                None => return Some(*choice),
                Some(rest) => number = rest,
            }
        }
        self.0.last().map(|(choice, _)| *choice)
    }

    pub(crate) fn choices(&self) -> impl Iterator<Item = T> {
        self.0.iter().filter(|(_, weight)| *weight > 0).map(|(choice, _)| *choice)
    }
}

/// Octets of text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// One of these.
    OneOf(Weights<u64>),
    /// Between these; half are below their geometric mean.
    Range { from: u64, to: u64 },
}

/// Times from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Each once the one before is answered.
    None,
    /// A constant time.
    Fixed(Duration),
    /// At random, with this mean: a Poisson process.
    Poisson(Duration),
}

/// The stage that the messages of another group must have reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The MTA has answered.
    #[default]
    Accepted,
    /// Their transfer to the next MTA has begun.
    Started,
    /// They are delivered.
    Delivered,
}

impl Stage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Accepted => "accepted",
            Stage::Started => "started",
            Stage::Delivered => "delivered",
        }
    }
}

/// A group begins when all messages of another have reached a stage, or can no longer reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct After {
    pub group: String,
    pub stage: Stage,
}

/// A time with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub Duration);

/// One name, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(pub Vec<String>);

/// Precedences by weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Precedences(pub Weights<Precedence>);

/// Reads a text or a table; for other types, the error is `wanted`.
struct TextOr<T> {
    wanted: &'static str,
    text: fn(&str) -> Result<T, ValueError>,
    table: fn(BTreeMap<String, toml::Value>) -> Result<T, ValueError>,
}

impl<'de, T> Visitor<'de> for TextOr<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, toml::Value>()? {
            table.insert(key, value);
        }
        (self.table)(table).map_err(A::Error::custom)
    }
}

/// Reads weights whose keys are texts.
fn weights<T: Copy + Ord, E: Into<ValueError>>(
    table: BTreeMap<String, toml::Value>,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Weights<T>, ValueError> {
    let choice = |(key, value): (String, toml::Value)| {
        let weight = value.as_integer().and_then(|weight| u64::try_from(weight).ok());
        let weight = weight.ok_or_else(|| ValueError::NotAWeight(key.clone()))?;
        Ok((read(&key).map_err(Into::into)?, weight))
    };
    Weights::new(table.into_iter().map(choice).collect::<Result<_, ValueError>>()?)
}

fn text<'a>(key: &str, value: &'a toml::Value) -> Result<&'a str, ValueError> {
    value.as_str().ok_or_else(|| ValueError::NotAText(key.to_owned()))
}

fn precedence(text: &str) -> Result<Precedence, UnknownPrecedence> {
    text.parse()
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        deserializer.deserialize_any(TextOr {
            wanted: "a size as \"10kB\", sizes by weight as { \"1kB\" = 9, \"1MB\" = 1 }, or \
                     { from = \"1kB\", to = \"1MB\" }",
            text: |text| Ok(Size::OneOf(Weights::one(parse_size(text)?))),
            table: |table| match (table.get("from"), table.get("to"), table.len()) {
                (Some(from), Some(to), 2) => {
                    let from = parse_size(text("from", from)?)?;
                    let to = parse_size(text("to", to)?)?;
                    if from == 0 || from > to {
                        return Err(ValueError::Range);
                    }
                    Ok(Size::Range { from, to })
                }
                _ => weights(table, parse_size).map(Size::OneOf),
            },
        })
    }
}

impl<'de> Deserialize<'de> for Precedences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Precedences, D::Error> {
        deserializer.deserialize_any(TextOr {
            wanted: "a precedence as \"flash\", or several by weight as { flash = 1, routine = 9 }",
            text: |text| Ok(Precedences(Weights::one(precedence(text)?))),
            table: |table| weights(table, precedence).map(Precedences),
        })
    }
}

impl<'de> Deserialize<'de> for Spacing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spacing, D::Error> {
        deserializer.deserialize_any(TextOr {
            wanted: "a time as \"100ms\", \"0\" for as fast as accepted, or { poisson = \"100ms\" }",
            text: |text| match text {
                "0" => Ok(Spacing::None),
                text => match parse_time(text)? {
                    Duration::ZERO => Ok(Spacing::None),
                    time => Ok(Spacing::Fixed(time)),
                },
            },
            table: |table| match (table.get("poisson"), table.len()) {
                (Some(mean), 1) => match parse_time(text("poisson", mean)?)? {
                    Duration::ZERO => Err(ValueError::ZeroMean),
                    mean => Ok(Spacing::Poisson(mean)),
                },
                _ => Err(ValueError::NoMean),
            },
        })
    }
}

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<After, D::Error> {
        deserializer.deserialize_any(TextOr {
            wanted: "the name of a group, or { group = \"NAME\", stage = \"started\" }",
            text: |text| Ok(After { group: text.to_owned(), stage: Stage::default() }),
            table: |table| {
                let group = table.get("group").ok_or(ValueError::NoGroup)?;
                let group = text("group", group)?.to_owned();
                let stage = match table.get("stage") {
                    None => Stage::default(),
                    Some(stage) => match text("stage", stage)? {
                        "accepted" => Stage::Accepted,
                        "started" => Stage::Started,
                        "delivered" => Stage::Delivered,
                        other => return Err(ValueError::Stage(other.to_owned())),
                    },
                };
                match table.keys().find(|key| !matches!(key.as_str(), "group" | "stage")) {
                    Some(key) => Err(ValueError::UnknownKey(key.clone())),
                    None => Ok(After { group, stage }),
                }
            },
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_time(&text).map(Time).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of texts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Names, E> {
                Ok(Names(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}
