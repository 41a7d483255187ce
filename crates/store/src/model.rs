//! The model of a queue store: what every engine must answer, in memory and without a disk. Tests
//! compare the engines with it, and run what uses a store on it.

use crate::error::StoreError;
use crate::queue::{
    BatchId, Committed, Contents, Entry, EntryKey, KeptSpool, KeyEntry, QueueStore, Sweep,
};
use crate::staging::{framed, part};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{
    Batch, BodySource, Digest, FIRST_ITEM, ItemId, MailboxId, Op, QueueId, SpoolId,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Place = (Reverse<Precedence>, EntryId);

/// What is stored. It may be cloned, and compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelState {
    /// Queue entries, with their queues.
    pub entries: BTreeMap<(Reverse<Precedence>, EntryId), (QueueId, Bytes)>,
    /// Contents.
    pub bodies: BTreeMap<BodyId, Bytes>,
    /// Remembered keys.
    pub seen: BTreeMap<Digest, (Utc, Bytes)>,
    /// Named values.
    pub meta: BTreeMap<String, Bytes>,
}

impl ModelState {
    /// The keys that keep a batch from being made.
    pub fn conflict(&self, batch: &Batch) -> Vec<Digest> {
        let keys = batch.iter().filter_map(|op| match op {
            Op::PutSeen { key, absent: true, .. } => Some(*key),
            _ => None,
        });
        keys.filter(|key| self.seen.contains_key(key)).collect()
    }

    /// Makes the changes of a batch; `spool` gives the octets of a spool.
    pub fn apply(&mut self, batch: &Batch, spool: impl Fn(SpoolId) -> Bytes) {
        for op in batch.iter().cloned() {
            match op {
                Op::PutEntry { precedence, id, queue, record } => {
                    self.entries.insert((Reverse(precedence), id), (queue, record));
                }
                Op::DeleteEntry { precedence, id } => {
                    self.entries.remove(&(Reverse(precedence), id));
                }
                Op::PutBody { id, source } => {
                    let octets = match source {
                        BodySource::Octets(octets) => octets,
                        BodySource::Spool(id) => spool(id),
                        BodySource::Body(id) => self.bodies.get(&id).cloned().unwrap_or_default(),
                        BodySource::Framed { head, body, from, length } => {
                            let body = self.bodies.get(&body).cloned().unwrap_or_default();
                            framed(&head, &part(&body, from, length).unwrap_or_default())
                        }
                    };
                    self.bodies.insert(id, octets);
                }
                Op::DeleteBody { id } => drop(self.bodies.remove(&id)),
                Op::PutSeen { key, until, record, absent: _ } => {
                    self.seen.insert(key, (until, record));
                }
                Op::ForgetSeen { before, most } => {
                    let due = self.seen.iter().filter(|(_, (until, _))| *until < before);
                    let mut due: Vec<_> = due.map(|(key, (until, _))| (*until, *key)).collect();
                    due.sort_unstable();
                    due.iter().take(most).for_each(|(_, key)| drop(self.seen.remove(key)));
                }
                Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                    self.meta.insert(name, value);
                }
            }
        }
    }

    fn page<'s>(
        rows: impl Iterator<Item = (&'s Place, &'s (QueueId, Bytes))>,
        limit: usize,
    ) -> Vec<Entry> {
        let entry = |(place, row): (&Place, &(QueueId, Bytes))| Entry {
            precedence: place.0.0,
            id: place.1,
            record: row.1.clone(),
        };
        rows.take(limit.max(1)).map(entry).collect()
    }
}

/// The model as a store: always durable, never full. Clones of its state outlive it.
#[derive(Debug)]
pub struct ModelStore {
    state: Mutex<ModelState>,
    spools: Arc<ModelSpools>,
    contents: Arc<dyn Contents>,
    sweep: Sweep,
}

#[derive(Debug, Default)]
struct ModelSpools(Mutex<BTreeMap<SpoolId, Vec<u8>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelSpools {
    fn get(&self, id: SpoolId) -> Option<Bytes> {
        lock(&self.0).get(&id).map(|octets| Bytes::copy_from_slice(octets))
    }
}

impl Contents for ModelSpools {
    fn open(&self, id: SpoolId) -> Result<(), StoreError> {
        let mut spools = lock(&self.0);
        if spools.contains_key(&id) {
            return Err(StoreError::SpoolExists { id });
        }
        spools.insert(id, Vec::new());
        Ok(())
    }

    fn append(&self, id: SpoolId, octets: Bytes) -> Result<(), StoreError> {
        let mut spools = lock(&self.0);
        let spool = spools.get_mut(&id).ok_or(StoreError::NoSpool { id })?;
        spool.extend_from_slice(&octets);
        Ok(())
    }

    fn append_in_memory(&self, id: SpoolId, octets: &[u8]) -> bool {
        self.append(id, Bytes::copy_from_slice(octets)).is_ok()
    }

    fn sync(&self, id: SpoolId) -> Result<u64, StoreError> {
        self.length(id)
    }

    fn note(&self, id: SpoolId, _note: &[u8]) -> Result<(), StoreError> {
        self.length(id).map(drop)
    }

    fn take_kept(&self) -> Vec<KeptSpool> {
        Vec::new()
    }

    fn length(&self, id: SpoolId) -> Result<u64, StoreError> {
        let spool = self.get(id).ok_or(StoreError::NoSpool { id })?;
        Ok(spool.len() as u64)
    }

    fn discard(&self, id: SpoolId) {
        lock(&self.0).remove(&id);
    }

    fn memory_held(&self) -> usize {
        lock(&self.0).values().map(Vec::len).sum()
    }
}

impl Default for ModelStore {
    fn default() -> ModelStore {
        ModelStore::holding(ModelState::default())
    }
}

impl ModelStore {
    /// A store with this content.
    #[must_use]
    pub fn holding(state: ModelState) -> ModelStore {
        let spools = Arc::<ModelSpools>::default();
        ModelStore {
            state: Mutex::new(state),
            contents: Arc::clone(&spools) as Arc<dyn Contents>,
            spools,
            sweep: Sweep::default(),
        }
    }

    /// What is stored.
    #[must_use]
    pub fn state(&self) -> ModelState {
        lock(&self.state).clone()
    }

    fn commit_one(&self, batch: &Batch) -> Committed {
        let consumed = batch.iter().filter_map(|op| match op {
            Op::PutBody { source: BodySource::Spool(id), .. } => Some(*id),
            _ => None,
        });
        let mut spools = BTreeMap::new();
        for id in consumed {
            let Some(octets) = self.spools.get(id) else {
                return Committed::NotDone(StoreError::NoSpool { id });
            };
            spools.insert(id, octets);
        }
        let mut state = lock(&self.state);
        let is_lacking = |op: &&Op| match op {
            Op::PutBody { source: BodySource::Framed { body, from, length, .. }, .. } => {
                let body = state.bodies.get(body);
                body.and_then(|octets| part(octets, *from, *length)).is_none()
            }
            op => op.copied().is_some_and(|id| !state.bodies.contains_key(&id)),
        };
        if let Some(id) = batch.iter().find(is_lacking).and_then(Op::copied) {
            return Committed::NotDone(StoreError::BodyDamaged { id });
        }
        let conflict = state.conflict(batch);
        if !conflict.is_empty() {
            return Committed::Conflict(conflict);
        }
        state.apply(batch, |id| spools.get(&id).cloned().unwrap_or_default());
        spools.keys().for_each(|id| self.spools.discard(*id));
        Committed::Durable
    }
}

impl QueueStore for ModelStore {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        group.iter().map(|(_, batch)| self.commit_one(batch)).collect()
    }

    fn outcome(&self, _: BatchId) -> Committed {
        Committed::NotDone(StoreError::Undone)
    }

    fn contents(&self) -> &Arc<dyn Contents> {
        &self.contents
    }

    fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    fn entry(&self, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
        let state = lock(&self.state);
        Ok(state.entries.get(&(Reverse(precedence), id)).map(|(_, record)| record.clone()))
    }

    fn entry_count(&self) -> Result<u64, StoreError> {
        let state = lock(&self.state);
        Ok(state.entries.keys().filter(|(_, id)| id.0 < FIRST_ITEM).count() as u64)
    }

    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError> {
        let state = lock(&self.state);
        Ok(state.entries.keys().map(|(_, id)| *id).filter(|id| id.0 < FIRST_ITEM).max())
    }

    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let state = lock(&self.state);
        let after = after.map(|(precedence, id)| (Reverse(precedence), id));
        let later = |(place, _): &(&Place, _)| {
            place.1.0 < FIRST_ITEM && after.is_none_or(|after| after < **place)
        };
        Ok(ModelState::page(state.entries.iter().filter(later), limit))
    }

    fn queue_entries(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let state = lock(&self.state);
        let listed = |(place, row): &(&Place, &(QueueId, Bytes))| {
            row.0 == queue && place.0.0 == precedence && after.is_none_or(|id| id < place.1)
        };
        Ok(ModelState::page(state.entries.iter().filter(listed), limit))
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let state = lock(&self.state);
        let listed = |(place, _): &(&Place, _)| {
            place.0.0 == precedence
                && ItemId::of_entry(place.1)
                    .is_some_and(|item| item.mailbox == mailbox && item.number > after)
        };
        Ok(ModelState::page(state.entries.iter().filter(listed), limit))
    }

    fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        let all = self.items(mailbox, precedence, 0, usize::MAX)?;
        Ok(all.len() as u64)
    }

    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        let state = lock(&self.state);
        let later = |id: &BodyId| id.0 < FIRST_ITEM && after.is_none_or(|after| after < *id);
        Ok(state.bodies.keys().copied().filter(later).take(limit.max(1)).collect())
    }

    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError> {
        Ok(lock(&self.state).bodies.get(&id).map(|octets| octets.len() as u64))
    }

    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        let state = lock(&self.state);
        let part = |octets: &Bytes| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
            octets.slice(start..start.saturating_add(length).min(octets.len()))
        };
        Ok(state.bodies.get(&id).map(part))
    }

    fn seen(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
        let state = lock(&self.state);
        let found = |key| state.seen.get(key).filter(|(until, _)| now <= *until);
        Ok(keys.iter().map(|key| found(key).map(|(_, record)| record.clone())).collect())
    }

    fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError> {
        Ok(lock(&self.state).seen.values().any(|(until, _)| *until < before))
    }

    fn keys(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<KeyEntry>, StoreError> {
        let state = lock(&self.state);
        let later = state.seen.iter().filter(|(key, _)| after.is_none_or(|after| after < *key));
        let row = |(key, (until, record)): (&Digest, &(Utc, Bytes))| KeyEntry {
            key: *key,
            until: *until,
            record: record.clone(),
        };
        Ok(later.take(limit.max(1)).map(row).collect())
    }

    fn values(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Bytes)>, StoreError> {
        let state = lock(&self.state);
        let later =
            state.meta.iter().filter(|(name, _)| after.is_none_or(|after| after < &***name));
        let row = |(name, value): (&String, &Bytes)| (name.clone(), value.clone());
        Ok(later.take(limit.max(1)).map(row).collect())
    }

    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(lock(&self.state).meta.get(name).cloned())
    }

    fn close(&self) {}
}

/// The methods of [`QueueStore`] except `commit`, `outcome` and `tidy`, done by a field that is a
/// store itself: for stores of tests that change the others.
#[macro_export]
macro_rules! delegate_reads {
    ($field:ident) => {
        fn octets(&self, batch: &::engine::journal::Batch) -> usize {
            self.$field.octets(batch)
        }
        fn contents(&self) -> &::std::sync::Arc<dyn $crate::Contents> {
            self.$field.contents()
        }
        fn sweep(&self) -> &$crate::Sweep {
            self.$field.sweep()
        }
        fn entry(
            &self,
            key: $crate::EntryKey,
        ) -> Result<Option<::bytes::Bytes>, $crate::StoreError> {
            self.$field.entry(key)
        }
        fn entry_count(&self) -> Result<u64, $crate::StoreError> {
            self.$field.entry_count()
        }
        fn highest_entry(&self) -> Result<Option<::base::EntryId>, $crate::StoreError> {
            self.$field.highest_entry()
        }
        fn entries(
            &self,
            after: Option<$crate::EntryKey>,
            limit: usize,
        ) -> Result<Vec<$crate::Entry>, $crate::StoreError> {
            self.$field.entries(after, limit)
        }
        fn queue_entries(
            &self,
            queue: ::engine::journal::QueueId,
            precedence: ::base::Precedence,
            after: Option<::base::EntryId>,
            limit: usize,
        ) -> Result<Vec<$crate::Entry>, $crate::StoreError> {
            self.$field.queue_entries(queue, precedence, after, limit)
        }
        fn items(
            &self,
            mailbox: ::engine::journal::MailboxId,
            precedence: ::base::Precedence,
            after: u32,
            limit: usize,
        ) -> Result<Vec<$crate::Entry>, $crate::StoreError> {
            self.$field.items(mailbox, precedence, after, limit)
        }
        fn item_count(
            &self,
            mailbox: ::engine::journal::MailboxId,
            precedence: ::base::Precedence,
        ) -> Result<u64, $crate::StoreError> {
            self.$field.item_count(mailbox, precedence)
        }
        fn bodies(
            &self,
            after: Option<::base::BodyId>,
            limit: usize,
        ) -> Result<Vec<::base::BodyId>, $crate::StoreError> {
            self.$field.bodies(after, limit)
        }
        fn body_length(&self, id: ::base::BodyId) -> Result<Option<u64>, $crate::StoreError> {
            self.$field.body_length(id)
        }
        fn body(
            &self,
            id: ::base::BodyId,
            offset: u64,
            length: usize,
        ) -> Result<Option<::bytes::Bytes>, $crate::StoreError> {
            self.$field.body(id, offset, length)
        }
        fn seen(
            &self,
            keys: &[::engine::journal::Digest],
            now: ::base::Utc,
        ) -> Result<Vec<Option<::bytes::Bytes>>, $crate::StoreError> {
            self.$field.seen(keys, now)
        }
        fn has_expired_keys(&self, before: ::base::Utc) -> Result<bool, $crate::StoreError> {
            self.$field.has_expired_keys(before)
        }
        fn keys(
            &self,
            after: Option<&::engine::journal::Digest>,
            limit: usize,
        ) -> Result<Vec<$crate::KeyEntry>, $crate::StoreError> {
            self.$field.keys(after, limit)
        }
        fn values(
            &self,
            after: Option<&str>,
            limit: usize,
        ) -> Result<Vec<(String, ::bytes::Bytes)>, $crate::StoreError> {
            self.$field.values(after, limit)
        }
        fn meta(&self, name: &str) -> Result<Option<::bytes::Bytes>, $crate::StoreError> {
            self.$field.meta(name)
        }
        fn close(&self) {
            self.$field.close();
        }
    };
}
