//! Power failures at every operation: acknowledged batches survive, others survive whole or not at
//! all.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use bytes::Bytes;
use common::*;
use engine::journal::{Batch, Op, SpoolId};
use std::path::Path;
use std::sync::Arc;
use store::faulty::{FaultyDisk, Loss};
use store::safeguard::{Safeguard, leave_out};
use store::{Committed, ModelState, Options, QueueStore, RedbStore, StoreError};

/// Even the smallest spool goes to a file, so file operations are tested cheaply; and three keys
/// of one batch count as many; and the log has small segments.
const OPTIONS: Options =
    Options { spool_memory: 100, cache: 1 << 20, many_keys: 2, run_keys: 4, segment: 4096 };

struct Script {
    /// Per group: the spools received before it, and its batches.
    groups: Vec<(Vec<u64>, Vec<Batch>)>,
    spools: SpoolContents,
    universe: ModelState,
}

fn script() -> Script {
    let spools: SpoolContents =
        [(1, octets(5000, 1)), (2, octets(9000, 2)), (3, octets(40, 3)), (4, octets(5000, 4))]
            .into();
    let large = octets((1 << 20) + 1, 5);
    let groups = vec![
        (vec![], vec![vec![body(9, large)]]),
        (vec![], vec![vec![put(1, b"one"), seen(1, 10, b"a"), meta("epoch", b"1")]]),
        (
            vec![],
            vec![(50..55).map(|key| seen(key, 30, b"many")).chain([put(6, b"six")]).collect()],
        ),
        (vec![1], vec![vec![put(2, b"two"), spooled(1, 1)]]),
        (vec![], vec![vec![delete(1)], vec![seen(2, 20, b"b"), put(3, b"three")]]),
        (vec![2, 3], vec![vec![spooled(2, 2), put(4, b"4")], vec![spooled(3, 3), put(5, b"5")]]),
        (vec![], vec![vec![drop_body(1), delete(2)]]),
        (vec![4], vec![vec![spooled(2, 4), Op::ForgetSeen { before: base::Utc(15), most: 9 }]]),
        (vec![], vec![vec![drop_body(2), drop_body(3), delete(4), meta("epoch", b"2")]]),
    ];
    let mut universe = ModelState::default();
    for batch in groups.iter().flat_map(|(_, batches)| batches) {
        for op in batch {
            if !matches!(op, Op::ForgetSeen { .. } | Op::DeleteBody { .. }) {
                apply(&mut universe, &vec![op.clone()], &spools);
            }
        }
    }
    Script { groups, spools, universe }
}

/// Runs the script until an operation fails. Returns the model of the acknowledged groups, and the
/// same with the group in progress.
fn run(engine: Engine, disk: &FaultyDisk, script: &Script) -> (ModelState, ModelState, bool) {
    let mut acknowledged = ModelState::default();
    let Ok(store) = engine.on(disk, OPTIONS) else {
        return (acknowledged.clone(), acknowledged, false);
    };
    for (spools, batches) in &script.groups {
        if receive(&*store, spools, &script.spools).is_err() {
            return (acknowledged.clone(), acknowledged, false);
        }
        let mut with_group = acknowledged.clone();
        for batch in batches {
            apply(&mut with_group, batch, &script.spools);
        }
        let outcomes = store.commit(numbered(batches.clone()));
        if !outcomes.iter().all(Committed::is_durable) {
            assert!(!outcomes.iter().any(Committed::is_durable), "one transaction, one outcome");
            return (acknowledged, with_group, false);
        }
        acknowledged = with_group;
        if store.tidy().is_err() {
            return (acknowledged.clone(), acknowledged, false);
        }
    }
    (acknowledged.clone(), acknowledged, true)
}

fn receive(
    store: &dyn QueueStore,
    spools: &[u64],
    contents: &SpoolContents,
) -> Result<(), StoreError> {
    for id in spools {
        let (id, content) = (SpoolId(*id), &contents[id]);
        store.contents().open(id)?;
        // More than the spools may hold in memory, so each content is in a file from the start.
        for chunk in [content.slice(..20), content.slice(20..)] {
            store.contents().append(id, chunk)?;
        }
        store.contents().sync(id)?;
    }
    Ok(())
}

/// Crashes at every operation; returns the number of crashes, or the first loss.
fn crash_everywhere(
    engine: Engine,
    prepare: impl Fn(&FaultyDisk),
    loss: impl Fn(u64) -> Loss,
) -> Result<u64, String> {
    let script = script();
    for n in 1.. {
        let disk = FaultyDisk::new();
        prepare(&disk);
        disk.power_off_at(n);
        let (acknowledged, with_group, finished) = run(engine, &disk, &script);
        disk.crash(loss(n));
        recovered(engine, &disk, &script, &acknowledged, &with_group)
            .map_err(|e| format!("{n}: {e}"))?;
        if finished {
            return Ok(n);
        }
    }
    unreachable!()
}

fn recovered(
    engine: Engine,
    disk: &FaultyDisk,
    script: &Script,
    a: &ModelState,
    b: &ModelState,
) -> Result<(), String> {
    let store = engine.on(disk, OPTIONS).map_err(|e| e.to_string())?;
    let without = check(&*store, a, &script.universe);
    let with = check(&*store, b, &script.universe);
    if without.is_err() && with.is_err() {
        return Err(format!("neither without the last group ({without:?}) nor with it ({with:?})"));
    }
    if !store.sweep().missing.is_empty() {
        return Err(format!("missing bodies: {:?}", store.sweep().missing));
    }
    let damage = store.damage();
    if !damage.is_none() {
        return Err(format!("an interruption is taken for damage: {damage:?}"));
    }
    // Every remaining file belongs to a stored body of at least 100 octets.
    let kept = if without.is_ok() { a } else { b };
    // A store without a commit cannot know whether it is new, and sets aside.
    if body_files(disk) > kept.bodies.len() + store.sweep().aside {
        return Err("orphans survived the sweep".to_owned());
    }
    // The store continues to work.
    commit(&*store, vec![put(99, b"after")]).into_result().map_err(|e| e.to_string())
}

/// Makes a test of each function, for each engine.
macro_rules! for_each_engine {
    ($($name:ident),* $(,)?) => {
        mod redb {
            $(#[test] fn $name() { super::$name(super::Engine::Redb); })*
        }
        mod log {
            $(#[test] fn $name() { super::$name(super::Engine::Log); })*
        }
    };
}

for_each_engine!(
    a_crash_that_loses_all_unsynced_loses_nothing_acknowledged,
    a_crash_that_loses_nothing_unsynced_shows_nothing_half,
    a_crash_that_tears_writes_at_random_loses_nothing_acknowledged,
    a_power_failure_after_a_kill_and_a_start_loses_nothing_acknowledged,
    without_the_sync_of_files_a_body_is_lost,
    without_the_sync_of_the_directory_a_body_is_lost,
    a_single_error_anywhere_breaks_no_promise,
);

fn a_crash_that_loses_all_unsynced_loses_nothing_acknowledged(engine: Engine) {
    let crashes = crash_everywhere(engine, |_| (), |_| Loss::Everything).unwrap();
    assert!(crashes > 40, "the script is too short to mean anything: {crashes}");
}

fn a_crash_that_loses_nothing_unsynced_shows_nothing_half(engine: Engine) {
    crash_everywhere(engine, |_| (), |_| Loss::Nothing).unwrap();
}

fn a_crash_that_tears_writes_at_random_loses_nothing_acknowledged(engine: Engine) {
    for seed in 0..4 {
        crash_everywhere(engine, |_| (), |n| Loss::Some(seed * 10_000 + n)).unwrap();
    }
}

/// Control: without the fdatasync of files the tests above fail.
/// Of a process that was killed the kernel may hold a commit that the disk does not. The next one reads it, and removes
/// the files that it gives up; then the power fails.
fn a_power_failure_after_a_kill_and_a_start_loses_nothing_acknowledged(engine: Engine) {
    let script = script();
    for (n, seed) in (1..).flat_map(|n| (0..3).map(move |seed| (n, seed))) {
        let disk = FaultyDisk::new();
        disk.power_off_at(n);
        let (acknowledged, with_group, finished) = run(engine, &disk, &script);
        disk.resume();
        drop(engine.on(&disk, OPTIONS));
        disk.crash(Loss::Some(seed * 10_000 + n));
        recovered(engine, &disk, &script, &acknowledged, &with_group)
            .unwrap_or_else(|error| panic!("{n}, {seed}: {error}"));
        if finished {
            return;
        }
    }
}

fn without_the_sync_of_files_a_body_is_lost(engine: Engine) {
    let lost = crash_everywhere(engine, FaultyDisk::ignore_file_sync, |_| Loss::Everything);
    lost.unwrap_err();
}

/// Control: without the fsync of a directory the tests above fail.
fn without_the_sync_of_the_directory_a_body_is_lost(engine: Engine) {
    let log = (engine == Engine::Log).then_some("log");
    for directory in ["bodies", ""].into_iter().chain(log) {
        let ignore = |disk: &FaultyDisk| disk.ignore_sync_of(Path::new(directory));
        crash_everywhere(engine, ignore, |_| Loss::Everything).unwrap_err();
    }
}

/// One operation fails and the machine continues: a successful answer must still be true, and a
/// failed batch must not be there in part, neither now nor after a crash.
fn a_single_error_anywhere_breaks_no_promise(engine: Engine) {
    let script = script();
    for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::Other] {
        for n in 1.. {
            let disk = FaultyDisk::new();
            disk.fail_at(n, kind);
            let (acknowledged, with_group, finished) = run(engine, &disk, &script);
            let untouched = disk.calls() < n;
            disk.crash(Loss::Everything);
            recovered(engine, &disk, &script, &acknowledged, &with_group)
                .unwrap_or_else(|e| panic!("{kind:?} at {n}: {e}"));
            if finished && untouched {
                break;
            }
        }
    }
}

/// The process ends after an error and starts again, on a kernel that takes for written what a failed sync
/// left in its memory; then the power fails.
#[test]
fn what_a_failed_sync_left_in_memory_is_not_trusted() {
    let script = script();
    for n in 1.. {
        let disk = FaultyDisk::new();
        disk.fail_at(n, std::io::ErrorKind::Other);
        let (acknowledged, with_group, finished) = run(Engine::Log, &disk, &script);
        if finished && disk.calls() < n {
            break;
        }
        recovered(Engine::Log, &disk, &script, &acknowledged, &with_group)
            .unwrap_or_else(|e| panic!("restarted after {n}: {e}"));
        let store = Engine::Log.on(&disk, OPTIONS).unwrap();
        let entries = store.entries(None, 99).unwrap();
        assert!(entries.iter().any(|entry| entry.id.0 == 99), "committed since");
        drop(store);
        disk.crash(Loss::Everything);
        let store = Engine::Log.on(&disk, OPTIONS).unwrap();
        assert_eq!(store.entries(None, 99).unwrap(), entries, "{n}");
        assert!(store.damage().is_none(), "{n}: {:?}", store.damage());
    }
}

#[test]
fn a_failed_database_sync_stops_the_store() {
    let disk = FaultyDisk::new();
    let store = RedbStore::with_disk(Arc::new(disk.clone()), OPTIONS).unwrap();
    let mut stopped = false;
    for n in 1..40 {
        disk.fail_at(disk.calls() + n, std::io::ErrorKind::Other);
        let outcome = commit(&store, vec![put(n, b"x")]);
        if let Committed::Unknown(StoreError::Stopped { .. }) = outcome {
            stopped = true;
            break;
        }
    }
    assert!(stopped, "no sync was hit");
    let later = commit(&store, vec![put(100, b"x")]);
    assert!(matches!(later, Committed::NotDone(StoreError::Stopped { .. })));
    assert!(matches!(store.meta("x"), Err(StoreError::Stopped { .. })));
}

#[test]
fn an_abandoned_spool_is_swept() {
    let disk = FaultyDisk::new();
    let store = RedbStore::with_disk(Arc::new(disk.clone()), OPTIONS).unwrap();
    store.contents().open(SpoolId(1)).unwrap();
    store.contents().append(SpoolId(1), Bytes::from(vec![0; 5000])).unwrap();
    assert_eq!(body_files(&disk), 1);
    drop(store);
    let store = RedbStore::with_disk(Arc::new(disk.clone()), OPTIONS).unwrap();
    assert_eq!((store.sweep().removed, body_files(&disk)), (1, 0));
}

/// Compares what the log has after many messages came, and most of them went, with one failed operation;
/// false if there are fewer operations.
fn failed_at(n: u64) -> Result<bool, String> {
    let disk = FaultyDisk::new();
    let store = Engine::Log.on(&disk, OPTIONS).map_err(|e| e.to_string())?;
    let at = disk.calls() + n;
    disk.fail_at(at, std::io::ErrorKind::Other);
    let mut expected = ModelState::default();
    let record = octets(700, 3).to_vec().leak();
    for id in 0..24 {
        let mut batches = vec![vec![put(id, record)]];
        batches.extend((id >= 3).then(|| vec![delete(id - 3)]));
        for batch in batches {
            match commit(&*store, batch.clone()) {
                Committed::Durable => apply(&mut expected, &batch, &SpoolContents::new()),
                Committed::NotDone(_) => {}
                // Either end is right: other tests compare both.
                _ => return Ok(true),
            }
        }
        let _ = store.tidy();
        let _ = store.tidy();
    }
    drop(store);
    if disk.calls() < at {
        return Ok(false);
    }
    let store = Engine::Log.on(&disk, OPTIONS).map_err(|e| e.to_string())?;
    check(&*store, &expected, &expected)?;
    Ok(true)
}

#[test]
fn what_is_deleted_stays_so_although_a_segment_could_not_be_removed() {
    let end = (1..).find(|n| !failed_at(*n).unwrap()).unwrap();
    assert!(end > 80, "too few operations to mean anything: {end}");
    // Control.
    leave_out(Some(Safeguard::GivenUp));
    assert!((1..end).any(|n| failed_at(n).is_err()));
    leave_out(None);
}
