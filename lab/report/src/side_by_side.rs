//! Rows of several stored results of a study side by side: what was printed, then each result.

use crate::Summary;
use crate::markdown::cell;
use crate::number::NONE;
use crate::text::{kbit_s, ours, printed, seconds};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use study::StudyRow;
use study::row::Measure;

/// What a table may show, with the words of its columns.
const SHOWN: [(Measure, &str); 8] = [
    (Measure::Seconds, "s"),
    (Measure::KbitS, "kbit/s"),
    (Measure::BasePercent, "% of base"),
    (Measure::BoundPercent, "% of the bound"),
    (Measure::LossPercent, "loss %"),
    (Measure::DelayMs, "delay ms"),
    (Measure::JitterMs, "jitter ms"),
    (Measure::RoundTripMs, "round trip ms"),
];

/// A table for each of these experiments as Markdown, with a row for each message and load. `now`: the
/// digests of the study as it is.
///
/// # Errors
/// An experiment has no row in any of the results; its name.
pub fn side_by_side(
    results: &[Summary],
    experiments: &[String],
    now: &BTreeMap<String, String>,
) -> Result<String, String> {
    let mut tables = Vec::new();
    for experiment in experiments {
        let rows: Vec<Vec<&StudyRow>> =
            results.iter().map(|result| rows(result, experiment)).collect();
        if rows.iter().all(Vec::is_empty) {
            return Err(experiment.clone());
        }
        let older: Vec<&str> = results
            .iter()
            .filter(|result| is_older(result, experiment, now))
            .filter_map(|result| result.rows.first().map(|row| row.environment.name()))
            .collect();
        let older = match older.is_empty() {
            true => String::new(),
            false => format!(" (older than the study's file: {})", older.join(", ")),
        };
        tables.push(format!("{experiment}{older}:\n\n{}", table(&rows)));
    }
    Ok(tables.join("\n"))
}

/// Whether the experiment's runs, or those with printed values, are others now.
fn is_older(result: &Summary, experiment: &str, now: &BTreeMap<String, String>) -> bool {
    let mut changed = result.changed(now).into_iter();
    changed.any(|name| name.split_once(": ").is_none_or(|(_, of)| of == experiment))
}

fn rows<'a>(result: &'a Summary, experiment: &str) -> Vec<&'a StudyRow> {
    let is_its = |row: &&StudyRow| {
        let name = row.item.split('/').next().unwrap_or_default();
        // What varies for the whole experiment stands behind its name.
        name.split('[').next() == Some(experiment)
    };
    result.rows.iter().filter(is_its).collect()
}

fn table(results: &[Vec<&StudyRow>]) -> String {
    let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
    for row in results.iter().flatten() {
        if seen.insert(row.item.as_str()) {
            items.push(*row);
        }
    }
    let columns: Vec<Column> = SHOWN.iter().flat_map(|of| columns(results, *of)).collect();
    let mut text = "| row |".to_owned();
    columns.iter().for_each(|column| _ = write!(text, " {} |", column.head));
    text.push_str("\n|---|");
    columns.iter().for_each(|_| text.push_str("--:|"));
    text.push('\n');
    for item in items {
        let _ = write!(text, "| {} |", cell(&item.row));
        for column in &columns {
            let of = |rows: &Vec<&StudyRow>| {
                rows.iter().find(|row| row.item == item.item).map(|row| column.of.cell(row))
            };
            let value = match column.result {
                None => results.iter().find_map(of),
                Some(place) => results.get(place).and_then(of),
            };
            let value = value.filter(|value| value != NONE).unwrap_or_default();
            let _ = write!(text, " {value} |");
        }
        text.push('\n');
    }
    text
}

/// A column: of what was printed, or of the result at a place.
struct Column {
    head: String,
    of: Of,
    result: Option<usize>,
}

/// What a column shows of a row.
#[derive(Clone, Copy)]
enum Of {
    Printed(Measure),
    Ours(Measure),
}

impl Of {
    fn cell(self, row: &StudyRow) -> String {
        match self {
            Of::Printed(measure) => printed(row, measure),
            Of::Ours(Measure::Seconds) => seconds(row),
            // The rate of a message is its size divided by its seconds.
            Of::Ours(Measure::KbitS) if row.size.is_some() && !is_printed(row, Measure::KbitS) => {
                NONE.to_owned()
            }
            Of::Ours(Measure::KbitS) => kbit_s(row),
            Of::Ours(Measure::BasePercent) if !is_printed(row, Measure::BasePercent) => {
                NONE.to_owned()
            }
            Of::Ours(measure) => ours(row, measure),
        }
    }
}

fn is_printed(row: &StudyRow, measure: Measure) -> bool {
    printed(row, measure) != NONE
}

/// The columns of a kind of value: those in which some row has something.
fn columns(results: &[Vec<&StudyRow>], (measure, words): (Measure, &str)) -> Vec<Column> {
    let filled = |of: Of, rows: &[&StudyRow]| rows.iter().any(|row| of.cell(row) != NONE);
    let mut columns = Vec::new();
    if results.iter().any(|rows| filled(Of::Printed(measure), rows)) {
        let head = format!("{words}: paper");
        columns.push(Column { head, of: Of::Printed(measure), result: None });
    }
    for (place, rows) in results.iter().enumerate() {
        if filled(Of::Ours(measure), rows) {
            let made = rows.first().map_or("", |row| row.environment.name());
            let head = match columns.is_empty() {
                true => format!("{words}: {made}"),
                false => made.to_owned(),
            };
            columns.push(Column { head, of: Of::Ours(measure), result: Some(place) });
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::measured::Environment;

    fn row(item: &str, environment: Environment, more: &[(&str, f64)]) -> StudyRow {
        StudyRow {
            item: item.to_owned(),
            row: item.split_once('/').unwrap().1.to_owned(),
            more: more.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            environment,
            ..StudyRow::default()
        }
    }

    #[test]
    fn what_was_printed_stands_before_each_result() {
        let simulated = Summary {
            rows: vec![
                StudyRow {
                    paper: BTreeMap::from([("delay_ms_less_than".to_owned(), 5.0)]),
                    ..row("a[x=1]/one/f", Environment::Simulation, &[("delay_ms", 4.0)])
                },
                StudyRow {
                    seconds: Some(2.0),
                    kbit_s: Some(40.0),
                    size: Some(10_000),
                    ..row("a/two", Environment::Simulation, &[])
                },
                row("b/one", Environment::Simulation, &[("delay_ms", 1.0)]),
            ],
            ..Summary::default()
        };
        let made = Summary {
            rows: vec![
                row("a[x=1]/one/f", Environment::Testbed, &[("delay_ms", 6.5)]),
                row("a/three|", Environment::Testbed, &[("loss_percent", 50.0)]),
            ],
            ..Summary::default()
        };
        let both = [simulated, made];
        let of = |name: &str, now| side_by_side(&both, &[name.to_owned()], &now);
        insta::assert_snapshot!(of("a", BTreeMap::new()).unwrap(), @r"
        a:

        | row | s: simulation | loss %: testbed | delay ms: paper | simulation | testbed |
        |---|--:|--:|--:|--:|--:|
        | one/f |  |  | < 5 | 4.00 | 6.50 |
        | two | 2.00 |  |  |  |  |
        | three\| |  | 50.00 |  |  |  |
        ");
        assert_eq!(of("c", BTreeMap::new()), Err("c".to_owned()));
        let now = BTreeMap::from([("x.toml: b".to_owned(), "1".to_owned())]);
        assert!(of("b", now.clone()).unwrap().starts_with("b (older than the study's file: "));
        assert!(of("a", now).unwrap().starts_with("a:\n"), "another experiment");
    }
}
