//! Progress of a burst: a table that is updated on a terminal, else a line every 5 s.

use super::run::Run;
use crate::show;
use crate::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::rc::Rc;
use std::time::Duration;

/// Intervals of the table and of the lines.
const TABLE: Duration = Duration::from_millis(250);
const LINE: Duration = Duration::from_secs(5);

/// The display, on standard error.
#[derive(Clone)]
pub(crate) struct Live {
    /// On a terminal.
    bar: Option<ProgressBar>,
}

impl Live {
    pub(crate) fn new(is_terminal: bool) -> Live {
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Live { bar }
    }

    /// Prints a line above the table.
    pub(crate) fn print_line(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| terminal::report_error(what)),
            None => terminal::report_error(what),
        }
    }

    /// Shows the progress until dropped.
    pub(crate) async fn show(self, run: Rc<Run>, elapsed: impl Fn() -> Duration) {
        let mut interval = tokio::time::interval(self.bar.as_ref().map_or(LINE, |_| TABLE));
        // The first tick is immediate.
        interval.tick().await;
        loop {
            interval.tick().await;
            match &self.bar {
                Some(bar) => bar.set_message(table(&run, elapsed())),
                None => terminal::print_to_stderr(&line(&run, elapsed())),
            }
        }
    }

    /// Removes the table.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// All precedences in one line.
fn line(run: &Run, elapsed: Duration) -> String {
    let tally = run.tally.borrow();
    let sums = tally.live.values().fold([0; 5], |mut sums, running| {
        sums.iter_mut().zip(running.counts).for_each(|(sum, count)| *sum += count);
        sums
    });
    let [planned, submitted, accepted, in_transfer, delivered] = sums;
    format!(
        "{:.0} s: {planned} planned, {submitted} submitted, {accepted} accepted, {in_transfer} in \
         transfer, {delivered} delivered",
        elapsed.as_secs_f64()
    )
}

fn table(run: &Run, elapsed: Duration) -> String {
    let tally = run.tally.borrow();
    let header = [
        "precedence",
        "planned",
        "submitted",
        "accepted",
        "in transfer",
        "delivered",
        "p50 ms",
        "p95 ms",
        "max ms",
    ];
    let mut table = show::table(&header, &[1, 2, 3, 4, 5, 6, 7, 8]);
    for (precedence, running) in tally.live.iter().rev() {
        let times = running.times.quantiles();
        let mut cells = vec![precedence.to_string()];
        cells.extend(running.counts.map(|number| number.to_string()));
        let known = times.count > 0;
        let ms = [times.p50, times.p95, times.max].map(|ms| show::ms(known.then_some(ms)));
        cells.extend(ms);
        table.add_row(cells);
    }
    format!("{table}\n{:.0} s; Ctrl-C stops submitting", elapsed.as_secs_f64())
}
