//! `mta run --pcap`: records one association as a file for Wireshark.

use crate::clock::Clock;
use capture::{CaptureWriter, CapturedConnection, Opener};
use std::fs::{File, Permissions};
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The label P3 listeners have.
const P3: &str = "p3";

/// The association to record, and the file.
#[derive(Debug)]
pub struct Wanted {
    /// The file. It is created or emptied once this daemon has its data directory to itself:
    /// another daemon may be writing to it.
    pub path: PathBuf,
    /// `peer/channel` or `p3`; `None` for the first P1 association.
    pub association: Option<String>,
}

/// Why an association cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PcapError {
    #[error(
        "there is no association {association}: --pcap-association takes {}",
        there.join(", ")
    )]
    NoAssociation { association: String, there: Vec<String> },
    #[error("cannot write {path}: {error}")]
    Unwritable { path: PathBuf, error: io::Error },
}

impl Wanted {
    /// Checks that one of these channels is the requested one, and that the file can be written.
    /// The file is not changed.
    pub(crate) fn check<'a>(&self, labels: impl Iterator<Item = &'a str>) -> Result<(), PcapError> {
        if let Some(association) = &self.association {
            let all: Vec<&str> = labels.chain([P3]).collect();
            if !all.contains(&association.as_str()) {
                let there = all.into_iter().map(str::to_owned).collect();
                return Err(PcapError::NoAssociation { association: association.clone(), there });
            }
        }
        open(&self.path, false)
            .map(drop)
            .map_err(|error| PcapError::Unwritable { path: self.path.clone(), error })
    }
}

/// Opens the file for its owner only; creates it if absent.
fn open(path: &Path, anew: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create(true).truncate(anew).mode(0o600).open(path)
}

/// A recording that waits for its association.
pub struct Pcap {
    /// `peer/channel` or `p3`; `None` for the first P1 association.
    wanted: Option<String>,
    taken: AtomicBool,
    tap: Tap,
}

/// The recording of one association. An error ends the recording, not the association.
#[derive(Clone)]
pub(crate) struct Tap {
    clock: Clock,
    writer: Arc<Mutex<Option<CaptureWriter<BufWriter<File>>>>>,
}

impl Pcap {
    /// Creates the file, or empties it, readable by its owner only: it will contain passwords and
    /// contents.
    pub fn create(path: &Path, wanted: Option<String>, clock: Clock) -> io::Result<Pcap> {
        use std::os::unix::fs::PermissionsExt;
        let file = open(path, true)?;
        // The mode above applies to a new file only.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let writer = CaptureWriter::new(BufWriter::new(file))?;
        let tap = Tap { clock, writer: Arc::new(Mutex::new(Some(writer))) };
        Ok(Pcap { wanted, taken: AtomicBool::new(false), tap })
    }

    /// A tap for this connection, if it is the one to record.
    pub(crate) fn tap(
        &self,
        label: &str,
        ends: (SocketAddr, SocketAddr),
        opener: Opener,
        tos: u8,
    ) -> Option<Tap> {
        let fits = self.wanted.as_deref().map_or(label != P3, |wanted| wanted == label);
        if !fits || self.taken.swap(true, Ordering::Relaxed) {
            return None;
        }
        let (local, remote) = ends;
        let tap = self.tap.clone();
        let now = tap.clock.now().utc;
        tap.write(|w| w.connection(now, CapturedConnection { local, remote, opener, tos }));
        tracing::info!(association = label, %local, %remote, "recording this association");
        Some(tap)
    }
}

impl Tap {
    fn lock(&self) -> MutexGuard<'_, Option<CaptureWriter<BufWriter<File>>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: impl FnOnce(&mut CaptureWriter<BufWriter<File>>) -> io::Result<()>) {
        let mut writer = self.lock();
        if let Some(Err(error)) = writer.as_mut().map(write) {
            tracing::warn!(%error, "the recording ends here");
            *writer = None;
        }
    }

    /// Records octets sent.
    pub(crate) fn sent(&self, octets: &[u8]) {
        let now = self.clock.now().utc;
        self.write(|w| w.sent(now, octets));
    }

    /// Records octets received.
    pub(crate) fn received(&self, octets: &[u8]) {
        let now = self.clock.now().utc;
        self.write(|w| w.received(now, octets));
    }

    /// Records the end of the association.
    pub(crate) fn closed(&self) {
        let now = self.clock.now().utc;
        self.write(|w| w.closed(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_and_one_that_was_there_are_the_owners_only() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        std::fs::write(&old, "what was in it").unwrap();
        std::fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        for path in [new, old] {
            Pcap::create(&path, None, Clock::start()).unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{path:?}");
            let octets = std::fs::read(&path).unwrap();
            assert!(octets.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "{octets:?}");
        }
    }
}
