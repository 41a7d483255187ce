//! The format of an exported mailbox (docs/mailbox-format.md). A directory:
//!
//! ```text
//! index.jsonl               the header, then one line for each entry
//! entries/0000000007.envelope   the delivery's envelope, as the store has it (X.413 attribute value)
//! entries/0000000007.content    the content, octet for octet; a report has none
//! ```
//!
//! The index has lengths and digests of both, and no file names: names follow from the number, so that nothing in
//! an index can lead out of the directory. Nothing here opens a file.

mod digest;
mod record;

pub use digest::{Digest, Summed};
pub use record::{Header, Kind, Octets, Record, Status};

use serde::Serialize;

/// The name of the index in the directory.
pub const INDEX: &str = "index.jsonl";
/// The folder of envelopes and contents in it.
pub const ENTRIES: &str = "entries";
/// What the header names.
pub const FORMAT: &str = "x400-mailbox";
/// The version that is written.
pub const VERSION: u32 = 1;
/// Longest line of an index, octets: an originator and a subject have at most a few thousand.
pub const MAX_LINE: usize = 1 << 20;
/// Largest envelope, octets.
pub const MAX_ENVELOPE: u64 = 64 << 20;

/// What is wrong with an index, an envelope or a content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The line is longer than [`MAX_LINE`].
    #[error("line {0} is longer than 1 MiB")]
    LongLine(u64),
    /// The line is not what it has to be.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// The error of the parser.
        why: String,
    },
    /// The first line is of another format.
    #[error("not an exported mailbox: its format is {0:?}")]
    Format(String),
    /// A later release wrote it.
    #[error("version {0} of the format is not known: it needs a newer xuxa")]
    Version(u32),
    /// Numbers ascend.
    #[error("line {line}: number {number} is not above the one before")]
    NotAscending {
        /// Counted from 1.
        line: u64,
        /// The number.
        number: u32,
    },
    /// There is no header.
    #[error("the index is empty")]
    Empty,
}

/// The name of an entry's envelope, below [`ENTRIES`].
#[must_use]
pub fn envelope_name(number: u32) -> String {
    format!("{number:010}.envelope")
}

/// The name of an entry's content, below [`ENTRIES`].
#[must_use]
pub fn content_name(number: u32) -> String {
    format!("{number:010}.content")
}

/// A header or record as a line, with its end.
///
/// # Errors
/// None: both are plain data.
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    Ok(format!("{}\n", base::shown::json(&text)))
}

/// Reads the lines of an index, one after the other.
#[derive(Debug, Default)]
pub struct Index {
    lines: u64,
    header: Option<Header>,
    last: Option<u32>,
}

impl Index {
    /// The header, once its line was read.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Reads the next line, with or without its end: the first is the header, and gives no record.
    ///
    /// # Errors
    /// See [`FormatError`]; the line is counted.
    pub fn read(&mut self, line: &str) -> Result<Option<Record>, FormatError> {
        self.lines += 1;
        if line.len() > MAX_LINE {
            return Err(FormatError::LongLine(self.lines));
        }
        let why = |error: serde_json::Error| FormatError::Line {
            line: self.lines,
            why: error.to_string(),
        };
        if self.header.is_none() {
            let header: Header = serde_json::from_str(line).map_err(why)?;
            if header.format != FORMAT {
                return Err(FormatError::Format(header.format));
            }
            if header.version != VERSION {
                return Err(FormatError::Version(header.version));
            }
            self.header = Some(header);
            return Ok(None);
        }
        let record: Record = serde_json::from_str(line).map_err(why)?;
        let number = record.number;
        if self.last.is_some_and(|last| last >= number) {
            return Err(FormatError::NotAscending { line: self.lines, number });
        }
        self.last = Some(number);
        Ok(Some(record))
    }

    /// The whole index was read.
    ///
    /// # Errors
    /// It has no header.
    pub fn finish(self) -> Result<Header, FormatError> {
        self.header.ok_or(FormatError::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header::new("/C=XX/S=OPS", "2026-01-02T03:04:05Z")
    }

    fn record(number: u32) -> Record {
        Record {
            number,
            kind: Kind::Message,
            status: Status::Processed,
            precedence: Some(base::Precedence::Flash),
            mts_identifier: Some("[/C=XX/;7]".to_owned()),
            content_type: Some("2.6.1.10.1".to_owned()),
            originator: Some("/C=XX/S=A".to_owned()),
            recipient: None,
            subject: Some("a\nb\u{1b}".to_owned()),
            created: Some("2026-01-02T03:04:05Z".to_owned()),
            delivered: None,
            submitted: None,
            envelope: Octets { length: 3, sha256: Digest::from_octets(b"abc") },
            content: Some(Octets { length: 0, sha256: Digest::from_octets(b"") }),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut index = Index::default();
        assert_eq!(index.read(&line(&header()).unwrap()), Ok(None));
        for number in [1, 7] {
            let text = line(&record(number)).unwrap();
            assert!(text.ends_with('\n') && text.lines().count() == 1 && !text.contains('\u{1b}'));
            assert_eq!(index.read(&text), Ok(Some(record(number))));
        }
        assert_eq!(index.finish(), Ok(header()));
    }

    #[test]
    fn faults_are_named() {
        assert_eq!(Index::default().finish(), Err(FormatError::Empty));
        let read = |text: &str| Index::default().read(text).unwrap_err();
        let other = Header { format: "mbox".to_owned(), ..header() };
        assert_eq!(read(&line(&other).unwrap()), FormatError::Format("mbox".to_owned()));
        let newer = Header { version: 2, ..header() };
        assert_eq!(read(&line(&newer).unwrap()), FormatError::Version(2));
        assert!(matches!(read("{}"), FormatError::Line { line: 1, .. }));
        assert_eq!(read(&" ".repeat(MAX_LINE + 1)), FormatError::LongLine(1));
        let mut index = Index::default();
        index.read(&line(&header()).unwrap()).unwrap();
        index.read(&line(&record(7)).unwrap()).unwrap();
        let again = index.read(&line(&record(7)).unwrap());
        assert_eq!(again, Err(FormatError::NotAscending { line: 3, number: 7 }));
        let forged = line(&record(8)).unwrap().replace("\"number\":8", "\"number\":\"../8\"");
        assert!(matches!(index.read(&forged), Err(FormatError::Line { line: 4, .. })));
    }

    #[test]
    fn names_follow_from_the_number() {
        assert_eq!(envelope_name(7), "0000000007.envelope");
        assert_eq!(content_name(u32::MAX), "4294967295.content");
    }
}
