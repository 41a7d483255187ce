//! The remote operation protocol machine (X.229 clause 7) and the bind and unbind around it.

use super::incoming::{Found, Incoming};
use super::pdu::{self, problem};
use super::table::{Action, Event, State, cell};
use crate::acse::{self, diagnostic};
use crate::api::{self, Config, Dialogue, Indication, Payload, Problem, RefuseReason, Role};
use crate::presentation::service::{self as presentation, Value};
use crate::rtse::{Piece, Pulled, pdu as bind};
use crate::session::service::{ConnectionReference, requirements};
use crate::shown;
use crate::stack::Below;
use base::ber::Oid;
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most invocations of the peer that await our answer.
const MAX_INVOCATIONS: usize = 256;
/// Most APDUs that wait behind the one being sent.
const MAX_QUEUED: usize = 1024;
/// Octets of the longest RORJ: header, invoke identifier, problem.
const MAX_REJECT: usize = 2 + 10 + 3;

/// An APDU to be sent.
#[derive(Debug)]
struct Outgoing {
    context: i64,
    /// The invocation it makes, whose answer is awaited once it is sent.
    invoke: Option<i64>,
    octets: Pulled,
    /// Offset of the next octet; the P-DATA is begun once the first was asked for.
    next: u64,
    begun: bool,
    waiting: Option<usize>,
}

/// The machine. It calls ACSE and presentation below; what it tells the user is taken from `up`.
#[derive(Debug)]
pub(crate) struct Rose {
    state: State,
    role: Role,
    /// Abstract syntax of the bind.
    syntax: Oid,
    reference: ConnectionReference,
    queue: VecDeque<Outgoing>,
    /// Release once the queue is empty.
    release_due: bool,
    /// Our invocations that await an answer, and when the wait for it ends, once they are sent.
    ours: BTreeMap<i64, Option<Instant>>,
    /// The peer's, with their contexts.
    theirs: BTreeMap<i64, i64>,
    incoming: Option<Incoming>,
    /// The APDU that is arriving was rejected: its data is dropped.
    mute: bool,
    operation_timeout: Duration,
    /// The last octet of an invocation was handed down since [`Rose::sends`] was asked.
    invoked: bool,
    /// When to give up an APDU that is being sent or received and stands still.
    idle: Option<Instant>,
    pub(crate) up: VecDeque<Indication>,
}

impl Rose {
    pub(crate) fn new(config: &Config, role: Role) -> Rose {
        Rose {
            state: State::Sta00,
            role,
            syntax: config.bind_syntax.clone(),
            reference: config.reference.clone(),
            queue: VecDeque::new(),
            release_due: false,
            ours: BTreeMap::new(),
            theirs: BTreeMap::new(),
            incoming: None,
            mute: false,
            operation_timeout: config.operation_timeout,
            invoked: false,
            idle: None,
            up: VecDeque::new(),
        }
    }

    /// The state and what is awaited besides, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> String {
        let answer = if self.ours.is_empty() { "" } else { " answer" };
        let sends = if self.queue.is_empty() { "" } else { " sends" };
        let hears = if self.incoming.is_none() { "" } else { " hears" };
        format!("rose {:?}{answer}{sends}{hears}", self.state)
    }

    fn step(&mut self, event: Event) -> (Action, String) {
        let before = self.state;
        let found = cell(before, event);
        self.state = found.next;
        (found.action, format!("rose: {event:?} in {before:?} ({})", found.clause))
    }

    fn context(&self, below: &Below) -> i64 {
        below.contexts().of(&self.syntax).unwrap_or_default()
    }

    /// When to call [`Rose::tick`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.ours.values().copied().chain([self.idle]).flatten().min()
    }

    /// The deadline passed.
    pub(crate) fn tick(&mut self, now: Instant, below: &mut Below) {
        let late = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        let invoke = self.ours.iter().find(|(_, at)| late(at)).map(|(invoke, _)| *invoke);
        let why = match (invoke, late(&self.idle)) {
            (Some(invoke), _) => format!("invocation {invoke} was not answered"),
            (None, true) if self.incoming.is_some() => {
                "an APDU of the peer stands still".to_owned()
            }
            (None, true) => "the peer takes nothing of an APDU".to_owned(),
            (None, false) => return,
        };
        if self.enter(below, Event::Timeout, &why).is_none() {
            self.stop_timers();
        }
    }

    /// Octets held on behalf of the peer, the content pulled for an answer not counted.
    pub(crate) fn held(&self) -> usize {
        let queued: usize =
            self.queue.iter().map(|o| size_of::<Outgoing>() + o.octets.held()).sum();
        queued + self.theirs.len() * size_of::<(i64, i64)>()
    }

    /// Most octets [`Rose::held`] ever gives where the heads of our own user's answers are empty.
    pub(crate) const MAX_HELD: usize = MAX_QUEUED * (size_of::<Outgoing>() + MAX_REJECT)
        + MAX_INVOCATIONS * size_of::<(i64, i64)>();

    /// Runs the timers while the peer is awaited; `progress` starts the wait for octets anew.
    fn rearm(&mut self, now: Instant, progress: bool) {
        if self.state == State::Sta00 {
            return self.stop_timers();
        }
        let at = now + self.operation_timeout;
        for (invoke, wait) in &mut self.ours {
            let queued = self.queue.iter().any(|o| o.invoke == Some(*invoke));
            if !queued && wait.is_none() {
                *wait = Some(at);
            }
        }
        if self.incoming.is_none() && self.queue.is_empty() {
            self.idle = None;
        } else if progress || self.idle.is_none() {
            self.idle = Some(at);
        }
    }

    /// The peer's transport took octets of ours; whether of an invocation. What is queued gets on
    /// with any; the wait for an answer goes on only with those of what is to be answered, or a peer
    /// could put it off by reading something else.
    pub(crate) fn peer_took(&mut self, now: Instant, invocation: bool) {
        let at = now + self.operation_timeout;
        if !self.queue.is_empty() && self.idle.is_some() {
            self.idle = Some(at);
        }
        if invocation {
            self.ours.values_mut().flatten().for_each(|wait| *wait = at);
        }
    }

    /// Whether what was handed down since the last time belongs to an invocation.
    pub(crate) fn sends(&mut self) -> bool {
        let now = self.queue.front().is_some_and(|first| first.begun && first.invoke.is_some());
        std::mem::take(&mut self.invoked) || now
    }

    /// Whether the peer is to take what is queued, or to answer.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.state != State::Sta00 && !(self.ours.is_empty() && self.queue.is_empty())
    }

    fn stop_timers(&mut self) {
        self.idle = None;
        self.ours.clear();
    }

    /// A request of the user.
    pub(crate) fn request(&mut self, now: Instant, below: &mut Below, request: api::Request) {
        let Some(event) = event_of(&request) else {
            return self.abort(below, "rose: a request of RTSE (X.218 clause 8)".to_owned());
        };
        match self.step(event) {
            (Action::Ignore, _) => {}
            (Action::Misuse, detail) => self.abort(below, detail),
            (action, _) => self.perform(below, action, request),
        }
        self.pump(below);
        self.rearm(now, event == Event::Content);
    }

    fn perform(&mut self, below: &mut Below, action: Action, request: api::Request) {
        use api::Request as R;
        match (action, request) {
            (Action::SendBind, R::Open { bind: bare }) => {
                let octets = bind::wrap_argument(&bare);
                below.associate(acse::Request::Associate {
                    reference: self.reference.clone(),
                    requirements: requirements::DUPLEX,
                    value: Value { context: self.context(below), octets },
                });
            }
            (Action::SendBindResult, R::Accept { bind: bare }) => {
                let octets = bind::wrap_result(&bare);
                let value = Value { context: self.context(below), octets };
                let requirements = requirements::DUPLEX;
                below.associate(acse::Request::Accept { requirements, value });
            }
            (Action::SendBindError, R::Refuse { reason, bind_error }) => {
                self.refuse(below, reason, bind_error.as_ref());
            }
            (Action::SendApdu, R::Invoke { invoke, syntax, operation, argument }) => {
                self.invoke(below, invoke, &syntax, operation, &argument);
            }
            (Action::SendApdu, R::Result { invoke, operation, result }) => {
                let head = pdu::result(invoke, operation, result.length());
                self.answer(below, invoke, &head, &result);
            }
            (Action::SendApdu, R::Error { invoke, error, parameter }) => {
                let head = pdu::error(invoke, error, parameter.len() as u64);
                self.answer(below, invoke, &head, &Payload::whole(parameter));
            }
            (Action::SendApdu, R::Reject { invoke, problem }) => {
                self.send_reject(below, invoke, problem);
            }
            (Action::SendContent, R::Content(bytes)) => self.content(below, bytes),
            (Action::AbortProvider, R::ContentFailed) => {
                self.abort(below, "rose: the content cannot be read".to_owned());
            }
            (Action::Release, _) => self.release_due = true,
            (Action::Abort, R::Abort(reason)) => {
                self.abort(below, format!("rose: aborted by us, {reason:?}"));
            }
            // No cell asks for anything else on a request.
            _ => {}
        }
    }

    fn refuse(&mut self, below: &mut Below, reason: RefuseReason, bind_error: Option<&Bytes>) {
        let context = self.context(below);
        let value = bind_error.map(|bare| Value { context, octets: bind::wrap_error(bare) });
        below.associate(acse::Request::Reject {
            transient: reason == RefuseReason::Busy && value.is_none(),
            diagnostic: match reason {
                RefuseReason::ApplicationContext => diagnostic::APPLICATION_CONTEXT,
                _ => diagnostic::NO_REASON,
            },
            value,
        });
        let detail = format!("rose: refused by us, {reason:?} (X.219 9.2)");
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    fn invoke(
        &mut self,
        below: &mut Below,
        invoke: i64,
        syntax: &Oid,
        operation: i64,
        argument: &Payload,
    ) {
        let problem = match below.contexts().of(syntax) {
            _ if self.ours.contains_key(&invoke) => problem::DUPLICATE_INVOCATION,
            // The peer cannot know an operation whose context it did not accept.
            None => problem::UNRECOGNISED_OPERATION,
            Some(context) => {
                self.ours.insert(invoke, None);
                let head = pdu::invoke(invoke, operation, argument.length());
                return self.enqueue(below, context, Some(invoke), &head, argument);
            }
        };
        self.up.push_back(Indication::Rejected { invoke: Some(invoke), problem });
    }

    /// A result or an error, in the context of its invocation.
    fn answer(&mut self, below: &mut Below, invoke: i64, head: &[u8], payload: &Payload) {
        match self.theirs.remove(&invoke) {
            Some(context) => self.enqueue(below, context, None, head, payload),
            None => self.abort(below, format!("rose: an answer to no invocation, {invoke}")),
        }
    }

    fn send_reject(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        let known = match (problem.kind, invoke) {
            (0 | 1, Some(invoke)) => self.theirs.remove(&invoke),
            _ => None,
        };
        let arriving = self.incoming.as_ref().map(|i| i.context);
        let context = known.or(arriving).unwrap_or_else(|| self.context(below));
        let head = pdu::reject(invoke, problem);
        self.enqueue(below, context, None, &head, &Payload::default());
    }

    fn enqueue(
        &mut self,
        below: &mut Below,
        context: i64,
        invoke: Option<i64>,
        head: &[u8],
        payload: &Payload,
    ) {
        if self.queue.len() >= MAX_QUEUED {
            let detail = format!("rose: more than {MAX_QUEUED} APDUs wait to be sent");
            return self.abort(below, detail);
        }
        let octets = Pulled::new(head, payload, &[]);
        let (next, begun, waiting) = (0, false, None);
        self.queue.push_back(Outgoing { context, invoke, octets, next, begun, waiting });
    }

    /// Sends as far as the content at hand allows.
    fn pump(&mut self, below: &mut Below) {
        while matches!(self.state, State::Sta10 | State::Sta20) {
            let Some(first) = self.queue.front_mut() else { break };
            if first.waiting.is_some() {
                return;
            }
            let length = first.octets.length();
            if !std::mem::replace(&mut first.begun, true) {
                let (context, length) = (first.context, Some(length));
                below.present(presentation::Request::DataStart { context, length });
            }
            match first.octets.piece(first.next, length) {
                Piece::Ready(bytes) => self.send(below, bytes),
                Piece::Pull { offset, max } => {
                    first.waiting = Some(max);
                    self.up.push_back(Indication::NeedContent { offset, max });
                    return;
                }
            }
        }
        if self.queue.is_empty() && std::mem::take(&mut self.release_due) {
            below.associate(acse::Request::Release);
        }
    }

    fn send(&mut self, below: &mut Below, bytes: Bytes) {
        let Some(first) = self.queue.front_mut() else { return };
        first.next += bytes.len() as u64;
        let last = first.next >= first.octets.length();
        below.present(presentation::Request::Data { bytes, last });
        if last {
            self.invoked |= self.queue.pop_front().is_some_and(|sent| sent.invoke.is_some());
        }
    }

    fn content(&mut self, below: &mut Below, bytes: Bytes) {
        let waiting = self.queue.front_mut().and_then(|o| o.waiting.take());
        match waiting {
            None => {}
            Some(max) if bytes.is_empty() || bytes.len() > max => {
                self.abort(below, "rose: the content given has not 1 to max octets".to_owned());
            }
            Some(_) => self.send(below, bytes),
        }
    }

    /// Aborts the association and tells the user.
    fn abort(&mut self, below: &mut Below, detail: String) {
        self.state = State::Sta00;
        self.queue.clear();
        below.associate(acse::Request::Abort(None));
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// Steps on an event from below; the action where there is something to do.
    fn enter(&mut self, below: &mut Below, event: Event, why: &str) -> Option<Action> {
        match self.step(event) {
            (Action::Ignore | Action::Misuse, _) => None,
            (Action::AbortProvider, detail) => {
                self.abort(below, if why.is_empty() { detail } else { format!("{detail}: {why}") });
                None
            }
            (action, _) => Some(action),
        }
    }

    /// Something from ACSE.
    pub(crate) fn association(&mut self, below: &mut Below, indication: acse::Indication) {
        use acse::Indication as I;
        match indication {
            I::Associate { .. } => self.associate(below, indication),
            I::Accepted(value) => {
                let value = value.filter(|v| v.context == self.context(below));
                match value.map(|v| bind::unwrap_result(&v.octets)) {
                    Some(Ok(bind)) => {
                        if self.enter(below, Event::BindCnf, "").is_some() {
                            let reference = self.reference.clone();
                            self.up.push_back(Indication::Opened { bind, reference });
                        }
                    }
                    Some(Err(e)) => {
                        self.enter(below, Event::Invalid, &e.to_string());
                    }
                    None => {
                        self.enter(below, Event::Invalid, "no bind result in the AARE");
                    }
                }
            }
            I::Rejected { transient, diagnostic, value, detail } => {
                self.rejected(transient, diagnostic, value, detail);
            }
            I::Release => self.release_asked(below),
            I::Released => match self.enter(below, Event::ReleaseCnf, "") {
                Some(Action::ReleaseCnfThenRsp) => {
                    below.associate(acse::Request::ReleaseResponse);
                    self.up.push_back(Indication::Released);
                }
                Some(_) => self.up.push_back(Indication::Released),
                None => {}
            },
            I::Abort { value, detail } => {
                let detail = match value {
                    Some(value) => format!("{detail}, {}", shown::value(&value.octets)),
                    None => detail,
                };
                self.step(Event::AbortInd);
                self.queue.clear();
                self.up.push_back(Indication::Aborted { reason: None, detail });
            }
        }
    }

    fn release_asked(&mut self, below: &mut Below) {
        let event = match (self.state, self.role) {
            (State::Sta20, Role::Initiator) if !self.release_due => {
                Event::ReleaseCollisionInitiator
            }
            (State::Sta20, Role::Responder) if !self.release_due => {
                Event::ReleaseCollisionResponder
            }
            (State::Sta20, _) => {
                // Our own release waits for the queue: it was never asked for.
                self.release_due = false;
                self.state = State::Sta10;
                Event::ReleaseInd
            }
            _ => Event::ReleaseInd,
        };
        match self.enter(below, event, "") {
            Some(Action::ReleaseRsp) => {
                below.associate(acse::Request::ReleaseResponse);
                self.up.push_back(Indication::Released);
            }
            Some(Action::ReleaseRspFirst) => below.associate(acse::Request::ReleaseResponse),
            _ => {}
        }
    }

    fn associate(&mut self, below: &mut Below, indication: acse::Indication) {
        let acse::Indication::Associate {
            application_context,
            session_selector,
            presentation_selector,
            reference,
            syntaxes,
            value,
        } = indication
        else {
            return;
        };
        let value = value.filter(|v| v.context == self.context(below));
        let bind = match value.map(|v| bind::unwrap_argument(&v.octets)) {
            Some(Ok(bind)) => bind,
            Some(Err(e)) => {
                self.enter(below, Event::Invalid, &e.to_string());
                return;
            }
            None => {
                self.enter(below, Event::Invalid, "no bind argument in the AARQ");
                return;
            }
        };
        if self.enter(below, Event::BindInd, "").is_some() {
            self.reference = reference.clone();
            self.up.push_back(Indication::Open {
                bind,
                application_context,
                calling: api::Selectors {
                    transport: None,
                    session: session_selector,
                    presentation: presentation_selector,
                },
                reference,
                syntaxes,
                dialogue: Dialogue::TwoWayAlternate,
            });
        }
    }

    fn rejected(
        &mut self,
        transient: bool,
        code: Option<i64>,
        value: Option<Value>,
        mut detail: String,
    ) {
        self.step(Event::BindRefused);
        let bind_error = match value.map(|v| (bind::unwrap_error(&v.octets), v)) {
            Some((Ok(error), _)) => Some(error),
            Some((Err(e), value)) => {
                detail = format!("{detail}; {e}: {}", shown::value(&value.octets));
                None
            }
            None => None,
        };
        let reason = match &bind_error {
            Some(_) => RefuseReason::Bind,
            None if code == Some(diagnostic::APPLICATION_CONTEXT) => {
                RefuseReason::ApplicationContext
            }
            None if transient => RefuseReason::Busy,
            None => RefuseReason::Unspecified,
        };
        self.up.push_back(Indication::Refused { reason, bind_error, detail });
    }

    /// Something from the presentation.
    pub(crate) fn presentation(
        &mut self,
        now: Instant,
        below: &mut Below,
        indication: presentation::Indication,
    ) {
        use presentation::Indication as P;
        let progress = matches!(indication, P::ValueData(_));
        match indication {
            P::ValueStart { context } => {
                if below.contexts().of(&crate::profiles::acse()) == Some(context) {
                    self.enter(below, Event::Invalid, "P-DATA in the context of ACSE");
                }
                self.mute = false;
                let open = self.state != State::Sta00;
                self.incoming = open.then(|| Incoming::new(context));
            }
            P::ValueData(bytes) => {
                let mut found = Vec::new();
                if let Some(incoming) = &mut self.incoming {
                    incoming.push(bytes, &mut |f| found.push(f));
                }
                for found in found {
                    self.found(below, found);
                }
            }
            P::ValueEnd => {
                let whole = self.incoming.as_ref().is_none_or(Incoming::is_whole);
                if !whole && !self.mute {
                    self.abandon();
                    self.bad(below, None, problem::MISTYPED_APDU);
                }
                self.incoming = None;
            }
            P::Pass(other) => {
                self.enter(below, Event::Invalid, &format!("unexpected {other:?}"));
            }
            _ => {}
        }
        self.pump(below);
        self.rearm(now, progress);
    }

    fn found(&mut self, below: &mut Below, found: Found) {
        match found {
            Found::Invoke { invoke, linked, operation } => {
                self.invoked(below, invoke, linked, operation);
            }
            Found::Result { invoke } => {
                let indication = Indication::Returned { invoke };
                self.answered(below, invoke, indication, problem::RESULT_UNRECOGNISED);
            }
            Found::Error { invoke, error } => {
                let indication = Indication::ReturnedError { invoke, error };
                self.answered(below, invoke, indication, problem::ERROR_UNRECOGNISED);
            }
            Found::Reject { invoke, problem } => {
                if self.enter(below, Event::Rorj, "").is_some() {
                    if let Some(invoke) = invoke.filter(|_| problem.kind < 2) {
                        self.ours.remove(&invoke);
                    }
                    self.up.push_back(Indication::Rejected { invoke, problem });
                }
            }
            Found::Data { bytes, last } => {
                if !self.mute {
                    self.up.push_back(Indication::Data { bytes, last });
                }
            }
            Found::Bad { invoke, problem } => {
                self.abandon();
                self.bad(below, invoke, problem);
            }
        }
    }

    /// The APDU that is arriving breaks off: where its invocation was told of already, the reject
    /// is its answer, and its identifier is free again (X.229 7.5.1).
    fn abandon(&mut self) {
        if let (false, Some(incoming)) = (self.mute, &self.incoming)
            && let Some(invoke) = incoming.invoked()
        {
            self.theirs.remove(&invoke);
        }
    }

    fn invoked(&mut self, below: &mut Below, invoke: i64, linked: Option<i64>, operation: i64) {
        let problem = if let Some(linked) = linked {
            // No operation of the message transfer system has child operations.
            if self.ours.contains_key(&linked) {
                problem::LINKED_RESPONSE_UNEXPECTED
            } else {
                problem::UNRECOGNISED_LINKED_ID
            }
        } else if self.theirs.contains_key(&invoke) {
            problem::DUPLICATE_INVOCATION
        } else if self.theirs.len() >= MAX_INVOCATIONS {
            problem::RESOURCE_LIMITATION
        } else {
            let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
            if self.enter(below, Event::Roiv, "").is_some() {
                self.theirs.insert(invoke, context);
                self.up.push_back(Indication::Invoked { invoke, operation });
            } else {
                self.mute = true;
            }
            return;
        };
        self.bad(below, Some(invoke), problem);
    }

    fn answered(
        &mut self,
        below: &mut Below,
        invoke: i64,
        indication: Indication,
        unknown: Problem,
    ) {
        if self.ours.remove(&invoke).is_none() {
            self.bad(below, Some(invoke), unknown);
        } else if self.enter(below, Event::Answer, "").is_some() {
            self.up.push_back(indication);
        } else {
            self.mute = true;
        }
    }

    /// Rejects the APDU that is arriving. Not through `send_reject`: an earlier invocation of this
    /// identifier stays answerable.
    fn bad(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        self.mute = true;
        if self.enter(below, Event::BadApdu, "").is_some() {
            let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
            let head = pdu::reject(invoke, problem);
            let name = problem::name(problem);
            let of = invoke.map(|invoke| format!(" of invocation {invoke}")).unwrap_or_default();
            let detail = format!("rose: RORJ {name} to the peer's APDU{of} (X.229 7.5.1, 9.1)");
            self.up.push_back(Indication::Faulty { invoke, problem, detail });
            self.enqueue(below, context, None, &head, &Payload::default());
        }
    }
}

fn event_of(request: &api::Request) -> Option<Event> {
    use api::Request as R;
    Some(match request {
        R::Open { .. } => Event::BindReq,
        R::Accept { .. } => Event::BindRspAccept,
        R::Refuse { .. } => Event::BindRspRefuse,
        R::Invoke { .. } => Event::InvokeReq,
        R::Result { .. } | R::Error { .. } | R::Reject { .. } => Event::AnswerReq,
        R::Content(_) => Event::Content,
        R::ContentFailed => Event::ContentFailed,
        R::Release => Event::UnbindReq,
        R::Abort(_) => Event::AbortReq,
        _ => return None,
    })
}
