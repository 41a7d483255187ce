//! One copy per next hop, each responsible for its own recipients only (X.411 14.3.6).

use crate::classify::Policy;
use crate::critical::{Step, unsupported};
use crate::outcome::{Accepted, NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::report::Outcome;
use crate::subject::{Carried, Subject};
use crate::{Content, Engine};
use base::{Precedence, Utc};
use p1::envelope::{PerRecipientFields, ReportType};
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use std::collections::BTreeMap;

/// Why a recipient cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub reason: NonDeliveryReason,
    pub diagnostic: Diagnostic,
    /// In words, for the report's supplementary information and the log.
    pub text: String,
}

/// What becomes of a recipient we are responsible for.
pub(crate) type Fate = Result<NextHop, Failure>;

impl Engine {
    /// The fate of one recipient.
    fn fate(&self, message: &Subject<'_>, recipient: &PerRecipientFields) -> Fate {
        let hop = self.resolve(&recipient.recipient.address)?;
        let step = match hop {
            NextHop::Peer(_) => Step::Transfer,
            NextHop::Mailbox(_) => Step::Delivery,
        };
        let critical = unsupported(step, message.extensions)
            .or_else(|| unsupported(step, &recipient.extensions))
            // Who delivers has transferred too.
            .or_else(|| unsupported(Step::Transfer, message.extensions))
            .or_else(|| unsupported(Step::Transfer, &recipient.extensions));
        match critical {
            None => Ok(hop),
            Some(name) => Err(Failure {
                reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
                diagnostic: Diagnostic::UNSUPPORTED_CRITICAL_FUNCTION,
                text: format!("unsupported critical extension {name}"),
            }),
        }
    }

    /// The fate of each recipient, in order; `None` for those others are responsible for.
    pub(crate) fn fates(&self, message: &Subject<'_>, looped: bool) -> Vec<Option<Fate>> {
        let fate = |recipient: &PerRecipientFields| {
            if looped {
                Err(Failure {
                    reason: NonDeliveryReason::TRANSFER_FAILURE,
                    diagnostic: Diagnostic::LOOP_DETECTED,
                    text: "the trace shows that this was here before".to_owned(),
                })
            } else {
                self.fate(message, recipient)
            }
        };
        let responsible = |r: &&PerRecipientFields| r.indicators.responsible();
        message.recipients.iter().map(|r| Some(r).filter(responsible).map(fate)).collect()
    }

    /// Everything that becomes of a message or probe whose trace is not ours yet: copies for the
    /// next hops, and reports of what has failed or, for a probe, would succeed.
    pub(crate) fn distribute(
        &mut self,
        now: Utc,
        mut carried: Carried,
        content: Option<&Content>,
        origin: Origin,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        let looped = {
            let subject = carried.subject();
            self.loops(subject.trace, subject.extensions)
        };
        let held = origin.held_until(now, &carried);
        let (trace, extensions) = carried.traces_mut();
        self.add_trace(now, held, trace, extensions);

        let precedence = level(&self.policy, &carried, content);
        let mut hops: BTreeMap<NextHop, Vec<usize>> = BTreeMap::new();
        let mut outcomes = Vec::new();
        for (index, fate) in self.fates(&carried.subject(), looped).into_iter().enumerate() {
            match (fate, &carried) {
                (None, _) => {}
                (Some(Ok(NextHop::Mailbox(_))), Carried::Probe(_)) => {
                    let report = ReportType::Delivery { time: Time::from(now), mts_user: 0 };
                    outcomes.push(Outcome { index, report, text: None });
                }
                (Some(Ok(hop)), _) => hops.entry(hop).or_default().push(index),
                (Some(Err(failure)), _) => {
                    notes.push(Note::new(NoteKind::NonDelivery, failure.text.clone()));
                    outcomes.push(Outcome::failed(index, &failure));
                }
            }
        }
        self.queue(now, &carried, content, precedence, held, hops, outcomes, notes)
    }

    #[expect(clippy::too_many_arguments, reason = "one call; the parts of one decision")]
    fn queue(
        &mut self,
        now: Utc,
        carried: &Carried,
        content: Option<&Content>,
        precedence: Precedence,
        held: Option<Utc>,
        hops: BTreeMap<NextHop, Vec<usize>>,
        outcomes: Vec<Outcome>,
        notes: &mut Vec<Note>,
    ) -> Accepted {
        let body = match (carried, hops.is_empty()) {
            (Carried::Message(_), false) => Some(self.ids.body()),
            _ => None,
        };
        let message = carried.subject().identifier.to_string();
        let first_arrival = carried.subject().first_arrival(now);
        let mut accepted = Accepted { body, ..Accepted::default() };
        for (next_hop, mine) in hops {
            let not_before = held.or_else(|| deferred(now, carried, &next_hop));
            let record = Record {
                next_hop,
                message: message.clone(),
                precedence,
                accepted: now,
                first_arrival,
                not_before,
                size: content.map_or(0, |c| c.length),
                body,
                head: copy_for(carried, &mine).into_head(),
            };
            accepted.entries.push(NewEntry { id: self.ids.entry(), precedence, record });
        }
        let report = self.report(now, &carried.subject(), precedence, outcomes, notes);
        accepted.entries.extend(report);
        accepted
    }
}

/// Where something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From a user: deferral is ours to perform (X.411 8.2.1.1.1.9).
    Submission,
    /// From a peer.
    Transfer,
}

impl Origin {
    fn held_until(self, now: Utc, carried: &Carried) -> Option<Utc> {
        match self {
            Origin::Submission => deferral(now, carried),
            Origin::Transfer => None,
        }
    }
}

/// deferred-delivery-time, where it is still to come.
fn deferral(now: Utc, carried: &Carried) -> Option<Utc> {
    match carried {
        Carried::Message(e) => {
            e.deferred_delivery_time.as_ref().and_then(|t| t.utc).filter(|t| *t > now)
        }
        Carried::Probe(_) => None,
    }
}

/// Who delivers holds what nobody held before; a relay does not.
fn deferred(now: Utc, carried: &Carried, hop: &NextHop) -> Option<Utc> {
    match hop {
        NextHop::Mailbox(_) => deferral(now, carried),
        NextHop::Peer(_) => None,
    }
}

fn level(policy: &Policy, carried: &Carried, content: Option<&Content>) -> Precedence {
    match carried {
        Carried::Message(e) => {
            let prefix = content.map(|c| c.prefix.clone()).unwrap_or_default();
            policy.message(e.priority, &e.extensions, &e.content_type, &prefix)
        }
        Carried::Probe(_) => policy.probe(),
    }
}

/// The same with responsibility for these recipients only.
fn copy_for(carried: &Carried, mine: &[usize]) -> Carried {
    let mut copy = carried.clone();
    for (index, recipient) in copy.recipients_mut().iter_mut().enumerate() {
        let responsible = mine.binary_search(&index).is_ok();
        recipient.indicators = recipient.indicators.with_responsibility(responsible);
    }
    copy
}
