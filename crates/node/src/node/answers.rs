//! What the edge answers, given to the machine that asked.

use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{AfterCommit, PendingAnswer};
use crate::error::{self, CommitError, EdgeError, LoadError, ReadError};
use crate::ids::Token;
use crate::log::draft::Copies;
use crate::node::Node;
use base::{AssociationId, EntryId, Now};
use bytes::Bytes;
use engine::Record;
use node_api::steps::WorkStep;

/// Octets of a record beyond which to decode it is a step of its own.
const LARGE_RECORD: usize = 128 << 10;

impl Node {
    /// Does a step; what needs several takes turns with the others.
    pub(crate) fn step_on(&mut self, now: Now) {
        match self.cx.steps.take_next() {
            Some(WorkStep::Prepare(spool)) => self.arrivals.prepare(&mut self.cx, now, spool),
            Some(WorkStep::Commit(spool)) => self.arrivals.commit_later(&mut self.cx, spool),
            Some(WorkStep::Send(id, entry, record)) => self.send_decoded(now, id, entry, *record),
            None => {}
        }
    }

    /// Sends a record on the association that took up its entry: where it is long, in another step
    /// than it is decoded.
    fn send_record(
        &mut self,
        now: Now,
        id: AssociationId,
        entry: EntryId,
        octets: &[u8],
    ) -> Result<(), LoadError> {
        let record = Record::decode(octets)?;
        if octets.len() > LARGE_RECORD {
            self.cx.steps.push(now.mono, WorkStep::Send(id, entry, Box::new(record)));
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
        match self.cx.associations.get(&id).and_then(|a| a.channel()) {
            Some(channel) => self.outbound.start_transfer(&mut self.cx, now, id, channel, record),
            None => self.delivery.start_delivery(&mut self.cx, now, id, record),
        }
    }

    pub(crate) fn loaded(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        let (id, entry) = match self.cx.commits.take(token) {
            Some(PendingAnswer::Load { association: id, entry }) => (id, entry),
            Some(PendingAnswer::Unrouted { entry }) => {
                return self.outbound.unrouted_loaded(&mut self.cx, now, entry, result);
            }
            Some(PendingAnswer::Late { entry, why }) => {
                return self.outbound.late_loaded(&mut self.cx, now, entry, why, result);
            }
            Some(PendingAnswer::CancelLoad(cancelling)) => {
                let end = self.operations.cancel_loaded(&mut self.cx, now, cancelling, result);
                return self.answer_cancel(end);
            }
            Some(PendingAnswer::Expand { entry }) => {
                return self.outbound.expand_loaded(&mut self.cx, now, entry, result);
            }
            Some(PendingAnswer::OrderLoad { order, entry }) => {
                return self.outbound.order_loaded(&mut self.cx, now, order, entry, result);
            }
            Some(PendingAnswer::LoadStored { entry }) => {
                return self.stored_loaded(now, entry, result);
            }
            _ => return,
        };
        if !self.cx.is_sending(id, entry) {
            // The association ended meanwhile; the entry was given back.
            return;
        }
        let begun =
            error::octets(result).and_then(|octets| self.send_record(now, id, entry, &octets));
        if let Err(error) = begun {
            if error.is_damage() {
                return self.outbound.set_record_aside(&mut self.cx, now, Some(id), entry, &error);
            }
            if let Some(association) = self.cx.associations.get_mut(&id) {
                association.take_sending();
            }
            if self.cx.queue.went(entry, &error) {
                return;
            }
            let error = error.to_string();
            self.cx.event(LogLevel::Error, Kind::StoreFailed, error).association(id).entry(entry);
            let seed = self.cx.rng.next_u64();
            self.cx.queue.scheduler.retry(now.mono, entry, seed);
        }
    }

    pub(crate) fn looked_up(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Vec<Option<Bytes>>, EdgeError>,
    ) {
        let spool = match self.cx.commits.take(token) {
            Some(PendingAnswer::LookUp { spool }) => spool,
            Some(PendingAnswer::OrderLookUp { order }) => {
                return self.outbound.order_looked_up(&mut self.cx, now, order, result);
            }
            Some(PendingAnswer::ExpandLookUp { entry, record, key }) => {
                let its = (&*record, key);
                return self.outbound.expand_looked_up(&mut self.cx, now, entry, its, result);
            }
            Some(PendingAnswer::RerouteLookUp { entry, record, keys }) => {
                return self.outbound.reroute_looked_up(
                    &mut self.cx,
                    now,
                    entry,
                    &record,
                    keys,
                    result,
                );
            }
            _ => return,
        };
        match result {
            Ok(seen) => self.arrivals.keys_looked_up(&mut self.cx, now, spool, seen),
            Err(error) => self.arrivals.spool_failed(&mut self.cx, spool, &error.0),
        }
    }

    pub(crate) fn committed(&mut self, now: Now, token: Token, result: Result<(), CommitError>) {
        self.cx.commits.removals.end(token);
        let (id, mut entries, after) = match self.cx.commits.take(token) {
            Some(PendingAnswer::Commit { association: id, entries, after, charge }) => {
                if let Some(mut held) = charge {
                    self.arrivals.release_memory(&mut held);
                }
                (id, entries, after)
            }
            Some(PendingAnswer::Operation(operation)) => {
                return self.operations.operated(&mut self.cx, now, operation, result);
            }
            Some(PendingAnswer::Channel(operation)) => {
                let ended = self.outbound.channel_committed(&mut self.cx, now, operation, result);
                return ended.into_iter().for_each(|id| self.wind_down(now, id));
            }
            Some(PendingAnswer::Cancel(cancelling)) => {
                let end = self.operations.cancel_committed(&mut self.cx, now, cancelling, result);
                return self.answer_cancel(end);
            }
            Some(PendingAnswer::Lists(operation)) => {
                if result == Err(CommitError::Changed) {
                    return self.operations.change_lists_again(&mut self.cx, operation);
                }
                let changed = self.operations.lists_committed(&mut self.cx, operation, result);
                if let Some(list) = changed {
                    // What waits for one that was removed is routed again.
                    self.outbound.expand_later.insert(self.cx.queue.mailbox(&list));
                    self.outbound.touch_all(&mut self.cx);
                }
                return;
            }
            Some(PendingAnswer::Mailbox(ticket)) => {
                return self.mailbox_committed(now, (token, ticket), result);
            }
            Some(PendingAnswer::Registration) => {
                let ended = self.operations.registration_committed(&mut self.cx, result);
                return self.answer_registrations(ended);
            }
            Some(PendingAnswer::KeptSends) => {
                return self.outbound.sends_written(&mut self.cx, now);
            }
            Some(PendingAnswer::Retry(mut retry)) => {
                self.cx.commits.retry_answered();
                match result {
                    Ok(()) => {
                        self.cx.queue.held.written(&retry.batch);
                        self.cx.floor_orders.written(&retry.batch);
                        self.outbound.reroutes_made(&mut self.cx, &retry.batch);
                        self.cx.commits.retain_ours(token, &mut retry.entries);
                        self.outbound.enqueue_new(&mut self.cx, now, retry.entries);
                        self.cx.release_bodies(retry.bodies);
                        if let Some(request) = retry.order {
                            self.outbound.order_done(&mut self.cx, request);
                        }
                    }
                    Err(CommitError::TooLong(most)) => {
                        self.outbound.replace_long(&mut self.cx, now, retry, most);
                    }
                    Err(CommitError::Fenced) => {
                        self.outbound.retry_fenced(&mut self.cx, now, retry);
                    }
                    Err(_) => self.cx.commits.retry_later(now, retry),
                }
                return;
            }
            _ => return,
        };
        if let AfterCommit::Secure { keys, .. } | AfterCommit::SubmissionResult { keys, .. } =
            &after
        {
            let keys = keys.clone();
            self.cx.commits.keys.release(&keys);
        }
        match result {
            Ok(()) => {
                let copies = match &after {
                    AfterCommit::Secure { message, .. }
                    | AfterCommit::SubmissionResult { message, .. } => {
                        Copies::new(message, &entries)
                    }
                    AfterCommit::Sent { .. } => Copies::default(),
                };
                self.cx.commits.retain_ours(token, &mut entries);
                self.outbound.enqueue_new(&mut self.cx, now, entries);
                if let AfterCommit::Secure { arrival, .. } = &after {
                    self.outbound.secured_late(&mut self.cx, *arrival);
                }
                self.arrivals.after_commit(&mut self.cx, now, id, after, copies);
            }
            Err(error) => {
                self.arrivals.commit_failed(&mut self.cx, now, id, entries, after, &error);
            }
        }
    }
}
