//! A study of a network, as data: a file says which experiments there are, which parameters they
//! leave open, what each sends and what was printed about it; this crate turns it into runs, and what
//! the runs gave into rows beside the printed figures.
//!
//! ```text
//!  study file ─▶ Study ─▶ plan ─▶ Planned ─▶ (real or virtual environment, elsewhere) ─▶ Measured
//!                                    topology, policies, mail, messages, loads           │
//!                  tables, report ◀── StudyRow, Verdict ◀── rows, judge ◀─────────────────────┘
//! ```
//!
//! Nothing is tuned here: what an experiment needs stands in its file, by name and with a reason.

mod during;
pub mod expect;
pub mod file;
pub mod measured;
pub mod plan;
mod repeat;
pub mod row;
pub mod scale;
pub mod skew;
mod tree;

pub use expect::{Verdict, judge};
pub use file::Study;
pub use measured::Measured;
pub use plan::{Library, Planned, plan};
pub use repeat::{MAX_REPEAT, Range};
pub use row::{StudyRow, rows};
pub use scale::Scale;

/// What is wrong with a study, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct Wrong {
    /// The key in the study's file, as in `experiment[2].run[0].messages[1]`, or the name of the file
    /// it names.
    pub path: String,
    /// What is wrong there.
    pub what: String,
}

impl Wrong {
    pub(crate) fn at(path: impl Into<String>, what: impl Into<String>) -> Wrong {
        Wrong { path: path.into(), what: what.into() }
    }
}
