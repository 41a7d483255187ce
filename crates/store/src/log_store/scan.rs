//! Reads the frames of a segment, and finds those behind a damaged one.

use super::footer::{self, Ending};
use super::frame::{
    self, ALIGNMENT, Change, HEADER, Header, PIECE_HEADER, SegmentId, read_changes,
};
use super::index::{Key, Location};
use super::segment::Segment;
use crate::error::readable;
use crate::safeguard::{Safeguard, stands};
use std::io;

/// The step of the numbers of frames and groups with each open. What an interrupted write left behind
/// the end has lower numbers than what follows.
pub(super) const GAP: u64 = 1 << 20;

/// Octets read at once, and in place of an area that cannot be read.
const READ: usize = 1 << 20;
const PAGE: usize = 4 << 10;

/// A frame whose data are perhaps not written.
#[derive(Debug)]
pub(super) struct Frame {
    /// Where it begins, and where its data do.
    at: u64,
    data: u64,
    /// Where the next one begins.
    end: u64,
    sequence: u64,
    group: u64,
    changes: Vec<Change>,
}

/// What a segment holds.
#[derive(Debug)]
pub(super) struct Scan {
    pub frames: Vec<Frame>,
    pub ending: Ending,
    /// Batches that are damaged.
    pub lost: u64,
    /// The device could not read a part that may hold frames: nothing is to be written over it.
    pub is_unread: bool,
}

/// Reads the frames of a segment with numbers above these. Where its end is not known, a crash may have
/// interrupted the last write: frames of it count while all their data are there, as whole batches.
pub(super) fn scan(
    segment: &Segment,
    end: Option<u64>,
    (sequence, group): (u64, u64),
) -> io::Result<Scan> {
    let mut window = Window::new(segment);
    let limit = end.unwrap_or(segment.size).min(segment.size);
    let mut frames: Vec<Frame> = Vec::new();
    // Frames before this one follow each other without a gap; and the batches missing in gaps.
    let (mut gaps, mut at, mut last) = (Vec::new(), 0, sequence);
    while at < limit {
        let Some(frame) = next_frame(&mut window, at, limit, last)? else { break };
        if frame.at != at {
            gaps.push((frames.len(), (frame.sequence - last - 1) % GAP));
        }
        (last, at) = (frame.sequence, frame.end);
        frames.push(frame);
    }
    let mut is_unread = window.unread_to > at;
    let used = match end {
        Some(end) => {
            if at < end {
                gaps.push((frames.len(), 1));
            }
            end
        }
        None => {
            let found = frames.len();
            drop_interrupted(segment.id, &mut frames, &mut gaps);
            drop_unwritten(segment, &mut frames, &mut is_unread)?;
            is_unread |= window.unread_to > 0 && frames.len() < found;
            match is_unread {
                true => {
                    gaps.push((frames.len(), 1));
                    limit
                }
                false => frames.last().map_or(0, |frame| frame.end),
            }
        }
    };
    let (sequence, group) =
        frames.last().map_or((sequence, group), |frame| (frame.sequence, frame.group));
    let lost = gaps.iter().map(|(_, missing)| missing.max(&1)).sum();
    if lost > 0 {
        is_unread |= window.unread_to > 0;
        tracing::error!(segment = segment.id, batches = lost, "a segment of the log is damaged");
    }
    Ok(Scan { frames, ending: Ending { used, sequence, group }, lost, is_unread })
}

/// What follows a gap is of an interrupted write if it is of one group: every group is durable before the
/// next one is written. But not if it records that the store was closed in order.
fn drop_interrupted(segment: SegmentId, frames: &mut Vec<Frame>, gaps: &mut Vec<(usize, u64)>) {
    while let Some((start, _)) = gaps.last().copied() {
        let after = frames.get(start..).unwrap_or_default();
        let first = after.first().map(|frame| frame.group);
        let is_ending =
            |change: &Change| matches!(change, Change::Ends { segment: of, .. } if *of == segment);
        let is_later =
            |frame: &Frame| Some(frame.group) != first || frame.changes.iter().any(is_ending);
        if after.iter().any(is_later) {
            return;
        }
        let batches = after.len();
        tracing::warn!(segment, batches, "the last write was interrupted, or is damaged");
        frames.truncate(start);
        gaps.pop();
    }
}

/// Of the last group only those count before the first whose data are not all there. Data that the device
/// cannot read may be there.
fn drop_unwritten(
    segment: &Segment,
    frames: &mut Vec<Frame>,
    is_unread: &mut bool,
) -> io::Result<()> {
    let Some(group) = frames.last().map(|frame| frame.group) else { return Ok(()) };
    if !stands(Safeguard::WholeGroups) {
        return Ok(());
    }
    let start = frames.iter().rposition(|frame| frame.group != group).map_or(0, |at| at + 1);
    for at in start..frames.len() {
        let Some(frame) = frames.get(at) else { break };
        let Some(has_data) = has_data(segment, frame)? else {
            *is_unread = true;
            continue;
        };
        if !has_data {
            let (at_octet, batches) = (frame.at, frames.len() - at);
            tracing::warn!(
                segment = segment.id,
                at = at_octet,
                batches,
                "the last write was interrupted, or is damaged: batches of it are dropped"
            );
            frames.truncate(at);
        }
    }
    Ok(())
}

/// Whether the data of a frame agree with their checksums; `None` if the device cannot read them.
fn has_data(segment: &Segment, frame: &Frame) -> io::Result<Option<bool>> {
    for change in &frame.changes {
        let (key, piece) = match change {
            Change::PutEntry { precedence, id, data, .. } => (Key::Entry(*precedence, *id), data),
            Change::PutBody { id, data, .. } => (Key::Body(*id), data),
            _ => continue,
        };
        let at = piece.at(segment.id, frame.data);
        let Some(is_there) = readable(segment.data_read(key, at))? else { return Ok(None) };
        if is_there.is_none() {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// The first frame from `at` on with a number above `last`.
fn next_frame(
    window: &mut Window<'_>,
    at: u64,
    limit: u64,
    last: u64,
) -> io::Result<Option<Frame>> {
    let mut from = at;
    while from < limit {
        if let Some((header, changes)) = read_frame(window, from, last)? {
            let (data, end) = (from + (HEADER + header.head) as u64, from + header.frame() as u64);
            let Header { sequence, group, .. } = header;
            return Ok(Some(Frame { at: from, data, end, sequence, group, changes }));
        }
        from += ALIGNMENT as u64;
    }
    Ok(None)
}

/// The frame at this place, if there is one with a number above `last`.
fn read_frame(
    window: &mut Window<'_>,
    at: u64,
    last: u64,
) -> io::Result<Option<(Header, Vec<Change>)>> {
    let Some(octets) = window.get(at, HEADER)? else { return Ok(None) };
    let Some(header) = octets.first_chunk::<HEADER>().and_then(Header::read) else {
        return Ok(None);
    };
    let is_plausible = header.sequence > last
        && header.sequence - last < 1 << 40
        && at.saturating_add(header.frame() as u64) <= window.segment.size;
    if !is_plausible {
        return Ok(None);
    }
    let segment = window.segment.id;
    let Some(octets) = window.get(at, HEADER + header.head)? else { return Ok(None) };
    Ok(read_changes(segment, octets))
}

/// The changes of the first frame of a segment.
pub(super) fn first_changes(segment: &Segment) -> io::Result<Vec<Change>> {
    let mut window = Window::new(segment);
    Ok(read_frame(&mut window, 0, 0)?.map(|(_, changes)| changes).unwrap_or_default())
}

/// All changes of a segment that is full.
pub(super) fn changes_of(segment: &Segment, end: Option<u64>) -> io::Result<Vec<Change>> {
    if let Some((_, changes)) = footer::read(segment)? {
        return Ok(changes);
    }
    let frames = scan(segment, end, (0, 0))?.frames;
    Ok(frames.into_iter().flat_map(Frame::into_changes).collect())
}

impl Frame {
    /// Its changes, their data placed in the segment.
    pub(super) fn into_changes(self) -> impl Iterator<Item = Change> {
        self.changes.into_iter().map(move |change| change.placed(self.data))
    }
}

impl Segment {
    /// These octets; `None` if the disk cannot read them.
    pub(super) fn readable(&self, at: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        readable(self.read(at, length))
    }

    /// The data of a key at a place; `None` if their checksum is wrong, or the device cannot read them.
    pub(super) fn data(&self, key: Key, at: Location) -> io::Result<Option<Vec<u8>>> {
        Ok(readable(self.data_read(key, at))?.flatten())
    }

    /// The data of a key at a place; `None` if their checksum is wrong.
    fn data_read(&self, key: Key, at: Location) -> io::Result<Option<Vec<u8>>> {
        let length = usize::try_from(at.length).unwrap_or(usize::MAX);
        if u64::from(at.offset) + (PIECE_HEADER as u64) + u64::from(at.length) > self.size {
            return Ok(None);
        }
        let mut octets = self.read(at.offset.into(), PIECE_HEADER + length)?;
        if frame::piece(self.id, key, &octets).is_none() {
            return Ok(None);
        }
        octets.drain(..PIECE_HEADER);
        Ok(Some(octets))
    }
}

/// A part of a segment in memory.
struct Window<'a> {
    segment: &'a Segment,
    start: u64,
    octets: Vec<u8>,
    /// Before here, and not after, there are places that could not be read.
    unread_to: u64,
}

impl Window<'_> {
    fn new(segment: &Segment) -> Window<'_> {
        Window { segment, start: 0, octets: Vec::new(), unread_to: 0 }
    }

    /// Exactly these octets; `None` beyond the end.
    fn get(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        let left = self.segment.size.saturating_sub(at);
        if left < length as u64 {
            return Ok(None);
        }
        let has = at >= self.start && at + length as u64 <= self.start + self.octets.len() as u64;
        if !has {
            let wanted = (READ.max(length) as u64).min(left);
            let wanted = usize::try_from(wanted).unwrap_or(length);
            self.octets = match self.segment.readable(at, wanted)? {
                Some(octets) => octets,
                None => self.legible(at, wanted),
            };
            self.start = at;
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.octets.get(from..from.saturating_add(length)))
    }

    /// These octets, with zeros in place of what cannot be read.
    fn legible(&mut self, at: u64, length: usize) -> Vec<u8> {
        tracing::error!(segment = self.segment.id, at, "a part of the log cannot be read");
        let mut octets = vec![0; length];
        for (n, page) in octets.chunks_mut(PAGE).enumerate() {
            let from = at + (n * PAGE) as u64;
            if self.segment.file.read(from, page).is_err() {
                page.fill(0);
                self.unread_to = self.unread_to.max(from + page.len() as u64);
            }
        }
        octets
    }
}

/// The segments whose ends a first frame records, and where.
pub(super) fn ends_in(segment: &Segment) -> io::Result<Vec<(SegmentId, u64)>> {
    let ends = first_changes(segment)?.into_iter().filter_map(|change| match change {
        Change::Ends { segment, used } => Some((segment, used)),
        _ => None,
    });
    Ok(ends.collect())
}
