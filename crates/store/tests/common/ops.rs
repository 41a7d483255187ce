//! What the tests of every store share: the comparison with the model, and short forms of changes.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId, SpoolId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BatchId, Committed, ModelState, ModelStore, QueueStore, StoreError};

/// The content of every spool a test uses, by its number.
pub(crate) type SpoolContents = BTreeMap<u64, Bytes>;

/// These batches, each with a number of its own.
pub(crate) fn numbered(batches: Vec<Batch>) -> Vec<(BatchId, Batch)> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = || BatchId(LAST.fetch_add(1, Ordering::Relaxed));
    batches.into_iter().map(|batch| (number(), batch)).collect()
}

/// Commits one batch.
pub(crate) fn commit(store: &dyn QueueStore, batch: Batch) -> Committed {
    store.commit(numbered(vec![batch])).remove(0)
}

/// Makes the changes of a batch in the model.
pub(crate) fn apply(model: &mut ModelState, batch: &Batch, spools: &SpoolContents) {
    model.apply(batch, |id| spools[&id.0].clone());
}

/// The answer for one key.
pub(crate) fn seen_of(store: &dyn QueueStore, key: Digest, now: Utc) -> Option<Bytes> {
    store.seen(&[key], now).unwrap().remove(0)
}

/// Compares all answers of the store with those of a model; the error names the difference. The keys
/// compared are those of `universe`, a model with every key ever used.
pub(crate) fn check(
    store: &dyn QueueStore,
    expected: &ModelState,
    universe: &ModelState,
) -> Result<(), String> {
    let model = ModelStore::holding(expected.clone());
    let all = |store: &dyn QueueStore| {
        let (mut entries, mut bodies) = (Vec::new(), Vec::new());
        store::queue::for_each_entry(store, |entry| entries.push(entry))?;
        store::queue::for_each_page_of_bodies(store, |page| bodies.extend(page))?;
        Ok((store.entry_count()?, entries, bodies))
    };
    same("entries and bodies", all(store), all(&model))?;
    let queues: BTreeSet<_> =
        universe.entries.iter().map(|((level, _), (queue, _))| (*queue, level.0)).collect();
    for (queue, precedence) in queues {
        for (after, limit) in [(None, 1), (None, 100), (Some(EntryId(1)), 2)] {
            let page =
                |store: &dyn QueueStore| store.queue_entries(queue, precedence, after, limit);
            same("a queue", page(store), page(&model))?;
        }
    }
    for (level, id) in universe.entries.keys() {
        let key = (level.0, *id);
        same("an entry", store.entry(key), model.entry(key))?;
    }
    for id in universe.bodies.keys() {
        let body = |store: &dyn QueueStore| store.body(*id, 0, usize::MAX);
        same(&format!("body {id}"), body(store), body(&model))?;
        same("a length", store.body_length(*id), model.body_length(*id))?;
    }
    let keys: Vec<Digest> = universe.seen.keys().copied().collect();
    let times = universe.seen.values().flat_map(|(until, _)| [*until, Utc(until.0 + 1)]);
    for now in times.chain([Utc(0)]).collect::<BTreeSet<_>>() {
        same("keys", store.seen(&keys, now), model.seen(&keys, now))?;
        // An engine may take keys for expired that are already forgotten.
        if matches!(model.has_expired_keys(now), Ok(true)) {
            same("expired keys", store.has_expired_keys(now), Ok(true))?;
        }
    }
    if store.keys(None, 1).is_ok() {
        let page = |store: &dyn QueueStore| store.keys(None, 100);
        same("all keys", page(store), page(&model))?;
        let page = |store: &dyn QueueStore| store.values(Some("m0"), 2);
        same("values", page(store), page(&model))?;
    }
    for name in universe.meta.keys() {
        same("a named value", store.meta(name), model.meta(name))?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: Result<T, StoreError>,
    expected: Result<T, StoreError>,
) -> Result<(), String> {
    let found = found.map_err(|e| format!("{what}: {e}"))?;
    let expected = expected.map_err(|e| format!("{what} of the model: {e}"))?;
    if found == expected {
        return Ok(());
    }
    let mut text = format!("{what}: found {found:?}, expected {expected:?}");
    text.truncate(400);
    Err(text)
}

/// The queue of the entries that [`put`] makes.
pub(crate) const QUEUE: QueueId = QueueId(7);

pub(crate) fn put(id: u64, record: &'static [u8]) -> Op {
    Op::PutEntry {
        precedence: Precedence::Routine,
        id: EntryId(id),
        queue: QUEUE,
        record: Bytes::from_static(record),
    }
}

pub(crate) fn delete(id: u64) -> Op {
    Op::DeleteEntry { precedence: Precedence::Routine, id: EntryId(id) }
}

pub(crate) fn body(id: u64, octets: Bytes) -> Op {
    Op::PutBody { id: BodyId(id), source: BodySource::Octets(octets) }
}

pub(crate) fn copy(from: u64, to: u64) -> Op {
    Op::PutBody { id: BodyId(to), source: BodySource::Body(BodyId(from)) }
}

pub(crate) fn frame(head: Bytes, other: u64, (from, length): (u64, u64), to: u64) -> Op {
    let source = BodySource::Framed { head, body: BodyId(other), from, length };
    Op::PutBody { id: BodyId(to), source }
}

pub(crate) fn spooled(id: u64, spool: u64) -> Op {
    Op::PutBody { id: BodyId(id), source: BodySource::Spool(SpoolId(spool)) }
}

pub(crate) fn drop_body(id: u64) -> Op {
    Op::DeleteBody { id: BodyId(id) }
}

pub(crate) fn seen(key: u8, until: u64, record: &'static [u8]) -> Op {
    let record = Bytes::from_static(record);
    Op::PutSeen { key: Digest([key; 32]), until: Utc(until), record, absent: false }
}

/// The same, but the key must be absent.
pub(crate) fn new_seen(key: u8, until: u64, record: &'static [u8]) -> Op {
    let record = Bytes::from_static(record);
    Op::PutSeen { key: Digest([key; 32]), until: Utc(until), record, absent: true }
}

pub(crate) fn meta(name: &str, value: &'static [u8]) -> Op {
    Op::PutMeta { name: name.to_owned(), value: Bytes::from_static(value) }
}

/// Octets that depend on their offset.
pub(crate) fn octets(length: usize, salt: u8) -> Bytes {
    (0..length).map(|i| (i % 251) as u8 ^ salt).collect()
}
