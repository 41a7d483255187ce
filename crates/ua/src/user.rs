//! A user bound to an MTA: a P3 association over one TCP connection.

use crate::clock::Clock;
use crate::interrupt::Interrupted;
use anyhow::{Context, Result, bail};
use base::Instant;
use base::ber::{Element, Writer};
use bytes::{Buf as _, Bytes, BytesMut};
use capture::{CaptureWriter, CapturedConnection, Opener};
use osi::api::{
    AbortReason, Config, Indication, Input, Output, Payload, Problem, Request, Role, Selectors,
};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, Password};
use p1::names::ORName;
use p1::p3::{MtsBind, MtsBindError, ObjectName};
use std::collections::VecDeque;
use std::fs::{File, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, sleep_until, timeout};

/// Most octets read at once, and written at once before more are produced.
const CHUNK: usize = 64 << 10;
/// Longest wait for a TCP connection, and for progress of a write.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval of checks, during the wait for an answer, of how much the MTA's TCP has acknowledged:
/// on a slow line output waits in the system for minutes.
const LOOK: Duration = Duration::from_secs(5);
/// Default of the longest wait for an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Time that an MTA which accepts no data gets after an interrupt.
const GRACE: Duration = Duration::from_millis(200);
/// Longest wait for the MTA to end an association that we aborted or released.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection is over.
const CLOSED: &str = "the connection closed";
/// The reason of an interrupted operation.
pub const INTERRUPTED: &str = "interrupted";

/// The connection was lost or the MTA aborted: whether it accepted the message is unknown.
#[derive(Debug, thiserror::Error)]
#[error("the association ended: {0}")]
pub struct Lost(pub String);

/// The MTA refused the bind.
#[derive(Debug, thiserror::Error)]
#[error("the MTA refused the bind: {why}")]
pub struct Refused {
    /// The MTA's reason, or ours.
    pub why: String,
    /// The MTA rejects our credentials: a retry does not help.
    pub for_good: bool,
}

/// The services a user requests when binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Submission only: the MTA delivers nothing on this association.
    Submission,
    /// Submission and delivery.
    Delivery,
}

/// The MTA and the user to bind as.
#[derive(Clone, Debug)]
pub struct Login {
    /// Host and port of the MTA's P3 listener.
    pub mta: String,
    /// The user's O/R name.
    pub user: ORName,
    /// Its password.
    pub password: Password,
    /// Selectors of the MTA, if it requires any.
    pub called: Selectors,
    /// Longest wait for an answer once the MTA's TCP has acknowledged the whole request. After
    /// that the association is aborted, and the request ends with [`Lost`].
    pub answer_timeout: Duration,
}

/// A bound user.
pub struct User {
    stream: TcpStream,
    stack: Association,
    clock: Clock,
    indications: VecDeque<Indication>,
    unwritten: BytesMut,
    scratch: Box<[u8]>,
    /// Octets passed to the system so far.
    written: u64,
    /// Longest wait for an answer.
    patience: Duration,
    capture: Option<CaptureWriter<BufWriter<File>>>,
    interrupted: Interrupted,
    /// The transport connection is to be closed once all output is written.
    closing: bool,
    /// Why it is closed or accepts no more output.
    over: Option<&'static str>,
    /// Our own name, as bound.
    pub name: ORName,
    /// The MTA's bind result.
    pub bound: MtsBind,
}

impl User {
    /// Connects, opens the association and binds. Setting `interrupted` ends every later wait of
    /// this user.
    ///
    /// # Errors
    /// No connection, [`Refused`], or [`Lost`].
    pub async fn bind(
        login: &Login,
        services: Services,
        pcap: Option<&Path>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Result<User> {
        let stream = tokio::select! {
            stream = connect(&login.mta) => stream?,
            () = interrupted.wait() => bail!(Lost(INTERRUPTED.to_owned())),
        };
        let capture = pcap.map(|path| start_capture(path, &stream)).transpose()?;
        let credentials = Credentials::Simple(login.password.clone());
        let bind = MtsBind::new(ObjectName::UserAgent(login.user.clone()), credentials);
        let mut writer = Writer::new();
        bind.write(&mut writer);
        let mut user = User {
            stream,
            stack: Association::new(config(login, services), Role::Initiator),
            clock,
            indications: VecDeque::new(),
            unwritten: BytesMut::new(),
            scratch: vec![0; CHUNK].into(),
            written: 0,
            patience: login.answer_timeout,
            capture,
            interrupted,
            closing: false,
            over: None,
            name: login.user.clone(),
            bound: bind,
        };
        user.request(Request::Open { bind: writer.into_vec().into() });
        user.await_bind().await?;
        Ok(user)
    }

    async fn await_bind(&mut self) -> Result<()> {
        match self.next(None).await? {
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
                    Some(MtsBindError::Busy) => {
                        "busy: it has no place for another association, or \
                                                 too many binds in this name failed lately (each \
                                                 half minute one more is looked at; `mta reload` \
                                                 there ends it). Its log names which"
                            .to_owned()
                    }
                    Some(error) => error.to_string(),
                    None => detail,
                };
                bail!(Refused { why, for_good })
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }

    /// Passes a request to the association; the next [`User::next`] or [`User::flush`] sends its
    /// output.
    pub fn request(&mut self, request: Request) {
        self.stack.handle(self.clock.now(), Input::Request(request));
        self.drain();
    }

    /// Octets sent so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The value of [`User::written`] once all requested output is sent.
    pub fn requested(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    /// Whether the connection accepts no more output.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the user was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.is_set()
    }

    /// The next indication, after pending output is written; `None` if none arrived within `wait`,
    /// or after an interrupt.
    ///
    /// # Errors
    /// [`Lost`], or the capture cannot be written.
    pub async fn next(&mut self, wait: Option<Duration>) -> Result<Option<Indication>> {
        let until = wait.map(|w| self.clock.now() + w);
        loop {
            if self.unwritten.len() >= CHUNK {
                self.flush().await?;
            }
            if let Some(indication) = self.indications.pop_front() {
                return Ok(Some(indication));
            }
            self.flush().await?;
            if let Some(why) = self.over {
                bail!(Lost(why.to_owned()));
            }
            let now = self.clock.now();
            if self.is_interrupted() || until.is_some_and(|at| at <= now) {
                return Ok(None);
            }
            self.step(until).await?;
        }
    }

    /// The next piece of an argument or result, and whether it is the last.
    ///
    /// # Errors
    /// [`Lost`]: another indication arrived.
    pub async fn data(&mut self) -> Result<(Bytes, bool)> {
        match self.next(None).await? {
            Some(Indication::Data { bytes, last }) => Ok((bytes, last)),
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }

    /// Answers an invocation with a result, and sends it.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub async fn answer(&mut self, invoke: i64, operation: i64, result: Vec<u8>) -> Result<()> {
        self.request(Request::Result { invoke, operation, result: Payload::whole(result) });
        self.flush().await
    }

    /// Processes input or a timeout.
    async fn step(&mut self, until: Option<Instant>) -> Result<()> {
        let now = self.clock.now();
        let deadline = self.stack.deadline();
        if deadline.is_some_and(|at| at <= now) {
            self.stack.handle(now, Input::Tick);
            self.drain();
            return Ok(());
        }
        let look = (self.stack.outstanding() > 0).then(|| now + LOOK.min(self.patience / 4));
        let next = [until, deadline, look].into_iter().flatten().min();
        let clock = self.clock;
        let wake = async {
            match next {
                Some(at) => sleep_until(clock.at(at)).await,
                None => std::future::pending().await,
            }
        };
        let arrived = tokio::select! {
            biased;
            read = self.stream.read(&mut self.scratch) => read,
            () = wake => {
                if look.is_some() {
                    self.look();
                }
                return Ok(());
            }
            () = self.interrupted.wait() => return Ok(()),
        };
        match arrived {
            Ok(read @ 1..) => {
                let octets = self.scratch.get(..read).unwrap_or_default();
                if let Some(capture) = &mut self.capture {
                    capture.received(Clock::utc(), octets).context("cannot write the capture")?;
                }
                self.stack.handle(self.clock.now(), Input::Bytes(octets));
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.stack.handle(self.clock.now(), Input::Eof),
        }
        self.drain();
        Ok(())
    }

    /// Whether the MTA's TCP has acknowledged more than at the last call: the system may buffer
    /// far more than a slow line carries within [`WRITE_TIMEOUT`].
    fn has_taken_more(&self, before: &mut Option<u64>) -> bool {
        let now = dscp::socket::taken(&self.stream);
        std::mem::replace(before, now) < now
    }

    /// Octets acknowledged by the MTA's TCP count as progress.
    fn look(&mut self) {
        if let Some(octets) = dscp::socket::taken(&self.stream) {
            self.stack.handle(self.clock.now(), Input::Taken(octets));
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.stack.poll() {
            match output {
                // After an incomplete write nothing else may follow.
                Output::Send(_) if self.is_over() || self.closing => {}
                Output::Send(octets) => self.unwritten.extend_from_slice(&octets),
                Output::Close => self.closing = true,
                Output::Indication(indication) => self.indications.push_back(indication),
            }
        }
    }

    /// Writes pending output, unless the MTA accepts nothing for too long, or for a moment after
    /// an interrupt.
    ///
    /// # Errors
    ///
    /// The capture cannot be written. The next [`User::next`] returns the end of the connection,
    /// as the MTA may have sent something before it.
    pub async fn flush(&mut self) -> Result<()> {
        let mut taken = None;
        while !self.unwritten.is_empty() && !self.is_over() {
            let interrupted = &self.interrupted;
            let given_up = async {
                interrupted.wait().await;
                sleep(GRACE).await;
            };
            let written = tokio::select! {
                biased;
                written = self.stream.write(&self.unwritten) => written,
                () = given_up => Err(ErrorKind::Other.into()),
                () = sleep(WRITE_TIMEOUT) => Err(ErrorKind::TimedOut.into()),
            };
            match written {
                Ok(n @ 1..) => {
                    if let Some(capture) = &mut self.capture {
                        let octets = self.unwritten.get(..n).unwrap_or_default();
                        capture.sent(Clock::utc(), octets).context("cannot write the capture")?;
                    }
                    self.unwritten.advance(n);
                    self.written += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::Other => self.over = Some(INTERRUPTED),
                Err(e) if e.kind() == ErrorKind::TimedOut && self.has_taken_more(&mut taken) => {}
                Err(e) if e.kind() == ErrorKind::TimedOut => {
                    self.over = Some("the MTA takes nothing more");
                }
                Ok(0) | Err(_) => self.over = Some(CLOSED),
            }
        }
        if self.closing {
            self.over.get_or_insert(CLOSED);
            let _ = timeout(ABORT_TIMEOUT, self.stream.shutdown()).await;
        }
        Ok(())
    }

    /// Aborts the association, so that the MTA knows the end is intended.
    pub async fn abort(mut self) {
        self.request(Request::Abort(AbortReason::LocalSystemProblem));
        let _ = self.flush().await;
        self.interrupted = Interrupted::default();
        let until = self.clock.now() + ABORT_TIMEOUT;
        // Pending input is read, as otherwise closing our end would cancel the abort.
        while !self.is_over() && self.clock.now() < until {
            if self.step(Some(until)).await.is_err() || self.flush().await.is_err() {
                return;
            }
        }
    }

    /// Unbinds in order; the wait for an MTA that does not answer is short.
    ///
    /// # Errors
    /// [`Lost`], or the capture cannot be written.
    pub async fn unbind(mut self) -> Result<()> {
        self.interrupted = Interrupted::default();
        self.request(Request::Release);
        let outcome = self.next(Some(RELEASE_TIMEOUT)).await;
        if let Some(mut capture) = self.capture.take() {
            capture.closed(Clock::utc()).context("cannot write the capture")?;
            capture.into_inner().flush().context("cannot write the capture")?;
        }
        match outcome {
            Ok(Some(Indication::Released)) => Ok(()),
            Ok(other) => bail!(Lost(describe(other.as_ref()))),
            Err(error) => Err(error),
        }
    }
}

/// Why an association that should continue does not.
pub fn describe(indication: Option<&Indication>) -> String {
    match indication {
        Some(Indication::Aborted { detail, .. }) => detail.clone(),
        Some(Indication::Rejected { problem, .. }) => {
            format!("the MTA rejected the operation: {}", problem_name(*problem))
        }
        // The name only: its contents may be a password or a message.
        Some(other) => format!("the MTA's answer is out of place ({})", other.name()),
        None => INTERRUPTED.to_owned(),
    }
}

/// The name of a ROSE problem (X.229 clause 9), if an MTA may have it with us.
fn problem_name(problem: Problem) -> String {
    match (problem.kind, problem.value) {
        (1, 0) => "duplicate-invocation".to_owned(),
        (1, 1) => "unrecognized-operation".to_owned(),
        (1, 2) => "mistyped-argument".to_owned(),
        (1, 3) => "resource-limitation: it cannot for now".to_owned(),
        (kind, value) => format!("ROSE problem {kind}.{value}"),
    }
}

async fn connect(mta: &str) -> Result<TcpStream> {
    let addresses = tokio::net::lookup_host(mta).await.with_context(|| {
        format!("{mta:?} is not an address: give HOST:PORT of the MTA's P3 listener")
    })?;
    let mut last = "no address".to_owned();
    for address in addresses {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = "connection timed out".to_owned(),
        }
    }
    bail!("no connection to the MTA at {mta}: {last}; does it run? (mta status)")
}

fn config(login: &Login, services: Services) -> Config {
    let reference = ConnectionReference {
        user: Bytes::from_static(b"xuxa"),
        common: Bytes::from(Clock::utc().to_utc_time()),
        additional: Bytes::new(),
    };
    let mut config = profiles::p3(Selectors::default(), login.called.clone(), reference);
    config.operation_timeout = login.answer_timeout;
    if services == Services::Submission {
        let delivery = profiles::abstract_syntax::mdse_88();
        config.contexts.retain(|c| c.abstract_syntax != delivery);
    }
    config
}

fn start_capture(path: &Path, stream: &TcpStream) -> Result<CaptureWriter<BufWriter<File>>> {
    let file = private(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut capture =
        CaptureWriter::new(BufWriter::new(file)).context("cannot write the capture")?;
    let connection = CapturedConnection {
        local: stream.local_addr().context("the connection has no address")?,
        remote: stream.peer_addr().context("the connection has no address")?,
        opener: Opener::Local,
        tos: 0,
    };
    capture.connection(Clock::utc(), connection).context("cannot write the capture")?;
    Ok(capture)
}

/// Creates the file, or empties it, readable by its owner only: it will contain the password and
/// contents.
fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The mode above applies to a new file only.
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
        let shown = describe(Some(&Indication::Data { bytes, last: true }));
        assert_eq!(shown, "the MTA's answer is out of place (Data)");
    }
}
