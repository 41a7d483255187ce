//! Tables of what others chose: names in captures, in policies, in the configurations of routers.

use base::shown;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A table of whose cells no terminal obeys anything, each on one line.
pub struct Table(comfy_table::Table);

impl Table {
    /// Without rows.
    #[expect(clippy::new_without_default, reason = "as the table it stands for")]
    pub fn new() -> Table {
        Table(comfy_table::Table::new())
    }

    /// Adds a row.
    pub fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| shown::line(cell.as_ref()).into_owned());
        self.0.add_row(cells);
    }
}

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.0
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_that_no_terminal_obeys() {
        let mut table = Table::new();
        table.add_row(["eth0\u{1b}[2J\nforged", "\u{9b}2J\u{202e}"]);
        let text = table.to_string();
        assert!(text.contains("eth0\\u{1b}[2J\\nforged"), "{text}");
        assert!(!text.contains(|c| shown::is_obeyed(c) && c != '\n'), "{text:?}");
    }
}
