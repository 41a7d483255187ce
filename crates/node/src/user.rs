//! P3: users that bind, submit, and take deliveries.

use crate::access::{Name, Waiting};
use crate::address_prefix::Origin;
use crate::admission::refused;
use crate::api::{Output, Principal, Secret};
use crate::association::{Association, Phase, Purpose};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::limits::Limit;
use crate::machines::Admission;
use crate::machines::Arrivals;
use crate::machines::Delivery;
use crate::node::Node;
use crate::pending::{AfterCommit, Pending, VerifiedBind};
use crate::receiving::{Arrival, Head, Parsing};
use crate::responder::Refusal;
use crate::slices::Taken;
use base::ber::{Element, Writer};
use base::{AssociationId, EntryId, Now, Precedence};
use bytes::Bytes;
use engine::{NextHop, Record, SubmitError, Submitted};
use osi::api::{AbortReason, Indication, Payload, Problem, RefuseReason, Request};
use osi::profiles::abstract_syntax;
use p1::bind::Credentials;
use p1::p3::{
    self, AccessError, DeliveryQueue, MessageSubmissionEnvelope, MessagesWaiting, MtsBind,
    MtsBindError, ObjectName, SubmissionParser, operation,
};
use scheduler::StartReason;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait for a user to take more of a delivery, or to answer it: another association of the
/// user may be waiting for the message. What his transport takes starts it anew.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest wait for the whole argument of an operation or, in a submission, for what precedes the
/// content; then for each [`PACE`] octets of content. Octets alone do not prolong it: what is held
/// in memory for a user who dawdles is kept from others.
const ARGUMENT_TIMEOUT: Duration = Duration::from_secs(120);
/// See [`ARGUMENT_TIMEOUT`].
const PACE: u64 = 16 << 10;
/// Most invocations of a user that may wait for their answer.
const MAX_PENDING: u32 = 64;
/// Most octets of a result or error parameter of ours to a user's liking.
const MAX_RESULT: usize = 64 << 10;

/// Invoke problems of a ROSE reject (X.229 clause 9).
const UNRECOGNIZED_OPERATION: Problem = Problem { kind: 1, value: 1 };
const MISTYPED_ARGUMENT: Problem = Problem { kind: 1, value: 2 };
const RESOURCE_LIMITATION: Problem = Problem { kind: 1, value: 3 };

/// What data now arriving on a P3 association belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nothing expected, or refused.
    #[default]
    None,
    /// An invocation of the user's: it is the association's arrival.
    Invocation,
    /// The result of our delivery.
    Result { invoke: i64, octets: Vec<u8> },
    /// The error our delivery met.
    Error { invoke: i64, code: i64, octets: Vec<u8> },
}

impl Node {
    pub(crate) fn user_indication(&mut self, now: Now, id: AssociationId, indication: Indication) {
        match indication {
            Indication::Open { bind, syntaxes, .. } => {
                self.admission.user_bind(&mut self.cx, now, id, &bind, &syntaxes)
            }
            Indication::Invoked { invoke, operation } => {
                self.arrivals.invoked(&mut self.cx, now, id, invoke, operation)
            }
            Indication::Returned { invoke } => {
                self.cx.set_unit(id, Unit::Result { invoke, octets: Vec::new() });
            }
            Indication::ReturnedError { invoke, error } => {
                self.cx.set_unit(id, Unit::Error { invoke, code: error, octets: Vec::new() });
            }
            Indication::Data { bytes, last } => self.user_data(now, id, &bytes, last),
            Indication::Rejected { invoke, problem } => {
                let mine = self
                    .cx
                    .associations
                    .get(&id)
                    .and_then(|l| l.sending.as_ref())
                    .map(|s| s.invoke);
                if invoke.is_none() || invoke == mine {
                    self.delivery.delivery_failed(
                        &mut self.cx,
                        now,
                        id,
                        &format!("rejected: {problem:?}"),
                    );
                }
            }
            Indication::NeedContent { offset, max } => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.delivery_deadline = Some(now.mono + DELIVERY_TIMEOUT);
                }
                self.cx.need_content(id, offset, max);
            }
            // The peer heard a reject. What was arriving breaks off; APDUs come one after the other,
            // so no other can be meant.
            Indication::Faulty { detail, .. } => {
                self.break_off(now, id);
                self.cx.event(Level::Warning, Kind::ReceiveFailed, detail).association(id);
            }
            Indication::Released => {
                self.association_over(now, id, Kind::AssociationReleased, "unbound");
            }
            Indication::Aborted { detail, .. } => {
                self.association_over(now, id, Kind::AssociationLost, &detail);
            }
            _ => {}
        }
    }

    /// A user's password was checked.
    pub(crate) fn user_verified(
        &mut self,
        now: Now,
        id: AssociationId,
        mailbox: &str,
        origin: Origin,
        right: bool,
    ) {
        self.admission.access.ended();
        let name = Name::of(mailbox);
        match right {
            true => self.admission.access.succeeded(now.mono, origin, name),
            false => self.admission.access.failed(now.mono, origin, name, true),
        }
        if self.cx.associations.get(&id).is_some_and(|link| link.phase == Phase::Opening) {
            if right {
                self.delivery.user_open(&mut self.cx, now, id, mailbox);
            } else {
                let wrong = format!("wrong password, or no such user: {mailbox}");
                self.cx.refuse_user(now, id, Refusal::Wrong(wrong));
            }
        }
        self.admission.verify_waiting(&mut self.cx, now);
    }

    fn user_data(&mut self, now: Now, id: AssociationId, bytes: &Bytes, last: bool) {
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        match &mut link.unit {
            Unit::None => {}
            Unit::Invocation => {
                self.arrivals.arrival_data(&mut self.cx, id, bytes);
                self.arrivals.set_pace(&mut self.cx, now, id, last);
                if last {
                    self.cx.set_unit(id, Unit::None);
                    self.arrivals.invocation_complete(&mut self.cx, now, id);
                }
            }
            Unit::Result { octets, .. } | Unit::Error { octets, .. } => {
                if octets.len() + bytes.len() <= MAX_RESULT {
                    octets.extend_from_slice(bytes);
                }
                if last {
                    let unit = std::mem::take(&mut link.unit);
                    if let Some(entry) =
                        self.delivery.delivery_answered(&mut self.cx, now, id, unit)
                    {
                        self.outbound.blame.forget(entry);
                    }
                }
            }
        }
    }

    /// The unit that was arriving goes no further: an argument is forgotten, an answer of the
    /// user's is none.
    fn break_off(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        link.argument_deadline = None;
        match std::mem::take(&mut link.unit) {
            Unit::None => {}
            Unit::Invocation => {
                let Some(spool) = link.receiving.take() else { return };
                // What was refused on the way is answered already.
                let waits = self.arrivals.open.get(&spool).is_some_and(Arrival::is_sound);
                if let Some(link) = self.cx.associations.get_mut(&id).filter(|_| waits) {
                    link.unanswered = link.unanswered.saturating_sub(1);
                }
                self.arrivals.drop_arrival(&mut self.cx, spool);
            }
            Unit::Result { .. } | Unit::Error { .. } => {
                self.delivery.delivery_failed(
                    &mut self.cx,
                    now,
                    id,
                    "the answer broke off (X.229 7.5.1)",
                );
            }
        }
    }
}

impl Admission {
    // ----- bind -----------------------------------------------------------------------------------

    pub(crate) fn user_bind(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        bind: &[u8],
        syntaxes: &[base::ber::Oid],
    ) {
        let takes_deliveries = syntaxes.contains(&abstract_syntax::mdse_88());
        let parsed = Element::parse(bind).and_then(|e| MtsBind::read(&e));
        let wrong = match parsed {
            Err(error) => format!("MTSBindArgument: {error}"),
            Ok(bind) if bind.security_context.is_some() => {
                return cx.refuse_user(now, id, Refusal::Context);
            }
            Ok(bind) => match (bind.name, bind.credentials) {
                (
                    ObjectName::UserAgent(name) | ObjectName::MessageStore(name),
                    Credentials::Simple(password),
                ) => {
                    let password = Secret(Bytes::copy_from_slice(password.octets()));
                    let mailbox = engine::canonical(&name.address);
                    return self.queue_verification(
                        cx,
                        now,
                        id,
                        takes_deliveries,
                        mailbox,
                        password,
                    );
                }
                (ObjectName::Mta(name), _) => {
                    format!("initiator-name: MTA {:?} binds over P1, not over P3", name.0)
                }
                _ => "initiator-credentials: only simple ones are supported".to_owned(),
            },
        };
        cx.refuse_user(now, id, Refusal::Wrong(wrong));
    }

    /// A user's password is checked in its turn, unless too many were wrong.
    pub(crate) fn queue_verification(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        takes_deliveries: bool,
        mailbox: String,
        password: Secret,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        if let Purpose::User { takes_deliveries: slot, .. } = &mut link.purpose {
            *slot = takes_deliveries;
        }
        let origin = link.origin.unwrap_or(Origin::Others);
        if !self.access.may_try(now.mono, origin, Name::of(&mailbox)) {
            return cx.refuse_user(now, id, Refusal::TooMany(mailbox));
        }
        // What waits for all others may have to make room.
        if self.access.wait(now.mono, origin, Waiting { link: id, mailbox, password }) {
            cx.connections.checking(id);
        }
        self.verify_waiting(cx, now);
    }

    /// Has the next passwords checked, as many at once as may be.
    pub(crate) fn verify_waiting(&mut self, cx: &mut Context, now: Now) {
        loop {
            let links = &cx.associations;
            let is_there =
                |id: AssociationId| links.get(&id).is_some_and(|l| l.phase == Phase::Opening);
            let next = self.access.next(now.mono, is_there);
            for put_last in self.access.take_put_last() {
                cx.connections.checked(put_last);
            }
            let Some((origin, Waiting { link, mailbox, password })) = next else { return };
            cx.connections.checking(link);
            if !self.access.may_try(now.mono, origin, Name::of(&mailbox)) {
                // Those before it failed.
                self.access.ended();
                cx.refuse_user(now, link, Refusal::TooMany(mailbox));
                continue;
            }
            let bind = VerifiedBind::User { mailbox: mailbox.clone(), origin, stale: false };
            let token = cx.token(Pending::Verify { link, bind });
            let principal = Principal::User(mailbox);
            cx.output(Output::Verify { token, principal, password });
        }
    }

    /// These mailboxes are gone, or have another password: who bound with the old one is aborted,
    /// and nobody binds with it any more.
    pub(crate) fn end_users(&mut self, cx: &mut Context, changed: &[String]) {
        if changed.is_empty() {
            return;
        }
        let names: Vec<Name> = changed.iter().map(|mailbox| Name::of(mailbox)).collect();
        self.access.unprove(&names);
        for pending in cx.commits.pending.values_mut() {
            if let Pending::Verify { bind: VerifiedBind::User { mailbox, stale, .. }, .. } = pending
            {
                *stale |= changed.contains(mailbox);
            }
        }
        let numbers = changed.iter().filter_map(|mailbox| cx.queue.mailbox_number(mailbox));
        let ids: Vec<AssociationId> = numbers.flat_map(|n| cx.connections.users(n)).collect();
        for id in &ids {
            if let Some(link) = cx.associations.get_mut(id) {
                link.transport_error = Some("the user is gone, or has another password".to_owned());
            }
        }
        for id in ids {
            cx.request(id, Request::Abort(AbortReason::PermanentProblem));
        }
    }
}

impl Context {
    /// Refuses a user's bind (X.411 8.1.1), with the errors of `refuse_bind`.
    pub(crate) fn refuse_user(&mut self, now: Now, id: AssociationId, refusal: Refusal) {
        let Some(link) = self.associations.get(&id) else { return };
        let (origin, remote) = (link.origin, link.remote);
        let from = remote.map(|r| format!(" from {r}")).unwrap_or_default();
        let error = match refusal {
            Refusal::Wrong(_) => MtsBindError::AuthenticationError,
            Refusal::Context => MtsBindError::UnacceptableSecurityContext,
            Refusal::TooMany(_) | Refusal::Full(_) => MtsBindError::Busy,
        };
        let (why, told) = self.log_refusal(refusal);
        let line = refused(None, format!("bind{from}: {error} (X.411 8.1.1): {told}"));
        self.hushed(now, why, origin, Some(id), &told, line);
        let mut writer = Writer::new();
        error.write(&mut writer);
        self.begin_refusing(id);
        let bind_error = Some(Bytes::from(writer.into_vec()));
        self.request(id, Request::Refuse { reason: RefuseReason::Bind, bind_error });
    }

    // ----- operations the user invokes --------------------------------------------------------------

    pub(crate) fn set_unit(&mut self, id: AssociationId, unit: Unit) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.unit = unit;
        }
    }

    pub(crate) fn answer(&mut self, id: AssociationId, invoke: i64, operation: i64, result: Bytes) {
        self.answered(id);
        self.request(id, Request::Result { invoke, operation, result: Payload::whole(result) });
    }

    pub(crate) fn answered(&mut self, id: AssociationId) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.unanswered = link.unanswered.saturating_sub(1);
        }
    }

    pub(crate) fn refuse_submission(
        &mut self,
        id: AssociationId,
        invoke: i64,
        error: &SubmitError,
    ) {
        self.event(Level::Warning, Kind::SubmissionRefused, error.to_string()).association(id);
        self.answer_error(id, invoke, &error.access_error());
    }

    pub(crate) fn answer_error(&mut self, id: AssociationId, invoke: i64, error: &AccessError) {
        let mut writer = Writer::new();
        error.write_parameter(&mut writer);
        self.answered(id);
        let parameter = writer.into_vec().into();
        self.request(id, Request::Error { invoke, error: error.code(), parameter });
    }

    pub(crate) fn reject(&mut self, id: AssociationId, invoke: i64, problem: Problem) {
        self.answered(id);
        self.request(id, Request::Reject { invoke: Some(invoke), problem });
    }

    /// An argument that could not be read, is beyond our limits, or could not be stored.
    pub(crate) fn refuse_malformed(&mut self, id: AssociationId, invoke: i64, reason: AbortReason) {
        match reason {
            AbortReason::InvalidParameter => self.reject(id, invoke, MISTYPED_ARGUMENT),
            // What a submission control's permissible-maximum-content-length is for
            // (X.411 8.2.2.2): no other error of message-submission is about size.
            AbortReason::PermanentProblem => {
                self.answer_error(id, invoke, &AccessError::ControlViolated);
            }
            // message-submission has no error for an MTA that cannot for now.
            _ => self.reject(id, invoke, RESOURCE_LIMITATION),
        }
    }

    // ----- deliveries -----------------------------------------------------------------------------

    /// A user has bound.
    pub(crate) fn note_user(&mut self, id: AssociationId) {
        let mailbox = self.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned));
        if let Some(mailbox) = mailbox {
            let number = self.queue.mailbox(&mailbox);
            self.connections.user(id, number);
        }
    }

    pub(crate) fn delivery_confirmed(&mut self, now: Now, id: AssociationId) -> Option<EntryId> {
        let sending = self.associations.get_mut(&id).and_then(|l| l.sending.as_mut())?;
        sending.confirmed = true;
        let (entry, precedence) = (sending.entry, sending.precedence);
        let record = sending.record.take()?;
        let time = sending.delivery_time.unwrap_or(now.utc);
        // Who it is, for each recipient here has an entry of its own.
        let to = match &record.next_hop {
            NextHop::Mailbox(mailbox) => format!("to {mailbox}"),
            NextHop::Peer(_) => String::new(),
        };
        self.event(Level::Info, Kind::Delivered, to)
            .association(id)
            .message(record.message.clone())
            .entry(entry)
            .precedence(precedence)
            .bytes(record.body.map(|_| record.size));
        let concluded = self.engine.delivered(now.utc, time, &record);
        self.conclude(id, entry, &record.message, concluded);
        Some(entry)
    }

    /// Forgets an entry, and queues what comes of it.
    pub(crate) fn conclude(
        &mut self,
        id: AssociationId,
        entry: EntryId,
        message: &str,
        concluded: engine::Concluded,
    ) {
        self.log_notes(Some(id), None, message, &concluded.notes);
        let (mut batch, bodies) = self.queue.forget(entry);
        batch.extend(engine::put_entries(&concluded.entries));
        let after = AfterCommit::Sent { batch: batch.clone(), bodies };
        let entries = concluded.entries;
        let level = self.level_of(id, None);
        self.commit_for(level, batch, Pending::Commit { link: id, entries, after, charge: None });
    }

    /// The user's error is one that no repetition helps: the originator is told.
    pub(crate) fn delivery_refused(
        &mut self,
        now: Now,
        id: AssociationId,
        code: i64,
        why: &str,
    ) -> Option<EntryId> {
        let (reason, diagnostic) = engine::permanent(code)?;
        let sending = self.associations.get_mut(&id).and_then(|l| l.sending.as_mut())?;
        let record = sending.record.take()?;
        sending.confirmed = true;
        let entry = sending.entry;
        self.event(Level::Warning, Kind::DeliveryFailed, format!("for good: {why}"))
            .association(id)
            .message(record.message.clone())
            .entry(entry)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size));
        let concluded = self.engine.undeliverable(now.utc, &record, reason, diagnostic, why);
        self.conclude(id, entry, &record.message, concluded);
        Some(entry)
    }
}

impl Delivery {
    /// The user's password is right.
    pub(crate) fn user_open(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        mailbox: &str,
    ) {
        let number = cx.queue.mailbox(mailbox);
        if cx.connections.users(number).count() >= cx.config.limits.associations_per_user {
            return cx.refuse_user(now, id, Refusal::Full(Limit::PerUser));
        }
        let takes =
            |l: &Association| matches!(l.purpose, Purpose::User { takes_deliveries: true, .. });
        if cx.associations.get(&id).is_some_and(takes) {
            self.end_delivery_waits(cx, now, number);
        }
        let waiting = self.messages_waiting(cx, number);
        // responder-credentials must be there; users authenticate us by the connection they made.
        let name = ObjectName::Mta(cx.config.mta.clone());
        let mut result = MtsBind::new(name, Credentials::simple(""));
        result.messages_waiting = Some(waiting);
        let mut writer = Writer::new();
        result.write(&mut writer);
        if let Some(link) = cx.associations.get_mut(&id)
            && let Purpose::User { mailbox: slot, .. } = &mut link.purpose
        {
            *slot = Some(mailbox.to_owned());
        }
        cx.request(id, Request::Accept { bind: writer.into_vec().into() });
        cx.mark_open(now, id, &format!("user {mailbox}"));
    }

    /// How many deliveries wait, by the three grades of delivery (X.411 8.1.1.1.2.1): for this
    /// association, or for another try; not for a time or an operator, for who waits for those waits
    /// in vain.
    pub(crate) fn messages_waiting(&self, cx: &Context, mailbox: u32) -> MessagesWaiting {
        let status = cx.queue.scheduler.mailbox_status(mailbox);
        let mut failed = BTreeMap::<Precedence, u64>::new();
        self.failed_and_waiting(cx, mailbox)
            .for_each(|level| *failed.entry(level).or_default() += 1);
        let queue = |levels: [Precedence; 2]| DeliveryQueue {
            messages: levels
                .iter()
                .map(|p| {
                    let level = status.level(*p);
                    let others = (level.delayed + level.operator)
                        .saturating_sub(failed.get(p).copied().unwrap_or_default());
                    level.queued.saturating_sub(others)
                })
                .fold(0, |sum: i64, n| sum.saturating_add_unsigned(n)),
            octets: None,
        };
        MessagesWaiting {
            urgent: queue([Precedence::Flash, Precedence::Override]),
            normal: queue([Precedence::Priority, Precedence::Immediate]),
            non_urgent: queue([Precedence::Deferred, Precedence::Routine]),
        }
    }

    /// Gives every user of this mailbox that takes deliveries and waits for none the next of it.
    pub(crate) fn dispatch_mailbox(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        let takes = |link: &Association| {
            let free = link.phase == Phase::Open && link.sending.is_none() && link.drain.is_none();
            free && matches!(&link.purpose, Purpose::User { takes_deliveries: true, .. })
        };
        let users = cx.connections.users(mailbox);
        let free: Vec<AssociationId> =
            users.filter(|id| cx.associations.get(id).is_some_and(takes)).collect();
        for id in free {
            let next = cx.queue.scheduler.next_for_mailbox(now.mono, mailbox);
            let Some(entry) = next else { return };
            if let Some(record) = cx.take_up(id, entry, StartReason::default()) {
                self.start_delivery(cx, now, id, record);
            }
        }
    }

    /// The record of an entry that is to be delivered to this user.
    pub(crate) fn start_delivery(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        record: Record,
    ) {
        let Some(delivery) = cx.engine.delivery_argument(now.utc, &record) else {
            self.delivery_failed(cx, now, id, "the queue holds what cannot be delivered");
            return;
        };
        let Some(link) = cx.associations.get_mut(&id) else { return };
        let invoke = link.next_invoke;
        link.next_invoke += 1;
        link.delivery_deadline = Some(now.mono + DELIVERY_TIMEOUT);
        if let Some(sending) = &mut link.sending {
            sending.invoke = invoke;
            sending.content_length = delivery.payload.content_length;
            sending.message.clone_from(&record.message);
            sending.delivery_time = Some(now.utc);
            sending.record = Some(record);
        }
        let argument = Payload {
            head: delivery.payload.head,
            content_length: delivery.payload.content_length,
            tail: delivery.payload.tail,
        };
        let request = Request::Invoke {
            invoke,
            syntax: abstract_syntax::mdse_88(),
            operation: delivery.operation,
            argument,
        };
        cx.request(id, request);
    }

    /// The user answered a delivery. Gives the entry that is done with, if it is.
    pub(crate) fn delivery_answered(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        unit: Unit,
    ) -> Option<EntryId> {
        if let Some(link) = cx.associations.get_mut(&id) {
            link.delivery_deadline = None;
        }
        let mine = cx.associations.get(&id).and_then(|l| l.sending.as_ref()).map(|s| s.invoke);
        match unit {
            Unit::Result { invoke, .. } if Some(invoke) == mine => cx.delivery_confirmed(now, id),
            Unit::Error { invoke, code, octets } if Some(invoke) == mine => {
                let parameter = Element::parse(&octets).ok();
                let name = AccessError::read(code, parameter.as_ref()).map(|e| e.name());
                let text = name.unwrap_or("an error with a malformed parameter");
                let why = format!("error {code}: {text}");
                let refused = cx.delivery_refused(now, id, code, &why);
                if refused.is_none() {
                    self.delivery_failed(cx, now, id, &why);
                }
                refused
            }
            _ => None,
        }
    }

    pub(crate) fn delivery_failed(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        why: &str,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        link.idle_since = now.mono;
        link.delivery_deadline = None;
        let Some(sending) = link.sending.take() else { return };
        let (entry, bytes) = (sending.entry, sending.bytes());
        cx.event(Level::Warning, Kind::DeliveryFailed, why)
            .association(id)
            .message(sending.message)
            .entry(entry)
            .precedence(sending.precedence)
            .bytes(bytes);
        let seed = cx.rng.next_u64();
        cx.queue.scheduler.retry(now.mono, entry, seed);
        self.waits_for_bind(cx, entry);
    }
}

impl Arrivals {
    pub(crate) fn invoked(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        invoke: i64,
        operation: i64,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        link.unit = Unit::Invocation;
        link.argument_deadline = Some(now.mono + ARGUMENT_TIMEOUT);
        let parsing = if link.phase != Phase::Open || link.unanswered >= MAX_PENDING {
            let problem = RESOURCE_LIMITATION;
            cx.request(id, Request::Reject { invoke: Some(invoke), problem });
            Parsing::Ignoring
        } else if operation == operation::MESSAGE_SUBMISSION {
            link.unanswered += 1;
            let most = cx.config.limits.envelope;
            Parsing::Submission(SubmissionParser::default().envelope_limit(most))
        } else {
            link.unanswered += 1;
            Parsing::Operation(Vec::new())
        };
        let peek = cx.config.classify.peek_content;
        let spool = cx.issued.next_spool();
        let mut arrival = Arrival::new(id, None, parsing, spool);
        (arrival.invoke, arrival.operation, arrival.peek) = (invoke, operation, peek);
        self.begin_arrival(cx, id, arrival);
    }

    /// Gives the user more time where an argument got on.
    pub(crate) fn set_pace(&mut self, cx: &mut Context, now: Now, id: AssociationId, last: bool) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        if last {
            link.argument_deadline = None;
            return;
        }
        let arrival = link.receiving.and_then(|spool| self.open.get_mut(&spool));
        if let Some(arrival) = arrival.filter(|a| a.head.is_some() && a.length >= a.paced) {
            arrival.paced = arrival.length + PACE;
            link.argument_deadline = Some(now.mono + ARGUMENT_TIMEOUT);
        }
    }

    pub(crate) fn invocation_complete(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(spool) = cx.associations.get_mut(&id).and_then(|l| l.receiving.take()) else {
            return;
        };
        let mailbox = cx.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned));
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.ended = true;
        if !arrival.is_sound() {
            self.drop_arrival(cx, spool);
            return;
        }
        if let Err(error) = arrival.finish() {
            self.refuse_arrival(cx, spool, AbortReason::InvalidParameter, &error.to_string());
            self.drop_arrival(cx, spool);
            return;
        }
        if matches!(arrival.parsing, Parsing::Operation(_)) {
            if let Some(mut arrival) = self.open.remove(&spool) {
                self.operate(cx, now, id, &mut arrival);
                self.free_memory(&mut arrival);
            }
            return;
        }
        let keys = match &arrival.head {
            Some(Head::Submission(envelope)) => {
                let digest = arrival.content().digest;
                let originator = mailbox.unwrap_or_default();
                engine::submission_key(&originator, envelope, &digest).into_iter().collect()
            }
            _ => Vec::new(),
        };
        self.secure(cx, now, spool, keys);
    }

    pub(crate) fn commit_submission(
        &mut self,
        cx: &mut Context,
        now: Now,
        mut arrival: Arrival,
        envelope: &MessageSubmissionEnvelope,
        seen: &[Option<Bytes>],
    ) {
        let id = arrival.link;
        let Some(mailbox) = cx.associations.get(&id).and_then(|l| l.mailbox().map(str::to_owned))
        else {
            self.give_up_arrival(cx, &mut arrival);
            return;
        };
        if let Some(result) = seen.first().and_then(|r| r.as_deref()) {
            // The same submission again: answered as the first time (DESIGN section 6).
            self.give_up_arrival(cx, &mut arrival);
            cx.event(Level::Info, Kind::DuplicateDropped, "resubmission").association(id);
            cx.answer(id, arrival.invoke, arrival.operation, Bytes::copy_from_slice(result));
            return;
        }
        let content = arrival.content();
        match cx.engine.submit(now.utc, &mailbox, envelope, &content, &arrival.keys) {
            Err(error) => {
                self.give_up_arrival(cx, &mut arrival);
                cx.refuse_submission(id, arrival.invoke, &error);
            }
            Ok(submitted) => {
                let Submitted { accepted, message, result, notes } = submitted;
                self.commit_taken(
                    cx,
                    now,
                    Taken { arrival, accepted, message, result: Some(result), notes },
                );
            }
        }
    }

    /// Forgets an arrival that comes to no commit.
    pub(crate) fn give_up_arrival(&mut self, cx: &mut Context, arrival: &mut Arrival) {
        self.free_memory(arrival);
        cx.keys.release_keys(&arrival.keys);
        if arrival.spool_open {
            cx.output(Output::SpoolDiscard { spool: arrival.spool });
        }
    }

    /// Operations without a content.
    pub(crate) fn operate(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        arrival: &mut Arrival,
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
                match probe.map(|p| cx.engine.submit_probe(now.utc, &mailbox, &p)) {
                    Err(error) => {
                        cx.event(Level::Warning, Kind::SubmissionRefused, error.to_string())
                            .association(id);
                        cx.refuse_malformed(id, invoke, AbortReason::InvalidParameter);
                    }
                    Ok(Err(error)) => cx.refuse_submission(id, invoke, &error),
                    Ok(Ok(submitted)) => {
                        let batch = cx.batch_with_body(arrival, &submitted.accepted);
                        let charge = self.charge(arrival, &batch);
                        let after = AfterCommit::SubmissionResult {
                            spool: None,
                            invoke,
                            operation,
                            result: submitted.result,
                            keys: Vec::new(),
                            message: submitted.message,
                            notes: submitted.notes,
                        };
                        let entries = submitted.accepted.entries;
                        let level = self.level_with_arrival(cx, id);
                        let pending = Pending::Commit { link: id, entries, after, charge };
                        cx.commit_for(level, batch, pending);
                    }
                }
            }
            operation::DELIVERY_CONTROL => {
                // Controls would hold deliveries back; nothing is held, so none waits for them.
                cx.answer_error(id, invoke, &AccessError::ControlViolatesRegistration);
            }
            operation::CANCEL_DEFERRED_DELIVERY => {
                cx.answer_error(id, invoke, &AccessError::DeferredDeliveryCancellationRejected);
            }
            operation::REGISTER => cx.answer_error(id, invoke, &AccessError::RegisterRejected),
            operation::CHANGE_CREDENTIALS => {
                cx.answer_error(id, invoke, &AccessError::NewCredentialsUnacceptable);
            }
            _ => {
                cx.reject(id, invoke, UNRECOGNIZED_OPERATION);
            }
        }
    }
}
