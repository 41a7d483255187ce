//! The store closes in order, and opens without being read whole, however it ended.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

mod common;

use base::Precedence;
use common::{apply, body, check, commit, octets, put, seen, seen_of};
use engine::journal::Batch;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use store::faulty::{FaultyDisk, Loss};
use store::{Committed, Committer, ModelState, Options, QueueStore, RedbStore, StoreError};

/// Names the directory in which a child of this test commits and aborts.
const CHILD: &str = "STORE_TEST_CHILD";

fn batch(n: u64) -> Batch {
    vec![put(n, b"x"), body(n, octets(3_000, n as u8)), seen(n as u8, n + 1, b"answer")]
}

fn fill(store: &RedbStore, numbers: std::ops::Range<u64>) {
    for n in numbers {
        commit(store, batch(n)).into_result().unwrap();
    }
}

fn on(disk: &FaultyDisk) -> RedbStore {
    RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap()
}

#[test]
fn after_a_power_cut_it_opens_without_a_repair() {
    for loss in [Loss::Nothing, Loss::Everything, Loss::Some(7)] {
        let disk = FaultyDisk::new();
        let store = on(&disk);
        assert!(!store.sweep().repaired, "a new one");
        fill(&store, 0..20);
        disk.crash(loss);
        drop(store);
        let store = on(&disk);
        assert!(!store.sweep().repaired, "{loss:?}");
        assert_eq!(store.entry_count().unwrap(), 20, "{loss:?}");
    }
}

/// A child process has the lock of another test's store for a moment, between fork and exec.
static CHILDREN: Mutex<()> = Mutex::new(());

#[test]
fn a_store_that_is_closed_in_order_is_never_repaired() {
    let _alone = CHILDREN.lock();
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let store = RedbStore::open(directory.path(), Options::default()).unwrap();
        assert!(!store.sweep().repaired, "round {round}");
        let store = Arc::new(store);
        let committer = Committer::start(Arc::clone(&store) as Arc<dyn QueueStore>).unwrap();
        for n in 0..10 {
            let on_done = Box::new(|ended: Committed| ended.into_result().unwrap());
            committer.submit(Precedence::Routine, batch(round * 10 + n), on_done);
        }
        committer.shutdown();
        // Another thread still holds it.
        let holder = Arc::clone(&store);
        store.close();
        assert!(matches!(holder.entry_count(), Err(StoreError::Closed)));
        let late = commit(&*holder, batch(99));
        assert!(matches!(late, Committed::NotDone(StoreError::Closed)), "{late:?}");
        store.close();
    }
}

#[test]
fn after_an_abort_of_the_process_it_opens_without_a_repair() {
    if let Some(directory) = std::env::var_os(CHILD) {
        let store = RedbStore::open(Path::new(&directory), Options::default()).unwrap();
        fill(&store, 0..50);
        std::process::abort();
    }
    let _alone = CHILDREN.lock();
    let directory = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["after_an_abort_of_the_process", "--nocapture"])
        .env(CHILD, directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!child.success(), "it aborted");
    let store = RedbStore::open(directory.path(), Options::default()).unwrap();
    assert!(!store.sweep().repaired);
    let mut model = ModelState::default();
    (0..50).for_each(|n| apply(&mut model, &batch(n), &Default::default()));
    check(&store, &model, &model).unwrap();
}

#[test]
fn keys_are_forgotten_so_many_at_a_time_in_the_order_of_their_times() {
    const KEYS: u16 = 10_000;
    const MAX: usize = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let store = RedbStore::open(directory.path(), Options::default()).unwrap();
    let key = |n: u16| {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&n.wrapping_mul(40_503).to_be_bytes());
        engine::journal::Digest(key)
    };
    let remember = |n| engine::journal::Op::PutSeen {
        key: key(n),
        until: base::Utc(n.into()),
        record: bytes::Bytes::new(),
        absent: false,
    };
    commit(&store, (0..KEYS).map(remember).collect()).into_result().unwrap();
    while store.tidy().unwrap() > 0 {}
    let before = base::Utc((KEYS - 500).into());
    let remembered = || (0..KEYS).filter(|n| seen_of(&store, key(*n), base::Utc(0)).is_some());
    let mut left: Vec<u16> = remembered().collect();
    assert_eq!(left.len(), usize::from(KEYS));
    let mut commits = 0;
    while store.has_expired_keys(before).unwrap() {
        let forget = engine::journal::Op::ForgetSeen { before, most: MAX };
        commit(&store, vec![forget]).into_result().unwrap();
        let now: Vec<u16> = remembered().collect();
        assert!(left.len() - now.len() <= MAX, "{} in one commit", left.len() - now.len());
        assert_eq!(now, left[left.len() - now.len()..], "the oldest first");
        left = now;
        commits += 1;
    }
    assert_eq!((left.len(), commits), (500, 10));
}

/// A daemon of that user opens them. Who is not root makes none for others: the test is skipped, with a line.
#[test]
fn what_root_makes_belongs_to_the_owner_of_the_directory() {
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};
    const NOBODY: u32 = 65_534;
    let place = tempfile::tempdir().unwrap();
    if place.path().metadata().unwrap().uid() != 0 {
        eprintln!("SKIPPED: only root makes files for others");
        return;
    }
    let owned = place.path().join("data");
    std::fs::create_dir(&owned).unwrap();
    chown(&owned, Some(NOBODY), Some(NOBODY)).unwrap();
    let store = store::open(&owned.join("queue"), Options::default()).unwrap();
    store.close();
    let (mut directories, mut seen) = (vec![owned], 0);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(path.metadata().unwrap().uid(), NOBODY, "{path:?}");
            seen += 1;
            directories.extend(path.is_dir().then_some(path));
        }
    }
    assert!(seen > 6, "{seen}");
    let elsewhere = place.path().join("elsewhere");
    symlink("/etc", &elsewhere).unwrap();
    assert!(store::disk::open_own(&elsewhere).is_err(), "what somebody put there");
}
