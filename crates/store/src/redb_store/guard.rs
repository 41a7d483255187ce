//! Records which operation on the database's file failed first, and how.
//!
//! redb refuses everything after an I/O error. After a full disk the database is opened again;
//! after a failed sync it must not be, as the kernel may have dropped pages that a read still
//! finds in its cache.

use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

/// The first failure of a backend.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// A read or write failed: what was durable still is.
    Operation,
    /// A sync failed: what is durable is unknown.
    Sync(Arc<io::Error>),
}

/// A backend whose failures are recorded.
#[derive(Debug)]
pub(super) struct Guard {
    inner: Box<dyn StorageBackend>,
    trouble: Arc<OnceLock<Trouble>>,
}

impl Guard {
    pub(super) fn new(inner: Box<dyn StorageBackend>) -> (Guard, Arc<OnceLock<Trouble>>) {
        let trouble = Arc::default();
        let guard = Guard { inner, trouble: Arc::clone(&trouble) };
        (guard, trouble)
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            let _ = self.trouble.set(Trouble::Operation);
        }
        result
    }
}

impl StorageBackend for Guard {
    fn len(&self) -> io::Result<u64> {
        self.note(self.inner.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note(self.inner.read(offset, out))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.note(self.inner.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data().map_err(|error| {
            let error = Arc::new(error);
            let _ = self.trouble.set(Trouble::Sync(Arc::clone(&error)));
            io::Error::new(error.kind(), error)
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(self.inner.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
