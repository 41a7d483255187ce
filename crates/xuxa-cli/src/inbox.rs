//! What was received, kept so that it is confirmed only when it is on disk, and never twice.
//!
//! The MTA delivers again what was not confirmed, so an identifier is remembered before the confirm
//! goes out. The inbox is a directory: one file a message, and `received.log`, one identifier a line.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The directory and the identifiers in it.
pub(crate) struct Inbox {
    dir: PathBuf,
    seen: BTreeSet<String>,
    log: File,
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
        let seen = match fs::read_to_string(&path) {
            // A line without its end was not confirmed: it does not count.
            Ok(text) => text
                .split_inclusive('\n')
                .filter_map(|l| l.strip_suffix('\n'))
                .map(str::to_owned)
                .collect(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => BTreeSet::new(),
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        };
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if fs::read(&path).is_ok_and(|t| t.last().is_some_and(|b| *b != b'\n')) {
            log.write_all(b"\n").context("cannot write the inbox")?;
        }
        Ok(Inbox { dir: dir.to_owned(), seen, log, keep })
    }

    /// Whether this identifier was received and confirmed before.
    pub(crate) fn has(&self, identifier: &str) -> bool {
        self.seen.contains(identifier)
    }

    /// Begins a message of this identifier.
    pub(crate) fn begin(&self, identifier: &str) -> Result<Incoming> {
        if !self.keep || self.has(identifier) {
            return Ok(Incoming { file: None });
        }
        let path = self.dir.join(format!("{}.part", file_name(identifier)));
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Incoming { file: Some((file, path)) })
    }

    /// Makes a message durable under its identifier; gives its file.
    #[expect(clippy::disallowed_methods, reason = "the directory is synced right after the rename")]
    pub(crate) fn finish(
        &mut self,
        incoming: Incoming,
        identifier: &str,
    ) -> Result<Option<PathBuf>> {
        let mut kept = None;
        if let Some((file, part)) = incoming.file {
            file.sync_all().context("cannot write the inbox")?;
            let path = part.with_extension("content");
            fs::rename(&part, &path).context("cannot write the inbox")?;
            kept = Some(path);
        }
        if self.seen.insert(identifier.to_owned()) {
            writeln!(self.log, "{identifier}").context("cannot write the inbox")?;
            self.log.sync_all().context("cannot write the inbox")?;
            File::open(&self.dir).and_then(|d| d.sync_all()).context("cannot write the inbox")?;
        }
        Ok(kept)
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

/// An identifier as a file name: letters, digits, `.` and `-` stay, all else becomes `_`.
fn file_name(identifier: &str) -> String {
    let name: String = identifier
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .take(120)
        .collect();
    name.trim_matches(['_', '.']).to_owned()
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
        let path = inbox.finish(message, "/C=XX;1").unwrap().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        inbox.begin("/C=XX;2").unwrap().discard();
        // A line cut short by a crash is not a confirmed message.
        let log = dir.path().join("received.log");
        let mut text = fs::read(&log).unwrap();
        text.extend_from_slice(b"/C=XX;3");
        fs::write(&log, text).unwrap();
        let again = Inbox::open(dir.path(), true).unwrap();
        assert!(again.has("/C=XX;1") && !again.has("/C=XX;2") && !again.has("/C=XX;3"));
    }

    #[test]
    fn names_stay_inside_the_directory() {
        assert_eq!(file_name("../../etc/passwd"), "etc_passwd");
        assert_eq!(file_name("/C=XX/ADMD=NATO;a-1"), "C_XX_ADMD_NATO_a-1");
    }
}
