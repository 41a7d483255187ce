//! The form of a message that is being written.

use base::{Precedence, Utc};
use std::path::PathBuf;

use super::editor::{Area, Line};
use crate::draft::{About, Body, CANNED_SIZES, Draft, Reports};
use crate::model::{BookEntry, Opened};

/// Most completions shown.
pub(crate) const MAX_COMPLETIONS: usize = 5;

/// A field of the form, in the order of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    To,
    Copy,
    Precedence,
    Subject,
    Sics,
    Reports,
    Files,
    Body,
    Text,
}

impl Field {
    pub(crate) const ALL: [Field; 9] = [
        Field::To,
        Field::Copy,
        Field::Precedence,
        Field::Subject,
        Field::Sics,
        Field::Reports,
        Field::Files,
        Field::Body,
        Field::Text,
    ];
}

/// The form.
#[derive(Clone, Debug)]
pub(crate) struct Compose {
    pub(crate) identifier: String,
    pub(crate) time: Utc,
    pub(crate) about: About,
    /// The subject of what it answers or passes on.
    pub(crate) focus: Field,
    pub(crate) to: Line,
    pub(crate) copy: Line,
    pub(crate) precedence: Precedence,
    pub(crate) subject: Line,
    pub(crate) sics: Line,
    pub(crate) reports: Reports,
    pub(crate) files: Line,
    /// Which canned size; none: the text.
    pub(crate) canned: Option<usize>,
    pub(crate) text: Area,
    /// Which completion is chosen.
    pub(crate) choice: usize,
    /// The completions were put away for this word.
    pub(crate) is_put_away: bool,
    /// It is being submitted.
    pub(crate) is_sending: bool,
    /// Something was typed or changed.
    pub(crate) is_changed: bool,
}

impl Compose {
    pub(crate) fn new(identifier: String, time: Utc) -> Compose {
        Compose {
            identifier,
            time,
            about: About::Nothing,
            focus: Field::To,
            to: Line::default(),
            copy: Line::default(),
            precedence: Precedence::Routine,
            subject: Line::default(),
            sics: Line::default(),
            reports: Reports::NonDelivery,
            files: Line::default(),
            canned: None,
            text: Area::default(),
            choice: 0,
            is_put_away: false,
            is_sending: false,
            is_changed: false,
        }
    }

    /// Makes it an answer, to the others too if wished.
    pub(crate) fn answer(&mut self, opened: &Opened, to_all: bool) {
        let mut to = opened.answer_to.clone();
        if to_all {
            to.extend(
                opened.others_to.iter().filter(|name| !opened.answer_to.contains(name)).cloned(),
            );
            self.copy = Line::new(&joined(&opened.others_copy));
        }
        self.to = Line::new(&joined(&to));
        self.precedence = opened.row.precedence;
        self.subject = Line::new(&prefixed("Re: ", &opened.row.subject));
        self.about = About::Answer(opened.row.number);
        self.focus = Field::Text;
    }

    /// Makes it pass a message on.
    pub(crate) fn forward(&mut self, opened: &Opened) {
        self.precedence = opened.row.precedence;
        self.subject = Line::new(&prefixed("Fwd: ", &opened.row.subject));
        self.about = About::Forward(opened.row.number);
    }

    /// Whether leaving it would lose something.
    pub(crate) fn has_content(&self) -> bool {
        self.is_changed
    }

    pub(crate) fn draft(&self) -> Draft {
        let body = match self.canned.and_then(|at| CANNED_SIZES.get(at)) {
            Some(size) => Body::Canned(*size),
            None => Body::Text(self.text.text()),
        };
        Draft {
            identifier: self.identifier.clone(),
            time: self.time,
            precedence: self.precedence,
            to: parts(self.to.text()),
            copy: parts(self.copy.text()),
            subject: self.subject.text().trim().to_owned(),
            sics: parts(self.sics.text()),
            reports: self.reports,
            body,
            files: parts(self.files.text()).into_iter().map(PathBuf::from).collect(),
            about: self.about,
        }
    }

    /// The line that has the focus, if it is one.
    pub(crate) fn line_mut(&mut self) -> Option<&mut Line> {
        match self.focus {
            Field::To => Some(&mut self.to),
            Field::Copy => Some(&mut self.copy),
            Field::Subject => Some(&mut self.subject),
            Field::Sics => Some(&mut self.sics),
            Field::Files => Some(&mut self.files),
            Field::Precedence | Field::Reports | Field::Body | Field::Text => None,
        }
    }

    /// Moves the focus by so many fields.
    pub(crate) fn move_focus(&mut self, by: isize) {
        let at = Field::ALL.iter().position(|field| *field == self.focus).unwrap_or(0);
        let count = Field::ALL.len().cast_signed();
        let to = (at.cast_signed() + by).rem_euclid(count);
        self.focus = Field::ALL.get(to.cast_unsigned()).copied().unwrap_or(Field::To);
        (self.choice, self.is_put_away) = (0, false);
        if self.focus == Field::Text && self.canned.is_some() {
            self.move_focus(by.signum());
        }
    }

    /// Changes the value of a field of choices.
    pub(crate) fn change(&mut self, forward: bool) {
        match self.focus {
            Field::Precedence => {
                let number = i64::from(self.precedence.number()) + if forward { 1 } else { -1 };
                self.precedence = Precedence::from_number(number).unwrap_or(self.precedence);
            }
            Field::Reports => {
                self.reports = match (self.reports, forward) {
                    (Reports::NonDelivery, true) | (Reports::Receipt, false) => Reports::Delivery,
                    (Reports::Delivery | Reports::Receipt, true) => Reports::Receipt,
                    (Reports::NonDelivery | Reports::Delivery, false) => Reports::NonDelivery,
                };
            }
            Field::Body => {
                self.canned = match (self.canned, forward) {
                    (None, true) => Some(0),
                    (Some(at), true) => Some((at + 1).min(CANNED_SIZES.len() - 1)),
                    (None | Some(0), false) => None,
                    (Some(at), false) => Some(at - 1),
                };
            }
            _ => return,
        }
        self.is_changed = true;
    }

    /// The body is text, which is being written.
    pub(crate) fn begin_text(&mut self) {
        self.canned = None;
        self.focus = Field::Text;
        self.is_changed = true;
    }

    /// The word of a recipient that is being typed, if the focus is on recipients.
    fn word(&self) -> Option<&str> {
        let line = match self.focus {
            Field::To => &self.to,
            Field::Copy => &self.copy,
            _ => return None,
        };
        let before = line.before();
        let from = last_separator(before).map_or(0, |at| at + 1);
        before.get(from..).map(str::trim_start)
    }

    /// Names of the address book that begin with the word, then those that have it anywhere.
    pub(crate) fn completions<'a>(&self, book: &'a [BookEntry]) -> Vec<&'a BookEntry> {
        let Some(word) = self.word().filter(|word| !word.is_empty() && !self.is_put_away) else {
            return Vec::new();
        };
        let word = word.to_lowercase();
        let is_whole = |entry: &BookEntry| entry.name.to_lowercase() == word;
        if book.iter().any(is_whole) {
            return Vec::new();
        }
        let begins = |entry: &&BookEntry| entry.name.to_lowercase().starts_with(&word);
        let has = |entry: &&BookEntry| {
            let addresses = || entry.addresses.iter().any(|a| a.to_lowercase().contains(&word));
            !begins(entry) && (entry.name.to_lowercase().contains(&word) || addresses())
        };
        book.iter().filter(begins).chain(book.iter().filter(has)).take(MAX_COMPLETIONS).collect()
    }

    /// Puts the chosen completion in place of the word; whether there was one.
    pub(crate) fn complete(&mut self, book: &[BookEntry]) -> bool {
        let completions = self.completions(book);
        let Some(name) =
            completions.get(self.choice).or(completions.first()).map(|e| e.name.clone())
        else {
            return false;
        };
        if let Some(line) = self.line_mut() {
            let before = line.before();
            let kept = last_separator(before).and_then(|at| before.get(..=at)).unwrap_or_default();
            let blank = if kept.is_empty() { "" } else { " " };
            let completed = format!("{kept}{blank}{}", escaped(&name));
            line.set_before(&completed);
        }
        (self.choice, self.is_changed) = (0, true);
        true
    }
}

/// The octet of the last comma that separates.
fn last_separator(text: &str) -> Option<usize> {
    text.char_indices()
        .rev()
        .find(|(at, c)| *c == ',' && !text.get(..*at).is_some_and(|before| before.ends_with('\\')))
        .map(|(at, _)| at)
}

/// A list in one line: commas separate, `\,` is a comma of a value.
fn parts(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, found.last_mut()) {
            (',', _) => found.push(String::new()),
            ('\\', Some(last)) if chars.peek() == Some(&',') => {
                last.push(',');
                chars.next();
            }
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    found.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn escaped(value: &str) -> String {
    value.replace(',', "\\,")
}

fn joined(values: &[String]) -> String {
    values.iter().map(|value| escaped(value)).collect::<Vec<_>>().join(", ")
}

fn prefixed(prefix: &str, subject: &str) -> String {
    let begins = subject.to_lowercase().starts_with(&prefix.trim_end().to_lowercase());
    if begins { subject.to_owned() } else { format!("{prefix}{subject}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Vec<BookEntry> {
        let entry = |name: &str, address: &str| BookEntry {
            name: name.to_owned(),
            addresses: vec![address.to_owned()],
            is_group: false,
        };
        vec![
            entry("act-ops", "/C=IT/ADMD=NET/PRMD=ACT/S=OPS"),
            entry("naples", "/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS"),
            entry("the actuary", "/C=BE/ADMD=NET/S=X"),
        ]
    }

    fn typed(text: &str) -> Compose {
        let mut compose = Compose::new("1".to_owned(), Utc::default());
        compose.to.insert(text);
        compose
    }

    #[test]
    fn a_comma_separates_and_an_escaped_one_does_not() {
        assert_eq!(parts(" a, b\\, c ,,d"), ["a", "b, c", "d"]);
        assert_eq!(parts(&joined(&["x,y".to_owned(), "z".to_owned()])), ["x,y", "z"]);
        assert_eq!(parts(" , "), [""; 0]);
    }

    #[test]
    fn a_word_is_completed_from_the_book() {
        let book = book();
        let names = |text: &str| -> Vec<String> {
            typed(text).completions(&book).iter().map(|e| e.name.clone()).collect()
        };
        assert_eq!(names("ac"), ["act-ops", "the actuary"]);
        assert_eq!(names("x, NAP"), ["naples"]);
        assert_eq!(names("naples"), [""; 0], "it is whole");
        assert_eq!(names("prmd=nap"), ["naples"], "found by its address");
        assert_eq!(names(""), [""; 0]);

        let mut compose = typed("naples, ac");
        compose.choice = 1;
        assert!(compose.complete(&book));
        assert_eq!(compose.to.text(), "naples, the actuary");
        assert!(!compose.complete(&book));
        assert_eq!(compose.draft().to, ["naples", "the actuary"]);
    }

    #[test]
    fn what_is_typed_where_the_body_is_chosen_is_its_text() {
        let mut compose = typed("");
        compose.focus = Field::Body;
        compose.change(true);
        assert!(matches!(compose.draft().body, Body::Canned(_)));
        compose.begin_text();
        assert_eq!((compose.focus, compose.draft().body), (Field::Text, Body::Text(String::new())));
    }

    #[test]
    fn choices_stop_at_their_ends_and_the_text_of_a_canned_body_is_skipped() {
        let mut compose = typed("");
        compose.focus = Field::Precedence;
        for _ in 0..9 {
            compose.change(true);
        }
        assert_eq!(compose.precedence, Precedence::Override);
        compose.focus = Field::Body;
        for _ in 0..9 {
            compose.change(true);
        }
        assert_eq!(compose.draft().body, Body::Canned(10_000_000));
        compose.move_focus(1);
        assert_eq!(compose.focus, Field::To);
        compose.move_focus(-1);
        assert_eq!(compose.focus, Field::Body);
        for _ in 0..9 {
            compose.change(false);
        }
        compose.move_focus(1);
        assert_eq!((compose.focus, compose.canned), (Field::Text, None));
    }
}
