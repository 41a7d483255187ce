//! The message that is read: its heading and text as lines of the screen.

use crate::model::{Kind, Opened};
use crate::text;

/// Most octets of text that are laid out; the rest is in the file or in `xuxa read`.
const MAX_TEXT: usize = 512 << 10;

/// An opened message, laid out for a width.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) opened: Opened,
    pub(crate) lines: Vec<TextLine>,
    /// The first line on the screen.
    pub(crate) top: usize,
    columns: usize,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextLine {
    /// A label of the heading, and a part of its value. Later parts have an empty label.
    Field(String, String),
    /// Between heading, files and text.
    Rule,
    /// Of the body.
    Text(String),
    /// A remark of the interface.
    Remark(String),
}

impl Reading {
    pub(crate) fn new(opened: Opened, columns: usize) -> Reading {
        let lines = laid_out(&opened, columns);
        Reading { opened, lines, top: 0, columns }
    }

    /// Lays it out anew, where the width is another one; what was on top stays near it.
    pub(crate) fn fit(&mut self, columns: usize, height: usize) {
        if columns != self.columns {
            let before = self.lines.len().max(1);
            self.lines = laid_out(&self.opened, columns);
            self.top = self.top * self.lines.len() / before;
            self.columns = columns;
        }
        self.top = self.top.min(self.lines.len().saturating_sub(height));
    }

    pub(crate) fn scroll_by(&mut self, lines: isize, height: usize) {
        let last = self.lines.len().saturating_sub(height);
        self.top = self.top.saturating_add_signed(lines).min(last);
    }
}

fn laid_out(opened: &Opened, columns: usize) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let longest = opened.fields.iter().map(|(label, _)| text::width(&text::line(label))).max();
    let label_columns = longest.unwrap_or(0).min(22);
    let value_columns = columns.saturating_sub(label_columns + 2).max(10);
    for (label, value) in &opened.fields {
        let mut label = text::cell(&text::line(label), label_columns, '~');
        for line in text::lines(value) {
            for part in text::wrap(&line, value_columns) {
                lines.push(TextLine::Field(std::mem::take(&mut label), part));
            }
        }
    }
    for (number, file) in opened.files.iter().enumerate() {
        let label = if number == 0 { "Files" } else { "" };
        let name = text::fit(&text::line(&file.name), value_columns.saturating_sub(10), '~');
        let shown = format!("{name} ({})", text::size(file.size));
        lines.push(TextLine::Field(text::cell(label, label_columns, '~'), shown));
    }
    lines.push(TextLine::Rule);
    let mut end = opened.text.len().min(MAX_TEXT);
    while !opened.text.is_char_boundary(end) {
        end -= 1;
    }
    let (shown, rest) = opened.text.split_at(end);
    for line in text::lines(shown) {
        lines.extend(text::wrap(&line, columns).into_iter().map(TextLine::Text));
    }
    let left = opened.text_left.saturating_add(rest.len() as u64);
    let remark = match (shown.is_empty(), &opened.row.kind) {
        _ if left > 0 => Some(format!("{} more of this text are not shown", text::size(left))),
        (true, Kind::Message) if opened.files.is_empty() => Some("no text".to_owned()),
        (true, Kind::Message) => Some("no text; x extracts the files".to_owned()),
        _ => None,
    };
    if shown.is_empty() {
        lines.pop_if(|line| *line == TextLine::Text(String::new()));
    }
    lines.extend(remark.map(|text| TextLine::Remark(format!("({text})"))));
    lines
}
