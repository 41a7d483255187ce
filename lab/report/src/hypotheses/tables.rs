//! The tables of rivals, for a terminal, as Markdown and for the page.

use super::{Hypotheses, HypothesisScore, ItemValue};
use crate::number::{self, NONE};
use base::shown;
use std::fmt::Write as _;
use study::hypothesis::Proposer;

/// A table of texts.
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
}

impl Hypotheses {
    /// How many rows and printed values each rival brings near, the best first.
    pub(crate) fn scores(&self) -> Table {
        let head = [
            "hypothesis",
            "by",
            "rows",
            "near",
            "factor 2",
            "beyond",
            "?",
            "values",
            "near",
            "factor 2",
            "beyond",
            "?",
            "off by",
        ];
        let line = |of: &&HypothesisScore| {
            let (rows, values) = (of.rows, of.values);
            let counts = [
                rows.rows,
                rows.rows_near,
                rows.rows_factor,
                rows.rows_far,
                rows.rows_unknown,
                values.printed,
                values.near,
                values.factor,
                values.far,
                values.unknown + values.missing,
            ];
            let by = match of.by {
                Proposer::Ours => "us",
                Proposer::Paper => "the paper",
            };
            let mut line = vec![of.name.clone(), by.to_owned()];
            line.extend(counts.map(|count| count.to_string()));
            line.push(of.off_by.map_or(NONE.to_owned(), number::ratio));
            line
        };
        Table {
            head: head.map(str::to_owned).into(),
            lines: self.ranked().iter().map(line).collect(),
        }
    }

    /// What each predicts for the rows by which they can be distinguished, a letter for each row.
    pub(crate) fn predictions(&self) -> Table {
        let letters = self.letters();
        let mut head = vec!["hypothesis".to_owned(), String::new()];
        head.extend(letters.iter().map(|(letter, _)| letter.clone()));
        let line = |of: &&HypothesisScore| {
            let mut line = vec![of.name.clone(), String::new()];
            line.extend(letters.iter().map(|(_, item)| predicted(of, item)));
            line
        };
        Table { head, lines: self.ranked().iter().map(line).collect() }
    }

    /// `A`, and the row it stands for.
    pub(crate) fn letters(&self) -> Vec<(String, &str)> {
        let letters = ('A'..='Z').map(String::from);
        letters.zip(self.distinguish.iter().map(String::as_str)).collect()
    }

    /// The row, and what was printed of it.
    pub(crate) fn with_printed(&self, item: &str) -> String {
        let all = self.hypotheses.iter();
        let printed = all.filter_map(|of| value(of, item)).find_map(|(_, value)| {
            let more = value.printed_more_than.map(|bound| format!("> {}", number::exact(bound)));
            value.printed.map(number::exact).or(more)
        });
        match printed {
            Some(printed) => format!("{item}, printed {printed} s"),
            None => format!("{item}, not printed"),
        }
    }

    /// What speaks against a hypothesis, where that is known.
    pub(crate) fn objections(&self) -> Vec<(&str, &str)> {
        self.once(|of| &of.against)
    }

    /// What each hypothesis is.
    pub(crate) fn meanings(&self) -> Vec<(&str, &str)> {
        self.once(|of| &of.what)
    }

    /// A text of each hypothesis, whose rivals have it in common.
    fn once(&self, of: impl Fn(&HypothesisScore) -> &str) -> Vec<(&str, &str)> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        for rival in &self.hypotheses {
            let one = (rival.name.split('[').next().unwrap_or_default(), of(rival));
            if !one.1.is_empty() && !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    /// Both tables, for a terminal.
    pub fn text(&self) -> String {
        let aligned = |table: Table| {
            let lines = std::iter::once(table.head).chain(table.lines);
            let plain =
                |line: Vec<String>| line.iter().map(|cell| shown::line(cell).into()).collect();
            crate::text::aligned(&lines.map(plain).collect::<Vec<_>>())
        };
        let mut text = aligned(self.scores());
        text.push_str("\nseconds that each predicts:\n");
        for (letter, item) in self.letters() {
            let _ = writeln!(text, "  {letter}: {}", shown::line(&self.with_printed(item)));
        }
        text.push_str(&aligned(self.predictions()));
        text.push_str("\nwhat speaks against them:\n");
        for (name, against) in self.objections() {
            let _ = writeln!(text, "  {}: {}", shown::line(name), shown::line(against));
        }
        text
    }

    /// The same for a page of the documentation.
    pub fn markdown(&self) -> String {
        let mut text = format!("Made with `{}`.\n\n", self.command.replace('`', "'"));
        put(&mut text, &self.scores());
        text.push_str("\nSeconds that each predicts:\n\n");
        for (letter, item) in self.letters() {
            let _ = writeln!(text, "* {letter}: `{}`", cell(&self.with_printed(item)));
        }
        text.push('\n');
        put(&mut text, &self.predictions());
        text.push_str("\nWhat each is:\n\n");
        for (name, what) in self.meanings() {
            let _ = writeln!(text, "* `{}`: {}", cell(name), cell(what));
        }
        text.push_str("\nWhat speaks against them:\n\n");
        for (name, against) in self.objections() {
            let _ = writeln!(text, "* `{}`: {}", cell(name), cell(against));
        }
        text
    }
}

/// A table as Markdown.
fn put(text: &mut String, table: &Table) {
    let mut line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|of| cell(of)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&table.head);
    let rules: Vec<String> = (0..table.head.len())
        .map(|column| if column < 2 { "---".to_owned() } else { "--:".to_owned() })
        .collect();
    line(&rules);
    table.lines.iter().for_each(|cells| line(cells));
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    shown::line(text).replace('|', "\\|")
}

fn value<'a>(of: &'a HypothesisScore, item: &str) -> Option<(&'a String, &'a ItemValue)> {
    of.predicts.iter().find(|(key, _)| key.rsplit_once('.').is_some_and(|(of, _)| of == item))
}

fn predicted(of: &HypothesisScore, item: &str) -> String {
    match value(of, item).map(|(_, value)| (value.ours, value.ours_more_than)) {
        Some((Some(ours), _)) => number::short(ours),
        Some((None, Some(bound))) => format!("> {}", number::short(bound)),
        _ => NONE.to_owned(),
    }
}
