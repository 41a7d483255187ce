//! What events are found by, and the names of files.

use crate::event::{Event, LOST};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What events are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// The MTS identifier of a message, probe or report.
    Message(&'a str),
    /// The MTS identifier on the other side of a report.
    Related(&'a str),
    /// The canonical address of an originator.
    Originator(&'a str),
    /// The canonical address of a recipient.
    Recipient(&'a str),
    /// A content identifier.
    ContentId(&'a str),
    /// A queue entry.
    Entry(u64),
    /// Events that stand for missing ones.
    Lost,
}

impl Key<'_> {
    /// Its hash in an index. Another release has the same ones.
    pub fn hash(&self) -> u64 {
        match self {
            Key::Message(text) => xxh3_64_with_seed(text.as_bytes(), 1),
            Key::Related(text) => xxh3_64_with_seed(text.as_bytes(), 2),
            Key::Originator(text) => xxh3_64_with_seed(text.as_bytes(), 3),
            Key::Recipient(text) => xxh3_64_with_seed(text.as_bytes(), 4),
            Key::ContentId(text) => xxh3_64_with_seed(text.as_bytes(), 5),
            Key::Lost => xxh3_64_with_seed(LOST.as_bytes(), 7),
            Key::Entry(number) => xxh3_64_with_seed(&number.to_be_bytes(), 6),
        }
    }

    /// Whether an event has it. Hashes of different texts may be equal.
    pub fn is_of(&self, event: &Event) -> bool {
        let parties = event.parties.as_ref();
        match self {
            Key::Message(text) => event.message.as_deref() == Some(text),
            Key::Related(text) => event.related.as_deref() == Some(text),
            Key::Originator(text) => parties.is_some_and(|p| p.originator.as_deref() == Some(text)),
            Key::Recipient(text) => parties.is_some_and(|p| p.recipients.iter().any(|r| r == text)),
            Key::ContentId(text) => parties.is_some_and(|p| p.content_id.as_deref() == Some(text)),
            Key::Lost => event.kind == LOST,
            Key::Entry(number) => event.entry == Some(*number),
        }
    }
}

/// The hashes of all that an event is found by.
pub(crate) fn hashes(event: &Event, mut each: impl FnMut(u64)) {
    if event.kind == LOST {
        each(Key::Lost.hash());
    }
    if let Some(message) = &event.message {
        each(Key::Message(message).hash());
    }
    if let Some(related) = &event.related {
        each(Key::Related(related).hash());
    }
    if let Some(entry) = event.entry {
        each(Key::Entry(entry).hash());
    }
    let Some(parties) = &event.parties else { return };
    if let Some(originator) = &parties.originator {
        each(Key::Originator(originator).hash());
    }
    if let Some(content_id) = &parties.content_id {
        each(Key::ContentId(content_id).hash());
    }
    for recipient in &parties.recipients {
        each(Key::Recipient(recipient).hash());
    }
}

/// The file of the events of a segment.
pub(crate) fn events_file(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:010}.events"))
}

/// The file of its index.
pub(crate) fn index_file(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:010}.index"))
}

/// The numbers of the segments in a directory, the oldest first.
pub(crate) fn segments(directory: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".events"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
