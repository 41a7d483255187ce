//! Checks whether a directory can hold the daemon's files, without creating anything.

use config::Unfit;
use nix::unistd::{AccessFlags, access};
use std::io::ErrorKind;
use std::path::Path;

/// Why the daemon's user could not keep files in this directory; `None` where it could. A
/// directory that does not exist yet must be one that can be created.
pub fn unfit(directory: &Path) -> Option<Unfit> {
    let shown = directory.display();
    let mut at = directory;
    let found = loop {
        match at.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => break found,
        }
        match at.parent() {
            Some(above) if above.as_os_str().is_empty() => at = Path::new("."),
            Some(above) => at = above,
            None => break at.metadata(),
        }
    };
    let existing = at.display();
    let (why, remedy) = match found {
        Ok(found) if !found.is_dir() => (
            format!("{existing} is a file, not a directory"),
            "name a directory; the daemon makes it if it is not there".to_owned(),
        ),
        Ok(_) if access(at, AccessFlags::W_OK | AccessFlags::X_OK).is_ok() => return None,
        Ok(_) => (
            format!("{existing} is a directory that this user cannot write to"),
            format!(
                "make {shown} as root and give it to the daemon's user: \
                 install -d -m 0700 -o USER {shown}; and run this check as that user"
            ),
        ),
        Err(error) => (
            format!("{existing} cannot be looked at: {error}"),
            "name a directory that the daemon's user can reach".to_owned(),
        ),
    };
    Some(Unfit { why, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// Names the directories for the test that runs as another user.
    const MADE: &str = "DATA_DIR_TEST";

    #[test]
    fn a_file_is_no_directory_and_neither_is_what_lies_below_one() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(unfit(directory.path()), None);
        assert_eq!(unfit(&directory.path().join("not/yet")), None);
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let why = unfit(&file).unwrap().why;
        assert!(why.ends_with("file is a file, not a directory"), "{why}");
        assert!(unfit(&file.join("below")).is_some());
    }

    fn check(made: &Path) {
        for directory in ["read-only", "read-only/not/yet"] {
            let Unfit { why, remedy } = unfit(&made.join(directory)).unwrap();
            let existing = made.join("read-only");
            let cannot =
                format!("{} is a directory that this user cannot write to", existing.display());
            assert_eq!(why, cannot);
            assert!(
                remedy.contains(&format!("-o USER {}", made.join(directory).display())),
                "{remedy}"
            );
        }
        let why = unfit(&made.join("closed/below")).unwrap().why;
        assert!(why.contains("cannot be looked at: Permission denied"), "{why}");
        assert_eq!(unfit(&made.join("open")), None);
    }

    #[test]
    fn a_directory_without_the_right_to_write_is_none() {
        // Root may write everywhere, so the test runs itself again as user nobody.
        if let Some(made) = std::env::var_os(MADE) {
            return check(Path::new(&made));
        }
        let made = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(made.path(), 0o755);
        let all = [("read-only", 0o555), ("closed", 0o000), ("open", 0o777)];
        for (name, bits) in all {
            create_dir(made.path().join(name)).unwrap();
            mode(&made.path().join(name), bits);
        }
        if nix::unistd::geteuid().is_root() {
            let run = Command::new("/proc/self/exe")
                .args([
                    "--exact",
                    "data_dir::tests::a_directory_without_the_right_to_write_is_none",
                ])
                .env(MADE, made.path())
                .uid(65_534)
                .gid(65_534)
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && output.contains("1 passed"), "{output}");
        } else {
            check(made.path());
        }
        all.iter().for_each(|(name, _)| mode(&made.path().join(name), 0o700));
    }
}
