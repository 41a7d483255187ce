//! How near a row is to what was printed.

use crate::number;
use study::StudyRow;
use study::row::Measure;

/// A value beside what was printed of it: ours divided by theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// Both are known.
    Exactly(f64),
    /// Ours was given up: it is more than this.
    MoreThan(f64),
    /// Only a bound of ours is known: it is less than this.
    LessThan(f64),
    /// The printed value is a bound or a range, and ours is within it; or both are zero.
    Within,
    /// The printed value is a bound or a range, and ours is outside: divided by the bound. It is never near,
    /// since a bound does not show how far the value was from it.
    Outside(f64),
    /// 0 was printed, and ours is not.
    NotZero,
    /// Only bounds are known of both, and the bounds do not compare.
    Neither,
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    exactly: Option<f64>,
    more_than: Option<f64>,
    less_than: Option<f64>,
}

/// Below it a value counts as the 0 that was printed.
const ZERO: f64 = 0.05;

/// In steps a reader cares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// Within 15 percent, or within a printed bound.
    Near,
    /// Within a factor of two.
    Factor,
    /// Beyond a factor of two.
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
    pub fn from_row(row: &StudyRow) -> Option<Comparison> {
        Comparison::of_value(row, Measure::Seconds)
            .or_else(|| Comparison::of_value(row, Measure::KbitS))
    }

    /// A value of a row beside what was printed of it; nothing where nothing was, or where ours is
    /// not known.
    pub fn of_value(row: &StudyRow, measure: Measure) -> Option<Comparison> {
        Comparison::between(known(row, measure), printed(row, measure)?)
    }

    /// Whether it is of rates, so that more is better.
    pub(crate) fn is_of_rates(row: &StudyRow) -> bool {
        printed(row, Measure::Seconds).is_none()
    }

    /// Whether [`Comparison::from_row`] is about this value.
    pub(crate) fn is_of(row: &StudyRow, measure: Measure) -> bool {
        match Comparison::is_of_rates(row) {
            true => measure == Measure::KbitS,
            false => measure == Measure::Seconds,
        }
    }

    fn between(ours: Known, theirs: Known) -> Option<Comparison> {
        match theirs.exactly {
            Some(0.0) => ours.exactly.map(|ours| match ours.abs() < ZERO {
                true => Comparison::Within,
                false => Comparison::NotZero,
            }),
            Some(theirs) => {
                let exactly = ours.exactly.map(|ours| Comparison::Exactly(ours / theirs));
                let more = ours.more_than.map(|ours| Comparison::MoreThan(ours / theirs));
                let less = ours.less_than.map(|ours| Comparison::LessThan(ours / theirs));
                exactly.or(more).or(less)
            }
            None => Comparison::with_bounds(ours, theirs),
        }
    }

    /// Where a bound was printed, or two.
    fn with_bounds(ours: Known, theirs: Known) -> Option<Comparison> {
        let (low, high) = (theirs.more_than, theirs.less_than);
        let short = |value: f64| low.filter(|low| value < *low);
        let long = |value: f64| high.filter(|high| value > *high);
        match (ours.exactly, ours.more_than, ours.less_than) {
            (Some(value), _, _) => Some(match short(value).or(long(value)) {
                Some(bound) => Comparison::Outside(value / bound),
                None => Comparison::Within,
            }),
            (None, Some(value), _) => Some(match (long(value), short(value), high) {
                (Some(bound), _, _) => Comparison::MoreThan(value / bound),
                (None, None, None) => Comparison::Within,
                _ => Comparison::Neither,
            }),
            (None, None, Some(value)) => Some(match (short(value), long(value), low) {
                (Some(bound), _, _) => Comparison::LessThan(value / bound),
                (None, None, None) => Comparison::Within,
                _ => Comparison::Neither,
            }),
            (None, None, None) => None,
        }
    }

    /// How near it is.
    pub fn closeness(self) -> Closeness {
        let within = |(low, high): (f64, f64), value: f64| (low..=high).contains(&value);
        match self {
            Comparison::Exactly(ratio) if within(NEAR, ratio) => Closeness::Near,
            Comparison::Exactly(ratio) | Comparison::Outside(ratio) if within(FACTOR, ratio) => {
                Closeness::Factor
            }
            Comparison::Exactly(_) | Comparison::Outside(_) | Comparison::NotZero => Closeness::Far,
            Comparison::Within => Closeness::Near,
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
            Comparison::Exactly(ratio) | Comparison::Outside(ratio) => number::ratio(ratio),
            Comparison::MoreThan(ratio) => format!("> {}", number::ratio(ratio)),
            Comparison::LessThan(ratio) => format!("< {}", number::ratio(ratio)),
            Comparison::Within => "as printed".to_owned(),
            Comparison::NotZero => "not 0".to_owned(),
            Comparison::Neither => "both given up".to_owned(),
        }
    }
}

impl Closeness {
    /// All, the nearest first.
    pub const ALL: [Closeness; 4] =
        [Closeness::Near, Closeness::Factor, Closeness::Far, Closeness::Unknown];

    /// A sign that is distinct without its colour.
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

/// What we have of a value.
fn known(row: &StudyRow, measure: Measure) -> Known {
    let bound = |suffix: &str| row.more.get(&format!("{}{suffix}", measure.name())).copied();
    Known {
        exactly: row.value(measure),
        more_than: match measure {
            Measure::Seconds => row.seconds_more_than,
            _ => bound("_more_than"),
        },
        less_than: match measure {
            Measure::KbitS => row.kbit_s_less_than,
            _ => bound("_less_than"),
        },
    }
}

/// What was printed of it, if anything was.
fn printed(row: &StudyRow, measure: Measure) -> Option<Known> {
    let of = |suffix: &str| row.paper.get(&format!("{}{suffix}", measure.name())).copied();
    let seconds = row.paper_seconds.filter(|_| measure == Measure::Seconds);
    let known = Known {
        exactly: of("").or(seconds),
        more_than: of("_more_than"),
        less_than: of("_less_than"),
    };
    [known.exactly, known.more_than, known.less_than].iter().any(Option::is_some).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(seconds: Option<f64>, more_than: Option<f64>, paper: &[(&str, f64)]) -> StudyRow {
        let paper: BTreeMap<_, _> =
            paper.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        StudyRow {
            seconds,
            seconds_more_than: more_than,
            kbit_s: Some(480.0),
            paper_seconds: paper.get("seconds").copied(),
            paper,
            ..StudyRow::default()
        }
    }

    #[test]
    fn seconds_are_compared_with_what_is_known_of_them() {
        let of = |row: &StudyRow| Comparison::from_row(row);
        let printed = [("seconds", 100.0), ("kbit_s", 9.0)];
        assert_eq!(of(&row(Some(110.0), None, &printed)), Some(Comparison::Exactly(1.1)));
        assert_eq!(of(&row(None, Some(300.0), &printed)), Some(Comparison::MoreThan(3.0)));
        let more = [("seconds_more_than", 580.0)];
        assert_eq!(of(&row(Some(290.0), None, &more)), Some(Comparison::Outside(0.5)));
        assert_eq!(of(&row(Some(600.0), None, &more)), Some(Comparison::Within));
        assert_eq!(of(&row(None, Some(600.0), &more)), Some(Comparison::Within));
        assert_eq!(of(&row(None, Some(300.0), &more)), Some(Comparison::Neither));
        let rate = [("kbit_s", 500.0)];
        assert_eq!(of(&row(None, None, &rate)), Some(Comparison::Exactly(0.96)));
        assert_eq!(of(&row(Some(1.0), None, &[])), None);
        assert_eq!(of(&row(Some(1.0), None, &[("seconds", 0.0)])), Some(Comparison::NotZero));
        assert_eq!(of(&row(Some(0.01), None, &[("seconds", 0.0)])), Some(Comparison::Within));
    }

    #[test]
    fn every_kind_of_printed_value_is_compared() {
        let mut row = row(None, None, &[("loss_percent", 10.0), ("delay_ms_less_than", 5.0)]);
        row.more =
            BTreeMap::from([("loss_percent".to_owned(), 30.0), ("delay_ms".to_owned(), 4.0)]);
        let of = |row: &StudyRow, measure| Comparison::of_value(row, measure);
        assert_eq!(of(&row, Measure::LossPercent), Some(Comparison::Exactly(3.0)));
        assert_eq!(of(&row, Measure::DelayMs), Some(Comparison::Within));
        assert_eq!(of(&row, Measure::JitterMs), None, "not printed");
        row.more.insert("delay_ms".to_owned(), 20.0);
        assert_eq!(of(&row, Measure::DelayMs), Some(Comparison::Outside(4.0)));
        row.paper.insert("delay_ms_more_than".to_owned(), 1.0);
        row.more.insert("delay_ms".to_owned(), 0.5);
        assert_eq!(of(&row, Measure::DelayMs), Some(Comparison::Outside(0.5)), "below the range");
    }

    #[test]
    fn a_bound_may_be_enough_to_know_that_it_is_far() {
        let near = [0.85, 1.0, 1.15].map(|ratio| Comparison::Exactly(ratio).closeness());
        assert_eq!(near, [Closeness::Near; 3]);
        assert_eq!(Comparison::Exactly(1.16).closeness(), Closeness::Factor);
        assert_eq!(Comparison::Outside(1.01).closeness(), Closeness::Factor, "a bound is a bound");
        assert_eq!(Comparison::Outside(0.99).closeness(), Closeness::Factor);
        assert_eq!(Comparison::Outside(2.1).closeness(), Closeness::Far);
        assert_eq!(Comparison::Exactly(2.1).closeness(), Closeness::Far);
        assert_eq!(Comparison::MoreThan(1.0).closeness(), Closeness::Unknown);
        assert_eq!(Comparison::MoreThan(2.5).closeness(), Closeness::Far);
        assert_eq!(Comparison::LessThan(0.4).closeness(), Closeness::Far);
    }
}
