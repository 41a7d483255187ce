//! What every store must do: each function is a test of an engine.

use crate::common::*;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, ItemId, MailboxId, Op, QueueId, SpoolId};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use store::{Committed, Committer, Entry, EntryKey, ModelState, Options, QueueStore, StoreError};

fn ok(store: &dyn QueueStore, batch: Batch) {
    commit(store, batch).into_result().unwrap();
}

/// Any change of a few keys.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    let id = 0u64..4;
    let record = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let precedence = prop::sample::select(&Precedence::ALL[..]);
    prop_oneof![
        (precedence.clone(), id.clone(), 6u64..9, record.clone()).prop_map(
            |(precedence, id, queue, record)| {
                Op::PutEntry { precedence, id: EntryId(id), queue: QueueId(queue), record }
            }
        ),
        (precedence, id.clone())
            .prop_map(|(precedence, id)| Op::DeleteEntry { precedence, id: EntryId(id) }),
        (id.clone(), 0usize..5000).prop_map(|(id, length)| body(id, octets(length, 9))),
        (id.clone(), Just((1 << 20) + 1)).prop_map(|(id, length)| body(id, octets(length, 8))),
        (id.clone(), id.clone()).prop_map(|(from, to)| copy(from, to)),
        (id.clone(), 0u64..9, 0u64..3000, id.clone()).prop_map(|(other, from, length, to)| {
            frame(octets(7, 5), other, (from, length), to)
        }),
        id.clone().prop_map(drop_body),
        (0u8..4, 0u64..9).prop_map(|(key, until)| seen(key, until, b"answer")),
        (0u8..4, 0u64..9).prop_map(|(key, until)| new_seen(key, until, b"first")),
        (0u64..9).prop_map(|before| Op::ForgetSeen { before: Utc(before), most: 9 }),
        (id, record).prop_map(|(n, value)| Op::PutMeta { name: format!("m{n}"), value }),
    ]
}

/// The batch without keys that expire before others were forgotten: an engine may forget them at once.
fn not_expired(batch: &Batch, floor: &mut u64) -> Batch {
    let mut batch = batch.clone();
    for op in &mut batch {
        match op {
            Op::ForgetSeen { before, .. } => *floor = (*floor).max(before.0),
            Op::PutSeen { until, .. } => until.0 = until.0.max(*floor),
            _ => {}
        }
    }
    batch
}

/// The batch without copies of contents that it changes itself.
fn copies_what_was(batch: Batch) -> Batch {
    let mut changed = Vec::new();
    let mut batch = batch;
    batch.retain(|op| {
        let stays = op.copied().is_none_or(|from| !changed.contains(&from));
        if let Op::PutBody { id, .. } | Op::DeleteBody { id } = op {
            changed.push(*id);
        }
        stays
    });
    batch
}

/// Whether it copies a content that does not exist.
fn copies_nothing(model: &ModelState, batch: &Batch) -> bool {
    batch.iter().any(|op| match op {
        Op::PutBody { source: BodySource::Framed { body, from, length, .. }, .. } => {
            model.bodies.get(body).is_none_or(|octets| octets.len() < (from + length) as usize)
        }
        op => op.copied().is_some_and(|from| !model.bodies.contains_key(&from)),
    })
}

/// Every key that [`op`] uses.
fn universe() -> ModelState {
    let mut universe = ModelState::default();
    let levels = Precedence::ALL.into_iter();
    for (n, precedence) in levels.flat_map(|level| (0..4).map(move |n| (n, level))) {
        let (id, record) = (EntryId(n), Bytes::new());
        let entry = Op::PutEntry { precedence, id, queue: QueueId(6 + n % 3), record };
        let all = [entry, body(n, Bytes::new()), meta(&format!("m{n}"), b"")];
        apply(&mut universe, &all.to_vec(), &SpoolContents::new());
    }
    for key in 0..4 {
        apply(&mut universe, &vec![seen(key, key.into(), b"")], &SpoolContents::new());
    }
    universe
}

/// For any batches and groups an engine answers as the model does, also after reopening. Batches with many
/// keys have a test of their own: redb forgets theirs only once they are moved. With small segments the log
/// does in a few commits all that it does in thousands.
pub(crate) fn a_store_is_its_model(
    engine: Engine,
    segment: u64,
    groups: &[(Vec<Batch>, usize)],
) -> Result<(), TestCaseError> {
    let options = Options { run_keys: 3, segment, ..Options::default() };
    let mut site = Site::with_options(engine, options);
    let mut store = site.open();
    let (mut model, universe) = (ModelState::default(), universe());
    let mut floor = 0;
    for (group, tidied) in groups {
        let group: Vec<Batch> =
            group.iter().map(|b| copies_what_was(not_expired(b, &mut floor))).collect();
        let ended = store.commit(numbered(group.clone()));
        for (batch, ended) in group.iter().zip(ended) {
            let conflict = model.conflict(batch);
            let removed = engine.removes_what_is_there() && removes_nothing(&model, batch);
            match ended {
                Committed::Fenced(queues) => {
                    prop_assert!(removed && queues.is_empty(), "{batch:?}");
                    continue;
                }
                Committed::Durable if removed => prop_assert!(false, "made: {batch:?}"),
                Committed::Durable => prop_assert_eq!(conflict, []),
                Committed::Conflict(keys) => {
                    prop_assert_eq!(keys, conflict);
                    continue;
                }
                Committed::NotDone(StoreError::BodyDamaged { .. }) => {
                    prop_assert!(copies_nothing(&model, batch), "{batch:?}");
                    continue;
                }
                other => prop_assert!(false, "{other:?}"),
            }
            apply(&mut model, batch, &SpoolContents::new());
        }
        check(&*store, &model, &universe).unwrap();
        for _ in 0..*tidied {
            store.tidy().unwrap();
            check(&*store, &model, &universe).unwrap();
        }
        if *tidied == 3 {
            drop(store);
            store = site.open();
            check(&*store, &model, &universe).unwrap();
        }
    }
    drop(store);
    let store = site.open();
    check(&*store, &model, &universe).unwrap();
    if engine.reopens() {
        let large = model.bodies.values().filter(|b| b.len() > 1 << 20).count();
        prop_assert_eq!((site.body_files(), store.sweep().removed), (large, 0));
    }
    Ok(())
}

/// Whether a batch removes an entry that is not there, and that it has not put there.
fn removes_nothing(model: &ModelState, batch: &Batch) -> bool {
    let mut put = Vec::new();
    batch.iter().any(|op| match op {
        Op::PutEntry { precedence, id, .. } => {
            put.push((*precedence, *id));
            false
        }
        Op::DeleteEntry { precedence, id } => {
            let place = (*precedence, *id);
            let known = put.contains(&place);
            put.push(place);
            !known && !model.entries.contains_key(&(Reverse(place.0), place.1))
        }
        _ => false,
    })
}

/// The highest precedence first.
pub(crate) fn entries_come_in_order_by_page(engine: Engine) {
    let store = Site::new(engine).open();
    let keys: Vec<EntryKey> = [
        (Precedence::Override, EntryId(2)),
        (Precedence::Routine, EntryId(1)),
        (Precedence::Routine, EntryId(300)),
        (Precedence::Deferred, EntryId(9)),
    ]
    .into();
    let ops = keys.iter().rev().map(|(precedence, id)| Op::PutEntry {
        precedence: *precedence,
        id: *id,
        queue: QUEUE,
        record: Bytes::new(),
    });
    ok(&*store, ops.collect());
    let page = |after, limit| -> Vec<EntryKey> {
        store.entries(after, limit).unwrap().iter().map(Entry::key).collect()
    };
    assert_eq!(page(None, 10), keys);
    assert_eq!(page(None, 2), keys[..2]);
    assert_eq!(page(Some(keys[1]), 2), keys[2..]);
    assert_eq!(page(Some(keys[3]), 2), []);
}

/// By mailbox and precedence, in the order of their sequence numbers; a start does not see them.
pub(crate) fn items_of_mailboxes_are_listed_apart(engine: Engine) {
    use Precedence::{Flash, Routine};
    let mut site = Site::new(engine);
    let mut store = site.open();
    let [one, other] = [3, 4].map(MailboxId);
    let item = |mailbox, number| ItemId { mailbox, number };
    let entry =
        |precedence, id| Op::PutEntry { precedence, id, queue: QUEUE, record: octets(9, 1) };
    let mut batch = vec![entry(Routine, EntryId(7)), body(7, octets(9, 2))];
    for (mailbox, precedence, number) in
        [(one, Routine, 1), (one, Flash, 2), (one, Routine, 700), (other, Routine, 1)]
    {
        let id = item(mailbox, number);
        let (id_of_entry, queue) = (id.entry(), mailbox.queue());
        let record = octets(9, 1);
        batch.push(Op::PutEntry { precedence, id: id_of_entry, queue, record });
        batch.push(body(id.body().0, octets(1_000, 3)));
    }
    ok(&*store, batch);
    for _ in 0..2 {
        let list = |mailbox, precedence, after, limit| -> Vec<ItemId> {
            let page = store.items(mailbox, precedence, after, limit).unwrap();
            page.iter().filter_map(|entry| ItemId::of_entry(entry.id)).collect()
        };
        assert_eq!(list(one, Routine, 0, 9), [item(one, 1), item(one, 700)]);
        assert_eq!(list(one, Routine, 0, 1), [item(one, 1)]);
        assert_eq!(list(one, Routine, 1, 9), [item(one, 700)]);
        assert_eq!(list(one, Routine, 700, 9), []);
        assert_eq!(list(one, Flash, 0, 9), [item(one, 2)]);
        assert_eq!(list(other, Routine, 0, 9), [item(other, 1)]);
        assert_eq!(list(MailboxId(5), Routine, 0, 9), []);
        let count = |mailbox, precedence| store.item_count(mailbox, precedence).unwrap();
        assert_eq!([count(one, Routine), count(one, Flash), count(other, Flash)], [2, 1, 0]);
        let queued: Vec<EntryId> =
            store.entries(None, 9).unwrap().iter().map(|entry| entry.id).collect();
        assert_eq!((queued, store.entry_count().unwrap()), (vec![EntryId(7)], 1));
        assert_eq!(store.bodies(None, 9).unwrap(), [BodyId(7)]);
        let content = store.body(item(one, 700).body(), 0, 2_000).unwrap();
        assert_eq!(content, Some(octets(1_000, 3)));
        if !engine.reopens() {
            break;
        }
        drop(store);
        store = site.open();
    }
}

/// Small and large; the copy stays when the first is deleted, and the first when the copy is.
pub(crate) fn a_content_is_copied_and_outlives_the_first(engine: Engine) {
    let mut site = Site::new(engine);
    let mut store = site.open();
    let contents = [(1, octets(900, 1)), (2, octets((2 << 20) + 5, 2))];
    for (n, content) in &contents {
        ok(&*store, vec![body(*n, content.clone())]);
        ok(&*store, vec![copy(*n, n + 10), copy(*n, n + 20), drop_body(*n)]);
        ok(&*store, vec![drop_body(n + 20)]);
    }
    let nothing = commit(&*store, vec![copy(1, 30), put(9, b"record")]);
    assert!(matches!(nothing, Committed::NotDone(StoreError::BodyDamaged { .. })), "{nothing:?}");
    assert_eq!(store.entry_count().unwrap(), 0);
    for _ in 0..2 {
        for (n, content) in &contents {
            let read = |id| store.body(BodyId(id), 0, content.len()).unwrap();
            assert_eq!((read(*n), read(n + 20)), (None, None));
            assert_eq!(store.body_length(BodyId(n + 10)).unwrap(), Some(content.len() as u64));
            let part = store.body(BodyId(n + 10), 100, 200).unwrap();
            assert_eq!(part, Some(content.slice(100..300)));
        }
        if !engine.reopens() {
            break;
        }
        drop(store);
        store = site.open();
        assert_eq!(site.body_files(), 1);
    }
}

pub(crate) fn a_part_of_a_content_is_framed(engine: Engine) {
    let mut site = Site::new(engine);
    let mut store = site.open();
    // In the record, in a file, and across the bound between them.
    let large = octets((2 << 20) + 5, 2);
    for (n, content) in [(1, octets(900, 1)), (2, large), (3, octets(1 << 20, 3))] {
        ok(&*store, vec![body(n, content.clone())]);
        let length = content.len() as u64;
        ok(&*store, vec![frame(octets(20, 9), n, (3, length - 5), n + 10), drop_body(n)]);
        let too_much = commit(&*store, vec![frame(octets(2, 9), n + 10, (0, length + 16), 30)]);
        assert!(matches!(too_much, Committed::NotDone(StoreError::BodyDamaged { .. })));
        let expected = [&octets(20, 9)[..], &content[3..content.len() - 2]].concat();
        // A little of it is kept as little contents are.
        let files = site.body_files();
        ok(&*store, vec![frame(octets(20, 9), n + 10, (0, 3), n + 20)]);
        assert_eq!(site.body_files(), files);
        assert_eq!(store.body_length(BodyId(n + 20)).unwrap(), Some(23));
        for _ in 0..2 {
            assert_eq!(store.body_length(BodyId(n + 10)).unwrap(), Some(length + 15));
            let read = store.body(BodyId(n + 10), 0, expected.len()).unwrap().unwrap();
            assert!(read == expected, "{n}");
            let part = store.body(BodyId(n + 10), 15, 100).unwrap().unwrap();
            assert_eq!(part, expected[15..115]);
            if !engine.reopens() {
                break;
            }
            drop(store);
            store = site.open();
        }
    }
}

pub(crate) fn bodies_come_in_order_by_page(engine: Engine) {
    let store = Site::new(engine).open();
    let ids = [1, 2, 7, 1 << 50].map(BodyId);
    let large = (1 << 20) + 1;
    let ops = ids.iter().rev().map(|id| body(id.0, octets(if id.0 == 7 { large } else { 9 }, 3)));
    ok(&*store, ops.collect());
    let page = |after, limit| store.bodies(after, limit).unwrap();
    assert_eq!(page(None, 10), ids);
    assert_eq!(page(None, 2), ids[..2]);
    assert_eq!(page(Some(ids[1]), 2), ids[2..]);
    assert_eq!(page(Some(ids[3]), 2), []);
}

pub(crate) fn a_bad_batch_fails_alone_and_returns_its_spool(engine: Engine) {
    let store = Site::new(engine).open();
    store.contents().open(SpoolId(1)).unwrap();
    store.contents().append(SpoolId(1), Bytes::from_static(b"content")).unwrap();
    let held = store.contents().memory_held();
    let outcomes = store.commit(numbered(vec![
        vec![put(1, b"good")],
        vec![spooled(1, 1), spooled(2, 77), put(2, b"bad")],
        vec![put(3, b"good")],
    ]));
    assert!(matches!(
        outcomes[..],
        [
            Committed::Durable,
            Committed::NotDone(StoreError::NoSpool { id: SpoolId(77) }),
            Committed::Durable
        ]
    ));
    assert_eq!(store.entries(None, 10).unwrap().len(), 2);
    assert_eq!(
        (store.contents().length(SpoolId(1)).unwrap(), store.contents().memory_held()),
        (7, held)
    );
    ok(&*store, vec![spooled(1, 1)]);
    assert_eq!(store.body(BodyId(1), 0, 99).unwrap().unwrap(), "content");
    assert_eq!(store.contents().memory_held(), 0);
}

/// Each batch writes an entry and its body together, or removes both: no reader sees only one of
/// them.
pub(crate) fn readers_beside_the_committer_see_whole_batches(engine: Engine) {
    let store = Site::new(engine).open();
    let committer = Committer::start(Arc::clone(&store)).unwrap();
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
            committer.submit(
                Precedence::Routine,
                batch,
                Box::new(|ended| ended.into_result().unwrap()),
            );
            while n == 30 && reads.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        }
        committer.shutdown();
        stop.store(true, Ordering::Relaxed);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
}

pub(crate) fn a_key_that_must_be_absent_conflicts_if_it_is_remembered(engine: Engine) {
    let mut site = Site::new(engine);
    let store = site.open();
    store.contents().open(SpoolId(1)).unwrap();
    store.contents().append(SpoolId(1), Bytes::from_static(b"content")).unwrap();
    let ended = store.commit(numbered(vec![
        vec![new_seen(1, 9, b"first"), put(1, b"x")],
        vec![new_seen(1, 9, b"second"), new_seen(2, 9, b"second"), put(2, b"x"), spooled(1, 1)],
        vec![new_seen(2, 9, b"third"), put(3, b"x")],
    ]));
    let [Committed::Durable, Committed::Conflict(keys), Committed::Durable] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(keys, &[Digest([1; 32])]);
    let answer = |store: &dyn QueueStore, n| seen_of(store, Digest([n; 32]), Utc(0)).unwrap();
    assert_eq!((answer(&*store, 1), answer(&*store, 2)), ("first".into(), "third".into()));
    assert_eq!(store.entry_count().unwrap(), 2);
    // Its spool is there for another attempt.
    assert_eq!(store.contents().length(SpoolId(1)).unwrap(), 7);
    ok(&*store, vec![spooled(1, 1)]);
    drop(store);
    // After a start, and with the filter of keys complete.
    let store = site.open();
    store.learn_seen(&AtomicBool::new(false)).unwrap();
    let again = commit(&*store, vec![new_seen(2, 9, b"fourth")]);
    assert!(matches!(again, Committed::Conflict(_)), "{again:?}");
    // Once forgotten, it is absent.
    ok(&*store, vec![Op::ForgetSeen { before: Utc(10), most: 9 }]);
    ok(&*store, vec![new_seen(2, 19, b"fifth")]);
    // Without the condition the last answer counts; two keys of one batch may be equal.
    ok(&*store, vec![seen(2, 20, b"sixth"), new_seen(3, 9, b"a"), new_seen(3, 9, b"b")]);
    assert_eq!((answer(&*store, 2), answer(&*store, 3)), ("sixth".into(), "b".into()));
}

/// An engine may keep the keys of a batch with many apart for a while.
pub(crate) fn keys_of_many_recipients_conflict_too(engine: Engine) {
    let mut site = Site::with_options(
        engine,
        Options { many_keys: 2, run_keys: 3, segment: 4096, ..Options::default() },
    );
    let store = site.open();
    let many = |from: u8| (from..from + 5).map(|key| new_seen(key, 9, b"many")).collect::<Batch>();
    let ended = store.commit(numbered(vec![many(1), many(5), many(6)]));
    let keys = |ended: &Committed| match ended {
        Committed::Durable => vec![],
        Committed::Conflict(keys) => keys.iter().map(|key| key.0[0]).collect(),
        other => panic!("{other:?}"),
    };
    // The second is not made, so its keys are free for the third.
    assert_eq!(ended.iter().map(keys).collect::<Vec<_>>(), [vec![], vec![5], vec![]]);
    assert_eq!(keys(&commit(&*store, vec![new_seen(2, 9, b"x")])), [2], "before it is moved");
    drop(store);
    let store = site.open();
    assert_eq!(keys(&commit(&*store, many(4))), [4, 5, 6, 7, 8], "after a start");
    while store.tidy().unwrap() > 0 {}
    assert_eq!(keys(&commit(&*store, many(10))), [10], "after it is moved");
}

pub(crate) fn a_queue_is_listed_by_precedence_in_pages(engine: Engine) {
    let mut site = Site::new(engine);
    let store = site.open();
    let entry = |precedence, id, queue| Op::PutEntry {
        precedence,
        id: EntryId(id),
        queue: QueueId(queue),
        record: Bytes::from(format!("{queue}")),
    };
    let (flash, routine) = (Precedence::Flash, Precedence::Routine);
    ok(&*store, (0..10).map(|n| entry(routine, n, n % 2)).collect());
    ok(&*store, vec![entry(flash, 3, 1), entry(flash, 4, u64::MAX)]);
    // Rerouted: listed in the other queue only.
    ok(&*store, vec![entry(routine, 5, 0)]);
    ok(&*store, vec![Op::DeleteEntry { precedence: routine, id: EntryId(7) }]);
    let check = |store: &dyn QueueStore| {
        let page = |queue, precedence, after: Option<u64>, limit| -> Vec<u64> {
            let after = after.map(EntryId);
            let page = store.queue_entries(QueueId(queue), precedence, after, limit).unwrap();
            assert!(page.iter().all(|e| e.precedence == precedence));
            assert!(page.iter().all(|e| e.record == format!("{queue}")));
            page.iter().map(|e| e.id.0).collect()
        };
        assert_eq!(page(0, routine, None, 99), [0, 2, 4, 5, 6, 8]);
        assert_eq!(page(1, routine, None, 99), [1, 3, 9]);
        assert_eq!(page(0, routine, Some(2), 2), [4, 5]);
        assert_eq!(page(0, routine, Some(8), 2), [0u64; 0]);
        assert_eq!((page(1, flash, None, 9), page(u64::MAX, flash, None, 9)), (vec![3], vec![4]));
        assert_eq!(page(0, flash, None, 9), [0u64; 0]);
    };
    check(&*store);
    drop(store);
    check(&*site.open());
}

pub(crate) fn a_content_is_received_part_by_part(engine: Engine) {
    let store = Site::new(engine).open();
    let contents = store.contents();
    let id = SpoolId(1);
    contents.open(id).unwrap();
    assert!(matches!(contents.open(id), Err(StoreError::SpoolExists { .. })));
    let content = octets(3 << 20, 5);
    for part in content.chunks(100_000) {
        let part = Bytes::copy_from_slice(part);
        if !contents.append_in_memory(id, &part) {
            contents.append(id, part).unwrap();
        }
    }
    assert_eq!(contents.sync(id).unwrap(), 3 << 20);
    ok(&*store, vec![spooled(1, 1)]);
    assert_eq!(contents.memory_held(), 0);
    assert!(matches!(contents.length(id), Err(StoreError::NoSpool { .. })));
    assert_eq!(store.body(BodyId(1), 0, usize::MAX).unwrap().unwrap(), content);
    assert_eq!(store.body(BodyId(1), 2 << 20, 5).unwrap().unwrap(), content[2 << 20..][..5]);
    contents.open(id).unwrap();
    contents.discard(id);
    contents.discard(id);
    assert!(contents.append(id, Bytes::from_static(b"x")).is_err());
}

/// Redb, from which only an import reads, lists neither.
pub(crate) fn keys_and_named_values_are_listed_in_pages(engine: Engine) {
    // Keys in memory, in a run that is superseded in part, and in another one.
    let options = Options { many_keys: 2, run_keys: 3, segment: 4096, ..Options::default() };
    let mut site = Site::with_options(engine, options);
    let mut store = site.open();
    if store.keys(None, 1).is_err() {
        return;
    }
    let mut expected = Vec::new();
    for round in 0..40u8 {
        let key = |n: u8| seen(round.wrapping_mul(67).wrapping_add(n), round.into(), b"answer");
        let batch: Batch = (0..3).map(key).collect();
        for op in &batch {
            let Op::PutSeen { key, until, .. } = op else { unreachable!() };
            expected.retain(|(of, _)| of != key);
            expected.push((*key, *until));
        }
        ok(&*store, batch);
        store.tidy().unwrap();
    }
    expected.sort_unstable();
    // Not in the order of a language: "B" is before "a".
    let names = ["B", "a", "a/b", "a0", "\u{e4}", "z"];
    ok(&*store, names.iter().map(|name| meta(name, name.as_bytes())).collect());
    for _ in 0..2 {
        for limit in [1, 7, 1000] {
            let (mut keys, mut after) = (Vec::new(), None);
            loop {
                let page = store.keys(after.as_ref(), limit).unwrap();
                let Some(last) = page.last() else { break };
                assert!(page.len() <= limit && page.iter().all(|row| row.record == "answer"));
                after = Some(last.key);
                keys.extend(page.into_iter().map(|row| (row.key, row.until)));
            }
            assert_eq!(keys, expected, "{limit}");
            let (mut values, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = store.values(after.as_deref(), limit).unwrap();
                let Some((last, _)) = page.last() else { break };
                assert!(page.len() <= limit && page.iter().all(|(name, value)| name == value));
                after = Some(last.clone());
                values.extend(page.into_iter().map(|(name, _)| name));
            }
            let mut sorted = names;
            sorted.sort_unstable();
            assert_eq!(values, sorted, "{limit}");
        }
        if !engine.reopens() {
            return;
        }
        drop(store);
        store = site.open();
    }
    ok(&*store, vec![Op::ForgetSeen { before: Utc(20), most: 1000 }]);
    expected.retain(|(_, until)| until.0 >= 20);
    let keys = store.keys(None, 1000).unwrap();
    assert_eq!(keys.iter().map(|row| (row.key, row.until)).collect::<Vec<_>>(), expected);
}
