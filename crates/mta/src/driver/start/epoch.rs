//! The epoch of a start ([`engine::next_epoch`]) in its second place, a file of the data directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The epoch in the file, if there is one.
pub(super) fn read(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Keeps an epoch in the file, durably.
pub(super) fn write(path: &Path, epoch: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(format!("{epoch}\n").as_bytes())?;
    file.sync_all()?;
    rename(&new, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the directory is synced by the caller")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("epoch");
        assert_eq!(read(&path), None);
        write(&path, 7).unwrap();
        write(&path, 472_000).unwrap();
        assert_eq!(read(&path), Some(472_000));
        std::fs::write(&path, "x").unwrap();
        assert_eq!(read(&path), None);
    }
}
