//! The one thread that commits: whatever waits goes into one group.

use crate::error::StoreError;
use crate::queue::QueueStore;
use engine::journal::Batch;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Called once with the outcome of a batch, on the committer's thread (or on the submitter's if
/// the committer is gone). Must neither block nor panic: every commit waits for it.
pub type OnDone = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The most batches in one group. Bounds what one transaction holds in memory.
const GROUP_MAX: usize = 1024;
/// After a group of so many, others are likely to be on their way: a moment is waited for each, so
/// that they share a transaction and a sync.
const BUSY: usize = 4;
/// That moment.
const MOMENT: Duration = Duration::from_micros(100);
/// Batches beyond which nobody is waited for.
const GATHERED: usize = 64;

/// A batch and whom to tell.
struct Job {
    batch: Batch,
    on_done: OnDone,
}

/// Commits batches on a thread of its own, in the order of submission. Dropping it commits
/// what is queued, then ends.
#[derive(Debug)]
pub struct Committer {
    /// `None` only while dropping.
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread. Whoever submits bounds how much waits.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system gives no thread.
    pub fn start(store: Arc<dyn QueueStore>) -> Result<Committer, StoreError> {
        let (queue, jobs) = channel();
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || run(&*store, &jobs))
            .map_err(|e| StoreError::io("starting the committer", e))?;
        Ok(Committer { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a batch; does not wait.
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
    let mut last = 0;
    while let Ok(first) = jobs.recv() {
        let mut waiting = vec![first];
        waiting.extend(jobs.try_iter().take(GROUP_MAX - 1));
        while last >= BUSY
            && waiting.len() < GATHERED
            && let Ok(job) = jobs.recv_timeout(MOMENT)
        {
            waiting.push(job);
        }
        last = waiting.len();
        let (group, callbacks): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|job| (job.batch, job.on_done)).unzip();
        for (on_done, outcome) in callbacks.into_iter().zip(store.commit(group)) {
            on_done(outcome);
        }
    }
}
