//! Keys of questions.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;

use super::dialog::{Dialog, Leave};
use super::editor::Line;
use super::keys::movement;
use super::{App, Asked, View};
use crate::event::Effect;

impl App {
    pub(super) fn key_of_dialog(&mut self, key: KeyEvent) {
        let Some(dialog) = self.dialog.take() else { return };
        let code = key.code;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match dialog {
            Dialog::Help(top) => match movement(code, 10) {
                0 => {}
                lines => {
                    let last = crate::draw::help::scrollable(self);
                    self.dialog = Some(Dialog::Help(top.saturating_add_signed(lines).min(last)));
                }
            },
            Dialog::Delete(row) => match code {
                KeyCode::Char('y') => {
                    if self.is_bound() {
                        let number = row.number;
                        self.ask(Asked::Delete(number), |token| Effect::Delete(token, number));
                    }
                }
                KeyCode::Char('n') | KeyCode::Esc | KeyCode::Char('q') => {}
                _ => self.dialog = Some(Dialog::Delete(row)),
            },
            Dialog::Send(draft, warnings) => match code {
                KeyCode::Char('y') => self.submit(),
                KeyCode::Char('n') | KeyCode::Esc => {}
                _ => self.dialog = Some(Dialog::Send(draft, warnings)),
            },
            Dialog::Leave(leave) => self.key_of_leave(leave, code),
            Dialog::Extract(number, count, mut line) => match edit(&mut line, code, is_control) {
                Edited::Entered => {
                    let directory = line.text().trim().to_owned();
                    let path = if directory.is_empty() { ".".to_owned() } else { directory };
                    self.directory.clone_from(&path);
                    if self.is_bound() {
                        let path = PathBuf::from(path);
                        self.ask(Asked::Extract, |token| Effect::Extract(token, number, path));
                    }
                }
                Edited::Escaped => {}
                Edited::Changed => self.dialog = Some(Dialog::Extract(number, count, line)),
            },
            Dialog::Search(mut line) => match edit(&mut line, code, is_control) {
                Edited::Entered => {
                    line.text().trim().clone_into(&mut self.mailbox.query.search);
                    self.another_list();
                }
                Edited::Escaped => {}
                Edited::Changed => self.dialog = Some(Dialog::Search(line)),
            },
        }
    }

    fn key_of_leave(&mut self, leave: Leave, code: KeyCode) {
        match (leave, code) {
            (Leave::Back, KeyCode::Char('k')) => {
                self.kept.extend(self.compose.take());
                self.leave_compose();
                self.info("the draft is kept: c opens it again".to_owned());
            }
            (Leave::Back, KeyCode::Char('d')) => {
                self.compose = None;
                self.leave_compose();
                self.info("the draft is discarded".to_owned());
            }
            (Leave::Quit, KeyCode::Char('y')) => self.effects.push(Effect::Quit),
            (Leave::Quit, KeyCode::Char('n')) | (_, KeyCode::Esc) => {}
            _ => self.dialog = Some(Dialog::Leave(leave)),
        }
    }

    fn leave_compose(&mut self) {
        if self.view == View::Compose {
            self.leave();
        }
    }
}

enum Edited {
    Entered,
    Escaped,
    Changed,
}

fn edit(line: &mut Line, code: KeyCode, is_control: bool) -> Edited {
    match code {
        KeyCode::Enter => return Edited::Entered,
        KeyCode::Esc => return Edited::Escaped,
        KeyCode::Char('u') if is_control => line.clear_before(),
        KeyCode::Char(_) if is_control => {}
        KeyCode::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => line.backspace(),
        KeyCode::Delete => line.delete(),
        KeyCode::Left => line.left(),
        KeyCode::Right => line.right(),
        KeyCode::Home => line.home(),
        KeyCode::End => line.end(),
        _ => {}
    }
    Edited::Changed
}
