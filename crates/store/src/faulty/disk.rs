//! The faulty disk: [`Disk`] over the shared state, and the controls of its faults.

use super::file::{FaultyDatabase, FaultyFile};
use super::state::{DiskState, Loss, Unreadable};
use crate::disk::{Disk, DiskFile, RandomFile};
use redb::StorageBackend;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A disk in memory with configurable faults. Clones share the one disk.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Mutex<DiskState>>);

impl FaultyDisk {
    /// An empty disk without faults.
    #[must_use]
    pub fn new() -> FaultyDisk {
        FaultyDisk::default()
    }

    /// Changing operations (not reads) since the start or the last crash.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The `n`-th changing operation (from 1) and all after it fail, until [`FaultyDisk::crash`].
    pub fn power_off_at(&self, n: u64) {
        self.state().power_off_at = Some(n);
    }

    /// Ends [`FaultyDisk::power_off_at`] without a loss: only the process died.
    pub fn resume(&self) {
        self.state().power_off_at = None;
    }

    /// The `n`-th changing operation (from 1) fails with `kind`, those after it do not.
    pub fn fail_at(&self, n: u64, kind: io::ErrorKind) {
        self.state().fail_at = Some((n, kind));
    }

    /// The `n`-th changing operation (from 1) and all after it fail with `kind`, until
    /// [`FaultyDisk::heal`] or a crash.
    pub fn fail_from(&self, n: u64, kind: io::ErrorKind) {
        self.state().fail_from = Some((n, kind));
    }

    /// From the `n`-th changing operation (from 1) on there is no more room, until [`FaultyDisk::heal`],
    /// which a crash does not do.
    pub fn full_from(&self, n: u64) {
        self.state().full_from = Some(n);
    }

    /// From the `n`-th changing operation (from 1) on the next read fails with EIO, or all do until
    /// [`FaultyDisk::heal`] or a crash.
    pub fn unreadable_from(&self, n: u64, which: Unreadable) {
        self.state().unreadable = Some((n, which));
    }

    /// Of the reads from now on those with these numbers (from 0) fail with EIO, until [`FaultyDisk::heal`] or
    /// a crash.
    pub fn unreadable_reads(&self, which: std::ops::Range<u64>) {
        let mut state = self.state();
        let now = state.reads;
        state.unreadable_reads = now.saturating_add(which.start)..now.saturating_add(which.end);
    }

    /// Reads so far.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Ends [`FaultyDisk::fail_at`], [`FaultyDisk::fail_from`], [`FaultyDisk::full_from`] and
    /// [`FaultyDisk::unreadable_from`]; the disk has room without limit.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.fail_at, state.fail_from, state.full_from, state.capacity) =
            (None, None, None, None);
        state.unreadable = None;
        state.unreadable_reads = 0..0;
    }

    /// Blocks of 4096 octets that are left; `None`: without limit.
    #[must_use]
    pub fn free(&self) -> Option<usize> {
        let state = self.state();
        state.capacity.map(|capacity| capacity.saturating_sub(state.used()))
    }

    /// Room for this many blocks of 4096 octets in all files together; `None`: unlimited.
    pub fn set_capacity(&self, blocks: Option<usize>) {
        self.state().capacity = blocks;
    }

    /// From now on a sync of an appended file reports success and does nothing.
    pub fn ignore_file_sync(&self) {
        self.state().ignore_file_sync = true;
    }

    /// From now on a sync of this directory reports success and does nothing.
    pub fn ignore_sync_of(&self, dir: &Path) {
        self.state().ignore_sync_of.insert(dir.to_owned());
    }

    /// From now on a sync of an open file whose name ends so reports success and does nothing.
    pub fn ignore_sync_of_files(&self, ending: &'static str) {
        self.state().ignore_sync_of_files.push(ending);
    }

    /// Ends what began with the methods `ignore_`.
    pub fn ignore_nothing(&self) {
        let mut state = self.state();
        state.ignore_file_sync = false;
        state.ignore_sync_of_files.clear();
        state.ignore_sync_of.clear();
    }

    /// From now on [`RandomFile::forget_cached`] does nothing.
    pub fn keep_cached(&self) {
        self.state().keeps_cached = true;
    }

    /// Another disk with the same content.
    #[must_use]
    pub fn copy(&self) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(self.state().copy())))
    }

    /// Cuts a file off, durably.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn cut(&self, path: &Path, length: u64) -> io::Result<()> {
        self.state().cut(path, length)
    }

    /// Changes bits of one octet of a file, durably.
    ///
    /// # Errors
    /// `NotFound`; `UnexpectedEof`.
    pub fn flip(&self, path: &Path, offset: u64, bits: u8) -> io::Result<()> {
        self.state().flip(path, offset, bits)
    }

    /// Loses power and restarts: open files are invalid, planned faults are removed.
    pub fn crash(&self, loss: Loss) {
        self.state().crash(loss);
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        lock(&self.0)
    }

    /// The state, after counting a changing operation.
    fn change(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let mut state = self.state();
        state.strike()?;
        Ok(state)
    }
}

pub(super) fn lock(state: &Mutex<DiskState>) -> MutexGuard<'_, DiskState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk for FaultyDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change()?.create_dir(path);
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.change()?;
        if state.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.create(path)?;
        Ok(Box::new(FaultyFile::new(&self.0, inode, state.epoch)))
    }

    fn reopen(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.change()?;
        let inode = state.find(path)?;
        state.set_len(inode, length)?;
        Ok(Box::new(FaultyFile::new(&self.0, inode, state.epoch)))
    }

    fn database(&self, path: &Path) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.change()?;
        let inode = match state.find(path) {
            Ok(inode) => inode,
            Err(_) => state.create(path)?,
        };
        let file = FaultyFile::new(&self.0, inode, state.epoch);
        Ok(Box::new(FaultyDatabase(file)))
    }

    fn random(&self, path: &Path, create: Option<u64>) -> io::Result<Box<dyn RandomFile>> {
        let mut state = if create.is_some() { self.change()? } else { self.state() };
        let inode = match create {
            None => state.find(path)?,
            Some(length) => {
                // As the real one, in three operations: the length and its room are durable then, the name
                // is not.
                let inode = state.create(path)?;
                state.strike()?;
                state.allocate(inode, length)?;
                state.strike()?;
                state.sync_always(inode)?;
                inode
            }
        };
        Ok(Box::new(FaultyFile::new(&self.0, inode, state.epoch)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?.rename(from, to)
    }

    fn name_again(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?.name_again(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.change()?.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.change()?.sync_dir(path);
        Ok(())
    }

    fn read_range(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        let mut octets = vec![0; length];
        let inode = state.find(path)?;
        state.read(inode, offset, &mut octets)?;
        Ok(octets)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>> {
        self.state().list(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(disk: &FaultyDisk, file_synced: bool, dir_synced: bool) {
        disk.create_dir(Path::new("d")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        let mut file = disk.create(Path::new("d/f")).unwrap();
        file.append(b"octets").unwrap();
        if file_synced {
            file.sync().unwrap();
        }
        if dir_synced {
            disk.sync_dir(Path::new("d")).unwrap();
        }
    }

    #[test]
    fn a_crash_takes_what_was_not_synced() {
        for (file, dir, left) in [
            (true, true, vec![("f".to_owned(), 6)]),
            (false, true, vec![("f".to_owned(), 0)]),
            (true, false, vec![]),
        ] {
            let disk = FaultyDisk::new();
            written(&disk, file, dir);
            disk.crash(Loss::Everything);
            assert_eq!(disk.list(Path::new("d")).unwrap(), left);
        }
    }

    #[test]
    fn handles_from_before_a_crash_are_dead() {
        let disk = FaultyDisk::new();
        let mut file = disk.create(Path::new("f")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        disk.crash(Loss::Nothing);
        assert!(file.append(b"x").is_err());
    }

    #[test]
    fn faults_strike_at_the_chosen_operation() {
        let disk = FaultyDisk::new();
        disk.fail_at(2, io::ErrorKind::StorageFull);
        let mut file = disk.create(Path::new("f")).unwrap();
        assert_eq!(file.append(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        file.append(b"x").unwrap();
        disk.power_off_at(5);
        file.append(b"y").unwrap();
        assert!(file.append(b"z").is_err());
        assert!(file.sync().is_err());
    }
}
