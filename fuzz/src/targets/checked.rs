//! An association and a user that answers everything, with what must hold of any association. The
//! worlds of testkit have a node at one end; here any octets reach the stack alone.

use base::Instant;
use bytes::Bytes;
use osi::api::{
    AbortReason, Config, Indication, Input, Output, Payload, RefuseReason, Request, Role, Service,
};
use osi::profiles::abstract_syntax;
use osi::stack::Association;
use p1::p3::operation::MESSAGE_DELIVERY;
use std::collections::VecDeque;
use std::time::Duration;

/// What the user of an initiator does once its association is open.
#[derive(Clone, Debug, Default)]
pub struct AssociationPlan {
    /// The bind argument of an initiator and the bind result of a responder.
    pub bind: Bytes,
    /// What is transferred (RTSE) or invoked (ROSE, with the operation), one after the other.
    pub units: Vec<(i64, Bytes)>,
    /// Whether it releases when all is done.
    pub release: bool,
}

/// See the module.
#[derive(Debug)]
pub struct CheckedAssociation {
    stack: Association,
    role: Role,
    rtse: bool,
    plan: AssociationPlan,
    sent: usize,
    now: Instant,
    /// The indications to the user, with data joined.
    pub observed: Vec<Seen>,
    /// Octets for the peer.
    pub out: Vec<u8>,
    /// Octets for the peer, all of them.
    pub written: usize,
    /// Octets taken.
    taken: usize,
    data: usize,
    open_unit: bool,
    /// Identifier and operation of an invocation that is not answered yet.
    invoked: Option<(i64, i64)>,
    closed: bool,
    over: bool,
    answers: VecDeque<Request>,
}

/// An indication to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Data, and whether it ended its unit.
    Data(Vec<u8>, bool),
    /// Anything else.
    Reported(String),
}

impl CheckedAssociation {
    /// An association at rest; an initiator asks at once.
    pub fn new(config: Config, role: Role, plan: AssociationPlan) -> CheckedAssociation {
        let rtse = matches!(config.service, Service::Rtse(_));
        let mut association = CheckedAssociation {
            stack: Association::new(config, role),
            role,
            rtse,
            plan,
            sent: 0,
            now: Instant(1_000_000),
            observed: Vec::new(),
            out: Vec::new(),
            written: 0,
            taken: 0,
            data: 0,
            open_unit: false,
            invoked: None,
            closed: false,
            over: false,
            answers: VecDeque::new(),
        };
        if role == Role::Initiator {
            let bind = association.plan.bind.clone();
            association.request(Request::Open { bind });
        }
        association
    }

    /// Does not release by itself: it waits for what the other end wants.
    pub fn stay(&mut self) {
        self.plan.release = false;
    }

    /// Has one more unit, to be sent now.
    pub fn push(&mut self, operation: i64, unit: Bytes) {
        self.plan.units.push((operation, unit));
        if let Some(request) = self.go_on() {
            self.request(request);
        }
    }

    /// Releases.
    pub fn release(&mut self) {
        self.request(Request::Release);
    }

    /// Whether the association was reported as open.
    pub fn is_open(&self) -> bool {
        !self.over && self.observed.iter().any(|h| h.is("Open"))
    }

    /// Number of indications that begin with `what`.
    pub fn count(&self, what: &str) -> usize {
        self.observed.iter().filter(|h| h.is(what)).count()
    }

    /// Whether the connection is to be closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes octets of the peer, and the user answers.
    pub fn feed(&mut self, octets: &[u8]) {
        self.feed_part(octets);
        self.settle();
    }

    /// Takes octets of the peer; the user does not come to answer yet.
    pub fn feed_part(&mut self, octets: &[u8]) {
        self.taken += octets.len();
        self.handle(Input::Bytes(octets));
    }

    /// The user answers all indications.
    pub fn settle(&mut self) {
        while let Some(answer) = self.answers.pop_front() {
            self.handle(Input::Request(answer));
        }
    }

    fn request(&mut self, request: Request) {
        self.handle(Input::Request(request));
        self.settle();
    }

    fn handle(&mut self, input: Input<'_>) {
        let closed = self.closed;
        self.stack.handle(self.now, input);
        let mut outputs = 0;
        while let Some(output) = self.stack.poll() {
            assert!(!closed, "{output:?} after the close");
            assert!(!self.closed, "{output:?} after the close");
            outputs += 1;
            assert!(outputs <= 1_000 + 4 * self.taken, "no end of outputs");
            match output {
                Output::Send(bytes) => {
                    assert!(!bytes.is_empty(), "an empty write");
                    self.written += bytes.len();
                    self.out.extend_from_slice(&bytes);
                }
                Output::Close => self.closed = true,
                Output::Indication(indication) => {
                    assert!(!self.over, "{indication:?} after the end");
                    let answer = self.observe(indication);
                    self.answers.extend(answer);
                }
            }
        }
        // Each answer to a unit is of bounded size, and so is everything else.
        let content: usize = self.plan.units.iter().map(|(_, unit)| unit.len()).sum();
        assert!(
            self.written <= 65_536 + 64 * self.taken + 8 * content,
            "{} octets sent for {} taken",
            self.written,
            self.taken
        );
        if self.closed {
            assert_eq!(self.stack.deadline(), None, "a deadline after the close");
        }
    }

    fn observe(&mut self, indication: Indication) -> Option<Request> {
        let answer = self.answer(&indication);
        match indication {
            Indication::Data { bytes, last } => {
                self.data += bytes.len();
                assert!(self.open_unit, "data outside a unit");
                assert!(self.data <= self.taken, "more data than octets");
                self.open_unit = !last;
                if let Some(Seen::Data(held, false)) = self.observed.last_mut() {
                    held.extend_from_slice(&bytes);
                    self.observed.pop().into_iter().for_each(|h| {
                        let Seen::Data(held, _) = h else { return };
                        self.observed.push(Seen::Data(held, last));
                    });
                } else {
                    self.observed.push(Seen::Data(bytes.to_vec(), last));
                }
            }
            // The size of each pull has no effect.
            Indication::NeedContent { .. } => {}
            other => self.observed.push(Seen::Reported(format!("{other:?}"))),
        }
        answer
    }

    fn answer(&mut self, indication: &Indication) -> Option<Request> {
        use Indication as I;
        match indication {
            I::Open { .. } => Some(Request::Accept { bind: self.plan.bind.clone() }),
            I::RecoverAsked { .. } => {
                Some(Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None })
            }
            I::Opened { .. } => self.go_on(),
            I::Refused { .. } | I::Released | I::Aborted { .. } => {
                self.over = true;
                None
            }
            I::NeedContent { offset, max } => {
                let (_, unit) = self.plan.units.get(self.sent.checked_sub(1)?)?;
                let start = *offset as usize + HEAD;
                let end = (start + (*max).min(1_500)).min(unit.len());
                assert!(*max > 0 && start < end, "content asked for beyond its end");
                Some(Request::Content(unit.slice(start..end)))
            }
            I::TransferStart { .. } | I::TransferResumed { .. } => {
                self.open_unit = true;
                None
            }
            I::Data { last, .. } if *last && !self.rtse => match self.invoked.take() {
                Some((invoke, operation)) => Some(Request::Result {
                    invoke,
                    operation,
                    // A delivery's result is a SET, which may be empty.
                    result: match operation {
                        MESSAGE_DELIVERY => Payload::whole(&[0x31, 0][..]),
                        _ => Payload::whole(&[5, 0][..]),
                    },
                }),
                None => self.go_on(),
            },
            I::Data { .. } => None,
            I::Checkpoint { octets } => Some(Request::Stored { octets: *octets }),
            I::TransferEnd => Some(Request::TransferSecured),
            I::TransferStopped { .. } | I::Faulty { .. } => {
                // APDUs come one after the other: what breaks off is what was arriving.
                if self.open_unit {
                    self.invoked = None;
                }
                self.open_unit = false;
                None
            }
            I::TransferFaulty { .. } => {
                self.open_unit = false;
                Some(Request::TransferRefused(AbortReason::PermanentProblem))
            }
            I::Progress(_) | I::Paused | I::TransferFailed { .. } | I::TurnPlease(_) => None,
            I::TransferConfirmed | I::Rejected { .. } => self.go_on(),
            I::TurnGiven => (self.role == Role::Responder).then(|| self.go_on()).flatten(),
            I::Invoked { invoke, operation, .. } => {
                assert!(!self.open_unit, "a unit within a unit");
                self.open_unit = true;
                self.invoked = Some((*invoke, *operation));
                None
            }
            I::Returned { .. } | I::ReturnedError { .. } => {
                assert!(!self.open_unit, "a unit within a unit");
                self.open_unit = true;
                None
            }
        }
    }

    /// The next of the plan.
    fn go_on(&mut self) -> Option<Request> {
        let Some((operation, unit)) = self.plan.units.get(self.sent).cloned() else {
            return (self.plan.release && self.role == Role::Initiator).then_some(Request::Release);
        };
        self.sent += 1;
        let head = unit.slice(..HEAD.min(unit.len()));
        let content_length = (unit.len() - head.len()) as u64;
        let payload = Payload { head, content_length, tail: Bytes::new() };
        Some(if self.rtse {
            Request::Transfer { payload, resume: None }
        } else {
            Request::Invoke {
                invoke: self.sent as i64,
                syntax: abstract_syntax::msse(),
                operation,
                argument: payload,
            }
        })
    }

    /// Lets the time pass: whatever waits gives up. Then the peer is gone.
    pub fn finish(&mut self) {
        let fatal = self.over;
        for _ in 0..64 {
            let Some(at) = self.stack.deadline() else { break };
            assert!(at <= self.now + Duration::from_secs(3_600), "a deadline out of sight");
            self.now = self.now.max(at);
            self.handle(Input::Tick);
            self.settle();
        }
        assert!(self.closed || !fatal, "the association is over and not closed");
        self.handle(Input::Eof);
        for _ in 0..64 {
            let Some(at) = self.stack.deadline() else { break };
            self.now = self.now.max(at);
            self.handle(Input::Tick);
            self.settle();
        }
        assert!(self.closed, "not closed after the end of the connection");
        let asked = self.role == Role::Initiator || self.count("Open") > 0;
        assert!(self.over || !asked, "the end was not indicated");
        self.feed(b"more");
        let _ = self.stack.take_interrupted();
    }
}

/// Octets of a unit given with the request; the others are pulled.
const HEAD: usize = 4;

impl Seen {
    /// Whether it is something that begins so.
    pub(super) fn is(&self, what: &str) -> bool {
        matches!(self, Seen::Reported(output) if output.starts_with(what))
    }
}

/// Carries octets between two ends until neither has more; gives all that the first and the second
/// sent.
pub fn converse(a: &mut CheckedAssociation, b: &mut CheckedAssociation) -> (Vec<u8>, Vec<u8>) {
    let (mut from_a, mut from_b) = (Vec::new(), Vec::new());
    loop {
        let (x, y) = (std::mem::take(&mut a.out), std::mem::take(&mut b.out));
        if x.is_empty() && y.is_empty() {
            return (from_a, from_b);
        }
        from_a.extend_from_slice(&x);
        from_b.extend_from_slice(&y);
        if !x.is_empty() {
            b.feed(&x);
        }
        if !y.is_empty() {
            a.feed(&y);
        }
    }
}
