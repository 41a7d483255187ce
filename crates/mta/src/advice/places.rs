//! Advice on files that the daemon cannot create where the configuration places them.

use super::{Advice, Severity};
use crate::config::Site;
use std::path::Path;

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
        .collect()
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
