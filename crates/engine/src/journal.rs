//! What the MTA asks of its durable store: changes that commit whole, in the order given.
//!
//! The store knows nothing of X.400: records are opaque octets under typed keys.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A content being received: in memory while small, in a file beyond that. Local to one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpoolId(pub u64);

/// 32 octets of SHA-256 over a canonical form of what must not be taken twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

/// Where a body comes from when it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodySource {
    /// The octets of a spool, which is used up by the commit.
    Spool(SpoolId),
    /// These octets.
    Octets(Bytes),
}

/// One durable change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes or replaces a queue entry.
    PutEntry {
        /// First part of the key: the queue is ordered by precedence.
        precedence: Precedence,
        /// Second part of the key.
        id: EntryId,
        /// The record, opaque.
        record: Bytes,
    },
    /// Removes a queue entry; absent is fine.
    DeleteEntry {
        /// First part of the key.
        precedence: Precedence,
        /// Second part of the key.
        id: EntryId,
    },
    /// Keeps a content.
    PutBody {
        /// Its identifier.
        id: BodyId,
        /// Its octets.
        source: BodySource,
    },
    /// Drops a content; absent is fine.
    DeleteBody {
        /// Its identifier.
        id: BodyId,
    },
    /// Remembers something taken, with a record to answer a repetition with.
    PutSeen {
        /// What was taken.
        key: Digest,
        /// Forgotten after this time.
        until: Utc,
        /// The answer, opaque; may be empty.
        record: Bytes,
    },
    /// Forgets what is remembered only until before this time: the oldest first.
    ForgetSeen {
        /// The time.
        before: Utc,
        /// Keys forgotten at most: all others' commits wait for this one.
        most: usize,
    },
    /// Writes a small named value (epochs, counters).
    PutMeta {
        /// Name.
        name: String,
        /// Value.
        value: Bytes,
    },
}

impl Op {
    /// Octets of records it holds in memory, contents in spools aside.
    pub fn held(&self) -> usize {
        match self {
            Op::PutEntry { record, .. } | Op::PutSeen { record, .. } => record.len(),
            Op::PutBody { source: BodySource::Octets(octets), .. } => octets.len(),
            Op::PutMeta { value, .. } => value.len(),
            Op::PutBody { source: BodySource::Spool(_), .. }
            | Op::DeleteEntry { .. }
            | Op::DeleteBody { .. }
            | Op::ForgetSeen { .. } => 0,
        }
    }
}

/// The highest precedence of the entries that a batch writes or removes; none where there are none.
#[must_use]
pub fn highest(batch: &[Op]) -> Option<Precedence> {
    let levels = batch.iter().filter_map(|op| match op {
        Op::PutEntry { precedence, .. } | Op::DeleteEntry { precedence, .. } => Some(*precedence),
        _ => None,
    });
    levels.max()
}

/// Changes that commit together or not at all.
pub type Batch = Vec<Op>;
