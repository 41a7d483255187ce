//! The users' programs: `xuxa`, started and read.

use crate::ledger::Acknowledged;
use crate::message::{Place, User};
use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testbed::answer::SendOutput;
use testbed::child::Child;

/// Longest end of a client that was asked to end.
const SOON: Duration = Duration::from_secs(20);

/// What starts the clients of all users. Each site has a directory with the profiles, the passwords
/// and the inboxes of its users.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    xuxa: PathBuf,
    directory: PathBuf,
    nodes: usize,
    started: Arc<AtomicU32>,
}

impl Clients {
    /// With this program, below this directory, for a site of so many nodes.
    pub(crate) fn new(xuxa: &Path, directory: &Path, nodes: usize) -> Clients {
        let started = Arc::default();
        Clients { xuxa: xuxa.to_owned(), directory: directory.to_owned(), nodes, started }
    }

    /// The directory of the users of a site.
    pub(crate) fn home(&self, place: Place) -> PathBuf {
        self.directory.join(format!("users-{}", place.name()))
    }

    /// The profile of a user at a node of his site.
    pub(crate) fn profile(user: User, node: usize) -> String {
        format!("{}-{}", user.name, node + 1)
    }

    /// At how many nodes a user can bind.
    pub(crate) fn nodes(&self, user: User) -> usize {
        if user.place == Place::Hq { self.nodes } else { 1 }
    }

    /// What a user received and kept, at whichever node.
    pub(crate) fn inbox_log(&self, user: User) -> PathBuf {
        self.home(user.place).join(format!("inbox-{}/received.log", user.name))
    }

    /// Starts `xuxa` for a user, bound to this node, modulo their number.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(&self, user: User, node: usize, arguments: &[String]) -> Result<Running> {
        let home = self.home(user.place);
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (stdout, stderr) =
            (home.join(format!("{number}.out")), home.join(format!("{number}.err")));
        let mut command = Command::new(&self.xuxa);
        command.arg("--config").arg(home.join("xuxa.toml"));
        command.args(["--profile", &Clients::profile(user, node % self.nodes(user))]);
        command.args(arguments).current_dir(&home).stdin(Stdio::null());
        Ok(Running { child: Child::spawn(command, &stdout, &stderr)?, stdout, stderr })
    }
}

/// A client that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Whether it has ended.
    ///
    /// # Errors
    /// The system does not report it.
    pub(crate) fn ended(&mut self) -> Result<bool> {
        Ok(self.child.ended()?.is_some())
    }

    /// Waits for its end for so long; whether it came.
    ///
    /// # Errors
    /// The program was interrupted.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> Result<bool> {
        let ended = self.child.wait(limit).is_ok();
        if testbed::clock::is_interrupted() {
            anyhow::bail!("interrupted");
        }
        Ok(ended)
    }

    /// Asks it to end, as Ctrl-C does, and then insists.
    pub(crate) fn stop(&mut self) {
        let asked = self.child.signal(Signal::SIGINT).is_ok();
        if asked && self.child.wait(SOON).is_err() {
            let _ = self.child.signal(Signal::SIGKILL);
            let _ = self.child.wait(SOON);
        }
    }

    /// The answer to the one message that it submitted, if it was accepted; of this time.
    ///
    /// # Errors
    /// What it printed cannot be read.
    pub(crate) fn accepted(self, at: Duration) -> Result<Option<Acknowledged>> {
        let (output, _) = self.output::<SendOutput>()?;
        let accepted = output.and_then(|output| output.messages.into_iter().next());
        Ok(accepted.map(|accepted| Acknowledged {
            mts_identifier: accepted.mts_identifier,
            sha256: accepted.content_sha256,
            at,
        }))
    }

    /// The JSON that it printed, if it printed any, and its complaint. Its files are removed.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn output<T: serde::de::DeserializeOwned>(self) -> Result<(Option<T>, String)> {
        let read = |path: &Path| -> Result<String> {
            let octets = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            fs::remove_file(path)?;
            Ok(String::from_utf8_lossy(&octets).into_owned())
        };
        let (stdout, stderr) = (read(&self.stdout)?, read(&self.stderr)?);
        Ok((serde_json::from_str(&stdout).ok(), stderr))
    }
}
