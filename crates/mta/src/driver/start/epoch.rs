//! The epoch: a number of this start that no earlier start had, which all identifiers contain.
//!
//! It is the count of starts, in the store and, in case that is lost, in a file of the data directory. In
//! case both are older copies that were restored, it is at least the number of minutes since 2026.

use base::Utc;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// 2026-01-01T00:00:00Z.
const BEGINNING: Utc = Utc(1_767_225_600_000_000);

/// Epochs have 24 bits: identifiers of entries have the others.
const END: u32 = 1 << 24;

/// A clock that gives more minutes than this, in the year 2041, is not believed.
const BELIEVED: u64 = 1 << 23;

/// The epoch of this start, by the last one in the store (`None`: damaged) and in the file; `None` if
/// all are used.
pub(super) fn next_epoch(stored: Option<u32>, kept: Option<u32>, now: Utc) -> Option<u32> {
    let minutes = now.since(BEGINNING).as_secs() / 60;
    let by_clock = u32::try_from(minutes).ok().filter(|_| minutes < BELIEVED).unwrap_or(0);
    let last = stored.unwrap_or(0).max(kept.unwrap_or(0));
    Some(last.checked_add(1)?.max(by_clock)).filter(|epoch| *epoch < END)
}

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
    fn no_epoch_comes_twice_whatever_is_lost() {
        let at = |minutes: u64| BEGINNING + std::time::Duration::from_secs(minutes * 60);
        assert_eq!(next_epoch(Some(5), Some(5), at(0)), Some(6), "an old clock");
        assert_eq!(next_epoch(Some(0), Some(9), at(0)), Some(10), "the store is lost");
        assert_eq!(next_epoch(None, Some(9), at(0)), Some(10), "or damaged");
        assert_eq!(next_epoch(Some(3), Some(3), at(700)), Some(700), "both are restored");
        assert_eq!(next_epoch(Some(700), None, at(700)), Some(701), "twice in a minute");
        assert_eq!(next_epoch(Some(3), None, at(1 << 30)), Some(4), "a clock far ahead");
        assert_eq!(next_epoch(Some(END - 1), None, at(0)), None);
    }

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
