//! The store on a healthy disk, on a full one, and with parallel users.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use common::*;
use engine::journal::{Batch, Op, SpoolId};
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use store::faulty::FaultyDisk;
use store::{Committer, Disk, Entry, EntryKey, Options, QueueStore, RedbStore, StoreError};

fn on(disk: &FaultyDisk) -> RedbStore {
    RedbStore::with_disk(Arc::new(disk.clone()), Options::default()).unwrap()
}

fn commit(store: &RedbStore, batch: Batch) -> Result<(), StoreError> {
    store.commit(vec![batch]).remove(0)
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0u64..4;
    let record = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let precedence = prop::sample::select(&Precedence::ALL[..]);
    prop_oneof![
        (precedence.clone(), id.clone(), record.clone()).prop_map(|(precedence, id, record)| {
            Op::PutEntry { precedence, id: EntryId(id), record }
        }),
        (precedence, id.clone())
            .prop_map(|(precedence, id)| Op::DeleteEntry { precedence, id: EntryId(id) }),
        (id.clone(), 0usize..5000).prop_map(|(id, length)| body(id, octets(length, 9))),
        (id.clone(), Just((1 << 20) + 1)).prop_map(|(id, length)| body(id, octets(length, 8))),
        id.clone().prop_map(drop_body),
        (0u8..4, 0u64..9).prop_map(|(key, until)| seen(key, until, b"answer")),
        (0u64..9, 0usize..3)
            .prop_map(|(before, most)| Op::ForgetSeen { before: Utc(before), most }),
        (id, record).prop_map(|(n, value)| Op::PutMeta { name: format!("m{n}"), value }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any batches and groups the store answers as the model does, also after reopening.
    #[test]
    fn the_store_is_its_model(
        groups in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(op(), 0..6), 0..4), 0..6)
    ) {
        let disk = FaultyDisk::new();
        let store = on(&disk);
        let (mut model, mut universe) = (Model::default(), Model::default());
        for n in 0..4 {
            let all = [put(n, b""), body(n, Bytes::new()), seen(n as u8, 0, b""),
                       meta(&format!("m{n}"), b"")];
            universe.apply(&all.to_vec(), &SpoolContents::new());
        }
        for group in groups {
            for batch in &group {
                model.apply(batch, &SpoolContents::new());
            }
            for outcome in store.commit(group) {
                outcome.unwrap();
            }
            model.check(&store, &universe).unwrap();
        }
        drop(store);
        let store = on(&disk);
        model.check(&store, &universe).unwrap();
        let large = model.bodies.values().filter(|b| b.len() > 1 << 20).count();
        prop_assert_eq!((body_files(&disk), store.sweep().removed), (large, 0));
    }
}

#[test]
fn entries_come_in_key_order_by_page() {
    let store = on(&FaultyDisk::new());
    let keys: Vec<EntryKey> = [
        (Precedence::Deferred, EntryId(9)),
        (Precedence::Routine, EntryId(1)),
        (Precedence::Routine, EntryId(300)),
        (Precedence::Override, EntryId(2)),
    ]
    .into();
    let ops = keys.iter().rev().map(|(precedence, id)| Op::PutEntry {
        precedence: *precedence,
        id: *id,
        record: Bytes::new(),
    });
    commit(&store, ops.collect()).unwrap();
    let page = |after, limit| -> Vec<EntryKey> {
        store.entries(after, limit).unwrap().iter().map(Entry::key).collect()
    };
    assert_eq!(page(None, 10), keys);
    assert_eq!(page(None, 2), keys[..2]);
    assert_eq!(page(Some(keys[1]), 2), keys[2..]);
    assert_eq!(page(Some(keys[3]), 2), []);
}

#[test]
fn bodies_come_in_order_by_page() {
    let store = on(&FaultyDisk::new());
    let ids = [1, 2, 7, 1 << 50].map(BodyId);
    let large = (1 << 20) + 1;
    let ops = ids.iter().rev().map(|id| body(id.0, octets(if id.0 == 7 { large } else { 9 }, 3)));
    commit(&store, ops.collect()).unwrap();
    let page = |after, limit| store.bodies(after, limit).unwrap();
    assert_eq!(page(None, 10), ids);
    assert_eq!(page(None, 2), ids[..2]);
    assert_eq!(page(Some(ids[1]), 2), ids[2..]);
    assert_eq!(page(Some(ids[3]), 2), []);
}

#[test]
fn a_big_body_streams_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let content = octets(10 << 20, 5);
    let store = RedbStore::open(dir.path(), Options::default()).unwrap();
    store.spools().open(SpoolId(1)).unwrap();
    for chunk in content.chunks(64 << 10) {
        store.spools().append(SpoolId(1), Bytes::copy_from_slice(chunk)).unwrap();
    }
    assert_eq!(store.spools().sync(SpoolId(1)).unwrap(), 10 << 20);
    assert_eq!(store.spools().memory_held(), 0);
    commit(&store, vec![spooled(1, 1)]).unwrap();
    let reused = commit(&store, vec![spooled(2, 1)]).unwrap_err();
    assert!(matches!(reused, StoreError::NoSpool { .. }), "{reused}");
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
    commit(&store, vec![drop_body(1)]).unwrap();
    assert_eq!(store.body(BodyId(1), 0, 1).unwrap(), None);
    assert_eq!(std::fs::read_dir(dir.path().join("bodies")).unwrap().count(), 0);
}

#[test]
fn a_missing_body_file_is_reported_not_invented() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    commit(&store, vec![body(1, octets((1 << 20) + 1, 0))]).unwrap();
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
fn a_bad_batch_fails_alone_and_returns_its_spool() {
    let store = on(&FaultyDisk::new());
    store.spools().open(SpoolId(1)).unwrap();
    store.spools().append(SpoolId(1), Bytes::from_static(b"content")).unwrap();
    let held = store.spools().memory_held();
    let outcomes = store.commit(vec![
        vec![put(1, b"good")],
        vec![spooled(1, 1), spooled(2, 77), put(2, b"bad")],
        vec![put(3, b"good")],
    ]);
    assert!(matches!(outcomes[..], [Ok(()), Err(StoreError::NoSpool { id: SpoolId(77) }), Ok(())]));
    assert_eq!(store.entries(None, 10).unwrap().len(), 2);
    assert_eq!(
        (store.spools().length(SpoolId(1)).unwrap(), store.spools().memory_held()),
        (7, held)
    );
    commit(&store, vec![spooled(1, 1)]).unwrap();
    assert_eq!(store.body(BodyId(1), 0, 99).unwrap().unwrap(), "content");
    assert_eq!(store.spools().memory_held(), 0);
    let long = Op::PutMeta { name: "n".repeat(256), value: Bytes::new() };
    assert!(matches!(commit(&store, vec![long]), Err(StoreError::TooLong { .. })));
}

#[test]
fn on_a_full_disk_what_fits_commits_and_the_store_goes_on() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    commit(&store, vec![put(1, b"before")]).unwrap();
    // Room for small changes, not for three quarters of a megabyte.
    let used = (1..).find(|n| {
        disk.set_capacity(Some(*n));
        commit(&store, vec![meta("probe", b"x")]).is_ok()
    });
    disk.set_capacity(used.map(|n| n + 60));
    store.spools().open(SpoolId(1)).unwrap();
    store.spools().append(SpoolId(1), octets(700_000, 0)).unwrap();
    let outcomes = store.commit(vec![
        vec![put(2, b"small")],
        vec![put(3, b"with"), spooled(3, 1)],
        vec![body(4, octets(2 << 20, 0)), put(4, b"file")],
        vec![put(5, b"small")],
    ]);
    assert!(
        matches!(
            &outcomes[..],
            [Ok(()), Err(StoreError::DiskFull { .. }), Err(StoreError::DiskFull { .. }), Ok(())]
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
    commit(&store, vec![put(3, b"with"), spooled(3, 1)]).unwrap();
    assert_eq!(store.body(BodyId(3), 0, usize::MAX).unwrap().unwrap(), octets(700_000, 0));
    drop(store);
    assert_eq!(ids(&on(&disk)), [1, 2, 3, 5]);
}

/// Records the sizes of its groups; the first waits for a signal.
struct Slow {
    groups: Mutex<Vec<usize>>,
    go: Mutex<std::sync::mpsc::Receiver<()>>,
    started: std::sync::mpsc::Sender<()>,
    store: RedbStore,
}

impl QueueStore for Slow {
    fn commit(&self, group: Vec<Batch>) -> Vec<Result<(), StoreError>> {
        self.started.send(()).unwrap();
        self.groups.lock().unwrap().push(group.len());
        self.go.lock().unwrap().recv().unwrap();
        self.store.commit(group)
    }
    fn entry(&self, key: EntryKey) -> Result<Option<Bytes>, StoreError> {
        self.store.entry(key)
    }
    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.store.entries(after, limit)
    }
    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        self.store.bodies(after, limit)
    }
    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError> {
        self.store.body_length(id)
    }
    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        self.store.body(id, offset, length)
    }
    fn seen(&self, key: &engine::journal::Digest, now: Utc) -> Result<Option<Bytes>, StoreError> {
        self.store.seen(key, now)
    }
    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.store.meta(name)
    }
}

#[test]
fn what_waits_commits_as_one_group() {
    let (go, wait) = channel();
    let (started, has_started) = channel();
    let slow = Arc::new(Slow {
        groups: Mutex::default(),
        go: Mutex::new(wait),
        started,
        store: on(&FaultyDisk::new()),
    });
    let committer = Committer::start(Arc::clone(&slow) as Arc<dyn QueueStore>).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let submit = |n: u64| {
        let done = Arc::clone(&done);
        let on_done = move |outcome: Result<(), StoreError>| {
            outcome.unwrap();
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
        store: on(&FaultyDisk::new()),
    });
    let committer = Committer::start(Arc::clone(&slow) as Arc<dyn QueueStore>).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let submit = |precedence, n: u64| {
        let done = Arc::clone(&done);
        let on_done = move |outcome: Result<(), StoreError>| {
            outcome.unwrap();
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

/// Each batch writes an entry and its body together, or removes both: no reader sees only one of
/// them.
#[test]
fn readers_beside_the_committer_see_whole_batches() {
    let store = Arc::new(on(&FaultyDisk::new()));
    let committer = Committer::start(Arc::clone(&store) as Arc<dyn QueueStore>).unwrap();
    let stop = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    let (ready, readers_run) = sync_channel(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let ready = ready.clone();
            let (store, stop, reads) = (&store, &stop, &reads);
            scope.spawn(move || {
                ready.send(()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let page = store.entries(None, 100).unwrap();
                    assert!(page.len() % 2 == 0, "half a batch: {page:?}");
                    if let Some(part) = store.body(BodyId(1), 3, 4).unwrap() {
                        assert_eq!(part, octets(9, 7).slice(3..7));
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..4 {
            readers_run.recv().unwrap();
        }
        for n in 0..60u64 {
            let pair = [2 * (n % 5), 2 * (n % 5) + 1];
            let mut batch: Batch = match n / 5 % 2 {
                0 => pair.map(|id| put(id, b"x")).to_vec(),
                _ => pair.map(delete).to_vec(),
            };
            batch.push(if n % 2 == 0 { body(1, octets(9, 7)) } else { drop_body(1) });
            committer.submit(Precedence::Routine, batch, Box::new(|outcome| outcome.unwrap()));
            while n == 30 && reads.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        }
        committer.shutdown();
        stop.store(true, Ordering::Relaxed);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
}

#[test]
fn what_was_committed_lately_is_remembered_until_it_is_deleted_or_forgotten_by_a_restart() {
    let disk = FaultyDisk::new();
    let store = on(&disk);
    let key = |n| (Precedence::Routine, EntryId(n));
    commit(&store, vec![put(1, b"x"), put(2, b"y"), body(1, octets(9, 7))]).unwrap();
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"x"[..]));
    assert_eq!(store.recent_body(BodyId(1), 3, 4), Some(octets(9, 7).slice(3..7)));
    assert_eq!(store.recent_body(BodyId(1), 3, 400), Some(octets(9, 7).slice(3..)));
    assert_eq!(store.recent_body(BodyId(1), 9, 4), Some(Bytes::new()));
    commit(&store, vec![put(1, b"new"), delete(2), drop_body(1)]).unwrap();
    assert_eq!(store.recent_entry(key(1)).as_deref(), Some(&b"new"[..]));
    assert_eq!((store.recent_entry(key(2)), store.recent_body(BodyId(1), 0, 1)), (None, None));
    // Keys of a failed commit are not remembered.
    disk.fail_at(disk.calls() + 1, std::io::ErrorKind::StorageFull);
    assert!(commit(&store, vec![put(1, b"lost")]).is_err());
    assert_ne!(store.recent_entry(key(1)).as_deref(), Some(&b"lost"[..]));
}

#[test]
fn unknown_keys_need_no_database_read_once_all_keys_are_known() {
    let disk = FaultyDisk::new();
    let key = |n| engine::journal::Digest([n; 32]);
    let remember = |n| Op::PutSeen { key: key(n), until: Utc(9), record: Bytes::new() };
    commit(&on(&disk), vec![remember(1)]).unwrap();
    let store = on(&disk);
    assert!(!store.cannot_have_seen(&key(2)), "it does not know yet");
    commit(&store, vec![remember(3)]).unwrap();
    store.learn_seen(&false.into()).unwrap();
    assert!(store.cannot_have_seen(&key(2)));
    assert!(!store.cannot_have_seen(&key(1)), "from before it was opened");
    assert!(!store.cannot_have_seen(&key(3)), "from before it learned");
    commit(&store, vec![remember(4)]).unwrap();
    assert!(!store.cannot_have_seen(&key(4)));
}
