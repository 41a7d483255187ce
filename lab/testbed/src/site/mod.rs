//! One MTA with its directory, its users and its process.

pub mod answer;
pub mod config;
pub(crate) mod event;
pub(crate) mod memory;
pub(crate) mod pair;
pub(crate) mod status_reader;

use crate::clock::Deadline;
use crate::net::location::SiteLocation;
use crate::process::child::Child;
use crate::process::programs::Programs;
use crate::site::answer::{MtaStatus, ReceiveOutput, SendOutput};
use crate::site::config::PeerConfig;
use crate::site::event::DaemonEvent;
use crate::site::memory::{ProcessMemory, processor_time};
use crate::site::status_reader::StatusReader;
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use toml::{Table, Value};

/// Longest start of a daemon on a busy machine.
const START: Duration = Duration::from_secs(60);
/// Longest end of a daemon after SIGTERM: its own limit of 20 s, and room.
const STOP: Duration = Duration::from_secs(40);
/// Longest run of a client, where the caller gives no limit.
const CLIENT: Duration = Duration::from_secs(120);
/// Octets of a log that are shown.
const TAIL: usize = 6_000;

/// Builds a site.
#[derive(Debug)]
pub struct SiteBuilder {
    name: String,
    programs: Option<Programs>,
    place: SiteLocation,
    users: Vec<String>,
    mailboxes: Vec<String>,
    peers: Vec<PeerConfig>,
    secrets: Vec<(String, String)>,
    settings: Vec<(String, Value)>,
    arguments: Vec<String>,
    below: Option<PathBuf>,
}

impl SiteBuilder {
    /// With these programs instead of those beside the running one.
    pub fn programs(mut self, programs: Programs) -> SiteBuilder {
        self.programs = Some(programs);
        self
    }

    /// With these users instead of only `OPS`.
    pub fn users(mut self, users: &[&str]) -> SiteBuilder {
        self.users = users.iter().map(|user| (*user).to_owned()).collect();
        self
    }

    /// With these users too, whose deliveries go into mailboxes of the message store: the site listens for P7, and
    /// their profiles name the store.
    pub fn mailboxes(mut self, users: &[&str]) -> SiteBuilder {
        self.mailboxes = users.iter().map(|user| (*user).to_owned()).collect();
        self
    }

    /// With a key of the configuration file, given by its path, as in `limits.content`.
    pub fn set(mut self, path: &str, value: impl Into<Value>) -> SiteBuilder {
        self.settings.push((path.to_owned(), value.into()));
        self
    }

    /// With further arguments for `mta run`.
    pub fn run_with(mut self, arguments: &[&str]) -> SiteBuilder {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self
    }

    /// With a peer and two passwords: that of this site, and that which the peer must present.
    pub fn peer(mut self, peer: PeerConfig, ours: &str, theirs: &str) -> SiteBuilder {
        self.secrets.push((config::secret_file(&self.name, &peer.name), ours.to_owned()));
        self.secrets.push((config::secret_file(&peer.name, &self.name), theirs.to_owned()));
        self.peers.push(peer);
        self
    }

    /// With a password in a file below its directory.
    pub fn secret(mut self, file: String, secret: String) -> SiteBuilder {
        self.secrets.push((file, secret));
        self
    }

    /// With its directory below this one instead of the system's temporary directory.
    pub fn below(mut self, directory: &Path) -> SiteBuilder {
        self.below = Some(directory.to_owned());
        self
    }

    /// At this location instead of a loopback address of its own.
    pub fn place_at(mut self, place: SiteLocation) -> SiteBuilder {
        self.place = place;
        self
    }

    pub(crate) fn place(&self) -> &SiteLocation {
        &self.place
    }

    /// Writes all files and adds the users; the daemon is not started.
    ///
    /// # Errors
    /// A program is missing, a file cannot be written, a user was not added.
    pub fn build(self) -> Result<Site> {
        let programs = match self.programs {
            Some(programs) => programs,
            None => Programs::find()?,
        };
        let prefix = format!("lab-{}-", self.name);
        let below = self.below.unwrap_or_else(std::env::temp_dir);
        let home = tempfile::Builder::new().prefix(&prefix).tempdir_in(below);
        let home = home.context("a directory")?;
        let p3 = self.place.free_port()?;
        let mut table = config::site(&self.name, p3)?;
        let p7 = match self.mailboxes.as_slice() {
            [] => None,
            _ => Some(self.place.free_port()?),
        };
        if let Some(p7) = p7 {
            toml_path::set(&mut table, "p7.listen", p7.to_string())?;
        }
        for peer in &self.peers {
            config::add_peer(&mut table, &self.name, peer)?;
        }
        for (path, value) in self.settings {
            toml_path::set(&mut table, &path, value)?;
        }
        let mut site = Site {
            name: self.name,
            programs,
            path: home.path().to_owned(),
            home: Some(home),
            p3,
            p7,
            place: self.place,
            arguments: self.arguments,
            secrets: Vec::new(),
            daemon: None,
            runs: AtomicU32::new(0),
        };
        fs::create_dir(site.path.join("secrets"))?;
        fs::create_dir(site.path.join("logs"))?;
        fs::write(site.config(), toml::to_string(&table).context("the configuration as TOML")?)?;
        for (file, secret) in self.secrets {
            site.add_secret(&file, secret)?;
        }
        let mut profiles = Table::new();
        for user in &self.users {
            site.add_user(user, None, &mut profiles)?;
        }
        for user in &self.mailboxes {
            site.add_user(user, p7, &mut profiles)?;
        }
        fs::write(site.profiles(), toml::to_string(&profiles).context("profiles as TOML")?)?;
        Ok(site)
    }
}

/// An MTA on this machine. When it is dropped, its processes end and its directory is deleted. If the
/// test fails, the end of its log is printed.
#[derive(Debug)]
pub struct Site {
    name: String,
    programs: Programs,
    home: Option<TempDir>,
    path: PathBuf,
    p3: SocketAddr,
    p7: Option<SocketAddr>,
    place: SiteLocation,
    arguments: Vec<String>,
    secrets: Vec<String>,
    daemon: Option<Child>,
    runs: AtomicU32,
}

/// How a program ended and what it printed.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// The exit status.
    pub status: ExitStatus,
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl ProgramOutput {
    /// Standard output as one JSON object, where the program ended with code 0.
    ///
    /// # Errors
    /// It ended with another code than 0, or printed no such object.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        if self.code != 0 {
            bail!("it ended with {}: {}", self.code, self.stderr.trim());
        }
        self.json_anyway()
    }

    /// Standard output as one JSON object, however the program ended.
    ///
    /// # Errors
    /// It printed no such object.
    pub fn json_anyway<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.stdout)
            .with_context(|| format!("{:?}; {}", self.stdout, self.stderr.trim()))
    }
}

/// A client that runs while the test continues.
#[derive(Debug)]
pub struct RunningClient {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl RunningClient {
    /// Whether it has ended.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn ended(&mut self) -> Result<bool> {
        Ok(self.child.ended()?.is_some())
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.child.signal(signal)
    }

    /// What it has written to standard output so far.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn printed(&self) -> Result<String> {
        fs::read_to_string(&self.stdout).context("the output of a client")
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still ran after `limit`, and was killed.
    pub fn wait(mut self, limit: Duration) -> Result<ProgramOutput> {
        let status = self
            .child
            .wait(limit)
            .with_context(|| format!("its standard error ends: {:?}", tail(&self.stderr, TAIL)))?;
        Ok(ProgramOutput {
            status,
            code: status.code().unwrap_or(-1),
            stdout: fs::read_to_string(&self.stdout)?,
            stderr: fs::read_to_string(&self.stderr)?,
        })
    }
}

impl Site {
    /// A site of this name, with one user `OPS` and no peers.
    pub fn builder(name: &str) -> SiteBuilder {
        SiteBuilder {
            name: name.to_owned(),
            programs: None,
            place: SiteLocation::new(),
            users: vec!["OPS".to_owned()],
            mailboxes: Vec::new(),
            peers: Vec::new(),
            secrets: Vec::new(),
            settings: Vec::new(),
            arguments: Vec::new(),
            below: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The O/R address of a user of this site, existing or not.
    pub fn address(&self, user: &str) -> String {
        format!("{}/S={user}", config::domain(&self.name))
    }

    /// The name it binds with.
    pub fn mta_name(&self) -> String {
        config::mta_name(&self.name)
    }

    /// The address at which users bind.
    pub fn p3(&self) -> SocketAddr {
        self.p3
    }

    /// The address of the message store, where a user has a mailbox.
    pub fn p7(&self) -> Option<SocketAddr> {
        self.p7
    }

    /// The client.
    pub fn xuxa_program(&self) -> &Path {
        &self.programs.xuxa
    }

    /// The file with the password of one of its users.
    pub fn password_file(&self, user: &str) -> PathBuf {
        self.path.join(user_secret(user))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its configuration file.
    pub fn config(&self) -> PathBuf {
        self.path.join("mta.toml")
    }

    /// The profiles of its users, each named as the user.
    pub fn profiles(&self) -> PathBuf {
        self.path.join("xuxa.toml")
    }

    /// The log of its daemon.
    pub fn log(&self) -> PathBuf {
        self.path.join("logs/mta.log")
    }

    /// All passwords of the site.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Further arguments for `mta run` from the next start on.
    pub fn run_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    }

    /// Starts the daemon and waits until it answers.
    ///
    /// # Errors
    /// It ended, or does not answer; with the end of its log.
    pub fn start(&mut self) -> Result<()> {
        self.launch()?;
        let ready = Deadline::after(START).wait_for("an answer of the daemon", || {
            if let Some(status) = self.daemon.as_mut().map(Child::ended).transpose()?.flatten() {
                bail!("mta ended at once: {status}");
            }
            Ok(self.status().ok())
        });
        ready.with_context(|| {
            format!("starting {}; its log ends:\n{}", self.name, self.log_tail())
        })?;
        Ok(())
    }

    /// Starts the daemon and does not wait for it.
    ///
    /// # Errors
    /// It is already running, or cannot be started.
    pub fn launch(&mut self) -> Result<()> {
        if self.daemon.is_some() {
            bail!("{} is already running", self.name);
        }
        let mut command = self.place.command(&self.programs.mta);
        command.arg("run").arg("--config").arg(self.config()).args(&self.arguments);
        command.current_dir(&self.path).stdin(Stdio::null());
        self.daemon = Some(Child::spawn(command, &self.path.join("logs/mta.out"), &self.log())?);
        Ok(())
    }

    /// Runs a verb of `mta` with this site's configuration.
    ///
    /// # Errors
    /// It cannot be started, or runs too long.
    pub fn mta(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        self.mta_with_input(arguments, "")
    }

    /// The daemon's answer to `mta status`.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn status(&self) -> Result<MtaStatus> {
        self.mta(&["status", "--json"])?.json().context("mta status")
    }

    /// What asks for the status often, and from other threads.
    pub fn status_reader(&self) -> StatusReader {
        StatusReader::new(self.path.join("data/admin.sock"))
    }

    /// Polls the daemon's status until `is_so` accepts it.
    ///
    /// # Errors
    /// No status was accepted within `limit`; with the last one.
    pub fn wait_until(
        &self,
        what: &str,
        limit: Duration,
        mut is_so: impl FnMut(&MtaStatus) -> bool,
    ) -> Result<MtaStatus> {
        let mut last = None;
        let waited = Deadline::after(limit).wait_for(what, || {
            let status = self.status()?;
            let so = is_so(&status);
            last = Some(status.clone());
            Ok(so.then_some(status))
        });
        waited.with_context(|| format!("{} was last {last:?}", self.name))
    }

    /// The memory of the daemon.
    ///
    /// # Errors
    /// It does not run.
    pub fn memory(&self) -> Result<ProcessMemory> {
        ProcessMemory::of_process(self.pid()?)
    }

    /// The processor time of the daemon so far.
    ///
    /// # Errors
    /// It does not run.
    pub fn processor_time(&self) -> Result<Duration> {
        processor_time(self.pid()?)
    }

    fn pid(&self) -> Result<u32> {
        Ok(self.daemon.as_ref().context("the daemon does not run")?.id())
    }

    /// Sends the daemon a signal, such as SIGSTOP.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.daemon.as_mut().context("the daemon does not run")?.signal(signal)
    }

    /// Whether the daemon runs.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn is_running(&mut self) -> Result<bool> {
        match &mut self.daemon {
            Some(daemon) => Ok(daemon.ended()?.is_none()),
            None => Ok(false),
        }
    }

    /// Asks the daemon to stop (SIGTERM) and waits for its end.
    ///
    /// # Errors
    /// It had ended before, or does not end.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        let mut daemon = self.daemon.take().context("the daemon does not run")?;
        daemon.signal(Signal::SIGTERM)?;
        daemon.wait(STOP).with_context(|| format!("stopping {}", self.name))
    }

    /// Ends the daemon as a crash would (SIGKILL).
    ///
    /// # Errors
    /// It had ended before.
    pub fn kill(&mut self) -> Result<()> {
        let mut daemon = self.daemon.take().context("the daemon does not run")?;
        daemon.signal(Signal::SIGKILL)?;
        daemon.wait(STOP).map(drop)
    }

    /// Runs `xuxa` as this user.
    ///
    /// # Errors
    /// It cannot be started, or runs too long.
    pub fn xuxa(&self, user: &str, arguments: &[&str]) -> Result<ProgramOutput> {
        self.xuxa_beside(user, arguments)?.wait(CLIENT)
    }

    /// Starts `xuxa` as this user, and does not wait for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn xuxa_beside(&self, user: &str, arguments: &[&str]) -> Result<RunningClient> {
        let mut command = self.place.command(&self.programs.xuxa);
        command.arg("--config").arg(self.profiles()).args(["--profile", user]).args(arguments);
        command.current_dir(&self.path).stdin(Stdio::null());
        self.spawn(command, "xuxa")
    }

    /// Submits with `xuxa send`.
    ///
    /// # Errors
    /// It ends with another code than 0.
    pub fn send(&self, user: &str, arguments: &[&str]) -> Result<SendOutput> {
        let all = [&["--json", "send"], arguments].concat();
        self.xuxa(user, &all)?.json().with_context(|| format!("xuxa {}", all.join(" ")))
    }

    /// Takes `count` deliveries with `xuxa receive`.
    ///
    /// # Errors
    /// They did not arrive within a minute.
    pub fn receive(&self, user: &str, count: usize) -> Result<ReceiveOutput> {
        let count = count.to_string();
        let arguments = ["--json", "receive", "--count", &count, "--timeout", "60"];
        self.xuxa(user, &arguments)?.json().with_context(|| {
            format!("{user} at {} waits for {count}; the log ends:\n{}", self.name, self.log_tail())
        })
    }

    /// Takes the deliveries that wait.
    ///
    /// # Errors
    /// The user cannot bind.
    pub fn receive_waiting(&self, user: &str) -> Result<ReceiveOutput> {
        self.xuxa(user, &["--json", "receive"])?.json().context("xuxa receive")
    }

    /// The end of the daemon's log.
    pub fn log_tail(&self) -> String {
        tail(&self.log(), TAIL)
    }

    /// The events in the daemon's log so far, where it is written with `--log-format json`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn events(&self) -> Result<Vec<DaemonEvent>> {
        let log = fs::read(self.log()).with_context(|| format!("the log of {}", self.name))?;
        Ok(DaemonEvent::from_log(&String::from_utf8_lossy(&log)))
    }

    /// Polls the events until `found` returns a value.
    ///
    /// # Errors
    /// It did not within `limit`; with the end of the log.
    pub fn wait_for_events<T>(
        &self,
        what: &str,
        limit: Duration,
        mut found: impl FnMut(&[DaemonEvent]) -> Option<T>,
    ) -> Result<T> {
        let waited = Deadline::after(limit).wait_for(what, || Ok(found(&self.events()?)));
        waited.with_context(|| format!("the log of {} ends:\n{}", self.name, self.log_tail()))
    }

    /// All output and logs of its programs so far, by file.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn printed(&self) -> Result<Vec<(PathBuf, String)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.path.join("logs"))? {
            let path = entry?.path();
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            all.push((path, text));
        }
        all.sort();
        Ok(all)
    }

    /// Keeps the directory after the site is dropped; returns its path.
    pub fn keep(&mut self) -> PathBuf {
        if let Some(home) = self.home.take() {
            self.path = home.keep();
        }
        self.path.clone()
    }

    fn spawn(&self, command: Command, name: &str) -> Result<RunningClient> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let stdout = self.path.join(format!("logs/{name}-{number}.out"));
        let stderr = self.path.join(format!("logs/{name}-{number}.err"));
        Ok(RunningClient { child: Child::spawn(command, &stdout, &stderr)?, stdout, stderr })
    }

    /// As [`Site::mta`], with this on standard input, such as the password of a new user.
    ///
    /// # Errors
    /// As there.
    pub fn mta_with_input(&self, arguments: &[&str], input: &str) -> Result<ProgramOutput> {
        let [verb, rest @ ..] = arguments else { bail!("no verb for mta") };
        let mut command = self.place.command(&self.programs.mta);
        // The password comes from standard input, not from the environment of the test.
        command.current_dir(&self.path).env_remove("XUXA_PASSWORD");
        if matches!(*verb, "user" | "channel") {
            // `mta user add --config FILE ...`: the option belongs to the inner verb.
            command.arg(verb).args(rest.first()).arg("--config").arg(self.config());
            command.args(rest.iter().skip(1));
        } else {
            command.arg(verb).arg("--config").arg(self.config()).args(rest);
        }
        let path = self.path.join("input");
        if input.is_empty() {
            command.stdin(Stdio::null());
        } else {
            write_secret(&path, input)?;
            command.stdin(fs::File::open(&path)?);
        }
        let run = self.spawn(command, "mta")?.wait(CLIENT);
        if !input.is_empty() {
            fs::remove_file(&path)?;
        }
        run
    }

    fn add_secret(&mut self, file: &str, secret: String) -> Result<()> {
        write_secret(&self.path.join(file), &format!("{secret}\n"))?;
        self.secrets.push(secret);
        Ok(())
    }

    /// A user, with a mailbox where there is a message store for it.
    fn add_user(
        &mut self,
        user: &str,
        store: Option<SocketAddr>,
        profiles: &mut Table,
    ) -> Result<()> {
        let password = password(&format!("{}-{user}", self.name))?;
        let file = user_secret(user);
        let address = self.address(user);
        let add = ["user", "add", &address, "--delivery", "store"];
        let add = if store.is_some() { &add[..] } else { &add[..3] };
        let run = self.mta_with_input(add, &format!("{password}\n"))?;
        if run.code != 0 {
            bail!("mta user add {address} ended with {}: {}", run.code, run.stderr.trim());
        }
        self.add_secret(&file, password)?;
        let profile = format!("profile.{user}");
        toml_path::set(profiles, &format!("{profile}.mta"), self.p3.to_string())?;
        toml_path::set(profiles, &format!("{profile}.user"), address)?;
        toml_path::set(profiles, &format!("{profile}.password.file"), file)?;
        toml_path::set(profiles, &format!("{profile}.inbox"), format!("inbox-{user}"))?;
        if let Some(store) = store {
            toml_path::set(profiles, &format!("{profile}.store"), store.to_string())?;
        }
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the log of {} ends:\n{}", self.name, self.log_tail());
        }
    }
}

/// The file of a user's password, relative to the site's directory.
fn user_secret(user: &str) -> String {
    format!("secrets/user-{user}")
}

/// A random password that contains a word to search for.
pub fn password(of: &str) -> Result<String> {
    let mut random = [0u8; 12];
    fs::File::open("/dev/urandom")?.read_exact(&mut random).context("random octets")?;
    let hex: String = random.iter().map(|octet| format!("{octet:02x}")).collect();
    Ok(format!("pw-{of}-{hex}"))
}

fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

fn tail(path: &Path, most: usize) -> String {
    let octets = fs::read(path).unwrap_or_default();
    let from = octets.len().saturating_sub(most);
    String::from_utf8_lossy(octets.get(from..).unwrap_or_default()).into_owned()
}
