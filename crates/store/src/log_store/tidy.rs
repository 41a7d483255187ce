//! Work that commits defer, in small pieces: keys go from memory into runs, full segments get footers, what
//! is still needed of a segment that is mostly dead is copied to the end of the log, and expired keys go.

use super::commit::Encoder;
use super::frame::{Change, FrameWriter, SegmentId};
use super::index::{BodyRow, Index, Key, Location, SegmentUse};
use super::keys::run::RunWriter;
use super::scan::changes_of;
use super::segment::{Room, Segment};
use super::{LogStore, Sealed, Writer, footer};
use crate::error::StoreError;
use engine::journal::Digest;
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// Octets copied, or keys written, in one piece of work: commits wait for it.
const PIECE: u64 = 1 << 20;
const KEYS: usize = 4096;

/// Segments that the log may take beyond twice the octets of the latest versions: with few, keys go into
/// small runs. On a full disk a few are enough.
const SLACK: u64 = 8;
const TIGHT_SLACK: u64 = 2;

/// Full segments without a footer: an open reads all their frames.
const UNREAD: usize = 4;

/// What is still needed of a segment.
enum Needed {
    /// A change with these data.
    Data(Change, Vec<u8>),
    Plain(Change),
}

/// A segment being copied.
#[derive(Debug)]
pub(super) struct Compaction {
    segment: Arc<Segment>,
    /// The changes of it that are done.
    done: usize,
}

/// A run being written.
#[derive(Debug)]
pub(super) struct RunInProgress {
    writer: RunWriter,
    /// The last key that it has.
    last: Option<Digest>,
}

impl LogStore {
    /// Does one piece of work; returns whether more is left.
    pub(super) fn tidy_once(&self) -> Result<bool, StoreError> {
        let mut writer = self.writer();
        self.check()?;
        if writer.run.is_none() {
            self.segments.fill_reserve();
        }
        self.drop_expired_runs();
        if !writer.to_retire.is_empty() {
            // Nothing else was written since.
            self.append(&mut writer, 0, Room::Freeing, |_| ()).into_result()?;
            self.retire_useless(&mut writer);
            return Ok(true);
        }
        let done = self.keys_into_run(&mut writer)?
            || self.write_footer(&mut writer)?
            || self.compact(&mut writer)?;
        Ok(done)
    }

    fn drop_expired_runs(&self) {
        let expired = self.index_mut().keys.take_expired_runs();
        expired.iter().for_each(|run| run.unlink(&*self.disk, &self.held_runs));
    }

    fn keys_into_run(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        match self.continue_run(writer).and_then(|done| Ok(done || self.begin_run(writer)?)) {
            // Only when keys are in a run are their segments free: a part of the reserve makes room.
            Err(error) if error.is_disk_full() && self.segments.drop_spare() => {
                self.begin_run(writer)
            }
            done => done,
        }
    }

    /// Begins a run of the keys of full segments, if these are many, or in the way.
    fn begin_run(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let index = self.index();
        let full = |id: &SegmentId| writer.active.as_ref().is_none_or(|active| active.id != *id);
        let with_keys = || index.segments().iter().filter(|(id, of)| full(id) && of.keys > 0);
        let keys = with_keys().map(|(_, of)| of.keys).sum::<u64>();
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let is_due = keys >= self.options.run_keys
            || with_keys().count() as u64 > SLACK
            || self.to_compact(&index, writer).is_some_and(|(_, of)| of > 0);
        drop(index);
        if !is_due {
            return Ok(false);
        }
        self.start_run(writer)
    }

    /// False if full segments have no keys in memory.
    fn start_run(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let index = self.index();
        let full = |id: &SegmentId| writer.active.as_ref().is_none_or(|active| active.id != *id);
        let with_keys = || index.segments().iter().filter(|(id, of)| full(id) && of.keys > 0);
        let keys = with_keys().map(|(_, of)| of.keys).sum::<u64>();
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let (Some((first, _)), Some((last, _))) = (with_keys().next(), with_keys().next_back())
        else {
            return Ok(false);
        };
        let after = index.keys.in_runs().map_or(*first, |last| last + 1);
        let range = (after, *last);
        let created = RunWriter::create(&*self.disk, range, keys);
        drop(index);
        match created {
            Ok(run) => {
                writer.run = Some(RunInProgress { writer: run, last: None });
                Ok(true)
            }
            // The keys stay in memory and in their segments.
            Err(error) => Err(StoreError::io("writing remembered keys", error)),
        }
    }

    /// Puts the keys of all full segments into a run, if this one has any. Whether more is to do.
    pub(super) fn keys_of_into_run(
        &self,
        writer: &mut Writer,
        id: SegmentId,
    ) -> Result<bool, StoreError> {
        if self.index().segments().get(&id).is_none_or(|of| of.keys == 0) {
            return Ok(false);
        }
        if writer.run.is_none() {
            self.start_run(writer)?;
        }
        self.continue_run(writer)
    }

    /// Copies this segment next.
    pub(super) fn begin_copy(&self, writer: &mut Writer, segment: Arc<Segment>) {
        writer.compaction = Some(Compaction { segment, done: 0 });
    }

    fn continue_run(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let Some(run) = writer.run.take() else { return Ok(false) };
        let io = |e| StoreError::io("writing remembered keys", e);
        let RunInProgress { writer: mut run, mut last } = run;
        let added = self.add_keys(&mut run, &mut last);
        match added {
            Ok(true) => writer.run = Some(RunInProgress { writer: run, last }),
            Ok(false) => {
                let run = run.finish(&*self.disk).map_err(io)?;
                self.index_mut().add_run(run);
                writer.has_new_run = true;
                self.retire_useless(writer);
            }
            Err(error) => {
                run.abandon(&*self.disk);
                return Err(io(error));
            }
        }
        Ok(true)
    }

    /// Adds some keys; whether more may follow.
    fn add_keys(&self, run: &mut RunWriter, last: &mut Option<Digest>) -> io::Result<bool> {
        let index = self.index();
        let start = last.map_or(Unbounded, Excluded);
        let (mut seen, segments) = (0, run.last());
        for (key, row) in index.keys.latest().range((start, Unbounded)).take(KEYS) {
            seen += 1;
            *last = Some(*key);
            if row.segment <= segments && row.until >= index.keys.floor() {
                run.add(key, row.until, &row.record)?;
            }
        }
        Ok(seen == KEYS)
    }

    /// Writes the footer of a full segment.
    fn write_footer(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let exists = |sealed: &Sealed| self.index().segments().contains_key(&sealed.segment.id);
        writer.sealed.retain(exists);
        if writer.sealed.len() <= UNREAD {
            return Ok(false);
        }
        let Some(Sealed { segment, ending, changes }) = writer.sealed.pop_front() else {
            return Ok(false);
        };
        let io = |e| StoreError::io("writing a footer of the log", e);
        let kept = {
            let index = self.index();
            latest(changes).into_iter().filter(|change| index.needs(&segment, change)).collect()
        };
        let kept: Vec<Change> = kept;
        if footer::write(&segment, ending, &kept).map_err(io)? {
            segment.file.sync().map_err(io)?;
            self.index_mut().set_footer(segment.id);
        }
        Ok(true)
    }

    /// Copies a piece of the segment with the least that is needed, if the log takes too much.
    pub(super) fn compact(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let io = |e| StoreError::io("reading a segment of the log", e);
        let exists = |of: &Compaction| self.index().segments().contains_key(&of.segment.id);
        let begun = writer.compaction.take().filter(exists);
        let begun = match begun {
            Some(begun) => Some(begun),
            None => {
                let chosen = self.to_compact(&self.index(), writer);
                let chosen = chosen.map(|(id, _)| id).filter(|id| self.has_room_for(writer, *id));
                let segment = chosen.map(|id| self.segments.get(id)).transpose().map_err(io)?;
                segment.flatten().map(|segment| Compaction { segment, done: 0 })
            }
        };
        let Some(Compaction { segment, mut done }) = begun else { return Ok(false) };
        let all = self.changes_of(writer, &segment).map_err(io)?;
        let (count, mut needed, mut octets) = (all.len(), Vec::new(), 0);
        for change in all.into_iter().skip(done) {
            if octets >= PIECE {
                break;
            }
            done += 1;
            if let Some(one) = self.needed(&segment, change)? {
                octets += one.size();
                needed.push(one);
            }
        }
        if !needed.is_empty() {
            self.append(writer, octets, Room::Freeing, |encoder| encoder.copies(needed))
                .into_result()?;
        }
        if done < count {
            writer.compaction = Some(Compaction { segment, done });
            return Ok(true);
        }
        // What it superseded or deleted, the copies do now.
        self.index_mut().release(segment.id);
        self.retire_useless(writer);
        Ok(true)
    }

    /// Whether there is room for the copy of what is needed of a segment: a copy that ends half way takes
    /// the last room of a full disk, and gives none.
    fn has_room_for(&self, writer: &Writer, id: SegmentId) -> bool {
        if !self.segments.is_tight() {
            return true;
        }
        let needed = self.index().segments().get(&id).map_or(0, SegmentUse::needed);
        let left = writer.active.as_ref().map_or(0, |active| active.size - writer.used);
        left + self.segments.spare_octets() >= needed + self.segments.size / 4
    }

    fn changes_of(&self, writer: &Writer, segment: &Segment) -> io::Result<Vec<Change>> {
        match writer.sealed.iter().find(|sealed| sealed.segment.id == segment.id) {
            Some(sealed) => Ok(sealed.changes.clone()),
            None => {
                let used = self.index().segments().get(&segment.id).map(|of| of.used);
                changes_of(segment, used)
            }
        }
    }

    /// The segment to copy, and the keys that are in no run: first these must go into one.
    fn to_compact(&self, index: &Index, writer: &Writer) -> Option<(SegmentId, u64)> {
        let (used, live) = index.octets();
        let allowed = match self.segments.is_tight() || self.is_short() {
            // Room is dearer than writing.
            true => live.saturating_add(live / 4).saturating_add(TIGHT_SLACK * self.segments.size),
            false => live.saturating_mul(2).saturating_add(SLACK * self.segments.size),
        };
        if used <= allowed {
            return None;
        }
        let is_full = |id: &SegmentId| *id != writer.last && !writer.to_retire.contains(id);
        // A copy that gives no room back would be made again and again.
        let is_whole = |of: &SegmentUse| !of.is_set_aside && !of.is_damaged;
        let gives_room = |of: &SegmentUse| is_whole(of) && of.needed() <= of.used / 4 * 3;
        let full = index.segments().iter().filter(|(id, of)| is_full(id) && gives_room(of));
        full.min_by_key(|(_, of)| of.needed()).map(|(id, of)| (*id, of.keys))
    }

    /// The change as it is to be copied, if it is still needed.
    fn needed(&self, segment: &Segment, change: Change) -> Result<Option<Needed>, StoreError> {
        let index = self.index();
        // The newest segment has all values, and knows which segments there are.
        let is_of_all = |change: &Change| {
            use Change::{PutMeta, Retired, Segments};
            matches!(change, PutMeta { .. } | Segments { .. } | Retired { .. })
        };
        if is_of_all(&change) || !index.needs(segment, &change) {
            return Ok(None);
        }
        drop(index);
        let (key, at) = match &change {
            Change::PutEntry { precedence, id, data, .. } => {
                (Key::Entry(*precedence, *id), data.at(segment.id, 0))
            }
            Change::PutBody { id, data, .. } => (Key::Body(*id), data.at(segment.id, 0)),
            _ => return Ok(Some(Needed::Plain(change))),
        };
        let octets = read_checked(segment, key, at)?;
        Ok(octets.map(|octets| Needed::Data(change, octets)))
    }
}

/// Of several values of one name the last.
fn latest(changes: Vec<Change>) -> Vec<Change> {
    let mut names = BTreeSet::new();
    let mut latest: Vec<Change> = changes
        .into_iter()
        .rev()
        .filter(|change| match change {
            Change::PutMeta { name, .. } => names.insert(name.clone()),
            _ => true,
        })
        .collect();
    latest.reverse();
    latest
}

impl Index {
    /// Whether a change of this segment, placed in it, is still needed.
    fn needs(&self, segment: &Segment, change: &Change) -> bool {
        let exists = |old: &[SegmentId]| old.iter().any(|id| self.segments().contains_key(id));
        match change {
            Change::PutEntry { precedence, id, data, .. } => {
                let at = data.at(segment.id, 0);
                self.entry(*precedence, *id).is_some_and(|row| row.at == at)
            }
            Change::PutBody { id, data, .. } => {
                self.body(*id) == Some(BodyRow::Inline(data.at(segment.id, 0)))
            }
            Change::PutBodyFile { id, number, .. } => {
                matches!(self.body(*id), Some(BodyRow::File(file)) if file.segment == segment.id && file.number == *number)
            }
            Change::DeleteEntry { precedence, id, old } => {
                self.entry(*precedence, *id).is_none() && exists(old)
            }
            Change::DeleteBody { id, old } => self.body(*id).is_none() && exists(old),
            Change::Ends { segment: ended, .. } => self.recorder(*ended) == Some(segment.id),
            Change::PutMeta { .. } => true,
            Change::Segments { .. } | Change::Retired { .. } => true,
            // Keys are in runs.
            Change::PutSeen { .. } | Change::ForgetSeen { .. } => false,
        }
    }
}

/// The data at a place; `None`, and an error in the log, if they are damaged.
fn read_checked(segment: &Segment, key: Key, at: Location) -> Result<Option<Vec<u8>>, StoreError> {
    let octets =
        segment.data(key, at).map_err(|e| StoreError::io("reading a segment of the log", e))?;
    if octets.is_none() {
        tracing::error!(
            segment = segment.id,
            offset = at.offset,
            "damaged data stay where they are"
        );
    }
    Ok(octets)
}

impl Needed {
    fn size(&self) -> u64 {
        match self {
            Needed::Data(_, octets) => octets.len() as u64 + 96,
            Needed::Plain(change) => change.octets() + 96,
        }
    }
}

impl Encoder<'_> {
    /// Adds one frame with all of these.
    fn copies(&mut self, needed: Vec<Needed>) {
        let (mut frame, mut changes) = (FrameWriter::default(), Vec::new());
        for one in needed {
            let change = match one {
                Needed::Plain(change) => self.with_versions(change),
                Needed::Data(Change::PutEntry { precedence, id, queue, .. }, octets) => {
                    let key = Key::Entry(precedence, id);
                    let old = self.versions(key);
                    let data = frame.data(self.segment(), key, &octets);
                    Change::PutEntry { precedence, id, queue, data, old }
                }
                Needed::Data(Change::PutBody { id, .. }, octets) => {
                    let old = self.versions(Key::Body(id));
                    let data = frame.data(self.segment(), Key::Body(id), &octets);
                    Change::PutBody { id, data, old }
                }
                Needed::Data(other, _) => other,
            };
            frame.change(&change);
            changes.push(change);
        }
        self.push(frame, changes);
    }

    fn with_versions(&mut self, change: Change) -> Change {
        match change {
            Change::PutBodyFile { id, number, length, sums, .. } => {
                let old = self.versions(Key::Body(id));
                Change::PutBodyFile { id, number, length, sums, old }
            }
            // A deleted key has no row: the list of the change itself is the truth.
            other => other,
        }
    }
}
