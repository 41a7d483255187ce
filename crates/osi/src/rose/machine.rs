//! The remote operation protocol machine (X.229 clause 7) and the bind and unbind around it.

#[cfg(test)]
mod cells;

use super::incoming::Incoming;
use super::sending::{MAX_QUEUED, Outgoing};
use super::table::{Action, Event, State, Table};
use crate::acse;
use crate::api::{self, Config, Indication, Problem, Request as R, Role};
use crate::presentation::service::Value;
use crate::session::service::ConnectionReference;
use crate::stack::Below;
use crate::table::{Automaton, Entered, Lacking, Performed, Step};
use base::ber::Oid;
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most invocations of the peer that await our answer.
pub(super) const MAX_INVOCATIONS: usize = 256;
/// Octets of the longest RORJ: header, invoke identifier, problem.
const MAX_REJECT: usize = 2 + 10 + 3;

/// The parameters of an event.
#[derive(Clone, Debug)]
pub(super) enum With {
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
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) transient: bool,
    pub(super) diagnostic: Option<i64>,
    pub(super) value: Option<Value>,
    pub(super) detail: String,
}

/// The machine. It calls ACSE and presentation below; its indications are taken from `up`.
#[derive(Clone, Debug)]
pub(crate) struct Rose {
    pub(super) automaton: Automaton<Table>,
    pub(super) role: Role,
    /// Abstract syntax of the bind.
    pub(super) syntax: Oid,
    /// Those in which the peer may bind instead.
    pub(super) other_syntaxes: Vec<Oid>,
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
    pub(super) discarding: bool,
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
            other_syntaxes: match role {
                Role::Initiator => Vec::new(),
                Role::Responder => config.other_bind_syntaxes.clone(),
            },
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
    pub(super) fn rearm(&mut self, now: Instant, progress: bool) {
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
    pub(super) fn on(&mut self, below: &mut Below, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        match entered.step {
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(below, &entered, action, with) {
                    self.fail(below, entered.fault());
                }
            }
            Step::Nothing => {}
            Step::Misuse => self.fail(below, entered.to_string()),
            Step::ProtocolError => self.abort(below, entered.to_string()),
        }
    }

    fn perform(
        &mut self,
        below: &mut Below,
        entered: &Entered<Table>,
        action: Action,
        with: With,
    ) -> Performed {
        match action {
            // Bind.
            Action::SendBind => self.send_bind(below, with)?,
            Action::SendBindResult => self.send_bind_result(below, with)?,
            Action::SendBindError => self.send_bind_error(below, with)?,
            Action::BindInd => self.bind_indication(with)?,
            Action::BindCnf => self.bind_confirm(with)?,
            Action::RefuseCnf => self.refused(with)?,
            // Operations.
            Action::SendApdu => self.send_apdu(below, with)?,
            Action::SendContent => self.content(below, with)?,
            Action::InvokeInd => self.invoke_indication(&with)?,
            Action::AnswerInd => self.answer_indication(with)?,
            Action::RejectInd => self.reject_indication(&with)?,
            Action::SendRorj => self.send_rorj(below, &with)?,
            // Unbind and abort.
            Action::Release => self.release_due = true,
            Action::ReleaseRsp => self.release_response(below),
            Action::ReleaseRspFirst => below.associate(acse::Request::ReleaseResponse),
            Action::ReleaseCnf => self.up.push_back(Indication::Released),
            Action::ReleaseCnfThenRsp => self.release_confirm_then_response(below),
            Action::Abort => self.abort_user(below, &with)?,
            Action::AbortInd => self.aborted(with)?,
            Action::AbortProvider => self.abort_provider(below, entered, with)?,
        }
        Ok(())
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
        R::Recover { .. }
        | R::AcceptRecover(_)
        | R::Transfer { .. }
        | R::Interrupt
        | R::Pause(_)
        | R::Stored { .. }
        | R::TransferSecured
        | R::TransferRefused(_)
        | R::TurnPlease(_)
        | R::TurnGive
        | R::Close => return None,
    })
}
