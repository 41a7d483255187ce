//! The processes of a server: its account, its signals, and the watcher that outlives its owner.

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::clock::Deadline;

/// Longest end of processes that were killed.
const GONE: Duration = Duration::from_secs(20);

/// The account of the server's processes where we are root: PostgreSQL refuses to run as root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// That of PostgreSQL's package, or nobody's; `None` where we are an ordinary user already.
    pub(crate) fn find() -> Result<Option<Account>> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(None);
        }
        for name in ["postgres", "nobody"] {
            if let Some(user) = User::from_name(name).context("the accounts of this machine")? {
                return Ok(Some(Account { uid: user.uid, gid: user.gid }));
            }
        }
        anyhow::bail!("root cannot run PostgreSQL, and there is no account postgres or nobody")
    }
}

/// A command of this account. The standard library drops root's groups with the user.
pub(crate) fn command(program: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new(program);
    if let Some(account) = account {
        command.gid(account.gid.as_raw()).uid(account.uid.as_raw());
    }
    // The locale of who runs a test must not decide what is printed and sorted.
    command.env("LC_ALL", "C").env_remove("PGDATA").env_remove("PGOPTIONS");
    command
}

/// Gives a file or a directory to the account.
pub(crate) fn give(path: &Path, account: Option<Account>) -> Result<()> {
    let Some(account) = account else { return Ok(()) };
    nix::unistd::chown(path, Some(account.uid), Some(account.gid))
        .with_context(|| format!("giving {} to the server's account", path.display()))
}

/// The children of a process; empty where it has ended.
fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether the process runs; one that only waits to be reaped does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may contain anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Sends a signal to a process of a server that is known to run, or was a moment ago.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Stops all processes of a server where they are (SIGSTOP).
pub(crate) fn freeze(postmaster: u32) {
    // The postmaster first: then it makes no more children while they are listed.
    send(postmaster, Signal::SIGSTOP);
    for child in children(postmaster) {
        send(child, Signal::SIGSTOP);
    }
}

/// Lets them continue (SIGCONT).
pub(crate) fn thaw(postmaster: u32) {
    for child in children(postmaster) {
        send(child, Signal::SIGCONT);
    }
    send(postmaster, Signal::SIGCONT);
}

/// Ends all processes of a server at once (SIGKILL), as the loss of the machine would.
///
/// # Errors
/// One still runs after 20 s.
pub(crate) fn crash(postmaster: &mut Child) -> Result<()> {
    let pid = postmaster.id();
    freeze(pid);
    let children = children(pid);
    for child in &children {
        send(*child, Signal::SIGKILL);
    }
    // An error only where it has ended before.
    let _ = postmaster.kill();
    postmaster.wait().context("the end of the postmaster")?;
    let gone = || Ok((!children.iter().any(|child| runs(*child))).then_some(()));
    Deadline::after(GONE).wait_for("the end of the server's processes", gone)
}

/// What remains when the owner is killed is ended and removed by a shell that reads a pipe which only
/// the owner holds, or reads it for too long. It checks that the process is the server's before it
/// kills it: a server runs in its data directory.
const WATCHER: &str = r#"
home=$1 data=$1/data
timeout "$2" cat >/dev/null
pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$data" ]; then
    children=$(cat "/proc/$pid/task/$pid/children")
    kill -KILL "$pid" $children
fi
[ -e "$home/owned" ] || exit 0
umount "$data"
rm -rf "$home"
"#;

/// The shell that ends what is left.
#[derive(Debug)]
pub(crate) struct Watcher {
    shell: Child,
}

impl Watcher {
    /// Watches over the server in this directory, for so long at most.
    pub(crate) fn start(home: &Path, lifetime: Duration) -> Result<Watcher> {
        std::fs::write(home.join("owned"), "")?;
        let seconds = lifetime.as_secs().max(1).to_string();
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "watcher"]).arg(home).arg(seconds);
        // Its own group: an interrupt at the terminal must not end it before it has done its work.
        command.process_group(0).stdin(Stdio::piped());
        let shell = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Watcher { shell: shell.context("starting the watcher of a server")? })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
