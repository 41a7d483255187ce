//! The queue on fjall, as far as a comparison needs it: commits as the daemon makes them, and reads of
//! entries and contents. One keyspace for each table; small values only.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use std::path::Path;
use std::sync::Arc;
use store::{
    BatchId, Committed, Contents, Entry, EntryKey, ModelStore, QueueStore, StoreError, Sweep,
};

pub struct FjallStore {
    db: Database,
    entries: Keyspace,
    queues: Keyspace,
    bodies: Keyspace,
    seen: Keyspace,
    seen_until: Keyspace,
    meta: Keyspace,
    /// For what is not compared.
    model: ModelStore,
}

impl std::fmt::Debug for FjallStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FjallStore")
    }
}

fn failed(error: fjall::Error) -> StoreError {
    let full = matches!(&error, fjall::Error::Io(e) if e.kind() == std::io::ErrorKind::StorageFull)
        || error.to_string().contains("No space");
    if full {
        return StoreError::DiskFull { doing: "using fjall" };
    }
    StoreError::Io { doing: "using fjall", source: Arc::new(std::io::Error::other(error.to_string())) }
}

fn entry_key(precedence: Precedence, id: EntryId) -> [u8; 9] {
    let mut key = [u8::MAX - precedence.number(); 9];
    key[1..].copy_from_slice(&id.0.to_be_bytes());
    key
}

impl FjallStore {
    pub fn open(path: &Path) -> Result<FjallStore, StoreError> {
        let db = Database::builder(path).open().map_err(failed)?;
        let plain = |name: &str| db.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        let separated = || {
            KeyspaceCreateOptions::default()
                .with_kv_separation(Some(KvSeparationOptions::default()))
        };
        Ok(FjallStore {
            entries: plain("entries")?,
            queues: plain("queues")?,
            bodies: db.keyspace("bodies", separated).map_err(failed)?,
            seen: plain("seen")?,
            seen_until: plain("seen_until")?,
            meta: plain("meta")?,
            model: ModelStore::default(),
            db,
        })
    }

    fn write(&self, group: &[(BatchId, Batch)]) -> Result<(), fjall::Error> {
        let mut write = self.db.batch().durability(Some(PersistMode::SyncData));
        for op in group.iter().flat_map(|(_, batch)| batch) {
            match op {
                Op::PutEntry { precedence, id, queue, record } => {
                    let key = entry_key(*precedence, *id);
                    let value = [&queue.0.to_be_bytes()[..], &record[..]].concat();
                    write.insert(&self.entries, key, value);
                    write.insert(&self.queues, [&queue.0.to_be_bytes()[..], &key].concat(), []);
                }
                Op::DeleteEntry { precedence, id } => {
                    let key = entry_key(*precedence, *id);
                    if let Some(old) = self.entries.get(key)? {
                        write.remove(&self.queues, [&old[..8], &key].concat());
                    }
                    write.remove(&self.entries, key);
                }
                Op::PutBody { id, source: BodySource::Octets(octets) } => {
                    write.insert(&self.bodies, id.0.to_be_bytes(), &octets[..]);
                }
                Op::PutBody { .. } => {}
                Op::DeleteBody { id } => write.remove(&self.bodies, id.0.to_be_bytes()),
                Op::PutSeen { key, until, record, .. } => {
                    let value = [&until.0.to_be_bytes()[..], &record[..]].concat();
                    write.insert(&self.seen, key.0, value);
                    let time = [&until.0.to_be_bytes()[..], &key.0].concat();
                    write.insert(&self.seen_until, time, []);
                }
                Op::ForgetSeen { .. } => {}
                Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                    write.insert(&self.meta, name.as_bytes(), &value[..]);
                }
            }
        }
        write.commit()
    }
}

impl QueueStore for FjallStore {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        let ended = match self.write(&group) {
            Ok(()) => Committed::Durable,
            Err(error) => Committed::NotDone(failed(error)),
        };
        vec![ended; group.len()]
    }
    fn outcome(&self, _: BatchId) -> Committed {
        Committed::NotDone(StoreError::Undone)
    }
    fn contents(&self) -> &Arc<dyn Contents> {
        self.model.contents()
    }
    fn sweep(&self) -> &Sweep {
        self.model.sweep()
    }
    fn entry(&self, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
        let value = self.entries.get(entry_key(precedence, id)).map_err(failed)?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value[8..])))
    }
    fn entry_count(&self) -> Result<u64, StoreError> {
        Ok(self.entries.len().map_err(failed)? as u64)
    }
    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError> {
        let mut highest = None;
        for row in self.entries.iter() {
            let (key, _) = row.into_inner().map_err(failed)?;
            let id = key.get(1..).and_then(|id| Some(u64::from_be_bytes(id.try_into().ok()?)));
            highest = highest.max(id.map(EntryId));
        }
        Ok(highest)
    }
    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let start = after.map_or(Unbounded, |(level, id)| Excluded(entry_key(level, id)));
        let mut page = Vec::new();
        for row in self.entries.range::<[u8; 9], _>((start, Unbounded)).take(limit) {
            let (key, value) = row.into_inner().map_err(failed)?;
            let level = Precedence::from_number((u8::MAX - key[0]).into()).unwrap();
            let id = EntryId(u64::from_be_bytes(key[1..9].try_into().unwrap()));
            page.push(Entry { precedence: level, id, record: Bytes::copy_from_slice(&value[8..]) });
        }
        Ok(page)
    }
    fn queue_entries(
        &self,
        _: QueueId,
        _: Precedence,
        _: Option<EntryId>,
        _: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        Ok(Vec::new())
    }
    fn bodies(&self, _: Option<BodyId>, _: usize) -> Result<Vec<BodyId>, StoreError> {
        Ok(Vec::new())
    }
    fn body_length(&self, _: BodyId) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
    fn body(&self, id: BodyId, _: u64, _: usize) -> Result<Option<Bytes>, StoreError> {
        let value = self.bodies.get(id.0.to_be_bytes()).map_err(failed)?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }
    fn seen(&self, keys: &[Digest], _: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
        Ok(vec![None; keys.len()])
    }
    fn has_expired_keys(&self, _: Utc) -> Result<bool, StoreError> {
        Ok(false)
    }
    fn meta(&self, _: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(None)
    }
    fn close(&self) {}
}
