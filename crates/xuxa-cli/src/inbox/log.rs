//! `received.log`: what was received and confirmed, a JSON object a line.
//!
//! An earlier version wrote the bare identifier of each message as a line, so that one with a line
//! break in it made a line of its own. Such lines are still read, but prove nothing alone: what they
//! name is known only where its content is there, too, and the same.

use super::{NotKept, not_kept};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

/// One delivery.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// MTS identifier of a message; of a report, what it is about and its own digest.
    id: String,
    /// SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// When it was received.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    time: String,
}

/// The names chosen for the files of a message, before any of them is there.
#[derive(Debug, Serialize, Deserialize)]
struct Names {
    /// MTS identifier of the message.
    extracting: String,
    /// SHA-256 of its content, in hexadecimal.
    sha256: String,
    /// By the place of the file in it.
    names: Vec<String>,
}

/// What a line may be.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Received(Line),
    Extracting(Names),
}

/// What is known of an identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Digests of the contents received under it.
    pub(super) digests: BTreeSet<String>,
    /// An earlier version received one under it, and noted no digest.
    pub(super) without_digest: bool,
}

/// The open log.
pub(super) struct Log {
    pub(super) file: File,
    known: BTreeMap<String, Known>,
    /// Of messages that were not received yet: names of their files, by identifier and digest.
    extracting: BTreeMap<(String, String), Vec<String>>,
    /// Octets of it that are in `known`.
    read: u64,
    /// Lines that say nothing.
    unreadable: u64,
}

impl Log {
    pub(super) fn new(file: File) -> Log {
        Log { file, known: BTreeMap::new(), extracting: BTreeMap::new(), read: 0, unreadable: 0 }
    }

    /// What was received under this identifier.
    pub(super) fn known(&self, identifier: &str) -> Option<&Known> {
        self.known.get(identifier)
    }

    /// Lines that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Takes in what the log has more by now: another `xuxa` of the same user may write it, too.
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
            // Of an earlier version.
            Ok(text) if text.starts_with('[') || text.starts_with("report ") => {
                known.entry(text.to_owned()).or_default().without_digest = true;
            }
            Ok(text) => match serde_json::from_str(text) {
                Ok(Entry::Received(Line { id, sha256, .. })) => {
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

    /// Takes away a line without its end: it was not confirmed, and what is appended to it would be
    /// no line.
    pub(super) fn truncate(&self) -> Result<(), NotKept> {
        self.file.set_len(self.read).map_err(not_kept("write"))
    }

    /// Appends a delivery; only whole, or not at all.
    pub(super) fn append(&mut self, id: &str, sha256: &str, time: String) -> Result<()> {
        self.write(&Line { id: id.to_owned(), sha256: sha256.to_owned(), time })
    }

    /// The names recorded for the files of a message that was not received since.
    pub(super) fn names(&self, id: &str, sha256: &str) -> &[String] {
        let key = (id.to_owned(), sha256.to_owned());
        self.extracting.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Records names for the files of a message; only all, or none.
    pub(super) fn record(&mut self, id: &str, sha256: &str, names: Vec<String>) -> Result<()> {
        self.write(&Names { extracting: id.to_owned(), sha256: sha256.to_owned(), names })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        // Another one may have failed in the middle of a line.
        self.truncate()?;
        // Who looks at the log in a terminal is shown what is in it, too.
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
