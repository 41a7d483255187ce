//! The tables, and the version of their format.

use crate::error::StoreError;
use engine::journal::QueueId;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use std::ops::Bound;

/// (precedence, entry) to its queue in [`QUEUE`] octets, and its record.
pub(super) const ENTRIES: TableDefinition<'_, (u8, u64), &[u8]> = TableDefinition::new("entries");
/// (queue, precedence, entry): the entries of a queue.
pub(super) const QUEUES: TableDefinition<'_, (u64, u8, u64), ()> = TableDefinition::new("queues");
/// Body to (number of its file, or 0 if inline; length in octets).
pub(super) const BODY_INDEX: TableDefinition<'_, u64, (u64, u64)> =
    TableDefinition::new("body_index");
/// Body to its octets, if inline.
pub(super) const BODIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("bodies");
/// Digest to (remembered until, record).
pub(super) const SEEN: TableDefinition<'_, [u8; 32], (u64, &[u8])> = TableDefinition::new("seen");
/// (remembered until, digest), to delete in order of time.
pub(super) const SEEN_UNTIL: TableDefinition<'_, (u64, [u8; 32]), ()> =
    TableDefinition::new("seen_until");
/// Number to a row of keys to be moved into `SEEN`, with their values.
pub(super) const SEEN_BULK: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("seen_bulk");
/// Name to value.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// The store's own values: `FORMAT` and `COMMITS`.
const STORE: TableDefinition<'_, &str, u64> = TableDefinition::new("store");

/// Row of `STORE`: the version of the format.
const FORMAT: &str = "format";
/// Row of `STORE`: the number of commits, which shows whether a failed commit took effect.
const COMMITS: &str = "commits";

/// The first version of the format.
const FIRST: u64 = 1;
/// A step from one version to the next, in the transaction that also raises the version.
type Step = fn(&WriteTransaction) -> Result<(), redb::Error>;
/// `STEPS[n]` leads from version `FIRST + n` to the next. Version 1 has no predecessor; version 2
/// lists the entries of each queue.
const STEPS: &[Step] = &[list_queues];

/// Octets of the queue in front of a record.
const QUEUE: usize = 8;

/// The queue of an entry whose record an older release wrote and this one cannot read.
const UNREAD: QueueId = QueueId(u64::MAX);

/// The value of an entry.
pub(super) fn entry_value(queue: QueueId, record: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(QUEUE + record.len());
    value.extend_from_slice(&queue.0.to_be_bytes());
    value.extend_from_slice(record);
    value
}

/// Queue and record of an entry.
pub(super) fn entry_parts(value: &[u8]) -> Result<(QueueId, &[u8]), redb::Error> {
    let short = || redb::Error::Corrupted("an entry without its queue".to_owned());
    let (queue, record) = value.split_first_chunk::<QUEUE>().ok_or_else(short)?;
    Ok((QueueId(u64::from_be_bytes(*queue)), record))
}

/// To version 2: puts its queue in front of each record, and lists it there.
fn list_queues(txn: &WriteTransaction) -> Result<(), redb::Error> {
    /// Entries per round: their records are in memory together.
    const ROUND: usize = 64;
    let mut entries = txn.open_table(ENTRIES)?;
    let mut queues = txn.open_table(QUEUES)?;
    let mut after = None;
    loop {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut round = Vec::new();
        for row in entries.range::<(u8, u64)>((start, Bound::Unbounded))?.take(ROUND) {
            let (key, record) = row?;
            round.push((key.value(), record.value().to_vec()));
        }
        let Some((last, _)) = round.last() else { return Ok(()) };
        after = Some(*last);
        for (key, record) in round {
            let read = engine::Record::decode(&record);
            let queue = read.map_or(UNREAD, |record| record.next_hop.queue());
            entries.insert(key, &entry_value(queue, &record)[..])?;
            queues.insert((queue.0, key.0, key.1), ())?;
        }
    }
}

/// All tables, open in one write transaction.
pub(super) struct Tables<'t> {
    pub(super) entries: Table<'t, (u8, u64), &'static [u8]>,
    pub(super) queues: Table<'t, (u64, u8, u64), ()>,
    pub(super) body_index: Table<'t, u64, (u64, u64)>,
    pub(super) bodies: Table<'t, u64, &'static [u8]>,
    pub(super) seen: Table<'t, [u8; 32], (u64, &'static [u8])>,
    pub(super) seen_until: Table<'t, (u64, [u8; 32]), ()>,
    pub(super) seen_bulk: Table<'t, u64, &'static [u8]>,
    pub(super) meta: Table<'t, &'static str, &'static [u8]>,
}

impl<'t> Tables<'t> {
    pub(super) fn open(txn: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            entries: txn.open_table(ENTRIES)?,
            queues: txn.open_table(QUEUES)?,
            body_index: txn.open_table(BODY_INDEX)?,
            bodies: txn.open_table(BODIES)?,
            seen: txn.open_table(SEEN)?,
            seen_until: txn.open_table(SEEN_UNTIL)?,
            seen_bulk: txn.open_table(SEEN_BULK)?,
            meta: txn.open_table(META)?,
        })
    }
}

/// Begins a durable transaction with quick repair: after it the database opens without being read
/// whole. It costs one more sync per commit, and writes the allocation state. Only the last commit
/// before a crash matters, so every commit does it.
pub(super) fn begin(db: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate)?;
    txn.set_quick_repair(true);
    Ok(txn)
}

/// Numbers the transaction as the `count`-th commit.
pub(super) fn count_commit(txn: &WriteTransaction, count: u64) -> Result<(), redb::Error> {
    txn.open_table(STORE)?.insert(COMMITS, count)?;
    Ok(())
}

/// Commits so far.
pub(super) fn commits(db: &Database) -> Result<u64, redb::Error> {
    let table = db.begin_read()?.open_table(STORE)?;
    Ok(table.get(COMMITS)?.map_or(0, |row| row.value()))
}

/// Creates the tables of a new store, refuses a newer format, upgrades an older one.
pub(super) fn prepare(db: &Database) -> Result<(), StoreError> {
    prepare_with(db, STEPS)
}

fn prepare_with(db: &Database, steps: &[Step]) -> Result<(), StoreError> {
    let known = FIRST + steps.len() as u64;
    let fail = |e: redb::Error| StoreError::database("reading the store's format", e);
    let txn = begin(db).map_err(fail)?;
    let found = version(&txn).map_err(fail)?;
    match found {
        Some(found) if found > known => return Err(StoreError::Newer { found, known }),
        Some(found) if found < FIRST => {
            let what = format!("there never was a format {found}");
            return Err(StoreError::Damaged { what });
        }
        Some(found) if found == known => return Ok(()),
        _ => {}
    }
    raise(&txn, found, known, steps).map_err(fail)?;
    txn.commit().map_err(|e| fail(e.into()))
}

fn version(txn: &WriteTransaction) -> Result<Option<u64>, redb::Error> {
    let table = txn.open_table(STORE)?;
    Ok(table.get(FORMAT)?.map(|row| row.value()))
}

fn raise(
    txn: &WriteTransaction,
    found: Option<u64>,
    known: u64,
    steps: &[Step],
) -> Result<(), redb::Error> {
    if let Some(found) = found {
        tracing::info!(from = found, to = known, "migrating the store");
        let done = usize::try_from(found - FIRST).unwrap_or(usize::MAX);
        for step in steps.iter().skip(done) {
            step(txn)?;
        }
    }
    Tables::open(txn)?;
    txn.open_table(STORE)?.insert(FORMAT, known)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    fn database(version: Option<u64>) -> Database {
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        if let Some(version) = version {
            let txn = begin(&db).unwrap();
            txn.open_table(STORE).unwrap().insert(FORMAT, version).unwrap();
            txn.commit().unwrap();
        }
        db
    }

    fn stored_version(db: &Database) -> Option<u64> {
        version(&begin(db).unwrap()).unwrap()
    }

    #[test]
    fn a_new_store_gets_the_newest_format() {
        let db = database(None);
        prepare(&db).unwrap();
        assert_eq!(stored_version(&db), Some(2));
        prepare(&db).unwrap();
    }

    #[test]
    fn a_newer_format_is_refused_untouched() {
        let db = database(Some(3));
        let error = prepare(&db).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 3, known: 2 }), "{error}");
        assert!(error.to_string().contains("run the release that wrote it"));
        assert_eq!(stored_version(&db), Some(3));
    }

    #[test]
    fn a_format_that_never_was_is_damage() {
        let error = prepare(&database(Some(0))).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }

    #[test]
    fn the_entries_of_version_1_are_listed_in_their_queues() {
        let db = database(Some(1));
        let txn = begin(&db).unwrap();
        {
            let mut entries = txn.open_table(ENTRIES).unwrap();
            for n in 0..200 {
                entries.insert((1, n), &b"no record"[..]).unwrap();
            }
        }
        txn.commit().unwrap();
        prepare(&db).unwrap();
        let txn = db.begin_read().unwrap();
        let (entries, queues) = (txn.open_table(ENTRIES).unwrap(), txn.open_table(QUEUES).unwrap());
        for n in 0..200 {
            let value = entries.get((1, n)).unwrap().unwrap();
            assert_eq!(entry_parts(value.value()).unwrap(), (UNREAD, &b"no record"[..]));
            assert!(queues.get((UNREAD.0, 1, n)).unwrap().is_some());
        }
        assert_eq!(stored_version(&db), Some(2));
    }

    /// These steps are invented.
    #[test]
    fn an_older_format_is_raised_by_the_missing_steps_alone() {
        fn second(txn: &WriteTransaction) -> Result<(), redb::Error> {
            txn.open_table(META)?.insert("second", &[2][..])?;
            Ok(())
        }
        fn third(txn: &WriteTransaction) -> Result<(), redb::Error> {
            txn.open_table(META)?.insert("third", &[3][..])?;
            Ok(())
        }
        for (from, expected) in [(1, [true, true]), (2, [false, true]), (3, [false, false])] {
            let db = database(None);
            prepare_with(&db, &[]).unwrap();
            let txn = begin(&db).unwrap();
            txn.open_table(STORE).unwrap().insert(FORMAT, from).unwrap();
            txn.commit().unwrap();
            prepare_with(&db, &[second, third]).unwrap();
            let meta = db.begin_read().unwrap().open_table(META).unwrap();
            let has = |name: &str| meta.get(name).unwrap().is_some();
            assert_eq!([has("second"), has("third")], expected);
            assert_eq!(stored_version(&db), Some(3));
        }
    }

    #[test]
    fn a_failed_step_changes_nothing() {
        fn half(txn: &WriteTransaction) -> Result<(), redb::Error> {
            txn.open_table(META)?.insert("half", &[1][..])?;
            Err(redb::Error::Corrupted("step".to_owned()))
        }
        let db = database(None);
        prepare_with(&db, &[]).unwrap();
        prepare_with(&db, &[half]).unwrap_err();
        assert_eq!(stored_version(&db), Some(1));
        let meta = db.begin_read().unwrap().open_table(META).unwrap();
        assert!(meta.get("half").unwrap().is_none());
    }
}
