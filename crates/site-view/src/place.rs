//! Where the process of a node runs, so that two processes of one node name are known from each other.
//!
//! A process locks a file of its data directory. Two processes that lock the same file of the same running system cannot
//! both live: so the second has the place of the first ([`Place::key`]), and takes its name at once. Everywhere else the
//! lease of the first decides.

use postgres_store::Place;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The file of the data directory that is locked.
const LOCK: &str = "node.lock";

/// Names the run of the system: another one after each boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Its name for people.
const HOST: &str = "/proc/sys/kernel/hostname";

/// The place of this process, its own until this is dropped.
#[derive(Debug)]
pub struct HeldPlace {
    place: Option<Place>,
    /// Held, not read: closing it releases the lock.
    _lock: File,
}

/// Why the place cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Another process has the data directory.
    #[error(
        "another process of this machine uses {directory}: stop it, or give this one another data_dir, and \
         another name (node of [cluster])"
    )]
    Used {
        /// The data directory.
        directory: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot lock {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl HeldPlace {
    /// Locks a data directory, which has to be there.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn take(data_dir: &Path) -> Result<HeldPlace, PlaceError> {
        let path = data_dir.join(LOCK);
        let failed = |error| PlaceError::Io { path: path.clone(), error };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock = options.open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(PlaceError::Used { directory: data_dir.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let key = key(&lock.metadata().map_err(failed)?);
        let place = key.map(|key| Place { key, words: words(data_dir) });
        Ok(HeldPlace { place, _lock: lock })
    }

    /// The place; `None` where the system does not name its runs.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }
}

/// The key of the place that a process with this data directory has, if there was one.
#[must_use]
pub fn key_of(data_dir: &Path) -> Option<String> {
    key(&std::fs::metadata(data_dir.join(LOCK)).ok()?)
}

fn key(lock: &Metadata) -> Option<String> {
    let boot = read(BOOT)?;
    Some(format!("{boot}/{:x}/{:x}", lock.dev(), lock.ino()))
}

fn words(data_dir: &Path) -> String {
    let host = read(HOST).unwrap_or_else(|| "?".to_owned());
    let directory = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    format!("host {host}, process {}, data in {}", std::process::id(), directory.display())
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_a_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        assert_eq!(key_of(directory.path()), None);
        let held = HeldPlace::take(directory.path()).unwrap();
        let error = HeldPlace::take(directory.path()).unwrap_err().to_string();
        assert!(error.contains("another process of this machine uses"), "{error}");
        let elsewhere = HeldPlace::take(other.path()).unwrap();
        let (place, another) = (held.place().unwrap(), elsewhere.place().unwrap());
        assert_ne!(place.key, another.key);
        assert!(place.words.contains("data in /"), "{}", place.words);
        let key = place.key.clone();
        drop(held);
        let again = HeldPlace::take(directory.path()).unwrap();
        assert_eq!(again.place().unwrap().key, key);
        assert_eq!(key_of(directory.path()).unwrap(), key);
        assert!(HeldPlace::take(Path::new("/nowhere")).is_err());
    }
}
