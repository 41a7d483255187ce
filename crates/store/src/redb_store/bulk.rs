//! Bulk rows: the keys of a message with thousands of recipients are durable at once in a few
//! rows, and moved into their table in pieces, between the commits of other batches.
//!
//! Every key has its own place in the table of keys, so inserting ten thousand of them takes a
//! tenth of a second, which would block other commits. Written as rows they take some
//! milliseconds. Until a row is dissolved its keys are found in memory, and a start reads them
//! back.

use super::apply::put_seen;
use super::tables::{SEEN_BULK, Tables};
use base::Utc;
use bytes::Bytes;
use engine::journal::Digest;
use redb::{Database, ReadableDatabase, ReadableTable, TableError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most keys in rows at a time; beyond that a large batch is inserted at once.
const MAX_KEYS: usize = 500_000;

/// A key, its expiry, and the answer.
pub(super) type Remembered = (Digest, Utc, Bytes);

/// The keys of one row.
pub(super) type KeyRow = Arc<[Remembered]>;

/// The rows that are durable and not yet dissolved.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    /// Keys of one batch beyond which they go into rows, half as many per row: one commit moves
    /// one row into the table of keys.
    many: usize,
    /// By number: the oldest first.
    rows: BTreeMap<u64, KeyRow>,
    /// By key: expiry, answer, and the number of rows with the key.
    keys: BTreeMap<Digest, (Utc, Bytes, usize)>,
    /// Number of the last row.
    last: u64,
}

impl Bulk {
    /// Reads the rows that an earlier run left.
    pub(super) fn load(db: &Database, many: usize) -> Result<Bulk, redb::Error> {
        let mut bulk = Bulk { many, ..Bulk::default() };
        let table = match db.begin_read()?.open_table(SEEN_BULK) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(bulk),
            table => table?,
        };
        for row in table.iter()? {
            let (number, octets) = row?;
            bulk.add(number.value(), read(octets.value())?);
        }
        Ok(bulk)
    }

    /// Whether this many keys of one batch go into rows, and there is room for them.
    pub(super) fn takes(&self, keys: usize) -> bool {
        keys > self.many && self.keys.len().saturating_add(keys) <= MAX_KEYS
    }

    /// Divides the keys of one batch into numbered rows.
    pub(super) fn rows_of(&mut self, keys: &[Remembered]) -> Vec<(u64, KeyRow)> {
        let row = self.many.div_ceil(2).max(1);
        let mut number = || {
            self.last += 1;
            self.last
        };
        keys.chunks(row).map(|keys| (number(), KeyRow::from(keys))).collect()
    }

    /// Adds a row that is durable.
    pub(super) fn add(&mut self, number: u64, row: KeyRow) {
        self.last = self.last.max(number);
        for (key, until, record) in row.iter() {
            let known = self.keys.entry(*key).or_insert_with(|| (*until, record.clone(), 0));
            // The latest answer counts.
            (known.0, known.1) = (*until, record.clone());
            known.2 += 1;
        }
        self.rows.insert(number, row);
    }

    /// Removes a row that was dissolved: its keys are in their table.
    pub(super) fn remove(&mut self, number: u64) {
        for (key, ..) in self.rows.remove(&number).iter().flat_map(|row| row.iter()) {
            if let Some(known) = self.keys.get_mut(key) {
                known.2 -= 1;
                if known.2 == 0 {
                    self.keys.remove(key);
                }
            }
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The next row to dissolve.
    pub(super) fn first(&self) -> Option<u64> {
        self.rows.first_key_value().map(|(number, _)| *number)
    }

    /// The expiry and answer of a key.
    pub(super) fn get(&self, key: &Digest) -> Option<(Utc, Bytes)> {
        self.keys.get(key).map(|(until, record, _)| (*until, record.clone()))
    }

    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Digest> {
        self.keys.keys()
    }
}

/// Writes a row.
pub(super) fn put(tables: &mut Tables<'_>, number: u64, row: &KeyRow) -> Result<(), redb::Error> {
    let octets = postcard::to_stdvec(&row[..])
        .map_err(|e| redb::Error::Corrupted(format!("a row of keys: {e}")))?;
    tables.seen_bulk.insert(number, &octets[..])?;
    Ok(())
}

/// Moves the keys of a row into the table of keys.
pub(super) fn dissolve(tables: &mut Tables<'_>, number: u64) -> Result<(), redb::Error> {
    let Some(row) = tables.seen_bulk.remove(number)?.map(|octets| read(octets.value())) else {
        return Ok(());
    };
    for (key, until, record) in row?.iter() {
        // A later batch remembered this key again, with a later expiry.
        let is_newer = tables.seen.get(key.0)?.is_some_and(|row| until.0 < row.value().0);
        if !is_newer {
            put_seen(tables, key, *until, record)?;
        }
    }
    Ok(())
}

fn read(octets: &[u8]) -> Result<KeyRow, redb::Error> {
    let row: Vec<Remembered> = postcard::from_bytes(octets)
        .map_err(|e| redb::Error::Corrupted(format!("a row of keys: {e}")))?;
    Ok(row.into())
}
