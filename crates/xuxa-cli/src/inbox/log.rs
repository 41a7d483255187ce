//! `received.log`: the confirmed deliveries, one JSON object a line.
//!
//! An earlier version wrote the bare identifier of each message as a line, so that an identifier with
//! a line break could forge a line. Such lines are still read, but a message counts as received only
//! if its content exists, too, and is the same.

use super::{NotKept, not_kept};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

/// One delivery.
#[derive(Debug, Serialize, Deserialize)]
struct LogLine {
    /// MTS identifier of a message; for a report, its subject and its own digest.
    id: String,
    /// SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// The time of reception, RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    time: String,
}

/// The names chosen for the files of a message, recorded before the first file is created.
#[derive(Debug, Serialize, Deserialize)]
struct Names {
    /// MTS identifier of the message.
    extracting: String,
    /// SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// In the order of the files in the message.
    names: Vec<String>,
}

/// The kinds of lines.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Received(LogLine),
    Extracting(Names),
}

/// The contents and file names that are recorded for an identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Digests of the contents received under it.
    pub(super) digests: BTreeSet<String>,
    /// An earlier version received one under it, without a digest.
    pub(super) without_digest: bool,
}

/// The open log.
pub(super) struct Log {
    pub(super) file: File,
    known: BTreeMap<String, Known>,
    /// Names of the files of messages not yet received, by identifier and digest.
    extracting: BTreeMap<(String, String), Vec<String>>,
    /// Octets of the log that have been read.
    read: u64,
    /// Unreadable lines.
    unreadable: u64,
}

impl Log {
    pub(super) fn new(file: File) -> Log {
        Log { file, known: BTreeMap::new(), extracting: BTreeMap::new(), read: 0, unreadable: 0 }
    }

    /// The contents received under this identifier.
    pub(super) fn known(&self, identifier: &str) -> Option<&Known> {
        self.known.get(identifier)
    }

    /// Lines that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Reads what was appended: another `xuxa` of the same user may write the log, too.
    pub(super) fn refresh(&mut self) -> Result<(), NotKept> {
        let length = self.file.metadata().map_err(not_kept("read"))?.len();
        let more = usize::try_from(length.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let mut octets = vec![0; more];
        self.file.read_exact_at(&mut octets, self.read).map_err(not_kept("read"))?;
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
        for line in octets.get(..whole).unwrap_or_default().split(|octet| *octet == b'\n') {
            self.take(line);
        }
        self.read += whole as u64;
        Ok(())
    }

    fn take(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let known = &mut self.known;
        match std::str::from_utf8(line) {
            // Written by an earlier version.
            Ok(text) if text.starts_with('[') || text.starts_with("report ") => {
                known.entry(text.to_owned()).or_default().without_digest = true;
            }
            Ok(text) => match serde_json::from_str(text) {
                Ok(Entry::Received(LogLine { id, sha256, .. })) => {
                    let key = (id, sha256);
                    self.extracting.remove(&key);
                    let (id, sha256) = key;
                    known.entry(id).or_default().digests.insert(sha256);
                }
                Ok(Entry::Extracting(Names { extracting, sha256, names })) => {
                    self.extracting.insert((extracting, sha256), names);
                }
                Err(_) => self.unreadable += 1,
            },
            Err(_) => self.unreadable += 1,
        }
    }

    /// Removes an incomplete last line: its delivery was not confirmed, and a line appended to it could
    /// not be read.
    pub(super) fn truncate(&self) -> Result<(), NotKept> {
        self.file.set_len(self.read).map_err(not_kept("write"))
    }

    /// Appends a delivery, all or nothing.
    pub(super) fn append(&mut self, id: &str, sha256: &str, time: String) -> Result<()> {
        self.write(&LogLine { id: id.to_owned(), sha256: sha256.to_owned(), time })
    }

    /// The names recorded for the files of a message that is not yet received.
    pub(super) fn names(&self, id: &str, sha256: &str) -> &[String] {
        let key = (id.to_owned(), sha256.to_owned());
        self.extracting.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Records names for the files of a message, all or none.
    pub(super) fn record(&mut self, id: &str, sha256: &str, names: Vec<String>) -> Result<()> {
        self.write(&Names { extracting: id.to_owned(), sha256: sha256.to_owned(), names })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        // Another process may have failed in the middle of a line.
        self.truncate()?;
        // Escaped, so that a terminal shows the log as it is.
        let line = serde_json::to_string(line)?;
        let line = format!("{}\n", base::shown::json(&line));
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_all());
        if let Err(error) = written {
            let _ = self.truncate();
            return Err(not_kept("write")(error).into());
        }
        Ok(self.refresh()?)
    }
}
