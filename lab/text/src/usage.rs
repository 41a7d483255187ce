//! Mistakes of who asked, told apart from what failed.

/// What was asked for cannot be done as it was written: a file or an argument is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// As an error of the program, which then ends with code 2.
    pub fn error(what: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Usage(what.into()))
    }
}
