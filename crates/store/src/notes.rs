//! Notes on contents that are being received: what a later run of the daemon needs to receive them further.
//!
//! The notes of `bodies/N.body` are in `bodies/N.notes`, each in a frame:
//!
//! ```text
//!  checksum 8 | octets of the note 4 | octets of content before it 8 | digest of that content 8 | note
//! ```
//!
//! Numbers are little-endian. The checksum is XXH3 of 64 bits over all that follows it.

use crate::bodies::{Bodies, Sums};
use crate::disk::DiskFile;
use crate::queue::KeptSpool;
use bytes::{Buf, BufMut, Bytes};
use engine::journal::SpoolId;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// Octets in front of a note.
const HEADER: usize = 28;

/// Longest file of notes that is read, in octets.
const MAX_FILE: u64 = 64 << 20;

/// Most octets of one content read at once.
const PART: u64 = 1 << 20;

/// The file of notes of a content.
#[derive(Debug)]
pub(crate) struct Notes {
    file: Box<dyn DiskFile>,
    /// Whether all is durable, except the name.
    synced: bool,
    named: bool,
}

impl Notes {
    /// Notes in a file that was just made, whose name is not durable.
    pub(crate) fn new(file: Box<dyn DiskFile>) -> Notes {
        Notes { file, synced: true, named: false }
    }

    /// Appends a note behind so much content.
    pub(crate) fn append(&mut self, length: u64, digest: u64, note: &[u8]) -> io::Result<()> {
        self.synced = false;
        self.file.append(&frame(length, digest, note)?)
    }

    /// Makes the notes durable; the content is.
    pub(crate) fn sync(&mut self, bodies: &Bodies) -> io::Result<()> {
        if !std::mem::replace(&mut self.synced, true) {
            self.file.sync()?;
        }
        if !std::mem::replace(&mut self.named, true) {
            bodies.sync_names()?;
        }
        Ok(())
    }
}

fn frame(length: u64, digest: u64, note: &[u8]) -> io::Result<Vec<u8>> {
    let octets = u32::try_from(note.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut frame = Vec::with_capacity(HEADER + note.len());
    frame.put_u64_le(0);
    frame.put_u32_le(octets);
    frame.put_u64_le(length);
    frame.put_u64_le(digest);
    frame.extend_from_slice(note);
    let sum = frame.get(8..).map_or(0, xxh3_64);
    if let Some(place) = frame.first_chunk_mut() {
        *place = sum.to_le_bytes();
    }
    Ok(frame)
}

/// A note as it was found.
#[derive(Debug, PartialEq, Eq)]
struct FoundNote {
    length: u64,
    digest: u64,
    note: Bytes,
    /// Where its frame ends in the file.
    end: u64,
}

/// The notes of a file, up to the first that is damaged or not complete.
fn read(mut octets: Bytes) -> Vec<FoundNote> {
    let (total, mut found) = (octets.len(), Vec::new());
    while octets.len() >= HEADER {
        let mut header = octets.slice(..HEADER);
        let sum = header.get_u64_le();
        let size = usize::try_from(header.get_u32_le()).unwrap_or(usize::MAX);
        let (length, digest) = (header.get_u64_le(), header.get_u64_le());
        let Some(end) = HEADER.checked_add(size).filter(|end| *end <= octets.len()) else { break };
        if octets.get(8..end).map(xxh3_64) != Some(sum) {
            break;
        }
        let note = octets.slice(HEADER..end);
        octets.advance(end);
        found.push(FoundNote { length, digest, note, end: (total - octets.len()) as u64 });
    }
    found
}

/// A content that an earlier run was receiving, up to its last durable note.
#[derive(Debug)]
pub(crate) struct LeftBody {
    pub(crate) number: u64,
    pub(crate) length: u64,
    pub(crate) sums: Sums,
    notes: Vec<Bytes>,
    /// Octets of the file of notes.
    notes_length: u64,
}

impl LeftBody {
    /// Finds how far a content and its notes agree; `None` if nowhere.
    pub(crate) fn find(
        bodies: &Bodies,
        number: u64,
        (body, notes): (u64, u64),
    ) -> Option<LeftBody> {
        let octets = bodies.read_notes(number, notes.min(MAX_FILE)).ok()?;
        let found = read(octets.into());
        let mut at = (Sums::default(), 0);
        let mut last: Option<(Sums, u64, usize, u64)> = None;
        for (count, note) in found.iter().enumerate().take_while(|(_, note)| note.length <= body) {
            if note.length < at.1 || read_on(bodies, number, &mut at, note.length).is_err() {
                break;
            }
            // A note may be durable and not all that was written before it.
            if at.0.digest() != note.digest {
                break;
            }
            last = Some((at.0.clone(), note.length, count + 1, note.end));
        }
        let (sums, length, count, notes_length) = last?;
        let notes = found.into_iter().take(count).map(|note| note.note).collect();
        Some(LeftBody { number, length, sums, notes, notes_length })
    }

    /// As its users have it, who take the notes.
    pub(crate) fn described(&mut self, id: SpoolId) -> KeptSpool {
        KeptSpool { id, length: self.length, notes: std::mem::take(&mut self.notes) }
    }

    /// The file of its notes, opened for more.
    pub(crate) fn notes(&self, bodies: &Bodies) -> io::Result<Notes> {
        let file = bodies.reopen_notes(self.number, self.notes_length)?;
        Ok(Notes { file, synced: false, named: true })
    }
}

/// Reads a content up to `length`.
fn read_on(bodies: &Bodies, number: u64, at: &mut (Sums, u64), length: u64) -> io::Result<()> {
    while at.1 < length {
        let part = (length - at.1).min(PART);
        let size = usize::try_from(part).map_err(|_| io::ErrorKind::FileTooLarge)?;
        at.0.add(&bodies.read(number, at.1, size)?);
        at.1 += part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_up_to_the_first_that_is_not_whole() {
        let frames = [frame(5, 7, b"one").unwrap(), frame(9, 8, b"").unwrap()];
        let whole = frames.concat();
        let found = |octets: &[u8]| read(Bytes::copy_from_slice(octets));
        let [one, two] = &found(&whole)[..] else { panic!("two notes") };
        assert_eq!((one.length, one.digest, &one.note[..]), (5, 7, &b"one"[..]));
        assert_eq!((two.length, two.end), (9, whole.len() as u64));
        for end in 0..whole.len() {
            let expected = usize::from(end >= frames[0].len());
            assert_eq!(found(&whole[..end]).len(), expected, "{end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            let expected = usize::from(at >= frames[0].len());
            assert_eq!(found(&changed).len(), expected, "{at}");
        }
    }
}
