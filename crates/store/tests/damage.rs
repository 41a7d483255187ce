//! A disk that changes octets: nothing altered is read, every change of live data is noticed, and what is
//! intact stays readable.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod common;

use base::rng::Rng;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use common::*;
use engine::journal::{Batch, BodySource, Digest, Op};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::faulty::{FaultyDisk, Loss};
use store::{Disk, LogStore, Options, QueueStore};

const OPTIONS: Options =
    Options { spool_memory: 100, cache: 1 << 20, many_keys: 2, run_keys: 40, segment: 16 << 10 };

const MESSAGES: u64 = 60;

fn key(n: u64) -> Digest {
    Digest(std::array::from_fn(|at| (n * 37 + at as u64 * 11) as u8))
}

fn record(n: u64) -> Bytes {
    octets(300 + n as usize, n as u8)
}

/// Every tenth is in a file.
fn content(n: u64) -> Bytes {
    octets(if n.is_multiple_of(10) { (1 << 20) + 7 } else { 900 }, n as u8)
}

fn accept(n: u64) -> Batch {
    let source = BodySource::Octets(content(n));
    vec![
        Op::PutBody { id: BodyId(n), source },
        Op::PutEntry {
            precedence: Precedence::Routine,
            id: EntryId(n),
            queue: QUEUE,
            record: record(n),
        },
        Op::PutSeen { key: key(n), until: Utc(900), record: octets(20, n as u8), absent: true },
    ]
}

/// Every third has left.
fn is_gone(n: u64) -> bool {
    n.is_multiple_of(3)
}

fn open(disk: &FaultyDisk) -> Result<LogStore, store::StoreError> {
    LogStore::with_disk(Arc::new(disk.clone()), OPTIONS)
}

fn filled() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let store = open(&disk).unwrap();
    for n in 1..=MESSAGES {
        assert!(commit(&store, accept(n)).is_durable());
        if is_gone(n) {
            assert!(commit(&store, vec![delete(n), drop_body(n)]).is_durable());
        }
        while store.tidy().unwrap() > 0 {}
    }
    store.close();
    disk
}

/// All files, with their lengths.
fn files(disk: &FaultyDisk) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    for directory in ["log", "keys", "bodies"] {
        for (name, length) in disk.list(Path::new(directory)).unwrap() {
            if length > 0 {
                files.push((Path::new(directory).join(name), length));
            }
        }
    }
    files
}

/// What a store answers, compared with what was stored: the number of answers that are missing, unless
/// one is wrong, or missing without notice.
fn examine(disk: &FaultyDisk) -> Result<u64, String> {
    let store = open(disk).map_err(|e| format!("it does not open: {e}"))?;
    store.verify(&mut |_| true).map_err(|e| format!("it cannot be read: {e}"))?;
    let damage = store.damage();
    let mut missing = 0;
    let mut listed = Vec::new();
    store::queue::for_each_entry(&store, |entry| listed.push(entry))
        .map_err(|e| format!("it cannot be listed: {e}"))?;
    for n in (1..=MESSAGES).filter(|n| !is_gone(*n)) {
        let place = (Precedence::Routine, EntryId(n));
        match listed.iter().find(|entry| entry.id == EntryId(n)) {
            Some(entry) if entry.record == record(n) => {}
            Some(_) => return Err(format!("record {n} is altered")),
            None if damage.entries.contains(&place) || damage.batches > 0 => missing += 1,
            None => return Err(format!("record {n} is missing: {damage:?}")),
        }
        let mut whole = Vec::new();
        let body = loop {
            match store.body(BodyId(n), whole.len() as u64, 100_000) {
                Ok(Some(part)) if part.is_empty() => break Some(whole),
                Ok(Some(part)) => whole.extend_from_slice(&part),
                Ok(None) | Err(_) => break None,
            }
        };
        match body {
            Some(octets) if octets == content(n) => {}
            Some(_) => return Err(format!("content {n} is altered")),
            None if damage.bodies.contains(&BodyId(n)) || damage.batches > 0 => missing += 1,
            None => return Err(format!("content {n} is missing: {damage:?}")),
        }
    }
    for n in 1..=MESSAGES {
        match seen_of(&store, key(n), Utc(0)) {
            Some(found) if found == octets(20, n as u8) => {}
            Some(_) => return Err(format!("key {n} is altered")),
            None if damage.keys > 0 || damage.batches > 0 => missing += 1,
            None => return Err(format!("key {n} is missing: {damage:?}")),
        }
    }
    for entry in &listed {
        if is_gone(entry.id.0) && damage.batches == 0 {
            return Err(format!("entry {} is back", entry.id.0));
        }
    }
    // What is whole after a repair is what was whole before it.
    let whole: Vec<_> = listed.iter().map(|entry| entry.key()).collect();
    store.repair().map_err(|e| format!("it cannot be repaired: {e}"))?;
    store.close();
    let store = open(disk).map_err(|e| format!("repaired, it does not open: {e}"))?;
    store.verify(&mut |_| true).map_err(|e| format!("repaired, it cannot be read: {e}"))?;
    let left = store.damage();
    if !left.is_none() {
        return Err(format!("repaired, it is damaged: {left:?}"));
    }
    let mut again = Vec::new();
    store::queue::for_each_entry(&store, |entry| again.push(entry.key()))
        .map_err(|e| format!("repaired, it cannot be listed: {e}"))?;
    if again != whole {
        return Err(format!("the repair changed {whole:?} to {again:?}"));
    }
    // It goes on.
    let went_on = commit(&store, accept(MESSAGES + 1));
    went_on.into_result().map_err(|e| format!("it accepts nothing: {e}"))?;
    Ok(missing)
}

/// So many times, changes one octet in each of so many places.
fn flip(seed: u64, times: u64, places: usize) {
    let mut rng = Rng::new(seed);
    let (mut harmed, mut missing) = (0, 0);
    let (disk, all) = {
        let disk = filled();
        let all = files(&disk);
        (disk, all)
    };
    assert_eq!(examine(&disk.copy()), Ok(0));
    for round in 0..times {
        let disk = disk.copy();
        let mut places_of = Vec::new();
        for _ in 0..places {
            let (file, length) = &all[rng.next_u64() as usize % all.len()];
            let (at, bits) = (rng.next_u64() % length.max(&1), 1 << (rng.next_u64() % 8));
            disk.flip(file, at, bits).unwrap();
            places_of.push((file, at, bits));
        }
        let found = examine(&disk).map_err(|e| format!("{round}: {places_of:?}: {e}"));
        missing += found.clone().unwrap();
        harmed += u64::from(found.unwrap() > 0);
    }
    assert!(harmed * 10 > times, "{harmed} of {times} changes did harm: the test means nothing");
    // One octet costs little.
    assert!(missing < harmed * 25 * places as u64, "{missing} answers in {harmed} rounds");
}

/// All 2,000 of them with `LONG=1`.
fn rounds() -> u64 {
    if std::env::var_os("LONG").is_some() { 1_000 } else { 60 }
}

#[test]
fn one_changed_octet_alters_nothing_and_is_noticed() {
    flip(1, rounds(), 1);
}

#[test]
fn three_changed_octets_alter_nothing_and_are_noticed() {
    flip(2, rounds(), 3);
}

/// Whichever file of the log is missing, or cut off, that is noticed, nothing else goes, and a repair ends it.
#[test]
fn a_segment_that_is_lost_is_noticed() {
    let before = filled();
    let logs: Vec<(PathBuf, u64)> = files(&before)
        .into_iter()
        .filter(|(file, _)| file.extension().is_some_and(|suffix| suffix == "segment"))
        .collect();
    assert!(logs.len() > 4, "{logs:?}");
    for (file, length) in &logs {
        for cut in [None, Some(0), Some(length / 2)] {
            let disk = before.copy();
            let bodies = body_files(&disk);
            match cut {
                None => disk.unlink(file).unwrap(),
                Some(length) => disk.cut(file, length).unwrap(),
            }
            let store = open(&disk).unwrap();
            let lost = store.damage().batches;
            assert!(lost > 0, "{file:?} {cut:?}");
            assert_eq!((store.sweep().removed, body_files(&disk)), (0, bodies), "{file:?} {cut:?}");
            // Reported until a repair accepts it, whatever is written meanwhile.
            for n in 1..=MESSAGES {
                assert!(commit(&store, vec![meta("note", b"x"), delete(n)]).is_durable());
                let octets = Op::PutMeta { name: "more".to_owned(), value: octets(9_000, 1) };
                assert!(commit(&store, vec![octets]).is_durable());
                while store.tidy().unwrap() > 0 {}
            }
            drop(store);
            assert!(open(&disk).unwrap().damage().batches > 0, "{file:?} {cut:?}: forgotten");
            let disk = before.copy();
            match cut {
                None => disk.unlink(file).unwrap(),
                Some(length) => disk.cut(file, length).unwrap(),
            }
            examine(&disk).unwrap_or_else(|e| panic!("{file:?} {cut:?}: {e}"));
            let store = open(&disk).unwrap();
            assert_eq!(store.damage().batches, 0, "{file:?} {cut:?}: repaired");
        }
    }
    // Segments that were given up are not missed.
    let disk = before.copy();
    let store = open(&disk).unwrap();
    for n in 1..=MESSAGES {
        assert!(commit(&store, vec![delete(n), drop_body(n)]).is_durable());
    }
    while store.tidy().unwrap() > 0 {}
    drop(store);
    assert!(open(&disk).unwrap().damage().is_none());
}

/// A full segment has a footer, and what recorded its end before is gone. When the power fails then, damage of the last
/// that was written into it is not taken for a write that was interrupted.
#[test]
fn the_end_of_a_full_segment_is_known_after_a_power_failure() {
    /// So many fill the first segment.
    const LAST: u64 = 15;
    let disk = FaultyDisk::new();
    let store = open(&disk).unwrap();
    for n in 1..=20 {
        let record = octets(900, n as u8);
        let (precedence, id, queue) = (Precedence::Routine, EntryId(n), QUEUE);
        let entry = Op::PutEntry { precedence, id, queue, record };
        assert!(commit(&store, vec![entry]).is_durable());
    }
    // The next segment has what is beyond, and the end of the first: it goes.
    for n in LAST + 1..=20 {
        assert!(commit(&store, vec![delete(n)]).is_durable());
    }
    for n in 100..600 {
        assert!(commit(&store, vec![body(n, octets(2_000, n as u8))]).is_durable());
        assert!(commit(&store, vec![drop_body(n)]).is_durable());
        while store.tidy().unwrap() > 0 {}
    }
    drop(store);
    disk.crash(Loss::Everything);
    let file = Path::new("log/00000001.segment");
    let length = usize::try_from(OPTIONS.segment).unwrap();
    let held = disk.read_range(file, 0, length).unwrap();
    let place = |n: u64| {
        let record = octets(900, n as u8);
        held.windows(record.len()).position(|window| window == &record[..])
    };
    assert!(place(LAST + 1).is_none(), "it has more than that");
    disk.flip(file, place(LAST).unwrap() as u64 + 450, 1).unwrap();
    let store = open(&disk).unwrap();
    store.verify(&mut |_| true).unwrap();
    let (damage, place) = (store.damage(), (Precedence::Routine, EntryId(LAST)));
    assert!(damage.entries.contains(&place) || damage.batches > 0, "{damage:?}");
}

/// The same of a file of remembered keys; one whose keys have expired is not missed.
#[test]
fn a_file_of_keys_that_is_lost_is_noticed() {
    let before = filled();
    let store = open(&before).unwrap();
    for n in MESSAGES + 2..=250 {
        let Some(seen) = accept(n).pop() else { continue };
        assert!(commit(&store, vec![seen]).is_durable());
        while store.tidy().unwrap() > 0 {}
    }
    store.close();
    let runs: Vec<PathBuf> = files(&before)
        .into_iter()
        .filter_map(|(file, _)| file.starts_with("keys").then_some(file))
        .collect();
    assert!(runs.len() > 1, "{runs:?}");
    for file in &runs {
        let disk = before.copy();
        disk.unlink(file).unwrap();
        let store = open(&disk).unwrap();
        assert!(store.damage().keys > 0, "{file:?}");
        for n in 1..=MESSAGES {
            assert!(commit(&store, vec![meta("note", b"x"), delete(n)]).is_durable());
            while store.tidy().unwrap() > 0 {}
        }
        store.verify(&mut |_| true).unwrap();
        assert!(store.damage().keys > 0, "{file:?}: the check does not find it");
        drop(store);
        assert!(open(&disk).unwrap().damage().keys > 0, "{file:?}: forgotten");
        let disk = before.copy();
        disk.unlink(file).unwrap();
        examine(&disk).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        assert_eq!(open(&disk).unwrap().damage().keys, 0, "{file:?}: repaired");
    }
    let disk = before.copy();
    let store = open(&disk).unwrap();
    let forget = Op::ForgetSeen { before: Utc(901), most: usize::MAX };
    assert!(commit(&store, vec![forget]).is_durable());
    while store.tidy().unwrap() > 0 {}
    drop(store);
    let left = files(&disk).into_iter().filter(|(file, _)| file.starts_with("keys")).count();
    assert!(left < runs.len(), "{left}");
    assert!(open(&disk).unwrap().damage().is_none());
}

/// With little room the log gives space back that it would keep for later.
#[test]
fn with_little_room_space_is_given_back_sooner() {
    let disk = FaultyDisk::new();
    let store = open(&disk).unwrap();
    for n in (1..=400).filter(|n| n % 10 != 0) {
        let mut batch = accept(n);
        batch.pop();
        assert!(commit(&store, batch).is_durable());
    }
    // Every second one leaves.
    for n in (1..=400).filter(|n| n % 10 != 0 && n % 2 == 0) {
        assert!(commit(&store, vec![delete(n), drop_body(n)]).is_durable());
    }
    while store.tidy().unwrap() > 0 {}
    let used = || -> u64 {
        files(&disk).iter().filter(|(file, _)| file.starts_with("log")).map(|(_, l)| l).sum()
    };
    let before = used();
    store.short_of_space(true);
    while store.tidy().unwrap() > 0 {}
    let live = 200 * 1_600;
    assert!(used() < before && used() < live * 2, "{before} {}", used());
    let mut left = 0;
    store::queue::for_each_entry(&store, |entry| {
        assert_eq!(entry.record, record(entry.id.0));
        left += 1;
    })
    .unwrap();
    assert_eq!(left, 200);
}

#[test]
fn a_log_that_is_lost_leaves_the_contents_where_they_are() {
    let disk = filled();
    let before = body_files(&disk);
    for (file, _) in files(&disk) {
        if !file.starts_with("bodies") {
            disk.unlink(&file).unwrap();
        }
    }
    let store = open(&disk).unwrap();
    assert_eq!((store.sweep().removed, store.sweep().set_aside), (0, before));
    assert_eq!((store.entry_count().unwrap(), body_files(&disk)), (0, before));
    // They stay there, and in nobody's way.
    assert!(commit(&store, accept(10)).is_durable());
    drop(store);
    let store = open(&disk).unwrap();
    assert_eq!((store.sweep().set_aside, body_files(&disk)), (0, before + 1));
    assert_eq!(store.body(BodyId(10), 0, 9).unwrap(), Some(content(10).slice(..9)));
}

/// A device that cannot be read for a while, from any read of a start on: the store does not open, or what it
/// could not read is reported, stays where it is, and is there again when the device is.
#[test]
fn what_cannot_be_read_for_a_while_is_there_again_later() {
    let before = filled();
    let reads = {
        let disk = before.copy();
        drop(open(&disk).unwrap());
        disk.reads()
    };
    let mut opened = 0;
    for from in 0..reads {
        for many in [1, 2, 5, 20, u64::MAX] {
            let disk = before.copy();
            disk.unreadable_reads(from..from.saturating_add(many));
            if let Ok(store) = open(&disk) {
                opened += 1;
                // It goes on, on a device that can be read again.
                disk.heal();
                let is_whole = store.damage().is_none();
                for n in 1..=3 {
                    let octets = Op::PutMeta { name: format!("more {n}"), value: octets(9_000, 1) };
                    assert!(commit(&store, vec![octets]).is_durable());
                    while store.tidy().unwrap() > 0 {}
                }
                drop(store);
                let again = open(&disk).unwrap().damage();
                assert!(!is_whole || again.is_none(), "{many} from {from}: {again:?}");
            }
            disk.heal();
            let missing = examine(&disk).unwrap_or_else(|e| panic!("{many} from {from}: {e}"));
            assert_eq!(missing, 0, "{many} from {from}");
        }
    }
    assert!(opened > reads / 2, "{opened} of {reads}");
}
