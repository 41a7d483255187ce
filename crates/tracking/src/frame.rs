//! Frames: one event each, with a checksum that only this segment's frames have.

use crate::event::Event;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The octets before each payload: two that mark a frame, its length, its checksum.
pub(crate) const HEADER: usize = 10;

/// What a frame begins with.
const MARK: [u8; 2] = [0xe7, 0x5a];

/// Longest payload. A thousand recipients with addresses of 500 octets have room.
pub(crate) const MAX_PAYLOAD: usize = 1 << 20;

/// What a segment begins with.
pub(crate) const START: [u8; 8] = *b"MTAEVT\x00\x01";

fn checksum(segment: u64, payload: &[u8]) -> [u8; 4] {
    let seed = segment ^ ((payload.len() as u64) << 40);
    let [a, b, c, d, ..] = xxh3_64_with_seed(payload, seed).to_be_bytes();
    [a, b, c, d]
}

/// Appends the frame of an event. Whether it was short enough.
pub(crate) fn put(segment: u64, event: &Event, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    out.extend_from_slice(&[0; HEADER]);
    let written = postcard::to_extend(event, std::mem::take(out));
    // Plain data into a growing buffer cannot fail.
    *out = written.unwrap_or_default();
    let payload = out.get(before + HEADER..).unwrap_or_default();
    if payload.is_empty() || payload.len() > MAX_PAYLOAD {
        out.truncate(before);
        return false;
    }
    let length = (payload.len() as u32).to_be_bytes();
    let checksum = checksum(segment, payload);
    let header = MARK.into_iter().chain(length).chain(checksum);
    out.iter_mut().skip(before).zip(header).for_each(|(to, octet)| *to = octet);
    true
}

/// The length of the payload that a header promises.
pub(crate) fn length(header: &[u8]) -> Option<usize> {
    let rest = header.strip_prefix(&MARK)?;
    let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
    (1..=MAX_PAYLOAD).contains(&length).then_some(length)
}

/// The payload at the front of these octets, where it is whole.
pub(crate) fn payload(segment: u64, octets: &[u8]) -> Option<&[u8]> {
    let length = length(octets)?;
    let payload = octets.get(HEADER..HEADER + length)?;
    (octets.get(6..HEADER)? == checksum(segment, payload)).then_some(payload)
}

/// Reads the payload of a frame.
pub(crate) fn decode(payload: &[u8]) -> Option<Event> {
    postcard::from_bytes(payload).ok()
}

/// Frames of a segment in memory.
pub(crate) struct Frames<'a> {
    segment: u64,
    octets: &'a [u8],
    at: usize,
    /// Places between frames that are none.
    pub(crate) damaged: u64,
    /// Where the last whole frame ends.
    pub(crate) end: usize,
}

impl<'a> Frames<'a> {
    /// Those of a segment's file.
    pub(crate) fn new(segment: u64, octets: &'a [u8]) -> Frames<'a> {
        let at = START.len();
        Frames { segment, octets, at, damaged: 0, end: at.min(octets.len()) }
    }

    /// Those of octets that begin where a frame does.
    pub(crate) fn within(segment: u64, octets: &'a [u8]) -> Frames<'a> {
        Frames { segment, octets, at: 0, damaged: 0, end: 0 }
    }
}

impl<'a> Iterator for Frames<'a> {
    /// Where its frame begins, and its payload.
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let mut skipped = false;
        loop {
            let rest = self.octets.get(self.at..).filter(|rest| rest.len() > HEADER)?;
            if let Some(payload) = payload(self.segment, rest) {
                let at = self.at;
                self.at = at + HEADER + payload.len();
                self.end = self.at;
                self.damaged += u64::from(skipped);
                return Some((at, payload));
            }
            // The next octet at which a whole frame begins.
            skipped = true;
            let next = rest.iter().skip(1).position(|octet| *octet == MARK[0])?;
            self.at += 1 + next;
        }
    }
}
