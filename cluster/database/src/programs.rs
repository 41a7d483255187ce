//! Where the programs of PostgreSQL are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest release that is supported.
const OLDEST: u32 = 15;
/// Where Debian keeps each release: the programs are in `RELEASE/bin`.
const DEBIAN: &str = "/usr/lib/postgresql";
/// What has to be there.
const NEEDED: [&str; 4] = ["postgres", "initdb", "psql", "pg_basebackup"];

/// PostgreSQL is not installed.
#[derive(Clone, Debug)]
pub struct Missing;

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no PostgreSQL {OLDEST} or later, neither below {DEBIAN} nor in PATH: as root, \
             apt-get install postgresql"
        )
    }
}

impl std::error::Error for Missing {}

/// The directory of the programs, and their release.
#[derive(Clone, Debug)]
pub struct Programs {
    directory: PathBuf,
    release: u32,
}

impl Programs {
    /// The newest release of those that Debian installs side by side; otherwise that in PATH.
    ///
    /// # Errors
    /// There is none, or it is older than 15.
    pub fn find() -> Result<Programs, Missing> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Programs::find_in(Path::new(DEBIAN), &path).ok_or(Missing)
    }

    fn find_in(debian: &Path, path: &std::ffi::OsStr) -> Option<Programs> {
        let releases = std::fs::read_dir(debian).into_iter().flatten().flatten();
        let of_debian = releases.filter_map(|entry| {
            let release = entry.file_name().to_str()?.parse().ok()?;
            Some(Programs { directory: entry.path().join("bin"), release })
        });
        let newest = of_debian.filter(Programs::is_usable).max_by_key(|found| found.release);
        newest.or_else(|| {
            let directory =
                std::env::split_paths(path).find(|dir| dir.join("postgres").is_file())?;
            let release = release(&directory)?;
            Some(Programs { directory, release }).filter(Programs::is_usable)
        })
    }

    fn is_usable(&self) -> bool {
        self.release >= OLDEST && NEEDED.iter().all(|name| self.path(name).is_file())
    }

    /// The path of one of them, as `psql`.
    pub fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }

    /// The major release.
    pub fn release(&self) -> u32 {
        self.release
    }
}

/// The release that `postgres --version` prints: `postgres (PostgreSQL) 15.8 (Debian ...)`.
fn release(directory: &Path) -> Option<u32> {
    let output = Command::new(directory.join("postgres")).arg("--version").output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = printed.split_whitespace().find(|word| word.starts_with(char::is_numeric))?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn installed(directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        NEEDED.iter().for_each(|name| fs::write(directory.join(name), "").unwrap());
    }

    #[test]
    fn the_newest_release_is_taken_and_an_old_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let none = std::ffi::OsStr::new("");
        installed(&home.path().join("14/bin"));
        assert!(Programs::find_in(home.path(), none).is_none());
        installed(&home.path().join("15/bin"));
        installed(&home.path().join("17/bin"));
        fs::create_dir_all(home.path().join("18/bin")).unwrap();
        let found = Programs::find_in(home.path(), none).unwrap();
        assert_eq!((found.release(), found.path("psql")), (17, home.path().join("17/bin/psql")));
        assert!(Missing.to_string().ends_with("apt-get install postgresql"));
    }
}
