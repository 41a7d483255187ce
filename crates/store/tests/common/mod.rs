//! A model of the store: the answers it must give after the batches applied so far.
#![allow(dead_code)]

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use std::collections::BTreeMap;
use store::{Disk, Entry, QueueStore, RedbStore};

/// The content of every spool a test uses, by its number.
pub(crate) type SpoolContents = BTreeMap<u64, Bytes>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) entries: BTreeMap<(Precedence, EntryId), Bytes>,
    pub(crate) bodies: BTreeMap<BodyId, Bytes>,
    pub(crate) seen: BTreeMap<Digest, (Utc, Bytes)>,
    pub(crate) meta: BTreeMap<String, Bytes>,
}

impl Model {
    pub(crate) fn apply(&mut self, batch: &Batch, spools: &SpoolContents) {
        for op in batch.iter().cloned() {
            match op {
                Op::PutEntry { precedence, id, record } => {
                    drop(self.entries.insert((precedence, id), record));
                }
                Op::DeleteEntry { precedence, id } => drop(self.entries.remove(&(precedence, id))),
                Op::PutBody { id, source } => {
                    let octets = match source {
                        BodySource::Octets(octets) => octets,
                        BodySource::Spool(spool) => spools[&spool.0].clone(),
                    };
                    self.bodies.insert(id, octets);
                }
                Op::DeleteBody { id } => drop(self.bodies.remove(&id)),
                Op::PutSeen { key, until, record } => drop(self.seen.insert(key, (until, record))),
                Op::ForgetSeen { before, most } => {
                    let due = self.seen.iter().filter(|(_, (until, _))| *until < before);
                    let mut due: Vec<_> = due.map(|(key, (until, _))| (*until, *key)).collect();
                    due.sort_unstable();
                    due.iter().take(most).for_each(|(_, key)| drop(self.seen.remove(key)));
                }
                Op::PutMeta { name, value } => drop(self.meta.insert(name, value)),
            }
        }
    }

    /// Compares all answers of the store with the model; the error names the difference. The keys
    /// compared are those of `universe`, a model with every key ever used.
    pub(crate) fn check(&self, store: &RedbStore, universe: &Model) -> Result<(), String> {
        let fail = |what: &str, e: &dyn std::fmt::Display| format!("{what}: {e}");
        let mut entries = Vec::new();
        store::queue::for_each_entry(store, |entry| entries.push(entry))
            .map_err(|e| fail("entries", &e))?;
        let expected: Vec<Entry> = self
            .entries
            .iter()
            .map(|((precedence, id), record)| Entry {
                precedence: *precedence,
                id: *id,
                record: record.clone(),
            })
            .collect();
        same("entries", &entries, &expected)?;
        let mut bodies = Vec::new();
        store::queue::for_each_page_of_bodies(store, |page| bodies.extend(page))
            .map_err(|e| fail("bodies", &e))?;
        same("bodies", &bodies, &self.bodies.keys().copied().collect())?;
        for id in universe.bodies.keys() {
            let whole = store.body(*id, 0, usize::MAX).map_err(|e| fail("body", &e))?;
            if whole.as_ref() != self.bodies.get(id) {
                return Err(format!("body {id} differs"));
            }
            let length = store.body_length(*id).map_err(|e| fail("length", &e))?;
            same("length", &length, &self.bodies.get(id).map(|b| b.len() as u64))?;
        }
        for key in universe.seen.keys() {
            let seen = self.seen.get(key);
            let found = store.seen(key, Utc(0)).map_err(|e| fail("seen", &e))?;
            same("seen", &found, &seen.map(|(_, record)| record.clone()))?;
            if let Some((until, _)) = seen {
                let past = store.seen(key, Utc(until.0 + 1)).map_err(|e| fail("seen", &e))?;
                same("seen past its time", &past, &None)?;
            }
        }
        for name in universe.meta.keys() {
            let found = store.meta(name).map_err(|e| fail("meta", &e))?;
            same("meta", &found.as_ref(), &self.meta.get(name))?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let mut text = format!("{what}: found {found:?}, expected {expected:?}");
    text.truncate(400);
    Err(text)
}

pub(crate) fn put(id: u64, record: &'static [u8]) -> Op {
    Op::PutEntry {
        precedence: Precedence::Routine,
        id: EntryId(id),
        record: Bytes::from_static(record),
    }
}

pub(crate) fn delete(id: u64) -> Op {
    Op::DeleteEntry { precedence: Precedence::Routine, id: EntryId(id) }
}

pub(crate) fn body(id: u64, octets: Bytes) -> Op {
    Op::PutBody { id: BodyId(id), source: BodySource::Octets(octets) }
}

pub(crate) fn spooled(id: u64, spool: u64) -> Op {
    Op::PutBody { id: BodyId(id), source: BodySource::Spool(SpoolId(spool)) }
}

pub(crate) fn drop_body(id: u64) -> Op {
    Op::DeleteBody { id: BodyId(id) }
}

pub(crate) fn seen(key: u8, until: u64, record: &'static [u8]) -> Op {
    Op::PutSeen { key: Digest([key; 32]), until: Utc(until), record: Bytes::from_static(record) }
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
