//! Long work in steps. What grows with the recipients of a message is done a step at a time, and all
//! other work that waits has its turn between two steps.
//!
//! A message may have tens of thousands of recipients. To find their keys and routes, to accept it,
//! to encode its copies, to decode one and to encode it for the peer are steps of their own. Each takes
//! some milliseconds where there are 14,000 recipients.

use base::{AssociationId, EntryId, Instant};
use engine::Record;
use engine::journal::SpoolId;
use std::collections::VecDeque;

/// A step that is not done yet.
#[derive(Debug)]
pub enum WorkStep {
    /// Finds keys and routes of the next recipients of this arrival.
    Prepare(SpoolId),
    /// Encodes and commits this arrival, which was accepted.
    Commit(SpoolId),
    /// Sends this entry on the association that took it up.
    Send(AssociationId, EntryId, Box<Record>),
}

/// Steps in the order in which they are done, and since when each waits.
#[derive(Debug, Default)]
pub struct WorkSteps {
    waiting: VecDeque<(Instant, WorkStep)>,
}

impl WorkSteps {
    /// A step is done after those that wait already.
    pub fn push(&mut self, now: Instant, step: WorkStep) {
        self.waiting.push_back((now, step));
    }

    /// The next step to do.
    pub fn take_next(&mut self) -> Option<WorkStep> {
        self.waiting.pop_front().map(|(_, step)| step)
    }

    /// When the next step is due: at once, but after all other work.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|(since, _)| *since)
    }

    /// Whether no step waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
