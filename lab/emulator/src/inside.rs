//! Programs inside a host of a network that is up.
//!
//! A program gets a process namespace of its own, whose first process is `lab inside`. Once that
//! ends, the kernel ends all others in it, including daemons and other sessions. It ends with the
//! program, with `lab exec`, and with the network.

use crate::control::client::HostAccess;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use testbed::ns::search_path;

/// The code of a program that a signal ended, as shells have it: this and the signal's number.
const BY_SIGNAL: i32 = 128;

/// Runs a program inside, with our standard streams; returns its exit code. This process must have
/// one thread only, and stays inside.
///
/// # Errors
/// The network ended before the program did; the namespaces cannot be entered; there is no such
/// program.
pub fn run(access: &HostAccess, name: &str, command: &[OsString]) -> Result<u8> {
    let own = std::env::current_exe().context("where this program is")?;
    let open = |path: &str| File::open(path).with_context(|| format!("opening {path}"));
    let network = open(&access.network)?;
    if let Some(user) = &access.user {
        setns(open(user)?, CloneFlags::CLONE_NEWUSER).context("entering the user namespace")?;
    }
    setns(network, CloneFlags::CLONE_NEWNET).context("entering the network namespace")?;
    // Children are the first processes of a namespace of their own; this process stays where it is.
    unshare(CloneFlags::CLONE_NEWPID).context("a process namespace")?;
    // Ctrl-C is for the program, which decides what to do. SIGCHLD is read from a descriptor.
    let keys: SigSet = [Signal::SIGINT, Signal::SIGQUIT].into_iter().collect();
    let children: SigSet = [Signal::SIGCHLD].into_iter().collect();
    keys.thread_block()?;
    children.thread_block()?;
    let ended = SignalFd::new(&children).context("signalfd(2)")?;
    let mut child = Command::new(own);
    child.arg("inside").arg(std::process::id().to_string()).arg("--").args(command);
    let mut child = child.spawn().context("starting lab inside")?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let mut watched = [
            PollFd::new(access.connection.as_fd(), PollFlags::POLLIN),
            PollFd::new(ended.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("poll(2)"),
        }
        let [connection, children] = watched.map(|one| one.any().unwrap_or(true));
        // The network never sends here: the connection becomes readable only at its end.
        if connection && child.try_wait()?.is_none() {
            child.kill()?;
            child.wait()?;
            bail!("the network {name} ended, and what ran in it");
        }
        if children {
            let _ = ended.read_signal();
        }
    };
    let code = status.code().or(status.signal().map(|signal| BY_SIGNAL + signal)).unwrap_or(1);
    Ok(u8::try_from(code)?)
}

/// The first process of a process namespace: runs a program and ends with it, with its exit code.
/// What it leaves behind ends then.
///
/// # Errors
/// There is no such program.
pub fn first(parent: u32, command: &[OsString]) -> Result<u8> {
    set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have gone before that; /proc is that of the machine, and so are its numbers.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    if line.is_some_and(|number| number.trim() != parent.to_string()) {
        bail!("the process that started this has ended");
    }
    let Some((program, arguments)) = command.split_first() else { bail!("no program") };
    SigSet::empty().thread_set_mask()?;
    let mut child = Command::new(program);
    child.args(arguments).env("PATH", search_path());
    let child = match child.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("lab: {}: {error}", program.display());
            // As shells have it.
            return Ok(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 });
        }
    };
    let child = Pid::from_raw(i32::try_from(child.id())?);
    // Orphans of other programs become children of this process, which must wait for them too.
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Ok(u8::try_from(code)?),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                return Ok(u8::try_from(BY_SIGNAL + signal as i32)?);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waitpid(2)"),
        }
    }
}
