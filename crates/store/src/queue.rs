//! The trait of a durable queue, independent of the database.

use crate::error::StoreError;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, Digest, Op};

/// The key of a queue entry; ordered by precedence (lowest first), then by identifier.
pub type EntryKey = (Precedence, EntryId);

/// A queue entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First part of its key.
    pub precedence: Precedence,
    /// Second part of its key.
    pub id: EntryId,
    /// The record, opaque.
    pub record: Bytes,
}

impl Entry {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> EntryKey {
        (self.precedence, self.id)
    }
}

/// A durable queue. Reads return whole batches only and run beside a commit.
pub trait QueueStore: Send + Sync {
    /// Commits batches in order, each whole or not at all; the answers are in the same order. An
    /// `Ok` batch is durable. The spools of a failed batch stay open, to be committed again or
    /// discarded; those of a committed one are consumed. Blocks on the disk.
    fn commit(&self, group: Vec<Batch>) -> Vec<Result<(), StoreError>>;

    /// Does one piece of work that earlier commits deferred; nothing waits for it. Returns the
    /// number of pieces left. Blocks on the disk.
    ///
    /// # Errors
    /// Those of the database; the work is retried later.
    fn tidy(&self) -> Result<usize, StoreError> {
        Ok(0)
    }

    /// The approximate octets that a batch writes.
    fn octets(&self, batch: &Batch) -> usize {
        batch.iter().map(Op::held).fold(0, usize::saturating_add)
    }

    /// The record under a key.
    ///
    /// # Errors
    /// Those of the database.
    fn entry(&self, key: EntryKey) -> Result<Option<Bytes>, StoreError>;

    /// The entries after `after` (from the first if `None`) in key order: at most `limit` of them
    /// and about 8 MiB of records, but at least one if any is left.
    ///
    /// # Errors
    /// Those of the database.
    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// The bodies after `after` (from the first if `None`) in order of their identifiers: at most
    /// `limit` of them.
    ///
    /// # Errors
    /// Those of the database.
    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError>;

    /// The length of a body in octets.
    ///
    /// # Errors
    /// Those of the database.
    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError>;

    /// Up to `length` octets of a body from `offset`; fewer (or none) at its end. `None` if there
    /// is no such body.
    ///
    /// # Errors
    /// Those of the database; [`StoreError::BodyDamaged`].
    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError>;

    /// The answer remembered for `key`, unless it expired before `now`.
    ///
    /// # Errors
    /// Those of the database.
    fn seen(&self, key: &Digest, now: Utc) -> Result<Option<Bytes>, StoreError>;

    /// A small named value.
    ///
    /// # Errors
    /// Those of the database.
    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError>;
}

/// Entries or bodies per page.
const PAGE: usize = 1024;

/// Calls `visit` for every entry in key order, page by page: a daemon fills its queues with it at
/// start. Entries written meanwhile before the current page are missed.
///
/// # Errors
/// Those of [`QueueStore::entries`].
pub fn for_each_entry(
    store: &dyn QueueStore,
    mut visit: impl FnMut(Entry),
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = store.entries(after, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.key());
        page.into_iter().for_each(&mut visit);
    }
}

/// Calls `visit` for every body, page by page and in order: a daemon finds bodies without an entry
/// with it at start. `visit` may delete bodies of the pages it was given.
///
/// # Errors
/// Those of [`QueueStore::bodies`].
pub fn for_each_page_of_bodies(
    store: &dyn QueueStore,
    mut visit: impl FnMut(Vec<BodyId>),
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = store.bodies(after, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(*last);
        visit(page);
    }
}
