//! Event logs, read while they are written: over rotation, over lines that are not whole yet, and
//! from files that appear later.

use super::event::{Event, Read};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Most octets of a line; what is longer is no event.
const MAX_LINE: usize = 64 << 10;
/// Octets by which a file is known again.
const HEAD: usize = 256;
/// Octets read at once.
const CHUNK: usize = 64 << 10;
/// A rotated log is looked for under these numbers: `events.jsonl.1` and so on.
const GENERATIONS: u32 = 64;
/// How often the files are looked at before one counts as gone.
const LOOKS: u32 = 4;

/// What reading came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events, of whatever message.
    pub events: u64,
    /// Lines that were no events, or cut short.
    pub skipped: u64,
    /// Times that something is missing: what stood between two files, or lines that the MTA lost.
    pub gaps: u64,
    /// Lines that the MTA says it could not write.
    pub lost: u64,
}

/// One log, from where it ended when it was first looked at.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    file: Option<Open>,
    /// The beginning of a line whose end is not there yet.
    partial: Vec<u8>,
    /// The line being read is too long: it is passed over.
    overlong: bool,
    pub counts: Counts,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: Identity,
    /// Octets read.
    read: u64,
    /// How it begins: a shorter file that begins so has lost its end, another was written anew.
    head: Vec<u8>,
}

/// Which file it is, whatever its name.
type Identity = (u64, u64);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

impl Follower {
    /// Follows a log from its end, or from its beginning where it is not there yet.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub(crate) fn start(path: &Path) -> std::io::Result<Follower> {
        let mut follower = Follower {
            path: path.to_owned(),
            file: None,
            partial: Vec::new(),
            overlong: false,
            counts: Counts::default(),
        };
        if let Some(mut open) = Open::of(path)? {
            open.read = open.file.seek(SeekFrom::End(0))?;
            open.see_head()?;
            follower.file = Some(open);
        }
        Ok(follower)
    }

    /// Which log it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what has come since; gives every event that matters to `each`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn poll(&mut self, mut each: impl FnMut(Event)) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = Open::of(&self.path)?;
        }
        while let Some(mut open) = self.file.take() {
            // Asked before it is read: what it is given after it has another name is less than
            // what is read below.
            let next = open.next(&self.path)?;
            self.read(&mut open, &mut each)?;
            match next {
                Next::Same => {
                    self.file = Some(open);
                    break;
                }
                Next::Truncated => {
                    self.cut();
                    self.counts.gaps += 1;
                    open.rewind()?;
                    self.file = Some(open);
                }
                Next::File(file, gap) => {
                    self.cut();
                    self.counts.gaps += u64::from(gap);
                    self.file = Some(file);
                }
                Next::Gone => {
                    // Renamed, and nothing under its name yet: it may still grow.
                    self.file = Some(open);
                    break;
                }
            }
        }
        Ok(())
    }

    /// A line that ends with its file never gets whole.
    fn cut(&mut self) {
        self.counts.skipped += u64::from(!self.partial.is_empty() || self.overlong);
        self.partial.clear();
        self.overlong = false;
    }

    fn read(&mut self, open: &mut Open, each: &mut impl FnMut(Event)) -> std::io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = match open.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            open.read += count as u64;
            open.see_head()?;
            self.take(buffer.get(..count).unwrap_or_default(), each);
        }
    }

    fn take(&mut self, octets: &[u8], each: &mut impl FnMut(Event)) {
        for piece in octets.split_inclusive(|octet| *octet == b'\n') {
            let is_whole = piece.ends_with(b"\n");
            if self.partial.len() + piece.len() > MAX_LINE {
                self.overlong = true;
                self.partial.clear();
            }
            if !self.overlong {
                self.partial.extend_from_slice(piece);
            }
            if is_whole {
                self.line(each);
            }
        }
    }

    fn line(&mut self, each: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.partial);
        match Read::of(&line) {
            _ if std::mem::take(&mut self.overlong) => self.counts.skipped += 1,
            Read::Garbage => self.counts.skipped += 1,
            Read::Other => self.counts.events += 1,
            Read::Lost(count) => {
                self.counts.gaps += 1;
                self.counts.lost += count;
            }
            Read::Event(event) => {
                self.counts.events += 1;
                each(event);
            }
        }
    }
}

/// Where to read on.
enum Next {
    /// In the same file.
    Same,
    /// In the same file, which is shorter than it was.
    Truncated,
    /// In this one; and whether others between were missed.
    File(Open, bool),
    /// There is none yet.
    Gone,
}

impl Open {
    /// Opens a file; none where it is not there.
    fn of(path: &Path) -> std::io::Result<Option<Open>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let identity = identity(&file.metadata()?);
        Ok(Some(Open { file, identity, read: 0, head: Vec::new() }))
    }

    /// Remembers how it begins.
    fn see_head(&mut self) -> std::io::Result<()> {
        if self.head.len() < HEAD && self.head.len() as u64 != self.read {
            self.head = self.beginning(self.read)?;
        }
        Ok(())
    }

    fn beginning(&self, length: u64) -> std::io::Result<Vec<u8>> {
        let mut head = vec![0; usize::try_from(length).unwrap_or(HEAD).min(HEAD)];
        let read = self.file.read_at(&mut head, 0)?;
        head.truncate(read);
        Ok(head)
    }

    /// Goes to the end of what is left, or to the beginning where that is new.
    fn rewind(&mut self) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        let head = self.beginning(length)?;
        let is_left = !head.is_empty() && self.head.starts_with(&head);
        self.read = if is_left { length.min(self.read) } else { 0 };
        self.file.seek(SeekFrom::Start(self.read))?;
        if !is_left {
            self.head.clear();
        }
        Ok(())
    }

    /// Which file comes after this one: the one rotated just before it, else the newest.
    fn next(&self, path: &Path) -> std::io::Result<Next> {
        // Looked at while files are being renamed, one of them may be seen nowhere.
        for _ in 1..LOOKS {
            match self.look(path)? {
                Next::Gone | Next::File(_, true) => std::thread::yield_now(),
                next => return Ok(next),
            }
        }
        self.look(path)
    }

    fn look(&self, path: &Path) -> std::io::Result<Next> {
        let Some(newest) = Open::of(path)? else {
            return Ok(Next::Gone);
        };
        if newest.identity == self.identity {
            let length = newest.file.metadata()?.len();
            return Ok(if length < self.read { Next::Truncated } else { Next::Same });
        }
        let mut after = newest;
        for generation in 1..=GENERATIONS {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{generation}"));
            match Open::of(Path::new(&name))? {
                Some(older) if older.identity == self.identity => {
                    return Ok(Next::File(after, false));
                }
                Some(older) => after = older,
                None => {}
            }
        }
        // Ours was removed: the oldest that is left comes next, and some may have been lost.
        Ok(Next::File(after, true))
    }
}

#[cfg(test)]
mod tests;
