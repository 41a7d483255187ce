//! A thread pool for work that may wait for the disk, highest precedence first.

use base::{Precedence, PrecedenceQueue};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use store::StoreError;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Waiting {
    jobs: PrecedenceQueue<Job>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Condvar,
    more_urgent: Condvar,
}

/// Threads with a common queue. Dropping the pool waits for running jobs and drops queued ones.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` once the pool is closed. A thread for urgent work takes urgent jobs
    /// only.
    fn next(&self, urgent: bool) -> Option<Job> {
        let mut waiting = self.lock();
        let more = if urgent { &self.more_urgent } else { &self.more };
        while !waiting.closed {
            let job = match waiting.jobs.highest() {
                Some(highest) if urgent && highest.is_urgent() => waiting.jobs.pop_highest(),
                Some(_) if !urgent => waiting.jobs.pop(),
                _ => None,
            };
            if job.is_some() {
                return job;
            }
            waiting = more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl Pool {
    /// Starts `all` threads, and `urgent` more for urgent work only.
    pub(super) fn start(name: &str, all: usize, urgent: usize) -> Result<Pool, StoreError> {
        let mut pool = Pool { shared: Arc::default(), threads: Vec::new() };
        for number in 0..all + urgent {
            let shared = Arc::clone(&pool.shared);
            let work = move || {
                while let Some(job) = shared.next(number >= all) {
                    job();
                }
            };
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            let doing = "starting threads for the disk";
            pool.threads.push(thread.map_err(|e| StoreError::Io { doing, source: Arc::new(e) })?);
        }
        Ok(pool)
    }

    /// Queues a job.
    pub(super) fn submit(&self, level: Precedence, job: impl FnOnce() + Send + 'static) {
        self.shared.lock().jobs.push(level, Box::new(job));
        self.shared.more.notify_one();
        if level.is_urgent() {
            self.shared.more_urgent.notify_one();
        }
    }
}

impl Pool {
    /// Starts no further job.
    pub(super) fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.more.notify_all();
        self.shared.more_urgent.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // the hook has reported its panic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_higher_job_goes_first_and_an_urgent_one_finds_a_thread() {
        let pool = Pool::start("test", 1, 1).unwrap();
        let (go, wait) = channel::<()>();
        let (started, has_started) = channel();
        let (done, order) = channel();
        pool.submit(Precedence::Routine, move || {
            started.send(()).unwrap();
            wait.recv().unwrap();
        });
        has_started.recv().unwrap();
        for (n, level) in [(1, Precedence::Deferred), (2, Precedence::Priority)] {
            let done = done.clone();
            pool.submit(level, move || done.send(n).unwrap());
        }
        pool.submit(Precedence::Flash, move || done.send(3).unwrap());
        assert_eq!(order.recv().unwrap(), 3, "while the other thread is busy");
        go.send(()).unwrap();
        assert_eq!([order.recv().unwrap(), order.recv().unwrap()], [2, 1]);
        drop(pool);
        assert!(order.try_recv().is_err());
    }
}
