//! The index of a full segment: hashes in order, each with the place of its event's frame.
//!
//! ```text
//! head     8 mark, then 8 octets each: segment, its length, events, first and last time, entries,
//!          checksum of the fences; 8 checksum of all that
//! blocks   256 entries of 12 octets (hash, place), 8 checksum; the last block may have fewer
//! fences   the first hash of each block, 8 octets each
//! ```

use base::Utc;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MARK: [u8; 8] = *b"MTAIDX\x00\x01";
const HEAD: usize = 72;
const ENTRY: usize = 12;
/// Entries of a block.
const BLOCK: usize = 256;
/// Most entries of an index that are read: a damaged head must not ask for all memory.
const MAX_ENTRIES: u64 = 1 << 28;

/// What is known of a segment as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Its number.
    pub(crate) segment: u64,
    /// Octets of its file.
    pub(crate) length: u64,
    /// How many events it has.
    pub(crate) events: u64,
    /// The earliest and the latest time.
    pub(crate) times: (Utc, Utc),
}

/// Writes an index; sorts the entries.
pub(crate) fn build(summary: &Summary, entries: &mut [(u64, u32)]) -> Vec<u8> {
    entries.sort_unstable();
    let mut fences = Vec::new();
    let mut blocks = Vec::with_capacity(entries.len() * ENTRY + entries.len() / 16);
    for (number, block) in (0u64..).zip(entries.chunks(BLOCK)) {
        fences.extend(block.first().map_or(0, |(hash, _)| *hash).to_be_bytes());
        let from = blocks.len();
        for (hash, place) in block {
            blocks.extend(hash.to_be_bytes());
            blocks.extend(place.to_be_bytes());
        }
        let checksum = block_checksum(summary.segment, number, blocks.get(from..).unwrap_or(&[]));
        blocks.extend(checksum.to_be_bytes());
    }
    let mut out = MARK.to_vec();
    let numbers = [
        summary.segment,
        summary.length,
        summary.events,
        summary.times.0.0,
        summary.times.1.0,
        entries.len() as u64,
        xxh3_64_with_seed(&fences, summary.segment),
    ];
    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    out.extend(xxh3_64_with_seed(&out, summary.segment).to_be_bytes());
    out.append(&mut blocks);
    out.append(&mut fences);
    out
}

fn block_checksum(segment: u64, number: u64, block: &[u8]) -> u64 {
    xxh3_64_with_seed(block, segment ^ (number << 32))
}

/// An open index.
#[derive(Debug)]
pub(crate) struct Index {
    file: File,
    pub(crate) summary: Summary,
    entries: u64,
    fences: Vec<u64>,
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the index is damaged: {what}"))
}

fn number(octets: &[u8], at: usize) -> u64 {
    octets.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

impl Index {
    /// Reads head and fences.
    ///
    /// # Errors
    /// It cannot be read, or [`io::ErrorKind::InvalidData`]: it is damaged.
    pub(crate) fn open(file: File, segment: u64) -> io::Result<Index> {
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is too short"),
            _ => error,
        })?;
        let (before, _) = head.split_at(HEAD - 8);
        if !head.starts_with(&MARK)
            || number(&head, 8) != segment
            || number(&head, HEAD - 8) != xxh3_64_with_seed(before, segment)
        {
            return Err(damaged("its head"));
        }
        let entries = number(&head, 48);
        if entries > MAX_ENTRIES {
            return Err(damaged("its head"));
        }
        let blocks = entries.div_ceil(BLOCK as u64);
        let mut octets = vec![0; blocks as usize * 8];
        let at = HEAD as u64 + entries * ENTRY as u64 + blocks * 8;
        file.read_exact_at(&mut octets, at).map_err(|_| damaged("it is too short"))?;
        if xxh3_64_with_seed(&octets, segment) != number(&head, 56) {
            return Err(damaged("its fences"));
        }
        let fences = octets.chunks_exact(8).map(|fence| number(fence, 0)).collect();
        let summary = Summary {
            segment,
            length: number(&head, 16),
            events: number(&head, 24),
            times: (Utc(number(&head, 32)), Utc(number(&head, 40))),
        };
        Ok(Index { file, summary, entries, fences })
    }

    /// The places of events with this hash, in their order.
    ///
    /// # Errors
    /// As [`Index::open`].
    pub(crate) fn places(&self, hash: u64) -> io::Result<Vec<u32>> {
        let mut places = Vec::new();
        // The hash may stand at the end of the block before the first fence that is not below it.
        let mut block = self.fences.partition_point(|fence| *fence < hash).saturating_sub(1);
        while self.fences.get(block).is_some_and(|fence| *fence <= hash) {
            let left = self.entries - block as u64 * BLOCK as u64;
            let length = left.min(BLOCK as u64) as usize * ENTRY;
            let mut octets = vec![0; length + 8];
            let at = HEAD as u64 + block as u64 * (BLOCK * ENTRY + 8) as u64;
            self.file.read_exact_at(&mut octets, at).map_err(|_| damaged("it is too short"))?;
            let (entries, _) = octets.split_at(length);
            let checksum = block_checksum(self.summary.segment, block as u64, entries);
            if number(&octets, length) != checksum {
                return Err(damaged("one of its blocks"));
            }
            let its = entries.chunks_exact(ENTRY).filter(|entry| number(entry, 0) == hash);
            places.extend(its.filter_map(|entry| {
                entry.get(8..)?.first_chunk().map(|place| u32::from_be_bytes(*place))
            }));
            block += 1;
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entries: &mut [(u64, u32)]) -> (tempfile::NamedTempFile, Summary) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let summary = Summary { segment: 7, length: 99, events: 3, times: (Utc(1), Utc(5)) };
        std::fs::write(file.path(), build(&summary, entries)).unwrap();
        (file, summary)
    }

    #[test]
    fn a_hash_is_found_wherever_blocks_begin() {
        let mut entries: Vec<(u64, u32)> = (0..1_000).map(|n| (u64::from(n / 300), n)).collect();
        let (file, summary) = written(&mut entries);
        let index = Index::open(file.reopen().unwrap(), 7).unwrap();
        assert_eq!(index.summary, summary);
        for hash in 0..5 {
            let expected: Vec<u32> = (0..1_000).filter(|n| u64::from(n / 300) == hash).collect();
            assert_eq!(index.places(hash).unwrap(), expected);
        }
        let (file, _) = written(&mut []);
        assert!(Index::open(file.reopen().unwrap(), 7).unwrap().places(0).unwrap().is_empty());
    }

    #[test]
    fn each_changed_octet_is_found() {
        let mut entries: Vec<(u64, u32)> = (0..300).map(|n| (u64::from(n) << 50, n)).collect();
        let (file, _) = written(&mut entries);
        let sound = std::fs::read(file.path()).unwrap();
        assert!(Index::open(file.reopen().unwrap(), 8).is_err(), "of another segment");
        for at in 0..sound.len() {
            let mut octets = sound.clone();
            octets[at] ^= 0x40;
            std::fs::write(file.path(), &octets).unwrap();
            let all = Index::open(file.reopen().unwrap(), 7).and_then(|index| {
                [0, 299 << 50].iter().try_for_each(|h| index.places(*h).map(drop))
            });
            assert_eq!(all.map_err(|e| e.kind()), Err(io::ErrorKind::InvalidData), "octet {at}");
        }
    }
}
