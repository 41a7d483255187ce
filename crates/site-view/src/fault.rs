//! Why a database cannot be used, sorted by what is to be done about it.

use store::StoreError;

/// Why a database cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseFault {
    /// No server of it answers as a primary: it may come back, or a standby is to be promoted.
    Away,
    /// It does not let the account in, or refuses what every node asks of it.
    Refused,
    /// It has no tables, or those of another release.
    NotPrepared,
}

impl DatabaseFault {
    /// That of an error.
    #[must_use]
    pub fn from_error(error: &StoreError) -> DatabaseFault {
        match error {
            StoreError::Away { .. } | StoreError::Waits { .. } => DatabaseFault::Away,
            StoreError::NotPrepared { .. } | StoreError::Newer { .. } => DatabaseFault::NotPrepared,
            _ => DatabaseFault::Refused,
        }
    }
}
