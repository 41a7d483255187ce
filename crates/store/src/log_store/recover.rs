//! The open: reads the heads of all frames, and rebuilds the index.

use super::Writer;
use super::frame::{self, Change, HEADER, Header, SegmentId};
use super::index::Index;
use super::segment::{Segment, Segments};
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// What the log holds.
pub(super) struct Recovered {
    pub index: Index,
    pub writer: Writer,
}

/// More than the frames of one write.
const GAP: u64 = 1 << 20;

/// Octets read at once.
const READ: usize = 1 << 20;

/// Reads all segments, the oldest first.
pub(super) fn recover(segments: &Segments) -> Result<Recovered, StoreError> {
    let io = |e| StoreError::io("reading the log", e);
    let mut index = Index::default();
    let mut writer = Writer {
        active: None,
        used: 0,
        sequence: 0,
        group: 0,
        last: 0,
        compaction: None,
        ends: Vec::new(),
    };
    let all = segments.all();
    let mut ends = BTreeMap::new();
    for segment in &all {
        ends.extend(ends_in(segment).map_err(io)?);
    }
    for segment in &all {
        let end = ends.get(&segment.id).copied();
        writer.last = segment.id;
        index.add_segment(segment.id);
        let used = read_segment(segment, end, &mut index, &mut writer).map_err(io)?;
        index.set_used(segment.id, used);
        if end.is_none() {
            writer.ends.push((segment.id, used));
        }
        writer.used = used;
    }
    // The last one is written on: a full disk need not have room for another.
    if let Some(last) = all.last().filter(|last| !ends.contains_key(&last.id)) {
        writer.active = Some(Arc::clone(last));
        writer.ends.retain(|(id, _)| *id != last.id);
    }
    // What an interrupted write left behind the end has lower numbers than what follows.
    writer.sequence += GAP;
    Ok(Recovered { index, writer })
}

/// The ends of earlier segments, which the first frame of a segment records.
fn ends_in(segment: &Segment) -> io::Result<Vec<(SegmentId, u64)>> {
    let mut window = Window { segment, start: 0, octets: Vec::new() };
    let first = read_frame(&mut window, 0)?;
    let changes = first.into_iter().flat_map(|(_, changes)| changes);
    let ends = changes.filter_map(|change| match change {
        Change::Ends { segment, used } => Some((segment, used)),
        _ => None,
    });
    Ok(ends.collect())
}

/// A frame whose data are perhaps not written.
struct Frame {
    /// Where it begins, and where its data do.
    at: u64,
    data: u64,
    changes: Vec<Change>,
}

/// Reads the frames of a segment up to its end. Where that is unknown, a crash may have interrupted
/// the last write: frames of it count while all their data are there, as whole batches.
fn read_segment(
    segment: &Segment,
    end: Option<u64>,
    index: &mut Index,
    writer: &mut Writer,
) -> io::Result<u64> {
    let mut window = Window { segment, start: 0, octets: Vec::new() };
    let (mut at, mut last_write) = (0, Vec::new());
    while end.is_none_or(|end| at < end)
        && let Some((header, changes)) = read_frame(&mut window, at)?
        && header.sequence > writer.sequence
    {
        if header.group != writer.group {
            apply(segment.id, std::mem::take(&mut last_write), index);
        }
        (writer.sequence, writer.group) = (header.sequence, header.group);
        let data = at + (HEADER + header.head) as u64;
        last_write.push(Frame { at, data, changes });
        at += header.frame() as u64;
    }
    if let Some(end) = end {
        if at != end {
            tracing::error!(segment = segment.id, at, end, "a segment of the log is damaged");
        }
        apply(segment.id, last_write, index);
        return Ok(end);
    }
    let mut whole = 0;
    for frame in &last_write {
        if !has_data(segment, frame)? {
            break;
        }
        whole += 1;
    }
    if let Some(torn) = last_write.get(whole) {
        tracing::info!(segment = segment.id, at = torn.at, "a commit was interrupted");
        at = torn.at;
    }
    last_write.truncate(whole);
    apply(segment.id, last_write, index);
    Ok(at)
}

/// All changes of a segment, each with the place where the data of its frame begin.
pub(super) fn changes_of(segment: &Segment) -> io::Result<Vec<(u64, Change)>> {
    let mut window = Window { segment, start: 0, octets: Vec::new() };
    let (mut at, mut last, mut found) = (0, 0, Vec::new());
    while let Some((header, changes)) = read_frame(&mut window, at)?
        && header.sequence > last
    {
        let data = at + (HEADER + header.head) as u64;
        found.extend(changes.into_iter().map(|change| (data, change)));
        last = header.sequence;
        at += header.frame() as u64;
    }
    Ok(found)
}

/// Whether the data of a frame agree with its checksums.
fn has_data(segment: &Segment, frame: &Frame) -> io::Result<bool> {
    for change in &frame.changes {
        if let Change::PutEntry { data, .. } | Change::PutBody { data, .. } = change {
            let at = data.at(segment.id, frame.data);
            let length = usize::try_from(at.length).unwrap_or(usize::MAX);
            if at.offset + u64::from(at.length) > segment.size {
                return Ok(false);
            }
            if frame::checksum(&segment.read(at.offset, length)?) != at.checksum {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn apply(segment: SegmentId, frames: Vec<Frame>, index: &mut Index) {
    let mut dropped = Vec::new();
    for frame in frames {
        for change in frame.changes {
            index.apply(segment, frame.data, change, &mut dropped);
        }
    }
}

/// The frame at this place, if there is one.
fn read_frame(window: &mut Window<'_>, at: u64) -> io::Result<Option<(Header, Vec<Change>)>> {
    let Some(octets) = window.get(at, HEADER)? else { return Ok(None) };
    let header = octets.first_chunk::<HEADER>().and_then(Header::read);
    let Some(header) = header else { return Ok(None) };
    if at + header.frame() as u64 > window.segment.size {
        return Ok(None);
    }
    let segment = window.segment.id;
    let Some(octets) = window.get(at, HEADER + header.head)? else { return Ok(None) };
    Ok(frame::read_changes(segment, octets))
}

/// A part of a segment in memory.
struct Window<'a> {
    segment: &'a Segment,
    start: u64,
    octets: Vec<u8>,
}

impl Window<'_> {
    /// Exactly these octets; `None` beyond the end.
    fn get(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        let left = self.segment.size.saturating_sub(at);
        if left < length as u64 {
            return Ok(None);
        }
        let has = at >= self.start && at + length as u64 <= self.start + self.octets.len() as u64;
        if !has {
            let wanted = (READ.max(length) as u64).min(left);
            self.octets = self.segment.read(at, usize::try_from(wanted).unwrap_or(length))?;
            self.start = at;
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.octets.get(from..from.saturating_add(length)))
    }
}
