//! The short table at the end of a run, for a terminal.

use crate::closeness::Closeness;
use crate::closeness::Comparison;
use crate::number::{self, NONE};
use crate::outside::{self, Outside, ScoreDetail};
use crate::score;
use base::shown;
use study::row::Measure;
use study::{StudyRow, Verdict, tcp_factor};

/// Over the column of the factors of TCP.
pub(crate) const TCP_FACTOR: &str = "TCP factor";
/// What they mean.
pub(crate) const TCP_FACTOR_MEANS: &str = "segments of this row were lost in the simulation, whose TCP repairs \
    losses otherwise than Linux does. One TCP load of 1 MB at the nearest line rate, loss and round trip took so many \
    times as long in the simulation as on Linux (reno; `tcp-models`). † loss or round trip outside of what was measured.";
/// Most rows; the JSON has all.
const MAX_ROWS: usize = 1_000;
/// Most characters of a cell.
const MAX_CELL: usize = 60;

/// A column: over it, and what stands in it of a row.
struct Column {
    head: &'static str,
    cell: fn(&StudyRow) -> String,
}

/// All there are; but for the names, a table has those in which a row has something.
const COLUMNS: [Column; 23] = [
    Column { head: "table", cell: |row| row.table.clone() },
    Column { head: "row", cell: marked },
    Column { head: "paper s", cell: |row| printed(row, Measure::Seconds) },
    Column { head: "ours s", cell: seconds },
    Column { head: "ours kbit/s", cell: kbit_s },
    Column {
        head: "ratio",
        cell: |row| Comparison::from_row(row).map_or(NONE.to_owned(), Comparison::words),
    },
    Column { head: "fitted ratio", cell: fitted },
    Column { head: "paper % of base", cell: |row| printed(row, Measure::BasePercent) },
    Column { head: "ours % of base", cell: percent_of_base },
    Column { head: "bound s", cell: bound_seconds },
    Column { head: "bound in % of ours", cell: |row| ours(row, Measure::BoundPercent) },
    Column { head: "paper loss %", cell: |row| printed(row, Measure::LossPercent) },
    Column { head: "ours loss %", cell: |row| ours(row, Measure::LossPercent) },
    Column { head: "paper delay ms", cell: |row| printed(row, Measure::DelayMs) },
    Column { head: "ours delay ms", cell: |row| ours(row, Measure::DelayMs) },
    Column { head: "paper jitter ms", cell: |row| printed(row, Measure::JitterMs) },
    Column { head: "ours jitter ms", cell: |row| ours(row, Measure::JitterMs) },
    Column { head: "paper round trip ms", cell: |row| printed(row, Measure::RoundTripMs) },
    Column { head: "ours round trip ms", cell: |row| ours(row, Measure::RoundTripMs) },
    Column { head: TCP_FACTOR, cell: tcp_factor },
    Column { head: "TOS sent", cell: tos_sent },
    Column { head: "paper TOS received", cell: |row| number::tos(&row.paper_tos) },
    Column { head: "ours TOS received", cell: tos_received },
];
/// The first columns, which are there in any case.
const NAMES: usize = 2;

/// A line for each row, then what does not hold or is not known.
pub(crate) fn table(rows: &[StudyRow], score: &ScoreDetail, verdicts: &[Verdict]) -> String {
    let shown = rows.get(..rows.len().min(MAX_ROWS)).unwrap_or_default();
    // Each table has only the columns that have a value in it.
    let tables = shown.chunk_by(|one, next| one.table == next.table);
    let mut text = tables.map(one_table).collect::<Vec<_>>().join("\n");
    if rows.len() > MAX_ROWS {
        text.push_str(&format!("... and {} rows more\n", rows.len() - MAX_ROWS));
    }
    if rows.iter().any(has_tcp_factor) {
        text.push_str(&format!("\n{TCP_FACTOR}: {TCP_FACTOR_MEANS}\n"));
    }
    text.push_str(&scored(score));
    text.push_str(&fit_reasons(rows));
    if score.score.printed > 0 {
        text.push_str(&format!("\nexpectations {}\n", score.score.expected()));
    }
    text.push_str(&expectations(verdicts));
    text
}

fn one_table(shown: &[StudyRow]) -> String {
    let filled = |column: &&Column| shown.iter().any(|row| (column.cell)(row) != NONE);
    let names = COLUMNS.iter().take(NAMES);
    let columns: Vec<&Column> = names.chain(COLUMNS.iter().skip(NAMES).filter(filled)).collect();
    let heads = columns.iter().map(|column| column.head.to_owned()).collect();
    let cells = |row| columns.iter().map(|column| plain(&(column.cell)(row))).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heads).chain(shown.iter().map(cells)).collect();
    aligned(&lines)
}

pub(crate) fn seconds(row: &StudyRow) -> String {
    ranged(bounded(row.seconds, row.seconds_more_than, ">"), row, Measure::Seconds)
}

pub(crate) fn kbit_s(row: &StudyRow) -> String {
    ranged(bounded(row.kbit_s, row.kbit_s_less_than, "<"), row, Measure::KbitS)
}

/// The seconds of its bound.
pub(crate) fn bound_seconds(row: &StudyRow) -> String {
    row.more.get("bound_seconds").map_or(NONE.to_owned(), |seconds| number::short(*seconds))
}

/// What was printed: a value, a bound, or what it is between.
pub(crate) fn printed(row: &StudyRow, measure: Measure) -> String {
    let of = |suffix: &str| row.paper.get(&format!("{}{suffix}", measure.name())).copied();
    let exactly = of("").or((measure == Measure::Seconds).then_some(row.paper_seconds).flatten());
    match (exactly, of("_more_than"), of("_less_than")) {
        (Some(value), _, _) => number::exact(value),
        (None, Some(low), Some(high)) => {
            format!("{}–{}", number::exact(low), number::exact(high))
        }
        (None, Some(low), None) => format!("> {}", number::exact(low)),
        (None, None, Some(high)) => format!("< {}", number::exact(high)),
        (None, None, None) => NONE.to_owned(),
    }
}

/// What we have of it: a value with its range, or a bound.
pub(crate) fn ours(row: &StudyRow, measure: Measure) -> String {
    let bound = |suffix: &str| row.more.get(&format!("{}{suffix}", measure.name())).copied();
    match (row.value(measure), bound("_more_than"), bound("_less_than")) {
        (Some(value), _, _) => ranged(number::short(value), row, measure),
        (None, Some(bound), _) => format!("> {}", number::short(bound)),
        (None, None, Some(bound)) => format!("< {}", number::short(bound)),
        (None, None, None) => NONE.to_owned(),
    }
}

/// How slow the simulation's TCP is beside that of Linux, for a row that lost packets.
pub(crate) fn tcp_factor(row: &StudyRow) -> String {
    let of = |name: &str| row.more.get(name).copied();
    let Some(factor) = of(tcp_factor::FACTOR) else { return NONE.to_owned() };
    let outside = of(tcp_factor::LOSS)
        .zip(of(tcp_factor::ROUND_TRIP))
        .is_some_and(|(loss, round_trip)| tcp_factor::shipped().is_outside(loss, round_trip));
    format!("{}{}", number::ratio(factor), if outside { " †" } else { "" })
}

/// Whether there is one.
pub(crate) fn has_tcp_factor(row: &StudyRow) -> bool {
    row.more.contains_key(tcp_factor::FACTOR)
}

/// Only where something was printed about it: most loads arrive as they are sent.
pub(crate) fn tos_sent(row: &StudyRow) -> String {
    let sent = row.tos_sent.filter(|_| !row.paper_tos.is_empty());
    sent.map_or(NONE.to_owned(), |octet| number::tos(&[octet]))
}

/// Likewise.
pub(crate) fn tos_received(row: &StudyRow) -> String {
    let received = if row.paper_tos.is_empty() { &[] } else { row.tos_received.as_slice() };
    number::tos(received)
}

/// A value, or the bound that is known of it.
fn bounded(value: Option<f64>, bound: Option<f64>, sign: &str) -> String {
    match (value, bound) {
        (Some(value), _) => number::short(value),
        (None, Some(bound)) => format!("{sign} {}", number::short(bound)),
        (None, None) => NONE.to_owned(),
    }
}

/// With the lowest and the highest behind it, where it is a median.
fn ranged(text: String, row: &StudyRow, measure: Measure) -> String {
    let Some((low, high)) = row.range.get(measure.name()) else { return text };
    // Without chance in it each run is like the other.
    if low == high {
        return text;
    }
    let end = |value: &Option<f64>| value.map_or("given up".to_owned(), number::short);
    format!("{text} ({}–{})", end(low), end(high))
}

pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
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

/// A row's name, with a sign where it has settings of its own.
fn marked(row: &StudyRow) -> String {
    let sign = if score::has_own_settings(row) { " *" } else { "" };
    format!("{}{sign}", row.row)
}

/// Only where it was printed: it is counted from a rate that stands in the table.
fn percent_of_base(row: &StudyRow) -> String {
    match printed(row, Measure::BasePercent).as_str() {
        NONE => NONE.to_owned(),
        _ => ours(row, Measure::BasePercent),
    }
}

/// How many of the printed values came out near.
fn scored(detail: &ScoreDetail) -> String {
    let score = detail.score;
    if score.printed == 0 {
        return String::new();
    }
    let mut text = format!("\nprinted values: {}", score.printed);
    for closeness in Closeness::ALL {
        text.push_str(&format!("; {}: {}", closeness.words(), score.count(closeness)));
    }
    text.push_str(&format!("; not measured: {}\n", score.missing));
    if score.own_settings > 0 {
        text.push_str(&format!(
            "* settings of its own: {} of the {} rows with printed values\n",
            score.own_settings, score.rows
        ));
    }
    text.push_str(&fitted_words(detail));
    text.push_str(&outside_of(&detail.outside));
    text
}

/// What was chosen by printed values.
pub(crate) fn fitted_words(detail: &ScoreDetail) -> String {
    let fitted = &detail.fitted;
    let mut text = String::new();
    if !fitted.parameters.is_empty() {
        text.push_str(&format!(
            "parameters of all rows that were chosen by printed values: {} ({})\n",
            fitted.parameters.len(),
            fitted.parameters.join(", ")
        ));
    }
    if fitted.rows > 0 {
        text.push_str(&format!(
            "fitted one by one, in a column that counts for nothing: {} rows with {} values of \
             parameters, {} of them within 15 %\n",
            fitted.rows, fitted.values, fitted.near
        ));
    }
    text
}

/// The printed values that ours are not near.
fn outside_of(outside: &[Outside]) -> String {
    if outside.is_empty() {
        return String::new();
    }
    let head = ["", "outside 15 % of what was printed", "value", "printed", "ours", "ratio"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for one in outside.iter().take(MAX_ROWS) {
        lines.push(vec![
            one.sign().to_owned(),
            format!("{} {}", plain(&one.table), plain(&one.row)),
            one.kind.replace('_', " "),
            one.printed.clone(),
            one.ours.clone(),
            one.ratio.clone(),
        ]);
    }
    format!("\n{}", aligned(&lines))
}

/// With the settings that were chosen to fit it: ours divided by what was printed.
fn fitted(row: &StudyRow) -> String {
    let comparison = row.fit.as_ref().and_then(|fit| outside::comparison(row, fit));
    comparison.map_or(NONE.to_owned(), Comparison::words)
}

/// Whether some value of a row is not near, and the file gives the reason.
pub(crate) fn lacks_fit(row: &StudyRow) -> bool {
    !row.no_fit_reason.is_empty()
        && !score::of_row(row).iter().all(|of| *of == Some(Closeness::Near))
}

/// Why rows are not near the printed values: the reasons in the study's file.
fn fit_reasons(rows: &[StudyRow]) -> String {
    let unfit: Vec<&StudyRow> = rows.iter().filter(|row| lacks_fit(row)).collect();
    if unfit.is_empty() {
        return String::new();
    }
    let mut text = "\nnot near what was printed, and why:\n".to_owned();
    for row in unfit.iter().take(MAX_ROWS) {
        let why = shown::line(&row.no_fit_reason);
        text.push_str(&format!("  {} {}: {why}\n", plain(&row.table), plain(&row.row)));
    }
    text
}

fn expectations(verdicts: &[Verdict]) -> String {
    let count = |holds| verdicts.iter().filter(|verdict| verdict.holds == holds).count();
    let (hold, fail, open) = (count(Some(true)), count(Some(false)), count(None));
    if verdicts.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nexpectations of our own results that hold: {hold}; that do not: {fail}; not known: {open}\n"
    );
    for verdict in verdicts.iter().filter(|verdict| verdict.holds != Some(true)) {
        let line = format!(
            "  {}: {}: {} ({})\n",
            if verdict.holds.is_some() { "does not hold" } else { "not known" },
            plain(&verdict.experiment),
            shown::line(&verdict.what),
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
    if !verdict.tos_wanted.is_empty() {
        let wanted = number::tos(&verdict.tos_wanted);
        return match verdict.holds {
            Some(_) => format!("{}; just {wanted}", number::tos(&verdict.tos_received)),
            None => format!("not known; just {wanted}"),
        };
    }
    let wanted: Vec<String> = [least, most].into_iter().flatten().collect();
    if wanted.is_empty() { value } else { format!("{value}; {}", wanted.join(", ")) }
}

/// Nothing that a terminal would obey, and not too long.
fn plain(text: &str) -> String {
    let text = shown::line(text);
    if text.chars().count() <= MAX_CELL {
        return text.into_owned();
    }
    text.chars().take(MAX_CELL - 1).chain(['…']).collect()
}
