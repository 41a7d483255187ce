//! Editing of text: one line, or several that are wrapped on the screen.
//!
//! Positions count clusters of characters, so that nobody stands within an accent.

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::text;

/// Most octets of a text that is typed; a longer one is sent as a file.
const MAX_TEXT: usize = 1 << 20;

/// How a cluster is shown: what a terminal would obey is written out.
fn shown(cluster: &str) -> String {
    text::line(cluster)
}

/// Pasted text without control characters; line ends become LF, tabulators blanks.
fn cleaned(pasted: &str) -> String {
    let pasted = pasted.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    pasted.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

/// The octet at which cluster `column` begins.
fn offset(line: &str, column: usize) -> usize {
    line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at)
}

fn length(line: &str) -> usize {
    line.graphemes(true).count()
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
    cursor: usize,
}

impl Line {
    pub(crate) fn new(text: &str) -> Line {
        Line { text: text.to_owned(), cursor: length(text) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What stands before the cursor.
    pub(crate) fn before(&self) -> &str {
        self.text.get(..offset(&self.text, self.cursor)).unwrap_or_default()
    }

    /// Replaces all before the cursor.
    pub(crate) fn set_before(&mut self, before: &str) {
        let rest = self.text.split_off(offset(&self.text, self.cursor));
        self.text = format!("{before}{rest}");
        self.cursor = length(before);
    }

    pub(crate) fn insert(&mut self, pasted: &str) {
        let pasted = cleaned(pasted).replace('\n', " ");
        if self.text.len() + pasted.len() <= MAX_TEXT {
            self.text.insert_str(offset(&self.text, self.cursor), &pasted);
            self.cursor = (self.cursor + length(&pasted)).min(length(&self.text));
        }
    }

    pub(crate) fn backspace(&mut self) {
        if self.cursor > 0 {
            self.cursor -= 1;
            self.delete();
        }
    }

    pub(crate) fn delete(&mut self) {
        let range = offset(&self.text, self.cursor)..offset(&self.text, self.cursor + 1);
        self.text.replace_range(range, "");
    }

    /// Deletes all before the cursor.
    pub(crate) fn clear_before(&mut self) {
        self.set_before("");
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    pub(crate) fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(length(&self.text));
    }

    pub(crate) fn home(&mut self) {
        self.cursor = 0;
    }

    pub(crate) fn end(&mut self) {
        self.cursor = length(&self.text);
    }

    /// What is shown in this many columns, scrolled so that the cursor is in it, and its column.
    pub(crate) fn view(&self, columns: usize) -> (String, usize) {
        let columns = columns.max(2);
        let before: Vec<String> = self.before().graphemes(true).map(shown).collect();
        let mut from = before.len();
        let mut used = 0;
        for cluster in before.iter().rev() {
            used += text::width(cluster);
            if used + 1 > columns {
                break;
            }
            from -= 1;
        }
        let head: String = before.iter().skip(from).map(String::as_str).collect();
        let column = text::width(&head);
        let mut out = head;
        let after = self.text.get(offset(&self.text, self.cursor)..).unwrap_or_default();
        let mut used = column;
        for cluster in after.graphemes(true).map(shown) {
            used += text::width(&cluster);
            if used > columns {
                break;
            }
            out.push_str(&cluster);
        }
        (out, column)
    }
}

/// Several lines, with a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    lines: Vec<String>,
    row: usize,
    column: usize,
    /// The first row of the screen that is shown.
    pub(crate) top: usize,
    /// Columns of the screen, for movements by rows.
    pub(crate) columns: usize,
}

impl Default for Area {
    fn default() -> Area {
        Area::new("")
    }
}

impl Area {
    pub(crate) fn new(text: &str) -> Area {
        let lines = text.split('\n').map(str::to_owned).collect();
        Area { lines, row: 0, column: 0, top: 0, columns: 78 }
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(String::is_empty)
    }

    fn line(&self) -> &str {
        self.lines.get(self.row).map_or("", String::as_str)
    }

    pub(crate) fn insert(&mut self, pasted: &str) {
        let total: usize = self.lines.iter().map(|line| line.len() + 1).sum();
        let pasted = cleaned(pasted);
        if total + pasted.len() > MAX_TEXT {
            return;
        }
        for (number, part) in pasted.split('\n').enumerate() {
            if number > 0 {
                self.enter();
            }
            let (column, row) = (self.column, self.row);
            if let Some(line) = self.lines.get_mut(row) {
                line.insert_str(offset(line, column), part);
                self.column = (column + length(part)).min(length(line));
            }
        }
    }

    pub(crate) fn enter(&mut self) {
        let (row, column) = (self.row, self.column);
        let Some(line) = self.lines.get_mut(row) else { return };
        let rest = line.split_off(offset(line, column));
        self.lines.insert(row + 1, rest);
        (self.row, self.column) = (row + 1, 0);
    }

    pub(crate) fn backspace(&mut self) {
        if self.column > 0 || self.row > 0 {
            self.left();
            self.delete();
        }
    }

    pub(crate) fn delete(&mut self) {
        let (row, column) = (self.row, self.column);
        if column < length(self.line()) {
            if let Some(line) = self.lines.get_mut(row) {
                line.replace_range(offset(line, column)..offset(line, column + 1), "");
            }
        } else if row + 1 < self.lines.len() {
            let next = self.lines.remove(row + 1);
            if let Some(line) = self.lines.get_mut(row) {
                line.push_str(&next);
            }
        }
    }

    pub(crate) fn left(&mut self) {
        if self.column > 0 {
            self.column -= 1;
        } else if self.row > 0 {
            self.row -= 1;
            self.column = length(self.line());
        }
    }

    pub(crate) fn right(&mut self) {
        if self.column < length(self.line()) {
            self.column += 1;
        } else if self.row + 1 < self.lines.len() {
            (self.row, self.column) = (self.row + 1, 0);
        }
    }

    pub(crate) fn home(&mut self) {
        self.column = 0;
    }

    pub(crate) fn end(&mut self) {
        self.column = length(self.line());
    }

    /// Moves by rows of the screen; whether it moved.
    pub(crate) fn move_by(&mut self, rows: isize) -> bool {
        let ranges = self.ranges();
        let at = self.screen_row(&ranges);
        let to = at.saturating_add_signed(rows).min(ranges.len().saturating_sub(1));
        let (Some((_, from)), Some((row, range))) = (ranges.get(at), ranges.get(to)) else {
            return false;
        };
        let within = self.column.saturating_sub(from.start);
        let last = match range.end == self.lines.get(*row).map_or(0, |line| length(line)) {
            true => range.end,
            false => range.end.saturating_sub(1),
        };
        (self.row, self.column) = (*row, (range.start + within).min(last));
        to != at
    }

    /// Each row of the screen: its line, and the clusters of it.
    fn ranges(&self) -> Vec<(usize, Range<usize>)> {
        let lines = self.lines.iter().enumerate();
        lines
            .flat_map(|(row, line)| segments(line, self.columns).into_iter().map(move |r| (row, r)))
            .collect()
    }

    fn screen_row(&self, ranges: &[(usize, Range<usize>)]) -> usize {
        let is_before =
            |(row, range): &&(usize, Range<usize>)| (*row, range.start) <= (self.row, self.column);
        ranges.iter().take_while(is_before).count().saturating_sub(1)
    }

    /// Scrolls so that the cursor is on a screen of this size.
    pub(crate) fn scroll(&mut self, columns: usize, height: usize) {
        self.columns = columns.max(2);
        let at = self.screen_row(&self.ranges());
        self.top = self.top.min(at).max((at + 1).saturating_sub(height.max(1)));
    }

    /// The rows that are shown, and the cursor among them: column, row.
    pub(crate) fn view(&self, height: usize) -> (Vec<String>, (usize, usize)) {
        let ranges = self.ranges();
        let rows = ranges.iter().skip(self.top).take(height).map(|(row, range)| {
            let line = self.lines.get(*row).map_or("", String::as_str);
            line.graphemes(true).skip(range.start).take(range.len()).map(shown).collect()
        });
        let at = self.screen_row(&ranges);
        let start = ranges.get(at).map_or(0, |(_, range)| range.start);
        let before =
            self.line().graphemes(true).skip(start).take(self.column - start.min(self.column));
        let column = before.map(|cluster| text::width(&shown(cluster))).sum();
        (rows.collect(), (column, at.saturating_sub(self.top)))
    }
}

/// The parts of a line that stand in a row of the screen each, divided at blanks where there are any.
/// One column is left for the cursor.
fn segments(line: &str, columns: usize) -> Vec<Range<usize>> {
    let columns = columns.saturating_sub(1).max(1);
    let mut found = Vec::new();
    let (mut start, mut used) = (0, 0);
    // After the last blank: its position, and the columns up to there.
    let mut blank: Option<(usize, usize)> = None;
    let mut count = 0;
    for (at, cluster) in line.graphemes(true).enumerate() {
        let wide = text::width(&shown(cluster));
        if used + wide > columns && at > start {
            let (end, taken) = blank.take().unwrap_or((at, used));
            found.push(start..end);
            (start, used) = (end, used - taken);
        }
        used += wide;
        if cluster == " " {
            blank = Some((at + 1, used));
        }
        count = at + 1;
    }
    found.push(start..count);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_edited_by_clusters() {
        let mut line = Line::new("e\u{301}日");
        line.left();
        line.backspace();
        assert_eq!(line.text(), "日");
        line.insert("a\nb\u{1b}");
        assert_eq!(line.text(), "a b日");
        line.end();
        line.backspace();
        line.home();
        line.delete();
        assert_eq!(line.text(), " b");
    }

    #[test]
    fn the_cursor_of_a_long_line_stays_in_view() {
        let mut line = Line::new(&"x".repeat(100));
        let (text, column) = line.view(10);
        assert_eq!((text.as_str(), column), ("xxxxxxxxx", 9));
        line.home();
        assert_eq!(line.view(10), ("xxxxxxxxxx".to_owned(), 0));
    }

    #[test]
    fn text_is_wrapped_and_edited_across_lines() {
        let mut area = Area::new("");
        area.insert("one two three\nfour");
        area.scroll(9, 10);
        assert_eq!(area.view(10).0, ["one two ", "three", "four"]);
        assert!(area.move_by(-1));
        area.home();
        area.backspace();
        assert_eq!(area.text(), "one two three\nfour");
        area.end();
        area.delete();
        assert_eq!(area.text(), "one two threefour");
        area.enter();
        assert_eq!(area.text(), "one two three\nfour");
        assert!(!area.move_by(1) || area.text().len() == 18);
    }

    proptest! {
        #[test]
        fn any_keys_keep_the_cursor_inside(keys in proptest::collection::vec((0..9_u8, any::<String>()), 0..40)) {
            let mut area = Area::new("");
            for (key, text) in keys {
                match key {
                    0 => area.insert(&text),
                    1 => area.backspace(),
                    2 => area.delete(),
                    3 => area.left(),
                    4 => area.right(),
                    5 => _ = area.move_by(1),
                    6 => _ = area.move_by(-3),
                    7 => area.enter(),
                    _ => area.home(),
                }
                area.scroll(12, 3);
                let (rows, (column, row)) = area.view(3);
                prop_assert!(row < rows.len() && area.column <= length(area.line()));
                prop_assert!(column <= text::width(&rows[row]));
                for row in rows {
                    prop_assert!(text::width(&row) <= 12 || row.contains("\\u{"), "{row}");
                }
            }
        }
    }
}
