//! A copy that is made while the store is used.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use common::*;
use engine::journal::{Batch, SpoolId};
use std::path::Path;
use std::sync::Arc;
use store::faulty::{FaultyDisk, Loss};
use store::{Disk, LogStore, ModelState, Options, QueueStore};

const OPTIONS: Options =
    Options { spool_memory: 100, cache: 1 << 20, many_keys: 2, run_keys: 20, segment: 16 << 10 };

struct Traffic {
    store: Arc<LogStore>,
    model: ModelState,
    /// All that there ever was.
    universe: ModelState,
    last: u64,
}

impl Traffic {
    fn new(disk: &FaultyDisk) -> Traffic {
        let store = Arc::new(LogStore::with_disk(Arc::new(disk.clone()), OPTIONS).unwrap());
        Traffic { store, model: ModelState::default(), universe: ModelState::default(), last: 0 }
    }

    /// One message comes, every fourth one with a content in a file, and one that came earlier goes.
    fn step(&mut self) {
        self.last += 1;
        let n = self.last;
        let mut contents = SpoolContents::new();
        let mut batch = vec![put(n, b"a record"), seen((n % 250) as u8, 500 + n, b"known")];
        if n.is_multiple_of(4) {
            let content = octets(5_000 + n as usize, n as u8);
            self.store.contents().open(SpoolId(n)).unwrap();
            self.store.contents().append(SpoolId(n), content.clone()).unwrap();
            self.store.contents().sync(SpoolId(n)).unwrap();
            contents.insert(n, content);
            batch.push(spooled(n, n));
        } else {
            batch.push(body(n, octets(900, n as u8)));
        }
        self.commit(batch, &contents);
        if n > 40 {
            let gone = vec![delete(n - 40), drop_body(n - 40)];
            apply(&mut self.model, &gone, &SpoolContents::new());
            commit(&*self.store, gone).into_result().unwrap();
        }
        while self.store.tidy().unwrap() > 0 {}
    }

    fn commit(&mut self, batch: Batch, contents: &SpoolContents) {
        apply(&mut self.model, &batch, contents);
        apply(&mut self.universe, &batch, contents);
        commit(&*self.store, batch).into_result().unwrap();
    }
}

/// What a store on this disk must hold; it is whole.
fn compare(disk: &FaultyDisk, model: &ModelState, universe: &ModelState) {
    let store = LogStore::with_disk(Arc::new(disk.clone()), OPTIONS).unwrap();
    check(&store, model, universe).unwrap();
    store.verify(&mut |_| true).unwrap();
    assert!(store.damage().is_none(), "{:?}", store.damage());
    let sweep = store.sweep();
    assert_eq!((sweep.lost, sweep.set_aside, sweep.missing.len()), (0, 0, 0));
}

fn files(disk: &FaultyDisk) -> usize {
    let count = |directory| disk.list(Path::new(directory)).unwrap().len();
    count("log") + count("bodies")
}

#[test]
fn a_copy_is_what_there_was_when_it_began_whatever_comes_and_goes_meanwhile() {
    let (disk, to) = (FaultyDisk::new(), FaultyDisk::new());
    let mut traffic = Traffic::new(&disk);
    (0..100).for_each(|_| traffic.step());
    let (model, before) = (traffic.model.clone(), files(&disk));
    let (store, mut parts) = (Arc::clone(&traffic.store), 0);
    let whole = store.back_up_to(&to, &mut |octets| {
        assert!(octets > 0);
        parts += 1;
        // The segments come first.
        (0..if parts < 5 { 80 } else { 5 }).for_each(|_| traffic.step());
        true
    });
    assert!(whole.unwrap() && parts > 10, "{parts}");
    compare(&to, &model, &traffic.universe);
    // What had to stay for the copy is gone.
    (0..20).for_each(|_| traffic.step());
    assert!(files(&disk) <= before + 8, "{before} files before, {} after", files(&disk));
    let Traffic { store: last, model, universe, .. } = traffic;
    drop(store);
    drop(last);
    compare(&disk, &model, &universe);
}

#[test]
fn a_copy_that_ends_early_or_fails_leaves_the_store_as_it_was() {
    let disk = FaultyDisk::new();
    let mut traffic = Traffic::new(&disk);
    (0..60).for_each(|_| traffic.step());
    let store = Arc::clone(&traffic.store);
    let mut parts = 0;
    let whole = store.back_up_to(&FaultyDisk::new(), &mut |_| {
        parts += 1;
        parts < 3
    });
    assert!(!whole.unwrap());
    for fails_at in [1, 5, 9] {
        let full = FaultyDisk::new();
        full.fail_at(fails_at, std::io::ErrorKind::StorageFull);
        let failed = store.back_up_to(&full, &mut |_| true).unwrap_err();
        assert!(failed.is_disk_full(), "{failed}");
        traffic.step();
    }
    let Traffic { store: last, model, universe, .. } = traffic;
    drop(store);
    drop(last);
    compare(&disk, &model, &universe);
}

/// The power fails while files wait for the copy's end.
#[test]
fn a_crash_during_a_copy_loses_nothing() {
    for seed in 0..8 {
        let disk = FaultyDisk::new();
        let mut traffic = Traffic::new(&disk);
        (0..80).for_each(|_| traffic.step());
        let (store, mut parts) = (Arc::clone(&traffic.store), 0);
        let _ = store.back_up_to(&FaultyDisk::new(), &mut |_| {
            parts += 1;
            (0..10).for_each(|_| traffic.step());
            parts < 2 + seed
        });
        if seed % 2 == 0 {
            (0..seed).for_each(|_| traffic.step());
        }
        disk.crash(Loss::Some(seed));
        compare(&disk, &traffic.model, &traffic.universe);
    }
}

/// A daemon that stops does not wait for the copy.
#[test]
fn a_store_that_is_closed_ends_its_copy() {
    let disk = FaultyDisk::new();
    let mut traffic = Traffic::new(&disk);
    (0..60).for_each(|_| traffic.step());
    let mut parts = 0;
    let ended = traffic.store.back_up_to(&FaultyDisk::new(), &mut |_| {
        parts += 1;
        if parts == 2 {
            traffic.store.close();
        }
        true
    });
    assert!(matches!(ended, Err(store::StoreError::Closed)), "{ended:?}");
    assert_eq!(parts, 2);
}
