//! A study of a network, as data. A file describes the experiments: the parameters that they leave open,
//! what each sends, and the printed figures. This crate plans the runs, and puts their results into rows
//! beside the printed figures.
//!
//! ```text
//!  study file ─▶ Study ─▶ plan ─▶ Planned ─▶ (testbed or simulation, elsewhere)      ─▶ Measured
//!                                    topology, policies, mail, messages, loads           │
//!                  tables, report ◀── StudyRow, Verdict ◀── rows, judge ◀─────────────────────┘
//! ```
//!
//! This crate tunes nothing: the file of a study has every setting, by name and with a reason.

pub mod bound;
mod during;
pub mod expect;
pub mod file;
pub mod hypothesis;
pub mod measured;
pub mod plan;
pub mod printed;
mod repeat;
pub mod row;
pub mod scale;
pub mod skew;
mod tcp;
pub mod tcp_factor;

pub use expect::{Verdict, judge};
pub use file::Study;
pub use hypothesis::{Hypothesis, Rival, plan_rival};
pub use measured::Measured;
pub use plan::{Library, Planned, plan};
pub use repeat::{MAX_REPEAT, Range};
pub use row::{Fit, StudyRow, rows};
pub use scale::Scale;
pub use tcp::PlannedTcp;

/// A fault of a study, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct StudyError {
    /// The key in the study's file, as in `experiment[2].run[0].messages[1]`, or the name of the file
    /// it names.
    pub path: String,
    /// The fault, as a sentence.
    pub what: String,
}

impl StudyError {
    pub(crate) fn at(path: impl Into<String>, what: impl Into<String>) -> StudyError {
        StudyError { path: path.into(), what: what.into() }
    }
}
