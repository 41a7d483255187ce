//! The format of a recording.
//!
//! ```text
//! file    = magic (8 octets "X4RECORD"), format (2 octets), record*
//! record  = length (4 octets), check of the length (4 octets), check (8 octets), body (length octets)
//! ```
//!
//! Numbers are little-endian. A body is a [`Record`] in postcard's encoding; the first one is the header. The
//! check is XXH3 of the body with the number of the record as its seed: a record that is cut off, damaged or
//! out of its place is not taken for one. The check of the length is the lower half of XXH3 of its octets, with
//! the same seed: a length that is damaged does not look like a file that was cut off.

use crate::fingerprint::Fingerprint;
use crate::header::Header;
use base::Now;
use node::Input;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"X4RECORD";

/// The version of the format. It changes with every change of what a record holds: of an input, of the
/// configuration, of anything in them. `tests/layout.rs` notices one.
pub const FORMAT: u16 = 4;

/// Most octets of a record.
pub const MAX_RECORD: usize = 64 << 20;

/// Octets before the first record.
pub const PREAMBLE: usize = 10;

/// Octets before the body of a record.
pub const FRAME: usize = 16;

/// Octets of a length and its check.
const LENGTH: usize = 8;

/// Latest time of a record, microseconds: the end of the year 9999. No arithmetic with it overflows.
const LAST: u64 = 253_402_300_800_000_000;

/// One record.
#[derive(Debug, Serialize, Deserialize)]
pub enum Record {
    /// The first.
    Header(Box<Header>),
    /// An input, which the node was given at this time. The outputs follow, unless the process ended in between.
    Input(Now, Input),
    /// What the node gave out for the last input.
    Outputs(Vec<Fingerprint>),
    /// A step of a recording without contents: the input, and outputs and events, in words.
    Shown(Now, Shown),
    /// The last.
    End(End),
    /// So many octets of the input that follows were overwritten: a bind that could not be read, or what the tables do
    /// not have.
    Blanked(u64),
}

/// The same, of what is only looked at: its encoding is that of [`Record`].
#[derive(Serialize)]
pub(crate) enum RecordRef<'a> {
    Header(&'a Header),
    Input(Now, &'a Input),
    Outputs(&'a [Fingerprint]),
    Shown(Now, &'a Shown),
    End(&'a End),
    Blanked(u64),
}

/// A step in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The input.
    pub input: String,
    /// The outputs that are not events.
    pub outputs: Vec<String>,
    /// The events.
    pub events: Vec<String>,
}

/// Why a recording ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The node has stopped.
    Stopped,
    /// The next record would have passed the limit, octets.
    Limit(u64),
    /// The writer did not keep up: so many octets waited for it.
    Behind(u64),
    /// A record would be too long, or cannot be encoded: why.
    Record(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Stopped => f.write_str("the node has stopped"),
            End::Limit(octets) => write!(f, "the limit of {octets} octets is reached"),
            End::Behind(octets) => write!(f, "{octets} octets waited for the disk"),
            End::Record(why) => write!(f, "an input could not be recorded: {why}"),
        }
    }
}

/// A file that cannot be read as a recording, or not from here on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// It begins with something else.
    #[error("not a recording of this program")]
    Magic,
    /// It has another version.
    #[error(
        "a recording of format {0}, and this program reads format {FORMAT}: use the release that made it"
    )]
    Version(u16),
    /// A record is longer than any can be.
    #[error("record {0} has {1} octets, and {MAX_RECORD} is the most: the file is damaged")]
    Long(u64, u64),
    /// The check of a length does not fit: the file is not cut off there.
    #[error("the length of record {0} is damaged, or the record is out of its place")]
    Length(u64),
    /// A record has a time that no clock has.
    #[error("record {0} has a time after the year 9999")]
    Time(u64),
    /// A check does not fit.
    #[error("record {0} is damaged")]
    Damaged(u64),
    /// A record holds what no record does.
    #[error("record {0} cannot be read: {1}")]
    Body(u64, String),
    /// The first record is not the header, or another one is.
    #[error("record {0} stands in a wrong place")]
    Order(u64),
}

/// The octets before the first record.
pub(crate) fn preamble() -> Vec<u8> {
    [&MAGIC[..], &FORMAT.to_le_bytes()].concat()
}

/// Appends a record; `number` counts from 0.
///
/// # Errors
/// It is too long, or cannot be encoded. `to` is as before.
pub(crate) fn append(to: &mut Vec<u8>, number: u64, record: &RecordRef<'_>) -> Result<(), String> {
    let body = postcard::to_extend(record, Vec::with_capacity(256)).map_err(|e| e.to_string())?;
    if body.len() > MAX_RECORD {
        return Err(format!("it has {} octets, and {MAX_RECORD} is the most", body.len()));
    }
    to.extend_from_slice(&framed(number, &body));
    Ok(())
}

/// A body with what stands before it in the file.
#[must_use]
pub fn framed(number: u64, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let check = xxh3_64_with_seed(body, number);
    [&length[..], &check_of_length(number, length), &check.to_le_bytes(), body].concat()
}

fn check_of_length(number: u64, length: [u8; 4]) -> [u8; 4] {
    let [a, b, c, d, ..] = xxh3_64_with_seed(&length, number).to_le_bytes();
    [a, b, c, d]
}

/// Whether both clocks are ones that arithmetic is possible with.
fn is_possible(now: Now) -> bool {
    now.utc.0 <= LAST && now.mono.0 <= LAST
}

/// Reads a recording, in whatever pieces its octets come.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    /// Octets at the front that are taken.
    taken: usize,
    begun: bool,
    number: u64,
}

impl Decoder {
    /// More octets of the file.
    pub fn push(&mut self, octets: &[u8]) {
        if self.taken > 0 {
            self.held.drain(..self.taken);
            self.taken = 0;
        }
        self.held.extend_from_slice(octets);
    }

    /// Octets that are not taken: at the end of the file, those of a record that was cut off.
    #[must_use]
    pub fn left(&self) -> usize {
        self.held.len() - self.taken
    }

    /// The next record; `None` where more octets are needed.
    ///
    /// # Errors
    /// The file cannot be read from here on.
    #[expect(clippy::should_implement_trait, reason = "None means later, not the end")]
    pub fn next(&mut self) -> Result<Option<Record>, FormatError> {
        if !self.begun {
            let Some((magic, rest)) = self.rest().split_first_chunk() else { return Ok(None) };
            if *magic != MAGIC {
                return Err(FormatError::Magic);
            }
            let Some(format) = rest.first_chunk() else { return Ok(None) };
            let format = u16::from_le_bytes(*format);
            if format != FORMAT {
                return Err(FormatError::Version(format));
            }
            self.taken += PREAMBLE;
            self.begun = true;
        }
        let Some((head, rest)) = self.rest().split_first_chunk::<LENGTH>() else { return Ok(None) };
        let [a, b, c, d, check @ ..] = *head;
        if check_of_length(self.number, [a, b, c, d]) != check {
            return Err(FormatError::Length(self.number));
        }
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_RECORD {
            return Err(FormatError::Long(self.number, length as u64));
        }
        let Some((check, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let number = self.number;
        if xxh3_64_with_seed(body, number) != u64::from_le_bytes(*check) {
            return Err(FormatError::Damaged(number));
        }
        let (record, more): (Record, &[u8]) = postcard::take_from_bytes(body)
            .map_err(|error| FormatError::Body(number, error.to_string()))?;
        if !more.is_empty() {
            return Err(FormatError::Body(number, "octets follow it".to_owned()));
        }
        if matches!(record, Record::Header(_)) != (number == 0) {
            return Err(FormatError::Order(number));
        }
        let is_timely = match &record {
            Record::Header(header) => is_possible(header.began),
            Record::Input(now, _) | Record::Shown(now, _) => is_possible(*now),
            Record::Outputs(_) | Record::End(_) | Record::Blanked(_) => true,
        };
        if !is_timely {
            return Err(FormatError::Time(number));
        }
        self.taken += FRAME + length;
        self.number += 1;
        Ok(Some(record))
    }

    fn rest(&self) -> &[u8] {
        self.held.get(self.taken..).unwrap_or_default()
    }
}
