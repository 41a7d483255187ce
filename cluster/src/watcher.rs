//! Ends what is left of a trial that was killed itself: a shell that reads a pipe which only the trial holds.

use anyhow::{Context as _, Result};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Daemons and clients run in directories of the trial, and nobody else does.
const WATCHER: &str = r#"
home=$1
timeout "$2" cat >/dev/null
for process in /proc/[0-9]*; do
    case $(readlink "$process/cwd") in
        "$home"/*) kill -KILL "${process#/proc/}" ;;
    esac
done
[ -e "$home/owned" ] && rm -rf "$home"
exit 0
"#;

/// The shell. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Watcher {
    home: PathBuf,
    shell: Child,
}

impl Watcher {
    /// Watches over what runs below this directory, for so long at most.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(home: &Path, lifetime: Duration) -> Result<Watcher> {
        // The system reports directories without symbolic links.
        let home = fs::canonicalize(home)?;
        fs::write(home.join("owned"), "")?;
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "watcher"]).arg(&home);
        command.arg(lifetime.as_secs().max(1).to_string());
        // Its own group: an interrupt at the terminal must not end it before it has done its work.
        command.process_group(0).stdin(Stdio::piped());
        let shell = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Watcher { home, shell: shell.context("starting the watcher of a trial")? })
    }

    /// Leaves the directory where it is.
    pub(crate) fn keep(&self) {
        let _ = fs::remove_file(self.home.join("owned"));
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_in_the_directory_ends_with_the_trial() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("site");
        fs::create_dir(&inside).unwrap();
        let mut inside = Command::new("sleep").arg("600").current_dir(inside).spawn().unwrap();
        let mut outside = Command::new("sleep").arg("600").spawn().unwrap();
        drop(Watcher::start(home.path(), Duration::from_secs(600)).unwrap());
        assert_eq!(inside.wait().unwrap().code(), None);
        assert!(outside.try_wait().unwrap().is_none());
        assert!(!home.path().exists());
        outside.kill().unwrap();
        outside.wait().unwrap();
    }
}
