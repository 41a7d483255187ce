//! Arrivals: reception to commit, over P1 and P3.

pub(crate) mod accepted;
pub(crate) mod arrival;
pub(crate) mod level;
pub(crate) mod reception;
pub(crate) mod recovery;
pub(crate) mod replies;
pub(crate) mod securing;
pub(crate) mod submission;

use crate::arrivals::accepted::AcceptedArrival;
use crate::arrivals::arrival::OpenArrival;
use crate::limits::memory::ArrivalMemory;
use engine::journal::SpoolId;
use std::collections::BTreeMap;

/// Reception to commit, over P1 and P3.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// What is being received, by its spool.
    pub(crate) open: BTreeMap<SpoolId, OpenArrival>,
    /// Accepted ones with many recipients, which are committed in a later step.
    pub(crate) accepted: BTreeMap<SpoolId, AcceptedArrival>,
    pub(crate) memory: ArrivalMemory,
}
