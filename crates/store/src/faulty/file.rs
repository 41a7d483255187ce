//! Open files of the faulty disk: for appending, and under a database.

use super::disk::lock;
use super::state::DiskState;
use crate::disk::{DiskFile, RandomFile};
use redb::StorageBackend;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Debug)]
pub(super) struct FaultyFile {
    state: Arc<Mutex<DiskState>>,
    inode: u64,
    epoch: u64,
}

impl FaultyFile {
    pub(super) fn new(state: &Arc<Mutex<DiskState>>, inode: u64, epoch: u64) -> FaultyFile {
        FaultyFile { state: Arc::clone(state), inode, epoch }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let state = lock(&self.state);
        if state.epoch != self.epoch {
            return Err(io::Error::other("opened before the crash"));
        }
        Ok(state)
    }

    /// As in the kernel: a sync that fails leaves what was written in memory, and never writes it.
    fn sync_or_drop(&self) -> io::Result<()> {
        let mut state = self.state()?;
        if let Err(error) = state.strike() {
            state.drop_dirty(self.inode);
            return Err(error);
        }
        state.sync(self.inode)
    }

    fn change(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let mut state = self.state()?;
        state.strike()?;
        Ok(state)
    }
}

impl DiskFile for FaultyFile {
    fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        let mut state = self.change()?;
        let end = state.length(self.inode)?;
        state.write(self.inode, end, octets)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_or_drop()
    }
}

impl RandomFile for FaultyFile {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.state()?.read(self.inode, offset, out)
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.change()?.write(self.inode, offset, octets)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_or_drop()
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.state()?.forget_cached(self.inode)
    }
}

#[derive(Debug)]
pub(super) struct FaultyDatabase(pub(super) FaultyFile);

impl StorageBackend for FaultyDatabase {
    fn len(&self) -> io::Result<u64> {
        self.0.state()?.length(self.0.inode)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.state()?.read(self.0.inode, offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.change()?.set_len(self.0.inode, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.change()?.sync_always(self.0.inode)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.change()?.write(self.0.inode, offset, data)
    }
}
