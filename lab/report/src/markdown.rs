//! Every printed value beside ours, for a page of the documentation.

use crate::Summary;
use crate::closeness::{Closeness, Comparison};
use crate::number;
use crate::outside::{self, ScoreDetail};
use crate::score;
use crate::text::{
    TCP_FACTOR, TCP_FACTOR_MEANS, has_tcp_factor, kbit_s, ours, printed, seconds, tcp_factor,
    tos_received,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use study::StudyRow;
use study::row::Measure;

/// The score, then a row for each printed value.
pub(crate) fn page(report: &Summary, now: Option<&BTreeMap<String, String>>) -> String {
    let detail = &report.score;
    let score = detail.score;
    let mut text = String::new();
    head(&mut text, report, now);
    let [hold, fail, open] = crate::view::count(report.verdicts.iter());
    if score.printed > 0 {
        let _ = writeln!(text, "Expectations {}.\n", score.expected());
    }
    let _ = writeln!(
        text,
        "Expectations of our own results that hold: {hold}; that do not: {fail}; not known: {open}.\n"
    );
    let _ = writeln!(
        text,
        "| printed values | {} within 15 % | {} within a factor of 2 | {} beyond a factor of 2 | \
         {} only a bound is known | not measured | * rows with settings of their own |",
        Closeness::Near.sign(),
        Closeness::Factor.sign(),
        Closeness::Far.sign(),
        Closeness::Unknown.sign()
    );
    text.push_str("|--:|--:|--:|--:|--:|--:|--:|\n");
    let _ = writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} of {} |\n",
        score.printed,
        score.near,
        score.factor,
        score.far,
        score.unknown,
        score.missing,
        score.own_settings,
        score.rows
    );
    if detail.by_table.len() > 1 {
        text.push_str(
            "| table | printed values | within 15 % | within a factor of 2 |\n|---|--:|--:|--:|\n",
        );
        for (table, of) in &detail.by_table {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                cell(table),
                of.printed,
                of.near,
                of.factor
            );
        }
        text.push('\n');
    }
    for line in crate::text::fitted_words(detail).lines() {
        let _ = writeln!(text, "{line}.\n");
    }
    outside_of(&mut text, detail);
    text.push_str("Every printed value:\n\n");
    let rows: Vec<&StudyRow> = report.rows.iter().filter(|row| score::is_printed(row)).collect();
    // Only a table in which some row has one has the column.
    let factors = rows.iter().any(|row| has_tcp_factor(row));
    let (head, line) = match factors {
        true => (format!(" {TCP_FACTOR} |"), "--:|"),
        false => (String::new(), ""),
    };
    let _ = writeln!(text, "| table | row | value | printed | ours | ratio | | fitted |{head}");
    let _ = writeln!(text, "|---|---|---|--:|--:|--:|---|--:|{line}");
    for row in rows {
        values(&mut text, row, factors);
    }
    if factors {
        let _ = writeln!(text, "\n{TCP_FACTOR}: {TCP_FACTOR_MEANS}");
    }
    text
}

/// The command, the machine, and whether files have changed since; then the one setting of all rows.
fn head(text: &mut String, report: &Summary, now: Option<&BTreeMap<String, String>>) {
    let command = report.command.replace('`', "'");
    let _ = match report.date.as_str() {
        "" => writeln!(text, "Made with `{command}`.\n"),
        date => writeln!(text, "Made with `{command}` on {date}: {}.\n", report.machine),
    };
    let changed = now.map(|now| report.changed(now)).unwrap_or_default();
    // Other runs have no part in what is shown here.
    let changed: Vec<&str> = changed.into_iter().filter(|name| !name.contains(": ")).collect();
    if !changed.is_empty() {
        let _ = writeln!(
            text,
            "**These figures are older than {} as it is now.**\n",
            changed.join(", ")
        );
    }
    if let Some(headline) = report.headline.as_ref().filter(|headline| !headline.with.is_empty()) {
        let _ = writeln!(
            text,
            "One setting of messaging and hosts for all rows: `{}`. {}\n",
            number::settings(&headline.with),
            headline.why.trim()
        );
    }
}

fn values(text: &mut String, row: &StudyRow, factors: bool) {
    let factor = if factors { format!(" {} |", tcp_factor(row)) } else { String::new() };
    let sign = if score::has_own_settings(row) { " *" } else { "" };
    let name = format!("{} | {}{sign}", cell(&row.table), cell(&row.row));
    let mut measures = score::measures(&row.paper);
    measures.extend(row.paper_seconds.map(|_| Measure::Seconds));
    for measure in measures {
        let value = match measure {
            Measure::Seconds => seconds(row),
            Measure::KbitS => kbit_s(row),
            other => ours(row, other),
        };
        let comparison = Comparison::of_value(row, measure);
        let ratio = comparison.map_or(number::NONE.to_owned(), Comparison::words);
        let near = comparison.map_or("", |comparison| comparison.closeness().sign());
        let kind = measure.name().replace('_', " ");
        let printed = printed(row, measure);
        let fit = row.fit.as_ref().filter(|_| Comparison::is_of(row, measure));
        let fit = fit.and_then(|fit| outside::comparison(row, fit));
        let fit = fit.map_or(String::new(), Comparison::words);
        let _ = writeln!(
            text,
            "| {name} | {kind} | {printed} | {value} | {ratio} | {near} | {fit} |{factor}"
        );
    }
    if !row.paper_tos.is_empty() {
        let (theirs, ours) = (number::tos(&row.paper_tos), tos_received(row));
        let near = score::of_row(row).pop().flatten().map_or("", Closeness::sign);
        let _ = writeln!(text, "| {name} | TOS octets | {theirs} | {ours} |  | {near} | |{factor}");
    }
}

/// The printed values that ours are not near, as a table of their own: the expectations that derive
/// from the print and do not hold.
fn outside_of(text: &mut String, detail: &ScoreDetail) {
    if detail.outside.is_empty() {
        return;
    }
    text.push_str("Outside 15 percent of what was printed, or outside its bound:\n\n");
    text.push_str("| | table | row | value | printed | ours | ratio | reason |\n");
    text.push_str("|---|---|---|---|--:|--:|--:|---|\n");
    for one in &detail.outside {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            one.sign(),
            cell(&one.table),
            cell(&one.row),
            one.kind.replace('_', " "),
            one.printed,
            one.ours,
            one.ratio,
            cell(&one.reason)
        );
    }
    text.push('\n');
}

/// Text that stays in its cell.
pub(crate) fn cell(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect::<String>()
        .replace('|', "\\|")
}
