//! Advice on files that the daemon cannot create where the configuration places them, and on a data
//! directory that others can reach.

use super::{Advice, Severity};
use crate::config::Site;
use nix::sys::statvfs::statvfs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use users::Users;

/// Advice on the admin socket and the event log. The daemon creates the data directory at start,
/// so files inside it are not checked.
pub(super) fn look(site: &Site) -> Vec<Advice> {
    let data_dir = &site.paths.data_dir;
    let socket = ("admin_socket of [mta]", site.paths.admin_socket.as_path());
    let events = site.events.as_ref().map(|events| ("file of [events]", events.path.as_path()));
    [Some(socket), events]
        .into_iter()
        .flatten()
        .filter_map(|(key, path)| {
            let why = why_not(path, data_dir)?;
            let message =
                format!("{key} is {}: {why}, so the daemon will not start", path.display());
            let remedy = "make the directory for the daemon's user, or write a name alone: it is \
                          put into data_dir then";
            Some(Advice::new(Severity::Warning, "system", message, remedy))
        })
        .chain(open_to_others(data_dir))
        .chain(users_unreadable(data_dir))
        .chain(reserve_too_large(site))
        .collect()
}

/// The daemon reads the users at its start.
fn users_unreadable(data_dir: &Path) -> Option<Advice> {
    let error = Users::read(data_dir).err()?;
    let message = format!("{error}; the daemon will not start");
    let remedy = "the file belongs to the daemon's user, mode 0600";
    Some(Advice::new(Severity::Warning, "system", message, remedy))
}

/// With it everything below Flash is refused for good.
fn reserve_too_large(site: &Site) -> Option<Advice> {
    let reserve = site.disk_reserve?;
    let found = statvfs(&site.paths.data_dir).ok()?;
    let total = found.blocks().saturating_mul(found.fragment_size());
    let message = format!(
        "disk_reserve of [mta] is {} MiB and the disk of data_dir has {} MiB: everything below Flash \
         is refused",
        reserve >> 20,
        total >> 20
    );
    let remedy =
        "write a smaller disk_reserve, or remove it: the default is a twentieth of the disk";
    (reserve >= total).then(|| Advice::new(Severity::Warning, "system", message, remedy))
}

/// The queue has the contents of messages, and `users.toml` hashes of passwords.
fn open_to_others(data_dir: &Path) -> Option<Advice> {
    let mode = data_dir.metadata().ok()?.permissions().mode() & 0o7777;
    let shown = data_dir.display();
    let message = format!("data_dir {shown} has mode {mode:04o}: other users can reach it");
    let remedy = format!("chmod 0700 {shown}");
    (mode & 0o077 != 0).then(|| Advice::new(Severity::Warning, "system", message, remedy))
}

fn why_not(path: &Path, data_dir: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("that is a directory".to_owned());
    }
    let directory = path.parent()?;
    let missing = directory != data_dir && !directory.is_dir();
    missing.then(|| format!("there is no directory {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_of_others_is_shown() {
        let data = tempfile::tempdir().unwrap();
        let set = |mode| {
            std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o700);
        assert!(open_to_others(data.path()).is_none());
        set(0o755);
        assert!(open_to_others(data.path()).unwrap().message.contains("has mode 0755"));
        assert!(open_to_others(&data.path().join("none")).is_none());
    }

    #[test]
    fn users_that_the_daemon_cannot_read_are_shown() {
        let data = tempfile::tempdir().unwrap();
        assert!(users_unreadable(data.path()).is_none(), "no users");
        std::fs::write(data.path().join("users.toml"), "\u{1b}[31m").unwrap();
        assert!(users_unreadable(data.path()).unwrap().message.contains("will not start"));
    }

    #[test]
    fn directories_that_are_not_there_and_files_that_are_directories() {
        let there = tempfile::tempdir().unwrap();
        let data = there.path().join("data");
        let why = |path: &str| why_not(&there.path().join(path), &data);
        assert_eq!(why("admin.sock"), None);
        assert_eq!(why("data/admin.sock"), None, "it is made at the start");
        assert!(why("other/admin.sock").unwrap().starts_with("there is no directory "));
        std::fs::create_dir_all(data.join("events")).unwrap();
        assert_eq!(why("data/events").unwrap(), "that is a directory");
    }
}
