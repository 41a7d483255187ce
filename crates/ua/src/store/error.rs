//! What can go wrong on a P7 association, as types.

use crate::connection::{Broken, NotConnected};
use osi::api::Problem;
use p7::MsError;

/// Why an operation on a mailbox has no result.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no TCP connection.
    #[error("{0}")]
    NotConnected(NotConnected),
    /// The store refused the bind.
    #[error("the message store refused the bind: {0}")]
    Refused(BindRefused),
    /// The store answered with an error of the operation. The association continues.
    #[error("the message store refused it: {0}")]
    Operation(MsError),
    /// The store rejected the operation before it looked at it (X.229 clause 9). The association continues.
    #[error("the message store rejected the operation: {}", crate::connection::problem_name(*.0))]
    Rejected(Problem),
    /// The association ended before an answer: what was asked for may have been done.
    #[error("the association ended: {0}")]
    Lost(String),
    /// [`crate::Interrupted`] was set.
    #[error("interrupted")]
    Interrupted,
    /// The store answered what it must not.
    #[error("the message store answered wrongly: {0}")]
    Answer(BadAnswer),
    /// The content that was to be sent cannot be read.
    #[error("the content cannot be read: {0}")]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The content that arrived cannot be written.
    #[error("the content cannot be written: {0}")]
    Write(std::io::Error),
    /// The capture cannot be written.
    #[error("cannot write the capture: {0}")]
    Capture(std::io::Error),
}

/// Why a store refuses a bind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindRefused {
    /// Name or password: a retry does not help.
    #[error(
        "authentication error: is the user known there, does it have a mailbox, and is the password right?"
    )]
    Credentials,
    /// It cannot serve the user now.
    #[error(
        "busy: it has no place for another association, cannot serve this user now (bound at another node of the site, \
         or its database is away), or too many binds in this name failed lately; its log names which; try again"
    )]
    Busy,
    /// It does not accept the security context.
    #[error("it does not accept the security context")]
    SecurityContext,
    /// Another reason, in words.
    #[error("{0}")]
    Other(String),
}

/// What a store answered that it must not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// What it sent for this operation cannot be read.
    #[error("{operation}: {error}")]
    Malformed {
        /// The operation, or the bind.
        operation: &'static str,
        /// The fault, with its field.
        error: base::ber::Error,
    },
    /// It answers an invocation that we did not make.
    #[error("an answer to invocation {0}, which nobody made")]
    InvokeId(i64),
    /// It sent what has no place here, by the name of the indication.
    #[error("{0} is out of place")]
    OutOfPlace(&'static str),
    /// An APDU was invalid, by the stack.
    #[error("{0}")]
    Apdu(String),
    /// It sends more than is taken.
    #[error("more than {limit} octets of {operation}")]
    TooLong {
        /// The operation.
        operation: &'static str,
        /// What is taken, octets.
        limit: u64,
    },
    /// It sends alert after alert, faster than they are taken.
    #[error("more than {0} alerts that were not taken")]
    TooManyAlerts(usize),
    /// It fetched another entry than the one asked for, or none.
    #[error("entry {asked} was asked for, not {got:?}")]
    OtherEntry {
        /// The sequence number asked for.
        asked: u32,
        /// The one that came, if any.
        got: Option<u32>,
    },
    /// Sequence numbers of a list do not ascend, or the next part is not after this one.
    #[error("the list is not in ascending order after {0}")]
    NotAscending(u32),
}

impl StoreError {
    /// Whether the association cannot be used any longer: it is over, or the two ends do not agree on what comes next.
    /// What remains is to bind again.
    pub fn is_final(&self) -> bool {
        match self {
            StoreError::Operation(_) | StoreError::Rejected(_) | StoreError::Write(_) => false,
            StoreError::NotConnected(_)
            | StoreError::Refused(_)
            | StoreError::Lost(_)
            | StoreError::Interrupted
            | StoreError::Answer(_)
            | StoreError::Source(_)
            | StoreError::Capture(_) => true,
        }
    }

    pub(super) fn malformed(operation: &'static str) -> impl Fn(base::ber::Error) -> StoreError {
        move |error| BadAnswer::Malformed { operation, error }.into()
    }
}

// The texts above have their causes in them: as sources too, whoever prints the chain would print them twice.
impl From<NotConnected> for StoreError {
    fn from(why: NotConnected) -> StoreError {
        StoreError::NotConnected(why)
    }
}

impl From<BindRefused> for StoreError {
    fn from(why: BindRefused) -> StoreError {
        StoreError::Refused(why)
    }
}

impl From<BadAnswer> for StoreError {
    fn from(why: BadAnswer) -> StoreError {
        StoreError::Answer(why)
    }
}

impl From<Broken> for StoreError {
    fn from(broken: Broken) -> StoreError {
        match broken {
            Broken::NotConnected(why) => StoreError::NotConnected(why),
            Broken::Ended(why) => StoreError::Lost(why),
            Broken::Interrupted => StoreError::Interrupted,
            Broken::Capture(error) => StoreError::Capture(error),
        }
    }
}
