//! Network namespaces of the program `lab up`, held only by descriptors.
//!
//! They have neither processes nor names: they end with the process that holds the descriptors,
//! however it ends. Where we are not root they belong to a user namespace that this process moved
//! into ([`Rights::acquire`]).
//!
//! A program with many threads cannot move into a user namespace. For such programs
//! [`crate::Namespace`] keeps a process in the namespace.

use crate::clock;
use crate::net::ns::{CONGESTION, Entrance, search_path};
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How many milliseconds the kernel may take to remove a thread that has ended.
const MOMENTS: usize = 100;

/// The rights with which this process makes namespaces and interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Root of this machine or container.
    Root,
    /// Root of a user namespace of its own; any user may make one.
    User,
}

impl Rights {
    /// The rights of this process. Where they do not suffice for a network namespace, the process
    /// moves into a user namespace; then it must have one thread only.
    ///
    /// # Errors
    /// Neither is possible; why.
    pub fn acquire() -> Result<Rights> {
        let as_root = if geteuid().is_root() { Rights::as_root() } else { bail_user() };
        as_root.or_else(|root| Rights::as_user().with_context(|| format!("as root: {root:#}")))
    }

    /// The rights of root, where this process has them.
    ///
    /// # Errors
    /// It is not root, or not allowed to make a network namespace.
    pub fn as_root() -> Result<Rights> {
        if !geteuid().is_root() {
            return bail_user();
        }
        Netns::new().context("a network namespace")?;
        Ok(Rights::Root)
    }

    /// Moves this process, which must have one thread only, into a user namespace.
    ///
    /// # Errors
    /// The system does not permit user namespaces, or gives no rights in them.
    pub fn as_user() -> Result<Rights> {
        let (user, group) = (geteuid(), getegid());
        // The kernel may still count a thread that was joined.
        let mut moved = unshare(CloneFlags::CLONE_NEWUSER);
        for _ in 0..MOMENTS {
            if moved != Err(Errno::EINVAL) {
                break;
            }
            clock::pause(Duration::from_millis(1));
            moved = unshare(CloneFlags::CLONE_NEWUSER);
        }
        moved.context("a user namespace (unshare(2))")?;
        let write = |file: &str, text: &str| {
            let path = format!("/proc/self/{file}");
            std::fs::write(&path, text).with_context(|| format!("writing {path}"))
        };
        write("setgroups", "deny")?;
        write("uid_map", &format!("0 {user} 1"))?;
        write("gid_map", &format!("0 {group} 1"))?;
        Netns::new().context("a network namespace in a user namespace")?;
        Ok(Rights::User)
    }

    /// A name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Rights::Root => "root",
            Rights::User => "user namespace",
        }
    }
}

fn bail_user() -> Result<Rights> {
    bail!("user {} is not root", geteuid())
}

/// A network namespace that lives as long as this.
#[derive(Debug)]
pub struct Netns {
    fd: OwnedFd,
}

impl Netns {
    /// A new one; its loopback is down.
    ///
    /// # Errors
    /// This process lacks the right.
    pub fn new() -> Result<Netns> {
        // Only the thread moves; the descriptor outlives it.
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("unshare(2)")?;
            let path = "/proc/thread-self/ns/net";
            let file = File::open(path).with_context(|| format!("opening {path}"))?;
            Ok(Netns { fd: file.into() })
        })
    }

    /// The same namespace, with another descriptor.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn another(&self) -> Result<Netns> {
        Ok(Netns { fd: self.fd.try_clone()? })
    }

    /// Does `work` in the namespace, in a thread of its own.
    ///
    /// # Errors
    /// The work fails, or the namespace cannot be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        in_thread(|| {
            setns(&self.fd, CloneFlags::CLONE_NEWNET).context("setns(2)")?;
            work()
        })
    }

    /// How other processes of this user start programs inside, while this process lives.
    pub fn entrance(&self, rights: Rights) -> Entrance {
        let user = format!("/proc/{}/ns/user", std::process::id());
        Entrance::by_path(&self.path(), (rights == Rights::User).then_some(&user))
    }

    /// The path of the namespace for other processes of this user, while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }

    /// Runs the lines as `ip -batch` does, inside.
    ///
    /// # Errors
    /// ip(8) refuses a line; with its message.
    pub fn ip(&self, lines: &[String]) -> Result<()> {
        self.batch("ip", &["-batch", "-"], lines)
    }

    /// Runs the lines as `tc -batch` does, inside.
    ///
    /// # Errors
    /// tc(8) refuses a line; with its message.
    pub fn tc(&self, lines: &[String]) -> Result<()> {
        self.batch("tc", &["-batch", "-"], lines)
    }

    fn batch(&self, program: &str, arguments: &[&str], lines: &[String]) -> Result<()> {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        self.within(|| {
            let mut child = Command::new(program)
                .args(arguments)
                .env("PATH", search_path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .with_context(|| format!("starting {program} (of iproute2)"))?;
            if let Some(mut stdin) = child.stdin.take() {
                // A program that ends before it has read all reports why on standard error.
                let _ = stdin.write_all(text.as_bytes());
            }
            let output = child.wait_with_output()?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let number = stderr.rsplit_once("-:").and_then(|(_, at)| at.trim().parse().ok());
                let line = number.and_then(|at: usize| lines.get(at.checked_sub(1)?));
                let line = line.map_or_else(|| lines.join("; "), Clone::clone);
                bail!("{program} {line}: {}", stderr.lines().next().unwrap_or("failed"));
            }
            Ok(())
        })
    }

    /// Changes a setting of the kernel inside, by its path below `/proc/sys/net`.
    ///
    /// # Errors
    /// There is no such setting, or not such a value.
    pub fn set(&self, setting: &str, value: &str) -> Result<()> {
        self.within(|| set_here(setting, value))
    }

    /// A setting of the kernel inside, by its path below `/proc/sys/net`.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn get(&self, setting: &str) -> Result<String> {
        let path = format!("/proc/sys/net/{setting}");
        self.within(|| {
            let value =
                std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
            Ok(value.trim().to_owned())
        })
    }

    /// Configures the namespace of a host: loopback, IPv6, the same congestion control in all hosts,
    /// and no TCP option that changes marks.
    ///
    /// # Errors
    /// The loopback cannot be brought up. A setting that cannot be made is skipped: the machine may
    /// have no IPv6, and a container may not permit writes to `/proc/sys`.
    pub fn prepare(&self) -> Result<()> {
        self.within(|| {
            let _ = CONGESTION
                .iter()
                .find(|control| set_here("ipv4/tcp_congestion_control", control).is_ok());
            let settings = [
                ("ipv4/tcp_slow_start_after_idle", "0"),
                ("ipv4/tcp_reflect_tos", "0"),
                ("ipv4/ping_group_range", "0 0"),
                ("ipv4/conf/all/rp_filter", "0"),
                ("ipv4/conf/default/rp_filter", "0"),
                ("ipv6/conf/all/disable_ipv6", "0"),
                ("ipv6/conf/default/disable_ipv6", "0"),
                ("ipv6/conf/default/accept_ra", "0"),
                ("ipv6/conf/default/router_solicitations", "0"),
                ("ipv6/conf/default/addr_gen_mode", "1"),
            ];
            for (setting, value) in settings {
                let _ = set_here(setting, value);
            }
            Ok(())
        })?;
        self.ip(&["link set lo up".to_owned()])
    }
}

fn set_here(setting: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/net/{setting}");
    std::fs::write(&path, value).with_context(|| format!("writing {value} to {path}"))
}

fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(_) => bail!("a thread in a namespace ended early"),
    })
}

/// Whether this machine has IPv6.
pub fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}
