//! All keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget as _};

use super::style::Palette;
use super::{put, put_right, row};
use crate::state::App;

/// Sections with keys and what they do; an empty key begins a section.
const KEYS: &[(&str, &str)] = &[
    ("", "Everywhere"),
    ("1  2  3  Tab", "mailbox, sent items, address book; the next of them"),
    ("c", "write a message, or open the draft that was kept"),
    ("C", "write a new message"),
    ("Ctrl-G", "read the message of the banner (also while you write)"),
    ("Ctrl-X", "put the banner away"),
    ("F5", "look again"),
    ("Ctrl-L", "draw the screen again"),
    ("q  Esc", "back; q in the mailbox quits"),
    ("Ctrl-C", "quit; asks if a message would be lost"),
    ("", "Lists"),
    ("Up Down  k j", "one line"),
    ("PgUp PgDn  b Space", "one screen"),
    ("Home End  g G", "to the first or the last"),
    ("", "Mailbox and reading"),
    ("Enter", "read the selected message"),
    ("n  p", "the next and the previous message, while reading"),
    ("r  R", "answer the originator; all recipients"),
    ("f", "forward it: the message is sent along"),
    ("x", "extract its files into a directory"),
    ("a", "acknowledge: send the notification that was asked for"),
    ("d  Delete", "delete; asks first"),
    ("o", "order by precedence or by arrival"),
    ("u", "unread messages only, or all"),
    ("/", "search originators and subjects; Esc shows all again"),
    ("", "Writing"),
    ("Ctrl-S  F2", "send"),
    ("Tab  Shift-Tab", "the next and the previous field; Tab takes a completion"),
    ("Left Right", "change precedence, reports, and the size of a canned body"),
    ("Ctrl-U", "clear the field up to the cursor"),
    ("Esc", "leave; asks whether to keep or discard the draft"),
    ("", "Marks"),
    ("*", "unread"),
    ("!!!  !!  !", "OVERRIDE, FLASH, IMMEDIATE"),
];

/// Lines by which the help can be scrolled.
pub(crate) fn scrollable(app: &App) -> usize {
    KEYS.len().saturating_sub(usize::from(app.size.1).saturating_sub(2))
}

/// Draws them over the whole screen, from this line on.
pub(super) fn help(top: usize, buffer: &mut Buffer) {
    let area = buffer.area;
    Clear.render(area, buffer);
    Block::bordered().title(" Keys (any other key closes) ").render(area, buffer);
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    let height = usize::from(inner.height);
    for (at, (key, meaning)) in KEYS.iter().skip(top).take(height).enumerate() {
        let area = row(inner, at);
        match key.is_empty() {
            true => _ = put(buffer, area, &[(meaning, Palette::bold())]),
            false => {
                let key = format!("  {key:<20}");
                put(buffer, area, &[(&key, Style::new()), (meaning, Style::new())]);
            }
        }
    }
    if KEYS.len() > height {
        let bottom = Rect { y: area.bottom().saturating_sub(1), height: 1, ..inner };
        let last = (top + height).min(KEYS.len());
        put_right(
            buffer,
            bottom,
            &format!(" {}-{last} of {}: Down, Space ", top + 1, KEYS.len()),
            Palette::bold(),
        );
    }
}
