//! Keys of the mailbox, the reading pane, the sent items and the address book.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::dialog::{Dialog, Leave};
use super::editor::Line;
use super::{App, Asked, Then, View};
use crate::event::{Connection, Effect};
use crate::model::{From, Number};

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.notice = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.quit(),
            KeyCode::Char('l') if is_control => self.effects.push(Effect::Redraw),
            _ if self.dialog.is_some() => self.key_of_dialog(key),
            KeyCode::Char('g') if is_control => self.open_alert(),
            KeyCode::Char('x') if is_control => _ = self.alerts.pop_front(),
            KeyCode::F(1) => self.dialog = Some(Dialog::Help(0)),
            _ if self.view == View::Compose => self.key_of_compose(key, is_control),
            _ if is_control => {}
            code => self.key_of_lists(code),
        }
    }

    fn key_of_lists(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('?') => self.dialog = Some(Dialog::Help(0)),
            KeyCode::Char('q') if self.view == View::Mailbox => self.quit(),
            KeyCode::Char('q') | KeyCode::Esc if self.view != View::Mailbox => self.leave(),
            KeyCode::Char('1') => self.show(View::Mailbox),
            KeyCode::Char('2') => self.show(View::Sent),
            KeyCode::Char('3') => self.show(View::Book),
            KeyCode::Tab => self.show(match self.view {
                View::Mailbox | View::Reading | View::Compose => View::Sent,
                View::Sent => View::Book,
                View::Book => View::Mailbox,
            }),
            KeyCode::F(5) => self.list_again(),
            KeyCode::Char('c') => {
                let kept = self.compose.take().or_else(|| self.kept.pop());
                let compose = kept.unwrap_or_else(|| self.new_compose());
                self.open_compose(compose);
            }
            KeyCode::Char('C') => {
                let compose = self.new_compose();
                self.open_compose(compose);
            }
            code => match self.view {
                View::Mailbox => self.key_of_mailbox(code),
                View::Reading => self.key_of_reading(code),
                View::Sent => {
                    let page = self.layout().sent_rows();
                    self.sent.move_by(movement(code, page));
                }
                View::Book => self.key_of_book(code),
                View::Compose => {}
            },
        }
    }

    /// Another of the three lists, with nothing to go back to but the mailbox.
    fn show(&mut self, view: View) {
        self.back.clear();
        if view != View::Mailbox {
            self.back.push(View::Mailbox);
        }
        self.view = view;
        match view {
            View::Sent => self.ask_sent(),
            View::Book => self.ask(Asked::Book, Effect::Book),
            View::Mailbox | View::Reading | View::Compose => {}
        }
    }

    fn list_again(&mut self) {
        match self.view {
            View::Sent => self.ask_sent(),
            View::Book => self.ask(Asked::Book, Effect::Book),
            View::Mailbox | View::Reading | View::Compose => {
                if self.is_bound() {
                    self.refresh();
                }
            }
        }
    }

    fn key_of_mailbox(&mut self, code: KeyCode) {
        let page = self.layout().list_rows();
        match code {
            KeyCode::Home | KeyCode::Char('g') if !self.mailbox.at_start => self.list(From::Top),
            KeyCode::Home | KeyCode::Char('g') => self.mailbox.select_first(),
            KeyCode::End | KeyCode::Char('G') if !self.mailbox.at_end => self.list(From::Bottom),
            KeyCode::End | KeyCode::Char('G') => self.mailbox.select_last(),
            KeyCode::Enter | KeyCode::Right => self.with_selected(Then::Show),
            KeyCode::Char('o') => {
                self.mailbox.toggle_order();
                self.another_list();
            }
            KeyCode::Char('u') => {
                self.mailbox.query.unread_only ^= true;
                self.another_list();
            }
            KeyCode::Char('/') => {
                let line = Line::new(&self.mailbox.query.search);
                self.dialog = Some(Dialog::Search(line));
            }
            KeyCode::Esc if !self.mailbox.query.search.is_empty() => {
                self.mailbox.query.search.clear();
                self.another_list();
            }
            code => match action(code) {
                Some(then) => self.with_selected(then),
                None if matches!(code, KeyCode::Char('d') | KeyCode::Delete) => {
                    self.dialog = self.mailbox.selected_row().cloned().map(Dialog::Delete);
                }
                None => self.mailbox.move_by(movement(code, page)),
            },
        }
    }

    /// The list for a changed query: from its top, with its first row selected.
    pub(super) fn another_list(&mut self) {
        if self.is_bound() {
            self.list(From::Top);
        }
    }

    fn key_of_reading(&mut self, code: KeyCode) {
        let page = usize::from(self.layout().reading.height);
        match code {
            KeyCode::Char('n') => self.open_neighbour(1),
            KeyCode::Char('p') => self.open_neighbour(-1),
            KeyCode::Left => self.leave(),
            KeyCode::Char('d') | KeyCode::Delete => {
                let row = self.reading.as_ref().map(|reading| reading.opened.row.clone());
                self.dialog = row.map(Dialog::Delete);
            }
            code => match (action(code), &mut self.reading) {
                (Some(then), _) => self.act_on_opened(then),
                (None, Some(reading)) => reading.scroll_by(movement(code, page), page),
                (None, None) => {}
            },
        }
    }

    fn key_of_book(&mut self, code: KeyCode) {
        let page = self.layout().book_rows();
        match code {
            KeyCode::Enter => {
                let Some(name) = self.book.chosen().map(|entry| entry.name.clone()) else { return };
                let mut compose = self.new_compose();
                compose.to = Line::new(&name.replace(',', "\\,"));
                compose.focus = super::compose::Field::Subject;
                self.open_compose(compose);
            }
            code => self.book.move_by(movement(code, page)),
        }
    }

    /// Opens the message beside the one that is read.
    fn open_neighbour(&mut self, by: isize) {
        if let Some(reading) = &self.reading {
            let number = reading.opened.row.number;
            self.mailbox.select(number);
        }
        let before = self.mailbox.selected;
        self.mailbox.move_by(by);
        match self.mailbox.selected == before {
            true => self.info("no other message in this direction".to_owned()),
            false => self.with_selected(Then::Show),
        }
    }

    fn with_selected(&mut self, then: Then) {
        let Some(number) = self.mailbox.selected_row().map(|row| row.number) else {
            self.info("no message is selected".to_owned());
            return;
        };
        // What is shown beside the list was fetched already.
        let is_opened = self.reading.as_ref().is_some_and(|r| r.opened.row.number == number);
        match is_opened {
            true => self.act_on_opened(then),
            false => self.open(number, then),
        }
    }

    fn open(&mut self, number: Number, then: Then) {
        if self.is_bound() {
            // Only the message that was asked for last is shown.
            self.pending.retain(|_, (asked, _)| !matches!(asked, Asked::Open(..)));
            self.ask(Asked::Open(number, then), |token| Effect::Open(token, number));
        }
    }

    /// Opens the most urgent message of the banner.
    fn open_alert(&mut self) {
        let Some(number) = self.alerts.front().map(|row| row.number) else { return };
        if self.view == View::Book || self.view == View::Sent {
            self.show(View::Mailbox);
        }
        self.mailbox.select(number);
        self.open(number, Then::Show);
    }

    /// Whether there is an association; if not, a notice explains it.
    pub(super) fn is_bound(&mut self) -> bool {
        match &self.connection {
            Connection::Bound => return true,
            Connection::Connecting => self.info("not yet bound to the message store".to_owned()),
            Connection::Lost { reason, .. } => {
                self.error(format!("no association with the message store: {reason}"));
            }
            Connection::Refused(reason) => self.error(reason.clone()),
        }
        false
    }

    /// Ends, unless something would be lost: then it asks.
    pub(super) fn quit(&mut self) {
        let is_asked = matches!(self.dialog, Some(Dialog::Leave(Leave::Quit)));
        match self.drafts() + self.outgoing() > 0 && !is_asked {
            true => self.dialog = Some(Dialog::Leave(Leave::Quit)),
            false if is_asked => {}
            false => self.effects.push(Effect::Quit),
        }
    }
}

/// What a key does with a message, in the list and while it is read.
fn action(code: KeyCode) -> Option<Then> {
    match code {
        KeyCode::Char('r') => Some(Then::Answer { to_all: false }),
        KeyCode::Char('R') => Some(Then::Answer { to_all: true }),
        KeyCode::Char('f') => Some(Then::Forward),
        KeyCode::Char('x') => Some(Then::Extract),
        KeyCode::Char('a') => Some(Then::Acknowledge),
        _ => None,
    }
}

/// Lines that a key moves by; 0 for other keys.
pub(super) fn movement(code: KeyCode, page: usize) -> isize {
    let page = page.saturating_sub(1).max(1).cast_signed();
    match code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::PageUp | KeyCode::Char('b') => -page,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => 0,
    }
}
