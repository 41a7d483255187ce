//! Reads beside commits: each call sees the last durable commit.

use super::LogStore;
use super::index::{BodyRow, EntryRow, Key, Location, Place};
use super::keys::run::Remembered;
use super::keys::{KeyRow, LIST};
use crate::caches::recent::Key as RecentKey;
use crate::disk::RealDisk;
use crate::error::StoreError;
use crate::queue::{
    BatchId, Committed, Contents, Damage, Entry, EntryKey, KeyEntry, QueueStore, Sweep,
};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, FIRST_ITEM, ItemId, MailboxId, Op, QueueId};
use std::cmp::Reverse;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A page of entries ends beyond this many octets of records.
const PAGE_OCTETS: u64 = 8 << 20;

impl LogStore {
    /// The data of a key at a place; `None` if the segment is used for something else by now, or they
    /// are damaged.
    fn data(&self, key: Key, at: Location) -> Result<Option<Bytes>, StoreError> {
        let io = |e| StoreError::io("reading the log", e);
        let Some(segment) = self.segments.get(at.segment).map_err(io)? else { return Ok(None) };
        Ok(segment.data(key, at).map_err(io)?.map(Bytes::from))
    }

    /// What is remembered for a key.
    pub(super) fn remembered(&self, key: &Digest) -> Result<Option<Remembered>, StoreError> {
        let old = {
            let index = self.index();
            if let Some(row) = index.keys.latest().get(key) {
                let (until, record) = (row.until, row.record.clone());
                return Ok(Some(Remembered { until, record }));
            }
            if index.keys.lacks(key) {
                return Ok(None);
            }
            index.keys.old()
        };
        let mut damaged = 0;
        let found = old.get(&*self.disk, key, &mut damaged);
        if damaged > 0 {
            let mut damage = self.damaged();
            damage.keys = damage.keys.max(damaged);
        }
        found.map_err(|e| StoreError::io("reading remembered keys", e))
    }

    /// The keys after one of them, without those below the floor.
    fn keys_after(
        &self,
        mut after: Option<Digest>,
        limit: usize,
    ) -> Result<Vec<KeyEntry>, StoreError> {
        loop {
            let (latest, old, floor): (Vec<_>, _, _) = {
                let keys = &self.index().keys;
                let start = after.map_or(Bound::Unbounded, Bound::Excluded);
                let later = keys.latest().range((start, Bound::Unbounded)).take(limit);
                let row = |(key, row): (&Digest, &KeyRow)| {
                    (*key, Remembered { until: row.until, record: row.record.clone() })
                };
                (later.map(row).collect(), keys.old(), keys.floor())
            };
            let mut damaged = 0;
            let page = old.after(&*self.disk, after.as_ref(), limit, &mut damaged);
            if damaged > 0 {
                let mut damage = self.damaged();
                damage.keys = damage.keys.max(damaged);
            }
            let mut page = page.map_err(|e| StoreError::io("listing remembered keys", e))?;
            // What is latest is in place of what a run has.
            page.extend(latest);
            let rows = page.into_iter().take(limit);
            let rows =
                rows.map(|(key, row)| KeyEntry { key, until: row.until, record: row.record });
            let mut rows: Vec<KeyEntry> = rows.collect();
            let Some(last) = rows.last().map(|row| row.key) else { return Ok(rows) };
            rows.retain(|row| row.until >= floor);
            if !rows.is_empty() {
                return Ok(rows);
            }
            after = Some(last);
        }
    }

    /// The record of an entry whose row was read before.
    pub(super) fn record(&self, place: Place, row: EntryRow) -> Result<Option<Bytes>, StoreError> {
        let mut row = row;
        let (Reverse(precedence), id) = place;
        loop {
            if let Some(record) = self.data(Key::Entry(precedence, id), row.at)? {
                return Ok(Some(record));
            }
            match self.index().entry(precedence, id) {
                None => return Ok(None),
                // It was moved meanwhile.
                Some(now) if now.at != row.at => row = now,
                Some(_) => {
                    if self.damaged().entries.insert((precedence, id)) {
                        tracing::error!(%id, %precedence, "the record of an entry is damaged");
                    }
                    return Err(StoreError::EntryDamaged { id });
                }
            }
        }
    }

    /// The records of these entries, up to the limits of a page.
    fn page(&self, rows: Vec<(Place, EntryRow)>) -> Result<Vec<Entry>, StoreError> {
        let mut page = Vec::new();
        for (place, row) in rows {
            match self.record(place, row) {
                Ok(Some(record)) => {
                    page.push(Entry { precedence: place.0.0, id: place.1, record });
                }
                Ok(None) | Err(StoreError::EntryDamaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }

    pub(super) fn body_damaged(&self, id: BodyId) -> StoreError {
        if self.damaged().bodies.insert(id) {
            tracing::error!(body = %id, "a content is damaged");
        }
        StoreError::BodyDamaged { id }
    }

    pub(super) fn inline_body(
        &self,
        id: BodyId,
        at: Location,
    ) -> Result<Option<Bytes>, StoreError> {
        let mut at = at;
        loop {
            if let Some(octets) = self.data(Key::Body(id), at)? {
                // Read in parts: the next part needs no disk access.
                self.recent().insert(RecentKey::Body(id), octets.clone());
                return Ok(Some(octets));
            }
            match self.index().body(id) {
                None | Some(BodyRow::File(_)) => return Ok(None),
                Some(BodyRow::Inline(now)) if now != at => at = now,
                Some(BodyRow::Inline(_)) => return Err(self.body_damaged(id)),
            }
        }
    }
}

/// As many rows as fit into a page.
fn rows_of_page(
    rows: impl Iterator<Item = (Place, EntryRow)>,
    limit: usize,
) -> Vec<(Place, EntryRow)> {
    let mut octets = 0;
    let fits = |(_, row): &(Place, EntryRow)| {
        let before = octets;
        octets += u64::from(row.at.length);
        before <= PAGE_OCTETS
    };
    rows.take(limit.max(1)).take_while(fits).collect()
}

fn part_of(octets: &Bytes, offset: u64, length: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
    octets.slice(start..start.saturating_add(length).min(octets.len()))
}

impl QueueStore for LogStore {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        self.commit_group(group)
    }

    /// An end is unknown only if the store is stopped.
    fn outcome(&self, _: BatchId) -> Committed {
        match self.check() {
            Err(error) => Committed::Unknown(error),
            Ok(()) => Committed::NotDone(StoreError::Undone),
        }
    }

    fn tidy(&self) -> Result<usize, StoreError> {
        Ok(usize::from(self.tidy_once()?))
    }

    fn octets(&self, batch: &Batch) -> usize {
        let octets = batch.iter().map(|op| match op {
            Op::PutBody { source: BodySource::Spool(id), .. } => self.spools.held_by(*id),
            other => other.held(),
        });
        octets.fold(0, usize::saturating_add)
    }

    fn contents(&self) -> &Arc<dyn Contents> {
        &self.contents
    }

    fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    fn damage(&self) -> Damage {
        self.damaged().clone()
    }

    fn verify(&self, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        self.verify_all(goes_on)
    }

    fn back_up(&self, to: &Path, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<bool, StoreError> {
        self.back_up_to(&RealDisk::open(to)?, goes_on)
    }

    fn short_of_space(&self, is_short: bool) {
        self.is_short.store(is_short, Ordering::Relaxed);
        if is_short {
            self.segments.drop_surplus();
        }
    }

    fn repair(&self) -> Result<(), StoreError> {
        self.repair_all()
    }

    fn entry(&self, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
        self.check()?;
        let row = self.index().entry(precedence, id);
        row.map_or(Ok(None), |row| self.record((Reverse(precedence), id), row))
    }

    fn entry_count(&self) -> Result<u64, StoreError> {
        self.check()?;
        Ok(self.index().queued_count() as u64)
    }

    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError> {
        self.check()?;
        Ok(self.index().highest_queued())
    }

    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.check()?;
        let mut after = after.map(|(precedence, id)| (Reverse(precedence), id));
        loop {
            let rows = rows_of_page(self.index().queued_after(after), limit);
            let Some(last) = rows.last().map(|(place, _)| *place) else { return Ok(Vec::new()) };
            let page = self.page(rows)?;
            // All of them may be gone by now, and more may follow.
            if !page.is_empty() {
                return Ok(page);
            }
            after = Some(last);
        }
    }

    fn queue_entries(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.check()?;
        let mut after = after;
        loop {
            let rows = rows_of_page(self.index().queue_after(queue, precedence, after), limit);
            let Some(last) = rows.last().map(|(place, _)| place.1) else { return Ok(Vec::new()) };
            let page = self.page(rows)?;
            if !page.is_empty() {
                return Ok(page);
            }
            after = Some(last);
        }
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.check()?;
        let mut after = ItemId { mailbox, number: after };
        loop {
            let rows = rows_of_page(self.index().items_after(precedence, after), limit);
            let last = rows.last().and_then(|(place, _)| ItemId::of_entry(place.1));
            let Some(last) = last else { return Ok(Vec::new()) };
            let page = self.page(rows)?;
            if !page.is_empty() {
                return Ok(page);
            }
            after = last;
        }
    }

    fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        self.check()?;
        Ok(self.index().item_count(mailbox, precedence) as u64)
    }

    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        self.check()?;
        let is_queued = |id: &BodyId| id.0 < FIRST_ITEM;
        Ok(self.index().bodies_after(after).take_while(is_queued).take(limit.max(1)).collect())
    }

    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError> {
        self.check()?;
        Ok(self.index().body(id).map(|row| match row {
            BodyRow::Inline(at) => u64::from(at.length),
            BodyRow::File(file) => file.length,
        }))
    }

    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        self.check()?;
        if let Some(part) = self.recent_body(id, offset, length) {
            return Ok(Some(part));
        }
        let row = self.index().body(id);
        let file = match row {
            None => return Ok(None),
            Some(BodyRow::Inline(at)) => {
                let octets = self.inline_body(id, at)?;
                return Ok(octets.map(|octets| part_of(&octets, offset, length)));
            }
            Some(BodyRow::File(file)) => file,
        };
        match self.bodies.read_checked(file.number, file.length, &file.sums, offset, length) {
            Ok(Some(octets)) => Ok(Some(octets)),
            Ok(None) => Err(self.body_damaged(id)),
            // Dropped since the index was read, unless the index still names the file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => match self.index().body(id) {
                Some(BodyRow::File(now)) if now.number == file.number => Err(self.body_damaged(id)),
                _ => Ok(None),
            },
            Err(e) => Err(StoreError::io("reading a body", e)),
        }
    }

    fn seen(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.check()?;
        let found = |key| {
            let found = self.remembered(key)?.filter(|found| now <= found.until);
            Ok(found.map(|found| found.record))
        };
        keys.iter().map(found).collect()
    }

    fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError> {
        self.check()?;
        Ok(self.index().keys.has_expired(before))
    }

    fn keys(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<KeyEntry>, StoreError> {
        self.check()?;
        self.keys_after(after.copied(), limit.max(1))
    }

    fn values(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Bytes)>, StoreError> {
        self.check()?;
        let index = self.index();
        // The list of runs is the log's own.
        let later = index
            .all_meta()
            .filter(|(name, _)| *name != LIST && after.is_none_or(|after| after < name.as_str()));
        let row = |(name, value): (&String, &Bytes)| (name.clone(), value.clone());
        Ok(later.take(limit.max(1)).map(row).collect())
    }

    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.check()?;
        Ok(self.index().meta(name).cloned())
    }

    fn recent_entry(&self, key: EntryKey) -> Option<Bytes> {
        self.recent().get(RecentKey::Entry(key)).cloned()
    }

    /// Not for a body in a file.
    fn recent_body(&self, id: BodyId, offset: u64, length: usize) -> Option<Bytes> {
        self.recent().get(RecentKey::Body(id)).map(|octets| part_of(octets, offset, length))
    }

    fn cannot_have_seen(&self, key: &Digest) -> bool {
        self.index().keys.lacks(key)
    }

    fn close(&self) {
        let mut writer = self.writer();
        self.end_in_order(&mut writer);
        let _ = self.stopped.set(StoreError::Closed);
    }
}
