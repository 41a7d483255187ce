//! The queue as a log: every batch is appended to a segment, and an index in memory, rebuilt at each
//! open, knows where the latest version of everything is.
//!
//! A commit is one write and one sync, whatever the batch changes; a delete takes some 40 octets, and a
//! segment in which nothing is needed any longer is used again. So a full disk stops no delete.

mod backup;
mod commit;
mod footer;
mod frame;
mod import;
mod index;
mod keys;
mod read;
mod recover;
mod repair;
mod rows;
mod scan;
mod segment;
mod tidy;
mod verify;

use crate::bodies::Bodies;
use crate::caches::recent::Recent;
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;
use crate::held::HeldFiles;
use crate::queue::{Contents, Damage, Sweep};
use crate::redb_store::Options;
use crate::spool::Spools;
use frame::{Change, SegmentId};
use import::Found;
use index::Index;
use keys::Keys;
use segment::{Segment, Segments};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

/// The durable queue in segments of a log.
#[derive(Debug)]
pub struct LogStore {
    bodies: Arc<Bodies>,
    spools: Arc<Spools>,
    /// The spools, as callers have them.
    contents: Arc<dyn Contents>,
    sweep: Sweep,
    disk: Arc<dyn Disk>,
    options: Options,
    segments: Segments,
    /// Readers share it; it changes after each commit is durable.
    index: RwLock<Index>,
    /// One commit at a time.
    writer: Mutex<Writer>,
    /// Why the store accepts nothing more, after a failed write or a close.
    stopped: OnceLock<StoreError>,
    /// The cache of the latest commits.
    recent: Mutex<Recent>,
    damage: Mutex<Damage>,
    /// The disk has little room: space is given back sooner.
    is_short: AtomicBool,
    /// Runs that a copy reads.
    held_runs: HeldFiles,
}

/// Where the next frame goes.
#[derive(Debug, Default)]
struct Writer {
    /// The segment that is written; `None` until the first commit after an open.
    active: Option<Arc<Segment>>,
    /// Octets in use of it.
    used: u64,
    /// Its changes, except keys, and octets that they take in its footer.
    changes: Vec<Change>,
    head: u64,
    /// Numbers of the last frame, the last group, and the last segment.
    sequence: u64,
    group: u64,
    last: SegmentId,
    /// Segments that are full and have no footer, the oldest first.
    sealed: VecDeque<Sealed>,
    /// The segment that is being copied, and the run that is being written.
    compaction: Option<tidy::Compaction>,
    run: Option<tidy::RunInProgress>,
    /// The log does not list all runs: the next write does.
    has_new_run: bool,
    /// Segments whose ends the next first frame must record.
    ends: Vec<(SegmentId, u64)>,
    /// All segments when the active one was made, with the octets of their files.
    existing: Vec<(SegmentId, u64)>,
    /// Segments that nothing needs: the next write records it, and then they are given up.
    to_retire: BTreeSet<SegmentId>,
    retired: BTreeSet<SegmentId>,
}

/// A full segment without a footer.
#[derive(Debug)]
struct Sealed {
    segment: Arc<Segment>,
    ending: footer::Ending,
    /// Its changes, except keys.
    changes: Vec<Change>,
}

impl LogStore {
    /// Opens the store in a directory, created if absent (not its parents).
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it open; [`StoreError::Newer`]; those of the disk.
    pub fn open(directory: &Path, options: Options) -> Result<LogStore, StoreError> {
        LogStore::with_disk(Arc::new(RealDisk::open(directory)?), options)
    }

    /// Opens the store on a disk that nothing else uses meanwhile. The database of an earlier release is
    /// taken over.
    ///
    /// # Errors
    /// As for [`LogStore::open`].
    pub fn with_disk(disk: Arc<dyn Disk>, options: Options) -> Result<LogStore, StoreError> {
        let found = import::prepare(&disk, options)?;
        LogStore::build(disk, options, Some(found))
    }

    /// A segment numbered 1 that begins with one frame, right in itself, whose head and data are these: for
    /// tests of what a head may hold.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn segment_of(head: &[u8], data: &[u8]) -> Vec<u8> {
        frame::segment_of(head, data)
    }

    /// `found`: what was there before; `None` while a database is taken over, whose bodies stay.
    fn build(
        disk: Arc<dyn Disk>,
        options: Options,
        found: Option<Found>,
    ) -> Result<LogStore, StoreError> {
        let bodies = Arc::new(Bodies::open(Arc::clone(&disk))?);
        let segments = Segments::open(Arc::clone(&disk), options.segment)?;
        let keys = Keys::new(keys::run::open_all(&*disk)?);
        let recovered = recover::recover(&segments, keys)?;
        segments.fill_reserve();
        let (mut sweep, left) = match found {
            Some(found) => {
                let may_miss_rows = found == Found::Nothing || recovered.lost > 0;
                bodies.sweep(recovered.index.body_files(), may_miss_rows)?
            }
            None => <_>::default(),
        };
        sweep.lost = recovered.lost;
        let damage = Damage {
            batches: recovered.lost,
            bodies: sweep.missing.iter().copied().collect(),
            keys: recovered.index.keys.missing_blocks(),
            ..Damage::default()
        };
        let spools = Arc::new(Spools::new(Arc::clone(&bodies), options.spool_memory, left));
        Ok(LogStore {
            contents: Arc::clone(&spools) as Arc<dyn Contents>,
            spools,
            bodies,
            sweep,
            disk,
            options,
            segments,
            index: RwLock::new(recovered.index),
            writer: Mutex::new(recovered.writer),
            stopped: OnceLock::new(),
            recent: Mutex::default(),
            damage: Mutex::new(damage),
            is_short: AtomicBool::new(false),
            held_runs: HeldFiles::default(),
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        self.stopped.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Stops the store: `doing` failed, and what is durable is unknown.
    fn stop(&self, doing: &'static str, source: std::io::Error) -> StoreError {
        let error = StoreError::Stopped { doing, source: Arc::new(source) };
        tracing::error!(%error, "the store stops");
        self.stopped.get_or_init(|| error).clone()
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    fn damaged(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
