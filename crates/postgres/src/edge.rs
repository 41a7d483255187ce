//! The threads on which the connections run. Callers are threads of their own and wait for them.

use crate::failure::Failure;
use std::future::Future;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};

/// Two threads for all connections: they copy octets and wait.
const THREADS: usize = 2;

/// A runtime of the store's own: the caller may be on a thread of another one, or of none.
#[derive(Debug)]
pub(crate) struct Edge {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Edge {
    /// # Errors
    /// The system starts no thread.
    pub(crate) fn start() -> std::io::Result<Edge> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("postgres")
            .enable_all()
            .build()?;
        Ok(Edge { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Runs this to its end, at most so long: a server that hangs holds nobody for ever. What has taken
    /// longer is given up, and counts as lost.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (done, wait) = sync_channel(1);
        self.handle.spawn(async move {
            let ended = match tokio::time::timeout(limit, work).await {
                Ok(ended) => ended,
                Err(_) => Err(Failure::Lost(format!("no answer in {limit:?}"))),
            };
            let _ = done.send(ended);
        });
        wait.recv().unwrap_or_else(|_| Err(Failure::Lost("the store is closed".to_owned())))
    }

    /// Waits so long.
    pub(crate) fn pause(&self, time: Duration) {
        let _ = self.run(time + Duration::from_secs(1), async move {
            tokio::time::sleep(time).await;
            Ok(())
        });
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        // Does not wait, so it may be dropped on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The clock of limits and pauses.
#[expect(
    clippy::disallowed_methods,
    reason = "an edge: it decides how long a server is waited for"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
