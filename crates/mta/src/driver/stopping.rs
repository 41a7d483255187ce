//! The end of the daemon: the signals that ask for it, and how long the disk is waited for.

use super::DriverError;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Wait for aborts to leave, when stopping in order took too long.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Wait for the disk when all is done: it may hang.
const MAX_CLOSE: Duration = Duration::from_secs(30);

/// The signals that stop the daemon.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next of them, by its name.
    pub(super) async fn next(&mut self) -> Option<&'static str> {
        tokio::select! {
            signal = self.terminate.recv() => signal.map(|()| "SIGTERM"),
            signal = self.interrupt.recv() => signal.map(|()| "SIGINT"),
        }
    }
}

/// How long the disk is waited for after this end.
pub(super) fn disk_wait(ended: &Result<(), DriverError>) -> Duration {
    match ended {
        Err(DriverError::StopForced) => LAST_WORDS,
        _ => MAX_CLOSE,
    }
}

/// Closes the store, if the disk does so in time and nobody is more in a hurry: it opens quickly
/// all the same.
pub(super) async fn in_time<T>(
    closing: impl Future<Output = T>,
    most: Duration,
    signals: &mut StopSignals,
) {
    tokio::select! {
        _ = closing => {}
        () = tokio::time::sleep(most) => {
            tracing::error!(waited = ?most, "the disk did not let the store be closed in time");
        }
        Some(name) = signals.next() => {
            tracing::warn!(signal = name, "a further signal: the store is not closed in order");
        }
    }
}
