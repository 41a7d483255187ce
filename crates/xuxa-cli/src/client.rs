//! A P3 association over one TCP connection, driven in the foreground.

use crate::clock::Clock;
use crate::profile::Profile;
use anyhow::{Context, Result, bail};
use base::ber::{Element, Writer};
use bytes::Bytes;
use osi::api::{AbortReason, Config, Indication, Input, Output, Problem, Request, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, Password, PasswordForm};
use p1::names::ORName;
use p1::p3::{MtsBind, MtsBindError, ObjectName};
use std::collections::VecDeque;
use std::fs::{File, Permissions};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace::{Connection, Opener, TraceWriter};

/// How long a TCP connection may take, and how long a write may make no progress.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// How often an interrupt is looked for while nothing arrives, or nothing is taken.
const LOOK: Duration = Duration::from_millis(200);
/// How long an MTA may take to end an association that we aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a connection is over.
const CLOSED: &str = "the connection closed";
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Set by Ctrl-C.
pub(crate) type Interrupted = Arc<AtomicBool>;

/// The connection was lost or the MTA aborted: whether it took what was sent is unknown.
#[derive(Debug, thiserror::Error)]
#[error("the association ended: {0}")]
pub(crate) struct Lost(pub String);

/// The MTA refused the bind.
#[derive(Debug, thiserror::Error)]
#[error("the MTA refused the bind: {why}")]
pub(crate) struct Refused {
    /// In its words, or ours.
    pub why: String,
    /// It does not know us: trying again does not help.
    pub for_good: bool,
}

/// Which services a user asks for when binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Services {
    /// Submission alone: the MTA delivers nothing on this association.
    Submission,
    /// Submission and delivery.
    Delivery,
}

/// A bound user.
pub(crate) struct Client {
    stream: TcpStream,
    stack: Association,
    clock: Clock,
    indications: VecDeque<Indication>,
    trace: Option<TraceWriter<BufWriter<File>>>,
    interrupted: Interrupted,
    /// The transport connection is to be closed, or is: why.
    over: Option<&'static str>,
    /// Our own name, as bound.
    pub user: ORName,
    /// What the MTA answered.
    pub bound: MtsBind,
}

impl Client {
    /// Connects, opens the association and binds.
    ///
    /// # Errors
    /// No connection, [`Refused`], or [`Lost`].
    pub(crate) fn bind(
        profile: &Profile,
        services: Services,
        pcap: Option<&Path>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Result<Client> {
        let user = profile.user()?;
        let password = profile.password.read()?;
        let stream = connect(&profile.mta)?;
        let trace = pcap.map(|path| start_trace(path, &stream)).transpose()?;
        let credentials = Credentials::Simple(Password::new(
            Bytes::from(password.into_bytes()),
            PasswordForm::Ia5,
        ));
        let bind = MtsBind::new(ObjectName::UserAgent(user.clone()), credentials);
        let mut writer = Writer::new();
        bind.write(&mut writer);
        let mut client = Client {
            stream,
            stack: Association::new(config(profile, services), Role::Initiator),
            clock,
            indications: VecDeque::new(),
            trace,
            interrupted,
            over: None,
            user,
            bound: bind,
        };
        client.request(Request::Open { bind: writer.into_vec().into() })?;
        client.await_bind()?;
        Ok(client)
    }

    fn await_bind(&mut self) -> Result<()> {
        match self.next(None)? {
            Some(Indication::Opened { bind, .. }) => {
                let element = Element::parse(&bind).context("in the MTSBind result")?;
                self.bound = MtsBind::read(&element).context("in the MTSBind result")?;
                Ok(())
            }
            Some(Indication::Refused { bind_error, detail, .. }) => {
                let error = bind_error
                    .as_deref()
                    .and_then(|e| Element::parse(e).ok())
                    .and_then(|e| MtsBindError::read(&e).ok());
                let for_good = error == Some(MtsBindError::AuthenticationError);
                let why = match error {
                    _ if for_good => "authentication error: is the user known there, and the \
                                      password right?"
                        .to_owned(),
                    Some(error) => format!("{error:?}"),
                    None => detail,
                };
                bail!(Refused { why, for_good })
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }

    /// Hands a request to the association and sends what it makes of it.
    pub(crate) fn request(&mut self, request: Request) -> Result<()> {
        self.stack.handle(self.clock.mono(), Input::Request(request));
        self.flush()
    }

    /// The next indication; `None` where none came within `wait`, or Ctrl-C was pressed.
    ///
    /// # Errors
    /// [`Lost`], or an error of the network.
    pub(crate) fn next(&mut self, wait: Option<Duration>) -> Result<Option<Indication>> {
        let until = wait.map(|w| self.clock.mono() + w);
        loop {
            if let Some(indication) = self.indications.pop_front() {
                return Ok(Some(indication));
            }
            if let Some(why) = self.over {
                bail!(Lost(why.to_owned()));
            }
            let now = self.clock.mono();
            if self.interrupted.load(Ordering::Relaxed) || until.is_some_and(|at| at <= now) {
                return Ok(None);
            }
            if self.stack.deadline().is_some_and(|at| at <= now) {
                self.stack.handle(now, Input::Tick);
                self.flush()?;
                continue;
            }
            let next = [until, self.stack.deadline()].into_iter().flatten().min();
            let pause = next.map_or(LOOK, |at| at.since(now).min(LOOK));
            self.read(pause.max(Duration::from_millis(1)))?;
        }
    }

    /// Whether the connection takes no more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    fn read(&mut self, wait: Duration) -> Result<()> {
        self.stream.set_read_timeout(Some(wait)).context("cannot set a timeout")?;
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.stack.handle(self.clock.mono(), Input::Eof),
            Ok(n) => {
                let octets = buffer.get(..n).unwrap_or_default();
                if let Some(trace) = &mut self.trace {
                    trace.received(Clock::utc(), octets).context("cannot write the trace")?;
                }
                self.stack.handle(self.clock.mono(), Input::Bytes(octets));
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(_) => self.stack.handle(self.clock.mono(), Input::Eof),
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        while let Some(output) = self.stack.poll() {
            match output {
                // After a part of something nothing else may follow.
                Output::Send(_) if self.is_over() => {}
                Output::Send(octets) => {
                    // What the MTA may still have said is read before the end is told.
                    self.over = self.write(&octets).err();
                    if self.is_over() {
                        continue;
                    }
                    if let Some(trace) = &mut self.trace {
                        trace.sent(Clock::utc(), &octets).context("cannot write the trace")?;
                    }
                }
                Output::Close => {
                    self.over.get_or_insert(CLOSED);
                    let _ = self.stream.shutdown(std::net::Shutdown::Both);
                }
                Output::Indication(indication) => self.indications.push_back(indication),
            }
        }
        Ok(())
    }

    /// Writes all of it, unless the MTA takes nothing for too long, or for a moment after Ctrl-C.
    fn write(&mut self, mut octets: &[u8]) -> Result<(), &'static str> {
        let mut last = self.clock.mono();
        while !octets.is_empty() {
            match self.stream.write(octets) {
                Ok(0) => return Err(CLOSED),
                Ok(n) => {
                    octets = octets.get(n..).unwrap_or_default();
                    last = self.clock.mono();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.interrupted.load(Ordering::Relaxed) {
                        return Err(INTERRUPTED);
                    }
                    if self.clock.mono().since(last) >= WRITE_TIMEOUT {
                        return Err("the MTA takes nothing more");
                    }
                }
                Err(_) => return Err(CLOSED),
            }
        }
        Ok(())
    }

    /// Ends the association where it stands, so that the MTA knows it was meant.
    pub(crate) fn abort(mut self) {
        let _ = self.request(Request::Abort(AbortReason::LocalSystemProblem));
        let until = self.clock.mono() + ABORT_TIMEOUT;
        // What was on its way here is taken, or our own end of the connection would undo the abort.
        while !self.is_over() && self.clock.mono() < until && self.read(LOOK).is_ok() {}
    }

    /// Unbinds in order; an MTA that does not answer is not waited for long.
    pub(crate) fn unbind(mut self) -> Result<()> {
        self.interrupted = Interrupted::default();
        self.request(Request::Release)?;
        let outcome = self.next(Some(Duration::from_secs(5)));
        if let Some(mut trace) = self.trace.take() {
            trace.closed(Clock::utc()).context("cannot write the trace")?;
            trace.into_inner().flush().context("cannot write the trace")?;
        }
        match outcome {
            Ok(Some(Indication::Released)) => Ok(()),
            Ok(other) => bail!(Lost(describe(other.as_ref()))),
            Err(error) => Err(error),
        }
    }
}

/// Says why an association that should go on does not.
pub(crate) fn describe(indication: Option<&Indication>) -> String {
    match indication {
        Some(Indication::Aborted { detail, .. }) => detail.clone(),
        Some(Indication::Rejected { problem, .. }) => {
            format!("the MTA rejected the operation: {}", problem_name(*problem))
        }
        // Its name alone: what it carries may be a password or a content.
        Some(other) => format!("the MTA's answer is out of place ({})", other.name()),
        None => INTERRUPTED.to_owned(),
    }
}

/// A ROSE problem in X.229's words (clause 9), where it is one that an MTA may have with us.
fn problem_name(problem: Problem) -> String {
    match (problem.kind, problem.value) {
        (1, 0) => "duplicate-invocation".to_owned(),
        (1, 1) => "unrecognized-operation".to_owned(),
        (1, 2) => "mistyped-argument".to_owned(),
        (1, 3) => "resource-limitation: it cannot for now".to_owned(),
        (kind, value) => format!("ROSE problem {kind}.{value}"),
    }
}

fn connect(mta: &str) -> Result<TcpStream> {
    let addresses: Vec<_> = mta
        .to_socket_addrs()
        .with_context(|| format!("{mta:?} is no address: give HOST:PORT of the MTA's P3 listener"))?
        .collect();
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
                stream.set_write_timeout(Some(LOOK)).context("cannot set a timeout")?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    let error = last.map_or_else(|| "no address".to_owned(), |e| e.to_string());
    bail!("no connection to the MTA at {mta}: {error}; does it run? (mta status)")
}

fn config(profile: &Profile, services: Services) -> Config {
    let octets = |text: &Option<String>| text.clone().map(Bytes::from);
    let remote = Selectors {
        transport: octets(&profile.tsel),
        session: octets(&profile.ssel),
        presentation: octets(&profile.psel),
    };
    let reference = ConnectionReference {
        user: Bytes::from_static(b"xuxa"),
        common: Bytes::from(Clock::utc().to_utc_time()),
        additional: Bytes::new(),
    };
    let mut config = profiles::p3(Selectors::default(), remote, reference);
    if services == Services::Submission {
        let delivery = profiles::abstract_syntax::mdse_88();
        config.contexts.retain(|c| c.abstract_syntax != delivery);
    }
    config
}

fn start_trace(path: &Path, stream: &TcpStream) -> Result<TraceWriter<BufWriter<File>>> {
    let file = private(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut trace = TraceWriter::new(BufWriter::new(file)).context("cannot write the trace")?;
    let connection = Connection {
        local: stream.local_addr().context("the connection has no address")?,
        remote: stream.peer_addr().context("the connection has no address")?,
        opener: Opener::Local,
        tos: 0,
    };
    trace.connection(Clock::utc(), connection).context("cannot write the trace")?;
    Ok(trace)
}

/// Creates the file, or empties it, readable by its owner only: it will hold the password and
/// contents.
fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The mode above is that of a new file only.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_trace_is_the_owners_only_where_the_file_was_there_too() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        std::fs::write(&old, "what was in it").unwrap();
        std::fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        for path in [new, old] {
            let file = private(&path).unwrap().metadata().unwrap();
            assert_eq!((file.permissions().mode() & 0o7777, file.len()), (0o600, 0), "{path:?}");
        }
    }

    #[test]
    fn an_answer_out_of_place_is_named_and_not_shown() {
        let bytes = Bytes::from_static(b"vesuvio");
        let said = describe(Some(&Indication::Data { bytes, last: true }));
        assert_eq!(said, "the MTA's answer is out of place (Data)");
    }
}
