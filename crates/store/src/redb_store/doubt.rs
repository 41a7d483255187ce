//! Batches whose commit failed in a way that left unknown whether it took effect: the database could
//! not be opened again. Once it is open, the number of its last commit decides.

use super::RedbStore;
use super::commit::{Outcome, Staged};
use crate::error::StoreError;
use crate::queue::{BatchId, Committed};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// A batch of unknown end.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The number of its commit.
    number: u64,
    batch: Staged,
    /// Files that it no longer refers to, if it took effect.
    dropped: Vec<u64>,
}

/// All of them, and the ends found since.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    open: BTreeMap<BatchId, Doubt>,
    ended: BTreeMap<BatchId, Committed>,
}

impl RedbStore {
    /// The end of this batch is unknown for now.
    pub(super) fn doubt(&self, id: BatchId, number: u64, batch: Staged, dropped: Vec<u64>) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.open.insert(id, Doubt { number, batch, dropped });
    }

    /// The database is open, and this is its last commit.
    pub(super) fn settle_doubts(&self, last: u64) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, doubt) in std::mem::take(&mut doubts.open) {
            let outcome = if doubt.number <= last {
                Outcome::Kept(doubt.dropped)
            } else {
                Outcome::Undone(StoreError::Undone)
            };
            let ended = self.finish(id, doubt.batch, outcome);
            doubts.ended.insert(id, ended);
        }
    }

    pub(super) fn outcome_of(&self, id: BatchId) -> Committed {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || {
            let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
            doubts.ended.remove(&id)
        };
        if let Some(ended) = ended() {
            return ended;
        }
        match self.recover() {
            Err(error) => Committed::Unknown(error),
            Ok(()) => ended().unwrap_or(Committed::NotDone(StoreError::Undone)),
        }
    }
}
