//! Questions, in a box in the middle of the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget as _};

use super::style::{Palette, name};
use super::{put, row};
use crate::state::App;
use crate::state::dialog::{Dialog, Leave};
use crate::state::editor::Line;
use crate::text;

/// Columns of a box, with its border.
const COLUMNS: u16 = 64;

/// Draws it; returns where the cursor is.
pub(super) fn dialog(app: &App, dialog: &Dialog, buffer: &mut Buffer) -> Option<Position> {
    let (title, lines, input, keys) = match dialog {
        Dialog::Help(top) => {
            super::help::help(*top, buffer);
            return None;
        }
        Dialog::Delete(row) => {
            let shown = format!("{} from {}", name(row.precedence), text::line(&row.from));
            let lines = vec![
                shown,
                text::line(&row.subject),
                String::new(),
                "It cannot be brought back.".to_owned(),
            ];
            ("Delete this message?", lines, None, "y delete   n keep")
        }
        Dialog::Send(_, warnings) => {
            let lines = warnings.iter().map(|warning| text::line(warning)).collect();
            ("Before it is sent", lines, None, "y send   n back to the message")
        }
        Dialog::Leave(Leave::Back) => {
            let lines = vec!["This message was not sent.".to_owned()];
            ("Leave it?", lines, None, "k keep as a draft   d discard   Esc go on writing")
        }
        Dialog::Leave(Leave::Quit) => {
            let mut lines = Vec::new();
            if app.drafts() > 0 {
                lines.push(format!("{} not sent, and lost if you quit.", messages(app.drafts())));
            }
            if app.outgoing() > 0 {
                lines.push(format!(
                    "{} being submitted, and may be in doubt.",
                    messages(app.outgoing())
                ));
            }
            ("Quit?", lines, None, "y quit   n stay")
        }
        Dialog::Extract(_, count, line) => {
            let files = if *count == 1 { "a file".to_owned() } else { format!("{count} files") };
            let lines = vec![format!("Write {files} into this directory; nothing is overwritten:")];
            ("Extract", lines, Some(line), "Enter write   Esc leave")
        }
        Dialog::Search(line) => {
            let lines = vec![
                "Messages with this text in the subject, or from such a name of the address book:"
                    .to_owned(),
            ];
            ("Search", lines, Some(line), "Enter search   Esc leave")
        }
    };
    boxed(app, title, &lines, input, keys, buffer)
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message is".to_owned() } else { format!("{count} messages are") }
}

/// A box of a title, lines, a line to fill in, and keys.
fn boxed(
    app: &App,
    title: &str,
    lines: &[String],
    input: Option<&Line>,
    keys: &str,
    buffer: &mut Buffer,
) -> Option<Position> {
    let screen = Rect { x: 0, y: 0, width: app.size.0, height: app.size.1 };
    let width = COLUMNS.min(screen.width);
    let columns = usize::from(width.saturating_sub(4));
    let mut shown: Vec<String> = lines.iter().flat_map(|line| text::wrap(line, columns)).collect();
    let extra = if input.is_some() { 5 } else { 4 };
    shown.truncate(usize::from(screen.height).saturating_sub(extra));
    let height = u16::try_from(shown.len() + extra).unwrap_or(u16::MAX).min(screen.height);
    let area =
        Rect { x: (screen.width - width) / 2, y: (screen.height - height) / 2, width, height };
    Clear.render(area, buffer);
    Block::bordered().title(format!(" {title} ")).render(area, buffer);
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    for (at, line) in shown.iter().enumerate() {
        put(buffer, row(inner, at), &[(line, Style::new())]);
    }
    let last = usize::from(inner.height).saturating_sub(1);
    put(buffer, row(inner, last), &[(keys, Palette::bold())]);
    let input = input?;
    let area = row(inner, shown.len());
    let (view, column) = input.view(usize::from(area.width));
    put(buffer, area, &[(&view, Style::new())]);
    let x = area.x + u16::try_from(column).unwrap_or(0).min(area.width.saturating_sub(1));
    (area.height > 0).then_some(Position { x, y: area.y })
}
