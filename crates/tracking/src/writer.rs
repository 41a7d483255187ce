//! Appends events to segments, seals full ones, removes the oldest.

use crate::event::Event;
use crate::frame::{self, Frames};
use crate::index::{self, Summary};
use crate::names::{events_file, hashes, index_file, segments};
use crate::page::Place;
use base::Utc;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The limit is divided by this: so much is removed at once, at most.
const SEGMENTS: u64 = 128;

/// Least and most octets of a segment's events. What is not sealed is read whole by each question.
const SEGMENT: (u64, u64) = (64 << 10, 16 << 20);

/// Writes to a directory of segments. One process at a time may: the caller makes sure of it.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    /// Octets of all segments and their indexes, at most.
    limit: u64,
    /// Octets at which a segment is full.
    full: u64,
    /// Octets of sealed segments and their indexes.
    sealed: BTreeMap<u64, u64>,
    active: Active,
    /// Frames that are not written yet.
    waiting: Vec<u8>,
    /// What `active` was before they were added.
    written: Mark,
    synced: bool,
}

/// The segment that grows.
#[derive(Debug)]
struct Active {
    number: u64,
    file: File,
    now: Mark,
    entries: Vec<(u64, u32)>,
}

/// How far a segment is.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    length: u64,
    events: u64,
    entries: usize,
    times: Option<(Utc, Utc)>,
}

impl Mark {
    fn saw(&mut self, time: Utc) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        self.events += 1;
    }

    fn summary(&self, segment: u64) -> Summary {
        let times = self.times.unwrap_or_default();
        Summary { segment, length: self.length, events: self.events, times }
    }
}

impl Writer {
    /// Opens a directory, which is made if it is not there: cuts off what an interrupted write left,
    /// makes indexes that are missing, and removes what is beyond `limit` octets.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(directory: &Path, limit: u64) -> io::Result<Writer> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut numbers = segments(directory)?;
        let mut sealed = BTreeMap::new();
        let last = numbers.pop();
        for number in numbers {
            sealed.insert(number, sealed_size(directory, number)?);
        }
        let active = match last {
            Some(number) if index_file(directory, number).exists() => {
                sealed.insert(number, sealed_size(directory, number)?);
                Active::create(directory, number + 1)?
            }
            Some(number) => Active::recover(directory, number)?,
            None => Active::create(directory, 1)?,
        };
        let full = (limit / SEGMENTS).clamp(SEGMENT.0, SEGMENT.1);
        let directory = directory.to_owned();
        let (written, waiting) = (active.now, Vec::new());
        let mut new =
            Writer { directory, limit, full, sealed, active, waiting, written, synced: true };
        new.remove_oldest()?;
        Ok(new)
    }

    /// Goes on behind a place, where that is beyond the end: the directory is an older copy of one of which more
    /// was copied already. Places that were used are not used again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn go_on_after(&mut self, place: Place) -> io::Result<()> {
        if place > self.place() {
            self.seal_and_begin(place.segment() + 1)?;
        }
        Ok(())
    }

    /// Behind all that is written.
    pub fn place(&self) -> Place {
        Place::new(self.active.number, self.written.length)
    }

    /// Adds an event; [`Writer::write`] writes it. Whether it could be encoded.
    pub fn append(&mut self, event: &Event) -> bool {
        let before = self.waiting.len();
        let place = self.active.now.length;
        let Ok(place) = u32::try_from(place) else { return false };
        if !frame::put(self.active.number, event, &mut self.waiting) {
            return false;
        }
        hashes(event, |hash| self.active.entries.push((hash, place)));
        self.active.now.length += (self.waiting.len() - before) as u64;
        self.active.now.entries = self.active.entries.len();
        self.active.now.saw(event.time);
        true
    }

    /// Octets that wait to be written.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Writes what was added, so that others can read it, and seals the segment if it is full.
    ///
    /// # Errors
    /// The operating system's, and how many events are lost: those added since the last write.
    pub fn write(&mut self) -> Result<(), (io::Error, u64)> {
        if !self.waiting.is_empty() {
            self.synced = false;
            if let Err(error) = self.active.file.write_all(&self.waiting) {
                let lost = self.active.now.events - self.written.events;
                self.take_back();
                return Err((error, lost));
            }
            self.waiting.clear();
            self.written = self.active.now;
        }
        if self.active.now.length >= self.full {
            self.seal().map_err(|error| (error, 0))?;
        }
        Ok(())
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            self.active.file.sync_data()?;
            self.synced = true;
        }
        Ok(())
    }

    /// Nothing was added since the last write.
    fn take_back(&mut self) {
        self.waiting.clear();
        self.active.now = self.written;
        self.active.entries.truncate(self.written.entries);
        // Where that fails, the next open cuts it off; a reader takes it for no event.
        let _ = self.active.file.set_len(self.written.length);
    }

    fn seal(&mut self) -> io::Result<()> {
        self.seal_and_begin(self.active.number + 1)
    }

    fn seal_and_begin(&mut self, next: u64) -> io::Result<()> {
        self.sync()?;
        let size = write_index(
            &self.directory,
            &self.active.now.summary(self.active.number),
            &mut self.active.entries,
        )?;
        let next = Active::create(&self.directory, next)?;
        let full = std::mem::replace(&mut self.active, next);
        self.sealed.insert(full.number, full.now.length + size);
        self.written = self.active.now;
        self.remove_oldest()
    }

    /// Removes the oldest segments until the one that grows has room.
    fn remove_oldest(&mut self) -> io::Result<()> {
        let all = |sealed: &BTreeMap<u64, u64>| sealed.values().sum::<u64>();
        // An index has up to half as many octets as its events.
        while all(&self.sealed) + self.full / 2 * 3 > self.limit {
            let Some((number, _)) = self.sealed.pop_first() else { break };
            for file in [events_file(&self.directory, number), index_file(&self.directory, number)]
            {
                match std::fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.write();
        let _ = self.sync();
    }
}

impl Active {
    fn create(directory: &Path, number: u64) -> io::Result<Active> {
        let path = events_file(directory, number);
        // What an interrupted start left has no event yet.
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.set_len(0)?;
        file.write_all(&frame::START)?;
        sync_directory(directory)?;
        let now = Mark { length: frame::START.len() as u64, ..Mark::default() };
        Ok(Active { number, file, now, entries: Vec::new() })
    }

    /// Goes on where the last run ended.
    fn recover(directory: &Path, number: u64) -> io::Result<Active> {
        let path = events_file(directory, number);
        let octets = std::fs::read(&path)?;
        if octets.len() < frame::START.len() {
            return Active::create(directory, number);
        }
        let (mut now, entries, end) = scan(number, &octets);
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(end)?;
        now.length = end;
        Ok(Active { number, file, now, entries })
    }
}

/// What the index of these octets of a segment has, and where its last whole frame ends.
fn scan(number: u64, octets: &[u8]) -> (Mark, Vec<(u64, u32)>, u64) {
    let (mut mark, mut entries) = (Mark::default(), Vec::new());
    let mut frames = Frames::new(number, octets);
    for (place, payload) in frames.by_ref() {
        let Some(event) = frame::decode(payload) else { continue };
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        hashes(&event, |hash| entries.push((hash, place)));
        mark.saw(event.time);
    }
    mark.length = octets.len() as u64;
    mark.entries = entries.len();
    (mark, entries, frames.end as u64)
}

/// Octets of a segment that is full and its index, which is made if it is not there.
fn sealed_size(directory: &Path, number: u64) -> io::Result<u64> {
    let events = std::fs::metadata(events_file(directory, number))?.len();
    let index = match std::fs::metadata(index_file(directory, number)) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let octets = std::fs::read(events_file(directory, number))?;
            let (mark, mut entries, _) = scan(number, &octets);
            write_index(directory, &mark.summary(number), &mut entries)?
        }
        Err(error) => return Err(error),
    };
    Ok(events + index)
}

/// Writes an index under its name when it is whole.
#[expect(clippy::disallowed_methods, reason = "the directory is synced behind it")]
fn write_index(directory: &Path, summary: &Summary, entries: &mut [(u64, u32)]) -> io::Result<u64> {
    let octets = index::build(summary, entries);
    let path = index_file(directory, summary.segment);
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&octets)?;
    file.sync_data()?;
    std::fs::rename(&new, &path)?;
    sync_directory(directory)?;
    Ok(octets.len() as u64)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source as _;
    use crate::reader::Reader;

    #[test]
    fn what_a_full_disk_refuses_is_lost_and_the_rest_stays() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 1 << 20).unwrap();
        let event = |n: u64| Event { entry: Some(n % 2), time: Utc(n), ..Event::default() };
        assert!(writer.append(&event(0)));
        writer.write().unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut writer.active.file, full);
        assert!(writer.append(&event(1)) && writer.append(&event(2)));
        let (error, lost) = writer.write().unwrap_err();
        assert_eq!((error.kind(), lost), (io::ErrorKind::StorageFull, 2));
        writer.active.file = file;
        assert!(writer.append(&event(3)));
        writer.write().unwrap();
        writer.sync().unwrap();
        let found = |n| Reader::open(directory.path()).unwrap().find(crate::Key::Entry(n));
        assert_eq!((found(0), found(1)), (vec![event(0)], vec![event(3)]));
        writer.seal().unwrap();
        assert_eq!((found(0), found(1)), (vec![event(0)], vec![event(3)]));
    }

    #[test]
    fn an_event_that_is_too_long_is_refused_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 1 << 20).unwrap();
        let detail = "x".repeat(frame::MAX_PAYLOAD + 1);
        assert!(!writer.append(&Event { detail, ..Event::default() }));
        assert_eq!((writer.waiting(), writer.active.now.events), (0, 0));
    }
}
