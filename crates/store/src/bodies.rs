//! The directory `bodies/`: one file for each large content, named by a number.

use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::queue::Sweep;
use base::BodyId;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DIRECTORY: &str = "bodies";
const SUFFIX: &str = ".body";

/// The files of `bodies/`, and the next free number.
#[derive(Debug)]
pub(crate) struct Bodies {
    disk: Arc<dyn Disk>,
    next: AtomicU64,
}

/// A file of `bodies/` being written.
#[derive(Debug)]
pub(crate) struct BodyFile {
    pub(crate) number: u64,
    pub(crate) file: Box<dyn DiskFile>,
}

fn path(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:016x}{SUFFIX}"))
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)
}

impl Bodies {
    /// Creates the directory, durably.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Bodies, StoreError> {
        let io = |e| StoreError::io("making the directory of bodies", e);
        disk.create_dir(Path::new(DIRECTORY)).map_err(io)?;
        disk.sync_dir(Path::new("")).map_err(io)?;
        Ok(Bodies { disk, next: AtomicU64::new(1) })
    }

    /// The numbers and lengths of the files present. New numbers are higher than all of them.
    fn list(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        let names = self
            .disk
            .list(Path::new(DIRECTORY))
            .map_err(|e| StoreError::io("listing the bodies", e))?;
        let files: BTreeMap<u64, u64> =
            names.iter().filter_map(|(name, length)| Some((number(name)?, *length))).collect();
        if let Some(last) = files.keys().next_back() {
            self.use_after(*last);
        }
        Ok(files)
    }

    /// New numbers are higher than `last`, which may name a file that was lost.
    fn use_after(&self, last: u64) {
        self.next.fetch_max(last.saturating_add(1), Ordering::Relaxed);
    }

    /// Removes the files that no row names, and finds the rows without a file. A row has a body, the
    /// number of its file, and its length.
    pub(crate) fn sweep(
        &self,
        rows: impl IntoIterator<Item = (BodyId, u64, u64)>,
    ) -> Result<Sweep, StoreError> {
        let (mut files, mut sweep) = (self.list()?, Sweep::default());
        for (id, number, length) in rows {
            self.use_after(number);
            if files.remove(&number) != Some(length) {
                sweep.missing.push(id);
            }
        }
        sweep.removed = files.into_keys().filter(|number| self.unlink(*number)).count();
        if sweep.removed > 0 {
            tracing::info!(files = sweep.removed, "removed unused body files");
        }
        if !sweep.missing.is_empty() {
            tracing::error!(bodies = ?sweep.missing, "body files are missing or too short");
        }
        Ok(sweep)
    }

    pub(crate) fn create(&self) -> io::Result<BodyFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let file = self.disk.create(&path(number))?;
        Ok(BodyFile { number, file })
    }

    /// Makes the names of all files so far durable.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_dir(Path::new(DIRECTORY))
    }

    pub(crate) fn read(&self, number: u64, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.disk.read_range(&path(number), offset, length)
    }

    /// Removes a file without references. If that fails, the next open removes it.
    pub(crate) fn unlink(&self, number: u64) -> bool {
        match self.disk.unlink(&path(number)) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(number, %error, "cannot remove an unused body file");
                false
            }
        }
    }
}
