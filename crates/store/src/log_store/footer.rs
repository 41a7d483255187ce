//! The footer of a segment that is full: the changes of it that are still needed, without the keys. An
//! open reads it in place of all frames, and it survives damage among them.
//!
//! It ends where the segment's file ends:
//!
//! ```text
//!  changes | checksum of the changes 8 | octets of the changes 8 | used octets of the segment 8 |
//!  last sequence 8 | last group 8 | checksum of the trailer 8
//! ```

use super::frame::{Change, SegmentId, changes_in};
use super::segment::Segment;
use crate::safeguard::{Safeguard, stands};
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const TRAILER: usize = 48;

/// What of a footer is known without its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Octets in use of the segment.
    pub used: u64,
    /// Numbers of its last frame and its last group.
    pub sequence: u64,
    pub group: u64,
}

fn checksum(segment: SegmentId, octets: &[u8]) -> u64 {
    // Not the seed of a frame.
    xxh3_64_with_seed(octets, u64::from(segment) | 1 << 63)
}

/// Octets of a footer whose changes have so many.
pub(super) fn size(changes: u64) -> u64 {
    changes + TRAILER as u64
}

/// Writes a footer, not yet durable. False if it has no room.
pub(super) fn write(segment: &Segment, ending: Ending, changes: &[Change]) -> io::Result<bool> {
    let mut octets = Vec::new();
    changes.iter().for_each(|change| change.write(&mut octets));
    let length = octets.len() as u64;
    let Some(at) = segment.size.checked_sub(size(length)).filter(|at| *at >= ending.used) else {
        return Ok(false);
    };
    let mut trailer = checksum(segment.id, &octets).to_le_bytes().to_vec();
    for value in [length, ending.used, ending.sequence, ending.group] {
        trailer.extend_from_slice(&value.to_le_bytes());
    }
    trailer.extend_from_slice(&checksum(segment.id, &trailer).to_le_bytes());
    octets.append(&mut trailer);
    segment.file.write(at, &octets)?;
    Ok(true)
}

/// A trailer: the ending, and the number of octets of the changes and their checksum.
fn trailer(segment: &Segment) -> io::Result<Option<(Ending, u64, u64)>> {
    let Some(at) = segment.size.checked_sub(TRAILER as u64) else { return Ok(None) };
    let Some(octets) = segment.readable(at, TRAILER)? else { return Ok(None) };
    let value = |n: usize| {
        let octets = octets.get(n * 8..n * 8 + 8)?;
        Some(u64::from_le_bytes(octets.try_into().ok()?))
    };
    let found = || {
        let is_whole = value(5)? == checksum(segment.id, octets.get(..TRAILER - 8)?);
        let is_whole = is_whole || !stands(Safeguard::FooterSums) && value(5)? != 0;
        let ending = Ending { used: value(2)?, sequence: value(3)?, group: value(4)? };
        let fits = ending.used.checked_add(value(1)?)? <= at;
        (is_whole && fits).then_some((ending, value(1)?, value(0)?))
    };
    Ok(found())
}

/// What of a footer is known without its changes; `None` if there is none, or it is damaged.
pub(super) fn ending(segment: &Segment) -> io::Result<Option<Ending>> {
    Ok(trailer(segment)?.map(|(ending, ..)| ending))
}

/// Reads a footer; `None` if there is none, or it is damaged.
pub(super) fn read(segment: &Segment) -> io::Result<Option<(Ending, Vec<Change>)>> {
    let Some((ending, length, sum)) = trailer(segment)? else { return Ok(None) };
    let at = segment.size - TRAILER as u64 - length;
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let Some(octets) = segment.readable(at, length)? else { return Ok(None) };
    if checksum(segment.id, &octets) != sum && stands(Safeguard::FooterSums) {
        return Ok(None);
    }
    Ok(changes_in(&octets).map(|changes| (ending, changes)))
}
