//! The queue as a log: every batch is appended to a segment, and an index in memory, rebuilt at each
//! open, knows where the latest version of everything is.
//!
//! A commit is one write and one sync, whatever the batch changes; a delete takes some 40 octets, and a
//! segment in which nothing is needed any longer is used again. So a full disk stops no delete.

mod commit;
mod frame;
mod index;
mod read;
mod recover;
mod segment;
mod tidy;

use crate::bodies::Bodies;
use crate::disk::{Disk, RealDisk};
use crate::error::StoreError;
use crate::queue::{Contents, Sweep};
use crate::recent::Recent;
use crate::redb_store::Options;
use crate::spool::Spools;
use index::Index;
use segment::{Segment, Segments};
use std::path::Path;
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
    segments: Segments,
    /// Readers share it; it changes after each commit is durable.
    index: RwLock<Index>,
    /// One commit at a time.
    writer: Mutex<Writer>,
    /// Why the store accepts nothing more, after a failed write or a close.
    stopped: OnceLock<StoreError>,
    /// The cache of the latest commits.
    recent: Mutex<Recent>,
}

/// Where the next frame goes.
#[derive(Debug)]
struct Writer {
    /// The segment that is written; `None` until the first commit after an open.
    active: Option<Arc<Segment>>,
    /// Octets in use of it.
    used: u64,
    /// Numbers of the last frame, the last group, and the last segment.
    sequence: u64,
    group: u64,
    last: frame::SegmentId,
    /// The segment that is being copied.
    compaction: Option<tidy::Compaction>,
    /// Segments whose ends the next first frame must record.
    ends: Vec<(frame::SegmentId, u64)>,
}

impl LogStore {
    /// Opens the store in a directory, created if absent (not its parents).
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it open; [`StoreError::Newer`]; those of the disk.
    pub fn open(directory: &Path, options: Options) -> Result<LogStore, StoreError> {
        LogStore::with_disk(Arc::new(RealDisk::open(directory)?), options)
    }

    /// Opens the store on a disk that nothing else uses meanwhile.
    ///
    /// # Errors
    /// As for [`LogStore::open`].
    pub fn with_disk(disk: Arc<dyn Disk>, options: Options) -> Result<LogStore, StoreError> {
        let bodies = Arc::new(Bodies::open(Arc::clone(&disk))?);
        let segments = Segments::open(disk)?;
        let recovered = recover::recover(&segments)?;
        segments.fill_reserve();
        let sweep = bodies.sweep(recovered.index.body_files())?;
        let spools = Arc::new(Spools::new(Arc::clone(&bodies), options.spool_memory));
        Ok(LogStore {
            contents: Arc::clone(&spools) as Arc<dyn Contents>,
            spools,
            bodies,
            sweep,
            segments,
            index: RwLock::new(recovered.index),
            writer: Mutex::new(recovered.writer),
            stopped: OnceLock::new(),
            recent: Mutex::default(),
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

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
