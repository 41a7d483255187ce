//! Errors shared by the commands: invalid arguments, and requests without the answer asked for.

use crate::admin::{Answer, AskError};
use crate::command::{FAILED, IN_DOUBT};
use crate::config::tree::Bad;
use std::path::PathBuf;

/// An argument cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::command) enum ArgumentError {
    #[error("write an entry as mta queue shows it: e42")]
    Entry,
    #[error("write routine, priority, immediate, flash or override, or off")]
    Floor,
    #[error("write a time from 1s to 8784h")]
    TimeOutOfRange,
    #[error("{}", .0.remedy)]
    Time(Bad),
    #[error("write seconds from 0.1 to 3600")]
    Interval,
}

/// Why a request to the daemon has no result.
#[derive(Debug, thiserror::Error)]
pub(in crate::command) enum RequestError {
    /// No answer was received.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The daemon's reason.
    #[error("{0}")]
    Refused(String),
    /// The same, where the socket is of interest too.
    #[error("{socket}: {why}")]
    RefusedOn { socket: PathBuf, why: String },
    /// The order may be carried out still.
    #[error("{0}")]
    InDoubt(String),
    /// The answer to another request.
    #[error("the daemon answered {0:?}")]
    Other(Box<Answer>),
}

impl RequestError {
    /// The exit code.
    pub(in crate::command) fn code(&self) -> u8 {
        match self {
            RequestError::InDoubt(_) => IN_DOUBT,
            _ => FAILED,
        }
    }
}

impl From<Answer> for RequestError {
    /// The error for an answer that is not the result.
    fn from(answer: Answer) -> RequestError {
        match answer {
            Answer::Error(why) => RequestError::Refused(why),
            Answer::InDoubt(why) => RequestError::InDoubt(why),
            other => RequestError::Other(Box::new(other)),
        }
    }
}
