//! The index of the log, in memory: where the latest version of everything is, and which segments are
//! still needed.

use super::frame::{Change, SegmentId};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, QueueId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Where a piece of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub segment: SegmentId,
    pub offset: u64,
    pub length: u32,
    pub checksum: u64,
}

/// The place of an entry in the queue: the highest precedence first.
pub(super) type Place = (Reverse<Precedence>, EntryId);

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryRow {
    pub queue: QueueId,
    pub at: Location,
}

/// A content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyRow {
    /// In the log.
    Inline(Location),
    /// In a file of this number. The change that names it is in this segment.
    File { segment: SegmentId, number: u64, length: u64 },
}

impl BodyRow {
    pub(super) fn segment(&self) -> SegmentId {
        match self {
            BodyRow::Inline(at) => at.segment,
            BodyRow::File { segment, .. } => *segment,
        }
    }
}

/// A remembered key.
#[derive(Clone, Debug)]
pub(super) struct KeyRow {
    pub segment: SegmentId,
    pub until: Utc,
    pub record: Bytes,
}

/// What a segment is needed for.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentUse {
    /// Octets in use of its file.
    pub used: u64,
    /// Octets of the latest versions in it, and how many.
    pub live: u64,
    pub items: u64,
    /// Earlier segments whose versions something here supersedes or deletes.
    pub needs: BTreeSet<SegmentId>,
    /// All that could be copied was, and something damaged is left.
    pub is_set_aside: bool,
}

/// What owns a version in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Entry(Precedence, EntryId),
    Body(BodyId),
}

#[derive(Debug, Default)]
pub(super) struct Index {
    entries: BTreeMap<Place, EntryRow>,
    queues: BTreeSet<(QueueId, Place)>,
    bodies: BTreeMap<BodyId, BodyRow>,
    keys: BTreeMap<Digest, KeyRow>,
    times: BTreeSet<(Utc, Digest)>,
    meta: BTreeMap<String, Bytes>,
    /// Segments other than that of the latest version which still hold one of a living key. Few keys
    /// have any.
    old: BTreeMap<Key, Vec<SegmentId>>,
    segments: BTreeMap<SegmentId, SegmentUse>,
    /// Where earlier segments end, as later ones record.
    ends: BTreeMap<SegmentId, u64>,
}

/// Octets that a small change takes in a frame, about.
const SMALL: u64 = 64;

impl Index {
    pub(super) fn entry(&self, precedence: Precedence, id: EntryId) -> Option<EntryRow> {
        self.entries.get(&(Reverse(precedence), id)).copied()
    }

    pub(super) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The entries after a place, in order.
    pub(super) fn entries_after(
        &self,
        after: Option<Place>,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let start = after.map_or(Unbounded, Excluded);
        self.entries.range((start, Unbounded)).map(|(place, row)| (*place, *row))
    }

    /// The entries of one precedence in a queue after one of them, in order.
    pub(super) fn queue_after(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
    ) -> impl Iterator<Item = (Place, EntryRow)> + '_ {
        use std::ops::Bound::{Excluded, Included};
        let key = |id| (queue, (Reverse(precedence), EntryId(id)));
        let start = after.map_or(Included(key(0)), |id| Excluded(key(id.0)));
        let range = self.queues.range((start, Included(key(u64::MAX))));
        range.filter_map(|(_, place)| Some((*place, *self.entries.get(place)?)))
    }

    pub(super) fn body(&self, id: BodyId) -> Option<BodyRow> {
        self.bodies.get(&id).copied()
    }

    pub(super) fn bodies_after(&self, after: Option<BodyId>) -> impl Iterator<Item = BodyId> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.bodies.range((after.map_or(Unbounded, Excluded), Unbounded)).map(|(id, _)| *id)
    }

    /// The bodies in files, with the numbers and lengths of these.
    pub(super) fn body_files(&self) -> impl Iterator<Item = (BodyId, u64, u64)> + '_ {
        self.bodies.iter().filter_map(|(id, row)| match row {
            BodyRow::File { number, length, .. } => Some((*id, *number, *length)),
            BodyRow::Inline(_) => None,
        })
    }

    pub(super) fn key(&self, key: &Digest) -> Option<&KeyRow> {
        self.keys.get(key)
    }

    pub(super) fn first_expiry(&self) -> Option<Utc> {
        self.times.first().map(|(until, _)| *until)
    }

    pub(super) fn meta(&self, name: &str) -> Option<&Bytes> {
        self.meta.get(name)
    }

    pub(super) fn all_meta(&self) -> impl Iterator<Item = (&String, &Bytes)> {
        self.meta.iter()
    }

    /// Where a segment ends, if it exists and a later one records it.
    pub(super) fn end(&self, segment: SegmentId) -> Option<u64> {
        self.ends.get(&segment).copied()
    }

    pub(super) fn segments(&self) -> &BTreeMap<SegmentId, SegmentUse> {
        &self.segments
    }

    /// Octets in use of all segments, and those of the latest versions.
    pub(super) fn octets(&self) -> (u64, u64) {
        let sum = |of: fn(&SegmentUse) -> u64| self.segments.values().map(of).sum();
        (sum(|segment| segment.used), sum(|segment| segment.live))
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

    /// A segment that nothing needs, other than this one: no latest version is in it, and nothing
    /// that it supersedes exists.
    pub(super) fn useless(&self, active: SegmentId) -> Option<SegmentId> {
        let is_useless = |(id, segment): &(&SegmentId, &SegmentUse)| {
            **id != active
                && segment.items == 0
                && !segment.needs.iter().any(|old| self.segments.contains_key(old))
        };
        self.segments.iter().find(is_useless).map(|(id, _)| *id)
    }

    /// All of a segment that is still needed was copied.
    pub(super) fn release(&mut self, segment: SegmentId) {
        if let Some(of) = self.segments.get_mut(&segment) {
            of.needs.clear();
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

    fn count(&mut self, segment: SegmentId, octets: u64) {
        let of = self.segments.entry(segment).or_default();
        of.live += octets;
        of.items += 1;
    }

    fn uncount(&mut self, segment: SegmentId, octets: u64) {
        if let Some(of) = self.segments.get_mut(&segment) {
            of.live = of.live.saturating_sub(octets);
            of.items = of.items.saturating_sub(1);
        }
    }

    /// A change of this segment supersedes versions in these. `is_put`: the key lives on.
    fn supersede(&mut self, segment: SegmentId, key: Key, old: &[SegmentId], is_put: bool) {
        let left: Vec<SegmentId> = old.iter().filter(|of| **of != segment).copied().collect();
        let known: Vec<SegmentId> =
            left.into_iter().filter(|of| self.segments.contains_key(of)).collect();
        if let Some(of) = self.segments.get_mut(&segment) {
            of.needs.extend(known.iter().copied());
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
                self.take_entry(precedence, id);
                self.supersede(segment, Key::Entry(precedence, id), &old, true);
                let at = piece.at(segment, data);
                let place = (Reverse(precedence), id);
                self.entries.insert(place, EntryRow { queue, at });
                self.queues.insert((queue, place));
                self.count(segment, u64::from(at.length) + SMALL);
            }
            Change::DeleteEntry { precedence, id, old } => {
                self.take_entry(precedence, id);
                self.supersede(segment, Key::Entry(precedence, id), &old, false);
            }
            Change::PutBody { id, data: piece, old } => {
                self.take_body(id, dropped);
                self.supersede(segment, Key::Body(id), &old, true);
                let at = piece.at(segment, data);
                self.bodies.insert(id, BodyRow::Inline(at));
                self.count(segment, u64::from(at.length) + SMALL);
            }
            Change::PutBodyFile { id, number, length, old } => {
                self.take_body(id, dropped);
                // A copy of the same change, or a file named again, is in use.
                dropped.retain(|of| *of != number);
                self.supersede(segment, Key::Body(id), &old, true);
                self.bodies.insert(id, BodyRow::File { segment, number, length });
                self.count(segment, SMALL);
            }
            Change::DeleteBody { id, old } => {
                self.take_body(id, dropped);
                self.supersede(segment, Key::Body(id), &old, false);
            }
            Change::PutSeen { key, until, record } => {
                self.take_key(&key);
                self.count(segment, SMALL + record.len() as u64);
                self.times.insert((until, key));
                self.keys.insert(key, KeyRow { segment, until, record });
            }
            Change::ForgetSeen { before, most } => {
                for _ in 0..most {
                    match self.times.first().copied() {
                        Some((until, key)) if until < before => self.take_key(&key),
                        _ => break,
                    }
                }
            }
            Change::PutMeta { name, value } => {
                self.meta.insert(name, value);
            }
            Change::Ends { segment: ended, used } => {
                if ended != segment && self.segments.contains_key(&ended) {
                    self.ends.insert(ended, used);
                    self.segments.entry(segment).or_default().needs.insert(ended);
                }
            }
        }
    }

    fn take_entry(&mut self, precedence: Precedence, id: EntryId) {
        let place = (Reverse(precedence), id);
        if let Some(row) = self.entries.remove(&place) {
            self.queues.remove(&(row.queue, place));
            self.uncount(row.at.segment, u64::from(row.at.length) + SMALL);
        }
    }

    fn take_body(&mut self, id: BodyId, dropped: &mut Vec<u64>) {
        match self.bodies.remove(&id) {
            Some(BodyRow::Inline(at)) => self.uncount(at.segment, u64::from(at.length) + SMALL),
            Some(BodyRow::File { segment, number, .. }) => {
                self.uncount(segment, SMALL);
                dropped.push(number);
            }
            None => {}
        }
    }

    fn take_key(&mut self, key: &Digest) {
        if let Some(row) = self.keys.remove(key) {
            self.times.remove(&(row.until, *key));
            self.uncount(row.segment, SMALL + row.record.len() as u64);
        }
    }
}
