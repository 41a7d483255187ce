//! The event log of messages: JSON lines in a file, rotated by size.
//!
//! The network thread only appends to a buffer; a writer thread empties it every few milliseconds.
//! Lines that the disk refuses or takes too late are lost and counted. The loss is logged once,
//! and a line in the file states the count. The MTA continues.

use crate::clock::Clock;
use crate::config::EventLog;
use node::event::{Gap, LogLine};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Lines are collected for this long and written together.
const GATHER: Duration = Duration::from_millis(20);

/// Most octets buffered for a slow disk; further lines are lost.
const MAX_WAITING: usize = 16 << 20;

/// The open event log. Dropping it writes the buffer.
pub(in crate::driver) struct EventLogFile {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines lost to a full buffer since the writer last emptied it.
    lost: u64,
    /// The buffer is full, and that was logged.
    overflows: bool,
    /// The writer sleeps until a line is added.
    idle: bool,
    ended: bool,
}

impl EventLogFile {
    /// Opens the file for appending.
    pub(in crate::driver) fn open(
        log: &EventLog,
        mta: &str,
        clock: Clock,
    ) -> io::Result<EventLogFile> {
        let file = LogFile::open(log)?;
        let mut writer = Writer { file, mta: mta.to_owned(), clock, unlogged: 0, failing: false };
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || writer.write_all(&theirs))?;
        Ok(EventLogFile { shared, writer: Some(writer) })
    }

    /// Adds a line. It is in the file about 20 ms later.
    pub(in crate::driver) fn put(&self, line: &LogLine<'_>) {
        if self.shared.put(line) {
            tracing::warn!(
                waiting = MAX_WAITING,
                "the event log loses lines: the disk takes them too slowly"
            );
        }
    }

    /// Lines lost since the start.
    pub(in crate::driver) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for EventLogFile {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.more.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join(); // the hook has reported its panic
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line; returns whether it is the first one lost to a full buffer.
    fn put(&self, line: &LogLine<'_>) -> bool {
        let mut waiting = self.lock();
        let before = waiting.lines.len();
        let put = before < MAX_WAITING && serde_json::to_writer(&mut waiting.lines, line).is_ok();
        if put {
            waiting.lines.push(b'\n');
        } else {
            waiting.lines.truncate(before);
            waiting.lost += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        if std::mem::take(&mut waiting.idle) {
            self.more.notify_one();
        }
        !put && !std::mem::replace(&mut waiting.overflows, true)
    }

    /// The buffered lines, and how many lines were lost after them; empty once the log ends.
    fn next(&self) -> (Vec<u8>, u64) {
        let mut waiting = self.lock();
        waiting.idle = waiting.lines.is_empty();
        let is_idle = |w: &mut Waiting| w.lines.is_empty() && !w.ended;
        waiting = self.more.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        let gathers = |w: &mut Waiting| !w.ended;
        let gathered = self.more.wait_timeout_while(waiting, GATHER, gathers);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let lost = std::mem::take(&mut waiting.lost);
        waiting.overflows &= lost > 0;
        (std::mem::take(&mut waiting.lines), lost)
    }
}

/// The writer thread.
struct Writer {
    file: LogFile,
    mta: String,
    clock: Clock,
    /// Lines lost that the file has no gap line for yet.
    unlogged: u64,
    /// The disk refuses writes, and that was logged.
    failing: bool,
}

impl Writer {
    fn write_all(&mut self, shared: &Shared) {
        let path = self.file.log.path.display().to_string();
        loop {
            let (lines, lost) = shared.next();
            if lines.is_empty() {
                return;
            }
            match self.write(&lines, lost) {
                Ok(()) if std::mem::take(&mut self.failing) => {
                    let lost = shared.lost.load(Ordering::Relaxed);
                    tracing::info!(path, lost, "the event log is written again");
                }
                Ok(()) => {}
                Err((error, lost)) => {
                    shared.lost.fetch_add(lost, Ordering::Relaxed);
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(
                            path,
                            %error,
                            "the event log loses lines until it can be written"
                        );
                    }
                }
            }
        }
    }

    /// Writes lines, after which `lost` others are missing; a gap line states how many. On an
    /// error, also returns how many of `lines` are lost.
    fn write(&mut self, lines: &[u8], lost: u64) -> Result<(), (io::Error, u64)> {
        let written = match self.log_gap() {
            Ok(()) => self.file.write(lines),
            Err(error) => Err((error, 0)),
        };
        let done = written.map_err(|(error, written)| {
            let rest = lines.get(written..).unwrap_or_default();
            (error, rest.iter().filter(|octet| **octet == b'\n').count() as u64)
        });
        self.unlogged += lost + done.as_ref().err().map_or(0, |(_, lost)| *lost);
        done?;
        self.log_gap().map_err(|error| (error, 0))
    }

    fn log_gap(&mut self) -> io::Result<()> {
        if self.unlogged > 0 {
            let mut line =
                serde_json::to_vec(&Gap::new(self.clock.now().utc, &self.mta, self.unlogged))?;
            line.push(b'\n');
            self.file.write(&line).map_err(|(error, _)| error)?;
            self.unlogged = 0;
        }
        Ok(())
    }
}

struct LogFile {
    log: EventLog,
    /// `None` after a failure; the file is then opened again.
    file: Option<File>,
    length: u64,
}

impl LogFile {
    fn open(log: &EventLog) -> io::Result<LogFile> {
        let mut new = LogFile { log: log.clone(), file: None, length: 0 };
        new.file = Some(new.reopen()?);
        Ok(new)
    }

    /// Opens the file; its last line may be incomplete.
    fn reopen(&mut self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).append(true).create(true).mode(0o600).open(&self.log.path)?;
        self.length = file.seek(SeekFrom::End(0))?;
        let mut last = [b'\n'];
        if self.length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
            self.length += 1;
        }
        Ok(file)
    }

    /// Writes whole lines; on an error, also returns how many octets were written.
    fn write(&mut self, lines: &[u8]) -> Result<(), (io::Error, usize)> {
        let mut written = 0;
        while let Some(rest) = lines.get(written..).filter(|rest| !rest.is_empty()) {
            let part = self.fitting(rest);
            self.append(part).map_err(|error| (error, written))?;
            written += part.len();
        }
        Ok(())
    }

    /// The lines that fit into the file; at least one if the file is empty.
    fn fitting<'a>(&self, lines: &'a [u8]) -> &'a [u8] {
        let room = usize::try_from(self.log.size.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let newline = |octet: &u8| *octet == b'\n';
        let end = match lines.get(..room) {
            None => lines.len(),
            Some(part) => match part.iter().rposition(newline) {
                Some(at) => at + 1,
                None if self.length > 0 => 0,
                None => lines.iter().position(newline).map_or(lines.len(), |at| at + 1),
            },
        };
        lines.get(..end).unwrap_or_default()
    }

    /// Appends lines, or rotates the files if none fits.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            self.file = None;
            self.rotate()?;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.reopen()?,
        };
        if let Err(error) = file.write_all(lines) {
            let _ = file.set_len(self.length); // else who opens it next ends the line
            return Err(error);
        }
        self.file = Some(file);
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Removes the oldest file and renumbers the others.
    #[expect(clippy::disallowed_methods, reason = "a log may lose its last seconds in a power cut")]
    fn rotate(&self) -> io::Result<()> {
        for older in (1..self.log.keep).rev() {
            match std::fs::rename(self.numbered(older), self.numbered(older + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.log.path, self.numbered(1))
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.log.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests;
