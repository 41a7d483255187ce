//! Gives space back: what is still needed of a segment that is mostly dead is copied to the end of the
//! log, and the segment is used again.

use super::commit::Encoder;
use super::frame::{Change, FrameWriter, SegmentId, checksum};
use super::index::{BodyRow, Key, Location};
use super::segment::{Room, SIZE, Segment};
use super::{LogStore, recover};
use crate::error::StoreError;
use std::sync::Arc;

/// Octets copied in one piece of work: commits wait for it.
const PIECE: u64 = 1 << 20;

/// Octets that the log may take beyond twice those of the latest versions.
const SLACK: u64 = 2 * SIZE;

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

impl LogStore {
    /// Copies a piece of the segment with the least that is needed, if the log takes too much.
    pub(super) fn compact(&self) -> Result<usize, StoreError> {
        let mut writer = self.writer();
        self.check()?;
        self.segments.fill_reserve();
        let begun = writer.compaction.take().filter(|c| self.segments.get(c.segment.id).is_some());
        let Some(Compaction { segment, mut done }) =
            begun.or_else(|| self.begin_compaction(writer.last))
        else {
            return Ok(0);
        };
        let io = |e| StoreError::io("reading a segment of the log", e);
        let all = recover::changes_of(&segment).map_err(io)?;
        let (count, mut needed, mut octets) = (all.len(), Vec::new(), 0);
        for (data, change) in all.into_iter().skip(done) {
            if octets >= PIECE {
                break;
            }
            done += 1;
            if let Some(one) = self.needed(&segment, data, change)? {
                octets += one.size();
                needed.push(one);
            }
        }
        if !needed.is_empty() {
            self.append(&mut writer, octets, Room::Freeing, |encoder| encoder.copies(needed))
                .into_result()?;
        }
        if done < count {
            writer.compaction = Some(Compaction { segment, done });
            return Ok(1);
        }
        // What it superseded or deleted, the copies do now.
        self.index_mut().release(segment.id);
        self.retire_useless(&writer);
        Ok(usize::from(self.begin_compaction(writer.last).is_some()))
    }

    fn begin_compaction(&self, last: SegmentId) -> Option<Compaction> {
        self.segment_to_compact(last).map(|segment| Compaction { segment, done: 0 })
    }

    fn segment_to_compact(&self, last: SegmentId) -> Option<Arc<Segment>> {
        let index = self.index();
        let (used, live) = index.octets();
        if used <= live.saturating_mul(2).saturating_add(SLACK) {
            return None;
        }
        let sealed = index.segments().iter().filter(|(id, of)| **id != last && !of.is_set_aside);
        let least = sealed.min_by_key(|(_, of)| of.live)?;
        self.segments.get(*least.0)
    }

    /// The change as it is to be copied, if it is still needed.
    fn needed(
        &self,
        segment: &Segment,
        data: u64,
        change: Change,
    ) -> Result<Option<Needed>, StoreError> {
        let index = self.index();
        let exists = |old: &[SegmentId]| old.iter().any(|id| index.segments().contains_key(id));
        let at = match &change {
            Change::PutEntry { precedence, id, data: piece, .. } => {
                let at = piece.at(segment.id, data);
                index.entry(*precedence, *id).filter(|row| row.at == at).map(|row| row.at)
            }
            Change::PutBody { id, data: piece, .. } => {
                let at = piece.at(segment.id, data);
                index.body(*id).filter(|row| *row == BodyRow::Inline(at)).map(|_| at)
            }
            _ => None,
        };
        let is_needed = match &change {
            Change::PutEntry { .. } | Change::PutBody { .. } => at.is_some(),
            Change::DeleteEntry { precedence, id, old } => {
                index.entry(*precedence, *id).is_none() && exists(old)
            }
            Change::DeleteBody { id, old } => index.body(*id).is_none() && exists(old),
            Change::PutBodyFile { id, .. } => {
                index.body(*id).is_some_and(|row| row.segment() == segment.id)
            }
            Change::PutSeen { key, until, .. } => {
                index.key(key).is_some_and(|row| row.segment == segment.id && row.until == *until)
            }
            Change::Ends { segment, .. } => index.end(*segment).is_some(),
            // Expired keys that come back are forgotten again; the newest segment has all values.
            Change::ForgetSeen { .. } | Change::PutMeta { .. } => false,
        };
        drop(index);
        if !is_needed {
            return Ok(None);
        }
        let Some(at) = at else { return Ok(Some(Needed::Plain(change))) };
        Ok(read_checked(segment, at)?.map(|octets| Needed::Data(change, octets)))
    }
}

/// The data at a place; `None`, and an error in the log, if they are damaged.
fn read_checked(segment: &Segment, at: Location) -> Result<Option<Vec<u8>>, StoreError> {
    let length = usize::try_from(at.length).unwrap_or(usize::MAX);
    let octets = segment
        .read(at.offset, length)
        .map_err(|e| StoreError::io("reading a segment of the log", e))?;
    if checksum(&octets) != at.checksum {
        tracing::error!(
            segment = segment.id,
            offset = at.offset,
            "damaged data stay where they are"
        );
        return Ok(None);
    }
    Ok(Some(octets))
}

impl Needed {
    fn size(&self) -> u64 {
        match self {
            Needed::Data(_, octets) => octets.len() as u64 + 96,
            Needed::Plain(_) => 128,
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
                    let old = self.versions(Key::Entry(precedence, id));
                    let data = frame.data(&octets);
                    Change::PutEntry { precedence, id, queue, data, old }
                }
                Needed::Data(Change::PutBody { id, .. }, octets) => {
                    let (old, data) = (self.versions(Key::Body(id)), frame.data(&octets));
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
            Change::PutBodyFile { id, number, length, .. } => {
                let old = self.versions(Key::Body(id));
                Change::PutBodyFile { id, number, length, old }
            }
            // A deleted key has no row: the list of the change itself is the truth.
            other => other,
        }
    }
}
