//! Asks a running daemon.

use super::{Answer, LINE_MAX, Request};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error(
        "no daemon answers on {path}: is it running, with this configuration? (mta run --config …)"
    )]
    NoDaemon {
        /// The socket.
        path: PathBuf,
    },
    /// The socket is another user's.
    #[error("{path} may be used only by the daemon's user")]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// It broke off.
    #[error("{path}: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The daemon is of another version.
    #[error("the daemon on {path} answers something else: {reason}")]
    Other {
        /// The socket.
        path: PathBuf,
        /// What.
        reason: String,
    },
}

/// Asks the daemon that listens on a socket.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, AskError> {
    let failed = |error: io::Error| {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                AskError::NoDaemon { path }
            }
            io::ErrorKind::PermissionDenied => AskError::Denied { path },
            _ => AskError::Io { path, error },
        }
    };
    let line = exchange(path, request).map_err(failed)?;
    if line.is_empty() {
        return Err(AskError::Denied { path: path.to_owned() });
    }
    serde_json::from_str(&line)
        .map_err(|e| AskError::Other { path: path.to_owned(), reason: e.to_string() })
}

fn exchange(path: &Path, request: &Request) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut request = serde_json::to_vec(request)?;
    request.push(b'\n');
    match stream.write_all(&request) {
        // Who may not ask is told so at once, and unheard.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    Ok(line)
}
