//! Tables of text for terminals: cells that no terminal obeys, and as wide as the terminal is.

use base::shown;
use comfy_table::{ContentArrangement, presets};
use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// The cell of an empty value.
#[must_use]
pub fn dash() -> String {
    "-".to_owned()
}

/// An elapsed time: in tenths of a second, from one hour on in hours and minutes.
#[must_use]
pub fn age(seconds: f64) -> String {
    if seconds < 3_600.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = seconds / 60.0;
    format!("{:.0} h {:02.0} min", (minutes / 60.0).floor(), (minutes % 60.0).floor())
}

/// Lines of a value below its row: what does not fit is cut, with an ellipsis.
const LINES: usize = 3;

/// Columns that stay side by side, however narrow the terminal is.
const MIN_COLUMNS: usize = 2;

/// A table without rules, whose cells are escaped for terminals: columns are aligned with two spaces between
/// them, a row is a line. Where a width bounds it, the last columns that do not fit go below their row.
#[derive(Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
    together: usize,
}

impl Table {
    /// The last columns, this number of them, go below their rows together: where one does not fit, none is beside
    /// the others.
    pub fn keep_together(&mut self, columns: usize) {
        self.together = columns;
    }

    /// Adds a row: a cell for each column.
    pub fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| shown::line(cell.as_ref()).into_owned());
        self.rows.push(cells.collect());
    }

    /// How many rows there are.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The lines of the first columns: one for the head and one for each row, if they fit.
    fn columns(&self, count: usize) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(self.head.iter().take(count));
        for row in &self.rows {
            table.add_row(row.iter().take(count));
        }
        let of_narrow = count == MIN_COLUMNS && self.width.is_some();
        if let (true, Some(width)) = (of_narrow, self.width) {
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        // The preset has a space before the first column.
        let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// Whether these lines fit.
    fn fits(&self, lines: &[String]) -> bool {
        self.width.is_none_or(|width| lines.iter().all(|line| line.chars().count() <= width))
    }

    /// What of a row does not stand in the first columns: each value that there is, after the name of its column.
    fn below(&self, row: &[String], count: usize) -> Vec<String> {
        let cells = self.head.iter().zip(row).skip(count);
        let there_are = cells.filter(|(_, cell)| !matches!(cell.as_str(), "-" | "0" | ""));
        let values: Vec<String> = there_are.map(|(name, cell)| format!("{name}: {cell}")).collect();
        let width = self.width.unwrap_or(usize::MAX);
        values.iter().flat_map(|value| wrapped(value, width, 2, LINES)).collect()
    }
}

/// The words of a text in lines of this width, all of them indented; a word that is too long is cut in parts.
/// What needs more lines is cut, with an ellipsis.
#[must_use]
pub fn wrapped(text: &str, width: usize, indent: usize, most: usize) -> Vec<String> {
    let room = width.saturating_sub(indent).max(10);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > room {
            lines.push(String::new());
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        }
        while word.len() > room {
            let rest = word.split_off(room);
            lines.last_mut().into_iter().for_each(|line| line.extend(&word));
            lines.push(String::new());
            word = rest;
        }
        lines.last_mut().into_iter().for_each(|line| line.extend(&word));
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(line) = lines.last_mut() {
            while line.chars().count() >= room {
                line.pop();
            }
            line.push('…');
        }
    }
    let before = " ".repeat(indent);
    lines.iter().map(|line| format!("{before}{line}")).collect()
}

/// A table with these names of columns.
#[must_use]
pub fn table<const N: usize>(head: [&'static str; N]) -> Table {
    Table { head: head.to_vec(), rows: Vec::new(), width: width(), together: 1 }
}

/// `--wide`: tables are as wide as what they show.
static WIDE: OnceLock<()> = OnceLock::new();

/// Tables are as wide as what they show.
pub fn be_wide() {
    let _ = WIDE.set(());
}

/// Most characters of a line of a table: `COLUMNS`, or the width of the terminal. None where nothing
/// bounds it, for example in a pipe.
#[must_use]
pub fn width() -> Option<usize> {
    if WIDE.get().is_some() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        let size = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal());
        size.map(|(width, _)| usize::from(width.0))
    };
    columns.or_else(terminal)
}

/// The lines of a table.
#[must_use]
pub fn trimmed(table: &Table) -> String {
    let all = table.head.len();
    let least = all.min(MIN_COLUMNS);
    let apart = |count: &usize| *count == all || *count + table.together <= all || *count == least;
    let tried = (least..=all).rev().filter(apart).map(|count| (count, table.columns(count)));
    let found = tried.into_iter().find(|(count, lines)| *count == least || table.fits(lines));
    let (count, lines) = found.unwrap_or_default();
    let mut text = String::new();
    let is_a_line_each = lines.len() == table.rows.len() + 1;
    for (number, line) in lines.iter().enumerate() {
        text.push_str(line);
        text.push('\n');
        let row = number.checked_sub(1).and_then(|row| table.rows.get(row));
        for below in row.filter(|_| is_a_line_each).map_or(vec![], |row| table.below(row, count)) {
            text.push_str(&below);
            text.push('\n');
        }
    }
    if !is_a_line_each {
        for line in table.rows.iter().flat_map(|row| table.below(row, count)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_go_below_their_row() {
        let mut rows = table(["PEER", "CHANNEL", "QUEUED", "LAST ERROR"]);
        rows.width = Some(30);
        rows.add_row(["act", "routine", "2", "no connection: 10.0.0.1:5100: refused by all"]);
        rows.add_row(["act", "flash", "-", "-"]);
        assert_eq!(
            trimmed(&rows),
            "PEER  CHANNEL  QUEUED\nact   routine  2\n  LAST ERROR: no connection:\n  \
             10.0.0.1:5100: refused by\n  all\nact   flash    -\n"
        );
        rows.width = Some(18);
        assert_eq!(
            trimmed(&rows).lines().take(4).collect::<Vec<_>>(),
            ["PEER  CHANNEL", "act   routine", "  QUEUED: 2", "  LAST ERROR: no"]
        );
        rows.width = Some(30);
        rows.keep_together(2);
        assert!(trimmed(&rows).starts_with("PEER  CHANNEL\nact   routine\n  QUEUED: 2\n"));
        rows.width = None;
        assert!(trimmed(&rows).starts_with("PEER  CHANNEL  QUEUED  LAST ERROR\nact "));
    }

    #[test]
    fn a_long_value_is_wrapped_and_cut() {
        assert_eq!(wrapped("one two three", 10, 2, 3), ["  one two", "  three"]);
        assert_eq!(wrapped("abcdefghijklmno p", 12, 2, 3), ["  abcdefghij", "  klmno p"]);
        assert_eq!(wrapped("a b c d e f g h i j", 12, 2, 1), ["  a b c d e…"]);
    }

    #[test]
    fn a_cell_is_one_line_that_no_terminal_obeys() {
        let mut rows = table(["PEER", "LAST ERROR"]);
        rows.add_row(["act\u{1b}]0;x\u{7}", "it sent \r\nflash  queued\u{9b}2J\u{202e}"]);
        let text = trimmed(&rows);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(|c| shown::is_obeyed(c) && c != '\n'), "{text:?}");
        assert!(text.contains("act\\u{1b}]0;x\\u{7}") && text.contains("\\r\\nflash"), "{text}");
    }
}
