//! The durable queue and the mailboxes: redb and large-body files behind a small trait.
//!
//! ```text
//!  receiving tasks                  engine's batches               sending tasks
//!       │ append, sync                     │ submit                      ▲ entry, body
//!       ▼                                  ▼                             │
//!    Spools ── claimed by commit ──▶ Committer (1 thread) ──▶ QueueStore (RedbStore)
//!       │ > 1 MiB                                                │             │
//!       ▼                                                        ▼             ▼
//!    bodies/<number>.body     1 directory sync a group,     queue.redb, 1 transaction a group
//! ```
//!
//! What is acknowledged is durable, in this order: the receiving task syncs the body's file,
//! `bodies/` is synced (once per group), the transaction that names the file commits, the
//! submitter is notified. A file without a row in the index is an orphan, which the next open
//! removes; a file is deleted only after the transaction that drops its row has committed. Spool
//! files are created in `bodies/` under their final number, so a commit renames nothing.
//!
//! Two caches avoid database reads and are never wrong: `recent` holds the data of the latest
//! commits, `sieve` knows keys that were never remembered.

pub mod accounts;
mod bodies;
mod caches;
pub mod cluster;
pub mod committer;
pub mod disk;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod faulty;
mod held;
mod log_store;
pub mod migrate;
#[cfg(any(test, feature = "testing"))]
mod model;
mod notes;
mod order;
pub mod queue;
mod redb_store;
#[cfg(any(test, feature = "testing"))]
pub mod safeguard;
#[cfg(not(any(test, feature = "testing")))]
mod safeguard;
mod spool;
mod staging;

use std::path::Path;
use std::sync::Arc;

pub use caches::recent;
pub use committer::Committer;
pub use disk::{Disk, DiskFile, RealDisk};
pub use error::StoreError;
pub use log_store::LogStore;
#[cfg(any(test, feature = "testing"))]
pub use model::{ModelState, ModelStore};
pub use queue::{
    BatchId, Committed, Contents, Damage, Entry, EntryKey, KeptSpool, KeyEntry, QueueStore, Sweep,
};
pub use redb_store::{Options, RedbStore};
pub use staging::{MAX_NAME, MAX_RECORD, QUEUE_RECORD};

/// Opens the queue store of a directory, created if absent (not its parents).
///
/// # Errors
/// [`StoreError::Locked`] if another process has it open; [`StoreError::Newer`];
/// [`StoreError::Damaged`]; those of the disk.
pub fn open(directory: &Path, options: Options) -> Result<Arc<dyn QueueStore>, StoreError> {
    Ok(Arc::new(LogStore::open(directory, options)?))
}
