//! The one thread that commits: whatever waits goes into one group.

use crate::error::StoreError;
use crate::queue::QueueStore;
use engine::journal::Batch;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Called once with the outcome of a batch, on the committer's thread (or on the submitter's if
/// the committer is gone). Must neither block nor panic: every commit waits for it.
pub type OnDone = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The most batches in one group. Bounds what one transaction holds in memory.
const GROUP_MAX: usize = 1024;

/// A batch and whom to tell.
struct Job {
    batch: Batch,
    on_done: OnDone,
}

/// A batch that did not find room, handed back.
pub struct Refused {
    /// The batch.
    pub batch: Batch,
    /// Its callback, not called.
    pub on_done: OnDone,
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// Commits batches on a thread of its own, in the order of submission. Dropping it commits
/// what is queued, then ends.
#[derive(Debug)]
pub struct Committer {
    /// `None` only while dropping.
    queue: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread, with room for `capacity` batches to wait (at least one).
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system gives no thread.
    pub fn start(store: Arc<dyn QueueStore>, capacity: usize) -> Result<Committer, StoreError> {
        let (queue, jobs) = sync_channel(capacity.max(1));
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || run(&*store, &jobs))
            .map_err(|e| StoreError::io("starting the committer", e))?;
        Ok(Committer { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a batch; waits while the queue is full.
    pub fn submit(&self, batch: Batch, on_done: OnDone) {
        let job = Job { batch, on_done };
        let refused = match &self.queue {
            Some(queue) => queue.send(job).map_err(|e| e.0),
            None => Err(job),
        };
        if let Err(job) = refused {
            (job.on_done)(Err(StoreError::Closed));
        }
    }

    /// Queues a batch if there is room now.
    ///
    /// # Errors
    /// The batch itself, if the queue is full.
    pub fn try_submit(&self, batch: Batch, on_done: OnDone) -> Result<(), Refused> {
        let job = Job { batch, on_done };
        let outcome = match &self.queue {
            Some(queue) => queue.try_send(job),
            None => Err(TrySendError::Disconnected(job)),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(Job { batch, on_done })) => Err(Refused { batch, on_done }),
            Err(TrySendError::Disconnected(job)) => {
                (job.on_done)(Err(StoreError::Closed));
                Ok(())
            }
        }
    }

    /// Commits what is queued, then ends the thread.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the committer panicked");
        }
    }
}

fn run(store: &dyn QueueStore, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let waiting = jobs.try_iter().take(GROUP_MAX - 1);
        let (group, callbacks): (Vec<_>, Vec<_>) =
            std::iter::once(first).chain(waiting).map(|job| (job.batch, job.on_done)).unzip();
        for (on_done, outcome) in callbacks.into_iter().zip(store.commit(group)) {
            on_done(outcome);
        }
    }
}
