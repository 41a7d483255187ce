//! Contents that are being received when the power fails, or the process ends: what a note made durable is
//! there at the next open, is received further, and is committed as one content.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use bytes::Bytes;
use common::*;
use engine::journal::SpoolId;
use std::path::Path;
use store::faulty::{FaultyDisk, Loss};
use store::{Disk, KeptSpool, Options, QueueStore, StoreError};

const OPTIONS: Options =
    Options { spool_memory: 1 << 20, cache: 1 << 20, many_keys: 2, run_keys: 4, segment: 4096 };

const ENGINES: [Engine; 2] = [Engine::Redb, Engine::Log];

/// Octets between two notes.
const PART: usize = 30_000;
const PARTS: usize = 4;

fn content() -> Bytes {
    octets(PART * PARTS + 1_000, 3)
}

fn part(number: usize) -> Bytes {
    content().slice(PART * number..PART * (number + 1))
}

/// Receives the parts from `first` on, with a note behind each; counts the notes that are durable.
fn receive(
    store: &dyn QueueStore,
    id: SpoolId,
    first: usize,
    durable: &mut usize,
) -> Result<(), StoreError> {
    let contents = store.contents();
    for number in first..PARTS {
        for piece in part(number).chunks(13_000) {
            contents.append(id, Bytes::copy_from_slice(piece))?;
        }
        contents.note(id, format!("note {number}").as_bytes())?;
        contents.sync(id)?;
        *durable = number + 1;
    }
    contents.append(id, content().slice(PART * PARTS..))
}

/// A run that begins with a commit, as the daemon's does, and receives until the disk fails.
fn run(engine: Engine, disk: &FaultyDisk) -> usize {
    let mut durable = 0;
    let Ok(store) = engine.on(disk, OPTIONS) else { return durable };
    if commit(&*store, vec![put(1, b"one")]).is_durable()
        && store.contents().open(SpoolId(9)).is_ok()
    {
        let _ = receive(&*store, SpoolId(9), 0, &mut durable);
    }
    durable
}

fn files(disk: &FaultyDisk) -> Vec<String> {
    let all = disk.list(Path::new("bodies")).unwrap();
    all.into_iter().map(|(name, _)| name).collect()
}

/// What the next run finds, after at least so many durable notes: it receives the rest, and commits it.
fn take_up(engine: Engine, disk: &FaultyDisk, durable: usize) {
    let store = engine.on(disk, OPTIONS).unwrap();
    let kept = store.contents().take_kept();
    assert_eq!(kept.len(), usize::from(durable > 0).max(kept.len()), "{durable} notes");
    let Some(KeptSpool { id, length, notes }) = kept.into_iter().next() else { return };
    assert!(notes.len() >= durable, "{notes:?}");
    let expected: Vec<Bytes> =
        (0..notes.len()).map(|number| format!("note {number}").into()).collect();
    assert_eq!(notes, expected);
    assert_eq!(length, (PART * notes.len()) as u64);
    assert_eq!(store.contents().length(id).unwrap(), length);
    receive(&*store, id, notes.len(), &mut 0).unwrap();
    commit(&*store, vec![spooled(7, id.0)]).into_result().unwrap();
    assert_eq!(store.body(base::BodyId(7), 0, usize::MAX).unwrap(), Some(content()));
    drop(store);
    let store = engine.on(disk, OPTIONS).unwrap();
    assert_eq!(store.body(base::BodyId(7), 0, usize::MAX).unwrap(), Some(content()));
    assert!(store.contents().take_kept().is_empty() && store.damage().is_none());
    assert_eq!(files(disk).len(), 1, "{:?}", files(disk));
}

#[test]
fn a_content_is_received_further_wherever_the_power_failed() {
    for engine in ENGINES {
        for loss in 0..4 {
            let mut most = 0;
            for n in 1.. {
                let disk = FaultyDisk::new();
                disk.power_off_at(n);
                let durable = run(engine, &disk);
                let unhurt = disk.calls() < n;
                disk.crash(match loss {
                    0 => Loss::Everything,
                    1 => Loss::Nothing,
                    seed => Loss::Some(seed * 10_000 + n),
                });
                most = most.max(durable);
                take_up(engine, &disk, durable);
                if unhurt {
                    break;
                }
            }
            assert_eq!(most, PARTS, "{engine:?}");
        }
    }
}

/// A sync fails, the process ends, and the kernel takes for written what the disk does not have.
#[test]
fn what_a_failed_sync_left_in_memory_is_not_received_further() {
    let engine = Engine::Log;
    for n in 1.. {
        let disk = FaultyDisk::new();
        disk.fail_at(n, std::io::ErrorKind::Other);
        let durable = run(engine, &disk);
        let unhurt = disk.calls() < n;
        disk.heal();
        take_up(engine, &disk, durable);
        disk.crash(Loss::Everything);
        let store = engine.on(&disk, OPTIONS).unwrap();
        let committed = store.body(base::BodyId(7), 0, usize::MAX).unwrap();
        assert!(committed.is_none_or(|octets| octets == content()), "{n}");
        if unhurt {
            break;
        }
    }
}

/// A second run that dies before anything came leaves what the first one left; one that receives a part
/// leaves more.
#[test]
fn a_content_is_kept_over_several_runs() {
    for engine in ENGINES {
        let disk = FaultyDisk::new();
        let store = engine.on(&disk, OPTIONS).unwrap();
        commit(&*store, vec![put(1, b"one")]).into_result().unwrap();
        store.contents().open(SpoolId(5)).unwrap();
        let mut ends = 0;
        let received = |store: &dyn QueueStore, id: SpoolId, number: usize| {
            store.contents().append(id, part(number)).unwrap();
            store.contents().note(id, format!("note {number}").as_bytes()).unwrap();
            store.contents().sync(id).unwrap();
        };
        received(&*store, SpoolId(5), 0);
        drop(store);
        for number in [1, 2] {
            for _ in 0..2 {
                disk.crash(Loss::Everything);
                let store = engine.on(&disk, OPTIONS).unwrap();
                assert_eq!(store.contents().take_kept()[0].notes.len(), number, "run {ends}");
                ends += 1;
            }
            let store = engine.on(&disk, OPTIONS).unwrap();
            let id = store.contents().take_kept()[0].id;
            // Behind the note and in front of the next is a piece that no note covers.
            received(&*store, id, number);
            store.contents().append(id, Bytes::from_static(b"more")).unwrap();
        }
        disk.crash(Loss::Nothing);
        take_up(engine, &disk, 3);
    }
}

#[test]
fn what_is_discarded_is_not_found_again() {
    for engine in ENGINES {
        let disk = FaultyDisk::new();
        run(engine, &disk);
        disk.crash(Loss::Everything);
        let store = engine.on(&disk, OPTIONS).unwrap();
        let kept = store.contents().take_kept();
        assert_eq!(kept.len(), 1);
        store.contents().discard(kept[0].id);
        assert!(files(&disk).is_empty(), "{:?}", disk.list(Path::new("bodies")));
        drop(store);
        let store = engine.on(&disk, OPTIONS).unwrap();
        assert!(store.contents().take_kept().is_empty());
    }
}

/// Whatever octet changes, what is received further is what was sent, or is not taken up.
#[test]
fn a_changed_octet_is_noticed() {
    let disk = FaultyDisk::new();
    run(Engine::Log, &disk);
    disk.crash(Loss::Nothing);
    for (name, length) in disk.list(Path::new("bodies")).unwrap() {
        for at in (0..length).step_by(997).chain([length - 1]) {
            let disk = disk.copy();
            disk.flip(&Path::new("bodies").join(&name), at, 16).unwrap();
            take_up_or_nothing(&disk, &name);
        }
    }
}

fn take_up_or_nothing(disk: &FaultyDisk, name: &str) {
    let store = Engine::Log.on(disk, OPTIONS).unwrap();
    let Some(kept) = store.contents().take_kept().into_iter().next() else {
        assert!(files(disk).is_empty(), "{name}: {:?}", files(disk));
        return;
    };
    receive(&*store, kept.id, kept.notes.len(), &mut 0).unwrap();
    commit(&*store, vec![spooled(7, kept.id.0)]).into_result().unwrap();
    assert_eq!(store.body(base::BodyId(7), 0, usize::MAX).unwrap(), Some(content()), "{name}");
}
