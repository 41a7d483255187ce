//! What a call to the server ended with, sorted by what may be done about it.

use crate::connection::target::{Target, words};
use store::StoreError;
use tokio_postgres::error::{Severity, SqlState};

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection is lost, or was not made: what the server did of the call is not known.
    Lost(String),
    /// The server does not let the account in: no connection was made.
    Denied(String),
    /// TLS with the server failed, mostly as its certificate is not accepted: no connection was made.
    Untrusted(String),
    /// The server refused it, and nothing of it was made.
    Refused {
        /// The code (SQLSTATE).
        code: String,
        message: String,
        /// What our own refusals are about: see `migrations/0002_functions.sql`.
        detail: String,
    },
    /// An error of this store.
    Ours(Box<StoreKind>),
}

/// Errors that are not of the connection, without their words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// Another process has the store.
    Locked,
    /// What this run wrote is no longer there, or another run has taken over: that of this node, if it is one,
    /// which runs there.
    Over { node: Option<String>, by: String },
    /// The mailbox of this address would have the number of that of another one.
    NumberTaken { address: String, by: String },
}

/// The classes of a server that knows neither the account nor its password, or has no such database; of right for
/// the database itself, which is missing before any table is.
fn is_denial(code: &str) -> bool {
    code.starts_with("28") || code == "3D000"
}

/// Whether TLS itself refused, and not the network under it.
fn is_of_tls(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        // An error that an `io::Error` only carries is not among its sources.
        let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>()
            || carried.is_some_and(|carried| carried.is::<rustls::Error>())
        {
            return true;
        }
        cause = error.source();
    }
    false
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        let Some(server) = error.as_db_error() else {
            let text = words(&error);
            // A server without TLS is there; the library reports it as text alone.
            return if is_of_tls(&error) || text.contains("does not support TLS") {
                Failure::Untrusted(text)
            } else if text.contains("password missing") {
                // The server asks for one, and none is configured: the library has no kind of its own for it.
                Failure::Denied(text)
            } else {
                Failure::Lost(text)
            };
        };
        let severity = server.parsed_severity();
        let fatal = matches!(severity, Some(Severity::Fatal | Severity::Panic));
        let code = server.code().code();
        if is_denial(code) {
            return Failure::Denied(format!("{} ({code})", server.message()));
        }
        // A server that ends, or ends a connection, does not report how far the call had come.
        if fatal || code.starts_with("08") || code.starts_with("57P") {
            return Failure::Lost(format!("{} ({code})", server.message()));
        }
        Failure::Refused {
            code: code.to_owned(),
            message: server.message().to_owned(),
            detail: server.detail().unwrap_or_default().to_owned(),
        }
    }
}

impl Failure {
    /// Our own refusals, and those of the server that have a meaning.
    pub(crate) fn code(&self) -> &str {
        match self {
            Failure::Refused { code, .. } => code,
            Failure::Lost(_) | Failure::Denied(_) | Failure::Untrusted(_) | Failure::Ours(_) => "",
        }
    }

    /// As people read it.
    pub(crate) fn words(&self) -> String {
        match self {
            Failure::Lost(reason) | Failure::Denied(reason) | Failure::Untrusted(reason) => {
                reason.clone()
            }
            Failure::Refused { code, message, .. } => format!("{message} ({code})"),
            Failure::Ours(_) => "refused".to_owned(),
        }
    }

    /// Whether the same call may succeed at once.
    pub(crate) fn is_passing(&self) -> bool {
        let passing = [
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
            &SqlState::LOCK_NOT_AVAILABLE,
        ];
        passing.iter().any(|state| state.code() == self.code())
    }

    /// As callers of the store have it.
    pub(crate) fn into_error(self, target: &Target, doing: &'static str) -> StoreError {
        let host = target.host.clone();
        match self {
            Failure::Lost(reason) => StoreError::Away { host, doing, reason },
            Failure::Denied(reason) => StoreError::Denied { host, doing, reason },
            Failure::Untrusted(reason) => StoreError::Untrusted { host, doing, reason },
            Failure::Refused { code, message, .. } => match code.as_str() {
                "53100" => StoreError::DiskFull { doing },
                "MT004" => StoreError::NoLease,
                // The time for a lock, or for the whole statement, is over.
                "55P03" | "57014" => {
                    StoreError::Waits { host, doing, reason: format!("{message}, {code}") }
                }
                "XX001" | "XX002" => StoreError::Damaged { what: format!("{message} ({code})") },
                _ => StoreError::Refused { host, doing, reason: format!("{message} ({code})") },
            },
            Failure::Ours(kind) => match *kind {
                StoreKind::NumberTaken { address, by } => StoreError::NumberTaken { address, by },
                StoreKind::Locked => {
                    let path = format!("schema {} of the database at {host}", target.schema);
                    StoreError::Locked { path: path.into() }
                }
                StoreKind::Over { node, by } => {
                    let what = match node {
                        Some(node) => format!("node {node}"),
                        None => format!("schema {} of the database at {host}", target.schema),
                    };
                    let by = if by.is_empty() { by } else { format!(" ({by})") };
                    StoreError::TakenOver { what, by }
                }
            },
        }
    }
}
