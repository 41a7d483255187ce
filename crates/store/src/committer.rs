//! The one thread that commits: what is highest first, what waits beside it in one group.

use crate::error::StoreError;
use crate::order::{Changes, Order};
use crate::queue::QueueStore;
use base::Precedence;
use engine::journal::Batch;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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

/// Urgent batches pass until so long after the last one. Meanwhile a group of what is not urgent is
/// followed by a rest three times as long as the group took, so that an urgent batch finds the
/// committer and the disk free three times of four. The rest ends once something urgent comes; those
/// that wait share the next group. What it costs is in docs/performance.md.
const URGENT_PASSES: Duration = Duration::from_secs(2);
/// Groups after which the store does a piece of what it put off.
const GROUPS: u32 = 32;
/// Pieces beyond which it does not rest between two of them.
const MUCH: usize = 100;
/// Longest rest.
const REST: Duration = Duration::from_millis(15);

/// A batch and whom to tell.
struct Job {
    batch: Batch,
    on_done: OnDone,
}

#[derive(Default)]
struct Queue {
    order: Order<Job>,
    /// When something urgent came last.
    urgent: Option<Instant>,
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
        if precedence.is_urgent() {
            queue.urgent = Some(now());
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

/// The group committed before.
#[derive(Clone, Copy)]
struct Last {
    batches: usize,
    began: Instant,
    ended: Instant,
}

impl Last {
    /// Until when the committer rests after it, and what it puts off waits.
    fn rest(&self) -> Instant {
        self.ended + (3 * self.ended.saturating_duration_since(self.began)).min(REST)
    }

    /// Until when what is not urgent waits, where something urgent came last at that time.
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
    let (mut last, mut tidying) = (None, Tidying { left: 1, groups: 0, fails: false });
    loop {
        let turn = next(shared, last, tidying.is_due());
        let (batches, began) = (turn.as_ref().map_or(0, Vec::len), now());
        match turn {
            Some(group) if group.is_empty() => return,
            Some(group) => {
                tidying.left = tidying.left.max(1);
                tidying.groups += 1;
                let (group, callbacks): (Vec<_>, Vec<_>) =
                    group.into_iter().map(|job| (job.batch, job.on_done)).unzip();
                for (on_done, outcome) in callbacks.into_iter().zip(store.commit(group)) {
                    on_done(outcome);
                }
            }
            None => tidying.done(store.tidy()),
        }
        last = Some(Last { batches, began, ended: now() });
    }
}

/// When the store does what it put off: where nothing else is to be done, and after some groups.
struct Tidying {
    /// How many pieces there may be to do.
    left: usize,
    /// Groups since the last time.
    groups: u32,
    fails: bool,
}

/// How much it is time for that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tidy {
    /// There is nothing to do.
    No,
    /// Where nothing waits, and after a rest.
    Rested,
    /// Where nothing waits: much was put off.
    Idle,
    /// Whatever waits.
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
        let failed = outcome.as_ref().is_err();
        if let Err(error) = &outcome
            && !self.fails
        {
            tracing::warn!(%error, "what was put off is tried again after the next commit");
        }
        self.fails = failed;
        self.left = outcome.unwrap_or(0);
    }
}

/// The next group, after that one: empty once no more comes. None where it is time to tidy up.
fn next(shared: &Shared, last: Option<Last>, tidy: Tidy) -> Option<Vec<Job>> {
    let mut queue = shared.lock();
    while queue.order.len() == 0 && !queue.closed {
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

/// What is urgent waits for no others, to share its group.
fn has_time(queue: &Queue) -> bool {
    !queue.closed && queue.order.highest().is_some_and(|first| !first.is_urgent())
}

/// Rests after that group while something urgent may come.
fn rest<'a>(
    shared: &Shared,
    mut queue: MutexGuard<'a, Queue>,
    last: Last,
) -> MutexGuard<'a, Queue> {
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

/// Waits for others to share a group, a moment each.
fn gather<'a>(
    shared: &Shared,
    mut queue: MutexGuard<'a, Queue>,
    last: Last,
) -> MutexGuard<'a, Queue> {
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
    use crate::queue::{Entry, EntryKey};
    use base::{BodyId, Utc};
    use bytes::Bytes;
    use engine::journal::Digest;
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

    /// Says what is done, and does each when it may.
    struct Scripted {
        done: Mutex<Sender<&'static str>>,
        may: Mutex<Receiver<()>>,
        /// Pieces put off.
        pieces: Mutex<u32>,
    }

    impl Scripted {
        fn step(&self, what: &'static str) {
            self.done.lock().unwrap().send(what).unwrap();
            self.may.lock().unwrap().recv().unwrap();
        }
    }

    impl QueueStore for Scripted {
        fn commit(&self, group: Vec<Batch>) -> Vec<Result<(), StoreError>> {
            self.step("commit");
            group.iter().map(|_| Ok(())).collect()
        }
        fn tidy(&self) -> Result<usize, StoreError> {
            let mut pieces = self.pieces.lock().unwrap();
            if *pieces > 0 {
                *pieces -= 1;
                self.step("tidy");
            }
            Ok(*pieces as usize)
        }
        fn entry(&self, _: EntryKey) -> Result<Option<Bytes>, StoreError> {
            Ok(None)
        }
        fn entries(&self, _: Option<EntryKey>, _: usize) -> Result<Vec<Entry>, StoreError> {
            Ok(Vec::new())
        }
        fn bodies(&self, _: Option<BodyId>, _: usize) -> Result<Vec<BodyId>, StoreError> {
            Ok(Vec::new())
        }
        fn body_length(&self, _: BodyId) -> Result<Option<u64>, StoreError> {
            Ok(None)
        }
        fn body(&self, _: BodyId, _: u64, _: usize) -> Result<Option<Bytes>, StoreError> {
            Ok(None)
        }
        fn seen(&self, _: &Digest, _: Utc) -> Result<Option<Bytes>, StoreError> {
            Ok(None)
        }
        fn meta(&self, _: &str) -> Result<Option<Bytes>, StoreError> {
            Ok(None)
        }
    }

    fn scripted(pieces: u32) -> (Committer, Receiver<&'static str>, Sender<()>) {
        let ((done, is_done), (go, may)) = (mpsc::channel(), mpsc::channel());
        let (done, may, pieces) = (Mutex::new(done), Mutex::new(may), Mutex::new(pieces));
        let store = Arc::new(Scripted { done, may, pieces });
        (Committer::start(store).unwrap(), is_done, go)
    }

    fn submit(committer: &Committer, precedence: Precedence) {
        committer.submit(precedence, Vec::new(), Box::new(|outcome| outcome.unwrap()));
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
        // Each group is of one: of another precedence than the next.
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
        // Dropping it waits for the thread, which has to be let go on.
        let ending = thread::spawn(move || drop(committer));
        let _ = go.send(());
        while is_done.recv().is_ok() {
            let _ = go.send(());
        }
        ending.join().unwrap();
    }
}
