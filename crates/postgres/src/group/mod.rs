//! Commits: batches are staged, merged into one call, and answered one by one.
//!
//! One call is one transaction, whole or not at all. If the server refuses it for what one batch wants (a
//! key that is remembered, a body that is not there, a shard of another node), that batch has its answer,
//! and the others are merged anew: so each attempt is one round trip, no attempt leaves a transaction open,
//! and no savepoint is needed. For a refusal that names no batch (a full disk) the batches go one by one.

mod call;
mod lane;
mod plan;
mod run;
mod staged;

pub(crate) use call::{Call, Standing};
pub(crate) use lane::{Ended, Lane};
pub(crate) use run::Committing;
pub(crate) use staged::Stage;

use bytes::Bytes;
use std::sync::Arc;

/// The octets of a body, ready to be committed.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// They travel in the commit.
    Inline { id: i64, octets: Bytes, sums: Arc<[u8]> },
    /// They are in the database.
    Stored { id: i64, length: u64 },
}

impl Content {
    pub(crate) fn id(&self) -> i64 {
        match self {
            Content::Inline { id, .. } | Content::Stored { id, .. } => *id,
        }
    }
}
