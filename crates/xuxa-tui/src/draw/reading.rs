//! The message that is read.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::layout::Layout;
use super::style::{Palette, mark, name};
use super::{put, put_right, row, rule};
use crate::state::reading::TextLine;
use crate::state::{App, View};
use crate::text;

pub(super) fn reading(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let area = layout.reading;
    let head = Rect { y: area.y.saturating_sub(1), height: 1, ..area };
    if layout.is_wide {
        for y in layout.body.top()..layout.body.bottom() {
            let at = Rect { x: area.x - 2, y, width: 1, height: 1 };
            put(buffer, at, &[("│", Palette::dim())]);
        }
    }
    let Some(reading) = app.shown_reading() else {
        put(buffer, row(area, 1), &[("Enter shows the selected message here.", Palette::dim())]);
        return;
    };
    let opened = &reading.opened;
    let height = usize::from(area.height);
    let last = (reading.top + height).min(reading.lines.len());
    let place = match reading.lines.len() > height {
        true => format!(" {}-{last} of {} ", reading.top + 1, reading.lines.len()),
        false => String::new(),
    };
    let precedence =
        format!(" {} {} ", mark(opened.row.precedence).trim_start(), name(opened.row.precedence));
    let subject = format!(" {}", text::line(&opened.row.subject));
    let columns = area.width.saturating_sub(u16::try_from(place.len()).unwrap_or(0));
    let focused = if app.view == View::Reading { Palette::bold() } else { Style::new() };
    let pieces = [
        (precedence.as_str(), app.palette.precedence(opened.row.precedence)),
        (subject.as_str(), focused),
    ];
    put(buffer, Rect { width: columns, ..head }, &pieces);
    put_right(buffer, head, &place, Palette::dim());
    for (at, line) in reading.lines.iter().skip(reading.top).take(height).enumerate() {
        let area = row(area, at);
        match line {
            TextLine::Field(label, value) => {
                let label = text::cell(label, label_columns(&reading.lines), ' ');
                put(
                    buffer,
                    area,
                    &[(&label, Palette::dim()), ("  ", Style::new()), (value, Style::new())],
                );
            }
            TextLine::Rule => rule(buffer, area),
            TextLine::Text(line) => _ = put(buffer, area, &[(line, Style::new())]),
            TextLine::Remark(line) => _ = put(buffer, area, &[(line, Palette::dim())]),
        }
    }
}

fn label_columns(lines: &[TextLine]) -> usize {
    let label = |line: &TextLine| match line {
        TextLine::Field(label, _) => text::width(label),
        _ => 0,
    };
    lines.first().map_or(0, label)
}
