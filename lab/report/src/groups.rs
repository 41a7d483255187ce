//! The cells of an experiment by the values of one parameter, beside their bounds.

use crate::Summary;
use crate::markdown::cell;
use crate::number::{self, NONE};
use std::fmt::Write as _;
use study::StudyRow;
use study::row::Measure;

/// Below it a cell does not reach its bound, in percent.
const REACHED: f64 = 95.0;

/// A line for each value of a parameter, as Markdown: how many cells have it, and the lowest of them in
/// percent of the bound and of the message alone. Rows without a bound are left out.
///
/// # Errors
/// No row of the experiment has a bound and this parameter; in words.
pub fn groups(result: &Summary, experiment: &str, parameter: &str) -> Result<String, String> {
    let mut groups: Vec<(String, Vec<&StudyRow>)> = Vec::new();
    for row in &result.rows {
        let name = row.item.split('/').next().unwrap_or_default();
        let value = row.with.get(parameter).filter(|_| name == experiment);
        let Some(value) = value.filter(|_| known(row, Measure::BoundPercent).is_some()) else {
            continue;
        };
        let value = number::setting(value);
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((value, vec![row])),
        }
    }
    if groups.is_empty() {
        return Err(format!("no row of {experiment} has a bound and a value of {parameter}"));
    }
    let mut text = format!("| {} | cells | lowest, % of the bound |", cell(parameter));
    text.push_str(" median | below 95 % | lowest, % of the message alone |\n");
    text.push_str("|---|--:|--:|--:|--:|--:|\n");
    for (value, rows) in groups {
        let bounds = sorted(&rows, Measure::BoundPercent);
        let bases = sorted(&rows, Measure::BasePercent);
        let lowest = |all: &[f64]| all.first().map_or(NONE.to_owned(), |low| number::short(*low));
        let median = bounds.get(bounds.len() / 2).copied().unwrap_or_default();
        let below = bounds.iter().filter(|percent| **percent < REACHED).count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {below} | {} |",
            cell(&value),
            rows.len(),
            lowest(&bounds),
            number::short(median),
            lowest(&bases)
        );
    }
    Ok(text)
}

/// A value, or the bound that is known of one that was given up.
fn known(row: &StudyRow, measure: Measure) -> Option<f64> {
    let most = || row.more.get(&format!("{}_less_than", measure.name())).copied();
    row.value(measure).or_else(most)
}

fn sorted(rows: &[&StudyRow], measure: Measure) -> Vec<f64> {
    let mut all: Vec<f64> = rows.iter().filter_map(|row| known(row, measure)).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_value_has_its_lowest_cell() {
        let row = |window: &str, more: &[(&str, f64)]| StudyRow {
            item: "matrix/cell/flash".to_owned(),
            with: BTreeMap::from([("window".to_owned(), window.into())]),
            more: more.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..StudyRow::default()
        };
        let summary = Summary {
            rows: vec![
                row("ours", &[("bound_percent", 101.0), ("base_percent", 60.0)]),
                row("ours", &[("bound_percent", 96.0), ("base_percent", 90.0)]),
                row("small", &[("bound_percent_less_than", 20.0)]),
                row("ours", &[("bound_percent", 94.9), ("base_percent", 70.0)]),
                row("base", &[]),
                StudyRow { item: "real/x".to_owned(), ..row("x", &[("bound_percent", 1.0)]) },
            ],
            ..Summary::default()
        };
        let table = groups(&summary, "matrix", "window").unwrap();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        let wanted =
            ["| ours | 3 | 94.90 | 96.00 | 1 | 60.00 |", "| small | 1 | 20.00 | 20.00 | 1 | – |"];
        assert_eq!(lines, wanted);
        assert!(groups(&summary, "matrix", "size").is_err());
        assert!(groups(&summary, "none", "window").is_err());
    }
}
