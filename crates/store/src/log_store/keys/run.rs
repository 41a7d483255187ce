//! A run: a file with the remembered keys of a range of segments, sorted, written once and dropped whole
//! when all of them have expired.
//!
//! ```text
//!  block ... block | index | trailer
//!  block:    checksum 8 | octets of the rows 4 | number of rows 4 | rows
//!  row:      key 32 | expiry 8 | octets of the record 4 | record
//!  index:    first octets of the first key 8, offset 4, length 4 of each block | words of the filter
//!  trailer:  blocks 4 | words 4 | keys 8 | earliest, latest expiry 8 + 8 | first, last segment 4 + 4 |
//!            checksum of index and trailer 8
//! ```
//!
//! Memory holds the index. A damaged block loses its own keys; without its index a run is read block by
//! block.

use crate::disk::{Disk, DiskFile};
use crate::error::{StoreError, readable};
use crate::held::HeldFiles;
use crate::log_store::frame::SegmentId;
use crate::safeguard::{Safeguard, stands};
use base::Utc;
use bytes::Bytes;
use engine::journal::Digest;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const DIRECTORY: &str = "keys";
const SUFFIX: &str = ".keys";
const UNFINISHED: &str = ".new";

/// A block ends with the row that reaches this many octets.
const BLOCK: usize = 4 << 10;
const BLOCK_HEADER: usize = 16;
const TRAILER: usize = 48;
/// Octets that are read at once where the index is damaged: what a disk cannot read is a part of them.
const PART: usize = 4096;
/// Octets of a row without its record.
const ROW: usize = 44;
/// Bits of the filter for each key, and of those how many are set.
const BITS: usize = 10;
const PROBES: usize = 4;

/// The keys of a range of segments.
#[derive(Debug)]
pub(in crate::log_store) struct Run {
    pub first: SegmentId,
    pub last: SegmentId,
    pub count: u64,
    pub earliest: Utc,
    pub latest: Utc,
    /// Blocks that could not be read when its index was made again, and octets of its file.
    damaged: usize,
    pub octets: u64,
    blocks: Vec<Block>,
    filter: Filter,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// The first 8 octets of its first key.
    prefix: u64,
    offset: u32,
    length: u32,
}

/// A Bloom filter.
#[derive(Debug)]
struct Filter(Vec<u64>);

/// A remembered key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::log_store) struct Remembered {
    pub until: Utc,
    pub record: Bytes,
}

fn path(last: SegmentId, suffix: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{last:08x}{suffix}"))
}

fn prefix(key: &Digest) -> u64 {
    key.0.first_chunk::<8>().map_or(0, |octets| u64::from_be_bytes(*octets))
}

fn length(octets: usize) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

fn size(octets: u32) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(octets.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(octets.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl Filter {
    fn new(keys: usize) -> Filter {
        Filter(vec![0; (keys * BITS).div_ceil(64).max(1)])
    }

    /// Keys are digests, so any part of them serves as a hash.
    fn places(&self, key: &Digest) -> [(usize, u64); PROBES] {
        let bits = (self.0.len() as u64 * 64).max(1);
        std::array::from_fn(|part| {
            let bit = u64_at(&key.0, part * 8).unwrap_or(0) % bits;
            (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
        })
    }

    fn insert(&mut self, key: &Digest) {
        for (word, bit) in self.places(key) {
            if let Some(word) = self.0.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn lacks(&self, key: &Digest) -> bool {
        !self
            .places(key)
            .into_iter()
            .all(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }
}

/// The rows of a block with its header, in order; `None` if its checksum is wrong.
fn rows_of(last: SegmentId, octets: &[u8]) -> Option<Vec<(Digest, Remembered)>> {
    let (sum, rest) = (u64_at(octets, 0)?, octets.get(8..)?);
    if sum != xxh3_64_with_seed(rest, u64::from(last)) && stands(Safeguard::RunSums) {
        return None;
    }
    let (count, mut left) = (u32_at(rest, 4)?, rest.get(8..)?);
    let mut rows = Vec::new();
    for _ in 0..count {
        let (key, row) = left.split_first_chunk::<32>()?;
        let (until, length) = (u64_at(row, 0)?, size(u32_at(row, 8)?));
        let record = row.get(12..)?.get(..length)?;
        left = row.get(12 + length..)?;
        let record = Bytes::copy_from_slice(record);
        rows.push((Digest(*key), Remembered { until: Utc(until), record }));
    }
    Some(rows)
}

/// The rows of the block that begins here, if one does.
fn block_at(last: SegmentId, octets: &[u8]) -> Option<Vec<(Digest, Remembered)>> {
    let (rows, count) = (size(u32_at(octets, 8)?), size(u32_at(octets, 12)?));
    if count == 0 || count.checked_mul(ROW)? > rows {
        return None;
    }
    rows_of(last, octets.get(..BLOCK_HEADER.checked_add(rows)?)?)
}

impl Run {
    /// Whether this key is certainly not in it.
    pub(in crate::log_store) fn lacks(&self, key: &Digest) -> bool {
        self.filter.lacks(key)
    }

    /// The number of its blocks.
    pub(in crate::log_store) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// What it has for a key. A damaged block has nothing: it is counted, and an error in the log.
    pub(in crate::log_store) fn get(
        &self,
        disk: &dyn Disk,
        key: &Digest,
        damaged: &mut u64,
    ) -> io::Result<Option<Remembered>> {
        if self.lacks(key) {
            return Ok(None);
        }
        let wanted = prefix(key);
        // Keys with equal first octets may go over the end of a block.
        let end = self.blocks.partition_point(|block| block.prefix <= wanted);
        let start = self.blocks.partition_point(|block| block.prefix < wanted).saturating_sub(1);
        for block in self.blocks.get(start..end).unwrap_or_default() {
            let Some(rows) = self.read(disk, *block)? else {
                tracing::error!(
                    run = self.last,
                    offset = block.offset,
                    "remembered keys are damaged"
                );
                *damaged += 1;
                continue;
            };
            if let Ok(at) = rows.binary_search_by_key(&key, |(key, _)| key) {
                return Ok(rows.into_iter().nth(at).map(|(_, found)| found));
            }
        }
        Ok(None)
    }

    /// The first rows after a key, at most `limit`; `damaged` counts blocks that cannot be read.
    pub(in crate::log_store) fn after(
        &self,
        disk: &dyn Disk,
        after: Option<&Digest>,
        limit: usize,
        damaged: &mut u64,
    ) -> io::Result<Vec<(Digest, Remembered)>> {
        let start = after.map_or(0, |after| {
            let wanted = prefix(after);
            self.blocks.partition_point(|block| block.prefix < wanted).saturating_sub(1)
        });
        let mut page = Vec::new();
        for block in self.blocks.get(start..).unwrap_or_default() {
            if page.len() >= limit {
                break;
            }
            match self.read(disk, *block)? {
                Some(rows) => {
                    page.extend(rows.into_iter().filter(|(key, _)| Some(key) > after));
                }
                None => *damaged += 1,
            }
        }
        page.truncate(limit);
        Ok(page)
    }

    fn read(&self, disk: &dyn Disk, block: Block) -> io::Result<Option<Vec<(Digest, Remembered)>>> {
        let (file, size) = (path(self.last, SUFFIX), size(block.length));
        let octets = readable(disk.read_range(&file, block.offset.into(), size))?;
        Ok(octets.and_then(|octets| rows_of(self.last, &octets)))
    }

    /// The number of parts whose checksums are wrong.
    pub(in crate::log_store) fn verify(&self, disk: &dyn Disk) -> io::Result<usize> {
        let mut damaged = self.damaged;
        for block in &self.blocks {
            damaged += usize::from(self.read(disk, *block)?.is_none());
        }
        Ok(damaged)
    }

    /// Writes it anew with the keys that can be read, in its place. Nobody reads it meanwhile.
    pub(in crate::log_store) fn rewritten(&self, disk: &dyn Disk) -> io::Result<Run> {
        let keys = usize::try_from(self.count).unwrap_or(usize::MAX);
        let mut writer = RunWriter::create(disk, (self.first, self.last), keys)?;
        for block in &self.blocks {
            for (key, row) in self.read(disk, *block)?.into_iter().flatten() {
                writer.add(&key, row.until, &row.record)?;
            }
        }
        writer.finish(disk)
    }

    /// Opens the run of this number.
    fn open(disk: &dyn Disk, last: SegmentId, octets: u64) -> io::Result<Run> {
        match Run::with_index(disk, last, octets)? {
            Some(run) => Ok(run),
            None => Run::without_index(disk, last, octets),
        }
    }

    /// `None` if its index is damaged.
    fn with_index(disk: &dyn Disk, last: SegmentId, octets: u64) -> io::Result<Option<Run>> {
        let Some(at) = octets.checked_sub(TRAILER as u64) else { return Ok(None) };
        let file = path(last, SUFFIX);
        let Some(trailer) = readable(disk.read_range(&file, at, TRAILER))? else {
            return Ok(None);
        };
        let index = || {
            let (blocks, words) = (u32_at(&trailer, 0)?, u32_at(&trailer, 4)?);
            let size = u64::from(blocks).checked_mul(16)?.checked_add(u64::from(words) * 8)?;
            let start = at.checked_sub(size)?;
            Some((size_of_index(size)?, start, blocks))
        };
        let Some((size, start, blocks)) = index() else { return Ok(None) };
        let Some(mut octets_of) = readable(disk.read_range(&file, start, size))? else {
            return Ok(None);
        };
        octets_of.extend_from_slice(&trailer);
        Ok(read_index(&octets_of, last, blocks, octets))
    }

    /// Makes the index again from what is left of the blocks.
    fn without_index(disk: &dyn Disk, last: SegmentId, octets: u64) -> io::Result<Run> {
        let all = readable_part(disk, &path(last, SUFFIX), octets)?;
        let (mut at, mut blocks, mut found) = (0, Vec::new(), Vec::new());
        while let Some(rest) = all.get(at..).filter(|rest| rest.len() > BLOCK_HEADER) {
            let Some(rows) = block_at(last, rest) else {
                at += 1;
                continue;
            };
            let size = BLOCK_HEADER + u32_at(rest, 8).map_or(0, size);
            if let Some((first, _)) = rows.first() {
                let (offset, length) = (length(at), length(size));
                blocks.push(Block { prefix: prefix(first), offset, length });
            }
            at += size;
            found.extend(rows.into_iter().map(|(key, row)| (key, row.until)));
        }
        tracing::error!(run = last, keys = found.len(), "the index of remembered keys is damaged");
        let mut filter = Filter::new(found.len());
        found.iter().for_each(|(key, _)| filter.insert(key));
        let expiries = || found.iter().map(|(_, until)| *until);
        Ok(Run {
            first: last,
            last,
            count: found.len() as u64,
            earliest: expiries().min().unwrap_or(Utc(u64::MAX)),
            latest: expiries().max().unwrap_or(Utc(0)),
            damaged: 1,
            octets,
            blocks,
            filter,
        })
    }

    pub(in crate::log_store) fn file(&self) -> PathBuf {
        path(self.last, SUFFIX)
    }

    /// Removes its file.
    pub(in crate::log_store) fn unlink(&self, disk: &dyn Disk, held: &HeldFiles) {
        if let Err(error) = held.unlink(disk, &self.file()) {
            tracing::warn!(run = self.last, %error, "cannot remove expired keys");
        }
    }
}

/// All octets of a file, with zeros where it cannot be read.
fn readable_part(disk: &dyn Disk, file: &Path, octets: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    while (all.len() as u64) < octets {
        let left = octets - all.len() as u64;
        let part = usize::try_from(left).unwrap_or(PART).min(PART);
        let read = readable(disk.read_range(file, all.len() as u64, part))?;
        all.extend(read.unwrap_or_else(|| vec![0; part]));
    }
    Ok(all)
}

fn size_of_index(octets: u64) -> Option<usize> {
    usize::try_from(octets).ok().filter(|octets| *octets <= 1 << 30)
}

fn read_index(octets: &[u8], last: SegmentId, blocks: u32, file: u64) -> Option<Run> {
    let (rest, sum) = octets.split_last_chunk::<8>()?;
    let is_right = u64::from_le_bytes(*sum) == xxh3_64_with_seed(rest, u64::from(last));
    if !is_right && stands(Safeguard::RunSums) {
        return None;
    }
    let (index, rest) = rest.split_at_checked(size(blocks).checked_mul(16)?)?;
    let (words, trailer) = rest.split_at_checked(rest.len().checked_sub(TRAILER - 8)?)?;
    let block = |row: &[u8]| {
        let (prefix, offset, length) = (u64_at(row, 0)?, u32_at(row, 8)?, u32_at(row, 12)?);
        Some(Block { prefix, offset, length })
    };
    Some(Run {
        first: u32_at(trailer, 32)?,
        last,
        count: u64_at(trailer, 8)?,
        earliest: Utc(u64_at(trailer, 16)?),
        latest: Utc(u64_at(trailer, 24)?),
        damaged: 0,
        octets: file,
        blocks: index.chunks_exact(16).map(block).collect::<Option<_>>()?,
        filter: Filter(words.chunks_exact(8).map(|word| u64_at(word, 0)).collect::<Option<_>>()?),
    })
}

/// Opens all runs, the oldest first, and removes what an interrupted one left.
pub(in crate::log_store) fn open_all(disk: &dyn Disk) -> Result<Vec<Run>, StoreError> {
    let io = |e| StoreError::io("opening the remembered keys", e);
    disk.create_dir(Path::new(DIRECTORY)).map_err(io)?;
    disk.sync_dir(Path::new("")).map_err(io)?;
    disk.sync_dir(Path::new(DIRECTORY)).map_err(io)?;
    let mut runs = Vec::new();
    for (name, octets) in disk.list(Path::new(DIRECTORY)).map_err(io)? {
        if name.ends_with(UNFINISHED) {
            disk.unlink(&Path::new(DIRECTORY).join(&name)).map_err(io)?;
        }
        let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 8);
        if let Some(last) = digits.and_then(|digits| SegmentId::from_str_radix(digits, 16).ok()) {
            runs.push(Run::open(disk, last, octets).map_err(io)?);
        }
    }
    runs.sort_by_key(|run| run.last);
    Ok(runs)
}

/// A run being written, its keys in ascending order.
#[derive(Debug)]
pub(in crate::log_store) struct RunWriter {
    run: Run,
    file: Box<dyn DiskFile>,
    /// The rows of the block that is made, their number and their first key.
    rows: Vec<u8>,
    count: u32,
    prefix: u64,
    written: u64,
}

impl RunWriter {
    /// Begins a run of so many keys at most.
    pub(in crate::log_store) fn create(
        disk: &dyn Disk,
        (first, last): (SegmentId, SegmentId),
        keys: usize,
    ) -> io::Result<RunWriter> {
        let unfinished = path(last, UNFINISHED);
        // An attempt before may have found a full disk.
        match disk.unlink(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(&unfinished)?;
        let run = Run {
            first,
            last,
            count: 0,
            earliest: Utc(u64::MAX),
            latest: Utc(0),
            damaged: 0,
            octets: 0,
            blocks: Vec::new(),
            filter: Filter::new(keys),
        };
        Ok(RunWriter { run, file, rows: Vec::new(), count: 0, prefix: 0, written: 0 })
    }

    /// The last segment whose keys it takes.
    pub(in crate::log_store) fn last(&self) -> SegmentId {
        self.run.last
    }

    /// Adds a key, higher than those before.
    pub(in crate::log_store) fn add(
        &mut self,
        key: &Digest,
        until: Utc,
        record: &[u8],
    ) -> io::Result<()> {
        if self.count == 0 {
            self.prefix = prefix(key);
        }
        self.rows.extend_from_slice(&key.0);
        self.rows.extend_from_slice(&until.0.to_le_bytes());
        self.rows.extend_from_slice(&length(record.len()).to_le_bytes());
        self.rows.extend_from_slice(record);
        self.count += 1;
        self.run.count += 1;
        self.run.earliest = self.run.earliest.min(until);
        self.run.latest = self.run.latest.max(until);
        self.run.filter.insert(key);
        if self.rows.len() >= BLOCK { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let mut octets = vec![0; 8];
        octets.extend_from_slice(&length(self.rows.len()).to_le_bytes());
        octets.extend_from_slice(&self.count.to_le_bytes());
        octets.append(&mut self.rows);
        self.count = 0;
        let sum = xxh3_64_with_seed(octets.get(8..).unwrap_or_default(), self.run.last.into());
        if let Some(place) = octets.first_chunk_mut::<8>() {
            *place = sum.to_le_bytes();
        }
        let offset = u32::try_from(self.written).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.run.blocks.push(Block { prefix: self.prefix, offset, length: length(octets.len()) });
        self.append(&octets)
    }

    fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        self.written += octets.len() as u64;
        self.file.append(octets)
    }

    /// Makes it durable.
    pub(in crate::log_store) fn finish(mut self, disk: &dyn Disk) -> io::Result<Run> {
        self.end_block()?;
        let mut octets = Vec::new();
        for block in &self.run.blocks {
            octets.extend_from_slice(&block.prefix.to_le_bytes());
            octets.extend_from_slice(&block.offset.to_le_bytes());
            octets.extend_from_slice(&block.length.to_le_bytes());
        }
        for word in &self.run.filter.0 {
            octets.extend_from_slice(&word.to_le_bytes());
        }
        let run = &self.run;
        octets.extend_from_slice(&length(run.blocks.len()).to_le_bytes());
        octets.extend_from_slice(&length(run.filter.0.len()).to_le_bytes());
        for value in [run.count, run.earliest.0, run.latest.0] {
            octets.extend_from_slice(&value.to_le_bytes());
        }
        octets.extend_from_slice(&run.first.to_le_bytes());
        octets.extend_from_slice(&run.last.to_le_bytes());
        let sum = xxh3_64_with_seed(&octets, u64::from(run.last));
        octets.extend_from_slice(&sum.to_le_bytes());
        self.append(&octets)?;
        self.file.sync()?;
        disk.rename(&path(self.run.last, UNFINISHED), &path(self.run.last, SUFFIX))?;
        disk.sync_dir(Path::new(DIRECTORY))?;
        self.run.octets = self.written;
        Ok(self.run)
    }

    /// Gives it up.
    pub(in crate::log_store) fn abandon(self, disk: &dyn Disk) {
        // Otherwise the next attempt or open removes it.
        let _ = disk.unlink(&path(self.run.last, UNFINISHED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyDisk;
    use base::rng::Rng;
    use std::collections::BTreeMap;

    fn keys(count: usize) -> BTreeMap<Digest, Remembered> {
        let mut rng = Rng::new(5);
        let mut key = |n: usize| {
            let mut key = Digest(std::array::from_fn(|_| rng.next_u64() as u8));
            // Some have the same first octets.
            if n.is_multiple_of(3) {
                key.0[..8].fill(7);
            }
            let record = Bytes::from(vec![n as u8; n % 40]);
            (key, Remembered { until: Utc(100 + n as u64), record })
        };
        (0..count).map(&mut key).collect()
    }

    fn written(disk: &FaultyDisk, keys: &BTreeMap<Digest, Remembered>) -> Run {
        let mut writer = RunWriter::create(disk, (3, 9), keys.len()).unwrap();
        for (key, row) in keys {
            writer.add(key, row.until, &row.record).unwrap();
        }
        writer.finish(disk).unwrap()
    }

    #[test]
    fn every_key_is_found_and_no_other() {
        let (disk, keys) = (FaultyDisk::new(), keys(3_000));
        disk.create_dir(Path::new(DIRECTORY)).unwrap();
        let made = written(&disk, &keys);
        let opened = open_all(&disk).unwrap().remove(0);
        for run in [&made, &opened] {
            assert_eq!((run.first, run.last, run.count), (3, 9, 3_000));
            assert_eq!((run.earliest, run.latest), (Utc(100), Utc(3_099)));
            for (key, row) in &keys {
                assert_eq!(run.get(&disk, key, &mut 0).unwrap().as_ref(), Some(row));
            }
            let mut rng = Rng::new(6);
            let mut other = || Digest(std::array::from_fn(|_| rng.next_u64() as u8));
            let others: Vec<Digest> = (0..10_000).map(|_| other()).collect();
            assert!(others.iter().all(|key| run.get(&disk, key, &mut 0).unwrap().is_none()));
            let perhaps = others.iter().filter(|key| !run.lacks(key)).count();
            assert!(perhaps < 400, "{perhaps}");
        }
    }

    #[test]
    fn each_changed_octet_is_noticed_and_costs_one_block() {
        let (disk, keys) = (FaultyDisk::new(), keys(400));
        disk.create_dir(Path::new(DIRECTORY)).unwrap();
        let octets = written(&disk, &keys).octets;
        let file = path(9, SUFFIX);
        for at in (0..octets).step_by(61) {
            disk.flip(&file, at, 0x10).unwrap();
            let run = open_all(&disk).unwrap().remove(0);
            let damaged = run.verify(&disk).unwrap();
            assert!(damaged > 0, "{at}");
            let found =
                keys.iter().filter(|(key, row)| match run.get(&disk, key, &mut 0).unwrap() {
                    Some(found) => {
                        assert_eq!(&found, *row);
                        true
                    }
                    None => false,
                });
            assert!(found.count() > 250, "{at}");
            disk.flip(&file, at, 0x10).unwrap();
        }
        assert_eq!(open_all(&disk).unwrap().remove(0).verify(&disk).unwrap(), 0);
    }
}
