//! The table of an experiment: each row beside what was printed.

use super::markup::Markup;
use super::{Left, plural};
use crate::closeness::Comparison;
use crate::number::{self, NONE};
use crate::outside;
use crate::score::{has_own_settings, own_settings};
use crate::text::{
    TCP_FACTOR, TCP_FACTOR_MEANS, bound_seconds, has_tcp_factor, kbit_s, lacks_fit, ours, printed,
    seconds, tcp_factor, tos_received, tos_sent,
};
use crate::view::Experiment;
use study::StudyRow;
use study::measured::Environment;
use study::row::Measure;

/// A column: over it, and what stands in it of a row.
struct Column {
    head: &'static str,
    class: &'static str,
    cell: fn(&StudyRow) -> String,
    /// What is ours of it is beside what was printed.
    scored: Option<Measure>,
}

/// All there are; a table has those in which a row has something.
const COLUMNS: [Column; 29] = [
    Column {
        head: "precedence",
        class: "wide",
        cell: |row| text(row.precedence.as_deref()),
        scored: None,
    },
    Column { head: "DSCP", class: "wide", cell: |row| row.dscp_name.clone(), scored: None },
    Column {
        head: "size",
        class: "wide number",
        cell: |row| row.size.map_or(none(), number::size),
        scored: None,
    },
    Column {
        head: "paper s",
        class: "number",
        cell: |row| printed(row, Measure::Seconds),
        scored: None,
    },
    Column { head: "ours s", class: OURS, cell: seconds, scored: None },
    Column { head: "ratio", class: RATIO, cell: ratio, scored: None },
    Column {
        head: "paper kbit/s",
        class: "number",
        cell: |row| printed(row, Measure::KbitS),
        scored: None,
    },
    Column { head: "ours kbit/s", class: OURS, cell: kbit_s, scored: None },
    Column { head: "ratio", class: RATIO, cell: ratio_of_rates, scored: None },
    Column {
        head: "paper % of base",
        class: "number",
        cell: |row| printed(row, Measure::BasePercent),
        scored: None,
    },
    Column {
        head: "ours % of base",
        class: OURS,
        cell: |row| ours(row, Measure::BasePercent),
        scored: Some(Measure::BasePercent),
    },
    Column { head: "bound s", class: "number", cell: bound_seconds, scored: None },
    Column {
        head: "bound in % of ours",
        class: OURS,
        cell: |row| ours(row, Measure::BoundPercent),
        scored: None,
    },
    Column {
        head: "paper loss %",
        class: "number",
        cell: |row| printed(row, Measure::LossPercent),
        scored: None,
    },
    Column {
        head: "ours loss %",
        class: OURS,
        cell: |row| ours(row, Measure::LossPercent),
        scored: Some(Measure::LossPercent),
    },
    Column {
        head: "paper delay ms",
        class: "number",
        cell: |row| printed(row, Measure::DelayMs),
        scored: None,
    },
    Column {
        head: "delay ms",
        class: OURS,
        cell: |row| ours(row, Measure::DelayMs),
        scored: Some(Measure::DelayMs),
    },
    Column {
        head: "delay p99 ms",
        class: OURS,
        cell: |row| ours(row, Measure::DelayP99Ms),
        scored: Some(Measure::DelayP99Ms),
    },
    Column {
        head: "paper jitter ms",
        class: "number",
        cell: |row| printed(row, Measure::JitterMs),
        scored: None,
    },
    Column {
        head: "jitter ms",
        class: OURS,
        cell: |row| ours(row, Measure::JitterMs),
        scored: Some(Measure::JitterMs),
    },
    Column {
        head: "paper round trip ms",
        class: "number",
        cell: |row| printed(row, Measure::RoundTripMs),
        scored: None,
    },
    Column {
        head: "round trip ms",
        class: OURS,
        cell: |row| ours(row, Measure::RoundTripMs),
        scored: Some(Measure::RoundTripMs),
    },
    Column {
        head: "p99 ms",
        class: OURS,
        cell: |row| ours(row, Measure::RoundTripP99Ms),
        scored: Some(Measure::RoundTripP99Ms),
    },
    Column { head: TCP_FACTOR, class: "number", cell: tcp_factor, scored: None },
    Column { head: "TOS sent", class: "number", cell: tos_sent, scored: None },
    Column {
        head: "paper TOS received",
        class: "number",
        cell: |row| number::tos(&row.paper_tos),
        scored: None,
    },
    Column { head: "TOS received", class: OURS, cell: tos_received, scored: None },
    Column {
        head: "best fit for this row (fitted): ratio",
        class: "number",
        cell: fitted,
        scored: None,
    },
    Column { head: "environment", class: "environment", cell: environment, scored: None },
];
/// What was measured, apart from what was printed.
const OURS: &str = "number ours";
/// One divided by the other.
const RATIO: &str = "number ratio";

fn none() -> String {
    NONE.to_owned()
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or(NONE).to_owned()
}

fn ratio(row: &StudyRow) -> String {
    let comparison = Comparison::from_row(row).filter(|_| !Comparison::is_of_rates(row));
    comparison.map_or(none(), Comparison::words)
}

fn ratio_of_rates(row: &StudyRow) -> String {
    let comparison = Comparison::from_row(row).filter(|_| Comparison::is_of_rates(row));
    comparison.map_or(none(), Comparison::words)
}

/// With the settings that were chosen to fit it, in the simulation.
fn fitted(row: &StudyRow) -> String {
    let comparison = row.fit.as_ref().and_then(|fit| outside::comparison(row, fit));
    comparison.map_or(none(), Comparison::words)
}

/// Where a number was made, as a word and a sign, and how much faster the network was.
fn environment(row: &StudyRow) -> String {
    let sign = match row.environment {
        Environment::Testbed => "■",
        Environment::Simulation => "◇",
    };
    let faster =
        if row.scale != study::Scale::ONE { format!(" ×{}", row.scale) } else { String::new() };
    let inside = if row.inside { ", made inside" } else { "" };
    format!("{sign} {}{faster}{inside}", row.environment.name())
}

/// Writes it; where it has more rows than `open`, it is opened by a click.
pub(super) fn write(page: &mut Markup, of: &Experiment<'_>, open: usize, left: &mut Left) {
    let shown = of.rows.len().min(left.rows);
    left.rows -= shown;
    let rows = of.rows.get(..shown).unwrap_or_default();
    let reasons = Reasons::from_rows(rows);
    if let Some(common) = &reasons.common {
        page.within("p", &[], |page| {
            page.text("All of these with ");
            page.element("code", &[], common);
            page.format(format_args!(": {}", reasons.texts.join(" ")));
        });
    }
    if rows.len() > open {
        page.within("details", &[("class", "paper")], |page| {
            page.element("summary", &[], &format!("Table of {}", plural(rows.len(), "row")));
            tables(page, rows, &reasons);
        });
    } else {
        tables(page, rows, &reasons);
    }
    if rows.iter().any(|row| has_tcp_factor(row)) {
        let text = format!("{TCP_FACTOR}: {TCP_FACTOR_MEANS}");
        page.element("p", &[("class", "quiet")], &text);
    }
    if shown < of.rows.len() {
        let text = format!("{} more stand in results.json.", plural(of.rows.len() - shown, "row"));
        page.element("p", &[("class", "quiet")], &text);
    }
    if reasons.common.is_none() && !reasons.texts.is_empty() {
        page.within("ol", &[("class", "reasons")], |page| {
            reasons.texts.iter().for_each(|text| page.element("li", &[], text));
        });
    }
}

/// Why rows have parameters that are others than elsewhere.
struct Reasons {
    /// The parameters, where all rows have the same for the same reasons.
    common: Option<String>,
    /// Each reason once.
    texts: Vec<String>,
}

impl Reasons {
    fn from_rows(rows: &[&StudyRow]) -> Reasons {
        let mut texts = Vec::new();
        for why in rows.iter().filter(|row| !own_settings(row).is_empty()).flat_map(|row| &row.why)
        {
            if !texts.contains(why) {
                texts.push(why.clone());
            }
        }
        let all_alike = |first: &StudyRow| {
            rows.iter().all(|row| own_settings(row) == own_settings(first) && row.why == first.why)
        };
        let first = rows.first().filter(|first| rows.len() > 1 && all_alike(first));
        let common = first.map(|row| own_settings(row)).filter(|special| !special.is_empty());
        Reasons { common, texts }
    }

    /// The numbers of a row's reasons.
    fn numbers(&self, row: &StudyRow) -> String {
        let place = |why: &String| self.texts.iter().position(|text| text == why);
        let numbers = row.why.iter().filter_map(place);
        numbers.map(|place| format!(" ({})", place + 1)).collect()
    }
}

/// One of messages and one of loads, as they have different columns.
fn tables(page: &mut Markup, rows: &[&StudyRow], reasons: &Reasons) {
    let (messages, loads): (Vec<&StudyRow>, Vec<&StudyRow>) =
        rows.iter().partition(|row| row.precedence.is_some());
    let both = !messages.is_empty() && !loads.is_empty();
    for (rows, caption) in [(messages, "Messages"), (loads, "Loads")] {
        if !rows.is_empty() {
            table(page, &rows, if both { caption } else { "" }, reasons);
        }
    }
}

fn table(page: &mut Markup, rows: &[&StudyRow], caption: &str, reasons: &Reasons) {
    let filled = COLUMNS.iter().filter(|column| {
        rows.iter().any(|row| {
            let cell = (column.cell)(row);
            !cell.is_empty() && cell != NONE
        })
    });
    let columns: Vec<&Column> = filled.collect();
    page.within("div", &[("class", "scroll")], |page| {
        page.within("table", &[], |page| {
            if !caption.is_empty() {
                page.element("caption", &[], caption);
            }
            page.within("thead", &[], |page| {
                page.within("tr", &[], |page| {
                    page.element("th", &[("scope", "col")], "row");
                    for column in &columns {
                        let class = [("scope", "col"), ("class", column.class)];
                        page.element("th", &class, column.head);
                    }
                });
            });
            page.within("tbody", &[], |page| {
                for row in rows {
                    page.within("tr", &[], |page| {
                        name(page, row, reasons);
                        columns.iter().for_each(|column| cell(page, row, column));
                    });
                }
            });
        });
    });
}

/// The row's name, with what it differs in; on a phone with what has no column there.
fn name(page: &mut Markup, row: &StudyRow, reasons: &Reasons) {
    page.within("th", &[("scope", "row")], |page| {
        page.text(&row.row);
        if has_own_settings(row) {
            page.text(" *");
        }
        let size = row.size.map(number::size);
        let parts = [row.precedence.clone(), Some(row.dscp_name.clone()), size];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        page.element("small", &[("class", "phone")], &parts.join(" · "));
        if row.repeats > 1 {
            let times = format!("median of {} (lowest–highest)", row.repeats);
            page.element("small", &[("class", "special")], &times);
        }
        if lacks_fit(row) {
            let missed = format!("not near: {}", row.no_fit_reason);
            page.element("small", &[("class", "special")], &missed);
        }
        if let Some(fit) = &row.fit {
            let fitted = format!("fitted with {}: {}", number::settings(&fit.with), fit.why);
            page.element("small", &[("class", "special")], &fitted);
        }
        let special = own_settings(row);
        if reasons.common.is_none() && !special.is_empty() {
            let text = format!("with {special}{}", reasons.numbers(row));
            page.element("small", &[("class", "special")], &text);
        }
    });
}

fn cell(page: &mut Markup, row: &StudyRow, column: &Column) {
    let text = (column.cell)(row);
    let comparison = match column.scored {
        Some(measure) => Comparison::of_value(row, measure),
        None => Comparison::from_row(row).filter(|_| column.class == RATIO),
    };
    let comparison = comparison.filter(|_| text != NONE);
    let Some(comparison) = comparison else {
        page.within("td", &[("class", column.class)], |page| {
            // A range stands behind its median.
            let (value, range) = text.split_at(text.find(" (").unwrap_or(text.len()));
            page.text(value);
            if !range.is_empty() {
                page.element("small", &[], range);
            }
        });
        return;
    };
    let closeness = comparison.closeness();
    let class = format!("{} {}", column.class, closeness.class());
    page.within("td", &[("class", &class), ("title", closeness.words())], |page| {
        page.text(&text);
        if comparison == Comparison::Neither {
            return;
        }
        page.text(" ");
        let label = [("role", "img"), ("aria-label", closeness.words())];
        page.element("span", &label, closeness.sign());
    });
}
