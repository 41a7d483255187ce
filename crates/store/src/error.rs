//! Errors of the store, each with its remedy.

use base::{BodyId, EntryId};
use engine::journal::SpoolId;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What to do about an error of the operating system.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "its files belong to another user: run this as their owner, or change the owner (chown -R)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
        _ => "see the system log for the device",
    }
}

/// Seconds with their tenths, rounded up.
fn tenths(time: Duration) -> String {
    let tenths = time.as_millis().div_ceil(100);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// An error of the store. Cheap to clone: one failure may answer a whole group of batches.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk is full. The store continues; the failed operation left nothing behind.
    #[error(
        "the disk is full while {doing}: nothing of it was kept; \
         free space on that file system, then try again"
    )]
    DiskFull {
        /// The operation.
        doing: &'static str,
    },
    /// The operating system refused.
    #[error("input/output error while {doing}: {source}; {}", remedy(source))]
    Io {
        /// The operation.
        doing: &'static str,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// A sync failed, so what is durable is unknown: the store accepts nothing more.
    #[error(
        "the store stopped because {doing} failed ({source}) and what is durable is unknown; \
         check the device, then restart the daemon"
    )]
    Stopped {
        /// The operation that failed.
        doing: &'static str,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// Another process has this store open.
    #[error("{path} is in use by another process; stop it, or give this one another directory")]
    Locked {
        /// The lock file or the store's directory.
        path: PathBuf,
    },
    /// Written by a later release.
    #[error(
        "the store has format {found}, this release knows formats up to {known}; \
         run the release that wrote it, or a later one"
    )]
    Newer {
        /// The store's format version.
        found: u64,
        /// The newest version this release reads.
        known: u64,
    },
    /// The database has invalid content.
    #[error("the store is damaged: {what}; restore it from a copy")]
    Damaged {
        /// The fault that the database reported.
        what: String,
    },
    /// A content, or its file, is absent, short, unreadable or does not have its checksum.
    #[error("the content of body {id} is damaged or missing")]
    BodyDamaged {
        /// The body.
        id: BodyId,
    },
    /// The record of an entry does not have its checksum.
    #[error("the record of entry {id} is damaged")]
    EntryDamaged {
        /// The entry.
        id: EntryId,
    },
    /// The database engine refused.
    #[error("database error while {doing}: {source}; restart the daemon if it persists")]
    Database {
        /// The operation.
        doing: &'static str,
        /// The database engine's error.
        source: Arc<redb::Error>,
    },
    /// The server of the database is not there, or does not answer in time.
    #[error(
        "the database at {host} is away while {doing}: {reason}; \
         see that its server runs and can be reached, the store goes on by itself then"
    )]
    Away {
        /// The hosts of the server, with their ports.
        host: String,
        /// The operation.
        doing: &'static str,
        /// What the connection reported.
        reason: String,
    },
    /// The server of the database refused.
    #[error("the database at {host} refused while {doing}: {reason}; see the server's log")]
    Refused {
        /// The hosts of the server, with their ports.
        host: String,
        /// The operation.
        doing: &'static str,
        /// The server's words and code.
        reason: String,
    },
    /// The server of the database does not let this account in.
    #[error(
        "the database at {host} does not let this account in while {doing}: {reason}; \
         see user, dbname and password of [store], and pg_hba.conf of the server"
    )]
    Denied {
        /// The hosts of the server, with their ports.
        host: String,
        /// The operation.
        doing: &'static str,
        /// The server's words and code.
        reason: String,
    },
    /// TLS with the server of the database failed.
    #[error(
        "TLS with the database at {host} failed while {doing}: {reason}; see the server's certificate, its end and \
         its names, and sslmode and sslrootcert in url of [store]"
    )]
    Untrusted {
        /// The hosts of the server, with their ports.
        host: String,
        /// The operation.
        doing: &'static str,
        /// What TLS reported.
        reason: String,
    },
    /// The url of the database is wrong, or names a file that cannot be read.
    #[error("url of [store], the database at {host}: {reason}")]
    BadUrl {
        /// The hosts of the server, with their ports, as far as they were read.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// The mailbox of a user would have the number of another one's.
    #[error(
        "the mailbox of {address} would have the same number as that of {by}, which happens to two addresses in two \
         thousand million: give the user another address"
    )]
    NumberTaken {
        /// The address that was to be added.
        address: String,
        /// The address that has the number.
        by: String,
    },
    /// The server of the database did not come to it in time, and nothing of it was made: another transaction that does
    /// not end has what it needs.
    #[error(
        "the database at {host} did not come to it in time while {doing}, and nothing was changed ({reason}): another \
         change has to end first, perhaps one that waits for a standby; try again, and see `mta cluster status`"
    )]
    Waits {
        /// The hosts of the server, with their ports.
        host: String,
        /// The operation.
        doing: &'static str,
        /// The server's words and code.
        reason: String,
    },
    /// Another process is the node of this name, and renews its lease.
    #[error(
        "node {node} runs already ({place}): it renewed its lease in the last {} s; stop that process, or give \
         this one another name (node of [cluster])",
        tenths(*renewed)
    )]
    NodeRuns {
        /// The name of the node.
        node: String,
        /// Where that process runs, in words.
        place: String,
        /// It renewed its lease at most so long ago.
        renewed: Duration,
    },
    /// Another process has taken over what this one had: its node, or the whole store.
    #[error(
        "another process has taken over {what} since this one began{by}, or the database is an older one: this \
         process ends, as two of them must not share one name (node of [cluster])"
    )]
    TakenOver {
        /// What it has taken over.
        what: String,
        /// Where it runs, in words with a blank before them; empty where that is not known.
        by: String,
    },
    /// The tables of the database are not those of this release.
    #[error(
        "the tables in schema {schema} of the database at {host} have version {found}, this release needs \
         {needed}; run `mta store prepare` with the account that owns them"
    )]
    NotPrepared {
        /// The hosts of the server, with their ports.
        host: String,
        /// The schema.
        schema: String,
        /// The version found, 0 if there are none.
        found: u64,
        /// The version needed.
        needed: u64,
    },
    /// The commit failed, and the database, opened again, has nothing of it.
    #[error("the commit failed part way and nothing of it was kept; try again")]
    Undone,
    /// Keys that had to be absent are remembered: [`Committed::Conflict`](crate::Committed).
    #[error("{keys} keys that had to be absent are remembered; look them up again")]
    Conflict {
        /// How many.
        keys: usize,
    },
    /// This node of a site has no lease now. It may have one again.
    #[error("this node of the site has no lease: it may write nothing until it has one again")]
    NoLease,
    /// Another node of the site has taken over: [`Committed::Fenced`](crate::Committed).
    #[error("another node of this site has taken this over; it goes on there")]
    Fenced,
    /// No such spool: never opened, discarded, or already committed.
    #[error("spool {} is not open: it was discarded or is already committed", id.0)]
    NoSpool {
        /// The spool.
        id: SpoolId,
    },
    /// The spool was opened before.
    #[error("spool {} is already open; discard it first", id.0)]
    SpoolExists {
        /// The spool.
        id: SpoolId,
    },
    /// An earlier write to the spool failed, so its content has a gap.
    #[error("spool {} lost octets in an earlier failed write; discard it, receive again", id.0)]
    SpoolBroken {
        /// The spool.
        id: SpoolId,
    },
    /// A record, a name or a value exceeds its limit.
    #[error("{what} of {length} octets exceeds the limit of {limit}")]
    TooLong {
        /// The value that exceeds its limit: a record, a name or a field.
        what: &'static str,
        /// Its length in octets.
        length: usize,
        /// The limit in octets.
        limit: usize,
    },
    /// The committer has been shut down.
    #[error("the store is shutting down; the batch was not committed")]
    Closed,
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, error: io::Error) -> StoreError {
        if is_full(&error) {
            return StoreError::DiskFull { doing };
        }
        StoreError::Io { doing, source: Arc::new(error) }
    }

    pub(crate) fn database(doing: &'static str, error: impl Into<redb::Error>) -> StoreError {
        match error.into() {
            redb::Error::Io(error) => StoreError::io(doing, error),
            redb::Error::Corrupted(what) => StoreError::Damaged { what },
            other => StoreError::Database { doing, source: Arc::new(other) },
        }
    }

    /// Whether the store accepts nothing more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            StoreError::Stopped { .. } | StoreError::Closed | StoreError::TakenOver { .. }
        )
    }

    /// Whether the disk changed or lost what was to be read: another attempt will not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, StoreError::BodyDamaged { .. } | StoreError::EntryDamaged { .. })
    }

    /// The longest queue record, if one was longer: another attempt will not help.
    #[must_use]
    pub fn record_limit(&self) -> Option<usize> {
        match self {
            StoreError::TooLong { what, limit, .. } if *what == crate::staging::QUEUE_RECORD => {
                Some(*limit)
            }
            _ => None,
        }
    }

    /// Whether the server of a database is not there: it may come back.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, StoreError::Away { .. })
    }

    /// Whether another process has the name of this node: this one is not the node, and will not be.
    #[must_use]
    pub fn is_of_another_process(&self) -> bool {
        matches!(self, StoreError::NodeRuns { .. } | StoreError::TakenOver { .. })
    }

    /// Whether the disk is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, StoreError::DiskFull { .. })
    }
}

/// No space, no quota, or a file at its size limit: a retry succeeds only after files are deleted.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// What was read; `None` if the disk cannot read that place.
pub(crate) fn readable<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::EIO as i32) => Ok(None),
        read => read.map(Some),
    }
}
