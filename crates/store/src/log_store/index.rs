//! The index of the log, in memory: where the latest version of everything is, and which segments are
//! still needed.

use super::frame::{Change, SegmentId};
use super::keys::run::Run;
use super::keys::{KeyRow, Keys};
use super::rows::Rows;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, FIRST_ITEM, ItemId, MailboxId, QueueId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a piece of data is: its checksum, and so many octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub segment: SegmentId,
    pub offset: u32,
    pub length: u32,
}

/// The place of an entry in the queue: the highest precedence first.
pub(super) type Place = (Reverse<Precedence>, EntryId);

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryRow {
    pub at: Location,
    /// The number of its queue in [`Index::queues`].
    queue: u32,
}

/// A content in a file of its own. The change that names it is in this segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRow {
    pub segment: SegmentId,
    pub number: u64,
    pub length: u64,
    pub sums: Arc<[u64]>,
}

/// A content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyRow {
    /// In the log.
    Inline(Location),
    File(FileRow),
}

impl BodyRow {
    pub(super) fn segment(&self) -> SegmentId {
        match self {
            BodyRow::Inline(at) => at.segment,
            BodyRow::File(file) => file.segment,
        }
    }
}

/// Stands for the length of a content in a file.
const IN_FILE: u32 = u32::MAX;

/// What a segment is needed for.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentUse {
    /// Octets in use of its file.
    pub used: u64,
    /// Octets of the latest versions in it, and how many; of these keys that are not in runs.
    pub live: u64,
    pub items: u64,
    pub keys: u64,
    /// Octets of changes that supersede or delete something in earlier segments, about.
    pub deletes: u64,
    /// Earlier segments whose versions something here supersedes or deletes.
    pub needs: BTreeSet<SegmentId>,
    /// All that could be copied was, and something damaged is left.
    pub is_set_aside: bool,
    /// It has a footer.
    pub has_footer: bool,
    /// Batches in it are lost.
    pub is_damaged: bool,
}

/// What owns a version in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Entry(Precedence, EntryId),
    Body(BodyId),
}

#[derive(Debug, Default)]
pub(super) struct Index {
    /// By precedence, the highest first.
    entries: BTreeMap<Reverse<Precedence>, Rows<EntryRow>>,
    /// All queues ever named, and their places here.
    queues: Vec<QueueId>,
    queue_numbers: BTreeMap<QueueId, u32>,
    bodies: Rows<Location>,
    files: BTreeMap<BodyId, FileRow>,
    pub keys: Keys,
    meta: BTreeMap<String, Bytes>,
    /// Segments other than that of the latest version which still hold one of a living key. Few keys
    /// have any.
    old: BTreeMap<Key, Vec<SegmentId>>,
    segments: BTreeMap<SegmentId, SegmentUse>,
    /// The segments that existed when the latest one began, with the octets of their files, without those
    /// that were given up since.
    pub expected: BTreeMap<SegmentId, u64>,
    /// Of them those whose files are missing.
    pub missing: BTreeSet<SegmentId>,
    /// The later segments which record where these segments end.
    ends: BTreeMap<SegmentId, SegmentId>,
}

/// Octets that a small change takes in a frame, about.
const SMALL: u64 = 64;

impl SegmentUse {
    /// Octets that a copy takes, about and at most.
    pub(super) fn needed(&self) -> u64 {
        self.live + self.deletes
    }
}

impl Index {
    pub(super) fn new(keys: Keys) -> Index {
        Index { keys, ..Index::default() }
    }

    pub(super) fn entry(&self, precedence: Precedence, id: EntryId) -> Option<EntryRow> {
        self.entries.get(&Reverse(precedence))?.get(id.0)
    }

    /// The number of entries without items of mailboxes.
    pub(super) fn queued_count(&self) -> usize {
        self.entries.values().map(|rows| rows.count(0..FIRST_ITEM)).sum()
    }

    /// The highest identifier of an entry, without items of mailboxes.
    pub(super) fn highest_queued(&self) -> Option<EntryId> {
        self.entries.values().filter_map(|rows| rows.last_before(FIRST_ITEM)).max().map(EntryId)
    }

    /// The number of items of one precedence in a mailbox.
    pub(super) fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> usize {
        let number = |number| ItemId { mailbox, number }.entry().0;
        let rows = self.entries.get(&Reverse(precedence));
        rows.map_or(0, |rows| rows.count(number(0)..number(u32::MAX)))
    }

    /// The entries after a place, in order, without items of mailboxes.
    pub(super) fn queued_after(
        &self,
        after: Option<Place>,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        self.rows_after(after, FIRST_ITEM)
    }

    /// The items of one precedence in a mailbox after one of them, in order.
    pub(super) fn items_after(
        &self,
        precedence: Precedence,
        after: ItemId,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        let level = Reverse(precedence);
        let rows = self.entries.get(&level);
        let later = rows.into_iter().flat_map(move |rows| rows.after(Some(after.entry().0)));
        let is_here = move |(id, _): &(u64, EntryRow)| {
            ItemId::of_entry(EntryId(*id)).is_some_and(|item| item.mailbox == after.mailbox)
        };
        later.take_while(is_here).map(move |(id, row)| ((level, EntryId(id)), row))
    }

    /// The entries after a place, in order.
    pub(super) fn entries_after(
        &self,
        after: Option<Place>,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        self.rows_after(after, u64::MAX)
    }

    /// Those with numbers below `end`.
    fn rows_after(
        &self,
        after: Option<Place>,
        end: u64,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        let levels = match after {
            Some((level, _)) => self.entries.range(level..),
            None => self.entries.range(..),
        };
        levels.flat_map(move |(level, rows)| {
            let after = after.filter(|(last, _)| last == level).map(|(_, id)| id.0);
            let below = rows.after(after).take_while(move |(id, _)| *id < end);
            below.map(|(id, row)| ((*level, EntryId(id)), row))
        })
    }

    /// The entries of one precedence in a queue after one of them, in order.
    pub(super) fn queue_after(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        let level = Reverse(precedence);
        let number = self.queue_numbers.get(&queue).copied();
        let rows = self.entries.get(&level).filter(|_| number.is_some());
        let all = rows.into_iter().flat_map(move |rows| rows.after(after.map(|id| id.0)));
        let listed = all.filter(move |(_, row)| Some(row.queue) == number);
        listed.map(move |(id, row)| ((level, EntryId(id)), row))
    }

    pub(super) fn body(&self, id: BodyId) -> Option<BodyRow> {
        let at = self.bodies.get(id.0)?;
        if at.length == IN_FILE {
            return self.files.get(&id).cloned().map(BodyRow::File);
        }
        Some(BodyRow::Inline(at))
    }

    pub(super) fn bodies_after(&self, after: Option<BodyId>) -> impl Iterator<Item = BodyId> + '_ {
        self.bodies.after(after.map(|id| id.0)).map(|(id, _)| BodyId(id))
    }

    /// The bodies in files, with the numbers and lengths of these.
    pub(super) fn body_files(&self) -> impl Iterator<Item = (BodyId, u64, u64)> + '_ {
        self.files.iter().map(|(id, file)| (*id, file.number, file.length))
    }

    pub(super) fn meta(&self, name: &str) -> Option<&Bytes> {
        self.meta.get(name)
    }

    pub(super) fn all_meta(&self) -> impl Iterator<Item = (&String, &Bytes)> {
        self.meta.iter()
    }

    /// The segment that records where this one ends, while that is needed.
    pub(super) fn recorder(&self, ended: SegmentId) -> Option<SegmentId> {
        self.ends.get(&ended).copied()
    }

    pub(super) fn segments(&self) -> &BTreeMap<SegmentId, SegmentUse> {
        &self.segments
    }

    /// Octets in use of all segments, and those that are needed.
    pub(super) fn octets(&self) -> (u64, u64) {
        let sum = |of: fn(&SegmentUse) -> u64| self.segments.values().map(of).sum();
        (sum(|segment| segment.used), sum(SegmentUse::needed))
    }

    /// The segments with versions of this key, which a change of it supersedes.
    pub(super) fn versions(&self, key: Key) -> Vec<SegmentId> {
        let mut versions = self.old.get(&key).cloned().unwrap_or_default();
        versions.extend(match key {
            Key::Entry(precedence, id) => self.entry(precedence, id).map(|row| row.at.segment),
            Key::Body(id) => self.body(id).map(|row| row.segment()),
        });
        versions.sort_unstable();
        versions.dedup();
        versions
    }

    /// A segment exists from now on.
    pub(super) fn add_segment(&mut self, segment: SegmentId) {
        self.segments.entry(segment).or_default();
    }

    /// So much of a segment's file is in use.
    pub(super) fn set_used(&mut self, segment: SegmentId, used: u64) {
        self.segments.entry(segment).or_default().used = used;
    }

    /// Batches in a segment are lost. Until a repair it stays, and is reported at every open.
    pub(super) fn set_damaged(&mut self, segment: SegmentId, is_damaged: bool) {
        if let Some(of) = self.segments.get_mut(&segment) {
            of.is_damaged = is_damaged;
        }
    }

    /// A segment has a footer, durably: its end need not be recorded elsewhere.
    pub(super) fn set_footer(&mut self, segment: SegmentId) {
        self.segments.entry(segment).or_default().has_footer = true;
        self.ends.remove(&segment);
    }

    /// A segment that nothing needs, other than this one: no latest version is in it, and nothing
    /// that it supersedes exists.
    pub(super) fn useless(
        &self,
        active: SegmentId,
        known: &BTreeSet<SegmentId>,
    ) -> Option<SegmentId> {
        let is_useless = |(id, segment): &(&SegmentId, &SegmentUse)| {
            **id != active
                && !known.contains(id)
                && !segment.is_damaged
                && segment.items == 0
                && !segment.needs.iter().any(|old| self.segments.contains_key(old))
                && !self.ends.values().any(|recorder| recorder == *id)
        };
        self.segments.iter().find(is_useless).map(|(id, _)| *id)
    }

    /// All of a segment that is still needed was copied.
    pub(super) fn release(&mut self, segment: SegmentId) {
        self.ends.retain(|_, recorder| *recorder != segment);
        if let Some(of) = self.segments.get_mut(&segment) {
            of.needs.clear();
            of.deletes = 0;
            of.is_set_aside = of.items > 0;
        }
    }

    /// A segment is gone.
    pub(super) fn remove_segment(&mut self, segment: SegmentId) {
        self.segments.remove(&segment);
        self.ends.remove(&segment);
        for other in self.segments.values_mut() {
            other.needs.remove(&segment);
        }
        self.old.retain(|_, old| {
            old.retain(|of| *of != segment);
            !old.is_empty()
        });
    }

    fn number_of(&mut self, queue: QueueId) -> u32 {
        let next = u32::try_from(self.queues.len()).unwrap_or(u32::MAX);
        *self.queue_numbers.entry(queue).or_insert_with(|| {
            self.queues.push(queue);
            next
        })
    }

    fn count(&mut self, segment: SegmentId, octets: u64) {
        let of = self.segments.entry(segment).or_default();
        of.live += octets;
        of.items += 1;
    }

    /// A change of this segment supersedes versions in these. `is_put`: the key lives on.
    fn supersede(&mut self, segment: SegmentId, key: Key, old: &[SegmentId], is_put: bool) {
        let left: Vec<SegmentId> = old.iter().filter(|of| **of != segment).copied().collect();
        let known: Vec<SegmentId> =
            left.into_iter().filter(|of| self.segments.contains_key(of)).collect();
        if let Some(of) = self.segments.get_mut(&segment).filter(|_| !known.is_empty()) {
            of.needs.extend(known.iter().copied());
            of.deletes += if is_put { 0 } else { SMALL };
        }
        if is_put && !known.is_empty() {
            self.old.insert(key, known);
        } else if !self.old.is_empty() {
            self.old.remove(&key);
        }
    }

    /// Makes a change of a frame whose data begin at `data` of its segment; adds the numbers of the
    /// files that it drops.
    pub(super) fn apply(
        &mut self,
        segment: SegmentId,
        data: u64,
        change: Change,
        dropped: &mut Vec<u64>,
    ) {
        match change {
            Change::PutEntry { precedence, id, queue, data: piece, old } => {
                self.supersede(segment, Key::Entry(precedence, id), &old, true);
                let (at, queue) = (piece.at(segment, data), self.number_of(queue));
                let rows = self.entries.entry(Reverse(precedence)).or_default();
                if let Some(before) = rows.insert(id.0, EntryRow { at, queue }) {
                    self.uncount_data(before.at);
                }
                self.count(segment, u64::from(at.length) + SMALL);
            }
            Change::DeleteEntry { precedence, id, old } => {
                let rows = self.entries.get_mut(&Reverse(precedence));
                if let Some(before) = rows.and_then(|rows| rows.remove(id.0)) {
                    self.uncount_data(before.at);
                }
                self.supersede(segment, Key::Entry(precedence, id), &old, false);
            }
            Change::PutBody { id, data: piece, old } => {
                self.take_body(id, dropped);
                self.supersede(segment, Key::Body(id), &old, true);
                let at = piece.at(segment, data);
                self.bodies.insert(id.0, at);
                self.count(segment, u64::from(at.length) + SMALL);
            }
            Change::PutBodyFile { id, number, length, sums, old } => {
                self.take_body(id, dropped);
                // A copy of the same change, or a file named again, is in use.
                dropped.retain(|of| *of != number);
                self.supersede(segment, Key::Body(id), &old, true);
                self.bodies.insert(id.0, Location { segment, offset: 0, length: IN_FILE });
                self.count(segment, SMALL + 8 * sums.len() as u64);
                self.files.insert(id, FileRow { segment, number, length, sums });
            }
            Change::DeleteBody { id, old } => {
                self.take_body(id, dropped);
                self.supersede(segment, Key::Body(id), &old, false);
            }
            Change::PutSeen { key, until, record } => {
                if self.keys.in_runs().is_none_or(|last| segment > last) {
                    self.put_key(segment, key, until, record);
                }
            }
            Change::ForgetSeen { before } => {
                let segments = &mut self.segments;
                self.keys.forget(before, |row| uncount_key(segments, row));
            }
            Change::PutMeta { name, value } => {
                self.meta.insert(name, value);
            }
            Change::Segments { all } => self.expected = all.into_iter().collect(),
            Change::Retired { segment } => {
                self.expected.remove(&segment);
                self.missing.remove(&segment);
            }
            Change::Ends { segment: ended, .. } => {
                let needs_it = |of: &SegmentUse| ended != segment && !of.has_footer;
                if self.segments.get(&ended).is_some_and(needs_it) {
                    self.ends.insert(ended, segment);
                }
            }
        }
    }

    fn uncount_data(&mut self, at: Location) {
        uncount(&mut self.segments, at.segment, u64::from(at.length) + SMALL);
    }

    fn take_body(&mut self, id: BodyId, dropped: &mut Vec<u64>) {
        let Some(at) = self.bodies.remove(id.0) else { return };
        match self.files.remove(&id) {
            Some(file) => {
                let octets = SMALL + 8 * file.sums.len() as u64;
                uncount(&mut self.segments, file.segment, octets);
                dropped.push(file.number);
            }
            None => self.uncount_data(at),
        }
    }

    fn put_key(&mut self, segment: SegmentId, key: Digest, until: Utc, record: Bytes) {
        self.count(segment, SMALL + record.len() as u64);
        self.segments.entry(segment).or_default().keys += 1;
        if let Some(before) = self.keys.put(key, KeyRow { segment, until, record }) {
            uncount_key(&mut self.segments, &before);
        }
    }

    /// A run has the keys of all segments up to its last.
    pub(super) fn add_run(&mut self, run: Run) {
        let segments = &mut self.segments;
        self.keys.add_run(run, |row| uncount_key(segments, row));
    }
}

fn uncount(segments: &mut BTreeMap<SegmentId, SegmentUse>, segment: SegmentId, octets: u64) {
    if let Some(of) = segments.get_mut(&segment) {
        of.live = of.live.saturating_sub(octets);
        of.items = of.items.saturating_sub(1);
    }
}

fn uncount_key(segments: &mut BTreeMap<SegmentId, SegmentUse>, row: &KeyRow) {
    uncount(segments, row.segment, SMALL + row.record.len() as u64);
    if let Some(of) = segments.get_mut(&row.segment) {
        of.keys = of.keys.saturating_sub(1);
    }
}
