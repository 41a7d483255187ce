//! Where things are on the screen. The state scrolls with it, and the drawing draws with it.

use ratatui::layout::Rect;

use crate::state::{App, View};

/// From this width on the message is read beside the list.
const WIDE: u16 = 140;
/// Columns of the list beside a message.
const LIST: u16 = 80;
/// Rows of the form above its text: its head, eight fields, and a rule.
pub(crate) const FORM_ROWS: u16 = 10;
/// Columns of the labels of the form.
pub(crate) const LABELS: u16 = 13;

/// The parts of the screen; any of them may be empty on a very small one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) title: Rect,
    /// Of the most urgent alert; empty without one.
    pub(crate) banner: Rect,
    /// Between title and notice.
    pub(crate) body: Rect,
    pub(crate) notice: Rect,
    pub(crate) keys: Rect,
    /// The list with its two rows of head.
    pub(crate) list: Rect,
    /// A message has its head in the row above.
    pub(crate) reading: Rect,
    /// The text of the form.
    pub(crate) text: Rect,
    pub(crate) is_wide: bool,
}

/// The first rows of an area, and the rest.
pub(crate) fn split_rows(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let first = Rect { height: rows, ..area };
    let rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    (first, rest)
}

impl Layout {
    pub(crate) fn new(app: &App) -> Layout {
        let (width, height) = app.size;
        let screen = Rect { x: 0, y: 0, width, height };
        let (title, rest) = split_rows(screen, 1);
        let (banner, rest) = split_rows(rest, u16::from(!app.alerts.is_empty()));
        let (body, foot) = split_rows(rest, rest.height.saturating_sub(2));
        let (notice, keys) = split_rows(foot, foot.height.saturating_sub(1));
        let is_wide = width >= WIDE;
        let list = if is_wide { Rect { width: LIST, ..body } } else { body };
        let pane = match is_wide {
            true => Rect { x: LIST + 3, width: width - LIST - 4, ..body },
            false => body,
        };
        let (_, reading) = split_rows(pane, 1);
        let (_, text) = split_rows(body, FORM_ROWS);
        Layout { title, banner, body, notice, keys, list, reading, text, is_wide }
    }

    /// Whether the message has a place of its own in this view.
    pub(crate) fn shows_reading(&self, view: View) -> bool {
        view == View::Reading || self.is_wide && view == View::Mailbox
    }

    /// Rows of messages on the screen.
    pub(crate) fn list_rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(2)).max(1)
    }

    /// Rows of sent items; below them are the recipients of the selected one.
    pub(crate) fn sent_rows(&self) -> usize {
        (usize::from(self.body.height.saturating_sub(3)) * 3 / 5).max(1)
    }

    /// Rows of the address book.
    pub(crate) fn book_rows(&self) -> usize {
        usize::from(self.body.height.saturating_sub(2)).max(1)
    }
}
