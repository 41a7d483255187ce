//! The results of a study, for people and for programs.
//!
//! ```text
//!  Study, Planned, Measured, StudyRow, Verdict, Machine ─▶ StudyReport ─▶ html()      one page with everything
//!                                                             ├▶ pictures()  SVG and PNG
//!                                                             ├▶ json()      every number
//!                                                             ├▶ text()      a short table
//!                                                             ├▶ markdown()  the printed values
//!                                                             └▶ write()     all of them as files
//! ```
//!
//! This crate neither measures nor judges: `study` and the runner do. Names, titles and notes are
//! escaped. The size of a page has a limit for any number of runs, and the page states what it omits.

mod closeness;
mod figures;
mod floors;
mod groups;
mod html;
mod hypotheses;
mod machine;
mod markdown;
mod number;
mod outside;
mod score;
mod side_by_side;
mod summary;
mod text;
mod view;
mod write;

pub use closeness::{Closeness, Comparison};
pub use figures::{Drawn, Picture};
pub use floors::floors;
pub use groups::groups;
pub use html::{MAX_EXPECTATIONS, MAX_PICTURES_BYTES, MAX_ROWS, MAX_RUN_FIGURES};
pub use hypotheses::{Hypotheses, HypothesisScore, ItemValue, RowCount, ValueCount};
pub use machine::Machine;
pub use outside::{Fitted, KindScore, Outside, ScoreDetail};
pub use score::Score;
pub use side_by_side::side_by_side;
pub use summary::Summary;
pub use write::{WriteError, Written};

use serde::Serialize;
use study::{Measured, Planned, Study, StudyRow, Verdict};

/// A study and all its results.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StudyReport<'a> {
    /// The study as its file has it.
    pub study: &'a Study,
    /// Its runs, at the study's own rates.
    #[serde(skip)]
    pub planned: &'a [Planned],
    /// The rows of its tables.
    pub rows: &'a [StudyRow],
    /// The results of its expectations.
    pub verdicts: &'a [Verdict],
    /// The results of each run; runs that have not been made are absent.
    pub measured: &'a [Measured],
    /// The machine, the command and the time of the run.
    pub machine: &'a Machine,
}

impl StudyReport<'_> {
    /// One page with all its styles and pictures within, for any browser and for paper.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Every picture, each drawn on request: the comparison with what was printed, the
    /// sweeps, and the runs over time. The last are [`MAX_RUN_FIGURES`] at most.
    pub fn pictures(&self) -> Vec<Picture> {
        figures::all(self)
    }

    /// All numbers, as one object: `study`, `rows`, `verdicts`, `measured`, `machine` and `score`.
    ///
    /// # Errors
    /// A parameter is something that JSON has not.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Scored<'a> {
            #[serde(flatten)]
            report: &'a StudyReport<'a>,
            score: ScoreDetail,
        }
        let scored = Scored { report: self, score: ScoreDetail::from_report(self) };
        let mut text = serde_json::to_string(&scored)?;
        text.push('\n');
        Ok(text)
    }

    /// The score and every printed value beside ours, as Markdown.
    pub fn markdown(&self) -> String {
        markdown::page(&Summary::from_report(self, "", Default::default()), None)
    }

    /// A line for each row, the score, and a line for each expectation that does not hold, for a
    /// terminal.
    pub fn text(&self) -> String {
        text::table(self.rows, &ScoreDetail::from_report(self), self.verdicts)
    }
}
