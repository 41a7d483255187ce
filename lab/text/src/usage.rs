//! Errors of the user, as distinct from failures.

/// A file or an argument of the user is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// As an error of the program, which then ends with code 2.
    pub fn error(what: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(UsageError(what.into()))
    }
}
