//! The one thread that commits: what is highest first, what waits beside it in one group.

use crate::error::StoreError;
use crate::order::{Changes, Order};
use crate::queue::QueueStore;
use base::Precedence;
use engine::journal::Batch;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Called once with the outcome of a batch, on the committer's thread (or on the submitter's if
/// the committer is gone). Must neither block nor panic: every commit waits for it.
pub type OnDone = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// After a group of so many, others are likely to be on their way: a moment is waited for each, so
/// that they share a transaction and a sync. Not in front of one above Priority, and no longer once
/// a higher one comes.
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

#[derive(Default)]
struct Queue {
    order: Order<Job>,
    /// The thread waits for a batch, or for another one.
    waits: bool,
    /// No more comes.
    closed: bool,
    /// The thread ended.
    gone: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

/// Commits batches on a thread of its own: the highest precedence first, in groups of one
/// precedence, batches that change the same thing in the order of submission. Dropping it commits
/// what is queued, then ends.
pub struct Committer {
    store: Arc<dyn QueueStore>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer").field("waiting", &self.shared.lock().order.len()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Committer {
    /// Starts the thread. Whoever submits bounds how much waits.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system gives no thread.
    pub fn start(store: Arc<dyn QueueStore>) -> Result<Committer, StoreError> {
        let shared = Arc::new(Shared::default());
        let ours = (Arc::clone(&store), Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || run(&*ours.0, &ours.1))
            .map_err(|e| StoreError::io("starting the committer", e))?;
        Ok(Committer { store, shared, thread: Some(thread) })
    }

    /// Queues a batch with the highest precedence it is for; does not wait.
    pub fn submit(&self, precedence: Precedence, batch: Batch, on_done: OnDone) {
        let (octets, changes) = (self.store.octets(&batch), Changes::of(&batch));
        let mut queue = self.shared.lock();
        if queue.gone {
            drop(queue);
            return on_done(Err(StoreError::Closed));
        }
        queue.order.push(precedence, changes, octets, Job { batch, on_done });
        if std::mem::take(&mut queue.waits) {
            self.shared.more.notify_one();
        }
    }

    /// Commits what is queued, then ends the thread.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the committer panicked");
        }
    }
}

/// Answers what nobody commits any more, should the thread panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.gone = true;
        let left = std::mem::take(&mut queue.order);
        drop(queue);
        for job in left.into_jobs() {
            (job.on_done)(Err(StoreError::Closed));
        }
    }
}

fn run(store: &dyn QueueStore, shared: &Shared) {
    let _ending = Ending(shared);
    let mut last = 0;
    loop {
        let group = next(shared, last);
        if group.is_empty() {
            return;
        }
        last = group.len();
        let (group, callbacks): (Vec<_>, Vec<_>) =
            group.into_iter().map(|job| (job.batch, job.on_done)).unzip();
        for (on_done, outcome) in callbacks.into_iter().zip(store.commit(group)) {
            on_done(outcome);
        }
    }
}

/// The next group, after one of so many; nothing once no more comes.
fn next(shared: &Shared, last: usize) -> Vec<Job> {
    let mut queue = shared.lock();
    while queue.order.len() == 0 && !queue.closed {
        queue.waits = true;
        queue = shared.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    let first = queue.order.highest();
    while last >= BUSY
        && queue.order.len() < GATHERED
        && !queue.closed
        && queue.order.highest() == first
        // What is urgent waits for no others, to share its group.
        && first.is_some_and(|first| !first.is_urgent())
    {
        let before = queue.order.len();
        queue.waits = true;
        let waited = shared.more.wait_timeout(queue, MOMENT);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        if queue.order.len() == before {
            break;
        }
    }
    queue.waits = false;
    queue.order.take()
}
