//! What was received, kept so that it is confirmed only when it is on disk, and never twice.
//!
//! The MTA delivers again what was not confirmed, so a delivery is remembered before the confirm goes
//! out: by its identifier and the digest of its content, for an identifier alone is what its sender
//! says it is. The inbox is a directory of the user's alone: one file a message or report, and
//! `received.log`.

mod log;
#[cfg(test)]
mod tests;

use crate::part::{Part, make_dir, sweep, sync_dir, tighten};
use crate::show;
use anyhow::{Context, Result};
use log::Log;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What contents are called while they come: no name from the wire keeps a dot before it, and files
/// may be extracted into the inbox.
const PREFIX: &str = ".xuxa-inbox";
/// Octets read at once.
const CHUNK: usize = 64 << 10;

/// The directory, and what is known to have been received.
pub(crate) struct Inbox {
    dir: PathBuf,
    log: Log,
    keep: bool,
}

/// A message being received. What was written goes when it is dropped.
pub(crate) struct Incoming {
    part: Option<Part>,
    hasher: Sha256,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// It was received and confirmed before: the same content under the same identifier.
    pub duplicate: bool,
    /// Another content was received under the same identifier. One of the two has an identifier that
    /// is not its own.
    pub identifier_reused: bool,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    pub file: Option<PathBuf>,
}

/// A delivery could not be kept: it is the MTA's still.
#[derive(Debug, thiserror::Error)]
#[error("cannot {0}")]
pub(crate) struct NotKept(pub String, #[source] pub io::Error);

fn not_kept(doing: &'static str) -> impl FnOnce(io::Error) -> NotKept {
    move |error| NotKept(format!("{doing} the inbox"), error)
}

impl Inbox {
    /// Opens or makes the directory, and takes away what others may do there. Where `keep` is false
    /// only identifiers and digests are kept.
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

    /// Lines of the log that cannot be read. What they stood for is taken again should it come again.
    pub(crate) fn unreadable_lines(&self) -> u64 {
        self.log.unreadable()
    }

    /// Takes from others what they may do with files that an earlier version made.
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

    /// Does something while no other `xuxa` changes the log.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Inbox) -> Result<T>) -> Result<T> {
        self.log.file.lock().map_err(not_kept("lock"))?;
        let result = work(self);
        self.log.file.unlock().map_err(not_kept("unlock"))?;
        result
    }

    /// Begins a message of this identifier, or a report.
    pub(crate) fn begin(&mut self, identifier: &str) -> Result<Incoming> {
        let mut incoming = Incoming { part: None, hasher: Sha256::new() };
        if self.keep {
            let prefix = format!("{PREFIX}.{}", file_name(identifier, ""));
            incoming.part = Some(Part::create(&self.dir, &prefix).map_err(not_kept("write"))?);
        }
        Ok(incoming)
    }

    /// Makes a message durable under its identifier and digest, in a file that ends in `.EXTENSION`;
    /// one that was made durable before stays, and this one goes. `also` is done to a new one before
    /// it is remembered: where it fails, the message was not received.
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

    /// Gives a content its name, durably. One that was kept before it could be remembered has it
    /// already; what else has it stays, whoever made it.
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

/// A message that is whole, and is not remembered yet.
pub(crate) struct Taking<'a> {
    log: &'a mut Log,
    identifier: &'a str,
    sha256: &'a str,
}

impl Taking<'_> {
    /// What was recorded when the same message came before and was not received, if it did.
    pub(crate) fn names(&self) -> &[String] {
        self.log.names(self.identifier, self.sha256)
    }

    /// Records, durably, what its files are going to be called.
    pub(crate) fn record(&mut self, names: Vec<String>) -> Result<()> {
        self.log.record(self.identifier, self.sha256, names)
    }

    /// Eight octets in hexadecimal that are of one file of this very message.
    pub(crate) fn mark(&self, number: usize) -> String {
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
