//! How near a row is to what was printed.

use crate::number;
use study::Row;

/// A row beside what was printed of it: ours divided by theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// Both are known.
    Exactly(f64),
    /// Ours was given up: it is more than this.
    MoreThan(f64),
    /// Theirs was given up: it is less than this.
    LessThan(f64),
    /// Both were given up.
    Neither,
}

/// In steps a reader cares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// Within 15 percent.
    Near,
    /// Within a factor of two.
    Factor,
    /// Beyond.
    Far,
    /// Only a bound is known, and it may be near.
    Unknown,
}

/// The narrowest is within 15 percent.
pub(crate) const NEAR: (f64, f64) = (0.85, 1.15);
/// Within a factor of two.
pub(crate) const FACTOR: (f64, f64) = (0.5, 2.0);

impl Comparison {
    /// Seconds where they were printed, otherwise rates; nothing where neither was, or where ours is
    /// not known.
    pub fn of(row: &Row) -> Option<Comparison> {
        let paper = |name: &str| row.paper.get(name).copied();
        let theirs = row.paper_seconds.or(paper("seconds"));
        let seconds = Comparison::between(
            (row.seconds, row.seconds_more_than),
            (theirs, paper("seconds_more_than")),
        );
        seconds.or_else(|| {
            let (ours, theirs) = (row.kbit_s?, paper("kbit_s")?);
            divided(ours, theirs).map(Comparison::Exactly)
        })
    }

    /// Whether it is of rates, so that more is better.
    pub(crate) fn is_of_rates(row: &Row) -> bool {
        let printed = |name: &str| row.paper.contains_key(name);
        row.paper_seconds.is_none() && !printed("seconds") && !printed("seconds_more_than")
    }

    fn between(
        ours: (Option<f64>, Option<f64>),
        theirs: (Option<f64>, Option<f64>),
    ) -> Option<Comparison> {
        match (ours, theirs) {
            ((Some(ours), _), (Some(theirs), _)) => divided(ours, theirs).map(Comparison::Exactly),
            ((None, Some(ours)), (Some(theirs), _)) => {
                divided(ours, theirs).map(Comparison::MoreThan)
            }
            ((Some(ours), _), (None, Some(theirs))) => {
                divided(ours, theirs).map(Comparison::LessThan)
            }
            ((None, Some(_)), (None, Some(_))) => Some(Comparison::Neither),
            _ => None,
        }
    }

    /// How near it is.
    pub fn closeness(self) -> Closeness {
        let within = |(low, high): (f64, f64), value: f64| (low..=high).contains(&value);
        match self {
            Comparison::Exactly(ratio) if within(NEAR, ratio) => Closeness::Near,
            Comparison::Exactly(ratio) if within(FACTOR, ratio) => Closeness::Factor,
            Comparison::Exactly(_) => Closeness::Far,
            Comparison::MoreThan(ratio) if ratio > FACTOR.1 => Closeness::Far,
            Comparison::LessThan(ratio) if ratio < FACTOR.0 => Closeness::Far,
            // Not nearer than this, and perhaps farther.
            Comparison::MoreThan(_) | Comparison::LessThan(_) | Comparison::Neither => {
                Closeness::Unknown
            }
        }
    }

    /// In words.
    pub(crate) fn words(self) -> String {
        match self {
            Comparison::Exactly(ratio) => number::ratio(ratio),
            Comparison::MoreThan(ratio) => format!("> {}", number::ratio(ratio)),
            Comparison::LessThan(ratio) => format!("< {}", number::ratio(ratio)),
            Comparison::Neither => "both given up".to_owned(),
        }
    }
}

impl Closeness {
    /// A sign that can be told without its colour.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Closeness::Near => "●",
            Closeness::Factor => "◐",
            Closeness::Far => "○",
            Closeness::Unknown => "?",
        }
    }

    /// What the sign means.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Closeness::Near => "within 15 %",
            Closeness::Factor => "within a factor of 2",
            Closeness::Far => "beyond a factor of 2",
            Closeness::Unknown => "only a bound is known",
        }
    }

    /// A class of the page's style.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Closeness::Near => "near",
            Closeness::Factor => "factor",
            Closeness::Far => "far",
            Closeness::Unknown => "unknown",
        }
    }
}

fn divided(ours: f64, theirs: f64) -> Option<f64> {
    let ratio = ours / theirs;
    (ratio.is_finite() && theirs > 0.0).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(seconds: Option<f64>, more_than: Option<f64>, paper: &[(&str, f64)]) -> Row {
        let paper: BTreeMap<_, _> =
            paper.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Row {
            seconds,
            seconds_more_than: more_than,
            kbit_s: Some(480.0),
            paper_seconds: paper.get("seconds").copied(),
            paper,
            ..Row::default()
        }
    }

    #[test]
    fn seconds_are_compared_with_what_is_known_of_them() {
        let of = |row: &Row| Comparison::of(row);
        let printed = [("seconds", 100.0), ("kbit_s", 9.0)];
        assert_eq!(of(&row(Some(110.0), None, &printed)), Some(Comparison::Exactly(1.1)));
        assert_eq!(of(&row(None, Some(300.0), &printed)), Some(Comparison::MoreThan(3.0)));
        let more = [("seconds_more_than", 580.0)];
        assert_eq!(of(&row(Some(290.0), None, &more)), Some(Comparison::LessThan(0.5)));
        assert_eq!(of(&row(None, Some(600.0), &more)), Some(Comparison::Neither));
        let rate = [("kbit_s", 500.0)];
        assert_eq!(of(&row(None, None, &rate)), Some(Comparison::Exactly(0.96)));
        assert_eq!(of(&row(Some(1.0), None, &[])), None);
        assert_eq!(of(&row(Some(1.0), None, &[("seconds", 0.0)])), None);
    }

    #[test]
    fn a_bound_may_be_enough_to_know_that_it_is_far() {
        let near = [0.85, 1.0, 1.15].map(|ratio| Comparison::Exactly(ratio).closeness());
        assert_eq!(near, [Closeness::Near; 3]);
        assert_eq!(Comparison::Exactly(1.16).closeness(), Closeness::Factor);
        assert_eq!(Comparison::Exactly(2.1).closeness(), Closeness::Far);
        assert_eq!(Comparison::MoreThan(1.0).closeness(), Closeness::Unknown);
        assert_eq!(Comparison::MoreThan(2.5).closeness(), Closeness::Far);
        assert_eq!(Comparison::LessThan(0.4).closeness(), Closeness::Far);
    }
}
