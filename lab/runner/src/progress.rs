//! What is shown while runs are made.

use super::{Job, RunnerOptions};
use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use study::Measured;
use testbed::clock::Deadline;

/// How often the lines are drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// How far all runs together are, in milliseconds of their expected times.
#[derive(Default)]
struct Share {
    /// Of the runs that have ended.
    ended: u64,
    /// The runs in progress: when each is expected to end, and its expected time.
    running: BTreeMap<String, (Deadline, u64)>,
    is_over: bool,
}

impl Share {
    /// A run in progress counts by its time so far, and never as a whole.
    fn position(&self) -> u64 {
        let so_far = |(end, expected): &(Deadline, u64)| {
            expected.saturating_sub(millis(end.left())).min(expected / 20 * 19)
        };
        self.ended + self.running.values().map(so_far).sum::<u64>()
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Share>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Share> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the bar until all is over.
    fn follow(self, whole: &ProgressBar) {
        loop {
            let share = self.lock();
            if share.is_over {
                return;
            }
            let position = share.position();
            drop(share);
            whole.set_position(position);
            thread::park_timeout(TICK);
        }
    }
}

/// The lines: one for all runs together, one for each run in progress.
pub(super) struct Progress {
    all: MultiProgress,
    whole: ProgressBar,
    share: Shared,
    /// Moves the bar of all runs, where there is one.
    mover: Option<JoinHandle<()>>,
    /// Without a terminal: prints a line for each run that has ended.
    plain: bool,
}

/// One run's line.
pub(super) struct ProgressLine<'a> {
    of: &'a Progress,
    bar: ProgressBar,
    id: String,
    expected: u64,
}

impl Progress {
    pub(super) fn new(
        jobs: &[Job],
        kept: &[Option<Measured>],
        options: &RunnerOptions,
    ) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let all = MultiProgress::new();
        if options.quiet || !is_terminal {
            all.set_draw_target(ProgressDrawTarget::hidden());
        }
        let left = jobs.iter().zip(kept).filter(|(_, kept)| kept.is_none());
        let seconds: u64 = left.clone().map(|(job, _)| millis(job.expected)).sum();
        let whole = all.add(ProgressBar::new(seconds.max(1)));
        let style = "{elapsed_precise} {wide_bar} {percent:>3} %, {msg} about {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            whole.set_style(style);
        }
        whole.set_message(format!("{} runs,", left.count()));
        whole.enable_steady_tick(TICK);
        let share = Shared::default();
        let mover = (!whole.is_hidden()).then(|| {
            let (share, whole) = (share.clone(), whole.clone());
            thread::spawn(move || share.follow(&whole))
        });
        Progress { all, whole, share, mover, plain: !options.quiet && !is_terminal }
    }

    pub(super) fn begin(&self, job: &Job) -> ProgressLine<'_> {
        let bar = self.all.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {elapsed:>5} of about {prefix}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(format!("{:.0?}", job.expected));
        bar.enable_steady_tick(TICK);
        let id = format!("{} ({})", job.name(), job.environment.name());
        bar.set_message(id.clone());
        let expected = millis(job.expected);
        self.share.lock().running.insert(id.clone(), (Deadline::after(job.expected), expected));
        ProgressLine { of: self, bar, id, expected }
    }
}

/// All runs have ended, or one of them cannot begin.
impl Drop for Progress {
    fn drop(&mut self) {
        self.share.lock().is_over = true;
        if let Some(mover) = self.mover.take() {
            mover.thread().unpark();
            // It cannot panic but for the terminal.
            let _ = mover.join();
        }
        self.whole.finish_and_clear();
    }
}

impl ProgressLine<'_> {
    pub(super) fn set_message(&self, what: &str) {
        self.bar.set_message(base::shown::line(&format!("{}: {what}", self.id)).into_owned());
    }

    pub(super) fn end(self, result: &Result<Measured>) {
        self.bar.finish_and_clear();
        let mut share = self.of.share.lock();
        share.running.remove(&self.id);
        share.ended += self.expected;
        drop(share);
        let result_line = match result {
            Ok(measured) if measured.given_up => {
                format!("{}: given up after {:.1} s", self.id, measured.seconds)
            }
            Ok(measured) => format!("{}: {:.1} s", self.id, measured.seconds),
            Err(error) => format!("{}: {error:#}", self.id),
        };
        let shown = base::shown::text(&result_line);
        if self.of.plain {
            eprintln!("{shown}");
        } else if result.is_err() {
            let _ = self.of.all.println(shown);
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_progress_moves_the_bar_and_never_to_its_end() {
        let mut share = Share { ended: 1_000, ..Share::default() };
        let mut runs = |name: &str, left| {
            share.running.insert(name.to_owned(), (Deadline::after(left), 2_000_000));
            share.position()
        };
        let half = runs("a", Duration::from_secs(1_000));
        assert!((1_001_000..1_100_000).contains(&half), "{half}");
        assert_eq!(runs("a", Duration::ZERO), 1_901_000);
    }
}
