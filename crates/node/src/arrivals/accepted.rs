//! An arrival that the engine accepted, until its commit.

use crate::api::event::Parties;
use crate::arrivals::arrival::OpenArrival;
use crate::log::parties::Reported;
use bytes::Bytes;
use engine::{Accepted, Note, Record};

/// Recipients whose keys and routes are found in one step. A message with more takes several steps.
pub(crate) const SLICE: usize = 1_000;

/// An arrival that was accepted, and what is to be committed of it.
#[derive(Debug)]
pub(crate) struct AcceptedArrival {
    pub arrival: OpenArrival,
    pub accepted: Accepted,
    /// Its identifier.
    pub message: String,
    /// Of a submission: the result for the user.
    pub result: Option<Bytes>,
    /// For the log: from whom and to whom.
    pub parties: Box<Parties>,
    /// For the log: what a report is about.
    pub reported: Option<Reported>,
    /// For the log, once it is durable.
    pub notes: Vec<Note>,
}

impl AcceptedArrival {
    pub(crate) fn is_long(&self) -> bool {
        let recipients = |record: &Record| record.recipients();
        let copied: usize = self.accepted.entries.iter().map(|e| recipients(&e.record)).sum();
        copied.max(self.accepted.seen.len()) > SLICE
    }
}
