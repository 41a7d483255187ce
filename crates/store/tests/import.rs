//! The database of an earlier release is taken over by the log, whole or not at all.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

mod common;

use bytes::Bytes;
use common::*;
use engine::journal::Batch;
use std::path::Path;
use std::sync::Arc;
use store::faulty::{FaultyDisk, Loss};
use store::{Disk, LogStore, ModelState, Options, QueueStore, RedbStore, StoreError};

const OPTIONS: Options =
    Options { spool_memory: 100, cache: 1 << 20, many_keys: 2, run_keys: 4, segment: 4096 };

fn database(disk: &FaultyDisk) -> Result<RedbStore, StoreError> {
    RedbStore::with_disk(Arc::new(disk.clone()), OPTIONS)
}

fn log(disk: &FaultyDisk) -> Result<LogStore, StoreError> {
    LogStore::with_disk(Arc::new(disk.clone()), OPTIONS)
}

fn old_release() -> (FaultyDisk, ModelState) {
    let (disk, mut model) = (FaultyDisk::new(), ModelState::default());
    let store = database(&disk).unwrap();
    let batches: Vec<Batch> = vec![
        vec![meta("epoch", b"7"), put(1, b"one"), body(1, octets(900, 1)), seen(1, 10, b"a")],
        vec![put(2, b"two"), body(2, octets((1 << 20) + 70_000, 2))],
        // These are in rows of their own still.
        (50..55).map(|key| seen(key, 30, b"many")).chain([put(3, b"three")]).collect(),
        vec![put(4, b"4"), body(4, Bytes::new()), delete(3)],
    ];
    for batch in batches {
        assert!(commit(&store, batch.clone()).is_durable());
        apply(&mut model, &batch, &SpoolContents::new());
    }
    store.close();
    (disk, model)
}

#[test]
fn all_of_it_is_there_and_the_earlier_release_is_refused() {
    let (disk, model) = old_release();
    for _ in 0..2 {
        let store = log(&disk).unwrap();
        check(&store, &model, &model).unwrap();
        assert_eq!(store.sweep(), &store::Sweep::default());
        assert!(store.damage().is_none());
    }
    database(&disk).unwrap_err();
    let store = log(&disk).unwrap();
    assert!(commit(&store, vec![delete(1), drop_body(1), drop_body(2)]).is_durable());
    assert_eq!((store.entry_count().unwrap(), body_files(&disk)), (2, 0));
}

#[test]
fn a_crash_anywhere_loses_nothing() {
    let (before, model) = old_release();
    for loss in [Loss::Everything, Loss::Nothing, Loss::Some(3)] {
        for n in 1.. {
            let disk = before.copy();
            disk.power_off_at(n);
            let is_done = log(&disk).is_ok();
            disk.crash(loss);
            let store = log(&disk).unwrap();
            check(&store, &model, &model).unwrap();
            assert!(store.damage().is_none(), "{n}");
            if is_done {
                assert!(n > 20, "{n}");
                break;
            }
        }
    }
}

#[test]
fn an_error_anywhere_leaves_the_database_to_the_next_attempt() {
    let (before, model) = old_release();
    for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::Other] {
        for n in 1.. {
            let disk = before.copy();
            disk.fail_at(disk.calls() + n, kind);
            let first = log(&disk);
            let was_met = disk.calls() >= n;
            drop(first);
            disk.crash(Loss::Nothing);
            check(&log(&disk).unwrap(), &model, &model).unwrap();
            if !was_met {
                break;
            }
        }
    }
}

/// A later release refuses in words; a damaged version is no other version.
#[test]
fn a_log_of_a_later_release_is_refused() {
    let disk = FaultyDisk::new();
    drop(log(&disk).unwrap());
    let format = Path::new("log/format");
    let length = disk.list(Path::new("log")).unwrap();
    let length = length.iter().find(|(name, _)| name == "format").unwrap().1;
    let octets = disk.read_range(format, 0, length as usize).unwrap();
    assert!(octets.starts_with(b"format 1 "), "{octets:?}");
    disk.unlink(format).unwrap();
    let later = "format 2 ";
    let sum = xxhash_rust::xxh3::xxh3_64(later.as_bytes());
    let mut file = disk.create(format).unwrap();
    file.append(format!("{later}{sum:016x}\n").as_bytes()).unwrap();
    file.sync().unwrap();
    let error = log(&disk).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1 }), "{error}");
    disk.flip(format, 12, 1).unwrap();
    log(&disk).unwrap();
}
