//! Arrivals: reception to commit, over P1 and P3.

pub(crate) mod accepted;
pub(crate) mod arrival;
pub(crate) mod kept;
pub(crate) mod level;
pub(crate) mod reception;
pub(crate) mod recovery;
pub(crate) mod replies;
pub(crate) mod securing;
pub(crate) mod submission;

use crate::arrivals::accepted::AcceptedArrival;
use crate::arrivals::arrival::OpenArrival;
use engine::journal::SpoolId;
use guard::memory::{ArrivalMemory, MemoryCharge};
use std::collections::BTreeMap;

/// Reception to commit, over P1 and P3.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// What is being received, by its spool.
    open: BTreeMap<SpoolId, OpenArrival>,
    /// Accepted ones with many recipients, which are committed in a later step.
    accepted: BTreeMap<SpoolId, AcceptedArrival>,
    memory: ArrivalMemory,
}

impl Arrivals {
    /// What is being received into this spool.
    pub(crate) fn get(&self, spool: SpoolId) -> Option<&OpenArrival> {
        self.open.get(&spool)
    }

    /// Whether something is being received into this spool, and nothing of it was refused.
    pub(crate) fn is_sound(&self, spool: SpoolId) -> bool {
        self.get(spool).is_some_and(OpenArrival::is_sound)
    }

    /// How many are being received.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The octets held in memory for arrivals.
    pub(crate) fn held_octets(&self) -> usize {
        self.memory.total()
    }

    /// What was held in memory until a commit is free again.
    pub(crate) fn release_memory(&mut self, charge: &mut MemoryCharge) {
        self.memory.give(charge);
    }
}
