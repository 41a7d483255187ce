//! The inbox: a delivery is confirmed only when it is durable, and is kept once.
//!
//! The MTA repeats a delivery that was not confirmed. So a delivery is recorded before its confirm,
//! by its identifier and the digest of its content; the identifier alone can be forged by the sender.
//! Only the user can access the inbox, a directory: one file for each message or report, and
//! `received.log`.

mod log;
#[cfg(test)]
mod tests;

use crate::part::{Naming, Part, make_dir, sweep, sync_dir, tighten};
use crate::show;
use anyhow::{Context, Result};
use log::Log;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Prefix of contents that are being received. Extracted files may be in the inbox, too; no name from
/// the wire keeps a leading dot.
const PREFIX: &str = ".xuxa-inbox";
/// Octets read at once.
const CHUNK: usize = 64 << 10;

/// The directory, and the record of what was received.
pub(crate) struct Inbox {
    dir: PathBuf,
    log: Log,
    keep: bool,
}

/// A message being received. Its file is removed when it is dropped.
pub(crate) struct Incoming {
    part: Option<Part>,
    hasher: Sha256,
}

/// The outcome of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// It was received and confirmed before: the same content under the same identifier.
    pub duplicate: bool,
    /// Another content was received under the same identifier: one of the two is forged.
    pub identifier_reused: bool,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    pub file: Option<PathBuf>,
}

/// A delivery could not be kept: the MTA remains responsible.
#[derive(Debug, thiserror::Error)]
#[error("cannot {0}")]
pub(crate) struct NotKept(pub String, #[source] pub io::Error);

fn not_kept(doing: &'static str) -> impl FnOnce(io::Error) -> NotKept {
    move |error| NotKept(format!("{doing} the inbox"), error)
}

impl Inbox {
    /// Opens or creates the directory, and removes the permissions of others. With `keep` false, only
    /// identifiers and digests are kept.
    pub(crate) fn open(dir: &Path, keep: bool) -> Result<Inbox> {
        let shown = dir.display();
        make_dir(dir).with_context(|| format!("cannot make the inbox {shown}"))?;
        tighten(dir, 0o700).with_context(|| {
            format!(
                "others may look into the inbox {shown}, and its mode cannot be changed to 0700"
            )
        })?;
        let path = dir.join("received.log");
        let log = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut inbox = Inbox { dir: dir.to_owned(), log: Log::new(log), keep };
        inbox.locked(|inbox| {
            inbox.log.refresh()?;
            inbox.log.truncate()?;
            sweep(&inbox.dir, PREFIX).map_err(not_kept("read"))?;
            Ok(inbox.tighten().map_err(not_kept("close to others the files of"))?)
        })?;
        sync_dir(&inbox.dir).map_err(not_kept("write"))?;
        Ok(inbox)
    }

    /// Unreadable lines of the log. A repeated delivery of what they named is kept again.
    pub(crate) fn unreadable_lines(&self) -> u64 {
        self.log.unreadable()
    }

    /// Removes the permissions of others from files of an earlier version.
    fn tighten(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            // No link is followed.
            if !entry.file_type()?.is_file() {
                continue;
            }
            match tighten(&entry.path(), 0o600) {
                // Another receiver may have completed or dropped it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Runs `work` while no other `xuxa` changes the log.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Inbox) -> Result<T>) -> Result<T> {
        self.log.file.lock().map_err(not_kept("lock"))?;
        let result = work(self);
        self.log.file.unlock().map_err(not_kept("unlock"))?;
        result
    }

    /// Begins a message with this identifier, or a report.
    pub(crate) fn begin(&mut self, identifier: &str) -> Result<Incoming> {
        let mut incoming = Incoming { part: None, hasher: Sha256::new() };
        if self.keep {
            let prefix = format!("{PREFIX}.{}", file_name(identifier, ""));
            incoming.part = Some(Part::create(&self.dir, &prefix).map_err(not_kept("write"))?);
        }
        Ok(incoming)
    }

    /// Makes a message durable under its identifier and digest, in a file that ends in `.EXTENSION`.
    /// A duplicate is dropped. For a new message, `also` runs before it is recorded: if it fails, the
    /// message is not received.
    pub(crate) fn finish(
        &mut self,
        incoming: Incoming,
        identifier: &str,
        extension: &str,
        also: impl FnOnce(&mut Taking<'_>) -> Result<()>,
    ) -> Result<Kept> {
        if let Some(part) = &incoming.part {
            part.sync().map_err(not_kept("write"))?;
        }
        let sha256 = show::hex(&incoming.hasher.finalize());
        self.locked(|inbox| {
            inbox.log.refresh()?;
            let identifier_reused = match inbox.was_received(identifier, &sha256, extension) {
                Some(true) => {
                    return Ok(Kept {
                        duplicate: true,
                        identifier_reused: false,
                        sha256,
                        file: None,
                    });
                }
                known => known.is_some(),
            };
            let mut file = None;
            if let Some(part) = incoming.part {
                let name = file_name(identifier, &sha256);
                file = Some(inbox.publish(&part, &name, extension).map_err(not_kept("write"))?);
            }
            also(&mut Taking { log: &mut inbox.log, identifier, sha256: &sha256 })?;
            let time = ua::Clock::utc().to_string();
            inbox.log.append(identifier, &sha256, time)?;
            Ok(Kept { duplicate: false, identifier_reused, sha256, file })
        })
    }

    /// Keeps these octets durably beside what is received, in a file that ends in `.EXTENSION`: once, however often they
    /// come. `None` where contents are not kept.
    pub(crate) fn keep(
        &mut self,
        identifier: &str,
        extension: &str,
        octets: &[u8],
    ) -> Result<Option<PathBuf>> {
        let mut incoming = self.begin(identifier)?;
        incoming.write(octets)?;
        let Some(part) = incoming.part else { return Ok(None) };
        part.sync().map_err(not_kept("write"))?;
        let name = file_name(identifier, "");
        self.locked(|inbox| {
            Ok(Some(inbox.publish(&part, &name, extension).map_err(not_kept("write"))?))
        })
    }

    /// Gives a content its name, durably. A content that was kept but not recorded has it already;
    /// any other file of this name stays.
    fn publish(&self, part: &Part, name: &str, extension: &str) -> io::Result<PathBuf> {
        let mut path = self.dir.join(format!("{name}.{extension}"));
        let mut number = 0u64;
        while !part.publish(&path)? && !part.is_same_as(&path)? {
            number += 1;
            path = self.dir.join(format!("{name}-{number}.{extension}"));
        }
        sync_dir(&self.dir)?;
        Ok(path)
    }

    /// Whether this content was received under this identifier; nothing where no other was, either.
    fn was_received(&self, identifier: &str, sha256: &str, extension: &str) -> Option<bool> {
        let known = self.log.known(identifier)?;
        let of_old = || {
            let name = format!("{}.{extension}", file_name(identifier, ""));
            known.without_digest && digest(&self.dir.join(name)).is_ok_and(|of| of == sha256)
        };
        Some(known.digests.contains(sha256) || of_old())
    }
}

/// A complete message that is not yet recorded.
pub(crate) struct Taking<'a> {
    log: &'a mut Log,
    identifier: &'a str,
    sha256: &'a str,
}

impl Naming for Taking<'_> {
    fn names(&self) -> &[String] {
        self.log.names(self.identifier, self.sha256)
    }

    fn record(&mut self, names: Vec<String>) -> Result<()> {
        self.log.record(self.identifier, self.sha256, names)
    }

    fn mark(&self, number: usize) -> String {
        let hash = Sha256::new().chain_update(self.sha256).chain_update(self.identifier);
        let hash = hash.chain_update([0]).chain_update(number.to_string()).finalize();
        show::hex(hash.get(..8).unwrap_or_default())
    }
}

impl Incoming {
    pub(crate) fn write(&mut self, octets: &[u8]) -> Result<()> {
        self.hasher.update(octets);
        match &mut self.part {
            Some(part) => Ok(part.write(octets).map_err(not_kept("write"))?),
            None => Ok(()),
        }
    }
}

/// SHA-256 of a file, in hexadecimal.
fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(show::hex(&hasher.finalize())),
            read => hasher.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// An identifier as a file name: letters, digits, `.` and `-` stay, all else becomes `_`; and eight
/// octets of a hash of it and of the content's, for two identifiers may differ in such a character
/// only, and two contents come under one identifier. Without a content's, as an earlier version had
/// it: four octets.
pub(crate) fn file_name(identifier: &str, sha256: &str) -> String {
    let name: String = identifier
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .take(120)
        .collect();
    let hash = Sha256::new().chain_update(identifier).chain_update(sha256).finalize();
    let octets = if sha256.is_empty() { 4 } else { 8 };
    let hash = show::hex(hash.get(..octets).unwrap_or_default());
    format!("{}-{hash}", name.trim_matches(['_', '.']))
}
