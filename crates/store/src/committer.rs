//! The committer thread: commits batches in groups, highest precedence first.

use crate::error::StoreError;
use crate::order::{Changes, Order};
use crate::queue::{BatchId, Committed, QueueStore};
use base::Precedence;
use engine::journal::Batch;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Called once with the end of a batch, on the committer's thread (or on the submitter's if the
/// committer has ended). Must neither block nor panic: every commit waits for it.
pub type OnDone = Box<dyn FnOnce(Committed) + Send>;

/// How often the end of a batch is asked for while it is unknown ([`QueueStore::asks_for`]).
const ASK_EVERY: Duration = Duration::from_millis(100);

/// After a group of this size more batches are likely to follow: the committer waits [`MOMENT`]
/// for each, so that they share a transaction and a sync. It does not wait before a batch above
/// Priority, and stops waiting when a higher one arrives.
const BUSY: usize = 4;
/// The wait per batch.
const MOMENT: Duration = Duration::from_micros(100);
/// Most batches to gather.
const GATHERED: usize = 64;

/// How long the committer gives priority to urgent batches after the last one. Meanwhile each
/// group that is not urgent is followed by a rest three times as long as the group took, so that
/// an urgent batch finds the committer and the disk free three quarters of the time. An urgent
/// batch ends the rest; batches that wait share the next group. docs/performance.md has the cost.
const URGENT_PASSES: Duration = Duration::from_secs(2);
/// Groups after which the store does one piece of its deferred work.
const GROUPS: u32 = 32;
/// Deferred pieces beyond which it does not rest between two of them.
const MUCH: usize = 100;
/// Longest rest.
const REST: Duration = Duration::from_millis(15);

/// A batch and its callback.
struct Job {
    id: BatchId,
    batch: Batch,
    on_done: OnDone,
}

#[derive(Default)]
struct CommitQueue {
    order: Order<Job>,
    /// The number of the last batch.
    last: u64,
    /// When the last urgent batch arrived.
    urgent: Option<Instant>,
    /// The thread waits for a first or further batch.
    waits: bool,
    /// Deferred work was asked for.
    tidies: bool,
    /// No batch follows.
    closed: bool,
    /// The thread has ended.
    gone: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<CommitQueue>,
    more: Condvar,
}

/// Commits batches on its own thread: highest precedence first, in groups of one precedence;
/// batches that change the same data in the order of submission. Dropping it commits the queue,
/// then ends the thread.
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
    fn lock(&self) -> MutexGuard<'_, CommitQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Committer {
    /// Starts the thread. The submitters limit the queue.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system cannot start a thread.
    pub fn start(store: Arc<dyn QueueStore>) -> Result<Committer, StoreError> {
        let shared = Arc::new(Shared::default());
        let ours = (Arc::clone(&store), Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || run(&*ours.0, &ours.1))
            .map_err(|e| StoreError::io("starting the committer", e))?;
        Ok(Committer { store, shared, thread: Some(thread) })
    }

    /// Has the store do its deferred work once nothing waits, without a commit before.
    pub fn tidy(&self) {
        let mut queue = self.shared.lock();
        queue.tidies = true;
        if std::mem::take(&mut queue.waits) {
            self.shared.more.notify_one();
        }
    }

    /// Queues a batch under the highest precedence it serves; does not wait.
    pub fn submit(&self, precedence: Precedence, batch: Batch, on_done: OnDone) {
        let (octets, changes) = (self.store.octets(&batch), Changes::from_batch(&batch));
        let mut queue = self.shared.lock();
        if queue.gone {
            drop(queue);
            return on_done(Committed::NotDone(StoreError::Closed));
        }
        queue.last += 1;
        let id = BatchId(queue.last);
        if precedence.is_urgent() {
            queue.urgent = Some(now());
        }
        queue.order.push(precedence, changes, octets, Job { id, batch, on_done });
        if std::mem::take(&mut queue.waits) {
            self.shared.more.notify_one();
        }
    }

    /// The number of the batch that was submitted last.
    #[must_use]
    pub fn last(&self) -> BatchId {
        BatchId(self.shared.lock().last)
    }

    /// Commits the queue, then ends the thread.
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

/// Answers the batches that remain if the thread panics.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.gone = true;
        let left = std::mem::take(&mut queue.order);
        drop(queue);
        for job in left.into_jobs() {
            (job.on_done)(Committed::NotDone(StoreError::Closed));
        }
    }
}

/// The previous group.
#[derive(Clone, Copy)]
struct Last {
    batches: usize,
    began: Instant,
    ended: Instant,
}

impl Last {
    /// The end of the rest after it, if deferred work waits too.
    fn rest(&self) -> Instant {
        self.ended + (3 * self.ended.saturating_duration_since(self.began)).min(REST)
    }

    /// The end of the rest for work that is not urgent, given the time of the last urgent batch.
    fn rest_for(&self, urgent: Option<Instant>) -> Option<Instant> {
        let passes = |at| self.ended.saturating_duration_since(at) < URGENT_PASSES;
        urgent.is_some_and(passes).then(|| self.rest())
    }
}

#[expect(clippy::disallowed_methods, reason = "an edge: it decides how long others may gather")]
fn now() -> Instant {
    Instant::now()
}

fn run(store: &dyn QueueStore, shared: &Shared) {
    let _ending = Ending(shared);
    let (mut last, mut tidying) = (None, Tidying { left: 1, groups: 0, warned: None });
    loop {
        let turn = next(shared, last, tidying.is_due());
        let (batches, began) = (turn.as_ref().map_or(0, Vec::len), now());
        match turn {
            Some(group) if group.is_empty() => return,
            Some(group) => {
                tidying.left = tidying.left.max(1);
                tidying.groups += 1;
                let (group, callbacks): (Vec<_>, Vec<_>) = group
                    .into_iter()
                    .map(|job| ((job.id, job.batch), (job.id, job.on_done)))
                    .unzip();
                for ((id, on_done), ended) in callbacks.into_iter().zip(store.commit(group)) {
                    on_done(known_end(store, shared, id, ended));
                }
            }
            None => tidying.done(store.tidy()),
        }
        last = Some(Last { batches, began, ended: now() });
    }
}

/// Asks for the end of a batch until it is known, the store is stopped, or time is up.
fn known_end(store: &dyn QueueStore, shared: &Shared, id: BatchId, ended: Committed) -> Committed {
    let (began, mut ended) = (now(), ended);
    while let Committed::Unknown(error) = &ended
        && !error.is_final()
        && now().saturating_duration_since(began) < store.asks_for()
    {
        let queue = shared.lock();
        if queue.closed {
            break;
        }
        drop(shared.more.wait_timeout(queue, ASK_EVERY));
        ended = store.outcome(id);
    }
    ended
}

/// Failures of deferred work are logged at most this often.
const WARN_EVERY: Duration = Duration::from_secs(600);

/// When the store does its deferred work: when idle, and after a number of groups.
struct Tidying {
    /// Pieces left.
    left: usize,
    /// Groups since the last piece.
    groups: u32,
    /// When a failure was last logged: on a full disk success and failure alternate.
    warned: Option<Instant>,
}

/// Whether it is time for deferred work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tidy {
    /// Nothing is deferred.
    No,
    /// When the queue is empty, after a rest.
    Rested,
    /// When the queue is empty: much is deferred.
    Idle,
    /// At once, whatever waits.
    Now,
}

impl Tidying {
    fn is_due(&self) -> Tidy {
        match self.left {
            0 => Tidy::No,
            _ if self.groups >= GROUPS => Tidy::Now,
            MUCH.. => Tidy::Idle,
            _ => Tidy::Rested,
        }
    }

    fn done(&mut self, outcome: Result<usize, StoreError>) {
        self.groups = 0;
        let is_due = |at: Instant| now().saturating_duration_since(at) >= WARN_EVERY;
        if let Err(error) = &outcome
            && self.warned.is_none_or(is_due)
        {
            tracing::warn!(%error, "what was put off is tried again after the next commit");
            self.warned = Some(now());
        }
        self.left = outcome.unwrap_or(0);
    }
}

/// The next group after `last`: empty once none follows; `None` if deferred work is due.
fn next(shared: &Shared, last: Option<Last>, tidy: Tidy) -> Option<Vec<Job>> {
    let mut queue = shared.lock();
    while queue.order.len() == 0 && !queue.closed {
        if std::mem::take(&mut queue.tidies) {
            return None;
        }
        let rest = last.map_or(Duration::ZERO, |last| last.rest().saturating_duration_since(now()));
        queue.waits = true;
        queue = match tidy {
            Tidy::No => shared.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
            Tidy::Idle | Tidy::Now => return None,
            Tidy::Rested if rest.is_zero() => return None,
            Tidy::Rested => {
                shared.more.wait_timeout(queue, rest).unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
    if tidy == Tidy::Now && has_time(&queue) {
        return None;
    }
    if let Some(last) = last {
        queue = rest(shared, queue, last);
        queue = gather(shared, queue, last);
    }
    queue.waits = false;
    Some(queue.order.take())
}

/// An urgent batch does not wait for others to share its group.
fn has_time(queue: &CommitQueue) -> bool {
    !queue.closed && queue.order.highest().is_some_and(|first| !first.is_urgent())
}

/// Rests after that group while urgent batches may arrive.
fn rest<'a>(
    shared: &Shared,
    mut queue: MutexGuard<'a, CommitQueue>,
    last: Last,
) -> MutexGuard<'a, CommitQueue> {
    while has_time(&queue)
        && let Some(until) = last.rest_for(queue.urgent)
        && let left = until.saturating_duration_since(now())
        && !left.is_zero()
    {
        queue.waits = true;
        queue = shared.more.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    queue
}

/// Waits [`MOMENT`] for each further batch to share a group.
fn gather<'a>(
    shared: &Shared,
    mut queue: MutexGuard<'a, CommitQueue>,
    last: Last,
) -> MutexGuard<'a, CommitQueue> {
    let first = queue.order.highest();
    while last.batches >= BUSY
        && queue.order.len() < GATHERED
        && has_time(&queue)
        && queue.order.highest() == first
    {
        let before = queue.order.len();
        queue.waits = true;
        let waited = shared.more.wait_timeout(queue, MOMENT);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        if queue.order.len() == before {
            break;
        }
    }
    queue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelStore;
    use std::sync::mpsc::{self, Receiver, Sender};

    #[test]
    fn what_is_not_urgent_rests_while_something_urgent_passes() {
        let began = now();
        let last = |took| Last { batches: 1, began, ended: began + Duration::from_micros(took) };
        let rests = |last: Last, urgent| last.rest_for(urgent).map(|until| until - last.ended);
        assert_eq!(rests(last(2_000), None), None);
        assert_eq!(rests(last(2_000), Some(began)), Some(Duration::from_millis(6)));
        assert_eq!(rests(last(900_000), Some(began)), Some(REST), "a slow disk stops nobody");
        assert_eq!(rests(last(2_100_000), Some(began)), None, "it passed long ago");
    }

    /// Records its calls, and does each when permitted. It stores nothing.
    #[derive(Debug)]
    struct Scripted {
        done: Mutex<Sender<&'static str>>,
        may: Mutex<Receiver<()>>,
        /// Deferred pieces.
        pieces: Mutex<u32>,
        /// How often the end of a batch is unknown.
        unknown: Mutex<u32>,
        model: ModelStore,
    }

    impl Scripted {
        fn step(&self, what: &'static str) {
            self.done.lock().unwrap().send(what).unwrap();
            self.may.lock().unwrap().recv().unwrap();
        }

        fn end(&self) -> Committed {
            let mut unknown = self.unknown.lock().unwrap();
            match unknown.checked_sub(1) {
                Some(left) => {
                    *unknown = left;
                    Committed::Unknown(StoreError::Undone)
                }
                None => Committed::Durable,
            }
        }
    }

    impl QueueStore for Scripted {
        fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
            self.step("commit");
            group.iter().map(|_| self.end()).collect()
        }
        fn outcome(&self, _: BatchId) -> Committed {
            self.step("outcome");
            self.end()
        }
        fn tidy(&self) -> Result<usize, StoreError> {
            let mut pieces = self.pieces.lock().unwrap();
            if *pieces > 0 {
                *pieces -= 1;
                self.step("tidy");
            }
            Ok(*pieces as usize)
        }
        crate::delegate_reads!(model);
    }

    fn scripted(pieces: u32) -> (Committer, Receiver<&'static str>, Sender<()>) {
        scripted_with(pieces, 0)
    }

    fn scripted_with(pieces: u32, unknown: u32) -> (Committer, Receiver<&'static str>, Sender<()>) {
        let ((done, is_done), (go, may)) = (mpsc::channel(), mpsc::channel());
        let (done, may, pieces) = (Mutex::new(done), Mutex::new(may), Mutex::new(pieces));
        let (unknown, model) = (Mutex::new(unknown), ModelStore::default());
        let store = Arc::new(Scripted { done, may, pieces, unknown, model });
        (Committer::start(store).unwrap(), is_done, go)
    }

    fn submit(committer: &Committer, precedence: Precedence) {
        committer.submit(precedence, Vec::new(), Box::new(|ended| ended.into_result().unwrap()));
    }

    #[test]
    fn nobody_is_answered_before_the_end_of_a_batch_is_known() {
        let (committer, is_done, go) = scripted_with(0, 3);
        submit(&committer, Precedence::Routine);
        for expected in ["commit", "outcome", "outcome", "outcome"] {
            assert_eq!(is_done.recv().unwrap(), expected);
            go.send(()).unwrap();
        }
        drop(committer);
        assert!(is_done.recv().is_err());
    }

    #[test]
    fn what_was_put_off_is_done_where_nothing_waits_and_commits_pass() {
        let (committer, is_done, go) = scripted(2);
        assert_eq!(is_done.recv().unwrap(), "tidy", "left by an earlier run");
        submit(&committer, Precedence::Routine);
        go.send(()).unwrap();
        assert_eq!(is_done.recv().unwrap(), "commit");
        go.send(()).unwrap();
        assert_eq!(is_done.recv().unwrap(), "tidy");
        go.send(()).unwrap();
        drop(committer);
        assert!(is_done.recv().is_err());
    }

    #[test]
    fn what_was_put_off_is_done_at_last_though_others_never_end() {
        let (committer, is_done, go) = scripted(1_000);
        assert_eq!(is_done.recv().unwrap(), "tidy");
        let mut commits = 0;
        // Each group has one batch: the next has another precedence.
        for n in 0..200 {
            let levels = [Precedence::Routine, Precedence::Priority];
            submit(&committer, levels[n % 2]);
        }
        go.send(()).unwrap();
        while is_done.recv().unwrap() == "commit" {
            commits += 1;
            submit(&committer, Precedence::Routine);
            submit(&committer, Precedence::Priority);
            go.send(()).unwrap();
        }
        assert_eq!(commits, GROUPS);
        // Dropping waits for the thread, which has to be released.
        let ending = thread::spawn(move || drop(committer));
        let _ = go.send(());
        while is_done.recv().is_ok() {
            let _ = go.send(());
        }
        ending.join().unwrap();
    }
}
