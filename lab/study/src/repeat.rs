//! Rows of a run that was made several times: medians, and how far apart the values lie.

use crate::row::{Measure, StudyRow};
use std::collections::BTreeMap;

/// Most times that a run is made.
pub const MAX_REPEAT: u32 = 1_000;

/// The lowest and the highest of a value; absent where that one was given up, so that only a bound of
/// it is known.
pub type Range = (Option<f64>, Option<f64>);

/// A value of one of the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct One {
    value: f64,
    /// It is a bound of what was given up.
    given_up: bool,
}

/// The median of several; a bound where it is of what was given up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Median {
    Exactly(f64),
    Bound(f64),
}

/// One row of those of the same message or load, each of another run of the same; `None` where there is
/// none. What was given up counts as longer than all that ended, and as slower.
pub(crate) fn combined(rows: &[StudyRow]) -> Option<StudyRow> {
    let mut row = rows.first()?.clone();
    if rows.len() < 2 {
        return Some(row);
    }
    row.repeats = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    // A code point that came in any of them has come.
    row.tos_received = rows.iter().flat_map(|row| row.tos_received.iter().copied()).collect();
    row.tos_received.sort_unstable();
    row.tos_received.dedup();
    let given_up = rows.iter().filter(|row| row.seconds.is_none()).count();
    if row.precedence.is_some() {
        row.given_up = u32::try_from(given_up).unwrap_or(u32::MAX);
    }
    let mut spread = |measure: &str, range| row.range.insert(measure.to_owned(), range);

    let mut seconds = ones(rows, |row| (row.seconds, row.seconds_more_than));
    seconds.sort_by(|a, b| a.given_up.cmp(&b.given_up).then(a.value.total_cmp(&b.value)));
    (row.seconds, row.seconds_more_than) = split(median(&seconds));
    if let Some(range) = range(&seconds) {
        spread(Measure::Seconds.name(), range);
    }
    row.ratio = row.seconds.zip(row.paper_seconds).map(|(seconds, paper)| seconds / paper);

    let mut rates = ones(rows, |row| (row.kbit_s, row.kbit_s_less_than));
    rates.sort_by(|a, b| b.given_up.cmp(&a.given_up).then(a.value.total_cmp(&b.value)));
    (row.kbit_s, row.kbit_s_less_than) = split(median(&rates));
    if let Some(range) = range(&rates) {
        spread(Measure::KbitS.name(), range);
    }

    let mut more: BTreeMap<&String, Vec<One>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| &row.more) {
        more.entry(name).or_default().push(One { value: *value, given_up: false });
    }
    row.more.clear();
    for (name, mut values) in more {
        values.sort_by(|a, b| a.value.total_cmp(&b.value));
        if let (Median::Exactly(median) | Median::Bound(median), Some(range)) =
            (median(&values)?, range(&values))
        {
            row.more.insert(name.clone(), median);
            spread(name, range);
        }
    }
    Some(row)
}

fn ones(rows: &[StudyRow], of: impl Fn(&StudyRow) -> (Option<f64>, Option<f64>)) -> Vec<One> {
    let one = |row: &StudyRow| match of(row) {
        (Some(value), _) => Some(One { value, given_up: false }),
        (None, Some(value)) => Some(One { value, given_up: true }),
        (None, None) => None,
    };
    rows.iter().filter_map(one).collect()
}

/// Of values in their order. Between two, their mean: a bound where one of them is.
fn median(sorted: &[One]) -> Option<Median> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let mean = f64::midpoint(lower.value, upper.value);
    Some(match lower.given_up || upper.given_up {
        true => Median::Bound(mean),
        false => Median::Exactly(mean),
    })
}

fn split(median: Option<Median>) -> (Option<f64>, Option<f64>) {
    match median {
        Some(Median::Exactly(value)) => (Some(value), None),
        Some(Median::Bound(bound)) => (None, Some(bound)),
        None => (None, None),
    }
}

/// Nothing where all were given up.
fn range(sorted: &[One]) -> Option<Range> {
    let known = |one: &One| (!one.given_up).then_some(one.value);
    let range = (known(sorted.first()?), known(sorted.last()?));
    (range != (None, None)).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seconds: Result<f64, f64>) -> StudyRow {
        let kbit_s = |seconds: f64| 8_000.0 / seconds;
        StudyRow {
            precedence: Some("flash".to_owned()),
            paper_seconds: Some(10.0),
            seconds: seconds.ok(),
            seconds_more_than: seconds.err(),
            kbit_s: seconds.ok().map(kbit_s),
            kbit_s_less_than: seconds.err().map(kbit_s),
            ..StudyRow::default()
        }
    }

    fn combined_row(seconds: &[Result<f64, f64>]) -> StudyRow {
        combined(&seconds.iter().copied().map(message).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn of_an_odd_number_the_middle_and_of_an_even_one_the_mean_of_two() {
        let row = combined_row(&[Ok(40.0), Ok(10.0), Ok(20.0)]);
        assert_eq!((row.seconds, row.kbit_s, row.ratio), (Some(20.0), Some(400.0), Some(2.0)));
        assert_eq!(row.range.get("seconds"), Some(&(Some(10.0), Some(40.0))));
        assert_eq!(row.range.get("kbit_s"), Some(&(Some(200.0), Some(800.0))));
        assert_eq!((row.repeats, row.given_up), (3, 0));
        let row = combined_row(&[Ok(40.0), Ok(10.0), Ok(20.0), Ok(80.0)]);
        assert_eq!((row.seconds, row.kbit_s), (Some(30.0), Some(300.0)));
    }

    #[test]
    fn what_was_given_up_is_longer_than_all() {
        // A bound that is below what ended: it was submitted later.
        let row = combined_row(&[Err(30.0), Ok(10.0), Ok(40.0)]);
        assert_eq!((row.seconds, row.seconds_more_than), (Some(40.0), None));
        assert_eq!((row.kbit_s, row.kbit_s_less_than), (Some(200.0), None));
        assert_eq!(row.range.get("seconds"), Some(&(Some(10.0), None)));
        assert_eq!(row.range.get("kbit_s"), Some(&(None, Some(800.0))));
        assert_eq!(row.given_up, 1);
        // The median is of what was given up.
        let row = combined_row(&[Err(100.0), Ok(10.0), Err(100.0)]);
        assert_eq!((row.seconds, row.seconds_more_than), (None, Some(100.0)));
        assert_eq!((row.kbit_s, row.kbit_s_less_than), (None, Some(80.0)));
        assert_eq!(row.ratio, None);
        // Half and half: between what is known and what is not.
        let row = combined_row(&[Err(100.0), Ok(10.0), Err(100.0), Ok(20.0)]);
        assert_eq!((row.seconds, row.seconds_more_than), (None, Some(60.0)));
        let row = combined_row(&[Err(100.0), Err(120.0)]);
        assert_eq!((row.seconds_more_than, row.given_up), (Some(110.0), 2));
        assert!(row.range.is_empty(), "{row:?}");
    }

    #[test]
    fn other_values_are_medians_of_those_that_there_are() {
        let load = |loss: &[(&str, f64)]| StudyRow {
            kbit_s: Some(1.0),
            more: loss.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..StudyRow::default()
        };
        let rows = [load(&[("a", 1.0), ("b", 5.0)]), load(&[("a", 9.0)]), load(&[("a", 3.0)])];
        let row = combined(&rows).unwrap();
        assert_eq!((row.more.get("a"), row.more.get("b")), (Some(&3.0), Some(&5.0)));
        assert_eq!(row.range.get("a"), Some(&(Some(1.0), Some(9.0))));
        assert_eq!((row.repeats, row.given_up), (3, 0));
        let alone = combined(&[load(&[("a", 1.0)])]).unwrap();
        assert_eq!((alone.repeats, alone.range.len()), (0, 0));
        assert_eq!(combined(&[]), None);
    }
}
