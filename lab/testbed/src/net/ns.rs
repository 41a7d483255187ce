//! Network namespaces, each held by a process.
//!
//! A namespace has no name. It lives as long as a process in it, which we start. That process reads
//! from a pipe whose other end only we hold, so it ends with us, however we end. nsenter(1) starts
//! programs inside. It replaces itself by the program, so process id, signals and memory are the
//! program's own.
//!
//! Where we are not root, the namespaces belong to a user namespace that we make.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The line that the process in a namespace echoes once the namespace exists.
const ECHO: &str = "here\n";

/// Where systems keep `ip` and `tc`; a user's PATH may lack these directories.
const SYSTEM_DIRECTORIES: &str = "/usr/sbin:/sbin";

/// Congestion controls, best first. One that the machine does not permit in a namespace is skipped
/// (the setting is machine-wide, and the lab does not change it); reno is always permitted.
pub const CONGESTION: [&str; 2] = ["cubic", "reno"];

/// This machine does not permit namespaces; why.
#[derive(Debug)]
pub struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no network namespaces on this machine: {}", self.0)
    }
}

impl std::error::Error for Unavailable {}

/// How programs are started in a namespace.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The command that starts programs inside; the program and its arguments follow.
    program: OsString,
    arguments: Vec<String>,
}

impl Entrance {
    /// Into the network namespace with this path, and the user namespace that it belongs to where
    /// that is not ours.
    pub fn by_path(network: &str, user: Option<&str>) -> Entrance {
        let mut arguments = vec![format!("--net={network}")];
        if let Some(user) = user {
            arguments.extend([format!("--user={user}"), "--preserve-credentials".to_owned()]);
        }
        Entrance::by_nsenter(arguments)
    }

    /// Into a host of a network that is up, by this program `lab`. The programs end with the network,
    /// however it ends.
    pub fn by_exec(lab: &Path, network: &str, host: &str) -> Entrance {
        let arguments = ["exec", "--lab", network, host].map(str::to_owned).to_vec();
        Entrance { program: lab.into(), arguments }
    }

    fn by_nsenter(arguments: Vec<String>) -> Entrance {
        Entrance { program: "nsenter".into(), arguments }
    }

    /// The program, to be started inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg("--").arg(program).env("PATH", search_path());
        command
    }

    /// Runs a program inside and returns its standard output.
    ///
    /// # Errors
    /// It cannot be started, or ends with another code than 0; with its standard error.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let shown = || format!("{program} {}", arguments.join(" "));
        let output = self.command(program).args(arguments).stdin(Stdio::null()).output();
        let output = output.with_context(shown)?;
        if !output.status.success() {
            bail!("{}: {}", shown(), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Changes a setting of the kernel inside, by its path below `/proc/sys/net`.
    ///
    /// # Errors
    /// There is no such setting, or not such a value.
    pub fn set(&self, setting: &str, value: &str) -> Result<()> {
        // The kernel shows a process the settings of its own namespace.
        let path = format!("/proc/sys/net/{setting}");
        self.run("sh", &["-c", "printf '%s' \"$2\" >\"$1\"", "sh", &path, value]).map(drop)
    }
}

/// A network namespace. It ends once this is dropped and the programs inside have ended.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
    entrance: Entrance,
    in_user_namespace: bool,
}

impl Namespace {
    /// One of its own, with its loopback up and with TCP as a site needs it.
    ///
    /// # Errors
    /// The system does not permit it, or lacks unshare(1), nsenter(1) or ip(8).
    pub fn new() -> Result<Namespace, Unavailable> {
        let unavailable = |error: anyhow::Error| Unavailable(format!("{error:#}"));
        let user = || {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net"]);
            Namespace::hold(command, true)
        };
        let namespace = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("unshare");
            command.arg("--net");
            // Root of a container may lack the right, but may make a user namespace as any user.
            Namespace::hold(command, false).or_else(|_| user())
        } else {
            user()
        };
        let namespace = namespace.map_err(unavailable)?;
        namespace.prepare().map_err(unavailable)?;
        Ok(namespace)
    }

    /// Another namespace that a cable can join to this one.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn another(&self) -> Result<Namespace> {
        let mut command = Command::new("unshare");
        if self.in_user_namespace {
            // In the same user namespace, so that both have the same owner.
            let target = self.holder.id().to_string();
            command = Command::new("nsenter");
            command.args(["--target", &target, "--user", "--preserve-credentials", "unshare"]);
        }
        command.arg("--net");
        let namespace = Namespace::hold(command, self.in_user_namespace)?;
        namespace.prepare()?;
        Ok(namespace)
    }

    /// How programs are started inside.
    pub fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// The process that holds the namespace.
    pub(crate) fn holder(&self) -> u32 {
        self.holder.id()
    }

    fn hold(mut command: Command, in_user_namespace: bool) -> Result<Namespace> {
        command.arg("cat").env("PATH", search_path());
        // A process group of its own: Ctrl-C reaches only us, and we stop everything in order.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let holder = command.spawn().with_context(|| format!("starting {shown}"))?;
        let target = holder.id().to_string();
        let mut arguments = vec!["--target".to_owned(), target, "--net".to_owned()];
        if in_user_namespace {
            arguments.extend(["--user".to_owned(), "--preserve-credentials".to_owned()]);
        }
        let mut namespace =
            Namespace { holder, entrance: Entrance::by_nsenter(arguments), in_user_namespace };
        // An echo shows that the process is inside.
        let pipes = namespace.holder.stdin.as_mut().zip(namespace.holder.stdout.as_mut());
        let (stdin, stdout) = pipes.context("no pipes")?;
        let asked = stdin.write_all(ECHO.as_bytes());
        let mut answer = String::new();
        BufReader::new(stdout).read_line(&mut answer)?;
        if asked.is_err() || answer != ECHO {
            let mut complaint = String::new();
            if let Some(stderr) = namespace.holder.stderr.as_mut() {
                BufReader::new(stderr).read_line(&mut complaint)?;
            }
            bail!("{}", complaint.trim());
        }
        Ok(namespace)
    }

    fn prepare(&self) -> Result<()> {
        let inside = &self.entrance;
        inside.run("ip", &["link", "set", "lo", "up"])?;
        let chosen = CONGESTION
            .iter()
            .find_map(|congestion| inside.set("ipv4/tcp_congestion_control", congestion).ok());
        chosen.context("no congestion control can be set")?;
        inside.set("ipv4/tcp_slow_start_after_idle", "0")?;
        inside.set("ipv4/tcp_reflect_tos", "0")?;
        // A machine may have no IPv6 at all; then adding an address fails with its own error.
        if Path::new("/proc/sys/net/ipv6").exists() {
            inside.set("ipv6/conf/all/disable_ipv6", "0")?;
            inside.set("ipv6/conf/default/disable_ipv6", "0")?;
            inside.set("ipv6/conf/default/keep_addr_on_down", "1")?;
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// PATH, followed by the directories in which systems keep `ip` and `tc`.
pub fn search_path() -> String {
    match std::env::var("PATH") {
        Ok(path) if !path.is_empty() => format!("{path}:{SYSTEM_DIRECTORIES}"),
        _ => format!("/usr/bin:/bin:{SYSTEM_DIRECTORIES}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_empty_and_ends_with_its_owner() {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(why) => {
                let _ = writeln!(std::io::stderr().lock(), "    SKIPPED a_namespace: {why}");
                return;
            }
        };
        let links = namespace.entrance().run("ip", &["-brief", "link"]).unwrap();
        assert_eq!(links.lines().filter(|line| line.contains("UP")).count(), 1, "{links}");
        let path = "/proc/sys/net/ipv4/tcp_congestion_control";
        let congestion = namespace.entrance().run("cat", &[path]).unwrap();
        assert!(CONGESTION.contains(&congestion.trim()), "{congestion}");
        let other = namespace.another().unwrap();
        let of = |namespace: &Namespace| {
            namespace.entrance().run("readlink", &["/proc/self/ns/net"]).unwrap()
        };
        assert_ne!(of(&namespace), of(&other));
        assert!(namespace.entrance().set("ipv4/no_such_setting", "1").is_err());

        let pid = other.holder();
        drop(other);
        assert!(!Path::new(&format!("/proc/{pid}/ns/net")).exists());
    }
}
