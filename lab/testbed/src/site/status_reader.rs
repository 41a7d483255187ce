//! A daemon's status over its admin socket, without a process for each answer.

use crate::site::answer::MtaStatus;
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Longest wait for an answer.
const WAIT: Duration = Duration::from_secs(5);
/// Most octets of an answer.
const MAX_ANSWER: u64 = 16 << 20;

/// Asks one daemon again and again.
#[derive(Clone, Debug)]
pub struct StatusReader {
    socket: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Status(Box<MtaStatus>),
}

impl StatusReader {
    pub(crate) fn new(socket: PathBuf) -> StatusReader {
        StatusReader { socket }
    }

    /// The daemon's answer to `mta status`.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn status(&self) -> Result<MtaStatus> {
        let line = self.line().with_context(|| self.socket.display().to_string())?;
        let Answer::Status(status) = serde_json::from_str(&line).context("mta status")?;
        Ok(*status)
    }

    fn line(&self) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_write_timeout(Some(WAIT))?;
        stream.write_all(b"{\"request\":\"status\"}\n")?;
        let mut line = String::new();
        BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
        Ok(line)
    }
}
