//! What the tests of the store share: the engines that are tested, the comparison with the model, and
//! short forms of changes.
#![allow(dead_code)]

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId, SpoolId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::faulty::FaultyDisk;
use store::{
    BatchId, Committed, Disk, LogStore, ModelState, ModelStore, Options, QueueStore, RedbStore,
    StoreError,
};

/// The content of every spool a test uses, by its number.
pub(crate) type SpoolContents = BTreeMap<u64, Bytes>;

/// An implementation of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Model,
    Redb,
    Log,
}

pub(crate) const ENGINES: [Engine; 3] = [Engine::Model, Engine::Redb, Engine::Log];

/// A place where a store is opened again and again.
pub(crate) struct Site {
    engine: Engine,
    pub(crate) disk: FaultyDisk,
    options: Options,
    last: Option<Arc<ModelStore>>,
}

impl Engine {
    /// A store that is not the model, on a disk that nothing else uses meanwhile.
    pub(crate) fn on(
        self,
        disk: &FaultyDisk,
        options: Options,
    ) -> Result<Arc<dyn QueueStore>, StoreError> {
        let disk = Arc::new(disk.clone());
        Ok(match self {
            Engine::Redb => Arc::new(RedbStore::with_disk(disk, options)?),
            Engine::Log => Arc::new(LogStore::with_disk(disk, options)?),
            Engine::Model => unreachable!("the model has no disk"),
        })
    }
}

impl Site {
    pub(crate) fn new(engine: Engine) -> Site {
        Site::with_options(engine, Options::default())
    }

    pub(crate) fn with_options(engine: Engine, options: Options) -> Site {
        Site { engine, disk: FaultyDisk::new(), options, last: None }
    }

    /// Opens it; an earlier store of this site is used no longer.
    pub(crate) fn open(&mut self) -> Arc<dyn QueueStore> {
        match self.engine {
            engine @ (Engine::Redb | Engine::Log) => engine.on(&self.disk, self.options).unwrap(),
            Engine::Model => {
                let state = self.last.take().map_or_else(ModelState::default, |last| last.state());
                let store = Arc::new(ModelStore::holding(state));
                self.last = Some(Arc::clone(&store));
                store
            }
        }
    }
}

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

/// Body files on the disk.
pub(crate) fn body_files(disk: &dyn Disk) -> usize {
    disk.list(std::path::Path::new("bodies")).map_or(usize::MAX, |files| files.len())
}
