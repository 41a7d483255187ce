//! The log on a disk that fills up: it opens, drains at any fill level, keeps room for the highest
//! precedences, and gives space back.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use base::{BodyId, EntryId, Precedence};
use bytes::Bytes;
use common::*;
use engine::journal::{Batch, BodySource, Op};
use store::{Committed, Disk, Options, QueueStore};

/// Blocks of 4 KiB: 48 MiB.
const CAPACITY: usize = 12 << 10;

fn accept(precedence: Precedence, n: u64) -> Batch {
    let record = octets(400, n as u8);
    let source = BodySource::Octets(octets(1_000, n as u8));
    vec![
        Op::PutBody { id: BodyId(n), source },
        Op::PutEntry { precedence, id: EntryId(n), queue: QUEUE, record },
    ]
}

fn remove(precedence: Precedence, n: u64) -> Batch {
    vec![Op::DeleteEntry { precedence, id: EntryId(n) }, Op::DeleteBody { id: BodyId(n) }]
}

/// Accepts messages from this number on until the disk is full; returns the next number.
fn fill(store: &dyn QueueStore, precedence: Precedence, from: u64) -> u64 {
    for n in from.. {
        match commit(store, accept(precedence, n)) {
            Committed::Durable => {}
            Committed::NotDone(error) if error.is_disk_full() => return n,
            other => panic!("{other:?}"),
        }
    }
    unreachable!()
}

fn used(disk: &dyn Disk) -> u64 {
    let files = disk.list(std::path::Path::new("log")).unwrap();
    files.into_iter().map(|(_, length)| length).sum()
}

#[test]
fn a_full_disk_drains_and_serves_a_flash_until_its_own_reserve_ends() {
    let mut site = Site::new(Engine::Log);
    site.disk.set_capacity(Some(CAPACITY));
    let store = site.open();
    let routine = fill(&*store, Precedence::Routine, 1);
    assert!(routine > 10_000, "{routine}");
    let epoch = || meta("epoch", b"2");
    assert!(commit(&*store, vec![epoch()]).is_durable());
    // Filled by the lowest, the disk has room for the highest.
    let flash = fill(&*store, Precedence::Flash, routine);
    assert!(flash - routine > 1_000, "{}", flash - routine);
    assert!(commit(&*store, vec![epoch()]).is_durable());
    store.close();
    drop(store);

    let store = site.open();
    assert_eq!(store.entry_count().unwrap(), flash - 1);
    assert!(commit(&*store, vec![epoch()]).is_durable(), "the start's own commit");
    for n in routine..flash {
        assert!(commit(&*store, remove(Precedence::Flash, n)).is_durable(), "{n}");
    }
    for n in 1..routine {
        assert!(commit(&*store, remove(Precedence::Routine, n)).is_durable(), "{n}");
    }
    while store.tidy().unwrap() > 0 {}
    // Ballast, preallocation and the segment that is written: six at most.
    assert!(used(&site.disk) <= 6 * (4 << 20), "{}", used(&site.disk));
    assert!(commit(&*store, accept(Precedence::Routine, flash)).is_durable());
    drop(store);
    assert_eq!(site.open().entry_count().unwrap(), 1);
}

/// Whatever a client does with Flash and Routine, and however often the daemon starts: what gives room, and
/// the small values of a start, find room.
#[test]
fn nobody_takes_the_room_that_is_kept_for_deletes() {
    let mut site = Site::new(Engine::Log);
    site.disk.set_capacity(Some(CAPACITY));
    let mut store = site.open();
    let routine = fill(&*store, Precedence::Routine, 1);
    let mut next = fill(&*store, Precedence::Flash, routine);
    // Records go and their contents stay: other copies need them. So little room comes back.
    for n in 1..routine {
        let delete = Op::DeleteEntry { precedence: Precedence::Routine, id: EntryId(n) };
        assert!(commit(&*store, vec![delete]).is_durable(), "{n}");
        if n.is_multiple_of(50) {
            store.tidy().unwrap();
            next = fill(&*store, Precedence::Routine, next);
            next = fill(&*store, Precedence::Flash, next);
        }
    }
    for n in 0..400u64 {
        assert!(commit(&*store, vec![meta("epoch", b"3")]).is_durable(), "start {n}");
        next = fill(&*store, Precedence::Flash, next);
        if n.is_multiple_of(40) {
            drop(store);
            store = site.open();
        }
    }
    // Of the lower precedence nothing is taken while the reserve is not whole.
    let lower = commit(&*store, accept(Precedence::Routine, next));
    assert!(matches!(&lower, Committed::NotDone(error) if error.is_disk_full()), "{lower:?}");
    for n in 1..next {
        for precedence in [Precedence::Routine, Precedence::Flash] {
            assert!(commit(&*store, remove(precedence, n)).is_durable(), "{n}");
        }
    }
    while store.tidy().unwrap() > 0 {}
    assert!(commit(&*store, accept(Precedence::Routine, next)).is_durable());
}

/// A file whose name is that of a segment far ahead is not one: the log goes on where it was.
#[test]
fn a_file_of_no_segment_does_no_harm() {
    for name in ["ffffffff.segment", "fffffffe.segment", "ffffffff.newest"] {
        let mut site = Site::new(Engine::Log);
        let store = site.open();
        for n in 1..=100 {
            assert!(commit(&*store, accept(Precedence::Routine, n)).is_durable());
        }
        store.close();
        drop(store);
        site.disk.create(&std::path::Path::new("log").join(name)).unwrap();
        for round in 1..=3 {
            let store = site.open();
            assert_eq!(store.entry_count().unwrap(), 99 + round, "{name}");
            assert!(commit(&*store, accept(Precedence::Routine, 100 + round)).is_durable());
        }
    }
}

/// One message in a hundred stays: its neighbours' space is given back all the same.
#[test]
fn a_few_messages_that_stay_do_not_hold_the_space_of_many() {
    const COUNT: u64 = 40_000;
    const LIVE: u64 = COUNT / 100 * 1_500;
    let mut site = Site::with_options(Engine::Log, Options::default());
    let store = site.open();
    let stays = |n: u64| n.is_multiple_of(100);
    for n in 1..=COUNT {
        assert!(commit(&*store, accept(Precedence::Routine, n)).is_durable());
        if n > 100 && !stays(n - 100) {
            assert!(commit(&*store, remove(Precedence::Routine, n - 100)).is_durable());
        }
    }
    while store.tidy().unwrap() > 0 {}
    // Ballast, preallocation, and what waits until it is worth a copy.
    assert!(used(&site.disk) <= 2 * LIVE + 13 * (4 << 20), "{}", used(&site.disk));
    let expected: Vec<u64> = (1..=COUNT).filter(|n| stays(*n) || *n > COUNT - 100).collect();
    for store in [store, site.open()] {
        let mut found = Vec::new();
        store::queue::for_each_entry(&*store, |entry| {
            assert_eq!(entry.record, octets(400, entry.id.0 as u8));
            found.push(entry.id.0);
        })
        .unwrap();
        assert_eq!(found, expected);
        let body = store.body(BodyId(100), 0, 9_999).unwrap();
        assert_eq!(body, Some(octets(1_000, 100)));
        assert_eq!(store.body(BodyId(101), 0, 1).unwrap(), None::<Bytes>);
    }
}
