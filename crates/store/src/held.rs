//! Files that a copy of the store still reads: they are removed when it ends.

use crate::disk::Disk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files of one directory whose removal waits.
#[derive(Debug, Default)]
pub(crate) struct HeldFiles(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    copies: usize,
    removed: Vec<PathBuf>,
}

impl HeldFiles {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on files stay, until [`HeldFiles::release`].
    pub(crate) fn hold(&self) {
        self.lock().copies += 1;
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.lock().copies > 0
    }

    /// Removes a file, or does so when nothing is copied any more. If the process ends before, the next
    /// open removes it.
    pub(crate) fn unlink(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let mut held = self.lock();
        if held.copies == 0 {
            return disk.unlink(path);
        }
        held.removed.push(path.to_owned());
        Ok(())
    }

    /// Removes what was to be removed meanwhile, in that order; `synced`: each durably before the next.
    pub(crate) fn release(&self, disk: &dyn Disk, synced: bool) {
        let mut held = self.lock();
        held.copies = held.copies.saturating_sub(1);
        if held.copies > 0 {
            return;
        }
        for path in std::mem::take(&mut held.removed) {
            let mut done = disk.unlink(&path);
            if let (Ok(()), true, Some(directory)) = (&done, synced, path.parent()) {
                done = disk.sync_dir(directory);
            }
            if let Err(error) = done {
                tracing::warn!(path = %path.display(), %error, "cannot remove an unused file");
            }
        }
    }
}
