//! Arrivals: reception to commit, over P1 and P3.

pub(crate) mod arrival;
pub(crate) mod level;
pub(crate) mod memory;
pub(crate) mod reception;
pub(crate) mod recovery;
pub(crate) mod replies;
pub(crate) mod securing;
pub(crate) mod submission;

use crate::arrivals::arrival::Arrival;
use crate::arrivals::memory::Memory;
use engine::journal::SpoolId;
use std::collections::BTreeMap;

/// Reception to commit, over P1 and P3.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// What is being received, by its spool.
    pub(crate) open: BTreeMap<SpoolId, Arrival>,
    pub(crate) memory: Memory,
}
