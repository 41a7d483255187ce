//! Long work in slices: what grows with the recipients of a message is done a step at a time, and
//! everything else that waits has its turn between two steps.
//!
//! A message may have tens of thousands of recipients. To find their keys and routes, to accept it,
//! to encode its copies, to decode one and to encode it for the peer are steps of their own, each of
//! some milliseconds where there are 14,000.

use crate::arrivals::arrival::Arrival;
use base::{AssociationId, EntryId};
use bytes::Bytes;
use engine::journal::SpoolId;
use engine::{Accepted, Note, Record};

/// Recipients whose keys and routes are found in one step, and with more than which a message takes
/// more than one.
pub(crate) const SLICE: usize = 1_000;

/// A step that is still to be done.
#[derive(Debug)]
pub(crate) enum Step {
    /// Finds keys and routes of the next recipients of this arrival.
    Prepare(SpoolId),
    /// Encodes and commits what was accepted.
    Commit(Box<Taken>),
    /// Sends this entry on the association that took it up.
    Send(AssociationId, EntryId, Box<Record>),
}

/// An arrival that was accepted, and what is to be committed of it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub arrival: Arrival,
    pub accepted: Accepted,
    /// Its identifier.
    pub message: String,
    /// Of a submission: the result for the user.
    pub result: Option<Bytes>,
    /// For the log, once it is durable.
    pub notes: Vec<Note>,
}

impl Taken {
    pub(crate) fn is_long(&self) -> bool {
        let recipients = |record: &Record| record.recipients();
        let copied: usize = self.accepted.entries.iter().map(|e| recipients(&e.record)).sum();
        copied.max(self.accepted.seen.len()) > SLICE
    }
}
