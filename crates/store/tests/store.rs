//! The store on redb: large bodies, a full disk, its caches; and the committer.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use common::*;
use engine::journal::{Batch, Op, SpoolId};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use store::faulty::FaultyDisk;
use store::{
    BatchId, Committed, Committer, Disk, ModelStore, Options, QueueStore, RedbStore, StoreError,
};

fn on(disk: &FaultyDisk) -> RedbStore {
    RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap()
}

fn ok(store: &RedbStore, batch: Batch) {
    commit(store, batch).into_result().unwrap();
}

#[test]
fn a_big_body_streams_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let content = octets(10 << 20, 5);
    let store = RedbStore::open(dir.path(), Options::default()).unwrap();
    store.contents().open(SpoolId(1)).unwrap();
    for chunk in content.chunks(64 << 10) {
        store.contents().append(SpoolId(1), Bytes::copy_from_slice(chunk)).unwrap();
    }
    assert_eq!(store.contents().sync(SpoolId(1)).unwrap(), 10 << 20);
    assert_eq!(store.contents().memory_held(), 0);
    ok(&store, vec![spooled(1, 1)]);
    let reused = commit(&store, vec![spooled(2, 1)]);
    assert!(matches!(reused, Committed::NotDone(StoreError::NoSpool { .. })), "{reused:?}");
    drop(store);

    let store = RedbStore::open(dir.path(), Options::default()).unwrap();
    assert_eq!(store.body_length(BodyId(1)).unwrap(), Some(10 << 20));
    let mut read = Vec::new();
    loop {
        let part = store.body(BodyId(1), read.len() as u64, 100_000).unwrap().unwrap();
        if part.is_empty() {
            break;
        }
        read.extend_from_slice(&part);
    }
    assert!(read == content, "the octets differ");
    assert_eq!(store.body(BodyId(1), u64::MAX, 1).unwrap(), Some(Bytes::new()));
    ok(&store, vec![drop_body(1)]);
    assert_eq!(store.body(BodyId(1), 0, 1).unwrap(), None);
    assert_eq!(std::fs::read_dir(dir.path().join("bodies")).unwrap().count(), 0);
}

#[test]
fn a_missing_body_file_is_reported_not_invented() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    ok(&store, vec![body(1, octets((1 << 20) + 1, 0))]);
    let name = disk.list(Path::new("bodies")).unwrap().remove(0).0;
    disk.unlink(&Path::new("bodies").join(name)).unwrap();
    let error = store.body(BodyId(1), 0, 10).unwrap_err();
    assert!(matches!(error, StoreError::BodyDamaged { id: BodyId(1) }), "{error}");
    drop(store);
    assert_eq!(on(&disk).sweep().missing, [BodyId(1)]);
}

#[test]
fn an_open_store_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let _first = RedbStore::open(dir.path(), Options::default()).unwrap();
    let error = RedbStore::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("in use by another process"));
}

#[test]
fn on_a_full_disk_what_fits_commits_and_the_store_goes_on() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    ok(&store, vec![put(1, b"before")]);
    // Room for small changes, not for three quarters of a megabyte.
    let used = (1..).find(|n| {
        disk.set_capacity(Some(*n));
        commit(&store, vec![meta("probe", b"x")]).is_durable()
    });
    disk.set_capacity(used.map(|n| n + 60));
    store.contents().open(SpoolId(1)).unwrap();
    store.contents().append(SpoolId(1), octets(700_000, 0)).unwrap();
    let outcomes = store.commit(numbered(vec![
        vec![put(2, b"small")],
        vec![put(3, b"with"), spooled(3, 1)],
        vec![body(4, octets(2 << 20, 0)), put(4, b"file")],
        vec![put(5, b"small")],
    ]));
    assert!(
        matches!(
            &outcomes[..],
            [
                Committed::Durable,
                Committed::NotDone(StoreError::DiskFull { .. }),
                Committed::NotDone(StoreError::DiskFull { .. }),
                Committed::Durable
            ]
        ),
        "{outcomes:?}"
    );
    assert_eq!(body_files(&disk), 0);
    let ids = |store: &RedbStore| -> Vec<u64> {
        store.entries(None, 9).unwrap().iter().map(|e| e.id.0).collect()
    };
    assert_eq!(ids(&store), [1, 2, 5]);
    // Space is available again: the same spool commits.
    disk.set_capacity(None);
    ok(&store, vec![put(3, b"with"), spooled(3, 1)]);
    assert_eq!(store.body(BodyId(3), 0, usize::MAX).unwrap().unwrap(), octets(700_000, 0));
    drop(store);
    assert_eq!(ids(&on(&disk)), [1, 2, 3, 5]);
}

/// Records the sizes of its groups; the first waits for a signal.
#[derive(Debug)]
struct Slow {
    groups: Mutex<Vec<usize>>,
    go: Mutex<std::sync::mpsc::Receiver<()>>,
    started: std::sync::mpsc::Sender<()>,
    store: ModelStore,
}

impl QueueStore for Slow {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        self.started.send(()).unwrap();
        self.groups.lock().unwrap().push(group.len());
        self.go.lock().unwrap().recv().unwrap();
        self.store.commit(group)
    }
    fn outcome(&self, batch: BatchId) -> Committed {
        self.store.outcome(batch)
    }
    store::delegate_reads!(store);
}

#[test]
fn what_waits_commits_as_one_group() {
    let (go, wait) = channel();
    let (started, has_started) = channel();
    let slow = Arc::new(Slow {
        groups: Mutex::default(),
        go: Mutex::new(wait),
        started,
        store: ModelStore::default(),
    });
    let committer = Committer::start(Arc::clone(&slow) as Arc<dyn QueueStore>).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let submit = |n: u64| {
        let done = Arc::clone(&done);
        let on_done = move |ended: Committed| {
            ended.into_result().unwrap();
            done.lock().unwrap().push(n);
        };
        committer.submit(Precedence::Routine, vec![put(n, b"x")], Box::new(on_done));
    };
    submit(0);
    has_started.recv().unwrap();
    for n in 1..=5 {
        submit(n);
    }
    go.send(()).unwrap();
    go.send(()).unwrap();
    committer.shutdown();
    assert_eq!(*done.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(*slow.groups.lock().unwrap(), [1, 5]);
    assert_eq!(slow.entries(None, 10).unwrap().len(), 6);
}

#[test]
fn a_higher_one_does_not_wait_for_the_lower_ones_before_it() {
    let (go, wait) = channel();
    let (started, has_started) = channel();
    let slow = Arc::new(Slow {
        groups: Mutex::default(),
        go: Mutex::new(wait),
        started,
        store: ModelStore::default(),
    });
    let committer = Committer::start(Arc::clone(&slow) as Arc<dyn QueueStore>).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let submit = |precedence, n: u64| {
        let done = Arc::clone(&done);
        let on_done = move |ended: Committed| {
            ended.into_result().unwrap();
            done.lock().unwrap().push(n);
        };
        committer.submit(precedence, vec![put(n, b"x")], Box::new(on_done));
    };
    submit(Precedence::Routine, 0);
    has_started.recv().unwrap();
    for n in 1..=3 {
        submit(Precedence::Routine, n);
    }
    submit(Precedence::Flash, 4);
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    committer.shutdown();
    assert_eq!(*done.lock().unwrap(), [0, 4, 1, 2, 3]);
    assert_eq!(*slow.groups.lock().unwrap(), [1, 1, 3]);
}

#[test]
fn what_was_committed_lately_is_remembered_until_it_is_deleted_or_forgotten_by_a_restart() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    let key = |n| (Precedence::Routine, EntryId(n));
    ok(&store, vec![put(1, b"x"), put(2, b"y"), body(1, octets(9, 7))]);
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"x"[..]));
    assert_eq!(store.recent_body(BodyId(1), 3, 4), Some(octets(9, 7).slice(3..7)));
    assert_eq!(store.recent_body(BodyId(1), 3, 400), Some(octets(9, 7).slice(3..)));
    assert_eq!(store.recent_body(BodyId(1), 9, 4), Some(Bytes::new()));
    ok(&store, vec![put(1, b"new"), delete(2), drop_body(1)]);
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"new"[..]));
    assert_eq!((store.recent_entry(key(2)), store.recent_body(BodyId(1), 0, 1)), (None, None));
    // Keys of a failed commit are not remembered.
    disk.fail_at(disk.calls() + 1, std::io::ErrorKind::StorageFull);
    assert!(!commit(&store, vec![put(1, b"lost")]).is_durable());
    assert_ne!(store.recent_entry(key(1)).as_deref(), Some(&b"lost"[..]));
}

#[test]
fn unknown_keys_need_no_database_read_once_all_keys_are_known() {
    let disk = FaultyDisk::new();
    let key = |n| engine::journal::Digest([n; 32]);
    let remember =
        |n| Op::PutSeen { key: key(n), until: Utc(9), record: Bytes::new(), absent: false };
    ok(&on(&disk), vec![remember(1)]);
    let store = on(&disk);
    assert!(!store.cannot_have_seen(&key(2)), "it does not know yet");
    ok(&store, vec![remember(3)]);
    store.learn_seen(&false.into()).unwrap();
    assert!(store.cannot_have_seen(&key(2)));
    assert!(!store.cannot_have_seen(&key(1)), "from before it was opened");
    assert!(!store.cannot_have_seen(&key(3)), "from before it learned");
    ok(&store, vec![remember(4)]);
    assert!(!store.cannot_have_seen(&key(4)));
}
