//! The directory `bodies/`: one file for each large content, named by a number.

use crate::disk::{Disk, DiskFile};
use crate::error::{StoreError, readable};
use crate::held::HeldFiles;
use crate::notes::{LeftBody, Notes};
use crate::queue::Sweep;
use crate::safeguard::{Safeguard, stands};
use base::BodyId;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const DIRECTORY: &str = "bodies";
const SUFFIX: &str = ".body";
/// Of a body that no row named when rows were lost.
const ASIDE: &str = ".aside";
/// Of the notes on a body that is being received.
const NOTES: &str = ".notes";

/// Octets of a file under one checksum.
const BLOCK: u64 = 64 << 10;

/// Most octets of contents that an earlier process was receiving and that are read when the store is opened,
/// which takes that long.
const MAX_LEFT: u64 = 1 << 30;

/// The files of `bodies/`, and the next free number.
#[derive(Debug)]
pub(crate) struct Bodies {
    disk: Arc<dyn Disk>,
    next: AtomicU64,
    pub(crate) held: HeldFiles,
}

/// A file of `bodies/` being written.
#[derive(Debug)]
pub(crate) struct BodyFile {
    pub(crate) number: u64,
    file: Box<dyn DiskFile>,
    sums: Sums,
    notes: Option<Notes>,
}

impl BodyFile {
    /// Appends a note behind the `length` octets that it has.
    pub(crate) fn note(&mut self, bodies: &Bodies, length: u64, note: &[u8]) -> io::Result<()> {
        if self.notes.is_none() {
            let file = bodies.disk.create(&notes_path(self.number))?;
            self.notes = Some(Notes::new(file));
        }
        match &mut self.notes {
            Some(notes) => notes.append(length, self.sums.digest(), note),
            None => Ok(()),
        }
    }

    /// Makes its notes durable; the content is.
    pub(crate) fn sync_notes(&mut self, bodies: &Bodies) -> io::Result<()> {
        self.notes.as_mut().map_or(Ok(()), |notes| notes.sync(bodies))
    }

    pub(crate) fn has_notes(&self) -> bool {
        self.notes.is_some()
    }

    pub(crate) fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        self.sums.add(octets);
        self.file.append(octets)
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let done = self.file.sync();
        if stands(Safeguard::FailedContent) { done } else { Ok(()) }
    }

    /// The checksums of its blocks.
    pub(crate) fn sums(&self) -> Arc<[u64]> {
        self.sums.all()
    }
}

/// Checksums of the blocks of a content, made while it is received.
#[derive(Clone, Default)]
pub(crate) struct Sums {
    done: Vec<u64>,
    /// Of the checksums that are done.
    chain: Box<Xxh3>,
    /// Of the block that is not complete, and the octets of it so far.
    current: Box<Xxh3>,
    octets: u64,
}

impl std::fmt::Debug for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sums").field("blocks", &self.done.len()).finish_non_exhaustive()
    }
}

impl Sums {
    pub(crate) fn add(&mut self, octets: &[u8]) {
        let mut left = octets;
        while !left.is_empty() {
            let room = usize::try_from(BLOCK - self.octets).unwrap_or(usize::MAX);
            let (now, later) = left.split_at(room.min(left.len()));
            self.current.update(now);
            self.octets += now.len() as u64;
            if self.octets == BLOCK {
                let sum = self.current.digest();
                self.done.push(sum);
                self.chain.update(&sum.to_le_bytes());
                self.current.reset();
                self.octets = 0;
            }
            left = later;
        }
    }

    /// One checksum of all octets so far.
    pub(crate) fn digest(&self) -> u64 {
        let mut chain = self.chain.clone();
        chain.update(&self.current.digest().to_le_bytes());
        chain.digest()
    }

    /// The checksums of all blocks.
    pub(crate) fn all(&self) -> Arc<[u64]> {
        let last = (self.octets > 0).then(|| self.current.digest());
        self.done.iter().copied().chain(last).collect()
    }
}

/// The file of this number.
pub(crate) fn path(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:016x}{SUFFIX}"))
}

/// The file of the notes on it.
fn notes_path(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:016x}{NOTES}"))
}

/// The file of this number under the name of those that are set aside.
fn aside_path(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:016x}{ASIDE}"))
}

fn number(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)
}

impl Bodies {
    /// Creates the directory, durably.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Bodies, StoreError> {
        let io = |e| StoreError::io("making the directory of bodies", e);
        disk.create_dir(Path::new(DIRECTORY)).map_err(io)?;
        disk.sync_dir(Path::new("")).map_err(io)?;
        disk.sync_dir(Path::new(DIRECTORY)).map_err(io)?;
        Ok(Bodies { disk, next: AtomicU64::new(1), held: HeldFiles::default() })
    }

    /// The numbers and lengths of the files present, of the notes on them, and of those that are set aside.
    /// New numbers are higher than all of them.
    fn list(&self) -> Result<[BTreeMap<u64, u64>; 3], StoreError> {
        let names = self
            .disk
            .list(Path::new(DIRECTORY))
            .map_err(|e| StoreError::io("listing the bodies", e))?;
        let of = |suffix| {
            let known = |(name, length): &(String, u64)| Some((number(name, suffix)?, *length));
            names.iter().filter_map(known).collect::<BTreeMap<u64, u64>>()
        };
        let lists = [of(SUFFIX), of(NOTES), of(ASIDE)];
        for last in lists.iter().filter_map(|list| list.keys().next_back()) {
            self.use_after(*last);
        }
        Ok(lists)
    }

    /// New numbers are higher than `last`, which may name a file that was lost.
    fn use_after(&self, last: u64) {
        self.next.fetch_max(last.saturating_add(1), Ordering::Relaxed);
    }

    /// Removes the files that no row names, and finds the rows without a file. A row has a body, the
    /// number of its file, and its length. If rows may be lost, files that none names are set aside. Gives
    /// also those that an earlier run was receiving, which stay.
    pub(crate) fn sweep(
        &self,
        rows: impl IntoIterator<Item = (BodyId, u64, u64)>,
        may_miss_rows: bool,
    ) -> Result<(Sweep, Vec<LeftBody>), StoreError> {
        let ([mut files, notes, mut aside], mut sweep) = (self.list()?, Sweep::default());
        let before = aside.len();
        for (id, number, length) in rows {
            self.use_after(number);
            let is_back = || aside.get(&number) == Some(&length) && self.take_back(number);
            if files.remove(&number) != Some(length) {
                if is_back() {
                    aside.remove(&number);
                } else {
                    sweep.missing.push(id);
                }
            }
        }
        if aside.len() < before {
            let files = before - aside.len();
            tracing::info!(files, "contents that were set aside have their queue entries again");
            self.sync_names().map_err(|e| StoreError::io("taking bodies back", e))?;
        }
        sweep.aside = aside.len();
        // If rows are lost, a content with notes may be a complete one whose row is among them.
        let left = if may_miss_rows { Vec::new() } else { self.left(&mut files, &notes)? };
        let is_left = |number: &u64| left.iter().any(|body| body.number == *number);
        for number in notes.into_keys().filter(|number| !is_left(number)) {
            self.unlink_notes(number);
        }
        if may_miss_rows {
            let set_aside = files.into_keys().filter(|number| self.set_aside(*number));
            sweep.set_aside = set_aside.count();
            sweep.aside += sweep.set_aside;
            if sweep.set_aside > 0 {
                self.sync_names().map_err(|e| StoreError::io("setting bodies aside", e))?;
            }
            return Ok((sweep, left));
        }
        if !stands(Safeguard::Sweep) {
            return Ok((sweep, left));
        }
        sweep.removed = files.into_keys().filter(|number| self.unlink(*number)).count();
        if sweep.removed > 0 {
            tracing::info!(files = sweep.removed, "removed unused body files");
        }
        if !sweep.missing.is_empty() {
            tracing::error!(bodies = ?sweep.missing, "body files are missing or too short");
        }
        Ok((sweep, left))
    }

    /// The files, of those that no row names, that an earlier run was receiving: they are taken out.
    fn left(
        &self,
        files: &mut BTreeMap<u64, u64>,
        notes: &BTreeMap<u64, u64>,
    ) -> Result<Vec<LeftBody>, StoreError> {
        // After a failed sync the kernel's memory may hold what the disk does not.
        let forget =
            |path: &Path| self.disk.random(path, None).and_then(|file| file.forget_cached());
        let is_readable = |number: &u64| {
            let done = forget(&path(*number)).and_then(|()| forget(&notes_path(*number)));
            if let Err(error) = &done {
                tracing::warn!(number, %error, "a content that was being received cannot be read");
            }
            done.is_ok()
        };
        let there = notes.keys().filter(|number| files.contains_key(number));
        let readable: BTreeSet<u64> = there.copied().filter(is_readable).collect();
        let [lengths, notes, _] = if notes.is_empty() { <_>::default() } else { self.list()? };
        // The shortest first: if not all fit into the limit, more of them are kept.
        let there = |(number, notes): (&u64, &u64)| {
            let length = lengths.get(number).filter(|_| readable.contains(number))?;
            Some((*length, *number, *notes))
        };
        let mut all: Vec<(u64, u64, u64)> = notes.iter().filter_map(there).collect();
        all.sort_unstable();
        let (mut left, mut octets) = (Vec::new(), 0u64);
        for (length, number, notes) in all {
            if octets.saturating_add(length) > MAX_LEFT {
                tracing::warn!(
                    number,
                    length,
                    "a content that was being received is given up: at most 1 GiB of them is kept"
                );
                continue;
            }
            octets += length;
            if let Some(body) = LeftBody::find(self, number, (length, notes)) {
                files.remove(&number);
                left.push(body);
            }
        }
        Ok(left)
    }

    /// Keeps a file that no row names under another name.
    fn set_aside(&self, number: u64) -> bool {
        let done = self.disk.rename(&path(number), &aside_path(number));
        if let Err(error) = &done {
            tracing::error!(number, %error, "cannot set a content aside");
        }
        done.is_ok()
    }

    /// The row of a file that was set aside is there again: it could not be read for a while.
    fn take_back(&self, number: u64) -> bool {
        let done = self.disk.rename(&aside_path(number), &path(number));
        if let Err(error) = &done {
            tracing::error!(number, %error, "cannot take back a content that was set aside");
        }
        done.is_ok()
    }

    pub(crate) fn create(&self) -> io::Result<BodyFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let file = self.disk.create(&path(number))?;
        Ok(BodyFile { number, file, sums: Sums::default(), notes: None })
    }

    /// Opens a content that an earlier run was receiving, for more.
    pub(crate) fn reopen(&self, left: &LeftBody) -> io::Result<BodyFile> {
        let LeftBody { number, length, .. } = *left;
        let file = self.disk.reopen(&path(number), length)?;
        let notes = Some(left.notes(self)?);
        Ok(BodyFile { number, file, sums: left.sums.clone(), notes })
    }

    /// The first octets of the notes on a content.
    pub(crate) fn read_notes(&self, number: u64, length: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.disk.read_range(&notes_path(number), 0, size)
    }

    /// Opens the notes on a content for more, behind those that are known.
    pub(crate) fn reopen_notes(&self, number: u64, length: u64) -> io::Result<Box<dyn DiskFile>> {
        self.disk.reopen(&notes_path(number), length)
    }

    /// Removes the notes on a content. If that fails, the next open does it.
    pub(crate) fn unlink_notes(&self, number: u64) {
        match self.disk.unlink(&notes_path(number)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(number, %error, "cannot remove the notes on a content"),
        }
    }

    /// Makes the names of all files so far durable.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_dir(Path::new(DIRECTORY))
    }

    pub(crate) fn read(&self, number: u64, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.disk.read_range(&path(number), offset, length)
    }

    /// The checksums of the blocks of a file that has none yet.
    pub(crate) fn sums(&self, number: u64, total: u64) -> io::Result<Arc<[u64]>> {
        let (mut sums, mut offset) = (Sums::default(), 0);
        while offset < total {
            let length = (total - offset).min(1 << 20);
            let size = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
            sums.add(&self.read(number, offset, size)?);
            offset += length;
        }
        Ok(sums.all())
    }

    /// Up to `length` octets from `offset` of a file with so many octets in all, and these checksums of its
    /// blocks; `None` if one of the blocks differs, or the file is too short.
    pub(crate) fn read_checked(
        &self,
        number: u64,
        total: u64,
        sums: &[u64],
        offset: u64,
        length: usize,
    ) -> io::Result<Option<Bytes>> {
        let end = offset.saturating_add(length as u64).min(total);
        if offset >= end {
            return Ok(Some(Bytes::new()));
        }
        let (first, last) = (offset / BLOCK, (end - 1) / BLOCK);
        let (start, stop) = (first * BLOCK, ((last + 1) * BLOCK).min(total));
        let size = usize::try_from(stop - start).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let octets = match readable(self.read(number, start, size)) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            octets => octets?,
        };
        let Some(octets) = octets.map(Bytes::from) else { return Ok(None) };
        let place = |block: u64| usize::try_from(block).unwrap_or(usize::MAX);
        let expected = sums.get(place(first)..=place(last));
        let found = octets.chunks(place(BLOCK)).map(xxh3_64);
        let is_right = expected.is_some_and(|expected| found.eq(expected.iter().copied()));
        if !is_right && stands(Safeguard::BlockSums) {
            return Ok(None);
        }
        let from = place(offset - start);
        Ok(Some(octets.slice(from..from + place(end - offset))))
    }

    /// Gives the file of a content another number as well.
    pub(crate) fn name_again(&self, number: u64) -> io::Result<u64> {
        let new = self.next.fetch_add(1, Ordering::Relaxed);
        self.disk.name_again(&path(number), &path(new))?;
        Ok(new)
    }

    /// Removes a file without references. If that fails, the next open removes it.
    pub(crate) fn unlink(&self, number: u64) -> bool {
        match self.held.unlink(&*self.disk, &path(number)) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(number, %error, "cannot remove an unused body file");
                false
            }
        }
    }
}
