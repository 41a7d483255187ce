//! Reads beside commits: each call sees the last durable commit.

use super::RedbStore;
use super::tables::{BODIES, BODY_INDEX, ENTRIES, META, SEEN, SEEN_UNTIL};
use crate::error::StoreError;
use crate::queue::{Entry, EntryKey, QueueStore};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op};
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata};
use std::io;
use std::ops::Bound;
use std::sync::PoisonError;

/// A page of entries ends beyond this many octets of records.
const PAGE_OCTETS: usize = 8 << 20;

/// Part of a body, or where to find it.
enum Part {
    Octets(Bytes),
    InFile { number: u64, length: usize },
}

impl RedbStore {
    fn read<T>(
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

    /// The number of queue entries, without reading them.
    ///
    /// # Errors
    /// Those of the database.
    pub fn entry_count(&self) -> Result<u64, StoreError> {
        self.read("counting the queue", |txn| Ok(txn.open_table(ENTRIES)?.len()?))
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

    /// [`QueueStore::seen`] of each of these.
    ///
    /// # Errors
    /// Those of the database.
    pub fn seen_all(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
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

    /// Whether any key expired before this time, so that deleting keys is worthwhile.
    ///
    /// # Errors
    /// Those of the database.
    pub fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError> {
        let limit = (before.0, [0; 32]);
        self.read("looking for what is to be forgotten", |txn| {
            Ok(txn.open_table(SEEN_UNTIL)?.range(..limit)?.next().transpose()?.is_some())
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

fn page(
    txn: &ReadTransaction,
    after: Option<EntryKey>,
    limit: usize,
) -> Result<Vec<Entry>, redb::Error> {
    let start = match after {
        Some((precedence, id)) => Bound::Excluded((precedence.number(), id.0)),
        None => Bound::Unbounded,
    };
    let mut page = Vec::new();
    let mut octets = 0;
    let entries = txn.open_table(ENTRIES)?;
    for row in entries.range::<(u8, u64)>((start, Bound::Unbounded))?.take(limit) {
        let (key, record) = row?;
        let (number, id) = key.value();
        let precedence = Precedence::from_number(i64::from(number)).ok_or_else(|| {
            redb::Error::Corrupted(format!("entry {id} has the unknown precedence {number}"))
        })?;
        let record = Bytes::copy_from_slice(record.value());
        octets += record.len();
        page.push(Entry { precedence, id: EntryId(id), record });
        if octets > PAGE_OCTETS {
            break;
        }
    }
    Ok(page)
}

impl QueueStore for RedbStore {
    fn commit(&self, group: Vec<Batch>) -> Vec<Result<(), StoreError>> {
        self.commit_group(group)
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

    fn entry(&self, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
        self.read("reading an entry", |txn| {
            let row = txn.open_table(ENTRIES)?.get((precedence.number(), id.0))?;
            Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
        })
    }

    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.read("reading the queue", |txn| page(txn, after, limit))
    }

    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        let start = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.0));
        self.read("reading the index of bodies", |txn| {
            let index = txn.open_table(BODY_INDEX)?;
            let rows = index.range::<u64>((start, Bound::Unbounded))?.take(limit.max(1));
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

    fn seen(&self, key: &Digest, now: Utc) -> Result<Option<Bytes>, StoreError> {
        Ok(self.seen_all(std::slice::from_ref(key), now)?.pop().flatten())
    }

    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.read("reading a named value", |txn| {
            let row = txn.open_table(META)?.get(name)?;
            Ok(row.map(|row| Bytes::copy_from_slice(row.value())))
        })
    }
}
