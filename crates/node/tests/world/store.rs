//! A store in memory with the durability of a real one: what is committed survives a crash, spools
//! and what waits to be committed do not.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::REMEMBERED;
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) entries: BTreeMap<(Precedence, EntryId), Bytes>,
    pub(crate) bodies: BTreeMap<BodyId, Bytes>,
    /// With the time until which it is remembered.
    pub(crate) seen: BTreeMap<Digest, (Utc, Bytes)>,
    pub(crate) meta: BTreeMap<String, Bytes>,
    pub(crate) spools: BTreeMap<SpoolId, Vec<u8>>,
}

impl Store {
    pub(crate) fn append(&mut self, spool: SpoolId, bytes: &[u8]) {
        self.spools
            .get_mut(&spool)
            .expect("appended to a spool that is open")
            .extend_from_slice(bytes);
    }

    pub(crate) fn apply(&mut self, batch: Batch) {
        for op in batch {
            match op {
                Op::PutEntry { precedence, id, record } => {
                    self.entries.insert((precedence, id), record);
                }
                Op::DeleteEntry { precedence, id } => {
                    self.entries.remove(&(precedence, id));
                }
                Op::PutBody { id, source } => {
                    let octets = match source {
                        BodySource::Octets(octets) => octets,
                        BodySource::Spool(spool) => self
                            .spools
                            .remove(&spool)
                            .expect("committed a spool that is there")
                            .into(),
                    };
                    assert!(self.bodies.insert(id, octets).is_none(), "body identifier used twice");
                }
                Op::DeleteBody { id } => {
                    self.bodies.remove(&id);
                }
                Op::PutSeen { key, until, record } => {
                    let taken = self.seen.insert(key, (until, record));
                    let is_over = |(old, _)| old + REMEMBERED < until;
                    assert!(taken.is_none_or(is_over), "taken twice");
                }
                Op::ForgetSeen { before } => self.seen.retain(|_, (until, _)| *until >= before),
                Op::PutMeta { name, value } => {
                    self.meta.insert(name, value);
                }
            }
        }
    }

    /// What a power cut leaves.
    pub(crate) fn crash(&mut self) {
        self.spools.clear();
    }
}
