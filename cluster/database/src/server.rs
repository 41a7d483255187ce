//! A server of PostgreSQL: its start, its questions, and its ends.

use crate::files;
use crate::options::Options;
use crate::process::{Account, Watcher, command, crash, freeze, give, send, thaw};
use crate::programs::Programs;
use crate::times;
use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use testbed::clock::Deadline;

/// Longest start and longest end; after a crash on a busy machine the log is read again first.
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(20);
/// Longest run of `psql`, in seconds.
const QUESTION: &str = "60";
/// The database that every server has.
pub(crate) const DATABASE: &str = "mta";

/// A server of PostgreSQL on this machine, with the database `mta` and the superuser `postgres`. It
/// listens on 127.0.0.1 and on a socket in its directory. Dropped, it ends and is removed.
#[derive(Debug)]
pub struct Server {
    options: Options,
    programs: Programs,
    account: Option<Account>,
    home: PathBuf,
    data: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
    root_certificate: Option<PathBuf>,
    postmaster: Option<Child>,
    // After the processes: the directory is removed first, then the watcher ends.
    directory: Option<TempDir>,
    _watcher: Watcher,
}

impl Server {
    /// Makes a server and waits until it answers: one or two seconds.
    ///
    /// # Errors
    /// PostgreSQL is [`Missing`](crate::Missing), or it does not start; with the end of its log.
    pub fn start(options: Options) -> Result<Server> {
        let mut server = Server::prepare(options)?;
        files::directory(&server.data, &server.options, server.account)?;
        files::initdb(&server.programs, &server.data, server.account)?;
        files::access(&server.data, &server.options)?;
        if server.options.tls {
            let of = files::certificates(&server.home, &server.data, server.account)?;
            server.root_certificate = Some(of);
        }
        server.launch()?;
        server.psql_in("postgres", &format!("create database {DATABASE}"))?;
        if let Some(password) = server.options.password.clone() {
            let password = password.replace('\'', "''");
            server.psql(&format!("alter role postgres password '{password}'"))?;
        }
        Ok(server)
    }

    /// Makes a standby of a running server, with a new base backup, and waits until it answers.
    ///
    /// # Errors
    /// As [`Server::start`]; or the primary gives no base backup.
    pub fn standby_of(primary: &Server, name: &str) -> Result<Server> {
        let mut server = Server::prepare(primary.options.clone().name(name))?;
        server.root_certificate.clone_from(&primary.root_certificate);
        files::directory(&server.data, &server.options, server.account)?;
        server.copy(primary)?;
        Ok(server)
    }

    /// A server's own directory and port, and nothing in it yet.
    fn prepare(options: Options) -> Result<Server> {
        let programs = match &options.programs {
            Some(programs) => programs.clone(),
            None => Programs::find()?,
        };
        let account = Account::find()?;
        let directory = tempfile::Builder::new().prefix("pg-").tempdir().context("a directory")?;
        // The watcher compares it with what the system reports of the process.
        let home = fs::canonicalize(directory.path())?;
        // Whatever the file mode creation mask of this process is now: another of its threads may set it.
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
        give(&home, account)?;
        let watcher = Watcher::start(&home, options.lifetime)?;
        let port = free_port()?;
        Ok(Server {
            settings: files::basic_settings(&home, port, &options),
            data: home.join("data"),
            options,
            programs,
            account,
            home,
            port,
            root_certificate: None,
            postmaster: None,
            directory: Some(directory),
            _watcher: watcher,
        })
    }

    /// Replaces the data by a copy of that server's, and follows it.
    ///
    /// # Errors
    /// This server runs, or as [`Server::standby_of`].
    pub fn copy(&mut self, primary: &Server) -> Result<()> {
        if self.is_running() {
            bail!("{} runs, and its data cannot be replaced", self.options.name);
        }
        for entry in fs::read_dir(&self.data)? {
            let path = entry?.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("removing {}", path.display()))?;
        }
        let from = (primary.home.as_path(), primary.port);
        files::base_backup(&self.programs, from, &self.data, self.account)?;
        let follow = primary.replication_url(&self.options.name);
        files::standby(&self.data, &follow, self.account)?;
        self.launch()
    }

    /// Starts the server again after its end, and waits until it answers.
    ///
    /// # Errors
    /// It runs, or does not start; with the end of its log.
    pub fn launch(&mut self) -> Result<()> {
        if self.is_running() {
            bail!("{} runs already", self.options.name);
        }
        files::settings(&self.data, &self.settings)?;
        // What a server that crashed left there states that it is ready.
        let state = self.data.join("postmaster.pid");
        if state.exists() {
            fs::remove_file(&state)?;
        }
        let mut postgres = command(&self.programs.path("postgres"), self.account);
        let log = File::options().create(true).append(true).open(self.log())?;
        postgres.arg("-D").arg(&self.data).current_dir(&self.data).process_group(0);
        postgres.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut postmaster = postgres.spawn().context("starting postgres")?;
        let ready = Deadline::after(START).wait_for("a server that answers", || {
            if let Some(status) = postmaster.try_wait()? {
                bail!("postgres ended at once: {status}");
            }
            let state = fs::read_to_string(&state).unwrap_or_default();
            Ok(state.lines().nth(7).is_some_and(|line| line.starts_with("ready")).then_some(()))
        });
        self.postmaster = Some(postmaster);
        ready.with_context(|| format!("{}; its log ends:\n{}", self.options.name, self.log_tail()))
    }

    /// Its name, as a standby of others.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The directory of its socket.
    pub fn socket(&self) -> &Path {
        &self.home
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The file it logs to.
    pub fn log(&self) -> PathBuf {
        self.home.join("server.log")
    }

    /// The programs it runs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The certificate of the authority that clients have to trust, in PEM, where it uses TLS.
    pub fn root_certificate(&self) -> Option<&Path> {
        self.root_certificate.as_deref()
    }

    /// How this role reaches the database, as `host=... port=... dbname=mta user=...`; without the
    /// password.
    pub fn url(&self, role: &str) -> String {
        self.url_at(self.address(), role)
    }

    /// As [`Server::url`], through what listens at this address, such as a [`Relay`](crate::Relay).
    pub fn url_at(&self, address: SocketAddr, role: &str) -> String {
        let tls = if self.options.tls { " sslmode=require" } else { "" };
        let (host, port) = (address.ip(), address.port());
        format!("host={host} port={port} dbname={DATABASE} user={role}{tls}")
    }

    /// As [`Server::url`], with the password.
    pub fn url_with_password(&self, role: &str) -> String {
        match &self.options.password {
            Some(password) => {
                let password = password.replace('\\', "\\\\").replace('\'', "\\'");
                format!("{} password='{password}'", self.url(role))
            }
            None => self.url(role),
        }
    }

    /// How a standby of this name reaches it.
    pub(crate) fn replication_url(&self, standby: &str) -> String {
        format!(
            "{} application_name={standby} connect_timeout=3",
            self.url_with_password("postgres")
        )
    }

    /// Makes a role that may log in, with the password of the server, unless there is one.
    ///
    /// # Errors
    /// As [`Server::psql`].
    pub fn role(&self, name: &str) -> Result<()> {
        let there =
            self.psql(&format!("select count(*) from pg_roles where rolname = '{name}'"))?;
        if there != "0" {
            return Ok(());
        }
        let password = self.options.password.as_ref().map(|text| text.replace('\'', "''"));
        let password = password.map_or_else(String::new, |text| format!(" password '{text}'"));
        self.psql(&format!("create role {name} login{password}")).map(drop)
    }

    /// What the superuser's statements print in the database `mta`: rows as lines, columns with `|`
    /// between them.
    ///
    /// # Errors
    /// The server does not answer within a minute, or a statement fails.
    pub fn psql(&self, sql: &str) -> Result<String> {
        self.psql_in(DATABASE, sql)
    }

    /// As [`Server::psql`], in another database.
    ///
    /// # Errors
    /// As [`Server::psql`].
    pub fn psql_in(&self, database: &str, sql: &str) -> Result<String> {
        let mut psql = Command::new("timeout");
        // A server that is frozen takes a connection and never answers.
        psql.arg(QUESTION).arg(self.programs.path("psql")).arg("-h").arg(&self.home);
        psql.args(["-p", &self.port.to_string(), "-U", "postgres", "-d", database]);
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"]);
        let mut psql = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting psql")?;
        if let Some(mut stdin) = psql.stdin.take() {
            // An early end of psql shows in its status.
            let _ = stdin.write_all(sql.as_bytes());
        }
        let output = psql.wait_with_output().context("the end of psql")?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{}: psql ended with {}: {}", self.name(), output.status, printed.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Whether its postmaster runs.
    pub fn is_running(&mut self) -> bool {
        self.postmaster.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Stops it in order, its connections too (fast shutdown).
    ///
    /// # Errors
    /// It does not run, or does not end.
    pub fn stop(&mut self) -> Result<()> {
        let mut postmaster = self.postmaster.take().context("the server does not run")?;
        send(postmaster.id(), Signal::SIGINT);
        let ended = Deadline::after(STOP).wait_for("the end of the server", || {
            Ok(postmaster.try_wait().context("the end of postgres")?.map(drop))
        });
        if ended.is_err() {
            crash(&mut postmaster)?;
        }
        ended
    }

    /// Ends all its processes at once (SIGKILL), as the loss of the machine does, but for the disk.
    ///
    /// # Errors
    /// It does not run, or a process does not end.
    pub fn kill(&mut self) -> Result<()> {
        crash(&mut self.postmaster.take().context("the server does not run")?)
    }

    /// Stops it in order and starts it again.
    ///
    /// # Errors
    /// As [`Server::stop`] and [`Server::launch`].
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }

    /// Freezes all its processes (SIGSTOP): its connections stay, and nobody answers.
    pub fn freeze(&self) {
        self.postmaster.iter().for_each(|child| freeze(child.id()));
    }

    /// Lets them continue.
    pub fn thaw(&self) {
        self.postmaster.iter().for_each(|child| thaw(child.id()));
    }

    /// Processor time of the server and all its processes so far, of those that have ended too.
    ///
    /// # Errors
    /// It does not run, or the system does not report it.
    pub fn processor_time(&self) -> Result<Duration> {
        let postmaster = self.postmaster.as_ref().context("the server does not run")?.id();
        times::time_of_all(postmaster)
    }

    /// Changes settings, for good, and has the server read them. Some take a restart.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn reload(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        for (name, value) in settings {
            self.settings.retain(|(known, _)| known != name);
            self.settings.push(((*name).to_owned(), (*value).to_owned()));
        }
        files::settings(&self.data, &self.settings)?;
        self.postmaster.iter().for_each(|child| send(child.id(), Signal::SIGHUP));
        Ok(())
    }

    /// Takes all the room on the disk of its own ([`Options::disk`]); the file whose removal gives it
    /// back.
    ///
    /// # Errors
    /// It has no disk of its own.
    pub fn fill_disk(&self) -> Result<PathBuf> {
        if self.options.disk.is_none() {
            bail!("{} has no disk of its own to fill", self.name());
        }
        let path = self.data.join("ballast");
        let mut file = File::create(&path)?;
        for octets in [1 << 20, 4 << 10, 1] {
            while file.write_all(&vec![0; octets]).is_ok() {}
        }
        Ok(path)
    }

    /// Leaves its directory when it is dropped; the path.
    pub fn keep(&mut self) -> PathBuf {
        let _ = fs::remove_file(self.home.join("owned"));
        if let Some(directory) = self.directory.take() {
            return directory.keep();
        }
        self.home.clone()
    }

    fn log_tail(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {} logged last:\n{}", self.name(), self.log_tail());
        }
        if let Some(mut postmaster) = self.postmaster.take() {
            // What is in the directory is removed or kept as it is: nothing is worth a shutdown.
            let _ = crash(&mut postmaster);
        }
        if self.options.disk.is_some() && self.directory.is_some() {
            let _ = Command::new("umount").arg(&self.data).status();
        }
    }
}

fn free_port() -> Result<u16> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a free port")?;
    Ok(socket.local_addr()?.port())
}
