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
use std::io::Write;
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
}

/// A message being received.
pub(crate) struct Incoming {
    file: Option<(File, PathBuf)>,
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
        let mut inbox = Inbox { dir: dir.to_owned(), seen: BTreeSet::new(), log, read: 0, keep };
        inbox.locked(|inbox| {
            inbox.refresh()?;
            // A line without its end was not confirmed, and may be the beginning of another
            // identifier: it goes, or it would be one the next time.
            inbox.log.set_len(inbox.read).context("cannot write the inbox")
        })?;
        sync_dir(dir)?;
        Ok(inbox)
    }

    /// Does something while no other `xuxa` changes the log.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Inbox) -> Result<T>) -> Result<T> {
        self.log.lock().context("cannot lock the inbox")?;
        let result = work(self);
        self.log.unlock().context("cannot unlock the inbox")?;
        result
    }

    /// Takes in what the log has more by now: another `xuxa` of the same user may write it, too.
    fn refresh(&mut self) -> Result<()> {
        let length = self.log.metadata().context("cannot read the inbox")?.len();
        let more = usize::try_from(length.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let mut octets = vec![0; more];
        self.log.read_exact_at(&mut octets, self.read).context("cannot read the inbox")?;
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(octets.get(..whole).unwrap_or_default());
        self.seen.extend(text.lines().map(str::to_owned));
        self.read += whole as u64;
        Ok(())
    }

    /// Whether this identifier was received and confirmed before.
    pub(crate) fn has(&self, identifier: &str) -> bool {
        self.seen.contains(identifier)
    }

    /// Begins a message of this identifier, or a report under a name of its own.
    pub(crate) fn begin(&mut self, identifier: &str) -> Result<Incoming> {
        self.refresh()?;
        if !self.keep || self.has(identifier) {
            return Ok(Incoming { file: None });
        }
        let path = self.dir.join(format!("{}.part", file_name(identifier)));
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Incoming { file: Some((file, path)) })
    }

    /// Makes a message durable under its identifier; gives its file, which ends in `.EXTENSION`.
    #[expect(clippy::disallowed_methods, reason = "the directory is synced right after the rename")]
    pub(crate) fn finish(
        &mut self,
        incoming: Incoming,
        identifier: &str,
        extension: &str,
    ) -> Result<Option<PathBuf>> {
        let mut kept = None;
        if let Some((file, part)) = incoming.file {
            file.sync_all().context("cannot write the inbox")?;
            let path = part.with_extension(extension);
            fs::rename(&part, &path).context("cannot write the inbox")?;
            // Before the identifier: one that is remembered is never taken again.
            sync_dir(&self.dir)?;
            kept = Some(path);
        }
        self.locked(|inbox| {
            inbox.refresh()?;
            if !inbox.has(identifier) {
                let line = format!("{identifier}\n");
                inbox.log.write_all(line.as_bytes()).context("cannot write the inbox")?;
                inbox.log.sync_all().context("cannot write the inbox")?;
                inbox.refresh()?;
            }
            Ok(kept)
        })
    }
}

impl Incoming {
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        match &mut self.file {
            Some((file, _)) => file.write_all(octets).context("cannot write the inbox"),
            None => Ok(()),
        }
    }

    /// Forgets what was written.
    pub(crate) fn discard(self) {
        if let Some((_, path)) = self.file {
            let _ = fs::remove_file(path);
        }
    }
}

fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).context("cannot write the inbox")
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
        let path = inbox.finish(message, "/C=XX;1", "content").unwrap().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        inbox.begin("/C=XX;2").unwrap().discard();
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
        // Killed in the middle of its content.
        drop(deliver(b"hel"));
        // Killed when the file was there and the identifier was not.
        let (mut inbox, message) = deliver(b"hello");
        let path = inbox.finish(message, id, "content").unwrap().unwrap();
        fs::write(dir.path().join("received.log"), "").unwrap();
        // Killed when both were there, before the confirm.
        let (mut inbox, message) = deliver(b"hello");
        assert!(!inbox.has(id));
        assert_eq!(inbox.finish(message, id, "content").unwrap().as_ref(), Some(&path));
        let (mut inbox, message) = deliver(b"hello");
        assert!(inbox.has(id));
        assert_eq!(inbox.finish(message, id, "content").unwrap(), None);
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
            assert_eq!(inbox.finish(message, id, "content").unwrap().is_some(), n == 0);
        }
        assert_eq!(fs::read(dir.path().join("received.log")).unwrap(), b"/C=XX;9\n");
    }

    #[test]
    fn names_stay_inside_the_directory() {
        assert_eq!(file_name("../../etc/passwd"), "etc_passwd-3754d6cb");
        assert_eq!(file_name("/C=XX/ADMD=NATO;a-1"), "C_XX_ADMD_NATO_a-1-931a44df");
        assert_ne!(file_name("/C=XX;a 1"), file_name("/C=XX;a/1"));
    }
}
