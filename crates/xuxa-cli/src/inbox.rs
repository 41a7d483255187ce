//! What was received, kept so that it is confirmed only when it is on disk, and never twice.
//!
//! The MTA delivers again what was not confirmed, so an identifier is remembered before the confirm
//! goes out. The inbox is a directory: one file a message or report, and `received.log`, one identifier
//! a line.

use crate::show;
use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The directory and the identifiers in it.
pub(crate) struct Inbox {
    dir: PathBuf,
    seen: BTreeSet<String>,
    log: File,
    /// Octets of the log that are in `seen`.
    read: u64,
    keep: bool,
    /// Messages begun here.
    begun: u64,
}

/// A message being received. What was written goes when it is dropped.
pub(crate) struct Incoming {
    part: Option<Part>,
}

/// A file that is not yet a message: locked while it is written, so that one without a lock is known
/// to be left behind.
struct Part {
    file: File,
    path: PathBuf,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// It, or one of the same identifier, was received and confirmed before.
    pub duplicate: bool,
    pub file: Option<PathBuf>,
}

/// A delivery could not be kept: it is the MTA's still.
#[derive(Debug, thiserror::Error)]
#[error("cannot {0} the inbox")]
pub(crate) struct NotKept(&'static str, #[source] std::io::Error);

fn not_kept(doing: &'static str) -> impl FnOnce(std::io::Error) -> NotKept {
    move |error| NotKept(doing, error)
}

impl Inbox {
    /// Opens or makes the directory. Where `keep` is false only identifiers are kept.
    pub(crate) fn open(dir: &Path, keep: bool) -> Result<Inbox> {
        let shown = dir.display();
        fs::create_dir_all(dir).with_context(|| format!("cannot make the inbox {shown}"))?;
        let path = dir.join("received.log");
        let log = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let (seen, dir) = (BTreeSet::new(), dir.to_owned());
        let mut inbox = Inbox { dir, seen, log, read: 0, keep, begun: 0 };
        inbox.locked(|inbox| {
            inbox.refresh()?;
            inbox.truncate()?;
            inbox.sweep()
        })?;
        sync_dir(&inbox.dir)?;
        Ok(inbox)
    }

    /// Does something while no other `xuxa` changes the log, or begins a message.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Inbox) -> Result<T>) -> Result<T> {
        self.log.lock().map_err(not_kept("lock"))?;
        let result = work(self);
        self.log.unlock().map_err(not_kept("unlock"))?;
        result
    }

    /// Takes in what the log has more by now: another `xuxa` of the same user may write it, too.
    fn refresh(&mut self) -> Result<()> {
        let length = self.log.metadata().map_err(not_kept("read"))?.len();
        let more = usize::try_from(length.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let mut octets = vec![0; more];
        self.log.read_exact_at(&mut octets, self.read).map_err(not_kept("read"))?;
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(octets.get(..whole).unwrap_or_default());
        self.seen.extend(text.lines().map(str::to_owned));
        self.read += whole as u64;
        Ok(())
    }

    /// Takes away a line without its end: it was not confirmed, and what is appended to it would be
    /// another identifier.
    fn truncate(&self) -> Result<(), NotKept> {
        self.log.set_len(self.read).map_err(not_kept("write"))
    }

    /// Removes what was left behind by those that ended in the middle of a message.
    fn sweep(&self) -> Result<()> {
        for entry in fs::read_dir(&self.dir).map_err(not_kept("read"))? {
            let path = entry.map_err(not_kept("read"))?.path();
            if path.extension().is_none_or(|extension| extension != "part") {
                continue;
            }
            // Another may have removed or renamed it.
            if File::open(&path).is_ok_and(|part| part.try_lock().is_ok()) {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// Whether this identifier was received and confirmed before.
    pub(crate) fn has(&self, identifier: &str) -> bool {
        self.seen.contains(identifier)
    }

    /// Begins a message of this identifier, or a report under a name of its own.
    pub(crate) fn begin(&mut self, identifier: &str) -> Result<Incoming> {
        self.locked(|inbox| {
            inbox.refresh()?;
            if !inbox.keep || inbox.has(identifier) {
                return Ok(Incoming { part: None });
            }
            // A name of our own: another receiver may be given the same message.
            let name = file_name(identifier);
            let process = std::process::id();
            loop {
                inbox.begun += 1;
                let path = inbox.dir.join(format!("{name}.{process}-{}.part", inbox.begun));
                match File::create_new(&path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(NotKept("write", error).into()),
                    Ok(file) => {
                        let part = Part { file, path };
                        part.file.lock().map_err(not_kept("lock"))?;
                        return Ok(Incoming { part: Some(part) });
                    }
                }
            }
        })
    }

    /// Makes a message durable under its identifier, in a file that ends in `.EXTENSION`; where
    /// another one made it durable meanwhile, that one is kept and this one goes.
    pub(crate) fn finish(
        &mut self,
        incoming: Incoming,
        identifier: &str,
        extension: &str,
    ) -> Result<Kept> {
        if let Some(part) = &incoming.part {
            part.file.sync_all().map_err(not_kept("write"))?;
        }
        self.locked(|inbox| {
            inbox.refresh()?;
            if inbox.has(identifier) {
                return Ok(Kept { duplicate: true, file: None });
            }
            let mut file = None;
            if let Some(part) = incoming.part {
                let path = inbox.dir.join(format!("{}.{extension}", file_name(identifier)));
                part.rename(&path)?;
                file = Some(path);
            }
            inbox.remember(identifier)?;
            Ok(Kept { duplicate: false, file })
        })
    }

    /// Appends an identifier to the log; only whole, or not at all.
    fn remember(&mut self, identifier: &str) -> Result<()> {
        // Another one may have failed in the middle of a line.
        self.truncate()?;
        let line = format!("{identifier}\n");
        let written = self.log.write_all(line.as_bytes()).and_then(|()| self.log.sync_all());
        if let Err(error) = written {
            let _ = self.truncate();
            return Err(NotKept("write", error).into());
        }
        self.refresh()
    }
}

impl Incoming {
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        match &mut self.part {
            Some(part) => Ok(part.file.write_all(octets).map_err(not_kept("write"))?),
            None => Ok(()),
        }
    }
}

impl Part {
    /// Gives it its name, durably: an identifier that is remembered is never taken again.
    #[expect(clippy::disallowed_methods, reason = "the directory is synced right after the rename")]
    fn rename(self, path: &Path) -> Result<()> {
        fs::rename(&self.path, path).map_err(not_kept("write"))?;
        path.parent().map_or(Ok(()), sync_dir)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Not there where it was renamed.
        let _ = fs::remove_file(&self.path);
    }
}

fn sync_dir(dir: &Path) -> Result<()> {
    Ok(File::open(dir).and_then(|d| d.sync_all()).map_err(not_kept("write"))?)
}

/// An identifier as a file name: letters, digits, `.` and `-` stay, all else becomes `_`; and four
/// octets of its hash, for two identifiers may differ in such a character only.
fn file_name(identifier: &str) -> String {
    let name: String = identifier
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .take(120)
        .collect();
    let hash = Sha256::digest(identifier.as_bytes());
    let hash = show::hex(hash.get(..4).unwrap_or_default());
    format!("{}-{hash}", name.trim_matches(['_', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_what_was_finished_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::open(dir.path(), true).unwrap();
        let mut message = inbox.begin("/C=XX;1").unwrap();
        message.write(b"hello").unwrap();
        let path = inbox.finish(message, "/C=XX;1", "content").unwrap().file.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        drop(inbox.begin("/C=XX;2").unwrap());
        // A line cut short by a crash is not a confirmed message.
        let log = dir.path().join("received.log");
        let mut text = fs::read(&log).unwrap();
        text.extend_from_slice(b"/C=XX;3");
        fs::write(&log, text).unwrap();
        for _ in 0..2 {
            let again = Inbox::open(dir.path(), true).unwrap();
            assert!(again.has("/C=XX;1") && !again.has("/C=XX;2") && !again.has("/C=XX;3"));
        }
        assert_eq!(fs::read(&log).unwrap(), b"/C=XX;1\n");
    }

    #[test]
    fn one_delivered_again_is_one_file_wherever_the_first_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let id = "/C=XX;7";
        let deliver = |octets: &[u8]| {
            let mut inbox = Inbox::open(dir.path(), true).unwrap();
            let mut message = inbox.begin(id).unwrap();
            message.write(octets).unwrap();
            (inbox, message)
        };
        // Killed in the middle of its content: its file is there, and nobody's.
        fs::write(dir.path().join(format!("{}.77-1.part", file_name(id))), b"hel").unwrap();
        // Killed when the file was there and the identifier was not.
        let (mut inbox, message) = deliver(b"hello");
        let path = inbox.finish(message, id, "content").unwrap().file.unwrap();
        fs::write(dir.path().join("received.log"), "").unwrap();
        // Killed when both were there, before the confirm.
        let (mut inbox, message) = deliver(b"hello");
        assert!(!inbox.has(id));
        let kept = Kept { duplicate: false, file: Some(path.clone()) };
        assert_eq!(inbox.finish(message, id, "content").unwrap(), kept);
        let (mut inbox, message) = deliver(b"hello");
        assert!(inbox.has(id));
        let kept = Kept { duplicate: true, file: None };
        assert_eq!(inbox.finish(message, id, "content").unwrap(), kept);
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(fs::read(dir.path().join("received.log")).unwrap(), b"/C=XX;7\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the file and the log");
    }

    #[test]
    fn what_another_one_received_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut inboxes = [0, 1].map(|_| Inbox::open(dir.path(), true).unwrap());
        let id = "/C=XX;9";
        for (n, inbox) in inboxes.iter_mut().enumerate() {
            let message = inbox.begin(id).unwrap();
            assert_eq!(inbox.has(id), n == 1);
            assert_eq!(inbox.finish(message, id, "content").unwrap().duplicate, n == 1);
        }
        assert_eq!(fs::read(dir.path().join("received.log")).unwrap(), b"/C=XX;9\n");
    }

    #[test]
    fn one_delivered_to_two_at_once_is_one_whole_file() {
        let dir = tempfile::tempdir().unwrap();
        let id = "/C=XX;9";
        let [mut first, mut second] = [0, 1].map(|_| Inbox::open(dir.path(), true).unwrap());
        let mut one = first.begin(id).unwrap();
        one.write(b"hello").unwrap();
        // Between the last octet of the first and its end, the second begins, and a third opens.
        let mut other = second.begin(id).unwrap();
        other.write(b"hel").unwrap();
        Inbox::open(dir.path(), true).unwrap();
        let kept = first.finish(one, id, "content").unwrap();
        let path = kept.file.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        other.write(b"lo").unwrap();
        let kept = second.finish(other, id, "content").unwrap();
        assert_eq!(kept, Kept { duplicate: true, file: None });
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(fs::read(dir.path().join("received.log")).unwrap(), b"/C=XX;9\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the file and the log");
    }

    #[test]
    fn a_line_cut_short_by_another_swallows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::open(dir.path(), true).unwrap();
        let log = dir.path().join("received.log");
        let mut other = OpenOptions::new().append(true).open(&log).unwrap();
        other.write_all(b"/C=XX;1\n/C=XX;2").unwrap();
        let message = inbox.begin("/C=XX;3").unwrap();
        inbox.finish(message, "/C=XX;3", "content").unwrap();
        assert!(inbox.has("/C=XX;1") && !inbox.has("/C=XX;2") && inbox.has("/C=XX;3"));
        assert_eq!(fs::read(&log).unwrap(), b"/C=XX;1\n/C=XX;3\n");
    }

    #[test]
    fn what_is_not_finished_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::open(dir.path(), true).unwrap();
        let part = inbox.dir.join("of-another-day.part");
        fs::write(&part, b"hel").unwrap();
        let mut message = inbox.begin("/C=XX;1").unwrap();
        message.write(b"hel").unwrap();
        // One that is being written stays, whoever opens the inbox.
        Inbox::open(dir.path(), true).unwrap();
        assert!(!part.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the part and the log");
        drop(message);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the log");
    }

    #[test]
    fn names_stay_inside_the_directory() {
        assert_eq!(file_name("../../etc/passwd"), "etc_passwd-3754d6cb");
        assert_eq!(file_name("/C=XX/ADMD=NATO;a-1"), "C_XX_ADMD_NATO_a-1-931a44df");
        assert_ne!(file_name("/C=XX;a 1"), file_name("/C=XX;a/1"));
    }
}
