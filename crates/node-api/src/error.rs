//! Errors of more than one machine.

use bytes::Bytes;
use engine::{Record, RecordError};
use thiserror::Error;

/// The edge could not do what it was asked for. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, Error, serde::Serialize, serde::Deserialize)]
#[error("{0}")]
pub struct EdgeError(pub String);

impl From<String> for EdgeError {
    fn from(what: String) -> EdgeError {
        EdgeError(what)
    }
}

/// The edge could not read what it was asked for. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, Error, serde::Serialize, serde::Deserialize)]
pub enum ReadError {
    /// The disk changed or lost it: another attempt will not help.
    #[error("{0}")]
    Damaged(String),
    /// Another attempt may help.
    #[error(transparent)]
    Failed(#[from] EdgeError),
}

/// A batch is not durable: nothing of it was made. An edge that does not know gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error, serde::Serialize, serde::Deserialize)]
pub enum CommitError {
    /// A key that had to be absent is remembered: the same was accepted meanwhile by another MTA
    /// that shares the store.
    #[error("the same was accepted meanwhile by another MTA with this store")]
    Conflict,
    /// A queue record is longer than the store takes, now or later.
    #[error("a queue record is longer than the {0} octets that the store takes")]
    TooLong(usize),
    /// Another node of the site owns what it changes: it goes on there.
    #[error("another node of this site has taken it over")]
    Fenced,
    /// Another node of the site has changed a value that it replaces. What that is now was handed in before.
    #[error("another node of this site has changed the same at the same time")]
    Changed,
    /// The store could not do it.
    #[error(transparent)]
    NotDone(#[from] EdgeError),
}

impl From<CommitError> for EdgeError {
    fn from(error: CommitError) -> EdgeError {
        match error {
            CommitError::Conflict
            | CommitError::TooLong(_)
            | CommitError::Fenced
            | CommitError::Changed => EdgeError(error.to_string()),
            CommitError::NotDone(error) => error,
        }
    }
}

/// A password is not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error, serde::Serialize, serde::Deserialize)]
pub enum PasswordProblem {
    /// The old one is wrong: old-credentials-incorrectly-specified.
    #[error("the old password is wrong")]
    Old,
    /// The new one cannot be used: new-credentials-unacceptable.
    #[error("the new password cannot be used: {0}")]
    New(String),
    /// It could not be stored.
    #[error(transparent)]
    Failed(#[from] EdgeError),
}

/// No record was read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It was not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is gone.
    #[error("the store has no such entry")]
    NoEntry,
    /// It was read, and is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl LoadError {
    /// Whether another attempt will not help.
    pub fn is_damage(&self) -> bool {
        matches!(self, LoadError::Read(ReadError::Damaged(_)) | LoadError::Record(_))
    }
}

/// The octets of a record that was to be read.
pub fn octets(result: Result<Option<Bytes>, ReadError>) -> Result<Bytes, LoadError> {
    result?.ok_or(LoadError::NoEntry)
}

/// A record that was to be read.
pub fn record(result: Result<Option<Bytes>, ReadError>) -> Result<Record, LoadError> {
    Ok(Record::decode(&octets(result)?)?)
}
