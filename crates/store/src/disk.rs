//! The file operations that durability depends on, as a trait so that tests can make them fail.
//!
//! A file is durable once it is synced *and* the directory that names it is synced.

use crate::error::StoreError;
use nix::fcntl::OFlag;
use nix::unistd::{Gid, Uid, fchown};
use redb::StorageBackend;
use redb::backends::FileBackend;
use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file open for appending.
pub trait DiskFile: Send + Debug {
    /// Appends all of `octets`. After an error the file may hold a part of them.
    ///
    /// # Errors
    /// The operating system's.
    fn append(&mut self, octets: &[u8]) -> io::Result<()>;

    /// Makes the content durable (fdatasync). Must not be retried after an error: the kernel may
    /// have dropped the unwritten pages and would then report success.
    ///
    /// # Errors
    /// The operating system's.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file of fixed length, read and written at any place. Many may read while one writes.
pub trait RandomFile: Send + Sync + Debug {
    /// Fills `out` from this place.
    ///
    /// # Errors
    /// The operating system's; `UnexpectedEof` beyond the end.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `octets` at this place. After an error a part of them may be written.
    ///
    /// # Errors
    /// The operating system's.
    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()>;

    /// Makes the content durable (fdatasync). Must not be retried after an error.
    ///
    /// # Errors
    /// The operating system's.
    fn sync(&self) -> io::Result<()>;

    /// The next reads come from the disk: after a failed sync the kernel's memory may hold what the disk
    /// does not, and take it for written.
    ///
    /// # Errors
    /// The operating system's.
    fn forget_cached(&self) -> io::Result<()>;
}

/// One directory tree. Paths are relative to its root; the empty path is the root.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory, accessible to its owner only; no error if it exists.
    ///
    /// # Errors
    /// The operating system's.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a file for appending.
    ///
    /// # Errors
    /// The operating system's; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for appending behind its first `length` octets; what follows them is cut off.
    ///
    /// # Errors
    /// `NotFound`, else the operating system's.
    fn reopen(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Opens the file as storage of a database, creating it empty if absent.
    ///
    /// # Errors
    /// The operating system's.
    fn database(&self, path: &Path) -> io::Result<Box<dyn StorageBackend>>;

    /// Opens a file of fixed length; with a length it is created, and has all its room from the start.
    ///
    /// # Errors
    /// The operating system's; `StorageFull` if there is less room; `NotFound` without a length.
    fn random(&self, path: &Path, create: Option<u64>) -> io::Result<Box<dyn RandomFile>>;

    /// Renames a file, replacing any file of the new name. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which does not exist. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// The operating system's; `AlreadyExists`.
    fn name_again(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The operating system's; `NotFound` if absent.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// The operating system's.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Reads exactly `length` octets from `offset`.
    ///
    /// # Errors
    /// The operating system's; `UnexpectedEof` if the file is shorter.
    fn read_range(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// The names of the files in a directory, with their lengths in octets.
    ///
    /// # Errors
    /// The operating system's.
    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>>;
}

/// A directory of the machine. Directories get mode 0700, files 0600: content is confidential.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    owner: Option<Owner>,
    /// Held, not read: closing it releases the lock.
    _lock: File,
}

impl RealDisk {
    /// Opens the directory, creating it (but not its parents) if absent, and locks it against
    /// other processes until dropped.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process holds it; [`StoreError::Io`].
    pub fn open(root: &Path) -> Result<RealDisk, StoreError> {
        let io = |e| StoreError::io("opening the store's directory", e);
        let parent = root.parent().filter(|p| !p.as_os_str().is_empty());
        let owner = Owner::from_directory(root).map_err(io)?;
        make_dir(root, owner).map_err(io)?;
        if let Some(parent) = parent {
            sync_path(parent).map_err(io)?;
        }
        let path = root.join("lock");
        let lock = open_lock(&path, owner).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => Ok(RealDisk { root: root.to_owned(), owner, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path }),
            Err(TryLockError::Error(e)) => Err(io(e)),
        }
    }
}

/// Who gets the files that root makes in a directory of another user: else that user's daemon could not
/// open them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    user: Uid,
    group: Gid,
}

impl Owner {
    /// The owner of a directory, or of the nearest one above it that exists; `None` if it is this user, or
    /// if this user is not root.
    ///
    /// # Errors
    /// The operating system's.
    pub fn from_directory(directory: &Path) -> io::Result<Option<Owner>> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        let existing = directory.ancestors().find_map(|path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            match path.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                found => Some(found),
            }
        });
        let Some(found) = existing.transpose()? else { return Ok(None) };
        let (user, group) = (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()));
        Ok((!user.is_root()).then_some(Owner { user, group }))
    }

    /// Gives a file or directory that was just made to the owner.
    ///
    /// # Errors
    /// The operating system's.
    pub fn give(owner: Option<Owner>, made: &File) -> io::Result<()> {
        let Some(Owner { user, group }) = owner else { return Ok(()) };
        Ok(fchown(made, Some(user), Some(group))?)
    }
}

fn make_dir(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(e),
        Ok(()) if owner.is_none() => Ok(()),
        Ok(()) => Owner::give(owner, &open_own(path)?),
    }
}

/// Opens a directory that root has just made. Its name stands in a directory of another user, who may have
/// put something else there meanwhile.
///
/// # Errors
/// The operating system's; `PermissionDenied` if it is another one.
pub fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
    let made = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    match made.metadata()?.uid() {
        0 => Ok(made),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Opens the lock file, created if absent.
fn open_lock(path: &Path, owner: Option<Owner>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
        made => {
            let made = made?;
            Owner::give(owner, &made)?;
            Ok(made)
        }
    }
}

fn sync_path(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0.write_all(octets)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl RandomFile for RealFile {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.0.write_all_at(octets, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn forget_cached(&self) -> io::Result<()> {
        use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
        Ok(posix_fadvise(&self.0, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        make_dir(&self.root.join(path), self.owner)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.root.join(path))?;
        Owner::give(self.owner, &file)?;
        Ok(Box::new(RealFile(file)))
    }

    fn reopen(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().append(true).open(self.root.join(path))?;
        file.set_len(length)?;
        Ok(Box::new(RealFile(file)))
    }

    fn database(&self, path: &Path) -> io::Result<Box<dyn StorageBackend>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.root.join(path))?;
        let backend = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Box::new(backend))
    }

    fn random(&self, path: &Path, create: Option<u64>) -> io::Result<Box<dyn RandomFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if create.is_some() {
            options.create(true).truncate(true).custom_flags(OFlag::O_NOFOLLOW.bits());
        }
        let file = options.open(self.root.join(path))?;
        if let Some(length) = create {
            Owner::give(self.owner, &file)?;
            let length = i64::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
            let all = nix::fcntl::FallocateFlags::empty();
            nix::fcntl::fallocate(&file, all, 0, length)?;
            file.sync_all()?;
        }
        Ok(Box::new(RealFile(file)))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place: callers follow with sync_dir")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.root.join(from), self.root.join(to))
    }

    fn name_again(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(self.root.join(from), self.root.join(to))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(self.root.join(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        sync_path(&self.root.join(path))
    }

    fn read_range(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        File::open(self.root.join(path))?.read_exact_at(&mut octets, offset)?;
        Ok(octets)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push((name, metadata.len()));
            }
        }
        files.sort();
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyDisk;
    use std::os::unix::fs::PermissionsExt;

    /// The faulty disk must behave as the real one when nothing fails.
    fn conformance(disk: &dyn Disk) {
        let (a, b) = (Path::new("bodies/a"), Path::new("bodies/b"));
        disk.create_dir(Path::new("bodies")).unwrap();
        disk.create_dir(Path::new("bodies")).unwrap();
        let mut file = disk.create(a).unwrap();
        file.append(b"one ").unwrap();
        file.append(b"two").unwrap();
        file.sync().unwrap();
        disk.sync_dir(Path::new("bodies")).unwrap();
        assert_eq!(disk.create(a).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(disk.read_range(a, 2, 3).unwrap(), b"e t");
        let short = disk.read_range(a, 5, 3).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        disk.rename(a, b).unwrap();
        assert_eq!(disk.read_range(a, 0, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.list(Path::new("bodies")).unwrap(), [("b".to_owned(), 7)]);
        disk.unlink(b).unwrap();
        assert_eq!(disk.unlink(b).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(disk.list(Path::new("bodies")).unwrap().is_empty());

        let database = disk.database(Path::new("db")).unwrap();
        database.set_len(8).unwrap();
        database.write(2, b"xyz").unwrap();
        database.sync_data().unwrap();
        let mut octets = [0; 8];
        database.read(0, &mut octets).unwrap();
        assert_eq!(&octets, b"\0\0xyz\0\0\0");
        assert!(database.read(7, &mut [0; 2]).is_err());
        database.set_len(3).unwrap();
        assert_eq!(database.len().unwrap(), 3);

        let (r, absent) = (Path::new("r"), Path::new("absent"));
        assert_eq!(disk.random(absent, None).unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = disk.random(r, Some(10_000)).unwrap();
        file.write(9_990, b"0123456789").unwrap();
        file.sync().unwrap();
        let mut octets = [1; 4];
        for file in [file, disk.random(r, None).unwrap()] {
            file.read(9_996, &mut octets).unwrap();
            assert_eq!(&octets, b"6789");
            file.read(0, &mut octets).unwrap();
            assert_eq!(octets, [0; 4]);
            assert!(file.read(9_997, &mut octets).is_err());
        }
        let sizes = disk.list(Path::new("")).unwrap();
        assert!(sizes.contains(&("r".to_owned(), 10_000)), "{sizes:?}");
    }

    #[test]
    fn the_real_disk_keeps_the_contract() {
        let dir = tempfile::tempdir().unwrap();
        conformance(&RealDisk::open(dir.path()).unwrap());
    }

    #[test]
    fn the_faulty_disk_keeps_the_contract() {
        conformance(&FaultyDisk::new());
    }

    #[test]
    fn a_second_opener_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = RealDisk::open(dir.path()).unwrap();
        let error = RealDisk::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        drop(first);
        RealDisk::open(dir.path()).unwrap();
    }

    #[test]
    fn only_the_owner_gets_in() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("store");
        let disk = RealDisk::open(&root).unwrap();
        disk.create_dir(Path::new("bodies")).unwrap();
        disk.create(Path::new("bodies/a")).unwrap();
        let mode = |p: &str| std::fs::metadata(root.join(p)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(""), mode("bodies"), mode("bodies/a")], [0o700, 0o700, 0o600]);
    }
}
