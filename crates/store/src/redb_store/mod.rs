//! The queue in one redb file, with large bodies in separate files.

mod apply;
mod bulk;
mod commit;
mod guard;
mod read;
mod tables;

use crate::bodies::Bodies;
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;
use crate::queue::EntryKey;
use crate::recent::{Key, Recent};
use crate::sieve::Sieve;
use crate::spool::Spools;
use base::BodyId;
use bulk::Bulk;
use bytes::Bytes;
use engine::journal::Digest;
use guard::{Guard, Trouble};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use tables::BODY_INDEX;

/// The database's file in the store's directory.
const DATABASE: &str = "queue.redb";
/// Its name during creation: redb cannot open a file whose creation a crash interrupted.
const UNFINISHED: &str = "queue.redb.new";

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Octets of contents being received that all spools together hold in memory; beyond that even
    /// small contents go to files.
    pub spool_memory: usize,
    /// Octets of the database cached in memory.
    pub cache: usize,
    /// Keys of one batch beyond which they are moved into their table after its commit, in pieces,
    /// with [`QueueStore::tidy`](crate::QueueStore::tidy).
    pub many_keys: usize,
}

impl Default for Options {
    /// 64 MiB each, and 512 keys.
    fn default() -> Options {
        Options { spool_memory: 64 << 20, cache: 64 << 20, many_keys: 512 }
    }
}

/// The problems in `bodies/` that opening found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Files removed because nothing refers to them: a crash interrupted their spool or commit.
    pub removed: usize,
    /// Bodies whose file is missing or has another length. A crash cannot cause this: the disk
    /// lost synced data, or someone removed files.
    pub missing: Vec<BodyId>,
}

/// The durable queue on redb.
#[derive(Debug)]
pub struct RedbStore {
    disk: Arc<dyn Disk>,
    options: Options,
    bodies: Arc<Bodies>,
    spools: Arc<Spools>,
    sweep: Sweep,
    /// Whether opening required a repair.
    repaired: bool,
    /// Readers share it; reopening after a failure excludes them.
    state: RwLock<DatabaseState>,
    /// One commit at a time.
    writer: Mutex<()>,
    /// Why the store accepts nothing more, after a failed sync or a close.
    stopped: OnceLock<StoreError>,
    /// The cache of the latest commits.
    recent: Mutex<Recent>,
    /// Keys that are durable and not yet in their table.
    bulk: Mutex<Bulk>,
    /// The filter of keys that were never remembered.
    sieve: Sieve,
    /// Number of a commit reported as failed whose result could not be read; 0 for none.
    unsure: AtomicU64,
}

#[derive(Debug)]
struct DatabaseState {
    /// The database, or why it could not be opened again.
    db: Result<Database, StoreError>,
    trouble: Arc<OnceLock<Trouble>>,
}

impl RedbStore {
    /// Opens the store in a directory, created if absent (not its parents), and removes orphaned
    /// files.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it open; [`StoreError::Newer`];
    /// [`StoreError::Damaged`]; those of the disk.
    pub fn open(directory: &Path, options: Options) -> Result<RedbStore, StoreError> {
        RedbStore::with_disk(Arc::new(RealDisk::open(directory)?), options)
    }

    /// Opens the store on a disk that nothing else uses meanwhile.
    ///
    /// # Errors
    /// As for [`RedbStore::open`].
    pub fn with_disk(disk: Arc<dyn Disk>, options: Options) -> Result<RedbStore, StoreError> {
        let bodies = Arc::new(Bodies::open(Arc::clone(&disk))?);
        make_database(&*disk, options.cache)?;
        let Opened { db, trouble, repaired } = open_database(&*disk, DATABASE, options.cache)?;
        tables::prepare(&db)?;
        let sweep = sweep(&db, &bodies)?;
        let bulk = Bulk::load(&db, options.many_keys)
            .map_err(|e| StoreError::database("reading keys that were remembered last", e))?;
        let sieve = Sieve::default();
        bulk.keys().for_each(|key| sieve.insert(key));
        Ok(RedbStore {
            spools: Arc::new(Spools::new(Arc::clone(&bodies), options.spool_memory)),
            disk,
            options,
            bodies,
            sweep,
            repaired,
            state: RwLock::new(DatabaseState { db: Ok(db), trouble }),
            writer: Mutex::default(),
            stopped: OnceLock::new(),
            recent: Mutex::default(),
            bulk: Mutex::new(bulk),
            sieve,
            unsure: AtomicU64::new(0),
        })
    }

    /// The spools whose contents this store commits.
    #[must_use]
    pub fn spools(&self) -> &Arc<Spools> {
        &self.spools
    }

    /// The problems that opening found.
    #[must_use]
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Whether the database had to be read whole to open it: it was not closed, and a release
    /// without quick repair made its last commit.
    #[must_use]
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// Closes the database in order, after running reads and commits. Later calls of remaining
    /// holders fail with [`StoreError::Closed`]. No error if already closed.
    pub fn close(&self) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Set before readers see that the database is gone, so that nothing opens it again.
        let _ = self.stopped.set(StoreError::Closed);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        drop(std::mem::replace(&mut state.db, Err(StoreError::Closed)));
    }

    /// The record of an entry from the cache of latest commits, without a database read.
    #[must_use]
    pub fn recent_entry(&self, key: EntryKey) -> Option<Bytes> {
        self.recent().get(Key::Entry(key)).cloned()
    }

    /// Up to `length` octets of a body from the cache of latest commits, without a database read;
    /// `None` for a body in a file.
    #[must_use]
    pub fn recent_body(&self, id: BodyId, offset: u64, length: usize) -> Option<Bytes> {
        let recent = self.recent();
        let octets = recent.get(Key::Body(id))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
        Some(octets.slice(start..start.saturating_add(length).min(octets.len())))
    }

    /// Whether this key is certainly not remembered, without a database read.
    #[must_use]
    pub fn cannot_have_seen(&self, key: &Digest) -> bool {
        self.sieve.lacks(key)
    }

    /// Reads all remembered keys once, page by page, to complete the filter for
    /// [`RedbStore::cannot_have_seen`]. May run beside everything else. Ends early, and leaves the
    /// filter incomplete, if `ending` is set or the store is closed meanwhile.
    ///
    /// # Errors
    /// Those of the database: the filter then stays incomplete.
    pub fn learn_seen(&self, ending: &AtomicBool) -> Result<(), StoreError> {
        let mut last = None;
        while !ending.load(Ordering::Relaxed) {
            let page = match self.seen_after(last.as_ref()) {
                Err(StoreError::Closed) => return Ok(()),
                page => page?,
            };
            page.iter().for_each(|key| self.sieve.insert(key));
            last = page.last().copied();
            if last.is_none() {
                self.sieve.complete();
                return Ok(());
            }
        }
        Ok(())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bulk(&self) -> MutexGuard<'_, Bulk> {
        self.bulk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reopens the database if it has failed; redb itself refuses to continue.
    fn recover(&self) -> Result<(), StoreError> {
        if let Some(error) = self.stopped.get() {
            return Err(error.clone());
        }
        let healthy = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state.db.is_ok() && state.trouble.get().is_none()
        };
        if healthy {
            return Ok(());
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Closed first: two instances on one file would not know of each other.
        state.db = Err(StoreError::Closed);
        match open_database(&*self.disk, DATABASE, self.options.cache) {
            Ok(Opened { db, trouble, repaired: _ }) => {
                let unsure = self.unsure.swap(0, Ordering::Relaxed);
                let made = unsure != 0 && tables::commits(&db).is_ok_and(|last| last >= unsure);
                *state = DatabaseState { db: Ok(db), trouble };
                if made {
                    // The database differs from what the daemon assumes. The next start reads all
                    // of it and is correct.
                    let why = "a commit was made that had been reported as failed";
                    return Err(self
                        .stop("opening the database again", Arc::new(std::io::Error::other(why))));
                }
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "cannot open the database again");
                state.db = Err(error.clone());
                Err(error)
            }
        }
    }

    /// Stops the store: `doing` failed, and what is durable is unknown.
    fn stop(&self, doing: &'static str, source: Arc<std::io::Error>) -> StoreError {
        let error = StoreError::Stopped { doing, source };
        tracing::error!(%error, "the store stops");
        self.stopped.get_or_init(|| error).clone()
    }
}

/// Creates the database if there is none: complete under another name, then renamed.
fn make_database(disk: &dyn Disk, cache: usize) -> Result<(), StoreError> {
    let io = |e| StoreError::io("making the database", e);
    let root = Path::new("");
    let files = disk.list(root).map_err(io)?;
    let has = |name: &str| files.iter().any(|(file, _)| file == name);
    if has(DATABASE) {
        return Ok(());
    }
    if has(UNFINISHED) {
        disk.unlink(Path::new(UNFINISHED)).map_err(io)?;
    }
    let new = open_database(disk, UNFINISHED, cache)?;
    tables::prepare(&new.db)?;
    drop(new);
    disk.rename(Path::new(UNFINISHED), Path::new(DATABASE)).map_err(io)?;
    disk.sync_dir(root).map_err(io)
}

/// A database that was opened.
struct Opened {
    db: Database,
    trouble: Arc<OnceLock<Trouble>>,
    /// Whether opening read it whole.
    repaired: bool,
}

fn open_database(disk: &dyn Disk, name: &str, cache: usize) -> Result<Opened, StoreError> {
    let io = |e| StoreError::io("opening the database", e);
    let (guard, trouble) = Guard::new(disk.database(Path::new(name)).map_err(io)?);
    let repaired = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&repaired);
    let db = Database::builder()
        .set_cache_size(cache)
        .set_repair_callback(move |_| {
            if !noted.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "the database was not closed in order: all of it is read to open it"
                );
            }
        })
        .create_with_backend(guard)
        .map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Locked { path: name.into() },
            other => StoreError::database("opening the database", other),
        })?;
    Ok(Opened { db, trouble, repaired: repaired.load(Ordering::Relaxed) })
}

/// Removes files without a row, and reports rows without a file.
fn sweep(db: &Database, bodies: &Bodies) -> Result<Sweep, StoreError> {
    let mut files = bodies.list()?;
    let mut sweep = Sweep::default();
    let mut last = 0;
    let mut scan = || -> Result<(), redb::Error> {
        let index = db.begin_read()?.open_table(BODY_INDEX)?;
        for row in index.iter()? {
            let (id, value) = row?;
            let (number, length) = value.value();
            last = last.max(number);
            if number != 0 && files.remove(&number) != Some(length) {
                sweep.missing.push(BodyId(id.value()));
            }
        }
        Ok(())
    };
    scan().map_err(|e| StoreError::database("reading the index of bodies", e))?;
    bodies.use_after(last);
    sweep.removed = files.into_keys().filter(|number| bodies.unlink(*number)).count();
    if sweep.removed > 0 {
        tracing::info!(files = sweep.removed, "removed unused body files");
    }
    if !sweep.missing.is_empty() {
        tracing::error!(bodies = ?sweep.missing, "body files are missing or too short");
    }
    Ok(sweep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyDisk;
    use crate::queue::QueueStore;
    use base::{EntryId, Precedence};
    use engine::journal::Op;

    fn put(n: u64) -> Vec<Op> {
        let (precedence, id) = (Precedence::Routine, EntryId(n));
        vec![Op::PutEntry { precedence, id, record: Bytes::from_static(b"x") }]
    }

    /// Reopens it after a failed write, with a commit whose result is unknown.
    fn reopened(reported_as_failed: impl FnOnce(u64) -> u64) -> RedbStore {
        let disk = FaultyDisk::new();
        let store = RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap();
        store.commit(vec![put(1)]).remove(0).unwrap();
        let last = tables::commits(store.state.read().unwrap().db.as_ref().unwrap()).unwrap();
        store.unsure.store(reported_as_failed(last), Ordering::Relaxed);
        disk.fail_at(disk.calls() + 1, std::io::ErrorKind::StorageFull);
        assert!(store.commit(vec![put(2)]).remove(0).is_err());
        store
    }

    #[test]
    fn a_commit_reported_as_failed_but_made_stops_the_store() {
        let store = reopened(|last| last);
        let error = store.commit(vec![put(3)]).remove(0).unwrap_err();
        assert!(matches!(error, StoreError::Stopped { .. }), "{error}");
    }

    #[test]
    fn one_that_was_not_made_does_not() {
        let store = reopened(|last| last + 1);
        store.commit(vec![put(3)]).remove(0).unwrap();
    }
}
