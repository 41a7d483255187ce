//! The form of a message that is being written.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::layout::{LABELS, Layout, split_rows};
use super::style::{Palette, mark, name};
use super::{CUT, put, put_right, row, rule};
use crate::draft::{About, CANNED_SIZES, Reports};
use crate::state::App;
use crate::state::compose::{Compose, Field};
use crate::state::editor::Line;
use crate::text;

/// Draws it; returns where the cursor is.
pub(super) fn compose(app: &App, layout: &Layout, buffer: &mut Buffer) -> Option<Position> {
    let form = app.compose.as_ref()?;
    let (head, fields) = split_rows(layout.body, 1);
    let title = match form.about {
        About::Nothing => " Write a message".to_owned(),
        About::Answer(number) => format!(" Answer to message {number}"),
        About::Forward(number) => format!(" Forward message {number}, which is sent along"),
    };
    put(buffer, head, &[(&title, Palette::bold())]);
    if form.is_sending {
        put_right(buffer, head, "checking ... ", Palette::bold());
    }
    let mut cursor = None;
    for (at, field) in Field::ALL.into_iter().take(8).enumerate() {
        let area = row(fields, at);
        let is_focused = field == form.focus;
        let (label, hint) = labels(field);
        let style = if is_focused { Palette::bold() } else { Palette::dim() };
        let label = format!("{} {}", if is_focused { ">" } else { " " }, label);
        put(buffer, area, &[(&text::cell(&label, usize::from(LABELS), CUT), style)]);
        let value = Rect {
            x: area.x + LABELS.min(area.width),
            width: area.width.saturating_sub(LABELS + 1),
            ..area
        };
        match line(form, field) {
            Some(line) if line.is_empty() && !is_focused => {
                put(buffer, value, &[(hint, Palette::dim())]);
            }
            Some(line) => {
                let (shown, column) = line.view(usize::from(value.width));
                put(buffer, value, &[(&shown, Style::new())]);
                if is_focused && value.height > 0 {
                    cursor = Some(at_column(value, column));
                }
            }
            None => choice(app, form, field, is_focused, value, buffer),
        }
    }
    rule(buffer, row(fields, 8));
    let area = layout.text;
    match form.canned {
        Some(_) => {
            let hint = " generated text (Left and Right choose its size)";
            put(buffer, row(area, 0), &[(hint, Palette::dim())]);
        }
        None => {
            let (rows, (column, at)) = form.text.view(usize::from(area.height));
            for (at, line) in rows.iter().enumerate() {
                put(buffer, row(area, at), &[(line, Style::new())]);
            }
            if form.text.is_empty() && form.focus != Field::Text {
                put(buffer, row(area, 0), &[("(text)", Palette::dim())]);
            }
            if form.focus == Field::Text && area.height > 0 {
                cursor = Some(at_column(row(area, at), column));
            }
        }
    }
    completions(app, form, fields, buffer);
    cursor
}

fn at_column(area: Rect, column: usize) -> Position {
    let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    Position { x: area.x + column, y: area.y }
}

fn labels(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::To => ("To", "recipients for action: names or O/R addresses, separated by commas"),
        Field::Copy => ("Info", "recipients for information"),
        Field::Precedence => ("Precedence", ""),
        Field::Subject => ("Subject", ""),
        Field::Sics => ("SIC", "subject indicator codes, separated by commas"),
        Field::Reports => ("Reports", ""),
        Field::Files => ("Files", "paths of files to send along, separated by commas"),
        Field::Body | Field::Text => ("Body", ""),
    }
}

fn line(form: &Compose, field: Field) -> Option<&Line> {
    match field {
        Field::To => Some(&form.to),
        Field::Copy => Some(&form.copy),
        Field::Subject => Some(&form.subject),
        Field::Sics => Some(&form.sics),
        Field::Files => Some(&form.files),
        Field::Precedence | Field::Reports | Field::Body | Field::Text => None,
    }
}

/// A field that is chosen with the arrow keys.
fn choice(
    app: &App,
    form: &Compose,
    field: Field,
    is_focused: bool,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (value, style) = match field {
        Field::Precedence => {
            let mark = mark(form.precedence).trim_start();
            let blank = if mark.is_empty() { "" } else { " " };
            let shown = format!("{mark}{blank}{}", name(form.precedence));
            (shown, app.palette.precedence(form.precedence))
        }
        Field::Reports => {
            let shown = match form.reports {
                Reports::NonDelivery => "of a non-delivery only",
                Reports::Delivery => "of each delivery",
                Reports::Receipt => "of each delivery, and a notification when it is read",
            };
            (shown.to_owned(), Style::new())
        }
        _ => {
            let size = form.canned.and_then(|at| CANNED_SIZES.get(at));
            (
                size.map_or("text".to_owned(), |size| format!("canned, {}", text::size(*size))),
                Style::new(),
            )
        }
    };
    let (left, right) = if is_focused { ("< ", " >") } else { ("", "") };
    let keys = match (is_focused, field) {
        (false, _) => "",
        (true, Field::Precedence) => "   arrows, or the first letter",
        (true, _) => "   arrows",
    };
    let pieces = [
        (left, Palette::bold()),
        (&value, style),
        (right, Palette::bold()),
        (keys, Palette::dim()),
    ];
    put(buffer, area, &pieces);
}

/// Names of the address book, under the field.
fn completions(app: &App, form: &Compose, fields: Rect, buffer: &mut Buffer) {
    let found = form.completions(&app.book.items);
    let Some(at) = Field::ALL.iter().position(|field| *field == form.focus) else { return };
    for (number, entry) in found.iter().enumerate() {
        let area = row(fields, at + 1 + number);
        let area = Rect {
            x: area.x + LABELS.min(area.width),
            width: area.width.saturating_sub(LABELS),
            ..area
        };
        let is_chosen = number == form.choice.min(found.len() - 1);
        let style = if is_chosen { Palette::selected() } else { Style::new() };
        let addresses: Vec<String> = entry.addresses.iter().map(|a| text::line(a)).collect();
        let shown = format!(
            "{} {} {}",
            if is_chosen { ">" } else { "|" },
            text::cell(&text::line(&entry.name), 16, CUT),
            addresses.join(", ")
        );
        let line = text::cell(&shown, usize::from(area.width), CUT);
        put(buffer, area, &[(&line, style)]);
    }
}
