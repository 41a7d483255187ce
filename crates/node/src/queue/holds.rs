//! Which entries are held, as the store has it.

use crate::api::operator::HELD;
use crate::queue::EntryQueue;
use base::{EntryId, Instant};
use bytes::Bytes;
use engine::journal::{Batch, Op};

impl EntryQueue {
    /// Takes over the holds of [`HELD`]: before the entries are recovered, or when another node has changed them.
    pub(crate) fn recovered_holds(&mut self, now: Instant, value: &[u8]) {
        let ids = value.chunks_exact(8).filter_map(|id| id.try_into().ok());
        let held = ids.map(|id| EntryId(u64::from_be_bytes(id))).collect();
        let before = std::mem::replace(&mut self.held, held);
        for id in self.held.difference(&before) {
            self.scheduler.hold(*id);
        }
        for id in before.difference(&self.held) {
            self.scheduler.release(now, *id);
        }
    }

    /// Entries that went need no mark. Where there are several nodes, one that is not here may be another node's: its
    /// mark stays.
    pub(crate) fn drop_marks_of_gone(&mut self) {
        if self.owned.is_none() {
            self.held.retain(|id| self.scheduler.get(*id).is_some());
        }
    }

    /// The change that makes the holds durable.
    pub(crate) fn put_held(&self) -> Op {
        let value: Vec<u8> = self.held.iter().flat_map(|id| id.0.to_be_bytes()).collect();
        Op::PutMeta { name: HELD.to_owned(), value: Bytes::from(value) }
    }

    /// A change that is written late holds what is held then.
    pub(crate) fn renew_held(&self, batch: &mut Batch) {
        let is_held = |op: &&mut Op| matches!(op, Op::PutMeta { name, .. } if name == HELD);
        for op in batch.iter_mut().filter(is_held) {
            *op = self.put_held();
        }
    }

    /// A held entry is rerouted: the copies that take its place are held as it was. Returns what
    /// belongs into the commit that replaces it.
    pub(crate) fn pass_on_hold(&mut self, id: EntryId, copies: &[EntryId]) -> Option<Op> {
        if !self.held.remove(&id) {
            return None;
        }
        self.held.extend(copies);
        Some(self.put_held())
    }
}
