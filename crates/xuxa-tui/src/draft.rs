//! A message that is being written.

use base::{Precedence, Utc};
use std::path::PathBuf;

use crate::model::Number;

/// Most octets of canned text that the interface offers.
pub const CANNED_SIZES: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 5_000_000, 10_000_000];

/// The body of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// This text.
    Text(String),
    /// Generated text of this many octets.
    Canned(u64),
}

/// Which reports the originator asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// Non-delivery reports only.
    #[default]
    NonDelivery,
    /// Delivery reports too.
    Delivery,
    /// Delivery reports, and a notification when it was read.
    Receipt,
}

/// What the draft answers or passes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum About {
    /// Nothing: a message of its own.
    #[default]
    Nothing,
    /// It answers this entry.
    Answer(Number),
    /// It carries this entry as a forwarded message.
    Forward(Number),
}

/// A message to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Content identifier: 1 to 16 characters of PrintableString. The same for each attempt, so that a
    /// repetition is harmless.
    pub identifier: String,
    /// The date-time group, the same for each attempt.
    pub time: Utc,
    /// The precedence.
    pub precedence: Precedence,
    /// Recipients for action: O/R addresses or names of the address book, as typed.
    pub to: Vec<String>,
    /// Recipients for information.
    pub copy: Vec<String>,
    /// The subject line.
    pub subject: String,
    /// Subject indicator codes.
    pub sics: Vec<String>,
    /// The reports to ask for.
    pub reports: Reports,
    /// The body.
    pub body: Body,
    /// Files to send along.
    pub files: Vec<PathBuf>,
    /// What it answers or passes on.
    pub about: About,
}
