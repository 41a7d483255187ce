//! What is shown while runs are made.

use super::{Job, RunnerOptions};
use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;
use study::Measured;

/// How often the lines are drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// The lines: one for all runs together, one for each run in progress.
pub(super) struct Progress {
    all: MultiProgress,
    whole: ProgressBar,
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
        Progress { all, whole, plain: !options.quiet && !is_terminal }
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
        ProgressLine { of: self, bar, id, expected: millis(job.expected) }
    }

    pub(super) fn end(&self) {
        self.whole.finish_and_clear();
    }
}

impl ProgressLine<'_> {
    pub(super) fn set_message(&self, what: &str) {
        self.bar.set_message(base::shown::line(&format!("{}: {what}", self.id)).into_owned());
    }

    pub(super) fn end(self, result: &Result<Measured>) {
        self.bar.finish_and_clear();
        self.of.whole.inc(self.expected);
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
