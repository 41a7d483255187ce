//! The state of [`FaultyDisk`](super::FaultyDisk): inodes, names, and planned faults.

use base::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The unit in which space is allocated, in octets.
const BLOCK: u64 = 4096;
/// What a disk writes atomically, in octets.
const SECTOR: u64 = 512;

/// Which unsynced changes a crash loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    Everything,
    /// None: the kernel happened to write all of it in time.
    Nothing,
    /// Each write, cut at a sector, and each name, with probability one half from this seed.
    Some(u64),
}

/// Which reads fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The next one.
    Once,
    /// All of them.
    All,
}

/// A change of a file that is not yet synced.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    view: Vec<u8>,
    pending: Vec<Change>,
    blocks: BTreeSet<u64>,
}

fn index(n: u64) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

fn apply(octets: &mut Vec<u8>, change: &Change) -> io::Result<()> {
    match change {
        Change::SetLen(length) => octets.resize(index(*length)?, 0),
        Change::Write(offset, data) => {
            let start = index(*offset)?;
            let end = start + data.len();
            if octets.len() < end {
                octets.resize(end, 0);
            }
            if let Some(place) = octets.get_mut(start..end) {
                place.copy_from_slice(data);
            }
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct DiskState {
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    dirs: BTreeSet<PathBuf>,
    durable_dirs: BTreeSet<PathBuf>,
    /// Incremented by each crash, so that earlier handles are invalid.
    pub(super) epoch: u64,
    /// Changing operations so far.
    pub(super) calls: u64,
    /// From this operation on, all fail.
    pub(super) power_off_at: Option<u64>,
    /// This operation fails, once.
    pub(super) fail_at: Option<(u64, io::ErrorKind)>,
    /// From this operation on, all fail with this kind.
    pub(super) fail_from: Option<(u64, io::ErrorKind)>,
    /// From this operation on a read fails: the next one, or all.
    pub(super) unreadable: Option<(u64, Unreadable)>,
    /// Reads so far.
    pub(super) reads: u64,
    /// Reads with these numbers fail.
    pub(super) unreadable_reads: std::ops::Range<u64>,
    /// Capacity in blocks.
    pub(super) capacity: Option<usize>,
    /// From this operation on, what is used by then is the capacity.
    pub(super) full_from: Option<u64>,
    pub(super) ignore_file_sync: bool,
    /// Syncs of files with one of these endings report success and do nothing.
    pub(super) ignore_sync_of_files: Vec<&'static str>,
    pub(super) ignore_sync_of: BTreeSet<PathBuf>,
    /// After a failed sync, what was read is what was written.
    pub(super) keeps_cached: bool,
}

impl DiskState {
    pub(super) fn copy(&self) -> DiskState {
        DiskState {
            inodes: self.inodes.clone(),
            next_inode: self.next_inode,
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            dirs: self.dirs.clone(),
            durable_dirs: self.durable_dirs.clone(),
            ..DiskState::default()
        }
    }

    pub(super) fn cut(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let (inode, length) = (self.find(path)?, index(length)?);
        let inode = self.inodes.get_mut(&inode).ok_or(io::ErrorKind::NotFound)?;
        inode.view.truncate(length);
        inode.durable.truncate(length);
        Ok(())
    }

    pub(super) fn flip(&mut self, path: &Path, offset: u64, bits: u8) -> io::Result<()> {
        let (inode, at) = (self.find(path)?, index(offset)?);
        let inode = self.inodes.get_mut(&inode).ok_or(io::ErrorKind::NotFound)?;
        for octets in [&mut inode.view, &mut inode.durable] {
            let octet = octets.get_mut(at).ok_or(io::ErrorKind::UnexpectedEof)?;
            *octet ^= bits;
        }
        Ok(())
    }

    /// Counts a changing operation and applies a planned fault.
    pub(super) fn strike(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.full_from.is_some_and(|n| self.calls >= n) {
            self.full_from = None;
            self.capacity = Some(self.used());
        }
        if self.power_off_at.is_some_and(|n| self.calls >= n) {
            return Err(io::Error::other("power lost"));
        }
        match (self.fail_at, self.fail_from) {
            (Some((n, kind)), _) if n == self.calls => Err(kind.into()),
            (_, Some((n, kind))) if n <= self.calls => Err(kind.into()),
            _ => Ok(()),
        }
    }

    /// Blocks in use.
    pub(super) fn used(&self) -> usize {
        self.inodes.values().map(|inode| inode.blocks.len()).sum()
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn inode(&mut self, inode: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&inode).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if !parent.as_os_str().is_empty() && !self.dirs.contains(parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.next_inode += 1;
        self.inodes.insert(self.next_inode, Inode::default());
        self.names.insert(path.to_owned(), self.next_inode);
        Ok(self.next_inode)
    }

    pub(super) fn create_dir(&mut self, path: &Path) {
        self.dirs.insert(path.to_owned());
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        self.names.remove(from);
        self.names.insert(to.to_owned(), inode);
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.find(path)?;
        self.names.remove(path);
        if !self.names.values().any(|of| *of == inode) {
            // The space is free at once; a durable name, if any, still leads to the octets.
            self.inode(inode)?.blocks.clear();
        }
        Ok(())
    }

    pub(super) fn name_again(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        if self.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.names.insert(to.to_owned(), inode);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        if self.ignore_sync_of.contains(dir) {
            return;
        }
        let within = |path: &PathBuf| path.parent() == Some(dir);
        self.durable_names.retain(|path, _| !within(path));
        let names = self.names.iter().filter(|(path, _)| within(path));
        self.durable_names.extend(names.map(|(path, inode)| (path.clone(), *inode)));
        self.durable_dirs.extend(self.dirs.iter().filter(|p| within(p)).cloned());
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        if !dir.as_os_str().is_empty() && !self.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut files = Vec::new();
        for (path, inode) in self.names.iter().filter(|(p, _)| p.parent() == Some(dir)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push((name.into_owned(), self.length(*inode)?));
        }
        Ok(files)
    }

    pub(super) fn length(&self, inode: u64) -> io::Result<u64> {
        let inode = self.inodes.get(&inode).ok_or(io::ErrorKind::NotFound)?;
        Ok(inode.view.len() as u64)
    }

    pub(super) fn read(&mut self, inode: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let calls = self.calls;
        let read = self.reads;
        self.reads += 1;
        if self.unreadable_reads.contains(&read) {
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32));
        }
        if let Some((_, which)) = self.unreadable.filter(|(from, _)| calls >= *from) {
            if which == Unreadable::Once {
                self.unreadable = None;
            }
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32));
        }
        let inode = self.inodes.get(&inode).ok_or(io::ErrorKind::NotFound)?;
        let start = index(offset)?;
        let range = start..start.saturating_add(out.len());
        let octets = inode.view.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(octets);
        Ok(())
    }

    pub(super) fn write(&mut self, inode: u64, offset: u64, octets: &[u8]) -> io::Result<()> {
        let used = self.used();
        let capacity = self.capacity.unwrap_or(usize::MAX);
        let inode = self.inode(inode)?;
        let end = offset + octets.len() as u64;
        let fresh: Vec<u64> = (offset / BLOCK..end.div_ceil(BLOCK))
            .filter(|block| !inode.blocks.contains(block))
            .collect();
        if !fresh.is_empty() && used + fresh.len() > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inode.blocks.extend(fresh);
        let change = Change::Write(offset, octets.to_vec());
        apply(&mut inode.view, &change)?;
        inode.pending.push(change);
        Ok(())
    }

    /// Gives a file this length, and all its room.
    pub(super) fn allocate(&mut self, inode: u64, length: u64) -> io::Result<()> {
        let used = self.used();
        let wanted = index(length.div_ceil(BLOCK))?;
        if used.saturating_add(wanted) > self.capacity.unwrap_or(usize::MAX) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.set_len(inode, length)?;
        self.inode(inode)?.blocks.extend(0..length.div_ceil(BLOCK));
        Ok(())
    }

    pub(super) fn set_len(&mut self, inode: u64, length: u64) -> io::Result<()> {
        let inode = self.inode(inode)?;
        inode.blocks.split_off(&length.div_ceil(BLOCK));
        let change = Change::SetLen(length);
        apply(&mut inode.view, &change)?;
        inode.pending.push(change);
        Ok(())
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        let is_ignored = |ending: &&str| {
            let mut names = self.names.iter().filter(|(_, of)| **of == inode);
            names.any(|(path, _)| path.to_string_lossy().ends_with(*ending))
        };
        if self.ignore_file_sync || self.ignore_sync_of_files.iter().any(is_ignored) {
            return Ok(());
        }
        self.sync_always(inode)
    }

    pub(super) fn sync_always(&mut self, inode: u64) -> io::Result<()> {
        let inode = self.inode(inode)?;
        for change in std::mem::take(&mut inode.pending) {
            apply(&mut inode.durable, &change)?;
        }
        Ok(())
    }

    /// What was written to a file since its last sync is taken for written.
    pub(super) fn drop_dirty(&mut self, inode: u64) {
        if self.power_off_at.is_none()
            && let Some(inode) = self.inodes.get_mut(&inode)
        {
            inode.pending.clear();
        }
    }

    /// A file is read from the disk again, except what is still to be written.
    pub(super) fn forget_cached(&mut self, inode: u64) -> io::Result<()> {
        if self.keeps_cached {
            return Ok(());
        }
        let inode = self.inode(inode)?;
        inode.view.clone_from(&inode.durable);
        for change in &inode.pending {
            apply(&mut inode.view, change)?;
        }
        Ok(())
    }

    pub(super) fn crash(&mut self, loss: Loss) {
        let mut rng = Rng::new(match loss {
            Loss::Some(seed) => seed,
            Loss::Everything | Loss::Nothing => 0,
        });
        for inode in self.inodes.values_mut() {
            for change in std::mem::take(&mut inode.pending) {
                if let Some(kept) = survivor(change, loss, &mut rng) {
                    // An index beyond memory was refused when the change was made.
                    let _ = apply(&mut inode.durable, &kept);
                }
            }
            inode.view.clone_from(&inode.durable);
        }
        self.crash_names(loss, &mut rng);
        self.epoch += 1;
        self.calls = 0;
        self.power_off_at = None;
        self.fail_at = None;
        self.fail_from = None;
        self.full_from = None;
        self.unreadable = None;
        self.unreadable_reads = 0..0;
    }

    fn crash_names(&mut self, loss: Loss, rng: &mut Rng) {
        for dir in &self.dirs {
            if !self.durable_dirs.contains(dir) && survives(loss, rng) {
                self.durable_dirs.insert(dir.clone());
            }
        }
        let all: BTreeSet<PathBuf> =
            self.names.keys().chain(self.durable_names.keys()).cloned().collect();
        for path in all {
            if self.names.get(&path) != self.durable_names.get(&path) && survives(loss, rng) {
                match self.names.get(&path) {
                    Some(inode) => self.durable_names.insert(path, *inode),
                    None => self.durable_names.remove(&path),
                };
            }
        }
        let dirs = &self.durable_dirs;
        self.durable_names.retain(|path, _| {
            path.parent().is_none_or(|p| p.as_os_str().is_empty() || dirs.contains(p))
        });
        self.names.clone_from(&self.durable_names);
        self.dirs.clone_from(&self.durable_dirs);
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}

fn survives(loss: Loss, rng: &mut Rng) -> bool {
    match loss {
        Loss::Everything => false,
        Loss::Nothing => true,
        Loss::Some(_) => rng.below(2) == 1,
    }
}

/// The part of an unsynced change that survives.
fn survivor(change: Change, loss: Loss, rng: &mut Rng) -> Option<Change> {
    if !survives(loss, rng) {
        return None;
    }
    match (loss, change) {
        (Loss::Some(_), Change::Write(offset, mut data)) if rng.below(3) == 0 => {
            let sectors = (data.len() as u64).div_ceil(SECTOR);
            let kept = rng.below(sectors.max(1)) * SECTOR;
            data.truncate(usize::try_from(kept).unwrap_or(0));
            Some(Change::Write(offset, data))
        }
        (_, change) => Some(change),
    }
}
