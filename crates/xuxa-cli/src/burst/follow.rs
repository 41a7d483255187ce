//! Follows event logs while MTAs write them: across rotation, incomplete lines, and files that
//! appear later.

use super::event::{MessageEvent, ParsedLine};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Largest line, in octets; a longer one is skipped.
const MAX_LINE: usize = 64 << 10;
/// Octets at the beginning of a file that identify it.
const HEAD: usize = 256;
/// Octets of one read.
const CHUNK: usize = 64 << 10;
/// A rotated log is looked for under these numbers: `events.jsonl.1` and so on.
const GENERATIONS: u32 = 64;
/// Number of looks at the files before one counts as removed.
const LOOKS: u32 = 4;

/// Counts of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events of all messages.
    pub events: u64,
    /// Lines that are not events, or incomplete.
    pub skipped: u64,
    /// Number of gaps: files that were missed, or lines that the MTA lost.
    pub gaps: u64,
    /// Lines that the MTA reports as not written.
    pub lost: u64,
}

/// One log, read from its end at the start.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    file: Option<Open>,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// The line being read is too long: the rest is skipped.
    overlong: bool,
    pub counts: Counts,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: Identity,
    /// Octets read.
    read: u64,
    /// Its first octets. A shorter file with the same ones was truncated; with others, replaced.
    head: Vec<u8>,
}

/// Device and inode of a file.
type Identity = (u64, u64);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

impl Follower {
    /// Follows a log from its end, or from its beginning if the file does not exist yet.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub(crate) fn start(path: &Path) -> std::io::Result<Follower> {
        let mut follower = Follower {
            path: path.to_owned(),
            file: None,
            partial: Vec::new(),
            overlong: false,
            counts: Counts::default(),
        };
        if let Some(mut open) = Open::open_if_present(path)? {
            open.read = open.file.seek(SeekFrom::End(0))?;
            open.read_head()?;
            follower.file = Some(open);
        }
        Ok(follower)
    }

    /// The path of the log.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was appended since the last call; passes each message event to `each`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn poll(&mut self, mut each: impl FnMut(MessageEvent)) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = Open::open_if_present(&self.path)?;
        }
        while let Some(mut open) = self.file.take() {
            // Determined before reading: after a rename the MTA appends at most what is read
            // below.
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
                    // Renamed, and its successor does not exist yet: it may still grow.
                    self.file = Some(open);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Skips a line that its file does not complete.
    fn cut(&mut self) {
        self.counts.skipped += u64::from(!self.partial.is_empty() || self.overlong);
        self.partial.clear();
        self.overlong = false;
    }

    fn read(
        &mut self,
        open: &mut Open,
        each: &mut impl FnMut(MessageEvent),
    ) -> std::io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = match open.file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            open.read += count as u64;
            open.read_head()?;
            self.take(buffer.get(..count).unwrap_or_default(), each);
        }
    }

    fn take(&mut self, octets: &[u8], each: &mut impl FnMut(MessageEvent)) {
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

    fn line(&mut self, each: &mut impl FnMut(MessageEvent)) {
        let line = std::mem::take(&mut self.partial);
        match ParsedLine::from_line(&line) {
            _ if std::mem::take(&mut self.overlong) => self.counts.skipped += 1,
            ParsedLine::Garbage => self.counts.skipped += 1,
            ParsedLine::Other => self.counts.events += 1,
            ParsedLine::Lost(count) => {
                self.counts.gaps += 1;
                self.counts.lost += count;
            }
            ParsedLine::Event(event) => {
                self.counts.events += 1;
                each(event);
            }
        }
    }
}

/// The source of the next lines.
enum Next {
    /// In the same file.
    Same,
    /// In the same file, which is shorter than it was.
    Truncated,
    /// In this file; and whether files between were missed.
    File(Open, bool),
    /// No file exists yet.
    Gone,
}

impl Open {
    /// Opens a file; `None` if it does not exist.
    fn open_if_present(path: &Path) -> std::io::Result<Option<Open>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let identity = identity(&file.metadata()?);
        Ok(Some(Open { file, identity, read: 0, head: Vec::new() }))
    }

    /// Stores its first octets.
    fn read_head(&mut self) -> std::io::Result<()> {
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

    /// Seeks to the end of a truncated file, or to the beginning of a replaced one.
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

    /// The file after this one: the next newer rotated one, else the newest.
    fn next(&self, path: &Path) -> std::io::Result<Next> {
        // During renames, a look may miss a file.
        for _ in 1..LOOKS {
            match self.look(path)? {
                Next::Gone | Next::File(_, true) => std::thread::yield_now(),
                next => return Ok(next),
            }
        }
        self.look(path)
    }

    fn look(&self, path: &Path) -> std::io::Result<Next> {
        let Some(newest) = Open::open_if_present(path)? else {
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
            match Open::open_if_present(Path::new(&name))? {
                Some(older) if older.identity == self.identity => {
                    return Ok(Next::File(after, false));
                }
                Some(older) => after = older,
                None => {}
            }
        }
        // Our file was removed: continue with the oldest that remains; others may be lost.
        Ok(Next::File(after, true))
    }
}

#[cfg(test)]
mod tests;
