//! The end of the daemon: stop signals, and the wait for the disk.

use super::DriverError;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time for aborts to be sent after the orderly stop has run out of time.
pub(super) const ABORT_GRACE: Duration = Duration::from_secs(1);

/// Longest wait for the disk at the end: it may hang.
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

    /// The next signal, by name.
    pub(super) async fn next(&mut self) -> Option<&'static str> {
        tokio::select! {
            signal = self.terminate.recv() => signal.map(|()| "SIGTERM"),
            signal = self.interrupt.recv() => signal.map(|()| "SIGINT"),
        }
    }
}

/// How long to wait for the disk after this end.
pub(super) fn disk_wait(ended: &Result<(), DriverError>) -> Duration {
    match ended {
        Err(DriverError::StopForced) => ABORT_GRACE,
        _ => MAX_CLOSE,
    }
}

/// Closes the store, unless the disk takes too long or a second signal arrives. The next start is
/// quick in either case.
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
