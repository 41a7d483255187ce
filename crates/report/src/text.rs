//! The short table at the end of a run, for a terminal.

use crate::closeness::Comparison;
use crate::number::{self, NONE};
use study::row::Measure;
use study::{Row, Verdict};

/// Most rows; the JSON has all.
const ROWS_MAX: usize = 1_000;
/// Most characters of a cell.
const CELL_MAX: usize = 60;

/// A line for each row, then what does not hold or is not known.
pub(crate) fn table(rows: &[Row], verdicts: &[Verdict]) -> String {
    let mut lines = vec![["table", "row", "paper s", "ours s", "ours kbit/s", "ratio"].map(plain)];
    lines.extend(rows.iter().take(ROWS_MAX).map(|row| cells(row).map(|cell| plain(&cell))));
    let mut text = aligned(&lines);
    if rows.len() > ROWS_MAX {
        text.push_str(&format!("... and {} rows more\n", rows.len() - ROWS_MAX));
    }
    text.push_str(&expectations(verdicts));
    text
}

fn cells(row: &Row) -> [String; 6] {
    let printed = |name: &str| row.paper.get(name).copied();
    let theirs = match (row.paper_seconds.or(printed("seconds")), printed("seconds_more_than")) {
        (Some(seconds), _) => number::exact(seconds),
        (None, Some(seconds)) => format!("> {}", number::exact(seconds)),
        (None, None) => NONE.to_owned(),
    };
    [
        row.table.clone(),
        row.row.clone(),
        theirs,
        ranged(bounded(row.seconds, row.seconds_more_than, ">"), row, Measure::Seconds),
        ranged(bounded(row.kbit_s, row.kbit_s_less_than, "<"), row, Measure::KbitS),
        Comparison::of(row).map_or(NONE.to_owned(), Comparison::words),
    ]
}

/// A value, or the bound that is known of it.
pub(crate) fn bounded(value: Option<f64>, bound: Option<f64>, sign: &str) -> String {
    match (value, bound) {
        (Some(value), _) => number::short(value),
        (None, Some(bound)) => format!("{sign} {}", number::short(bound)),
        (None, None) => NONE.to_owned(),
    }
}

/// With the lowest and the highest behind it, where it is a median.
pub(crate) fn ranged(text: String, row: &Row, measure: Measure) -> String {
    let Some((low, high)) = row.range.get(measure.name()) else { return text };
    let end = |value: &Option<f64>| value.map_or("given up".to_owned(), number::short);
    format!("{text} ({}–{})", end(low), end(high))
}

fn aligned(lines: &[[String; 6]]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut out = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let room = " ".repeat(width.saturating_sub(cell.chars().count()));
            // Names begin, and numbers end, at the same place.
            match column {
                0 | 1 => out.extend([cell, room.as_str(), "  "]),
                _ => out.extend([room.as_str(), cell, "  "]),
            }
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    text
}

fn expectations(verdicts: &[Verdict]) -> String {
    let count = |holds| verdicts.iter().filter(|verdict| verdict.holds == holds).count();
    let (hold, fail, open) = (count(Some(true)), count(Some(false)), count(None));
    if verdicts.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\nexpectations that hold: {hold}; that do not: {fail}; not known: {open}\n");
    for verdict in verdicts.iter().filter(|verdict| verdict.holds == Some(false)) {
        let line = format!(
            "  does not hold: {}: {} ({})\n",
            plain(&verdict.experiment),
            verdict.what.chars().map(visible).collect::<String>(),
            bounds(verdict)
        );
        text.push_str(&line);
    }
    text
}

/// What an expectation's value is, and what it was to be.
pub(crate) fn bounds(verdict: &Verdict) -> String {
    let value = verdict.value.map_or("not known".to_owned(), number::short);
    let least = verdict.at_least.map(|least| format!("at least {}", number::exact(least)));
    let most = verdict.at_most.map(|most| format!("at most {}", number::exact(most)));
    let wanted: Vec<String> = [least, most].into_iter().flatten().collect();
    if wanted.is_empty() { value } else { format!("{value}; {}", wanted.join(", ")) }
}

/// Nothing that a terminal would obey, and not too long.
fn plain(text: &str) -> String {
    if text.chars().count() <= CELL_MAX {
        return text.chars().map(visible).collect();
    }
    text.chars().take(CELL_MAX - 1).map(visible).chain(['…']).collect()
}

fn visible(c: char) -> char {
    if c.is_control() { '?' } else { c }
}
