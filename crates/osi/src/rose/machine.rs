//! The remote operation protocol machine (X.229 clause 7) and the bind and unbind around it.

#[cfg(test)]
mod cells;

use super::incoming::{Found, Incoming};
use super::pdu::{self, problem};
use super::sending::{MAX_QUEUED, Outgoing};
use super::table::{Action, Event, State, Table};
use crate::acse::{self, diagnostic};
use crate::api::{
    self, Config, Dialogue, Indication, Payload, Problem, RefuseReason, Request as R, Role,
};
use crate::presentation::service::{self as presentation, Value};
use crate::rtse::pdu as bind;
use crate::session::service::ConnectionReference;
use crate::shown;
use crate::stack::Below;
use crate::table::{Automaton, Entered, Step};
use base::ber::Oid;
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most invocations of the peer that await our answer.
const MAX_INVOCATIONS: usize = 256;
/// Octets of the longest RORJ: header, invoke identifier, problem.
const MAX_REJECT: usize = 2 + 10 + 3;

/// What an event carries.
#[derive(Debug)]
enum With {
    /// Nothing.
    Nothing,
    /// A request of the user.
    Request(api::Request),
    /// A bind argument: the name of the association, and the indication to issue.
    Bind(ConnectionReference, Indication),
    /// A bind result.
    Bound(Bytes),
    /// The answer to a refused bind.
    Refused(Refused),
    /// The fields of a ROIV.
    Invoked { invoke: i64, operation: i64 },
    /// A RORS or ROER, as the indication to issue.
    Answered(Indication),
    /// The fields of a RORJ, received or to be sent.
    Rejected { invoke: Option<i64>, problem: Problem },
    /// An abort of the peer.
    Abort { value: Option<Value>, detail: String },
    /// What is wrong; the event and the state go before it.
    Why(String),
    /// The whole diagnostic of an abort.
    Detail(String),
}

/// An A-ASSOCIATE confirm, rejected.
#[derive(Debug)]
struct Refused {
    transient: bool,
    diagnostic: Option<i64>,
    value: Option<Value>,
    detail: String,
}

/// The machine. It calls ACSE and presentation below; its indications are taken from `up`.
#[derive(Debug)]
pub(crate) struct Rose {
    pub(super) automaton: Automaton<Table>,
    role: Role,
    /// Abstract syntax of the bind.
    pub(super) syntax: Oid,
    pub(super) reference: ConnectionReference,
    pub(super) queue: VecDeque<Outgoing>,
    /// Release once the queue is empty.
    pub(super) release_due: bool,
    /// Our invocations that await an answer, and when the wait for it ends, once they are sent.
    pub(super) ours: BTreeMap<i64, Option<Instant>>,
    /// The peer's, with their contexts.
    pub(super) theirs: BTreeMap<i64, i64>,
    pub(super) incoming: Option<Incoming>,
    /// The APDU that is arriving was rejected: its data is dropped.
    discarding: bool,
    operation_timeout: Duration,
    /// The last octet of an invocation was handed down since [`Rose::sends`] was asked.
    pub(super) invoked: bool,
    /// When to give up an APDU that is being sent or received and stands still.
    idle: Option<Instant>,
    pub(crate) up: VecDeque<Indication>,
}

impl Rose {
    pub(crate) fn new(config: &Config, role: Role) -> Rose {
        Rose {
            automaton: Automaton::new(),
            role,
            syntax: config.bind_syntax.clone(),
            reference: config.reference.clone(),
            queue: VecDeque::new(),
            release_due: false,
            ours: BTreeMap::new(),
            theirs: BTreeMap::new(),
            incoming: None,
            discarding: false,
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
        let receives = if self.incoming.is_none() { "" } else { " receives" };
        format!("rose {:?}{answer}{sends}{receives}", self.automaton.state())
    }

    pub(super) fn context(&self, below: &Below) -> i64 {
        below.contexts().id_of(&self.syntax).unwrap_or_default()
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
        self.on(below, Event::Timeout, With::Why(why));
        self.stop_timers();
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
        if self.automaton.state() == State::Sta00 {
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
        self.automaton.state() != State::Sta00 && !(self.ours.is_empty() && self.queue.is_empty())
    }

    fn stop_timers(&mut self) {
        self.idle = None;
        self.ours.clear();
    }

    /// A request of the user.
    pub(crate) fn request(&mut self, now: Instant, below: &mut Below, request: api::Request) {
        let Some(event) = event_of(&request) else {
            return self.fail(below, "rose: a request of RTSE (X.218 clause 8)".to_owned());
        };
        let with = match request {
            R::ContentFailed => With::Detail("rose: the content cannot be read".to_owned()),
            request => With::Request(request),
        };
        self.on(below, event, with);
        self.pump(below);
        self.rearm(now, event == Event::Content);
    }

    /// Aborts the association, whatever the state.
    pub(super) fn fail(&mut self, below: &mut Below, detail: String) {
        self.on(below, Event::Fail, With::Detail(detail));
    }

    /// Takes an event and performs the action of its cell.
    fn on(&mut self, below: &mut Below, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        match entered.step {
            Step::Do(action) => self.perform(below, &entered, action, with),
            Step::Nothing => {}
            Step::Misuse => self.fail(below, entered.to_string()),
            Step::ProtocolError => self.abort(below, entered.to_string()),
        }
    }

    fn perform(&mut self, below: &mut Below, entered: &Entered<Table>, action: Action, with: With) {
        match (action, with) {
            (Action::SendBind, With::Request(R::Open { bind })) => self.send_bind(below, &bind),
            (Action::SendBindResult, With::Request(R::Accept { bind })) => {
                self.send_bind_result(below, &bind);
            }
            (Action::SendBindError, With::Request(R::Refuse { reason, bind_error })) => {
                self.refuse(below, reason, bind_error.as_ref());
            }
            (Action::SendApdu, With::Request(request)) => self.send_apdu(below, entered, request),
            (Action::SendContent, With::Request(R::Content(bytes))) => self.content(below, bytes),
            (Action::Release, _) => self.release_due = true,
            (Action::Abort, With::Request(R::Abort(reason))) => {
                self.abort(below, format!("rose: aborted by us, {reason:?}"));
            }
            (Action::BindInd, With::Bind(reference, indication)) => {
                self.reference = reference;
                self.up.push_back(indication);
            }
            (Action::BindCnf, With::Bound(bind)) => {
                let reference = self.reference.clone();
                self.up.push_back(Indication::Opened { bind, reference });
            }
            (Action::RefuseCnf, With::Refused(refused)) => self.refused(refused),
            (Action::InvokeInd, With::Invoked { invoke, operation }) => {
                let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
                self.theirs.insert(invoke, context);
                self.discarding = false;
                self.up.push_back(Indication::Invoked { invoke, operation });
            }
            (Action::AnswerInd, With::Answered(indication)) => {
                self.discarding = false;
                self.up.push_back(indication);
            }
            (Action::RejectInd, With::Rejected { invoke, problem }) => {
                if let Some(invoke) = invoke.filter(|_| problem.kind < 2) {
                    self.ours.remove(&invoke);
                }
                self.up.push_back(Indication::Rejected { invoke, problem });
            }
            (Action::SendRorj, With::Rejected { invoke, problem }) => {
                self.send_rorj(below, invoke, problem);
            }
            (Action::ReleaseRsp, _) => {
                self.release_due = false;
                below.associate(acse::Request::ReleaseResponse);
                self.up.push_back(Indication::Released);
            }
            (Action::ReleaseRspFirst, _) => below.associate(acse::Request::ReleaseResponse),
            (Action::ReleaseCnf, _) => self.up.push_back(Indication::Released),
            (Action::ReleaseCnfThenRsp, _) => {
                below.associate(acse::Request::ReleaseResponse);
                self.up.push_back(Indication::Released);
            }
            (Action::AbortInd, With::Abort { value, detail }) => self.aborted(value, detail),
            (Action::AbortProvider, With::Detail(detail)) => self.abort(below, detail),
            (Action::AbortProvider, With::Why(why)) => {
                self.abort(below, format!("{entered}: {why}"));
            }
            (
                Action::SendBind
                | Action::SendBindResult
                | Action::SendBindError
                | Action::SendApdu
                | Action::SendContent
                | Action::Abort
                | Action::BindInd
                | Action::BindCnf
                | Action::RefuseCnf
                | Action::InvokeInd
                | Action::AnswerInd
                | Action::RejectInd
                | Action::SendRorj
                | Action::AbortInd
                | Action::AbortProvider,
                _,
            ) => self.fail(below, entered.fault()),
        }
    }

    /// A-ABORT request, and the indication of it.
    fn abort(&mut self, below: &mut Below, detail: String) {
        self.queue.clear();
        self.release_due = false;
        below.associate(acse::Request::Abort(None));
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    fn aborted(&mut self, value: Option<Value>, detail: String) {
        let detail = match value {
            Some(value) => format!("{detail}, {}", shown::value(&value.octets)),
            None => detail,
        };
        self.queue.clear();
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// Something from ACSE.
    pub(crate) fn association(&mut self, below: &mut Below, indication: acse::Indication) {
        use acse::Indication as I;
        match indication {
            I::Associate { .. } => self.associate(below, indication),
            I::Accepted(value) => {
                let value = value.filter(|v| v.context == self.context(below));
                let (event, with) = match value.map(|v| bind::unwrap_result(&v.octets)) {
                    Some(Ok(bind)) => (Event::BindCnf, With::Bound(bind)),
                    Some(Err(e)) => (Event::Invalid, With::Why(e.to_string())),
                    None => (Event::Invalid, With::Why("no bind result in the AARE".to_owned())),
                };
                self.on(below, event, with);
            }
            I::Rejected { transient, diagnostic, value, detail } => {
                let refused = Refused { transient, diagnostic, value, detail };
                self.on(below, Event::BindRefused, With::Refused(refused));
            }
            I::Release => {
                let event = self.release_event();
                self.on(below, event, With::Nothing);
            }
            I::Released => self.on(below, Event::ReleaseCnf, With::Nothing),
            I::Abort { value, detail } => {
                self.on(below, Event::AbortInd, With::Abort { value, detail });
            }
        }
    }

    /// What a release of the peer is: it may collide with our own.
    fn release_event(&self) -> Event {
        match (self.automaton.state(), self.role) {
            (State::Sta20, _) if self.release_due => Event::ReleaseIndBeforeReq,
            (State::Sta20, Role::Initiator) => Event::ReleaseCollisionInitiator,
            (State::Sta20, Role::Responder) => Event::ReleaseCollisionResponder,
            (
                State::Sta00 | State::Sta01 | State::Sta02 | State::Sta10 | State::Sta21,
                Role::Initiator | Role::Responder,
            ) => Event::ReleaseInd,
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
            Some(Err(e)) => return self.on(below, Event::Invalid, With::Why(e.to_string())),
            None => {
                let why = "no bind argument in the AARQ".to_owned();
                return self.on(below, Event::Invalid, With::Why(why));
            }
        };
        let indication = Indication::Open {
            bind,
            application_context,
            calling: api::Selectors {
                transport: None,
                session: session_selector,
                presentation: presentation_selector,
            },
            reference: reference.clone(),
            syntaxes,
            dialogue: Dialogue::TwoWayAlternate,
        };
        self.on(below, Event::BindInd, With::Bind(reference, indication));
    }

    fn refused(&mut self, refused: Refused) {
        let Refused { transient, diagnostic: code, value, mut detail } = refused;
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
                if below.contexts().id_of(&crate::profiles::acse()) == Some(context) {
                    let why = "P-DATA in the context of ACSE".to_owned();
                    self.on(below, Event::Invalid, With::Why(why));
                }
                self.discarding = false;
                let open = self.automaton.state() != State::Sta00;
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
                if !whole && !self.discarding {
                    self.abandon();
                    self.bad(below, None, problem::MISTYPED_APDU);
                }
                self.incoming = None;
            }
            P::PleaseTokens(_) => {
                let why = "unexpected P-TOKEN-PLEASE".to_owned();
                self.on(below, Event::Invalid, With::Why(why));
            }
            P::Pass(other) => {
                self.on(below, Event::Invalid, With::Why(format!("unexpected {other:?}")));
            }
            P::Connect { .. }
            | P::Accepted { .. }
            | P::Refused { .. }
            | P::Release(_)
            | P::Released(_)
            | P::UserAbort(_)
            | P::ProviderAbort { .. } => {
                self.fail(below, "rose: internal error: a primitive of ACSE".to_owned());
            }
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
                self.on(below, Event::Rorj, With::Rejected { invoke, problem });
            }
            Found::Data { bytes, last } => {
                if !self.discarding {
                    self.up.push_back(Indication::Data { bytes, last });
                }
            }
            Found::Bad { invoke, problem } => {
                self.abandon();
                self.bad(below, invoke, problem);
            }
        }
    }

    /// The incoming APDU breaks off: if its invocation was already indicated, the reject
    /// is its answer, and its identifier is free again (X.229 7.5.1).
    fn abandon(&mut self) {
        if let (false, Some(incoming)) = (self.discarding, &self.incoming)
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
            self.discarding = true;
            return self.on(below, Event::Roiv, With::Invoked { invoke, operation });
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
            return self.bad(below, Some(invoke), unknown);
        }
        self.discarding = true;
        self.on(below, Event::Answer, With::Answered(indication));
    }

    /// Rejects the APDU that is arriving.
    fn bad(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        self.discarding = true;
        self.on(below, Event::BadApdu, With::Rejected { invoke, problem });
    }

    /// RORJ for the APDU that is arriving. Not through `send_reject`: an earlier invocation of this
    /// identifier stays answerable.
    fn send_rorj(&mut self, below: &mut Below, invoke: Option<i64>, problem: Problem) {
        let context = self.incoming.as_ref().map(|i| i.context).unwrap_or_default();
        let head = pdu::reject(invoke, problem);
        let name = problem::name(problem);
        let of = invoke.map(|invoke| format!(" of invocation {invoke}")).unwrap_or_default();
        let detail = format!("rose: RORJ {name} to the peer's APDU{of} (X.229 7.5.1, 9.1)");
        self.up.push_back(Indication::Faulty { invoke, problem, detail });
        self.enqueue(below, context, None, &head, &Payload::default());
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
