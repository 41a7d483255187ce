//! An association with ROSE and its user: ACSE and presentation with the duplex unit.

use crate::fingerprint::fingerprint;
use crate::pair::{End, Waits};
use base::Instant;
use base::ber::Oid;
use bytes::Bytes;
use osi::api::{
    AbortReason, Config, Indication, Input, Output, Payload, Problem, RefuseReason, Request, Role,
    Selectors,
};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;

/// How far a user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    Asked,
    Open,
    Releasing,
    Over,
}

/// A request of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the requests of osi::api")]
pub enum Act {
    Open,
    Accept,
    Refuse,
    Invoke,
    Result,
    Error,
    Reject,
    Release,
    Close,
    Abort,
}

/// An end.
#[derive(Clone, Debug)]
pub struct Operator {
    stack: Association,
    user: User,
    closed: bool,
    writes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct User {
    role: Role,
    phase: Phase,
    called: bool,
    /// Invocations that may still be made.
    invocations: u8,
    /// Ours that await an answer, and the peer's that await ours.
    ours: Vec<i64>,
    theirs: Vec<i64>,
    /// Inside an argument or result: what is to happen once it is whole.
    incoming: Option<Incoming>,
    answered: usize,
    answers: usize,
    released: bool,
    fault: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incoming {
    Invoked(i64),
    Returned(i64),
}

fn config() -> Config {
    let reference = ConnectionReference {
        user: Bytes::from_static(&[4, 1, b'1']),
        common: Bytes::from_static(b"\x17\x0d260102030405Z"),
        additional: Bytes::new(),
    };
    profiles::p3(Selectors::default(), Selectors::default(), reference)
}

fn syntax() -> Oid {
    profiles::abstract_syntax::msse()
}

impl Operator {
    /// One at rest, whose user makes so many invocations.
    pub fn new(role: Role, invocations: u8) -> Operator {
        Operator {
            stack: Association::new(config(), role),
            user: User {
                role,
                phase: Phase::Fresh,
                called: false,
                invocations,
                ours: Vec::new(),
                theirs: Vec::new(),
                incoming: None,
                answered: 0,
                answers: 0,
                released: false,
                fault: None,
            },
            closed: false,
            writes: Vec::new(),
        }
    }

    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.stack.handle(now, input);
        while let Some(output) = self.stack.poll() {
            if self.closed {
                self.user.fault = Some(format!("{output:?} after the connection was closed"));
            }
            match output {
                Output::Send(octets) => self.writes.extend_from_slice(&octets),
                Output::Close => self.closed = true,
                Output::Indication(indication) => self.user.indication(&indication),
            }
        }
    }

    fn request(&mut self, act: Act) -> Request {
        let user = &mut self.user;
        let bind = Bytes::from_static(&[0x31, 0]);
        match act {
            Act::Open => {
                user.phase = Phase::Asked;
                Request::Open { bind }
            }
            Act::Accept => {
                (user.phase, user.called) = (Phase::Open, false);
                Request::Accept { bind }
            }
            Act::Refuse => Request::Refuse { reason: RefuseReason::Busy, bind_error: None },
            Act::Invoke => {
                let invoke = i64::from(user.invocations);
                user.invocations -= 1;
                user.ours.push(invoke);
                let argument = Payload::whole(Bytes::from_static(&[5, 0]));
                Request::Invoke { invoke, syntax: syntax(), operation: 1, argument }
            }
            Act::Result => {
                user.answers += 1;
                let result = Payload::whole(Bytes::from_static(&[5, 0]));
                Request::Result { invoke: user.theirs.remove(0), operation: 1, result }
            }
            Act::Error => {
                let invoke = user.theirs.remove(0);
                Request::Error { invoke, error: 1, parameter: Bytes::new() }
            }
            Act::Reject => {
                let invoke = Some(user.theirs.remove(0));
                Request::Reject { invoke, problem: Problem { kind: 1, value: 1 } }
            }
            Act::Release => {
                user.phase = Phase::Releasing;
                Request::Release
            }
            Act::Close => Request::Close,
            Act::Abort => Request::Abort(AbortReason::UserError),
        }
    }
}

impl User {
    fn indication(&mut self, indication: &Indication) {
        use Indication as I;
        let fails =
            |user: &mut User, why: &str| user.fault = Some(format!("{why}: {indication:?}"));
        if self.phase == Phase::Over {
            return fails(self, "an indication after the end");
        }
        match indication {
            I::Open { .. } => self.called = true,
            I::Opened { .. } if self.phase == Phase::Asked => self.phase = Phase::Open,
            I::Invoked { invoke, .. } => self.incoming = Some(Incoming::Invoked(*invoke)),
            I::Returned { invoke } => {
                self.incoming = Some(Incoming::Returned(*invoke));
                self.answered += 1;
                self.end_of(*invoke, indication);
            }
            I::ReturnedError { invoke, .. } => {
                self.incoming = Some(Incoming::Returned(*invoke));
                self.end_of(*invoke, indication);
            }
            I::Rejected { invoke: Some(invoke), .. } => self.end_of(*invoke, indication),
            I::Data { last: true, .. } => match self.incoming.take() {
                Some(Incoming::Invoked(invoke)) => self.theirs.push(invoke),
                Some(Incoming::Returned(_)) => {}
                None => fails(self, "outside an argument"),
            },
            I::Data { .. } if self.incoming.is_some() => {}
            I::Refused { .. } | I::Aborted { .. } => self.over(),
            I::Released => {
                self.released = true;
                self.over();
            }
            _ => fails(self, "not expected"),
        }
    }

    fn end_of(&mut self, invoke: i64, indication: &Indication) {
        if !self.ours.contains(&invoke) {
            self.fault = Some(format!("not asked for: {indication:?}"));
        }
        self.ours.retain(|ours| *ours != invoke);
    }

    fn over(&mut self) {
        self.phase = Phase::Over;
        (self.called, self.incoming) = (false, None);
        self.ours.clear();
        self.theirs.clear();
    }
}

impl End for Operator {
    type Act = Act;
    const LAYERS: &'static [&'static str] = &["cotp", "session", "presentation", "acse", "rose"];
    const ABORT: Act = Act::Abort;

    fn acts(&self) -> Vec<Act> {
        let user = &self.user;
        let mut acts = Vec::new();
        let mut may = |act: Act, when: bool| {
            if when {
                acts.push(act);
            }
        };
        if user.phase == Phase::Over {
            return Vec::new();
        }
        let open = user.phase == Phase::Open;
        may(Act::Open, user.role == Role::Initiator && user.phase == Phase::Fresh);
        may(Act::Accept, user.called);
        may(Act::Refuse, user.called);
        may(Act::Invoke, open && user.invocations > 0);
        let due = open && !user.theirs.is_empty();
        may(Act::Result, due);
        may(Act::Error, due);
        may(Act::Reject, due);
        may(Act::Release, open);
        may(Act::Close, open && user.ours.is_empty() && user.theirs.is_empty());
        may(Act::Abort, true);
        acts
    }

    fn act(&mut self, now: Instant, act: &Act) -> bool {
        let request = self.request(*act);
        self.handle(now, Input::Request(request));
        true
    }

    fn is_disturbing(act: &Act) -> bool {
        matches!(act, Act::Refuse | Act::Close | Act::Abort)
    }

    fn bytes(&mut self, now: Instant, octets: &[u8]) {
        self.handle(now, Input::Bytes(octets));
    }

    fn eof(&mut self, now: Instant) {
        self.handle(now, Input::Eof);
    }

    fn tick(&mut self, now: Instant) {
        self.handle(now, Input::Tick);
    }

    fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }

    fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writes)
    }

    fn closed(&self) -> bool {
        self.closed
    }

    fn ended(&self) -> bool {
        self.user.phase == Phase::Over
    }

    fn released(&self) -> bool {
        self.user.released
    }

    fn waits(&self) -> Waits {
        let user = &self.user;
        // What is invoked and not answered once the peer releases is never answered.
        if user.called || (user.phase == Phase::Open && !user.theirs.is_empty()) {
            return Waits::User;
        }
        let waits = matches!(user.phase, Phase::Asked | Phase::Releasing) || !user.ours.is_empty();
        if waits { Waits::Peer } else { Waits::Nobody }
    }

    fn fault(&self) -> Option<String> {
        self.user.fault.clone()
    }

    fn held(&self) -> usize {
        self.stack.held()
    }

    fn most_held(&self) -> usize {
        Association::most_held(&config()) + 64
    }

    fn successes(&self) -> (usize, usize) {
        (self.user.answered, self.user.answers)
    }

    fn fingerprint(&self, now: Instant) -> u128 {
        if self.closed { fingerprint(&self.user, now) } else { fingerprint(self, now) }
    }

    fn names(&self) -> Vec<String> {
        let user = &self.user;
        let mut names = Vec::new();
        if user.released {
            names.push("user released".to_owned());
        }
        if user.answered > 0 {
            names.push("user answered".to_owned());
        }
        names
    }
}
