//! The trait of a durable queue, independent of the engine behind it.

use crate::error::StoreError;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::ItemSource;
use engine::journal::{Batch, Digest, ItemId, MailboxId, Op, QueueId, SpoolId};
pub use engine::journal::{Entry, EntryKey};
use engine::numbers::mark_name;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The number of a batch. Its submitter chooses it; it is not used twice while the store is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// The end of a batch.
#[derive(Clone, Debug)]
#[must_use]
pub enum Committed {
    /// All of it is durable, and its spools are consumed.
    Durable,
    /// Nothing of it was made: these keys of [`Op::PutSeen`] had to be absent and are remembered.
    /// Its spools stay open.
    Conflict(Vec<Digest>),
    /// Nothing of it was made. Its spools stay open.
    NotDone(StoreError),
    /// It may be durable or not, and nobody may be answered. [`QueueStore::outcome`] may know later;
    /// if the store is stopped, the next open decides.
    Unknown(StoreError),
    /// Nothing of it was made: this node of a site no longer owns these shards, or what the batch removes is no longer
    /// there, because another node owned it meanwhile ([`Cluster`](crate::cluster::Cluster)). Its spools stay open.
    Fenced(Vec<QueueId>),
    /// Nothing of it was made: another node has changed these values since its writer knew them. Its spools stay open.
    Changed(Vec<String>),
}

impl Committed {
    /// `Ok` if durable.
    ///
    /// # Errors
    /// [`StoreError::Conflict`]; [`StoreError::Fenced`]; that of the batch.
    pub fn into_result(self) -> Result<(), StoreError> {
        match self {
            Committed::Durable => Ok(()),
            Committed::Conflict(keys) => Err(StoreError::Conflict { keys: keys.len() }),
            Committed::NotDone(error) | Committed::Unknown(error) => Err(error),
            Committed::Fenced(_) => Err(StoreError::Fenced),
            Committed::Changed(_) => Err(StoreError::Undone),
        }
    }

    /// Whether all of it is durable.
    pub fn is_durable(&self) -> bool {
        matches!(self, Committed::Durable)
    }
}

/// The problems that opening a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Files removed because nothing refers to them: a crash interrupted their spool or commit.
    pub removed: usize,
    /// Files of bodies that nothing refers to, kept with the ending `.aside`: what refers to them may be
    /// lost or damaged, or the store was just made beside them.
    pub set_aside: usize,
    /// All files that are set aside, by this open or earlier ones.
    pub aside: usize,
    /// Bodies whose file is missing or has another length. A crash cannot cause this: the disk
    /// lost synced data, or someone removed files.
    pub missing: Vec<BodyId>,
    /// Batches of the log that are damaged: their changes are lost.
    pub lost: u64,
    /// Whether all of the index had to be read to open it.
    pub repaired: bool,
}

/// What of a store is damaged: a disk changed or lost what was durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Batches that are lost, and it is not known what they changed.
    pub batches: u64,
    /// Entries whose records are damaged.
    pub entries: BTreeSet<EntryKey>,
    /// Bodies that are damaged or missing, in whole or in part.
    pub bodies: BTreeSet<BodyId>,
    /// Blocks of remembered keys: a duplicate of what they remembered is not recognised.
    pub keys: u64,
}

impl Damage {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Damage::default()
    }
}

/// A content that an earlier run of the daemon was receiving, up to its last durable note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSpool {
    /// Its identifier in this run.
    pub id: SpoolId,
    /// Its length in octets.
    pub length: u64,
    /// Its notes, the oldest first.
    pub notes: Vec<Bytes>,
}

/// Contents being received, part by part. A spool lives for one run of the daemon, unless it has notes.
pub trait Contents: Send + Sync + std::fmt::Debug {
    /// Begins an empty spool.
    ///
    /// # Errors
    /// [`StoreError::SpoolExists`].
    fn open(&self, id: SpoolId) -> Result<(), StoreError>;

    /// Appends octets. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError::NoSpool`]; [`StoreError::DiskFull`] and [`StoreError::Io`], after which the
    /// spool can only be discarded ([`StoreError::SpoolBroken`]).
    fn append(&self, id: SpoolId, octets: Bytes) -> Result<(), StoreError>;

    /// Appends octets without waiting for the disk. False, and nothing is appended, if
    /// [`Contents::append`] must be used.
    #[must_use]
    fn append_in_memory(&self, id: SpoolId, octets: &[u8]) -> bool;

    /// Makes the content so far durable and returns its length in octets. A content still in
    /// memory counts as stored: the commit writes it, and a restart drops all spools anyway.
    ///
    /// # Errors
    /// As for [`Contents::append`].
    fn sync(&self, id: SpoolId) -> Result<u64, StoreError>;

    /// Appends a note, which [`Contents::sync`] makes durable with the content so far: the next open finds
    /// both. Blocks on the disk.
    ///
    /// # Errors
    /// As for [`Contents::append`].
    fn note(&self, id: SpoolId, note: &[u8]) -> Result<(), StoreError>;

    /// The spools with notes that the open found, once. They are spools like all others from then on, each at its
    /// last durable note, and are discarded by whoever does not want them.
    fn take_kept(&self) -> Vec<KeptSpool>;

    /// The length so far in octets.
    ///
    /// # Errors
    /// [`StoreError::NoSpool`], [`StoreError::SpoolBroken`].
    fn length(&self, id: SpoolId) -> Result<u64, StoreError>;

    /// Drops a spool; no error if absent.
    fn discard(&self, id: SpoolId);

    /// Octets held in memory by all spools together.
    fn memory_held(&self) -> usize;
}

/// A remembered key, as it is stored: perhaps expired, and not forgotten yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The key.
    pub key: Digest,
    /// It is forgotten after this time.
    pub until: Utc,
    /// The answer.
    pub record: Bytes,
}

/// A durable queue. Reads return whole batches only and run beside a commit.
///
/// Every caller holds it as `dyn QueueStore`, so that another engine is one implementation.
pub trait QueueStore: Send + Sync + std::fmt::Debug {
    /// Commits batches in order, each whole or not at all; the answers are in the same order.
    /// Blocks on the disk.
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed>;

    /// The end of a batch whose commit answered [`Committed::Unknown`], as far as it is known by
    /// now. [`StoreError::Stopped`] in the answer: this store will not know. Any other batch is
    /// [`Committed::NotDone`]. Blocks on the disk.
    fn outcome(&self, batch: BatchId) -> Committed;

    /// How long the end of a batch is asked for while it is unknown. All other commits wait meanwhile.
    fn asks_for(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Does one piece of work that earlier commits deferred; nothing waits for it. Returns the
    /// number of pieces left. Blocks on the disk.
    ///
    /// # Errors
    /// Those of the engine; the work is retried later.
    fn tidy(&self) -> Result<usize, StoreError> {
        Ok(0)
    }

    /// The approximate octets that a batch writes.
    fn octets(&self, batch: &Batch) -> usize {
        batch.iter().map(Op::held).fold(0, usize::saturating_add)
    }

    /// The contents being received, which commits consume.
    fn contents(&self) -> &Arc<dyn Contents>;

    /// The problems that opening found.
    fn sweep(&self) -> &Sweep;

    /// The damage that the open and all reads since have found.
    fn damage(&self) -> Damage {
        Damage::default()
    }

    /// Reads everything, so that [`QueueStore::damage`] is complete. `goes_on` is called with the octets
    /// that were read since its last call; it may wait, and ends the reading with false. May run beside
    /// everything else.
    ///
    /// # Errors
    /// Those of the engine.
    fn verify(&self, _goes_on: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        Ok(())
    }

    /// Copies the store, as it is between two commits, to a new directory, durably; false if `goes_on` ended
    /// it, which is called as by [`QueueStore::verify`]. May run beside everything else; meanwhile no space
    /// is given back.
    ///
    /// # Errors
    /// Those of either disk: the copy is of no use then. Of an engine that cannot do it.
    fn back_up(
        &self,
        _to: &Path,
        _goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, StoreError> {
        Err(StoreError::io("making a backup", std::io::ErrorKind::Unsupported.into()))
    }

    /// The disk has little room, or enough again: with little, space is given back sooner, at the cost of
    /// more writing.
    fn short_of_space(&self, _is_short: bool) {}

    /// Gives up what [`QueueStore::damage`] names, so that the rest is whole: damaged entries and bodies are
    /// deleted, and the places of lost batches are written anew. Nothing else uses the store meanwhile.
    ///
    /// # Errors
    /// Those of the engine: what was not repaired is still named.
    fn repair(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The record under a key.
    ///
    /// # Errors
    /// Those of the engine.
    fn entry(&self, key: EntryKey) -> Result<Option<Bytes>, StoreError>;

    /// The number of entries without items of mailboxes, without reading them.
    ///
    /// # Errors
    /// Those of the engine.
    fn entry_count(&self) -> Result<u64, StoreError>;

    /// The highest identifier of an entry without items of mailboxes, without reading them.
    ///
    /// # Errors
    /// Those of the engine.
    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError>;

    /// The entries after `after` (from the first if `None`), without damaged ones and without items of
    /// mailboxes: at most `limit` of them and about
    /// 8 MiB of records, but at least one if any is left.
    ///
    /// # Errors
    /// Those of the engine.
    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// The entries of one precedence in a queue after `after` (from the first if `None`), bounded
    /// as for [`QueueStore::entries`].
    ///
    /// # Errors
    /// Those of the engine.
    fn queue_entries(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The items of one precedence in a mailbox after the sequence number `after`, in their order, bounded as
    /// for [`QueueStore::entries`].
    ///
    /// # Errors
    /// Those of the engine.
    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The number of items of one precedence in a mailbox, without reading them.
    ///
    /// # Errors
    /// Those of the engine.
    fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError>;

    /// The bodies after `after` (from the first if `None`), without those of mailboxes, in order of their
    /// identifiers: at most `limit` of them.
    ///
    /// # Errors
    /// Those of the engine.
    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError>;

    /// The length of a body in octets.
    ///
    /// # Errors
    /// Those of the engine.
    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError>;

    /// Up to `length` octets of a body from `offset`; fewer (or none) at its end. `None` if there
    /// is no such body.
    ///
    /// # Errors
    /// Those of the engine; [`StoreError::BodyDamaged`].
    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError>;

    /// The answers remembered for these keys, in their order, without those that expired before
    /// `now`.
    ///
    /// # Errors
    /// Those of the engine.
    fn seen(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError>;

    /// Whether any key expired before this time, so that deleting keys is worthwhile.
    ///
    /// # Errors
    /// Those of the engine.
    fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError>;

    /// The remembered keys after `after` (from the first if `None`), in their order: at most `limit` of them,
    /// but at least one if any is left. Keys that expired are among them until they are forgotten.
    ///
    /// # Errors
    /// Those of the engine. Of an engine that cannot list them.
    fn keys(&self, _after: Option<&Digest>, _limit: usize) -> Result<Vec<KeyEntry>, StoreError> {
        Err(StoreError::io("listing remembered keys", std::io::ErrorKind::Unsupported.into()))
    }

    /// The named values after `after` (from the first if `None`), in order of the octets of their names, as they are kept: where
    /// several nodes share the store, a value that is each node's own comes once for each, after its name and
    /// a slash. At most `limit` of them, but at least one if any is left.
    ///
    /// # Errors
    /// Those of the engine. Of an engine that cannot list them.
    fn values(
        &self,
        _after: Option<&str>,
        _limit: usize,
    ) -> Result<Vec<(String, Bytes)>, StoreError> {
        Err(StoreError::io("listing named values", std::io::ErrorKind::Unsupported.into()))
    }

    /// A small named value.
    ///
    /// # Errors
    /// Those of the engine.
    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError>;

    /// The record of an entry, if that needs no disk access.
    fn recent_entry(&self, _key: EntryKey) -> Option<Bytes> {
        None
    }

    /// Up to `length` octets of a body, if that needs no disk access.
    fn recent_body(&self, _id: BodyId, _offset: u64, _length: usize) -> Option<Bytes> {
        None
    }

    /// Whether this key is certainly not remembered, without disk access.
    fn cannot_have_seen(&self, _key: &Digest) -> bool {
        false
    }

    /// Reads what [`QueueStore::cannot_have_seen`] needs, once after the open. May run beside
    /// everything else. Ends early if `ending` is set or the store is closed meanwhile.
    ///
    /// # Errors
    /// Those of the engine: every key is then looked up.
    fn learn_seen(&self, _ending: &AtomicBool) -> Result<(), StoreError> {
        Ok(())
    }

    /// Closes the store in order, after running reads and commits. Later calls of remaining holders
    /// fail with [`StoreError::Closed`]. No error if already closed.
    fn close(&self);
}

/// Commits one batch that nobody else waits for.
///
/// # Errors
/// It is not durable, or that is unknown.
pub fn commit_one(store: &dyn QueueStore, id: BatchId, batch: Batch) -> Result<(), StoreError> {
    let ended = store.commit(vec![(id, batch)]).pop();
    ended.map_or(Err(StoreError::Closed), Committed::into_result)
}

/// The first number for entries of a start ([`engine::numbers`]); `None`: in the long form.
///
/// # Errors
/// Those of the engine.
pub fn first_entry(store: &dyn QueueStore) -> Result<Option<EntryId>, StoreError> {
    let mut marks = Vec::new();
    for precedence in Precedence::ALL {
        marks.extend(store.meta(&mark_name(precedence))?);
    }
    let marks = marks.iter().map(|mark| mark.as_ref());
    Ok(engine::numbers::first_entry(marks, store.highest_entry()?))
}

/// Calls `visit` for every named value, in the order of [`QueueStore::values`].
///
/// # Errors
/// Those of [`QueueStore::values`].
pub fn for_each_value(
    store: &dyn QueueStore,
    mut visit: impl FnMut(String, Bytes),
) -> Result<(), StoreError> {
    let mut after = None::<String>;
    loop {
        let page = store.values(after.as_deref(), PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        page.into_iter().for_each(|(name, value)| visit(name, value));
    }
}

/// The named values whose names begin so, in the order of [`QueueStore::values`].
///
/// # Errors
/// Those of [`QueueStore::values`] and [`QueueStore::meta`].
pub fn values_below(
    store: &dyn QueueStore,
    prefix: &str,
) -> Result<Vec<(String, Bytes)>, StoreError> {
    let whole = store.meta(prefix)?.map(|value| (prefix.to_owned(), value));
    let mut values: Vec<_> = whole.into_iter().collect();
    loop {
        let after = values.last().map_or(prefix, |(name, _)| name);
        let mut page = store.values(Some(after), PAGE)?;
        page.retain(|(name, _)| name.starts_with(prefix));
        if page.is_empty() {
            return Ok(values);
        }
        values.append(&mut page);
    }
}

/// Entries or bodies per page.
const PAGE: usize = 1024;

/// Calls `visit` for every entry, the highest precedence first, page by page: a daemon fills its
/// queues with it at start. Entries written meanwhile before the current page are missed.
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

impl ItemSource for dyn QueueStore + '_ {
    type Error = StoreError;

    fn value(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.meta(name)
    }

    fn count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        self.item_count(mailbox, precedence)
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<(u32, Bytes)>, StoreError> {
        let entries = QueueStore::items(self, mailbox, precedence, after, limit)?;
        let number = |entry: Entry| Some((ItemId::of_entry(entry.id)?.number, entry.record));
        Ok(entries.into_iter().filter_map(number).collect())
    }

    fn item(&self, precedence: Precedence, id: ItemId) -> Result<Option<Bytes>, StoreError> {
        self.entry((precedence, id.entry()))
    }
}
