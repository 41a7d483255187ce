//! Opening the log: reads the footers of full segments and the frames of the latest, and rebuilds the index.

use super::footer;
use super::frame::{Change, SegmentId};
use super::index::Index;
use super::keys::{Keys, LIST};
use super::scan::{Frame, GAP, changes_of, ends_in, first_changes, scan};
use super::segment::Segments;
use super::{Sealed, Writer};
use crate::error::StoreError;
use crate::safeguard::{Safeguard, stands};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// What the log holds.
pub(super) struct Recovered {
    pub index: Index,
    pub writer: Writer,
    /// Parts that are lost: damaged batches, and segments that are missing or cut off.
    pub lost: u64,
}

/// Reads all segments, the oldest first.
pub(super) fn recover(segments: &Segments, keys: Keys) -> Result<Recovered, StoreError> {
    let io = |e| StoreError::io("reading the log", e);
    let keys_in_runs = keys.in_runs().unwrap_or(0);
    let mut index = Index::new(keys);
    let mut writer = Writer::default();
    let mut lost = 0;
    refuse_unreadable(segments).map_err(io)?;
    if let Some(last) = segments.all().last() {
        // Only in the last one can a sync have failed that was to make a commit durable. Of a process that was killed
        // before its sync the kernel may hold a commit that the disk does not: files that it gives up must not be
        // removed before it is durable.
        let segment = segments.get(*last).map_err(io)?;
        if let Some(segment) = segment {
            segment.file.sync().and_then(|()| segment.file.forget_cached()).map_err(io)?;
        }
    }
    for id in given_up(segments, &segments.all()).map_err(io)? {
        tracing::info!(segment = id, "a segment that was given up was still there");
        segments.retire(id, false);
    }
    let mut is_unread = false;
    let all = segments.all();
    let ends = ends(segments, &all).map_err(io)?;
    for id in &all {
        index.add_segment(*id);
    }
    for (at, id) in all.iter().enumerate() {
        let Some(segment) = segments.get(*id).map_err(io)? else { continue };
        writer.last = *id;
        let end = ends.get(id).copied();
        let footer = footer::read(&segment).map_err(io)?;
        let mut is_full = footer.is_some() || end.is_some() || at + 1 < all.len();
        let has_footer = footer.is_some();
        let mut changes = Vec::new();
        let (mut ending, mut has_unread) = (None, false);
        if let Some((of, footer)) = footer {
            ending = Some(of);
            apply(&mut index, *id, footer);
        }
        // Keys that are in no run are in frames only.
        if !has_footer || *id > keys_in_runs {
            let read = scan(&segment, end, (writer.sequence, writer.group)).map_err(io)?;
            lost += read.lost;
            if read.lost > 0 {
                index.set_damaged(*id, true);
            }
            has_unread = read.is_unread;
            is_unread |= has_unread;
            // What cannot be read may be whole: nothing is written there.
            is_full |= has_unread;
            changes = read.frames.into_iter().flat_map(Frame::into_changes).collect();
            changes.retain(|change| !has_footer || change.is_of_keys());
            apply(&mut index, *id, changes.clone());
            changes.retain(|change| !change.is_of_keys());
            ending = ending.or(Some(read.ending));
        }
        let Some(ending) = ending else { continue };
        writer.sequence = writer.sequence.max(ending.sequence);
        writer.group = writer.group.max(ending.group);
        writer.used = ending.used;
        index.set_used(*id, ending.used);
        if has_footer {
            index.set_footer(*id);
            continue;
        }
        if end.is_none() && is_full {
            writer.ends.push((*id, ending.used));
        }
        if is_full && has_unread {
            // Without a footer, which would not have all.
            continue;
        }
        if is_full {
            writer.sealed.push_back(Sealed { segment, ending, changes });
        } else {
            // It is written on: a full disk need not have room for another.
            writer.head = changes.iter().map(Change::octets).sum();
            writer.changes = changes;
            writer.active = Some(segment);
            writer.existing = segments.sizes();
        }
    }
    if is_unread {
        // It may have failed since.
        refuse_unreadable(segments).map_err(io)?;
    }
    lost += missing(segments, &all, &mut index);
    writer.existing.extend(index.missing.iter().map(|id| (*id, 0)));
    let listed = index.meta(LIST).cloned();
    writer.has_new_run = !index.keys.compare(&listed.unwrap_or_default());
    // The number of a segment that is missing is not used again.
    writer.last = writer.last.max(index.missing.last().copied().unwrap_or(0));
    if stands(Safeguard::FreshNumbers) {
        (writer.sequence, writer.group) = (writer.sequence + GAP, writer.group + GAP);
    }
    Ok(Recovered { index, writer, lost })
}

/// A page of a segment.
const PAGE: u64 = 4096;

/// Where nothing of any segment can be read, the device has failed, perhaps for a while: a queue that begins
/// empty would be no help.
///
/// # Errors
/// EIO; others of the disk.
fn refuse_unreadable(segments: &Segments) -> io::Result<()> {
    let mut failed = None;
    for (id, octets) in segments.sizes() {
        let Some(segment) = segments.get(id)? else { continue };
        for at in [0, octets.saturating_sub(PAGE)] {
            let length = usize::try_from(octets.min(PAGE)).unwrap_or(0);
            match segment.read(at, length) {
                Ok(_) => return Ok(()),
                Err(error) => failed = Some(error),
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Segments that were given up, whose files could not be removed, or came back with a crash. What they hold
/// must not be applied again: the segments that delete it may be gone.
fn given_up(segments: &Segments, all: &[SegmentId]) -> io::Result<BTreeSet<SegmentId>> {
    if !stands(Safeguard::GivenUp) {
        return Ok(BTreeSet::new());
    }
    for id in all.iter().rev() {
        let Some(segment) = segments.get(*id)? else { continue };
        let existing = first_changes(&segment)?.into_iter().find_map(|change| match change {
            Change::Segments { all } => {
                Some(BTreeSet::from_iter(all.into_iter().map(|(id, _)| id)))
            }
            _ => None,
        });
        // Earlier releases wrote an empty list into a segment whose first write was interrupted.
        let Some(existing) = existing.filter(|all| all.contains(id)) else { continue };
        let is_unknown = |of: &&SegmentId| *of < id && !existing.contains(of);
        let mut given_up: BTreeSet<SegmentId> = all.iter().filter(is_unknown).copied().collect();
        for change in changes_of(&segment, None)? {
            if let Change::Retired { segment } = change {
                given_up.extend(all.contains(&segment).then_some(segment));
            }
        }
        return Ok(given_up);
    }
    Ok(BTreeSet::new())
}

/// The number of segments that should be there and are not, or are cut.
fn missing(segments: &Segments, all: &[SegmentId], index: &mut Index) -> u64 {
    let last = all.last().copied().unwrap_or(0);
    let expected = index.expected.keys().copied();
    let newest = segments.newest().filter(|newest| *newest > last);
    index.missing = expected.chain(newest).filter(|id| !all.contains(id)).collect();
    for id in &index.missing {
        tracing::error!(segment = id, "a segment of the log is missing");
    }
    let mut count = index.missing.len() as u64;
    for (id, octets) in segments.sizes() {
        if octets < index.expected.get(&id).copied().unwrap_or(0).max(segments.size) {
            tracing::error!(segment = id, octets, "a segment of the log is cut off");
            index.set_damaged(id, true);
            count += 1;
        }
    }
    count
}

fn apply(index: &mut Index, id: SegmentId, changes: Vec<Change>) {
    let mut dropped = Vec::new();
    for change in changes {
        index.apply(id, 0, change, &mut dropped);
    }
}

/// Where segments end: footers and the first frames of later segments record it.
fn ends(segments: &Segments, all: &[SegmentId]) -> io::Result<BTreeMap<SegmentId, u64>> {
    let mut ends = BTreeMap::new();
    let mut is_without = false;
    for id in all {
        let Some(segment) = segments.get(*id)? else { continue };
        match footer::ending(&segment)? {
            Some(ending) => {
                ends.insert(*id, ending.used);
            }
            None => is_without = true,
        }
        if is_without {
            ends.extend(ends_in(&segment)?);
        }
    }
    Ok(ends)
}
