//! Drawing. Every string that others chose passes through [`crate::text`] before it comes here.

mod compose;
mod dialogs;
pub(crate) mod help;
pub(crate) mod layout;
mod lists;
mod reading;
pub(crate) mod style;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::event::Connection;
use crate::state::{App, View};
use crate::text;
use layout::Layout;
use style::Palette;

/// Ends what is cut.
pub(crate) const CUT: char = '…';
/// Seconds after which a wait is shown.
const SHOWN_WAIT: u64 = 2;

/// Writes pieces from the left of an area's first row, and returns the columns used.
pub(crate) fn put(buffer: &mut Buffer, area: Rect, pieces: &[(&str, Style)]) -> u16 {
    let mut used = 0;
    if area.height == 0 {
        return 0;
    }
    for (piece, style) in pieces {
        let left = usize::from(area.width.saturating_sub(used));
        let piece = text::fit(piece, left, CUT);
        if left > 0 {
            buffer.set_stringn(area.x + used, area.y, &piece, left, *style);
        }
        used += u16::try_from(text::width(&piece)).unwrap_or(u16::MAX).min(area.width - used);
    }
    used
}

/// Writes a text at the right of an area's first row.
pub(crate) fn put_right(buffer: &mut Buffer, area: Rect, piece: &str, style: Style) {
    let piece = text::fit(piece, usize::from(area.width), CUT);
    let columns = u16::try_from(text::width(&piece)).unwrap_or(u16::MAX).min(area.width);
    let at = Rect { x: area.x + area.width - columns, width: columns, ..area };
    put(buffer, at, &[(&piece, style)]);
}

/// A row of an area; empty beyond its end.
pub(crate) fn row(area: Rect, at: usize) -> Rect {
    let at = u16::try_from(at).unwrap_or(u16::MAX).min(area.height);
    Rect { y: area.y + at, height: (area.height - at).min(1), ..area }
}

/// A horizontal line.
pub(crate) fn rule(buffer: &mut Buffer, area: Rect) {
    let line = "─".repeat(usize::from(area.width));
    put(buffer, area, &[(&line, Palette::dim())]);
}

/// Draws the whole screen.
pub(crate) fn draw(app: &App, frame: &mut Frame<'_>) {
    let layout = app.layout();
    let buffer = frame.buffer_mut();
    // Between a resize of the terminal and its event the two may differ.
    let screen = buffer.area;
    if layout.title.width > screen.width || layout.keys.bottom() > screen.height {
        put(buffer, screen, &[("...", Style::new())]);
        return;
    }
    title(app, &layout, buffer);
    if let Some(alert) = app.alerts.front() {
        lists::banner(app, alert, layout.banner, buffer);
    }
    let mut cursor = None;
    match app.view {
        View::Mailbox | View::Reading => {
            if layout.is_wide || app.view == View::Mailbox {
                lists::mailbox(app, &layout, buffer);
            }
            if layout.shows_reading(app.view) {
                reading::reading(app, &layout, buffer);
            }
        }
        View::Compose => cursor = compose::compose(app, &layout, buffer),
        View::Sent => lists::sent(app, &layout, buffer),
        View::Book => lists::book(app, &layout, buffer),
    }
    notice(app, &layout, buffer);
    keys(app, layout.keys, buffer);
    if let Some(dialog) = &app.dialog {
        cursor = dialogs::dialog(app, dialog, buffer);
    }
    app.palette.reduce(buffer);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

fn title(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let (state, style) = connection(app);
    let right = format!("{state}  {}", text::dtg(app.now));
    let columns = text::width(&right).min(usize::from(layout.title.width));
    let width = layout.title.width - u16::try_from(columns).unwrap_or(0);
    let user = format!(" {} ", text::line(&app.who.user));
    let name = format!(" {} ", text::line(&app.who.profile));
    let pieces = [(name.as_str(), Palette::selected()), (user.as_str(), Palette::bold())];
    put(buffer, Rect { width: width.saturating_sub(1), ..layout.title }, &pieces);
    put_right(buffer, layout.title, &right, style);
}

/// The association in a few words.
fn connection(app: &App) -> (String, Style) {
    let seconds = |since: base::Utc| app.now.0.saturating_sub(since.0) / 1_000_000;
    let server = text::line(&app.who.server);
    match &app.connection {
        Connection::Bound => {
            let oldest = app.pending.values().map(|(_, since)| seconds(*since)).max();
            let outgoing = app.outgoing();
            match oldest.filter(|wait| *wait >= SHOWN_WAIT) {
                Some(wait) if outgoing > 0 => (format!("submitting, {wait} s"), Palette::bold()),
                Some(wait) => (format!("waiting for an answer, {wait} s"), Palette::bold()),
                None => (format!("bound to {server}"), app.palette.good()),
            }
        }
        Connection::Connecting => (format!("binding to {server}"), Palette::bold()),
        Connection::Lost { retry_in, .. } => {
            let left = retry_in.saturating_sub(seconds(app.connection_since));
            (format!("NOT BOUND, tried again in {left} s"), app.palette.error())
        }
        Connection::Refused(_) => ("BIND REFUSED".to_owned(), app.palette.error()),
    }
}

/// The notice in the row above the keys; a long one takes rows of the body.
fn notice(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let (shown, style) = match (&app.notice, &app.connection) {
        (Some(notice), _) if notice.is_error => (notice.text.as_str(), app.palette.error()),
        (Some(notice), _) => (notice.text.as_str(), Palette::bold()),
        (None, Connection::Lost { reason, .. } | Connection::Refused(reason)) => {
            (reason.as_str(), app.palette.error())
        }
        (None, _) => return,
    };
    let columns = usize::from(layout.notice.width.saturating_sub(2));
    let lines: Vec<String> =
        text::lines(shown).iter().flat_map(|l| text::wrap(l, columns)).collect();
    let count = lines.len().min(usize::from(layout.body.height / 2) + 1);
    let Ok(extra) = u16::try_from(count.saturating_sub(1)) else { return };
    let area = Rect {
        y: layout.notice.y.saturating_sub(extra),
        height: layout.notice.height.saturating_add(extra),
        ..layout.notice
    };
    ratatui::widgets::Widget::render(ratatui::widgets::Clear, area, buffer);
    for (at, line) in lines.iter().take(count).enumerate() {
        put(buffer, row(area, at), &[(" ", style), (line, style)]);
    }
}

/// The keys that are used most here.
fn keys(app: &App, area: Rect, buffer: &mut Buffer) {
    let keys = match app.view {
        View::Mailbox => {
            "Enter read  r reply  f forward  x extract  d delete  c write  / search  ? help"
        }
        View::Reading => {
            "q back  n p next  r R reply  f forward  x extract  d delete  a ack  ? help"
        }
        View::Compose => "Ctrl-S send  Tab next field  Shift-Tab previous  Esc leave  F1 help",
        View::Sent => "Up Down choose  F5 look again  Tab address book  q back  ? help",
        View::Book => "Enter write to  Up Down choose  Tab mailbox  q back  ? help",
    };
    put(buffer, area, &[(" ", Palette::dim()), (keys, Palette::dim())]);
}
