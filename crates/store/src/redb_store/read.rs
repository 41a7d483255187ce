//! Reads beside commits: each call sees the last durable commit.

use super::RedbStore;
use super::tables::{self, BODIES, BODY_INDEX, ENTRIES, META, QUEUES, SEEN, SEEN_UNTIL};
use crate::caches::recent::Key;
use crate::error::StoreError;
use crate::queue::{BatchId, Committed, Contents, Entry, EntryKey, QueueStore, Sweep};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, FIRST_ITEM, ItemId, MailboxId, Op, QueueId};
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

/// A page of entries ends beyond this many octets of records.
const PAGE_OCTETS: usize = 8 << 20;

/// Part of a body, or where to find it.
enum Part {
    Octets(Bytes),
    InFile { number: u64, length: usize },
}

impl RedbStore {
    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.stopped.get() {
            return Err(error.clone());
        }
        // Held while reading, so that the database is not closed under a reader.
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let db = state.db.as_ref().map_err(StoreError::clone)?;
        let run = || read(&db.begin_read()?);
        run().map_err(|e| StoreError::database(doing, e))
    }

    /// Up to 4,096 remembered keys after this one, including expired ones. Paged, so that no
    /// commit waits long.
    pub(super) fn seen_after(&self, last: Option<&Digest>) -> Result<Vec<Digest>, StoreError> {
        const PAGE: usize = 4_096;
        let start = last.map_or(Bound::Unbounded, |key| Bound::Excluded(key.0));
        self.read("reading what was seen", |txn| {
            let seen = txn.open_table(SEEN)?;
            let rows = seen.range::<[u8; 32]>((start, Bound::Unbounded))?.take(PAGE);
            rows.map(|row| Ok(Digest(row?.0.value()))).collect()
        })
    }

    /// The row of a body: number of its file (0: inline), and its length.
    fn body_row(&self, id: BodyId) -> Result<Option<(u64, u64)>, StoreError> {
        self.read("reading the index of bodies", |txn| {
            Ok(txn.open_table(BODY_INDEX)?.get(id.0)?.map(|row| row.value()))
        })
    }

    fn part(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Part>, StoreError> {
        self.read("reading a body", |txn| {
            let row = txn.open_table(BODY_INDEX)?.get(id.0)?.map(|row| row.value());
            let Some((number, total)) = row else {
                return Ok(None);
            };
            let rest = usize::try_from(total.saturating_sub(offset)).unwrap_or(usize::MAX);
            let length = length.min(rest);
            if length == 0 {
                return Ok(Some(Part::Octets(Bytes::new())));
            }
            if number != 0 {
                return Ok(Some(Part::InFile { number, length }));
            }
            let bodies = txn.open_table(BODIES)?;
            let octets = bodies.get(id.0)?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let range = start..start.saturating_add(length);
            let part = octets.as_ref().and_then(|o| o.value().get(range));
            let part = part.ok_or_else(|| {
                redb::Error::Corrupted(format!("the octets of body {id} differ from its index"))
            })?;
            Ok(Some(Part::Octets(Bytes::copy_from_slice(part))))
        })
    }
}

/// Entries of one page, within its limits.
struct PageOfEntries {
    entries: Vec<Entry>,
    limit: usize,
    octets: usize,
}

impl PageOfEntries {
    fn new(limit: usize) -> PageOfEntries {
        PageOfEntries { entries: Vec::new(), limit: limit.max(1), octets: 0 }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.limit || self.octets > PAGE_OCTETS
    }

    fn push(&mut self, precedence: Precedence, id: u64, value: &[u8]) -> Result<(), redb::Error> {
        let (_, record) = tables::entry_parts(value)?;
        self.octets += record.len();
        let record = Bytes::copy_from_slice(record);
        self.entries.push(Entry { precedence, id: EntryId(id), record });
        Ok(())
    }
}

fn page(
    txn: &ReadTransaction,
    after: Option<EntryKey>,
    limit: usize,
) -> Result<Vec<Entry>, redb::Error> {
    let mut page = PageOfEntries::new(limit);
    let table = txn.open_table(ENTRIES)?;
    let highest = after.map_or(Precedence::Override, |(precedence, _)| precedence);
    for precedence in Precedence::ALL.into_iter().rev().filter(|level| *level <= highest) {
        let number = precedence.number();
        let start = match after {
            Some((level, id)) if level == precedence => Bound::Excluded((number, id.0)),
            _ => Bound::Included((number, 0)),
        };
        for row in table.range::<(u8, u64)>((start, Bound::Excluded((number, FIRST_ITEM))))? {
            if page.is_full() {
                return Ok(page.entries);
            }
            let (key, value) = row?;
            page.push(precedence, key.value().1, value.value())?;
        }
    }
    Ok(page.entries)
}

fn page_of_queue(
    txn: &ReadTransaction,
    (queue, precedence): (QueueId, Precedence),
    after: Option<EntryId>,
    limit: usize,
) -> Result<Vec<Entry>, redb::Error> {
    let mut page = PageOfEntries::new(limit);
    let (queues, entries) = (txn.open_table(QUEUES)?, txn.open_table(ENTRIES)?);
    let key = |id| (queue.0, precedence.number(), id);
    let start = after.map_or(Bound::Included(key(0)), |id| Bound::Excluded(key(id.0)));
    for row in queues.range::<(u64, u8, u64)>((start, Bound::Included(key(u64::MAX))))? {
        if page.is_full() {
            break;
        }
        let (_, number, id) = row?.0.value();
        let value = entries.get((number, id))?.ok_or_else(|| {
            redb::Error::Corrupted(format!("entry {id} of queue {queue:?} has no record"))
        })?;
        page.push(precedence, id, value.value())?;
    }
    Ok(page.entries)
}

impl QueueStore for RedbStore {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        self.commit_group(group)
    }

    fn outcome(&self, batch: BatchId) -> Committed {
        self.outcome_of(batch)
    }

    fn tidy(&self) -> Result<usize, StoreError> {
        self.dissolve_row()
    }

    fn octets(&self, batch: &Batch) -> usize {
        let octets = batch.iter().map(|op| match op {
            Op::PutBody { source: BodySource::Spool(id), .. } => self.spools.held_by(*id),
            other => other.held(),
        });
        octets.fold(0, usize::saturating_add)
    }

    fn contents(&self) -> &Arc<dyn Contents> {
        &self.contents
    }

    fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    fn entry(&self, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
        self.read("reading an entry", |txn| {
            let row = txn.open_table(ENTRIES)?.get((precedence.number(), id.0))?;
            let record =
                row.map(|row| Ok(Bytes::copy_from_slice(tables::entry_parts(row.value())?.1)));
            record.transpose()
        })
    }

    fn entry_count(&self) -> Result<u64, StoreError> {
        self.read("counting the queue", |txn| {
            let table = txn.open_table(ENTRIES)?;
            let mut items = 0;
            for precedence in Precedence::ALL {
                let number = precedence.number();
                items += table.range((number, FIRST_ITEM)..=(number, u64::MAX))?.count() as u64;
            }
            Ok(table.len()? - items)
        })
    }

    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError> {
        self.read("reading the queue", |txn| {
            let table = txn.open_table(ENTRIES)?;
            let mut highest = None;
            for precedence in Precedence::ALL {
                let number = precedence.number();
                let mut rows = table.range((number, 0)..(number, FIRST_ITEM))?;
                let last = rows.next_back().transpose()?.map(|(key, _)| EntryId(key.value().1));
                highest = highest.max(last);
            }
            Ok(highest)
        })
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.read("reading the items of a mailbox", |txn| {
            let (mut page, table) = (PageOfEntries::new(limit), txn.open_table(ENTRIES)?);
            let key = |number| (precedence.number(), ItemId { mailbox, number }.entry().0);
            let range = (Bound::Excluded(key(after)), Bound::Included(key(u32::MAX)));
            for row in table.range::<(u8, u64)>(range)? {
                if page.is_full() {
                    break;
                }
                let (key, value) = row?;
                page.push(precedence, key.value().1, value.value())?;
            }
            Ok(page.entries)
        })
    }

    fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        self.read("counting the items of a mailbox", |txn| {
            let key = |number| (precedence.number(), ItemId { mailbox, number }.entry().0);
            Ok(txn.open_table(ENTRIES)?.range(key(0)..=key(u32::MAX))?.count() as u64)
        })
    }

    fn queue_entries(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let doing = "reading the entries of a queue";
        self.read(doing, |txn| page_of_queue(txn, (queue, precedence), after, limit))
    }

    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.read("reading the queue", |txn| page(txn, after, limit))
    }

    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        let start = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.0));
        self.read("reading the index of bodies", |txn| {
            let index = txn.open_table(BODY_INDEX)?;
            let end = Bound::Excluded(FIRST_ITEM);
            let rows = index.range::<u64>((start, end))?.take(limit.max(1));
            rows.map(|row| Ok(BodyId(row?.0.value()))).collect()
        })
    }

    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError> {
        Ok(self.body_row(id)?.map(|(_, length)| length))
    }

    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        let (number, length) = match self.part(id, offset, length)? {
            None => return Ok(None),
            Some(Part::Octets(octets)) => return Ok(Some(octets)),
            Some(Part::InFile { number, length }) => (number, length),
        };
        match self.bodies.read(number, offset, length) {
            Ok(octets) => Ok(Some(octets.into())),
            // Dropped since the index was read, unless the index still names the file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => match self.body_row(id)? {
                Some((same, _)) if same == number => Err(StoreError::BodyDamaged { id }),
                Some(_) => self.body(id, offset, length),
                None => Ok(None),
            },
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(StoreError::BodyDamaged { id })
            }
            Err(e) => Err(StoreError::io("reading a body", e)),
        }
    }

    fn seen(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
        /// Keys per transaction, as a commit may have to wait for it.
        const SLICE: usize = 1_024;
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(SLICE) {
            // Read before the database: a key no longer here is in the database by now.
            let in_bulk: Vec<_> = {
                let bulk = self.bulk();
                keys.iter().map(|key| bulk.get(key)).collect()
            };
            self.read("looking up what was seen", |txn| {
                let seen = txn.open_table(SEEN)?;
                for (key, in_bulk) in keys.iter().zip(in_bulk) {
                    let row = seen.get(key.0)?.map(|row| {
                        let (until, record) = row.value();
                        (Utc(until), Bytes::copy_from_slice(record))
                    });
                    let longest = row.into_iter().chain(in_bulk).max_by_key(|(until, _)| *until);
                    found
                        .push(longest.filter(|(until, _)| now <= *until).map(|(_, record)| record));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError> {
        let limit = (before.0, [0; 32]);
        self.read("looking for what is to be forgotten", |txn| {
            Ok(txn.open_table(SEEN_UNTIL)?.range(..limit)?.next().transpose()?.is_some())
        })
    }

    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.read("reading a named value", |txn| {
            let row = txn.open_table(META)?.get(name)?;
            Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
        })
    }

    fn recent_entry(&self, key: EntryKey) -> Option<Bytes> {
        self.recent().get(Key::Entry(key)).cloned()
    }

    /// Not for a body in a file.
    fn recent_body(&self, id: BodyId, offset: u64, length: usize) -> Option<Bytes> {
        let recent = self.recent();
        let octets = recent.get(Key::Body(id))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
        Some(octets.slice(start..start.saturating_add(length).min(octets.len())))
    }

    fn cannot_have_seen(&self, key: &Digest) -> bool {
        self.sieve.lacks(key)
    }

    fn learn_seen(&self, ending: &AtomicBool) -> Result<(), StoreError> {
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

    fn close(&self) {
        self.close_database();
    }
}
