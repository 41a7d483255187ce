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
//! What is acknowledged is durable, in this order: the body's file is synced (by the receiving
//! task), `bodies/` is synced (once a group), the transaction that names the file commits, the
//! submitter hears of it. A file without a row in the index is an orphan, removed at the next
//! open; a file is unlinked only after the transaction that drops its row has committed. Spool
//! files are created in `bodies/` under their final number, so a commit renames nothing.
//!
//! Two things in memory spare the database, and may be wrong about nothing: `recent` holds what the
//! latest commits put there, `sieve` tells which keys were never remembered.

mod bodies;
pub mod committer;
pub mod disk;
mod error;
pub mod faulty;
mod order;
pub mod queue;
mod recent;
mod redb_store;
mod sieve;
pub mod spool;

pub use committer::Committer;
pub use disk::{Disk, DiskFile, RealDisk};
pub use error::StoreError;
pub use queue::{Entry, EntryKey, QueueStore};
pub use redb_store::{Options, RedbStore, Sweep};
pub use spool::Spools;
