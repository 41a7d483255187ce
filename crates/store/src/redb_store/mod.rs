//! The queue in one redb file, with large bodies in separate files.

mod apply;
mod bulk;
mod commit;
mod doubt;
mod export;
mod guard;
mod read;
mod tables;

use crate::bodies::Bodies;
use crate::caches::recent::Recent;
use crate::caches::sieve::Sieve;
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;
use crate::queue::{Contents, Sweep};
use crate::spool::Spools;
use base::BodyId;
use bulk::Bulk;
use doubt::Doubts;
pub(crate) use export::Exported;
use guard::{Guard, Trouble};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use tables::BODY_INDEX;

/// The database's file in the store's directory.
pub(crate) const DATABASE: &str = "queue.redb";
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
    /// Keys of full segments of the log that stay in memory before they go into a file of their own.
    pub run_keys: usize,
    /// Octets of a segment of the log: a multiple of 4,096.
    pub segment: u64,
}

impl Default for Options {
    /// 64 MiB each, 512 keys, 32,768 keys, and 4 MiB.
    fn default() -> Options {
        Options {
            spool_memory: 64 << 20,
            cache: 64 << 20,
            many_keys: 512,
            run_keys: 32 << 10,
            segment: 4 << 20,
        }
    }
}

/// The durable queue on redb.
#[derive(Debug)]
pub struct RedbStore {
    disk: Arc<dyn Disk>,
    options: Options,
    bodies: Arc<Bodies>,
    spools: Arc<Spools>,
    /// The spools, as callers have them.
    contents: Arc<dyn Contents>,
    sweep: Sweep,
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
    /// Batches whose end is not known.
    doubts: Mutex<Doubts>,
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
        let (sweep, left) = bodies.sweep(body_files(&db)?, false)?;
        let sweep = Sweep { repaired, ..sweep };
        let spools = Arc::new(Spools::new(Arc::clone(&bodies), options.spool_memory, left));
        let bulk = Bulk::load(&db, options.many_keys)
            .map_err(|e| StoreError::database("reading keys that were remembered last", e))?;
        let sieve = Sieve::default();
        bulk.keys().for_each(|key| sieve.insert(key));
        Ok(RedbStore {
            contents: Arc::clone(&spools) as Arc<dyn Contents>,
            spools,
            disk,
            options,
            bodies,
            sweep,
            state: RwLock::new(DatabaseState { db: Ok(db), trouble }),
            writer: Mutex::default(),
            stopped: OnceLock::new(),
            recent: Mutex::default(),
            bulk: Mutex::new(bulk),
            sieve,
            doubts: Mutex::default(),
        })
    }

    fn close_database(&self) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Set before readers see that the database is gone, so that nothing opens it again.
        let _ = self.stopped.set(StoreError::Closed);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        drop(std::mem::replace(&mut state.db, Err(StoreError::Closed)));
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
                let commits = tables::commits(&db);
                *state = DatabaseState { db: Ok(db), trouble };
                drop(state);
                let commits = commits.map_err(|reading| {
                    let source = std::io::Error::other(reading.to_string());
                    self.stop("counting commits", Arc::new(source))
                })?;
                self.settle_doubts(commits);
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

/// The bodies in files, with the numbers and lengths of these.
fn body_files(db: &Database) -> Result<Vec<(BodyId, u64, u64)>, StoreError> {
    let scan = || -> Result<Vec<(BodyId, u64, u64)>, redb::Error> {
        let index = db.begin_read()?.open_table(BODY_INDEX)?;
        let mut rows = Vec::new();
        for row in index.iter()? {
            let (id, value) = row?;
            let (number, length) = value.value();
            if number != 0 {
                rows.push((BodyId(id.value()), number, length));
            }
        }
        Ok(rows)
    };
    scan().map_err(|e| StoreError::database("reading the index of bodies", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyDisk;
    use crate::queue::{BatchId, Committed, QueueStore};
    use base::{EntryId, Precedence};
    use bytes::Bytes;
    use engine::journal::{Op, QueueId};
    use std::io::ErrorKind;

    fn put(n: u64) -> (BatchId, Vec<Op>) {
        let (precedence, id) = (Precedence::Routine, EntryId(n));
        let record = Bytes::from_static(b"x");
        (BatchId(n), vec![Op::PutEntry { precedence, id, queue: QueueId(7), record }])
    }

    fn commit(store: &RedbStore, n: u64) -> Committed {
        store.commit(vec![put(n)]).remove(0)
    }

    fn has(store: &RedbStore, n: u64) -> bool {
        store.entry((Precedence::Routine, EntryId(n))).unwrap().is_some()
    }

    /// Every operation from the k-th of a commit fails, until the disk is well again: the end of
    /// the batch is then known, and it is the truth.
    #[test]
    fn a_batch_of_unknown_end_is_known_once_the_database_can_be_opened() {
        let (mut unknown, mut durable) = (0, 0);
        for k in 1.. {
            let disk = FaultyDisk::new();
            let store = RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap();
            assert!(commit(&store, 1).is_durable());
            disk.fail_from(disk.calls() + k, ErrorKind::StorageFull);
            let first = commit(&store, 2);
            let is_stopped = matches!(&first, Committed::Unknown(error) if error.is_final());
            if first.is_durable() {
                break;
            }
            if !is_stopped && matches!(first, Committed::Unknown(_)) {
                unknown += 1;
                assert!(matches!(store.outcome(BatchId(2)), Committed::Unknown(_)), "still ill");
                disk.heal();
                let end = store.outcome(BatchId(2));
                assert!(!matches!(end, Committed::Unknown(_)), "{end:?}");
                assert_eq!(end.is_durable(), has(&store, 2));
                durable += usize::from(end.is_durable());
                assert!(commit(&store, 3).is_durable());
                assert!(has(&store, 1) && has(&store, 3));
            }
        }
        assert!(unknown > 0, "no batch had an unknown end");
        // A later release of redb may write in another order.
        assert!(durable <= unknown);
    }

    #[test]
    fn a_failed_sync_stops_the_store_and_answers_nobody() {
        for k in 1.. {
            let disk = FaultyDisk::new();
            let store = RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap();
            disk.fail_at(disk.calls() + k, ErrorKind::Other);
            let first = commit(&store, 1);
            if let Committed::Unknown(error) = first {
                assert!(error.is_final(), "{error}");
                assert!(matches!(store.outcome(BatchId(1)), Committed::Unknown(_)));
                assert!(matches!(commit(&store, 2), Committed::NotDone(e) if e.is_final()));
                return;
            }
            assert!(!first.is_durable(), "no sync failed");
        }
    }
}
