//! Operations that a user invokes.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::arrivals::Arrivals;
use crate::arrivals::accepted::AcceptedArrival;
use crate::arrivals::arrival::{ArrivalHead, OpenArrival, Parsing};
use crate::association::Association;
use crate::association::p3::ArrivingUnit;
use crate::commits::pending::{AfterCommit, PendingAnswer};
use crate::context::Context;
use crate::log::parties;
use base::ber::Element;
use base::{AssociationId, Now};
use bytes::Bytes;
use engine::{SubmitError, Submitted};
use osi::api::{AbortReason, Problem, Request};
use p1::p3::{self, MessageSubmissionEnvelope, SubmissionParser, operation};
use p1::{ContentLabels, Extensions};
use std::time::Duration;

/// Longest wait for the whole argument of an operation or, in a submission, for what precedes the
/// content; then for each [`PACE`] octets of content. Octets alone do not prolong it: what is held
/// in memory for a user who dawdles is kept from others.
const ARGUMENT_TIMEOUT: Duration = Duration::from_secs(120);

/// See [`ARGUMENT_TIMEOUT`].
const PACE: u64 = 16 << 10;

/// Most invocations of a user that may wait for their answer.
const MAX_PENDING: u32 = 64;

/// The same for a user of the message store, whose results may be long.
const MAX_PENDING_STORE: u32 = 8;

/// Invoke problems of a ROSE reject (X.229 clause 9).
const UNRECOGNIZED_OPERATION: Problem = Problem { kind: 1, value: 1 };

pub(crate) const RESOURCE_LIMITATION: Problem = Problem { kind: 1, value: 3 };

/// An operation whose argument has come, and which is not of arrivals.
pub(crate) struct Invoked {
    pub invoke: i64,
    pub operation: i64,
    pub argument: Vec<u8>,
}

impl OpenArrival {
    /// The refusal of a submission that is not in the security-context of its association.
    fn outside(&self, extensions: &Extensions, content: &ContentLabels) -> Option<SubmitError> {
        let outside = self.context.as_ref()?.admits(extensions, content).err()?;
        Some(SubmitError::OutsideContext(outside))
    }

    /// The operation, if it is of the message store, of administration, or controls deliveries.
    fn take_elsewhere(&mut self, association: Option<&Association>) -> Option<Invoked> {
        let is_store = association.is_some_and(|a| a.store().is_some());
        let of_store = is_store && self.operation >= p7::operation::SUMMARIZE;
        let elsewhere = [
            operation::CHANGE_CREDENTIALS,
            operation::CANCEL_DEFERRED_DELIVERY,
            operation::REGISTER,
        ];
        // A message store has no delivery port.
        let controls = self.operation == operation::DELIVERY_CONTROL && !is_store;
        if !of_store && !controls && !elsewhere.contains(&self.operation) {
            return None;
        }
        let Parsing::Operation(argument) = &mut self.parsing else { return None };
        let argument = std::mem::take(argument);
        Some(Invoked { invoke: self.invoke, operation: self.operation, argument })
    }
}

impl Arrivals {
    pub(crate) fn set_unit(&self, cx: &mut Context, id: AssociationId, unit: ArrivingUnit) {
        if let Some(p3) = cx.associations.p3_mut(id) {
            p3.unit = unit;
        }
    }

    pub(crate) fn invoked(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        invoke: i64,
        operation: i64,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let is_open = association.is_open();
        let Some(p3) = association.p3_mut() else { return };
        p3.unit = ArrivingUnit::Invocation;
        let most = if p3.store.is_some() { MAX_PENDING_STORE } else { MAX_PENDING };
        p3.argument_deadline = Some(now.mono + ARGUMENT_TIMEOUT);
        let parsing = if !is_open || p3.unanswered >= most {
            let problem = RESOURCE_LIMITATION;
            cx.request(id, Request::Reject { invoke: Some(invoke), problem });
            Parsing::Ignoring
        } else if operation == operation::MESSAGE_SUBMISSION {
            p3.unanswered += 1;
            let limits = &cx.config.limits;
            let parser = SubmissionParser::default().envelope_limit(limits.envelope);
            Parsing::Submission(parser.content_limit(limits.content))
        } else {
            p3.unanswered += 1;
            Parsing::Operation(Vec::new())
        };
        let spool = cx.issued.next_spool();
        let mut arrival = OpenArrival::new(id, None, parsing, spool);
        (arrival.invoke, arrival.operation) = (invoke, operation);
        arrival.notes = cx.engine.content_notes();
        self.begin_arrival(cx, id, arrival);
    }

    /// Gives the user more time where an argument got on.
    pub(crate) fn set_pace(&mut self, cx: &mut Context, now: Now, id: AssociationId, last: bool) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let receiving = association.receiving();
        let Some(p3) = association.p3_mut() else { return };
        if last {
            p3.argument_deadline = None;
            return;
        }
        let arrival = receiving.and_then(|spool| self.open.get_mut(&spool));
        if let Some(arrival) = arrival.filter(|a| a.head.is_some() && a.notes.length() >= a.paced) {
            arrival.paced = arrival.notes.length() + PACE;
            p3.argument_deadline = Some(now.mono + ARGUMENT_TIMEOUT);
        }
    }

    /// An argument has come, whole. Gives an operation that is not of arrivals.
    pub(crate) fn invocation_complete(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
    ) -> Option<Invoked> {
        let spool = cx.associations.get_mut(&id).and_then(|l| l.take_receiving())?;
        let mailbox = cx.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned));
        let arrival = self.open.get_mut(&spool)?;
        arrival.ended = true;
        if !arrival.is_sound() {
            self.drop_arrival(cx, spool);
            return None;
        }
        if let Err(error) = arrival.finish() {
            self.refuse_arrival(cx, spool, AbortReason::InvalidParameter, &error.to_string());
            self.drop_arrival(cx, spool);
            return None;
        }
        if matches!(arrival.parsing, Parsing::Operation(_)) {
            let mut arrival = self.open.remove(&spool)?;
            let elsewhere = arrival.take_elsewhere(cx.associations.get(&id));
            if elsewhere.is_none() {
                self.operate(cx, now, id, &mut arrival);
            }
            self.free_memory(&mut arrival);
            return elsewhere;
        }
        let keys = match &arrival.head {
            Some(ArrivalHead::Submission(envelope)) => {
                let digest = arrival.notes.digest();
                let originator = mailbox.unwrap_or_default();
                engine::submission_key(&originator, envelope, &digest).into_iter().collect()
            }
            _ => Vec::new(),
        };
        self.secure(cx, now, spool, keys);
        None
    }

    pub(crate) fn commit_submission(
        &mut self,
        cx: &mut Context,
        now: Now,
        mut arrival: OpenArrival,
        envelope: &MessageSubmissionEnvelope,
        seen: &[Option<Bytes>],
    ) {
        let id = arrival.association;
        let Some(mailbox) = cx.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned))
        else {
            self.give_up_arrival(cx, &mut arrival);
            return;
        };
        if let Some(result) = seen.first().and_then(|r| r.as_deref()) {
            // The same submission again: answered as the first time (DESIGN section 6).
            self.give_up_arrival(cx, &mut arrival);
            cx.event(LogLevel::Info, Kind::DuplicateDropped, "resubmission").association(id);
            self.answer(cx, id, arrival.invoke, arrival.operation, Bytes::copy_from_slice(result));
            return;
        }
        let content = arrival.notes.content(Some(&envelope.content_type));
        let outside = arrival.outside(&envelope.extensions, &content.labels);
        let submitted = outside
            .map_or(Ok(()), Err)
            .and_then(|()| cx.engine.submit(now.utc, &mailbox, envelope, &content, &arrival.keys));
        match submitted {
            Err(error) => {
                self.give_up_arrival(cx, &mut arrival);
                self.refuse_submission(cx, id, arrival.invoke, &error);
            }
            Ok(submitted) => {
                let Submitted { accepted, message, result, notes } = submitted;
                let accepted = AcceptedArrival {
                    arrival,
                    accepted,
                    message,
                    result: Some(result),
                    parties: parties::of_submission(envelope),
                    reported: None,
                    notes,
                };
                self.commit_accepted(cx, now, accepted);
            }
        }
    }

    /// Forgets an arrival that comes to no commit.
    fn give_up_arrival(&mut self, cx: &mut Context, arrival: &mut OpenArrival) {
        self.free_memory(arrival);
        cx.commits.keys.release(&arrival.keys);
        if arrival.spool_open {
            cx.output(Output::SpoolDiscard { spool: arrival.spool });
        }
    }

    /// Operations without a content.
    fn operate(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        arrival: &mut OpenArrival,
    ) {
        let Parsing::Operation(argument) = &arrival.parsing else { return };
        let (invoke, operation) = (arrival.invoke, arrival.operation);
        let mailbox = cx
            .associations
            .get(&id)
            .and_then(|l| l.mailbox().map(str::to_owned))
            .unwrap_or_default();
        match operation {
            operation::PROBE_SUBMISSION => {
                let probe =
                    Element::parse(argument).and_then(|e| p3::ProbeSubmissionEnvelope::read(&e));
                let submit = |p: p3::ProbeSubmissionEnvelope| {
                    let outside = arrival.outside(&p.extensions, &ContentLabels::default());
                    let submitted = outside.map_or(Ok(()), Err);
                    let submit = |()| cx.engine.submit_probe(now.utc, &mailbox, &p);
                    (parties::of_probe(&p), submitted.and_then(submit))
                };
                match probe.map(submit) {
                    Err(error) => {
                        cx.event(LogLevel::Warning, Kind::SubmissionRefused, error.to_string())
                            .association(id);
                        self.refuse_malformed(cx, id, invoke, AbortReason::InvalidParameter);
                    }
                    Ok((_, Err(error))) => self.refuse_submission(cx, id, invoke, &error),
                    Ok((parties, Ok(submitted))) => {
                        let batch = self.batch_with_body(cx, arrival, &submitted.accepted);
                        let charge = self.charge(arrival, &batch);
                        let after = AfterCommit::SubmissionResult {
                            spool: None,
                            invoke,
                            operation,
                            result: submitted.result,
                            keys: Vec::new(),
                            message: submitted.message,
                            parties,
                            notes: submitted.notes,
                        };
                        let entries = submitted.accepted.entries;
                        let level = self.level_with_arrival(cx, id);
                        let pending =
                            PendingAnswer::Commit { association: id, entries, after, charge };
                        cx.commit_for(level, batch, pending);
                    }
                }
            }
            _ => {
                self.reject(cx, id, invoke, UNRECOGNIZED_OPERATION);
            }
        }
    }
}
