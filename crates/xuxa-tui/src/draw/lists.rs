//! The mailbox, the sent items, the address book, and the banner of an alert.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::layout::{Layout, split_rows};
use super::style::{Palette, mark, name};
use super::{CUT, put, put_right, row, rule};
use crate::event::Connection;
use crate::model::{Kind, Order, Row, Sent, SentState};
use crate::state::{App, View};
use crate::text;

/// Columns of mark and name of a precedence.
const PRECEDENCE: usize = 13;
/// Columns of the originator.
const FROM: usize = 16;
/// Columns of a date-time group, whole and without its year.
const DTG: usize = 14;
const SHORT_DTG: usize = 11;
/// From this width on the year is shown.
const ROOMY: usize = 90;
const SIZE: usize = 6;

/// A message that interrupts.
pub(super) fn banner(app: &App, alert: &Row, area: Rect, buffer: &mut Buffer) {
    let style = app.palette.precedence(alert.precedence);
    let more = match app.alerts.len() {
        1 => String::new(),
        all => format!("(+{}) ", all - 1),
    };
    let keys = format!(" {more}Ctrl-G read  Ctrl-X put away ");
    let (from, subject) = (text::line(&alert.from), text::line(&alert.subject));
    let shown = format!(
        " {} {} from {from}: {subject}",
        mark(alert.precedence).trim_start(),
        name(alert.precedence)
    );
    let columns = usize::from(area.width).saturating_sub(text::width(&keys));
    let line = format!("{}{keys}", text::cell(&shown, columns, CUT));
    put(buffer, area, &[(&line, style)]);
}

/// The mailbox, or what there is of it.
pub(super) fn mailbox(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let mailbox = &app.mailbox;
    let (head, rows) = split_rows(layout.list, 2);
    mailbox_head(app, row(head, 0), buffer);
    let width = usize::from(layout.list.width);
    put(buffer, row(head, 1), &[(&column_heads(width), Palette::dim())]);
    let visible = mailbox.rows.iter().enumerate().skip(mailbox.top);
    for (at, (index, item)) in visible.take(usize::from(rows.height)).enumerate() {
        // While a message is read, it is the one that is marked, if the list has it.
        let is_selected = match (app.view, app.shown_reading()) {
            (View::Reading, Some(reading)) => item.number == reading.opened.row.number,
            _ => index == mailbox.selected,
        };
        message(app, item, is_selected, row(rows, at), buffer);
    }
    if mailbox.rows.is_empty() {
        let (shown, hint) = empty_list(app);
        put(buffer, row(rows, 1), &[("  ", Style::new()), (shown, Style::new())]);
        put(buffer, row(rows, 2), &[("  ", Style::new()), (hint, Palette::dim())]);
    }
}

fn mailbox_head(app: &App, area: Rect, buffer: &mut Buffer) {
    let mailbox = &app.mailbox;
    let order = match mailbox.query.order {
        Order::Precedence => " Mailbox by precedence",
        Order::Arrival => " Mailbox by arrival",
    };
    let mut filter = String::new();
    if mailbox.query.unread_only {
        filter.push_str("  unread only (u)");
    }
    if !mailbox.query.search.is_empty() {
        filter.push_str(&format!("  with \"{}\" (Esc: all)", text::line(&mailbox.query.search)));
    }
    let counts = mailbox.counts;
    let mut right = match mailbox.is_loaded {
        true => format!(
            "{} messages, {} unread ",
            text::count(counts.total),
            text::count(counts.unread)
        ),
        false => String::new(),
    };
    if app.drafts() > 0 {
        let plural = if app.drafts() == 1 { "draft" } else { "drafts" };
        right = format!("{} {plural} (c)  {right}", app.drafts());
    }
    put(buffer, area, &[(order, Palette::bold()), (&filter, Palette::bold())]);
    put_right(buffer, area, &right, Style::new());
}

/// Columns of the subject, and of the date-time group.
fn flexible(width: usize) -> (usize, usize) {
    let dtg = if width >= ROOMY { DTG } else { SHORT_DTG };
    (width.saturating_sub(4 + PRECEDENCE + 1 + FROM + 1 + 1 + dtg + 1 + SIZE + 1), dtg)
}

fn column_heads(width: usize) -> String {
    let (subject, dtg) = flexible(width);
    format!(
        "    {} {} {} {} {:>SIZE$}",
        text::cell("  Precedence", PRECEDENCE, CUT),
        text::cell("From", FROM, CUT),
        text::cell("Subject", subject, CUT),
        text::cell("Delivered", dtg, CUT),
        "Size"
    )
}

fn message(app: &App, item: &Row, is_selected: bool, area: Rect, buffer: &mut Buffer) {
    let (subject, dtg) = flexible(usize::from(area.width));
    let mut style = if item.is_unread { Palette::bold() } else { Style::new() };
    if is_selected {
        style = style.patch(Palette::selected());
    }
    let marks = match (is_selected, item.is_unread) {
        (true, true) => "> * ",
        (true, false) => ">   ",
        (false, true) => "  * ",
        (false, false) => "    ",
    };
    let precedence = format!("{} {}", mark(item.precedence), name(item.precedence));
    let line = format!("{}{}", of_kind(item.kind), text::line(&item.subject));
    let rest = format!(
        " {} {} {} {:>SIZE$} ",
        text::cell(&text::line(&item.from), FROM, CUT),
        text::cell(&line, subject, CUT),
        text::cell(&text::dtg(item.time), DTG, CUT).chars().take(dtg).collect::<String>(),
        text::size(item.size)
    );
    let of_precedence = text::cell(&precedence, PRECEDENCE, CUT);
    let own = app.palette.precedence(item.precedence);
    let own = if own == Style::new() { style } else { own };
    put(buffer, area, &[(marks, style), (&of_precedence, own), (&rest, style)]);
}

fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Message => "",
        Kind::Report => "[report] ",
        Kind::Delivery => "[delivered] ",
        Kind::NonDelivery => "[NOT DELIVERED] ",
        Kind::Notification => "[notification] ",
    }
}

/// Why there is no row, and what to do.
fn empty_list(app: &App) -> (&'static str, &'static str) {
    let query = &app.mailbox.query;
    match (&app.connection, app.mailbox.is_loading) {
        (Connection::Connecting, _) => ("Binding to the message store ...", ""),
        (Connection::Lost { .. }, _) => (
            "No association with the message store.",
            "It is tried again; sent items (2) are shown without it.",
        ),
        (Connection::Refused(_), _) => {
            ("The message store refused the bind.", "Correct the profile, and start again.")
        }
        (Connection::Bound, true) => ("Listing ...", ""),
        _ if !query.search.is_empty() => ("No message has this text.", "Esc shows all messages."),
        _ if query.unread_only => ("No unread messages.", "u shows all messages."),
        _ => ("The mailbox is empty.", "c writes a message; what arrives is shown at once."),
    }
}

/// Sent items, and the recipients of the selected one.
pub(super) fn sent(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let (head, rest) = split_rows(layout.body, 2);
    put(buffer, row(head, 0), &[(" Sent items", Palette::bold())]);
    let width = usize::from(layout.body.width);
    let subject = width.saturating_sub(2 + PRECEDENCE + 1 + FROM + 1 + 1 + DTG + 1 + 11 + 1);
    let heads = format!(
        "  {} {} {} {} {}",
        text::cell("  Precedence", PRECEDENCE, CUT),
        text::cell("To", FROM, CUT),
        text::cell("Subject", subject, CUT),
        text::cell("Submitted", DTG, CUT),
        "State"
    );
    put(buffer, row(head, 1), &[(&heads, Palette::dim())]);
    let rows = u16::try_from(layout.sent_rows()).unwrap_or(u16::MAX);
    let (list, details) = split_rows(rest, rows);
    for (at, (index, item)) in
        app.sent.items.iter().enumerate().skip(app.sent.top).take(layout.sent_rows()).enumerate()
    {
        let is_selected = index == app.sent.selected;
        sent_item(app, item, is_selected, subject, row(list, at), buffer);
    }
    if app.sent.items.is_empty() {
        let shown = if app.sent.is_loaded {
            "  Nothing was sent yet; c writes a message."
        } else {
            "  ..."
        };
        put(buffer, row(list, 1), &[(shown, Style::new())]);
    }
    rule(buffer, row(details, 0));
    let (_, details) = split_rows(details, 1);
    if let Some(item) = app.sent.chosen() {
        recipients(app, item, details, buffer);
    }
}

fn sent_item(
    app: &App,
    item: &Sent,
    is_selected: bool,
    subject: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let style = if is_selected { Palette::selected() } else { Style::new() };
    let precedence = format!("{} {}", mark(item.precedence), name(item.precedence));
    let first = item.recipients.first().map(|(name, _)| text::line(name)).unwrap_or_default();
    let to = match item.recipients.len() {
        0 | 1 => first,
        all => format!("{} +{}", text::fit(&first, FROM - 4, CUT), all - 1),
    };
    let rest = format!(
        " {} {} {} ",
        text::cell(&to, FROM, CUT),
        text::cell(&text::line(&item.subject), subject, CUT),
        text::cell(&text::dtg(item.time), DTG, CUT)
    );
    let state = item.state();
    let own = app.palette.precedence(item.precedence);
    let own = if own == Style::new() { style } else { own };
    let precedence = text::cell(&precedence, PRECEDENCE, CUT);
    let word = text::cell(state.word(), 12, CUT);
    let pieces = [
        (if is_selected { "> " } else { "  " }, style),
        (precedence.as_str(), own),
        (rest.as_str(), style),
        (word.as_str(), state_style(app, &state).patch(style)),
    ];
    put(buffer, area, &pieces);
}

fn state_style(app: &App, state: &SentState) -> Style {
    match state {
        SentState::Failed(_) | SentState::InDoubt => app.palette.error(),
        SentState::Delivered | SentState::Read => app.palette.good(),
        SentState::Accepted | SentState::Transferred => Style::new(),
    }
}

fn recipients(app: &App, item: &Sent, area: Rect, buffer: &mut Buffer) {
    let mut lines: Vec<(String, Style)> = Vec::new();
    let head = format!(
        " {}  {}  content identifier {}",
        text::dtg(item.time),
        text::size(item.size),
        text::line(&item.identifier)
    );
    lines.push((head, Palette::dim()));
    let columns = usize::from(area.width).saturating_sub(3);
    for (name, state) in &item.recipients {
        let reason = match state {
            SentState::Failed(reason) => format!(": {}", text::line(reason)),
            SentState::InDoubt => {
                ": send the same message again; the MTA accepts it once".to_owned()
            }
            _ => String::new(),
        };
        let line = format!("{}  {}{reason}", text::line(name), state.word());
        for (number, part) in text::wrap(&line, columns).into_iter().enumerate() {
            let indent = if number == 0 { " " } else { "   " };
            lines.push((format!("{indent}{part}"), state_style(app, state)));
        }
    }
    let left = lines.len().saturating_sub(usize::from(area.height));
    for (at, (line, style)) in lines.iter().take(usize::from(area.height)).enumerate() {
        put(buffer, row(area, at), &[(line, *style)]);
    }
    if left > 0 {
        put_right(
            buffer,
            row(area, usize::from(area.height).saturating_sub(1)),
            &format!(" {left} more lines "),
            Palette::bold(),
        );
    }
}

/// The address book.
pub(super) fn book(app: &App, layout: &Layout, buffer: &mut Buffer) {
    debug_assert_eq!(app.view, View::Book);
    let (head, rows) = split_rows(layout.body, 2);
    put(buffer, row(head, 0), &[(" Address book", Palette::bold())]);
    put(buffer, row(head, 1), &[("  Name                 Address", Palette::dim())]);
    let visible = app.book.items.iter().enumerate().skip(app.book.top);
    for (at, (index, entry)) in visible.take(layout.book_rows()).enumerate() {
        let is_selected = index == app.book.selected;
        let style = if is_selected { Palette::selected() } else { Style::new() };
        let addresses: Vec<String> = entry.addresses.iter().map(|a| text::line(a)).collect();
        let shown = match entry.is_group {
            true => format!("group of {}: {}", addresses.len(), addresses.join(", ")),
            false => addresses.join(", "),
        };
        let columns = usize::from(rows.width).saturating_sub(24);
        let line = format!(
            "{} {} {}",
            if is_selected { ">" } else { " " },
            text::cell(&text::line(&entry.name), 20, CUT),
            text::cell(&shown, columns, CUT)
        );
        put(buffer, row(rows, at), &[(&line, style)]);
    }
    if app.book.items.is_empty() {
        let shown = if app.book.is_loaded {
            "  The address book is empty: docs/xuxa.md shows how to fill it."
        } else {
            "  ..."
        };
        put(buffer, row(rows, 1), &[(shown, Style::new())]);
    }
}
