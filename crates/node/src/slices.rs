//! Long work in slices: what grows with the recipients of a message is done a step at a time, and
//! everything else that waits has its turn between two steps.
//!
//! A message may have tens of thousands of recipients. To find their keys and routes, to accept it,
//! to encode its copies, to decode one and to encode it for the peer are steps of their own, each of
//! some milliseconds where there are 14,000.

use crate::context::Context;
use crate::machines::Arrivals;
use crate::node::Node;
use crate::pending::{AfterCommit, Pending};
use crate::receiving::{Arrival, Head};
use base::{AssociationId, EntryId, Instant, Now};
use bytes::Bytes;
use engine::journal::SpoolId;
use engine::{Accepted, Note, Record};

/// Recipients whose keys and routes are found in one step, and with more than which a message takes
/// more than one.
const SLICE: usize = 1_000;

/// Octets of a record beyond which to decode it is a step of its own.
const LARGE_RECORD: usize = 128 << 10;

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
    fn is_long(&self) -> bool {
        let recipients = |record: &Record| record.recipients();
        let copied: usize = self.accepted.entries.iter().map(|e| recipients(&e.record)).sum();
        copied.max(self.accepted.seen.len()) > SLICE
    }
}

impl Context {
    /// When to go on: at once, but after whatever else there is to do.
    pub(crate) fn steps_deadline(&self) -> Option<Instant> {
        self.steps.front().map(|(since, _)| *since)
    }
}

impl Node {
    /// Does a step; what needs several takes turns with the others.
    pub(crate) fn step_on(&mut self, now: Now) {
        match self.cx.steps.pop_front().map(|(_, step)| step) {
            Some(Step::Prepare(spool)) => self.arrivals.prepare(&mut self.cx, now, spool),
            Some(Step::Commit(taken)) => self.arrivals.commit_now(&mut self.cx, *taken),
            Some(Step::Send(id, entry, record)) => self.send_decoded(now, id, entry, *record),
            None => {}
        }
    }

    /// Sends a record on the association that took up its entry: where it is long, in another step
    /// than it is decoded.
    pub(crate) fn send_record(
        &mut self,
        now: Now,
        id: AssociationId,
        entry: EntryId,
        octets: &[u8],
    ) -> Result<(), String> {
        let record = Record::decode(octets).map_err(|e| e.to_string())?;
        if octets.len() > LARGE_RECORD {
            self.cx.steps.push_back((now.mono, Step::Send(id, entry, Box::new(record))));
        } else {
            self.send_decoded(now, id, entry, record);
        }
        Ok(())
    }

    fn send_decoded(&mut self, now: Now, id: AssociationId, entry: EntryId, record: Record) {
        if !self.cx.is_sending(id, entry) {
            // The association ended meanwhile; the entry was given back.
            return;
        }
        match self.cx.associations.get(&id).and_then(|link| link.channel()) {
            Some(channel) => self.outbound.start_transfer(&mut self.cx, now, id, channel, record),
            None => self.delivery.start_delivery(&mut self.cx, now, id, record),
        }
    }
}

impl Arrivals {
    /// Finds keys and routes of the next recipients of what has ended.
    pub(crate) fn prepare(&mut self, cx: &mut Context, now: Now, spool: SpoolId) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        // Refused meanwhile, or gone, it needs no more.
        let Some(Head::Transfer(head)) = &arrival.head else { return };
        let prepared = arrival.prepared.get_or_insert_with(|| cx.engine.begin(head));
        if cx.engine.prepare(prepared, head, SLICE) {
            let keys = prepared.keys();
            self.secure(cx, now, spool, keys);
        } else {
            cx.steps.push_back((now.mono, Step::Prepare(spool)));
        }
    }

    /// Commits what was accepted: where it is long, in another step.
    pub(crate) fn commit_taken(&mut self, cx: &mut Context, now: Now, taken: Taken) {
        if taken.is_long() {
            cx.steps.push_back((now.mono, Step::Commit(Box::new(taken))));
        } else {
            self.commit_now(cx, taken);
        }
    }

    pub(crate) fn commit_now(&mut self, cx: &mut Context, taken: Taken) {
        let Taken { mut arrival, accepted, message, result, notes } = taken;
        let batch = cx.batch_with_body(&arrival, &accepted);
        let spool = Context::committed_spool(&batch);
        let charge = self.charge(&mut arrival, &batch);
        let (link, keys) = (arrival.link, arrival.keys);
        let after = match result {
            None => AfterCommit::Secure { arrival: arrival.spool, keys, message, spool, notes },
            Some(result) => {
                let (invoke, operation) = (arrival.invoke, arrival.operation);
                AfterCommit::SubmissionResult {
                    spool,
                    invoke,
                    operation,
                    result,
                    keys,
                    message,
                    notes,
                }
            }
        };
        let entries = accepted.entries;
        let level = self.level_with_arrival(cx, link);
        cx.commit_for(level, batch, Pending::Commit { link, entries, after, charge });
    }
}
