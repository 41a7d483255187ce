//! `mta run --record`: every input of the node to a file, by a thread of its own.
//!
//! The driver appends to a buffer and never waits for the disk. If the buffer has [`MAX_WAITING`] octets, the
//! recording ends: the daemon has other things to do. What the buffer has when the process is killed is lost, the
//! last 20 ms at most while the disk keeps up; a panic and every orderly end write it out.

use crate::clock::Clock;
use base::{Now, Utc};
use node::event::{Kind, LogEvent, LogLevel};
use node::{Input, Output};
use record::mask::Key;
use record::{End, Header, Recorder};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Octets that may wait for the disk.
const MAX_WAITING: usize = 64 << 20;
/// Octets after which the thread does not wait for more.
const ENOUGH: usize = 1 << 20;
/// How long it waits for more, so that it does not wake for every input.
const GATHER: Duration = Duration::from_millis(20);
/// Longest wait for the disk at the end.
const MAX_CLOSE: Duration = Duration::from_secs(5);

/// The recording that was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A file that does not exist, or a directory for one named by the time.
    pub path: PathBuf,
    /// Most octets of it.
    pub limit: u64,
}

/// The new file of a recording.
pub(super) struct Sink {
    file: File,
    pub(super) path: PathBuf,
    limit: u64,
}

impl Wanted {
    /// Makes the file, for its owner only. One that exists is not touched, nor is a link followed.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(&self, clock: Clock) -> io::Result<Sink> {
        let path = match self.path.is_dir() {
            true => self.path.join(name(clock.now().utc, std::process::id())),
            false => self.path.clone(),
        };
        let file = create(&path)?;
        Ok(Sink { file, path, limit: self.limit })
    }
}

/// Makes a new file for its owner only.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// The name of a recording in a directory: `20260102T030405Z-77.record`.
fn name(utc: Utc, process: u32) -> String {
    let time = utc.to_string();
    let second = time.split('.').next().unwrap_or_default();
    format!("{}Z-{process}.record", second.replace(['-', ':'], ""))
}

/// A recording that is being made.
pub(super) struct Recording {
    recorder: Recorder,
    shared: Arc<Shared>,
    path: PathBuf,
    /// Octets that may wait for the disk.
    most_waiting: usize,
    /// Its end was reported.
    reported: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There are octets, or no more will come.
    filled: Condvar,
    /// The thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    octets: Vec<u8>,
    closing: bool,
    ended: bool,
    failed: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    /// Begins with the header.
    ///
    /// # Errors
    /// There is no thread, or no random key.
    pub(super) fn start(sink: Sink, header: &Header) -> io::Result<Recording> {
        let Sink { file, path, limit } = sink;
        Recording::to(file, path, limit, MAX_WAITING, header)
    }

    /// To this writer, for which so many octets may wait.
    fn to(
        writer: impl io::Write + Send + 'static,
        path: PathBuf,
        limit: u64,
        most_waiting: usize,
        header: &Header,
    ) -> io::Result<Recording> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let recorder = Recorder::new(header, limit, Key(key));
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        thread.spawn(move || write(&of_thread, writer))?;
        let mut recording = Recording { recorder, shared, path, most_waiting, reported: false };
        recording.pass();
        Ok(recording)
    }

    /// An input that the node takes next.
    pub(super) fn input(&mut self, now: Now, input: &Input) {
        if !self.reported {
            self.recorder.input(now, input);
            // Before the node takes it: what ends the process is in the file.
            self.pass();
        }
    }

    /// An output of the node.
    pub(super) fn output(&mut self, output: &Output) {
        if !self.reported {
            self.recorder.output(output);
        }
    }

    /// The node has no more outputs. Gives an event, once, where the recording has ended before the node.
    pub(super) fn step_ended(&mut self) -> Option<LogEvent> {
        if self.reported {
            return None;
        }
        self.recorder.step_ended();
        let failed = self.pass();
        let why = match (failed, self.recorder.ended()) {
            (Some(error), _) => format!("cannot write: {error}"),
            (None, Some(End::Stopped)) => {
                self.reported = true;
                return None;
            }
            (None, Some(end)) => end.to_string(),
            (None, None) => return None,
        };
        self.reported = true;
        self.shared.lock().closing = true;
        self.shared.filled.notify_one();
        let path = self.path.display().to_string();
        Some(LogEvent {
            detail: format!("{}: {why}", base::shown::line(&path)),
            ..LogEvent::new(LogLevel::Warning, Kind::RecordingEnded)
        })
    }

    /// Passes what was made to the thread. Gives why it cannot write.
    fn pass(&mut self) -> Option<String> {
        let mut state = self.shared.lock();
        if state.failed.is_some() {
            return state.failed.clone();
        }
        if state.octets.len() > self.most_waiting {
            self.recorder.end(End::Behind(state.octets.len() as u64));
        }
        let was_empty = state.octets.is_empty();
        self.recorder.take(&mut state.octets);
        let wakes = was_empty != state.octets.is_empty() || state.octets.len() > ENOUGH;
        drop(state);
        if wakes {
            self.shared.filled.notify_one();
        }
        None
    }
}

/// What waits is written, also where a panic ends the process.
impl Drop for Recording {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closing = true;
        self.shared.filled.notify_one();
        let wait = self.shared.ended.wait_timeout_while(state, MAX_CLOSE, |state| !state.ended);
        drop(wait);
    }
}

/// The thread.
fn write(shared: &Shared, mut file: impl io::Write) {
    let mut octets = Vec::new();
    loop {
        let state = shared.lock();
        let idle = |state: &mut State| state.octets.is_empty() && !state.closing;
        let state = shared.filled.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let few = |state: &mut State| state.octets.len() < ENOUGH && !state.closing;
        let gathered = shared.filled.wait_timeout_while(state, GATHER, few);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        octets.clear();
        std::mem::swap(&mut octets, &mut state.octets);
        let last = state.closing && octets.is_empty();
        drop(state);
        let written = file.write_all(&octets);
        if last || written.is_err() {
            let mut state = shared.lock();
            state.failed = written.err().map(|error| error.to_string());
            state.ended = true;
            state.octets = Vec::new();
            shared.ended.notify_all();
            return;
        }
    }
}

#[cfg(test)]
mod tests;
