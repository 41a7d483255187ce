//! Files that are being written: only the user can access them, and they are removed unless
//! completed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The names under which the files of one message are published.
pub(crate) trait Naming {
    /// Those recorded in an earlier, failed try with the same message.
    fn names(&self) -> &[String];

    /// Records, durably, the names of its files.
    ///
    /// # Errors
    /// They cannot be recorded.
    fn record(&mut self, names: Vec<String>) -> anyhow::Result<()>;

    /// Eight octets in hexadecimal, specific to one file of this message.
    fn mark(&self, number: usize) -> String;
}

/// Octets of one comparison.
const CHUNK: usize = 64 << 10;

/// An incomplete file: locked while it is written, so that one without a lock is known to be left
/// behind. It is removed when this is dropped.
pub(crate) struct Part {
    file: File,
    path: PathBuf,
}

impl Part {
    /// Creates `PREFIX.PROCESS-NUMBER.part`, a unique name: other processes may use the same prefix.
    /// No link of that name is followed.
    ///
    /// # Errors
    /// It cannot be created or locked.
    pub(crate) fn create(dir: &Path, prefix: &str) -> io::Result<Part> {
        // No name is used twice, because a sweep removes files by name.
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{prefix}.{process}-{number}.part"));
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let part = Part { file, path };
                    part.file.lock()?;
                    // Before the lock, a sweep may have removed it as left behind.
                    if part.file.metadata()?.nlink() > 0 {
                        return Ok(part);
                    }
                }
            }
        }
    }

    pub(crate) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.write_all(octets)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts its octets on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives it a name; `false` if a file or link has that name already. Durable once the directory is
    /// synced.
    #[expect(clippy::disallowed_methods, reason = "the caller syncs the directory after all files")]
    pub(crate) fn publish(&self, path: &Path) -> io::Result<bool> {
        match fs::hard_link(&self.path, path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) if !is_without_links(&error) => return Err(error),
            Err(_) => {}
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            // This replaces the empty file just created.
            Ok(_) => match fs::rename(&self.path, path) {
                Ok(()) => Ok(true),
                Err(error) => {
                    let _ = fs::remove_file(path);
                    Err(error)
                }
            },
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a regular file has the same octets.
    pub(crate) fn is_same_as(&self, path: &Path) -> io::Result<bool> {
        let found = path.symlink_metadata()?;
        let length = self.file.metadata()?.len();
        if !found.is_file() || found.len() != length {
            return Ok(false);
        }
        let other = File::open(path)?;
        let [mut ours, mut theirs] = [(); 2].map(|()| vec![0; CHUNK]);
        let mut at = 0;
        while at < length {
            let room = usize::try_from(length - at).map_or(CHUNK, |left| left.min(CHUNK));
            ours.truncate(room);
            theirs.truncate(room);
            self.file.read_exact_at(&mut ours, at)?;
            match other.read_exact_at(&mut theirs, at) {
                // It became shorter.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            if ours != theirs {
                return Ok(false);
            }
            at += room as u64;
        }
        Ok(true)
    }
}

/// Whether the file system has no links, or the file has the largest number of them.
fn is_without_links(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), PermissionDenied | TooManyLinks | Unsupported)
}

impl Write for Part {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Does not exist if it was renamed.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes incomplete files of this prefix whose process has ended.
pub(crate) fn sweep(dir: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let is_ours = name.to_string_lossy().starts_with(prefix);
        let is_part = path.extension().is_some_and(|extension| extension == "part");
        // Links and devices are never ours.
        if !is_ours || !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // Another process may have removed or renamed it.
        let Ok(part) = File::open(&path) else { continue };
        if part.try_lock().is_ok() {
            let _ = fs::remove_file(&path);
        }
        // Unlocked only here: the process that has just created it waits for the lock, and then
        // finds it removed.
        drop(part);
    }
    Ok(())
}

/// Creates a directory and its parents, for the owner only, if it does not exist.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Removes the permissions of others from a file or directory.
pub(crate) fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    match fs::metadata(path)?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir).and_then(|d| d.sync_all())
}
