//! Networks that tests keep up, and what is left of them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use testbed::clock::Deadline;

/// Bounds every wait; a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// By this variable a process is known to be of a test, and of which.
const MARK: &str = "LAB_TEST_MARK";

/// Two hosts and a router between them that marks by the policy `mark`.
pub(crate) const PAIR: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[routers.r]
policy = "mark"
ports.left = { addresses = ["10.0.1.1/24", "fd00:1::1/64"] }
ports.right = { addresses = ["10.0.2.1/24", "fd00:2::1/64"] }
[[links]]
ends = ["a.eth0", "r.left"]
[[links]]
ends = ["r.right", "b.eth0"]
"#;

/// Of what comes in at `left`: CS3 becomes AF41, and flows in a table get marks of their own.
pub(crate) const MARKING: &str = r#"
[tables.flows]
[classes.flash]
match = [{ dscp = ["CS3"] }]
[chains]
edge = [{ kind = "mark", class = "flash", dscp = "AF41" }, { kind = "mark-flows", table = "flows" }]
[interfaces.left]
input = ["edge"]
"#;

/// As whom a network is kept up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum As {
    /// As whoever runs the tests.
    Own,
    /// As a user without rights.
    Nobody,
    /// In a mount namespace without /dev/net/tun.
    WithoutTun,
    /// With SIGINT ignored, as shells start commands in the background.
    IgnoringInterrupt,
}

impl As {
    /// The program `lab`, to be started so.
    pub(crate) fn command(self) -> Command {
        let lab = env!("CARGO_BIN_EXE_lab");
        match self {
            As::Own => Command::new(lab),
            As::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", "54321", "--regid", "54321", "--clear-groups", lab]);
                command
            }
            As::WithoutTun => {
                let mut command = Command::new("unshare");
                let script = "mount -t tmpfs none /dev/net && exec \"$@\"";
                command.args(["--mount", "sh", "-c", script, "sh", lab]);
                command
            }
            As::IgnoringInterrupt => {
                let mut command = Command::new("sh");
                command.args(["-c", "trap '' INT; exec \"$@\"", "sh", lab]);
                command
            }
        }
    }

    /// Why it cannot be tried here.
    pub(crate) fn lacks(self) -> Option<String> {
        let root = nix::unistd::geteuid().is_root();
        if matches!(self, As::Nobody | As::WithoutTun) && !root {
            return Some("only root can become somebody else, or hide /dev/net/tun".to_owned());
        }
        let output = self.command().arg("doctor").stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(format!(
                "no data path works here: {} {}",
                String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default(),
                String::from_utf8_lossy(&output.stderr).trim()
            )),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Prints why a test cannot run here, if so; returns whether it is skipped.
pub(crate) fn skipped(test: &str, who: As) -> bool {
    let lacks = who.lacks();
    if let Some(why) = &lacks {
        skip(test, why);
    }
    lacks.is_some()
}

pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "    SKIPPED {test}: {why}");
}

/// Why the kernel's htb cannot be had here.
pub(crate) fn lacks_htb() -> Option<String> {
    let doctor = As::Own.command().args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let root = nix::unistd::geteuid().is_root();
    let htb = &report[if root { "as_root" } else { "in_user_namespace" }]["qdiscs"]["htb"];
    (htb["works"] != true).then(|| format!("no htb: {htb}"))
}

/// Whether this process was started with SIGINT ignored. The programs that it starts ignore it too.
pub(crate) fn ignores_interrupt() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask & (1 << (Signal::SIGINT as u32 - 1)) != 0
}

/// A name that no other network, of this test or another, has.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A directory that everybody may read, with these files in it.
pub(crate) fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// What a network held while it was up, and the processes there were then.
pub(crate) struct Held {
    pub(crate) namespaces: BTreeSet<PathBuf>,
    processes: Vec<PathBuf>,
}

/// A running `lab up` and its standard error.
pub(crate) struct Up {
    pub(crate) name: String,
    who: As,
    child: Child,
    stderr_lines: Receiver<String>,
    _directory: tempfile::TempDir,
}

impl Up {
    /// Started; it may not be up yet.
    pub(crate) fn start(who: As, topology: &str, arguments: &[&str]) -> Up {
        let directory = directory(&[("pair.toml", topology), ("mark.toml", MARKING)]);
        let file = directory.path().join("pair.toml");
        Up::of_file(who, &file, arguments, directory)
    }

    pub(crate) fn of_file(
        who: As,
        file: &Path,
        arguments: &[&str],
        directory: tempfile::TempDir,
    ) -> Up {
        let name = unique();
        let mut command = who.command();
        command.arg("up").arg(file).args(["--name", &name]).args(arguments).env(MARK, &name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, stderr_lines) = channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let lines = BufReader::new(stderr).lines();
            lines.map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        Up { name, who, child, stderr_lines, _directory: directory }
    }

    /// Waits until it is up; returns the line that reports it.
    pub(crate) fn is_up(&self) -> String {
        let mut before = Vec::new();
        loop {
            match self.stderr_lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(" is up: ") => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("{error}: {before:?}"),
            }
        }
    }

    /// A network that is up.
    pub(crate) fn new(who: As, topology: &str, arguments: &[&str]) -> Up {
        let up = Up::start(who, topology, arguments);
        up.is_up();
        up
    }

    /// A verb of `lab`, by the same user.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let who = if self.who == As::Nobody { As::Nobody } else { As::Own };
        let mut command = who.command();
        command.args(arguments).env(MARK, &self.name).stdin(Stdio::null());
        command
    }

    /// Runs a verb of `lab`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a program in a host.
    pub(crate) fn exec(&self, host: &str, command: &[&str]) -> Output {
        self.run(&[&["exec", "--lab", &self.name, host], command].concat())
    }

    /// That a host answers, within some tries.
    pub(crate) fn assert_ping(&self, host: &str, to: &str, more: &[&str]) {
        let ping = ["ping", "-n", "-c", "2", "-i", "0.2", "-W", "10"];
        let output = self.exec(host, &[&ping[..], more, &[to]].concat());
        assert!(output.status.success(), "{host} to {to}: {}", text(&output));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // Not waited for yet: the id is its own.
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Deadline::after(PATIENCE);
        deadline.wait_for("the end of lab up", || Ok(self.child.try_wait()?)).unwrap()
    }

    /// Network namespaces that it holds.
    pub(crate) fn namespaces(&self) -> Held {
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let mut held = namespaces_of(&PathBuf::from(format!("/proc/{}", self.child.id())));
        held.remove(&own);
        Held { namespaces: held, processes: process_directories().collect() }
    }

    /// Waits until no process of this network is left, nor a name or a namespace.
    pub(crate) fn assert_nothing_left(&self, before: &Held) {
        let deadline = Deadline::after(PATIENCE);
        let mut left = Vec::new();
        let gone = deadline.wait_for("the end of all processes", || {
            left = processes(&self.name);
            Ok(left.is_empty().then_some(()))
        });
        assert!(gone.is_ok(), "{left:?}");
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        assert!(!sockets.contains(&self.name), "its socket");
        // The kernel gives the number of a namespace that is gone to the next one, of another test
        // or of somebody else: who was there before, and is of no test, cannot have one.
        let others = before.processes.iter().filter(|of| !is_marked(of, MARK));
        let held: BTreeSet<PathBuf> = others.flat_map(|of| namespaces_of(of)).collect();
        let kept: Vec<_> = held.intersection(&before.namespaces).collect();
        assert!(kept.is_empty(), "{kept:?}");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn process_directories() -> impl Iterator<Item = PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let is_number = |name: &OsStr| name.to_string_lossy().bytes().all(|b| b.is_ascii_digit());
    all.filter(move |path| path.file_name().is_some_and(is_number))
}

/// Those that a process is in, or holds.
fn namespaces_of(process: &Path) -> BTreeSet<PathBuf> {
    let held = std::fs::read_dir(process.join("fd")).into_iter().flatten().filter_map(Result::ok);
    let files = held.map(|entry| entry.path()).chain([process.join("ns/net")]);
    let targets = files.filter_map(|file| std::fs::read_link(file).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("net:[")).collect()
}

/// Whether a process has this in its environment.
fn is_marked(process: &Path, mark: &str) -> bool {
    let environment = std::fs::read(process.join("environ")).unwrap_or_default();
    environment.windows(mark.len()).any(|octets| octets == mark.as_bytes())
}

/// The processes that were started for a network, by any of its programs.
fn processes(name: &str) -> Vec<String> {
    let mark = format!("{MARK}={name}\0");
    process_directories()
        .filter(|of| is_marked(of, &mark))
        .map(|of| {
            let command = std::fs::read(of.join("cmdline")).unwrap_or_default();
            format!("{} {}", of.display(), String::from_utf8_lossy(&command).replace('\0', " "))
        })
        .collect()
}

/// The interfaces of the namespace of the tests.
pub(crate) fn links() -> BTreeSet<String> {
    let listed = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    listed.lines().filter_map(name).collect()
}

/// The exit status and all output of a program.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    format!("{} {out}{err}", output.status)
}
