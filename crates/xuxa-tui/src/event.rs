//! What the core takes and gives: events and effects.

use base::Utc;
use ratatui::crossterm::event::KeyEvent;
use std::path::PathBuf;

use crate::backend::BackendError;
use crate::draft::Draft;
use crate::model::{BookEntry, Counts, From, Number, Opened, Page, Query, Row, Sent};

/// Pairs an effect with its answer.
pub type Token = u64;

/// The state of the association with the message store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It is being opened.
    Connecting,
    /// Bound.
    Bound,
    /// It ended, or could not be opened; it is tried again in this many seconds.
    Lost {
        /// Why.
        reason: String,
        /// Seconds from now.
        retry_in: u64,
    },
    /// It was refused for good.
    Refused(String),
}

/// The answer to an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Effect::List`].
    Page(Page),
    /// To [`Effect::Count`].
    Counts(Counts),
    /// To [`Effect::Open`].
    Opened(Box<Opened>),
    /// To [`Effect::Extract`]: the files written.
    Extracted(Vec<PathBuf>),
    /// To [`Effect::Delete`].
    Deleted,
    /// To [`Effect::Check`]: what to know before it is sent.
    Checked(Vec<String>),
    /// To [`Effect::Submit`].
    Submitted,
    /// To [`Effect::Acknowledge`].
    Acknowledged,
    /// To [`Effect::Sent`].
    Sent(Vec<Sent>),
    /// To [`Effect::Book`].
    Book(Vec<BookEntry>),
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// Text that was pasted.
    Paste(String),
    /// The terminal has this many columns and rows.
    Resized(u16, u16),
    /// The time, at least each second.
    Tick(Utc),
    /// The association changed.
    Connection(Connection),
    /// An entry arrived.
    Alert(Row),
    /// An effect ended.
    Answered(Token, Result<Answer, BackendError>),
    /// Somebody ends the program (a signal): no question is asked.
    Stop,
}

/// What the core asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A page of the mailbox.
    List(Token, Query, From, usize),
    /// How many messages there are.
    Count(Token),
    /// A message.
    Open(Token, Number),
    /// The files of a message, into a directory.
    Extract(Token, Number, PathBuf),
    /// Delete an entry.
    Delete(Token, Number),
    /// What to know before this is submitted.
    Check(Token, Box<Draft>),
    /// Submit.
    Submit(Token, Box<Draft>),
    /// Send the notification of receipt.
    Acknowledge(Token, Number),
    /// The latest messages sent.
    Sent(Token, usize),
    /// The address book.
    Book(Token),
    /// Ring the terminal's bell.
    Bell,
    /// Draw everything anew.
    Redraw,
    /// End.
    Quit,
}
