//! Keys of the form.

use base::Precedence;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::compose::{Compose, Field};
use super::dialog::{Dialog, Leave};
use super::{App, Asked, View};
use crate::event::Effect;

impl App {
    pub(super) fn key_of_compose(&mut self, key: KeyEvent, is_control: bool) {
        match key.code {
            KeyCode::Char('s') if is_control => self.check(),
            KeyCode::F(2) => self.check(),
            KeyCode::Esc => self.escape_compose(),
            KeyCode::Char('u') if is_control => {
                if let Some(line) = self.compose.as_mut().and_then(Compose::line_mut) {
                    line.clear_before();
                }
            }
            _ if is_control => {}
            code => {
                let Some(compose) = &mut self.compose else { return };
                if compose.is_sending {
                    return;
                }
                let book = &self.book.items;
                let count = compose.completions(book).len();
                match code {
                    KeyCode::Down if count > 0 => compose.choice = (compose.choice + 1) % count,
                    KeyCode::Up if count > 0 => {
                        compose.choice = (compose.choice + count - 1) % count;
                    }
                    KeyCode::Tab | KeyCode::Enter if count > 0 => _ = compose.complete(book),
                    code => edit(compose, code),
                }
            }
        }
    }

    fn escape_compose(&mut self) {
        let Some(compose) = &mut self.compose else {
            self.leave();
            return;
        };
        if !compose.completions(&self.book.items).is_empty() {
            compose.is_put_away = true;
        } else if compose.has_content() {
            self.dialog = Some(Dialog::Leave(Leave::Back));
        } else {
            self.compose = None;
            self.leave();
        }
    }

    /// Checks the draft before it is sent.
    fn check(&mut self) {
        let Some(compose) = &mut self.compose else { return };
        if compose.is_sending {
            return;
        }
        let draft = compose.draft();
        if draft.to.is_empty() && draft.copy.is_empty() {
            compose.focus = Field::To;
            self.error(
                "no recipient: type an O/R address or a name of the address book".to_owned(),
            );
            return;
        }
        compose.is_sending = true;
        let draft = Box::new(draft);
        self.ask(Asked::Check(draft.clone()), |token| Effect::Check(token, draft));
    }

    pub(super) fn paste(&mut self, text: &str) {
        use super::dialog::Dialog::{Extract, Search};
        if let Some(Extract(_, _, line) | Search(line)) = &mut self.dialog {
            line.insert(text);
            return;
        }
        let is_free = self.view == View::Compose && self.dialog.is_none();
        if let Some(compose) = self.compose.as_mut().filter(|c| is_free && !c.is_sending) {
            let focus = compose.focus;
            match (focus, compose.line_mut()) {
                (_, Some(line)) => line.insert(text),
                (Field::Text, None) => compose.text.insert(text),
                (_, None) => return,
            }
            compose.is_changed = true;
        }
    }
}

/// A key that changes or moves within the form.
fn edit(compose: &mut Compose, code: KeyCode) {
    match code {
        KeyCode::BackTab => return compose.move_focus(-1),
        KeyCode::Tab => return compose.move_focus(1),
        _ => {}
    }
    match compose.focus {
        Field::Precedence | Field::Reports | Field::Body => choose(compose, code),
        Field::Text => edit_text(compose, code),
        _ => edit_line(compose, code),
    }
}

fn choose(compose: &mut Compose, code: KeyCode) {
    match code {
        // Whoever types here means the text: nothing typed makes a generated body.
        KeyCode::Char(_) if compose.focus == Field::Body => {
            compose.begin_text();
            edit_text(compose, code);
        }
        KeyCode::Right | KeyCode::Char(' ') => compose.change(true),
        KeyCode::Left => compose.change(false),
        KeyCode::Down | KeyCode::Enter => compose.move_focus(1),
        KeyCode::Up => compose.move_focus(-1),
        KeyCode::Char(letter) if compose.focus == Field::Precedence => {
            let begins = |p: &Precedence| p.name().starts_with(letter.to_ascii_lowercase());
            // Priority has the letter, as in messages; Precedence::ALL begins with the lowest.
            if let Some(precedence) = Precedence::ALL.into_iter().find(begins) {
                compose.precedence = precedence;
                compose.is_changed = true;
            }
        }
        _ => {}
    }
}

fn edit_line(compose: &mut Compose, code: KeyCode) {
    match code {
        KeyCode::Down | KeyCode::Enter => return compose.move_focus(1),
        KeyCode::Up => return compose.move_focus(-1),
        _ => {}
    }
    let Some(line) = compose.line_mut() else { return };
    match code {
        KeyCode::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => line.backspace(),
        KeyCode::Delete => line.delete(),
        KeyCode::Left => return line.left(),
        KeyCode::Right => return line.right(),
        KeyCode::Home => return line.home(),
        KeyCode::End => return line.end(),
        _ => return,
    }
    (compose.is_changed, compose.is_put_away, compose.choice) = (true, false, 0);
}

fn edit_text(compose: &mut Compose, code: KeyCode) {
    let area = &mut compose.text;
    match code {
        KeyCode::Char(c) => area.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Enter => area.enter(),
        KeyCode::Backspace => area.backspace(),
        KeyCode::Delete => area.delete(),
        KeyCode::Left => return area.left(),
        KeyCode::Right => return area.right(),
        KeyCode::Home => return area.home(),
        KeyCode::End => return area.end(),
        KeyCode::Down => {
            area.move_by(1);
            return;
        }
        KeyCode::PageDown => {
            area.move_by(10);
            return;
        }
        KeyCode::PageUp => {
            area.move_by(-10);
            return;
        }
        KeyCode::Up => {
            if !area.move_by(-1) {
                compose.move_focus(-1);
            }
            return;
        }
        _ => return,
    }
    compose.is_changed = true;
}
