//! Tables with text from outside: names in captures, policies and router configurations.

use base::shown;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A table whose cells are one line each and cannot control a terminal.
pub struct TextTable(comfy_table::Table);

impl TextTable {
    /// Without rows.
    #[expect(clippy::new_without_default, reason = "as the table it stands for")]
    pub fn new() -> TextTable {
        TextTable(comfy_table::Table::new())
    }

    /// Adds a row.
    pub fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| shown::line(cell.as_ref()).into_owned());
        self.0.add_row(cells);
    }
}

impl Deref for TextTable {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.0
    }
}

impl DerefMut for TextTable {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.0
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_and_cannot_control_a_terminal() {
        let mut table = TextTable::new();
        table.add_row(["eth0\u{1b}[2J\nforged", "\u{9b}2J\u{202e}"]);
        let text = table.to_string();
        assert!(text.contains("eth0\\u{1b}[2J\\nforged"), "{text}");
        assert!(!text.contains(|c| shown::is_obeyed(c) && c != '\n'), "{text:?}");
    }
}
