//! Figures as people read them.

use comfy_table::{CellAlignment, Table, TableComponent, presets};

/// With a comma between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table whose columns are aligned to the right, under these headings; with its last line end.
pub(super) fn aligned(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

/// The same for Markdown.
pub(super) fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "--:|".repeat(header.len()));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{rule}{rows}", line(&header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (23_456, "23,456"), (1_000_000, "1,000,000")]
        {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn a_table_for_markdown_has_a_rule_as_wide_as_its_header() {
        let rows = [vec!["1".to_owned(), "2".to_owned()]];
        assert_eq!(markdown(&["a", "b"], &rows), "| a | b |\n|--:|--:|\n| 1 | 2 |\n");
    }
}
