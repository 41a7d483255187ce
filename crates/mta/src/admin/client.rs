//! The client of the admin socket: sends one request to a running daemon.

use super::{Answer, MAX_LINE, Request};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for an answer. The daemon reports a timeout of its own before that.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Why no answer was received.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens on the socket.
    #[error(
        "no daemon answers on {path}: is it running, with this configuration? (mta run --config …)"
    )]
    NoDaemon {
        /// The socket.
        path: PathBuf,
    },
    /// The socket belongs to another user.
    #[error("{path} may be used only by the daemon's user")]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// No answer within the time limit.
    #[error(
        "the daemon on {path} did not answer within {} s: it is busy or hangs; \
         try again, and see its log",
        waited.as_secs_f64()
    )]
    Late {
        /// The socket.
        path: PathBuf,
        /// The time limit.
        waited: Duration,
    },
    /// The daemon closed the socket before the end of its answer.
    #[error(
        "the daemon closed {path} before it had answered: it is ending or has ended; see its log"
    )]
    Closed {
        /// The socket.
        path: PathBuf,
    },
    /// The connection failed.
    #[error("{path}: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The answer cannot be decoded: the daemon has another version.
    #[error("the daemon on {path} answers something else: {reason}")]
    Other {
        /// The socket.
        path: PathBuf,
        /// The decoder's message.
        reason: String,
    },
}

/// Sends a request to the daemon that listens on a socket and returns its answer.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, AskError> {
    ask_within(path, request, TIMEOUT)
}

/// The same, with another longest wait.
///
/// # Errors
/// [`AskError`].
pub fn ask_within(path: &Path, request: &Request, waited: Duration) -> Result<Answer, AskError> {
    let owned = || path.to_owned();
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            AskError::NoDaemon { path: owned() }
        }
        io::ErrorKind::PermissionDenied => AskError::Denied { path: owned() },
        _ => AskError::Io { path: owned(), error },
    })?;
    let line = exchange(stream, request, waited).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            AskError::Late { path: owned(), waited }
        }
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            AskError::Closed { path: owned() }
        }
        _ => AskError::Io { path: owned(), error },
    })?;
    if !line.ends_with('\n') && (line.len() as u64) < MAX_LINE {
        return Err(AskError::Closed { path: owned() });
    }
    serde_json::from_str(&line)
        .map_err(|e| AskError::Other { path: owned(), reason: e.to_string() })
}

fn exchange(mut stream: UnixStream, request: &Request, waited: Duration) -> io::Result<String> {
    stream.set_read_timeout(Some(waited))?;
    stream.set_write_timeout(Some(waited))?;
    let mut request = serde_json::to_vec(request)?;
    request.push(b'\n');
    match stream.write_all(&request) {
        // A refused client gets its answer at once; the daemon does not read the request.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)?;
    Ok(line)
}
