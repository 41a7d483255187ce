//! The commit of a group: bodies first, then one write and one sync of the log, then the index.

use super::footer::{self, Ending};
use super::frame::{Change, FrameWriter, MAX_PART, SegmentId};
use super::index::{BodyRow, FileRow, Index, Key};
use super::keys::LIST;
use super::segment::{Room, Segment};
use super::{LogStore, Sealed, Writer};
use crate::caches::recent::{Key as RecentKey, Recent};
use crate::error::StoreError;
use crate::queue::{BatchId, Committed};
use crate::safeguard::{Safeguard, stands};
use crate::spool::Content;
use crate::staging::{MAX_NAME, MAX_RECORD, QUEUE_RECORD, StagedContents, check};
use base::{BodyId, Precedence};
use engine::journal::{Batch, Digest, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A batch whose bodies are available, and durable if they are files.
#[derive(Debug, Default)]
pub(super) struct Staged {
    ops: Vec<(Op, Option<Content>)>,
    contents: StagedContents,
}

impl LogStore {
    /// Takes over a part of another store.
    pub(super) fn import(&self, part: &Staged) -> Result<(), StoreError> {
        let mut writer = self.writer();
        self.write(&mut writer, &[part]).into_result()
    }

    pub(super) fn commit_group(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        if group.len() > 1 && is_in_sequence(&group) {
            return group.into_iter().flat_map(|one| self.commit_group(vec![one])).collect();
        }
        let mut writer = self.writer();
        if let Err(error) = self.check() {
            return group.iter().map(|_| Committed::NotDone(error.clone())).collect();
        }
        let mut staged: Vec<Result<Staged, StoreError>> =
            group.into_iter().map(|(_, batch)| self.stage(batch)).collect();
        self.sync_names(&mut staged);
        let conflicts = self.conflicts(&staged);
        let conflicts = match conflicts {
            Ok(conflicts) => conflicts,
            Err(error) => {
                let end = |slot: Result<Staged, StoreError>| {
                    if let Ok(batch) = slot {
                        self.undo(batch);
                    }
                    Committed::NotDone(error.clone())
                };
                return staged.into_iter().map(end).collect();
            }
        };
        let made: Vec<&Staged> = staged
            .iter()
            .zip(&conflicts)
            .filter_map(|(slot, conflict)| slot.as_ref().ok().filter(|_| conflict.is_empty()))
            .collect();
        let written = self.write_fitting(&mut writer, &made);
        drop(made);
        let mut written = written.into_iter();
        let end = |(slot, conflict): (Result<Staged, StoreError>, Vec<Digest>)| match slot {
            Err(error) => Committed::NotDone(error),
            Ok(batch) if !conflict.is_empty() => {
                self.undo(batch);
                Committed::Conflict(conflict)
            }
            Ok(batch) => self.finish(batch, written.next().unwrap_or(Committed::Durable)),
        };
        let ended = staged.into_iter().zip(conflicts).map(end).collect();
        self.retire_useless(&mut writer);
        ended
    }

    /// Makes the names of the files of these batches durable.
    fn sync_names(&self, staged: &mut [Result<Staged, StoreError>]) {
        let is_file =
            |(_, content): &(Op, Option<Content>)| matches!(content, Some(Content::File { .. }));
        let has_files = staged.iter().flatten().any(|batch| batch.ops.iter().any(is_file));
        if !has_files {
            return;
        }
        if let Err(error) = self.bodies.sync_names() {
            let error = self.stop("syncing the directory of bodies", error);
            for slot in staged {
                if let Ok(batch) = std::mem::replace(slot, Err(error.clone())) {
                    self.undo(batch);
                }
            }
        }
    }

    /// For each batch the keys that had to be absent and are remembered, before it or by an earlier
    /// one of the group.
    fn conflicts(
        &self,
        staged: &[Result<Staged, StoreError>],
    ) -> Result<Vec<Vec<Digest>>, StoreError> {
        let mut earlier = BTreeSet::new();
        let mut conflicts = Vec::with_capacity(staged.len());
        for slot in staged {
            let ops = slot.as_ref().map(|batch| batch.ops.as_slice()).unwrap_or_default();
            let keys = ops.iter().filter_map(|(op, _)| match op {
                Op::PutSeen { key, absent, .. } => Some((*key, *absent)),
                _ => None,
            });
            let mut conflict = Vec::new();
            for (key, absent) in keys.clone() {
                if absent && (earlier.contains(&key) || self.remembered(&key)?.is_some()) {
                    conflict.push(key);
                }
            }
            if !stands(Safeguard::Conflicts) {
                conflict.clear();
            }
            if conflict.is_empty() {
                earlier.extend(keys.map(|(key, _)| key));
            }
            conflicts.push(conflict);
        }
        Ok(conflicts)
    }

    /// Writes these batches, together if there is room; one end for each.
    fn write_fitting(&self, writer: &mut Writer, batches: &[&Staged]) -> Vec<Committed> {
        match self.write(writer, batches) {
            // A new segment found no room: smaller batches may fit into the one that is written.
            Committed::NotDone(error) if error.is_disk_full() && batches.len() > 1 => {
                batches.iter().map(|batch| self.write(writer, &[batch])).collect()
            }
            ended => vec![ended; batches.len()],
        }
    }

    fn write(&self, writer: &mut Writer, batches: &[&Staged]) -> Committed {
        if batches.is_empty() {
            return Committed::Durable;
        }
        let size = batches.iter().map(|batch| batch.size()).fold(0, u64::saturating_add);
        let room = batches.iter().map(|batch| batch.room()).min().unwrap_or(Room::Ordinary);
        self.append(writer, size, room, |encoder| {
            batches.iter().for_each(|batch| encoder.batch(batch));
        })
    }

    /// Writes frames of at most so many octets, makes them durable, and changes the index.
    pub(super) fn append(
        &self,
        writer: &mut Writer,
        size: u64,
        room: Room,
        fill: impl FnOnce(&mut Encoder<'_>),
    ) -> Committed {
        let segment = match self.segment_for(writer, size, room) {
            Ok(segment) => segment,
            Err(error) => return Committed::NotDone(StoreError::io("making a segment", error)),
        };
        let (octets, frames) = {
            let index = self.index();
            writer.group += 1;
            let mut encoder = Encoder::new(writer, &index, segment.id);
            encoder.first();
            encoder.runs();
            encoder.retired();
            fill(&mut encoder);
            (encoder.octets, encoder.frames)
        };
        let at = writer.used;
        if octets.len() as u64 > segment.size.saturating_sub(at) {
            let limit = usize::try_from(segment.size - at).unwrap_or(usize::MAX);
            let what = "a group of batches";
            return Committed::NotDone(StoreError::TooLong { what, length: octets.len(), limit });
        }
        let done = segment.file.write(at, &octets).and_then(|()| segment.file.sync());
        if let Err(error) = done {
            if !stands(Safeguard::Stop) {
                return Committed::NotDone(StoreError::io("writing the log", error));
            }
            return Committed::Unknown(self.stop("writing the log", error));
        }
        writer.used = at + octets.len() as u64;
        writer.ends.clear();
        writer.has_new_run = false;
        let recorded = std::mem::take(&mut writer.to_retire);
        writer.retired.extend(recorded);
        let mut dropped = Vec::new();
        {
            let mut index = self.index_mut();
            index.set_used(segment.id, writer.used);
            for (data, changes) in frames {
                for change in changes {
                    let change = change.placed(data);
                    writer.note(&change);
                    index.apply(segment.id, 0, change, &mut dropped);
                }
            }
        }
        for number in dropped {
            self.bodies.unlink(number);
        }
        Committed::Durable
    }

    /// Records that all before was durable: if the last frame is damaged, it was not an interrupted one.
    pub(super) fn end_in_order(&self, writer: &mut Writer) {
        let Some(active) = writer.active.as_ref().filter(|_| writer.used > 0) else { return };
        let fits = active.size - writer.used >= 2 * CHANGE;
        if fits && self.check().is_ok() {
            let end = Change::Ends { segment: active.id, used: writer.used };
            // If it fails, only that record is missing.
            let _ = self.append(writer, CHANGE, Room::Freeing, |encoder| {
                let mut frame = FrameWriter::default();
                frame.change(&end);
                encoder.push(frame, vec![end]);
            });
        }
    }

    /// The segment for so many octets.
    fn segment_for(
        &self,
        writer: &mut Writer,
        octets: u64,
        room: Room,
    ) -> std::io::Result<Arc<Segment>> {
        let first = writer.first_size(&self.index());
        if writer.active.is_some() && !self.segments.permits(room) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        if let Some(active) = &writer.active {
            let new = octets.saturating_add(first);
            // What gives room takes that of the footer, too.
            let footer = if room == Room::Freeing { 0 } else { writer.footer_size() };
            if active.size - writer.used >= new.saturating_add(footer) {
                return Ok(Arc::clone(active));
            }
        }
        let ended = writer.active.as_ref().map(|active| (active.id, writer.used));
        let ends: Vec<_> = writer.ends.iter().copied().chain(ended).collect();
        let size =
            octets.saturating_add(self.index().first_size(ends.len() + writer.to_retire.len()));
        let size = size.saturating_add(writer.list_size(&self.index()));
        // Half as much again for its footer.
        let size = size.saturating_add(size / 2);
        let segment = self.segments.create(writer.last.saturating_add(1), size, room)?;
        writer.seal();
        writer.existing = self.segments.sizes();
        let given_up = &writer.retired;
        writer.existing.retain(|(id, _)| !given_up.contains(id));
        // Until a repair accepts it, a loss is reported at every open.
        writer.existing.extend(self.index().missing.iter().map(|id| (*id, 0)));
        writer.ends = ends;
        writer.last = segment.id;
        writer.active = Some(Arc::clone(&segment));
        self.index_mut().add_segment(segment.id);
        Ok(segment)
    }

    /// Gives up the segments that nothing needs, once the one that is written has what all begin with.
    pub(super) fn retire_useless(&self, writer: &mut Writer) {
        // That it was given up is durable: otherwise it would be missed.
        for id in std::mem::take(&mut writer.retired) {
            self.index_mut().remove_segment(id);
            self.segments.retire(id, self.is_short());
        }
        let Some(active) = writer.active.as_ref().filter(|_| writer.used > 0) else { return };
        while let Some(id) = { self.index().useless(active.id, &writer.to_retire) } {
            writer.to_retire.insert(id);
        }
    }

    fn finish(&self, batch: Staged, ended: Committed) -> Committed {
        match &ended {
            Committed::Durable => {
                batch.contents.settle(&self.spools);
                let mut recent = self.recent();
                for (op, content) in batch.ops {
                    remember(op, content, &mut recent);
                }
            }
            // The store is stopped; files that nothing names are swept by the next open.
            Committed::Unknown(_) => self.recent().clear(),
            Committed::Conflict(_)
            | Committed::NotDone(_)
            | Committed::Fenced(_)
            | Committed::Changed(_) => {
                self.undo(batch);
            }
        }
        ended
    }

    /// Restores the spools and removes the files written for the batch.
    fn undo(&self, batch: Staged) {
        drop(batch.ops);
        batch.contents.undo(&self.spools, &self.bodies);
    }

    fn stage(&self, batch: Batch) -> Result<Staged, StoreError> {
        let mut staged = Staged::default();
        for op in batch {
            if let Err(error) = self.stage_op(op, &mut staged) {
                self.undo(staged);
                return Err(error);
            }
        }
        let size = staged.size();
        if size > MAX_PART as u64 {
            self.undo(staged);
            let length = usize::try_from(size).unwrap_or(usize::MAX);
            return Err(StoreError::TooLong { what: "a batch", length, limit: MAX_PART });
        }
        Ok(staged)
    }

    /// A content as it is stored, to be copied.
    fn committed_content(&self, id: BodyId) -> Result<Option<Content>, StoreError> {
        let row = self.index().body(id);
        Ok(match row {
            None => None,
            Some(BodyRow::Inline(at)) => self.inline_body(id, at)?.map(Content::Inline),
            Some(BodyRow::File(FileRow { number, length, sums, .. })) => {
                Some(Content::File { number, length, sums })
            }
        })
    }

    fn stage_op(&self, op: Op, staged: &mut Staged) -> Result<(), StoreError> {
        let mut content = None;
        match &op {
            Op::PutEntry { record, .. } => check(QUEUE_RECORD, record.len(), MAX_RECORD)?,
            Op::PutSeen { record, .. } => check("a remembered answer", record.len(), MAX_RECORD)?,
            Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                check("a name", name.len(), MAX_NAME)?;
                check("a named value", value.len(), MAX_RECORD)?;
            }
            Op::PutBody { source, .. } => {
                let staging = &mut staged.contents;
                let committed = |id| self.committed_content(id);
                let source = source.clone();
                content = Some(staging.stage(source, &self.spools, &self.bodies, committed)?);
            }
            Op::DeleteEntry { .. } | Op::DeleteBody { .. } | Op::ForgetSeen { .. } => {}
        }
        staged.ops.push((op, content));
        Ok(())
    }
}

/// Whether a batch of a group needs what another of it does: a key that one remembers and the next one forgets
/// is absent for those that follow, and a content that one changes may be copied by the next.
fn is_in_sequence(group: &[(BatchId, Batch)]) -> bool {
    let mut changed = BTreeSet::new();
    for (_, batch) in group {
        for op in batch {
            match op {
                Op::ForgetSeen { .. } => return true,
                op if op.copied().is_some_and(|from| changed.contains(&from)) => return true,
                _ => {}
            }
        }
        changed.extend(batch.iter().filter_map(|op| match op {
            Op::PutBody { id, .. } | Op::DeleteBody { id } => Some(*id),
            _ => None,
        }));
    }
    false
}

impl Index {
    /// Octets of the first frame of a segment that records so many ends, at most.
    fn first_size(&self, ends: usize) -> u64 {
        let meta = self.all_meta().map(|(name, value)| CHANGE + (name.len() + value.len()) as u64);
        let segments = 2 * 12 * (self.segments().len() as u64 + 1);
        3 * CHANGE + CHANGE * ends as u64 + segments + meta.sum::<u64>()
    }
}

impl Writer {
    /// Octets of what comes before a batch in the active segment, at most.
    fn first_size(&self, index: &Index) -> u64 {
        let retired = self.to_retire.len();
        let first = match self.used {
            0 => index.first_size(self.ends.len() + retired),
            _ => CHANGE + CHANGE * retired as u64,
        };
        first + self.list_size(index)
    }

    /// Octets of the list of runs, at most, if it is to be written.
    fn list_size(&self, index: &Index) -> u64 {
        if self.has_new_run { CHANGE + index.keys.list().len() as u64 } else { 0 }
    }

    /// Octets of the footer of the active segment, at most, with one more write.
    fn footer_size(&self) -> u64 {
        footer::size(self.head)
    }

    /// Notes a change of the active segment for its footer.
    fn note(&mut self, change: &Change) {
        if !change.is_of_keys() {
            self.head += change.octets();
            self.changes.push(change.clone());
        }
    }

    /// Nothing more is written to the active segment.
    pub(super) fn seal(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let (used, sequence, group) = (self.used, self.sequence, self.group);
        if let Some(segment) = self.active.take() {
            let ending = Ending { used, sequence, group };
            self.sealed.push_back(Sealed { segment, ending, changes });
        }
        (self.used, self.head) = (0, 0);
    }
}

/// Makes the frames of one write.
pub(super) struct Encoder<'a> {
    writer: &'a mut Writer,
    index: &'a Index,
    segment: SegmentId,
    /// Keys that the group changed, with their versions in other segments.
    here: BTreeMap<(u8, u64), Vec<SegmentId>>,
    octets: Vec<u8>,
    /// For each frame where its data begin in its segment, and its changes.
    frames: Vec<(u64, Vec<Change>)>,
}

impl<'a> Encoder<'a> {
    fn new(writer: &'a mut Writer, index: &'a Index, segment: SegmentId) -> Encoder<'a> {
        let (here, octets, frames) = (BTreeMap::new(), Vec::new(), Vec::new());
        Encoder { writer, index, segment, here, octets, frames }
    }

    /// The segment that it writes.
    pub(super) fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Adds a frame.
    pub(super) fn push(&mut self, frame: FrameWriter, changes: Vec<Change>) {
        self.writer.sequence += 1;
        let numbers = (self.writer.sequence, self.writer.group);
        let data = frame.finish(self.segment, numbers, &mut self.octets);
        self.frames.push((self.writer.used + data as u64, changes));
    }

    /// Adds what every segment begins with: where earlier ones end, and all named values.
    fn first(&mut self) {
        if self.writer.used > 0 {
            return;
        }
        let ends = self.writer.ends.iter();
        let mut first: Vec<Change> =
            ends.map(|(segment, used)| Change::Ends { segment: *segment, used: *used }).collect();
        first.push(Change::ForgetSeen { before: self.index.keys.floor() });
        first.push(Change::Segments { all: self.writer.existing.clone() });
        first.extend(
            self.index
                .all_meta()
                .map(|(name, value)| Change::PutMeta { name: name.clone(), value: value.clone() }),
        );
        let mut frame = FrameWriter::default();
        first.iter().for_each(|change| frame.change(change));
        self.push(frame, first);
    }

    /// Adds the list of the runs, if the log has another.
    fn runs(&mut self) {
        if !self.writer.has_new_run {
            return;
        }
        let value = self.index.keys.list().into();
        let change = Change::PutMeta { name: LIST.to_owned(), value };
        let mut frame = FrameWriter::default();
        frame.change(&change);
        self.push(frame, vec![change]);
    }

    /// Adds the segments that are to be given up once this is durable.
    fn retired(&mut self) {
        if self.writer.to_retire.is_empty() {
            return;
        }
        let retired = self.writer.to_retire.iter();
        let changes: Vec<Change> =
            retired.map(|segment| Change::Retired { segment: *segment }).collect();
        let mut frame = FrameWriter::default();
        changes.iter().for_each(|change| frame.change(change));
        self.push(frame, changes);
    }

    fn batch(&mut self, batch: &Staged) {
        let (mut frame, mut changes) = (FrameWriter::default(), Vec::new());
        for (op, content) in &batch.ops {
            let change = self.change(op, content.as_ref(), &mut frame);
            frame.change(&change);
            changes.push(change);
        }
        self.push(frame, changes);
    }

    /// The other segments with versions of this key.
    pub(super) fn versions(&mut self, key: Key) -> Vec<SegmentId> {
        let place = match key {
            Key::Entry(precedence, id) => (precedence.number(), id.0),
            Key::Body(id) => (u8::MAX, id.0),
        };
        let known = self.here.entry(place).or_insert_with(|| {
            let mut versions = self.index.versions(key);
            versions.retain(|segment| *segment != self.segment);
            versions
        });
        known.clone()
    }

    fn change(&mut self, op: &Op, content: Option<&Content>, frame: &mut FrameWriter) -> Change {
        match op {
            Op::PutEntry { precedence, id, queue, record } => Change::PutEntry {
                precedence: *precedence,
                id: *id,
                queue: *queue,
                data: frame.data(self.segment, Key::Entry(*precedence, *id), record),
                old: self.versions(Key::Entry(*precedence, *id)),
            },
            Op::DeleteEntry { precedence, id } => Change::DeleteEntry {
                precedence: *precedence,
                id: *id,
                old: self.versions(Key::Entry(*precedence, *id)),
            },
            Op::PutBody { id, .. } => {
                let old = self.versions(Key::Body(*id));
                match content {
                    Some(Content::File { number, length, sums }) => Change::PutBodyFile {
                        id: *id,
                        number: *number,
                        length: *length,
                        sums: Arc::clone(sums),
                        old,
                    },
                    Some(Content::Inline(octets)) => {
                        let data = frame.data(self.segment, Key::Body(*id), octets);
                        Change::PutBody { id: *id, data, old }
                    }
                    // It has one: `stage_op`.
                    None => Change::DeleteBody { id: *id, old },
                }
            }
            Op::DeleteBody { id } => {
                Change::DeleteBody { id: *id, old: self.versions(Key::Body(*id)) }
            }
            Op::PutSeen { key, until, record, .. } => {
                Change::PutSeen { key: *key, until: *until, record: record.clone() }
            }
            Op::ForgetSeen { before, .. } => Change::ForgetSeen { before: *before },
            Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                Change::PutMeta { name: name.clone(), value: value.clone() }
            }
        }
    }
}

/// Octets that a change takes at most, without its data: a key seldom has more than two versions.
const CHANGE: u64 = 96;

impl Staged {
    /// Changes whose contents are durable.
    pub(super) fn new(ops: Vec<(Op, Option<Content>)>) -> Staged {
        Staged { ops, contents: StagedContents::default() }
    }

    /// How much of the reserve of a full disk it may take.
    fn room(&self) -> Room {
        let frees = |(op, _): &(Op, Option<Content>)| match op {
            Op::DeleteEntry { .. }
            | Op::DeleteBody { .. }
            | Op::ForgetSeen { .. }
            | Op::PutMeta { .. }
            | Op::ReplaceMeta { .. } => true,
            Op::PutEntry { .. } | Op::PutBody { .. } | Op::PutSeen { .. } => false,
        };
        let is_highest = |(op, _): &(Op, Option<Content>)| matches!(op, Op::PutEntry { precedence, .. } if *precedence >= Precedence::Flash);
        if self.ops.iter().all(frees) {
            Room::Freeing
        } else if self.ops.iter().any(is_highest) {
            Room::Urgent
        } else {
            Room::Ordinary
        }
    }

    /// Octets that it takes in the log, at most.
    fn size(&self) -> u64 {
        let of = |(op, content): &(Op, Option<Content>)| {
            let data = match (op, content) {
                (_, Some(Content::Inline(octets))) => octets.len(),
                (_, Some(Content::File { sums, .. })) => sums.len() * 8,
                (Op::PutBody { .. }, None) => 0,
                (op, _) => op.held(),
            };
            CHANGE + data as u64
        };
        CHANGE + self.ops.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// Caches data that is likely to be read soon, and removes deleted data from the cache.
fn remember(op: Op, content: Option<Content>, recent: &mut Recent) {
    match (op, content) {
        (Op::PutEntry { precedence, id, record, .. }, _) => {
            recent.insert(RecentKey::Entry((precedence, id)), record);
        }
        (Op::DeleteEntry { precedence, id }, _) => {
            recent.forget(RecentKey::Entry((precedence, id)));
        }
        (Op::PutBody { id, .. }, Some(Content::Inline(octets))) => {
            recent.insert(RecentKey::Body(id), octets);
        }
        (Op::PutBody { id, .. } | Op::DeleteBody { id }, _) => recent.forget(RecentKey::Body(id)),
        (
            Op::PutSeen { .. }
            | Op::ForgetSeen { .. }
            | Op::PutMeta { .. }
            | Op::ReplaceMeta { .. },
            _,
        ) => {}
    }
}
