//! The connection under an association: one TCP connection, the OSI stack on it, and a capture if one is wanted.
//! A P3 user and a P7 user both stand on it.

use crate::clock::Clock;
use crate::interrupt::Interrupted;
use crate::login::Login;
use base::Instant;
use bytes::{Buf as _, Bytes, BytesMut};
use capture::{CaptureWriter, CapturedConnection, Opener};
use osi::api::{AbortReason, Config, Indication, Input, Output, Problem, Request, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association;
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
/// Time that an MTA which accepts no data gets after an interrupt.
const GRACE: Duration = Duration::from_millis(200);
/// Longest wait for the MTA to end an association that we aborted or released.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection is over.
const CLOSED: &str = "the connection closed";
/// The reason of an interrupted operation.
pub const INTERRUPTED: &str = "interrupted";

/// Why a connection cannot be used, or no longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// There is no TCP connection.
    #[error("{0}")]
    NotConnected(NotConnected),
    /// The association ended: the connection was lost, or the other end aborted.
    #[error("the association ended: {0}")]
    Ended(String),
    /// The user was interrupted before the connection was made.
    #[error("interrupted")]
    Interrupted,
    /// The capture cannot be written.
    #[error("cannot write the capture: {0}")]
    Capture(std::io::Error),
}

/// Why there is no TCP connection.
#[derive(Debug, thiserror::Error)]
pub enum NotConnected {
    /// The text is not the address of a listener.
    #[error(
        "{address:?} is not an address: give HOST:PORT of the MTA's {protocol} listener ({error})"
    )]
    Address {
        /// What was given.
        address: String,
        /// P3 or P7.
        protocol: &'static str,
        /// The resolver's error.
        error: std::io::Error,
    },
    /// Nothing answers there.
    #[error("no connection to the MTA at {address}: {why}; does it run? (mta status)")]
    Unreachable {
        /// Where.
        address: String,
        /// Of the last address tried.
        why: String,
    },
}

/// What is connected to, and as what.
pub(crate) struct Target<'a> {
    pub(crate) login: &'a Login,
    /// P3 or P7.
    pub(crate) protocol: &'static str,
    /// The profile of the association.
    pub(crate) config: Config,
    /// The bind argument.
    pub(crate) bind: Bytes,
}

/// An association over one TCP connection.
pub(crate) struct Connection {
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
    /// When the association was asked for, and the longest wait for it.
    asked: (Instant, Duration),
    capture: Option<CaptureWriter<BufWriter<File>>>,
    interrupted: Interrupted,
    /// The transport connection is to be closed once all output is written.
    closing: bool,
    /// Why it is closed or accepts no more output.
    over: Option<&'static str>,
}

impl Connection {
    /// Connects, and asks for the association. Setting `interrupted` ends every later wait.
    pub(crate) async fn open(
        target: Target<'_>,
        pcap: Option<&Path>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Result<Connection, Broken> {
        let Target { login, protocol, mut config, bind } = target;
        // The answer to a bind is one too.
        let setup_timeout = config.setup_timeout.min(login.answer_timeout);
        config.setup_timeout = setup_timeout;
        let stream = tokio::select! {
            stream = connect(&login.mta, protocol, login.answer_timeout) => stream.map_err(Broken::NotConnected)?,
            () = interrupted.wait() => return Err(Broken::Interrupted),
        };
        let capture = pcap.map(|path| start_capture(path, &stream)).transpose();
        let mut connection = Connection {
            stream,
            stack: Association::new(config, Role::Initiator),
            clock,
            indications: VecDeque::new(),
            unwritten: BytesMut::new(),
            scratch: vec![0; CHUNK].into(),
            written: 0,
            patience: login.answer_timeout,
            asked: (clock.now(), setup_timeout),
            capture: capture.map_err(Broken::Capture)?,
            interrupted,
            closing: false,
            over: None,
        };
        connection.request(Request::Open { bind });
        Ok(connection)
    }

    /// Passes a request to the association; the next [`Connection::next`] or [`Connection::flush`] sends its
    /// output.
    pub(crate) fn request(&mut self, request: Request) {
        self.stack.handle(self.clock.now(), Input::Request(request));
        self.drain();
    }

    /// Why there is no association, of what came instead of it.
    pub(crate) fn why_not_opened(&self, indication: Option<&Indication>) -> String {
        let (at, longest) = self.asked;
        let why = describe(indication);
        match indication {
            Some(Indication::Aborted { .. }) if self.clock.now().since(at) >= longest => {
                format!("no answer to the bind within {} s ({why})", longest.as_secs_f64())
            }
            _ => why,
        }
    }

    /// Octets sent so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The value of [`Connection::written`] once all requested output is sent.
    pub(crate) fn requested(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    /// Whether the connection accepts no more output.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the user was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_set()
    }

    /// The next indication, after pending output is written; `None` if none arrived within `wait`,
    /// or after an interrupt.
    ///
    /// # Errors
    /// [`Broken::Ended`], or the capture cannot be written.
    pub(crate) async fn next(
        &mut self,
        wait: Option<Duration>,
    ) -> Result<Option<Indication>, Broken> {
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
                return Err(Broken::Ended(why.to_owned()));
            }
            let now = self.clock.now();
            if self.is_interrupted() || until.is_some_and(|at| at <= now) {
                return Ok(None);
            }
            self.step(until).await?;
        }
    }

    /// Processes input or a timeout.
    async fn step(&mut self, until: Option<Instant>) -> Result<(), Broken> {
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
                    capture.received(Clock::utc(), octets).map_err(Broken::Capture)?;
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
    /// The capture cannot be written. The next [`Connection::next`] returns the end of the connection,
    /// as the MTA may have sent something before it.
    pub(crate) async fn flush(&mut self) -> Result<(), Broken> {
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
                () = sleep(WRITE_TIMEOUT.min(self.patience)) => Err(ErrorKind::TimedOut.into()),
            };
            match written {
                Ok(n @ 1..) => {
                    if let Some(capture) = &mut self.capture {
                        let octets = self.unwritten.get(..n).unwrap_or_default();
                        capture.sent(Clock::utc(), octets).map_err(Broken::Capture)?;
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
    pub(crate) async fn abort(mut self) {
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
    /// [`Broken::Ended`], or the capture cannot be written.
    pub(crate) async fn unbind(mut self) -> Result<(), Broken> {
        self.interrupted = Interrupted::default();
        self.request(Request::Release);
        let until = self.clock.now() + RELEASE_TIMEOUT.min(self.patience);
        let outcome = loop {
            let left = until.since(self.clock.now());
            match self.next(Some(left)).await {
                // A delivery that the MTA began before it knew of the unbind: it is not confirmed, so that
                // it waits there.
                Ok(Some(Indication::Invoked { .. } | Indication::Data { .. })) => {}
                outcome => break outcome,
            }
        };
        if let Some(mut capture) = self.capture.take() {
            capture.closed(Clock::utc()).map_err(Broken::Capture)?;
            capture.into_inner().flush().map_err(Broken::Capture)?;
        }
        match outcome {
            Ok(Some(Indication::Released)) => Ok(()),
            Ok(other) => Err(Broken::Ended(describe(other.as_ref()))),
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
pub(crate) fn problem_name(problem: Problem) -> String {
    match (problem.kind, problem.value) {
        (1, 0) => "duplicate-invocation".to_owned(),
        (1, 1) => "unrecognized-operation".to_owned(),
        (1, 2) => "mistyped-argument".to_owned(),
        (1, 3) => "resource-limitation: it cannot for now".to_owned(),
        (kind, value) => format!("ROSE problem {kind}.{value}"),
    }
}

/// A session connection reference that no other association of this second has with this user.
pub(crate) fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"xuxa"),
        common: Bytes::from(Clock::utc().to_utc_time()),
        additional: Bytes::new(),
    }
}

async fn connect(
    address: &str,
    protocol: &'static str,
    patience: Duration,
) -> Result<TcpStream, NotConnected> {
    let addresses = tokio::net::lookup_host(address)
        .await
        .map_err(|error| NotConnected::Address { address: address.to_owned(), protocol, error })?;
    let mut why = "no address".to_owned();
    for at in addresses {
        match timeout(CONNECT_TIMEOUT.min(patience), TcpStream::connect(at)).await {
            Ok(Ok(stream)) => {
                // Without it small APDUs are late.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = "connection timed out".to_owned(),
        }
    }
    Err(NotConnected::Unreachable { address: address.to_owned(), why })
}

fn start_capture(
    path: &Path,
    stream: &TcpStream,
) -> std::io::Result<CaptureWriter<BufWriter<File>>> {
    let of_path =
        |e: std::io::Error| std::io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let file = private(path).map_err(of_path)?;
    let mut capture = CaptureWriter::new(BufWriter::new(file))?;
    let connection = CapturedConnection {
        local: stream.local_addr()?,
        remote: stream.peer_addr()?,
        opener: Opener::Local,
        tos: 0,
    };
    capture.connection(Clock::utc(), connection)?;
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
