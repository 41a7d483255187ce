//! The event logs of a burst, followed while it runs.

use super::Run;
use crate::burst::event::MessageEvent;
use crate::burst::follow::{Counts, Follower};
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval of reading the event logs.
const LOOK: Duration = Duration::from_millis(20);
/// Bound of reads whose events wait to be counted; beyond it the follower waits.
const LOOKS_WAITING: usize = 64;

/// The event logs, read in their own thread so that no submission waits for a disk.
pub(super) struct Logs {
    end: Arc<AtomicBool>,
    collector: Option<tokio::task::JoinHandle<()>>,
}

/// The result of one read of all logs.
struct Look {
    events: Vec<MessageEvent>,
    counts: Counts,
    trouble: Option<String>,
}

impl Logs {
    pub(super) fn follow(run: &Rc<Run>) -> Result<Logs> {
        let end = Arc::new(AtomicBool::new(false));
        let paths: &[PathBuf] = &run.setup.plan.events;
        if paths.is_empty() {
            return Ok(Logs { end, collector: None });
        }
        let start = |path: &PathBuf| {
            Follower::start(path).with_context(|| format!("the event log {}", path.display()))
        };
        let followers = paths.iter().map(start).collect::<Result<Vec<_>>>()?;
        let (give, mut take) = mpsc::channel(LOOKS_WAITING);
        let flag = Arc::clone(&end);
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || look(followers, &flag, &give))
            .context("cannot start the thread that reads the event logs")?;
        let run = Rc::clone(run);
        let collector = tokio::task::spawn_local(async move {
            while let Some(Look { events, counts, trouble }) = take.recv().await {
                let mut tally = run.tally.borrow_mut();
                events.into_iter().for_each(|event| tally.event(event));
                drop(tally);
                run.counts.set(counts);
                run.changed.notify_waiters();
                if let Some(trouble) = trouble {
                    run.print_line(&trouble);
                }
            }
        });
        Ok(Logs { end, collector: Some(collector) })
    }

    /// Reads the logs for the last time.
    pub(super) async fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(collector) = self.collector {
            let _ = collector.await;
        }
    }
}

fn look(mut followers: Vec<Follower>, end: &AtomicBool, give: &mpsc::Sender<Look>) {
    let mut failing = false;
    loop {
        let is_last = end.load(Ordering::Relaxed);
        let (mut events, mut counts, mut trouble) = (Vec::new(), Counts::default(), None);
        for follower in &mut followers {
            if let Err(error) = follower.poll(|event| events.push(event)) {
                trouble = Some(format!("cannot read {}: {error}", follower.path().display()));
            }
            counts.events += follower.counts.events;
            counts.skipped += follower.counts.skipped;
            counts.gaps += follower.counts.gaps;
            counts.lost += follower.counts.lost;
        }
        // Reported once, because it may persist.
        let is_new = trouble.is_some() && !failing;
        failing = trouble.is_some();
        let look = Look { events, counts, trouble: trouble.filter(|_| is_new) };
        if give.blocking_send(look).is_err() || is_last {
            return;
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that grows gives no event to wait for")]
fn pause() {
    std::thread::sleep(LOOK);
}
