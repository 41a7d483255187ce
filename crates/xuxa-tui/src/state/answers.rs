//! What the answers to effects do.

use crate::backend::BackendError;
use crate::event::{Answer, Effect, Token};
use crate::model::{Kind, Opened, Receipt};
use crate::text;

use super::compose::Compose;
use super::dialog::Dialog;
use super::editor::Line;
use super::reading::Reading;
use super::{App, Asked, Then, View};

impl App {
    pub(super) fn answered(&mut self, token: Token, answer: Result<Answer, BackendError>) {
        let Some((asked, _)) = self.pending.remove(&token) else { return };
        match answer {
            Ok(answer) => self.succeeded(asked, answer),
            Err(error) => self.failed(asked, &error),
        }
    }

    fn succeeded(&mut self, asked: Asked, answer: Answer) {
        match (asked, answer) {
            (Asked::List { from, generation }, Answer::Page(page)) => {
                if generation == self.mailbox.generation {
                    self.mailbox.apply(&from, page);
                }
            }
            (Asked::Urgent, Answer::Page(page)) => self.listed_urgent(page.rows),
            (Asked::Count, Answer::Counts(counts)) => self.mailbox.counts = counts,
            (Asked::Open(_, then), Answer::Opened(opened)) => self.opened(*opened, then),
            (Asked::Extract, Answer::Extracted(paths)) => {
                let names: Vec<_> =
                    paths.iter().map(|path| text::line(&path.to_string_lossy())).collect();
                self.info(match names.as_slice() {
                    [] => "the message has no files".to_owned(),
                    [one] => format!("written: {one}"),
                    all => format!("{} files written: {}", all.len(), all.join(", ")),
                });
            }
            (Asked::Delete(number), Answer::Deleted) => {
                self.forget(number);
                self.info("deleted".to_owned());
            }
            (Asked::Check(draft), Answer::Checked(warnings)) => {
                if let Some(compose) = self.compose.as_mut() {
                    compose.is_sending = false;
                }
                match warnings.is_empty() {
                    true => self.submit(),
                    false => self.dialog = Some(Dialog::Send(draft, warnings)),
                }
            }
            (Asked::Submit(compose), Answer::Submitted) => {
                let subject = text::line(compose.subject.text());
                let named = if subject.is_empty() { String::new() } else { format!(": {subject}") };
                self.info(format!("the MTA accepted the message{named}"));
                if self.sent.is_loaded {
                    self.ask_sent();
                }
            }
            (Asked::Acknowledge(number), Answer::Acknowledged) => {
                self.info("acknowledged: the originator gets a notification of receipt".to_owned());
                if let Some(reading) = &mut self.reading
                    && reading.opened.row.number == number
                {
                    reading.opened.receipt = Receipt::Sent;
                }
            }
            (Asked::Sent, Answer::Sent(sent)) => self.sent.set(sent),
            (Asked::Book, Answer::Book(book)) => self.book.set(book),
            (asked, _) => debug_assert!(false, "an answer of another kind to {asked:?}"),
        }
    }

    fn failed(&mut self, asked: Asked, error: &BackendError) {
        match asked {
            Asked::List { generation, .. } if generation == self.mailbox.generation => {
                self.mailbox.is_loading = false;
                // Without it every key would ask again: the next bind or F5 lists anew.
                self.mailbox.at_end |= !matches!(error, BackendError::Lost(_));
            }
            Asked::Delete(number) | Asked::Open(number, _)
                if *error == BackendError::Gone(number) =>
            {
                self.forget(number);
            }
            Asked::Check(_) => {
                if let Some(compose) = self.compose.as_mut() {
                    compose.is_sending = false;
                }
            }
            Asked::Submit(compose) => {
                self.not_sent(*compose, error);
                return;
            }
            _ => {}
        }
        self.error(error.to_string());
    }

    /// A draft that was not accepted is kept, and shown again where nothing else is written.
    fn not_sent(&mut self, mut compose: Compose, error: &BackendError) {
        compose.is_sending = false;
        let is_free = self.compose.is_none() && self.view != View::Reading;
        match is_free {
            true => {
                self.compose = Some(compose);
                self.enter(View::Compose);
                self.error(format!("NOT SENT: {error}"));
            }
            false => {
                self.kept.push(compose);
                self.error(format!("NOT SENT: {error} (it is kept: c in the mailbox opens it)"));
            }
        }
    }

    /// The message is not in the mailbox any more.
    fn forget(&mut self, number: u64) {
        self.mailbox.remove(number);
        self.alerts.retain(|row| row.number != number);
        if self.reading.as_ref().is_some_and(|reading| reading.opened.row.number == number) {
            self.reading = None;
            if self.view == View::Reading {
                self.leave();
            }
        }
    }

    fn opened(&mut self, opened: Opened, then: Then) {
        let number = opened.row.number;
        self.mailbox.read(number);
        self.alerts.retain(|row| row.number != number);
        let columns = usize::from(self.layout().reading.width);
        self.reading = Some(Reading::new(opened, columns));
        match then {
            Then::Show => {
                // The keys may have moved the selection since.
                self.mailbox.select(number);
                self.enter(View::Reading);
            }
            then => self.act_on_opened(then),
        }
    }

    /// Does this with the message that is opened.
    pub(super) fn act_on_opened(&mut self, then: Then) {
        let Some(reading) = &self.reading else { return };
        let opened = reading.opened.clone();
        match then {
            Then::Show => self.enter(View::Reading),
            Then::Answer { .. } if opened.answer_to.is_empty() => {
                self.error("nobody to answer: a report has no originator".to_owned());
            }
            Then::Answer { to_all } => {
                let mut compose = self.new_compose();
                compose.answer(&opened, to_all);
                self.open_compose(compose);
            }
            Then::Forward => {
                let mut compose = self.new_compose();
                compose.forward(&opened);
                self.open_compose(compose);
            }
            Then::Extract if opened.files.is_empty() => {
                self.info("this message has no files".to_owned());
            }
            Then::Extract => {
                let line = Line::new(&self.directory);
                let dialog = Dialog::Extract(opened.row.number, opened.files.len(), line);
                self.dialog = Some(dialog);
            }
            Then::Acknowledge => self.acknowledge(&opened),
        }
    }

    /// Sends the notification of receipt, if there is one to send.
    fn acknowledge(&mut self, opened: &Opened) {
        let number = opened.row.number;
        let mut pending = self.pending.values();
        let is_asked = |asked: &Asked| matches!(asked, Asked::Acknowledge(of) if *of == number);
        match (opened.receipt, opened.row.kind) {
            (Receipt::Asked, _) if pending.any(|(asked, _)| is_asked(asked)) => {
                self.info("the notification of receipt is being sent".to_owned());
            }
            (Receipt::Asked, _) => {
                self.ask(Asked::Acknowledge(number), |token| Effect::Acknowledge(token, number));
            }
            (Receipt::Sent, _) => {
                self.info("acknowledged already: a notification of receipt was sent".to_owned());
            }
            (Receipt::NotAsked, Kind::Message) => {
                let text = "the originator did not ask for a notification; r answers instead";
                self.info(text.to_owned());
            }
            (Receipt::NotAsked, _) => {
                self.info("only a message is acknowledged, no report or notification".to_owned());
            }
        }
    }

    /// Submits the form that is open, and goes back; a failure brings it again.
    pub(super) fn submit(&mut self) {
        let Some(mut compose) = self.compose.take() else { return };
        compose.is_sending = true;
        let draft = Box::new(compose.draft());
        self.ask(Asked::Submit(Box::new(compose)), |token| Effect::Submit(token, draft));
        if self.view == View::Compose {
            self.leave();
        }
        self.back.retain(|view| *view != View::Compose);
        self.info("the message is being submitted; you can go on working".to_owned());
    }

    pub(super) fn ask_sent(&mut self) {
        self.ask(Asked::Sent, |token| Effect::Sent(token, super::SENT_ITEMS));
    }
}
