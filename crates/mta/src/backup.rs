//! Backups of a data directory, made while the daemon works, and the way back.
//!
//! A backup is a directory with what the data directory has: `queue/`, `users.toml` and `epoch`. It is made
//! under another name and has its own when it is whole.

use crate::clock::stopwatch;
use nix::fcntl::{AT_FDCWD, OFlag, RenameFlags, renameat2};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::disk::{Owner, open_own};
use store::{QueueStore, RealDisk, StoreError};
use store_check::pace::Pace;
use users::{Users, UsersError};

/// Files beside the queue.
const FILES: [&str; 2] = [users::FILE, "epoch"];
const QUEUE: &str = "queue";

/// How far a backup is, or how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// Where it is made.
    pub directory: PathBuf,
    /// Queue entries when it began.
    pub entries: u64,
    /// Octets copied.
    pub octets: u64,
    /// Whether it is still being made.
    pub running: bool,
    /// Why it was not made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
}

/// A backup or restore was not possible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("{0} exists already: name a directory that does not")]
    Exists(PathBuf),
    #[error("{0} is in the queue's own directory: name a place elsewhere")]
    Inside(PathBuf),
    #[error(
        "{0} exists: it is made for a backup or a restore that was interrupted, or runs. If none \
         runs, remove it"
    )]
    Interrupted(PathBuf),
    #[error("{0} is not a backup: it has no queue/log")]
    NoBackup(PathBuf),
    #[error(
        "{0} has a queue already. With --replace it is set aside, and the backup takes its place"
    )]
    HasQueue(PathBuf),
    #[error("the daemon stops, or the command was interrupted: no backup was made")]
    Stopped,
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the users in the backup: {0}")]
    Users(#[from] UsersError),
}

fn at(path: &Path) -> impl Fn(io::Error) -> BackupError + '_ {
    |error| BackupError::File { path: path.to_owned(), error }
}

/// The backup that the daemon makes, or made last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backup {
    report: Arc<Mutex<BackupReport>>,
    /// How often it was asked after.
    asked: Arc<AtomicU64>,
}

/// A backup that nobody has asked after for so long is ended: the command was interrupted.
const UNASKED: Duration = Duration::from_secs(5);

impl Backup {
    pub(crate) fn report(&self) -> BackupReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut BackupReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins one, unless one is being made.
    pub(crate) fn begins(&self, directory: &Path) -> bool {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = !report.running;
        if begins {
            let directory = directory.to_owned();
            *report = BackupReport { directory, running: true, ..BackupReport::default() };
        }
        begins
    }

    /// The state of it, for the one who waits for it.
    pub(crate) fn asked(&self) -> BackupReport {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.report()
    }

    /// Whether somebody still waits for it, whenever it is called.
    pub(crate) fn is_wanted(&self) -> impl FnMut(&BackupReport) -> bool + use<> {
        let (asked, since) = (Arc::clone(&self.asked), stopwatch());
        let (mut last, mut at) = (asked.load(Ordering::Relaxed), since());
        move |_| {
            let count = asked.load(Ordering::Relaxed);
            if count != last {
                (last, at) = (count, since());
            }
            since().saturating_sub(at) < UNASKED
        }
    }

    /// Makes a backup in the directory of [`Backup::begins`], copying at most so many octets a second,
    /// until `progress` answers false; blocks.
    pub(crate) fn run(
        &self,
        store: &dyn QueueStore,
        data_dir: &Path,
        rate: Option<u64>,
        mut progress: impl FnMut(&BackupReport) -> bool,
    ) {
        let to = self.report().directory;
        let entries = store.entry_count().unwrap_or(0);
        self.change(|report| report.entries = entries);
        let mut pace = Pace::new(store, rate, stopwatch());
        let done = make(store, data_dir, &to, &mut |copied| {
            self.change(|report| report.octets += copied);
            progress(&self.report()) && pace.read(copied).1
        });
        self.change(|report| {
            report.running = false;
            report.failed = done.err().map(|error| error.to_string());
        });
    }
}

/// The name under which a directory is made.
fn partial(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    directory.with_file_name(name)
}

fn make_directory(path: &Path) -> Result<(), BackupError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Interrupted(path.to_owned()),
        _ => BackupError::File { path: path.to_owned(), error },
    })
}

fn make(
    store: &dyn QueueStore,
    data_dir: &Path,
    to: &Path,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let inside = |directory: &Path| {
        let above = to.parent().and_then(|parent| parent.canonicalize().ok());
        directory.canonicalize().is_ok_and(|own| above.is_some_and(|above| above.starts_with(own)))
    };
    if inside(&data_dir.join(QUEUE)) {
        return Err(BackupError::Inside(to.to_owned()));
    }
    let unfinished = partial(to);
    make_directory(&unfinished)?;
    let made = fill(store, data_dir, &unfinished, goes_on).and_then(|()| {
        rename(&unfinished, to)?;
        sync(to.parent().unwrap_or(Path::new("/")))
    });
    if made.is_err() {
        // A part of a backup is of no use.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
}

fn fill(
    store: &dyn QueueStore,
    data_dir: &Path,
    to: &Path,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), BackupError> {
    let queue = to.join(QUEUE);
    make_directory(&queue)?;
    if !store.back_up(&queue, goes_on)? {
        return Err(BackupError::Stopped);
    }
    copy_files(data_dir, to)?;
    sync(to)
}

fn copy_files(from: &Path, to: &Path) -> Result<(), BackupError> {
    for name in FILES {
        if from.join(name).exists() {
            copy(&from.join(name), &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a file to a new one, durably.
fn copy(from: &Path, to: &Path) -> Result<(), BackupError> {
    // A link could lead to what is none of the daemon's.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    let mut source = options.open(from).map_err(at(from))?;
    let mut new = OpenOptions::new();
    let mut file = new.write(true).create_new(true).mode(0o600).open(to).map_err(at(to))?;
    io::copy(&mut source, &mut file).map_err(at(to))?;
    file.sync_all().map_err(at(to))
}

fn sync(directory: &Path) -> Result<(), BackupError> {
    File::open(directory).and_then(|open| open.sync_all()).map_err(at(directory))
}

#[expect(clippy::disallowed_methods, reason = "the directory is synced by the caller")]
fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    fs::rename(from, to).map_err(at(to))
}

/// A copy of a backup beside the data directory's own files, not yet in their place. Dropped, it goes.
pub(crate) struct Restored {
    data_dir: PathBuf,
    copy: PathBuf,
    /// No daemon starts on the queue that is to be replaced.
    _lock: RealDisk,
    /// There was none: it is an empty directory, for the lock.
    is_new: bool,
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.copy);
        if self.is_new {
            remove_empty(&self.data_dir.join(QUEUE));
        }
    }
}

/// Removes the directory of a queue that has never had anything but a lock.
fn remove_empty(queue: &Path) {
    let _ = fs::remove_file(queue.join("lock"));
    let _ = fs::remove_dir(queue);
}

impl Restored {
    /// Copies a backup into a data directory that no daemon uses. `replace`: it may have a queue.
    pub(crate) fn copy(
        from: &Path,
        data_dir: &Path,
        replace: bool,
    ) -> Result<Restored, BackupError> {
        // A queue that an earlier restore replaced is one without users and epoch.
        let queue_of_it = [from.join(QUEUE), from.to_owned()];
        let Some(source) = queue_of_it.into_iter().find(|queue| queue.join("log").is_dir()) else {
            return Err(BackupError::NoBackup(from.to_owned()));
        };
        let queue = data_dir.join(QUEUE);
        let is_new = !queue.exists();
        if !is_new && !replace {
            return Err(BackupError::HasQueue(data_dir.to_owned()));
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(data_dir);
        made.map_err(at(data_dir))?;
        let lock = RealDisk::open(&queue)?;
        let copy = data_dir.join("restored.partial");
        if let Err(error) = make_directory(&copy) {
            if is_new {
                remove_empty(&queue);
            }
            return Err(error);
        }
        let restored = Restored { data_dir: data_dir.to_owned(), copy, _lock: lock, is_new };
        copy_directory(&source, &restored.queue())?;
        if source != from {
            copy_files(from, &restored.copy)?;
            Users::read(&restored.copy)?;
        }
        let owner = Owner::from_directory(data_dir).map_err(at(data_dir))?;
        give_all(owner, &restored.copy)?;
        Ok(restored)
    }

    /// The copy of the queue.
    pub(crate) fn queue(&self) -> PathBuf {
        self.copy.join(QUEUE)
    }

    /// Puts the copy into its place. Returns what was there, under its new name.
    pub(crate) fn put_in_place(mut self) -> Result<Vec<PathBuf>, BackupError> {
        let mut aside: Vec<PathBuf> = self.place(users::FILE)?.into_iter().collect();
        let queue = self.place(QUEUE)?;
        let was_new = std::mem::take(&mut self.is_new);
        match queue {
            Some(empty) if was_new => remove_empty(&empty),
            replaced => aside.extend(replaced),
        }
        if !self.data_dir.join("epoch").exists() {
            // What is there is later than that of the backup.
            self.place("epoch")?;
        }
        sync(&self.data_dir)?;
        Ok(aside)
    }

    /// Puts one of them into its place; returns the new name of what was there. A daemon that starts at any
    /// moment finds one of the two.
    fn place(&self, name: &str) -> Result<Option<PathBuf>, BackupError> {
        let (from, to) = (self.copy.join(name), self.data_dir.join(name));
        if !from.exists() {
            return Ok(None);
        }
        if !to.exists() {
            rename(&from, &to)?;
            return Ok(None);
        }
        let free = (1u32..).map(|n| self.data_dir.join(format!("{name}.replaced-{n}")));
        let free = free.into_iter().find(|path| !path.exists()).unwrap_or_default();
        // The name is free for it: what is replaced is never where a drop removes it.
        rename(&from, &free)?;
        exchange(&free, &to)?;
        Ok(Some(free))
    }
}

fn exchange(one: &Path, other: &Path) -> Result<(), BackupError> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
        .map_err(|error| at(other)(error.into()))
}

/// Copies a directory to a new one, with what is in it, durably.
fn copy_directory(from: &Path, to: &Path) -> Result<(), BackupError> {
    make_directory(to)?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let kind = entry.file_type().map_err(at(from))?;
        let new = to.join(entry.file_name());
        if kind.is_dir() {
            copy_directory(&entry.path(), &new)?;
        } else if kind.is_file() {
            copy(&entry.path(), &new)?;
        }
    }
    sync(to)
}

/// Gives a directory that root has just made, and what is in it, to the user whose daemon is to use it. Until
/// the end nobody else enters it, and it is not looked up by its name again.
fn give_all(owner: Option<Owner>, directory: &Path) -> Result<(), BackupError> {
    if owner.is_none() {
        return Ok(());
    }
    let made = open_own(directory).map_err(at(directory))?;
    let inside = PathBuf::from(format!("/proc/self/fd/{}", made.as_raw_fd()));
    give_inside(owner, &inside)?;
    Owner::give(owner, &made).map_err(at(directory))
}

fn give_inside(owner: Option<Owner>, directory: &Path) -> Result<(), BackupError> {
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        if path.is_dir() {
            give_inside(owner, &path)?;
        }
        File::open(&path).and_then(|made| Owner::give(owner, &made)).map_err(at(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::STORE;

    fn queue_in(directory: &Path) -> PathBuf {
        fs::create_dir_all(directory).unwrap();
        let queue = directory.join(QUEUE);
        store::open(&queue, STORE).unwrap().close();
        queue
    }

    #[test]
    fn no_daemon_starts_on_a_queue_that_is_being_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (from, data_dir) = (place.path().join("backup"), place.path().join("data"));
        queue_in(&from);
        let queue = queue_in(&data_dir);
        let restored = Restored::copy(&from, &data_dir, true).unwrap();
        let started = store::open(&queue, STORE).map(drop);
        assert!(matches!(started, Err(StoreError::Locked { .. })), "{started:?}");
        let aside = restored.put_in_place().unwrap();
        assert_eq!(aside, [data_dir.join("queue.replaced-1")]);
        store::open(&queue, STORE).unwrap();
    }

    #[test]
    fn where_no_queue_was_none_is_left_by_a_restore_that_fails() {
        let place = tempfile::tempdir().unwrap();
        let (from, data_dir) = (place.path().join("backup"), place.path().join("data"));
        queue_in(&from);
        drop(Restored::copy(&from, &data_dir, false).unwrap());
        assert!(!data_dir.join(QUEUE).exists());
        let restored = Restored::copy(&from, &data_dir, false).unwrap();
        assert_eq!(restored.put_in_place().unwrap(), <[PathBuf; 0]>::default());
        store::open(&data_dir.join(QUEUE), STORE).unwrap();
        assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 1, "nothing else is left");
    }
}
