//! An association with RTSE and its user: an MTA that keeps the rules of X.218.

use crate::fingerprint::fingerprint;
use crate::pair::{End, Waits};
use base::Instant;
use bytes::Bytes;
use osi::api::{
    AbortReason, Config, Dialogue, Indication, Input, Mode, Output, Payload, RefuseReason, Request,
    ResumePoint, Role, RtseParameters, Selectors, Service,
};
use osi::profiles;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use osi::stack::Association;

/// What each user may do how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Transfers, of each end.
    pub transfers: u8,
    /// Resumed transfers.
    pub resumes: u8,
    /// Turns asked for, and given.
    pub turns: u8,
    /// Interrupts and pauses.
    pub stops: u8,
    /// Refusals, contents that cannot be had, connections that are closed without a release.
    pub failures: u8,
}

/// What is explored.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The mode.
    pub mode: Mode,
    /// The dialogue mode.
    pub dialogue: Dialogue,
    /// Octets of content. A checkpoint comes after 1024.
    pub content: u64,
    /// Unconfirmed checkpoints.
    pub window: u32,
    /// What each user may do.
    pub budget: Budget,
}

impl Setting {
    fn config(&self, connection: u8) -> Config {
        let user = vec![4, 1, b'1' + connection];
        let common = Bytes::from_static(b"\x17\x0d260102030405Z");
        let reference = ConnectionReference { user: user.into(), common, additional: Bytes::new() };
        let config = profiles::p1(Selectors::default(), Selectors::default(), reference);
        let mut config = Config { mode: self.mode, ..config };
        if let Service::Rtse(rtse) = &mut config.service {
            let (window, dialogue) = (self.window, self.dialogue);
            *rtse = RtseParameters { checkpoint_size: 1, window, dialogue, ..rtse.clone() };
        }
        config
    }

    fn unit(&self) -> Payload {
        let content = u16::try_from(self.content).unwrap_or(u16::MAX);
        let mut head = vec![0xA0, 0x82];
        head.extend((content + 4).to_be_bytes());
        head.extend([4, 0x82]);
        head.extend(content.to_be_bytes());
        Payload { head: head.into(), content_length: self.content, tail: Bytes::new() }
    }
}

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
    Transfer,
    Resume,
    Content,
    ContentFailed,
    Interrupt,
    Pause,
    Proceed,
    Stored,
    Secured,
    RefuseForNow,
    RefuseForGood,
    TurnPlease,
    TurnGive,
    Release,
    Close,
    Abort,
}

/// An end.
#[derive(Clone, Debug)]
pub struct Talker {
    stack: Association,
    user: User,
    setting: Still<Setting>,
    /// A fault that is put in: it confirms transfers that its user did not secure.
    hasty: Still<bool>,
    closed: bool,
    writes: Vec<u8>,
}

/// What does not change, and so makes no other state.
#[derive(Clone, Copy)]
struct Still<T>(T);

impl<T> std::fmt::Debug for Still<T> {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct User {
    role: Role,
    phase: Phase,
    connection: u8,
    budget: Budget,
    turn: bool,
    /// The bind or the recovery that awaits an answer of ours, and whether it is a recovery.
    called: Option<bool>,
    /// A transfer of ours is in progress: octets of content that are asked for, whether it pauses.
    sending: Option<(Option<usize>, bool)>,
    /// One to us: octets so far, whether the last was among them.
    receiving: Option<(u64, bool)>,
    /// The same of one that was cut off: nothing that was given is given again.
    left: (u64, bool),
    /// Checkpoints to be answered.
    checkpoints: Vec<u64>,
    /// The end of a transfer is to be answered.
    at_end: bool,
    /// We refused it.
    refused: bool,
    /// Where a transfer of ours can be resumed.
    resume: Option<ResumePoint>,
    /// This association, and the one before.
    reference: Option<ConnectionReference>,
    lost: Option<ConnectionReference>,
    received: Option<InterruptedReceive>,
    confirmed: usize,
    secured: usize,
    released: bool,
    fault: Option<String>,
}

impl Talker {
    /// One at rest.
    pub fn new(setting: Setting, role: Role) -> Talker {
        Talker {
            stack: Association::new(setting.config(0), role),
            user: User {
                role,
                phase: Phase::Fresh,
                connection: 0,
                budget: setting.budget,
                turn: false,
                called: None,
                sending: None,
                receiving: None,
                left: (0, false),
                checkpoints: Vec::new(),
                at_end: false,
                refused: false,
                resume: None,
                reference: None,
                lost: None,
                received: None,
                confirmed: 0,
                secured: 0,
                released: false,
                fault: None,
            },
            setting: Still(setting),
            hasty: Still(false),
            closed: false,
            writes: Vec::new(),
        }
    }

    /// With a fault put in, to prove that it is found: it confirms what its user did not secure.
    #[must_use]
    pub fn hasty(mut self) -> Talker {
        self.hasty = Still(true);
        self
    }

    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.stack.handle(now, input);
        self.drain();
        if self.hasty.0 && self.user.at_end {
            self.user.end_receiving();
            self.stack.handle(now, Input::Request(Request::TransferSecured));
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.stack.poll() {
            if self.closed {
                self.user.fault = Some(format!("{output:?} after the connection was closed"));
            }
            match output {
                Output::Send(octets) => self.writes.extend_from_slice(&octets),
                Output::Close => self.closed = true,
                Output::Indication(indication) => {
                    self.user.indication(&indication, self.setting.0.unit().length());
                }
            }
        }
    }

    fn request(&mut self, act: Act) -> Request {
        let user = &mut self.user;
        let bind = Bytes::from_static(&[0xA1, 3, 0x80, 1, b'x']);
        match act {
            Act::Open => {
                user.phase = Phase::Asked;
                match user.lost.clone() {
                    Some(reference) => {
                        Request::Recover { reference, received: user.received.take() }
                    }
                    None => Request::Open { bind },
                }
            }
            Act::Accept => {
                (user.phase, user.turn) = (Phase::Open, false);
                match user.called.take() {
                    Some(true) => Request::AcceptRecover(user.received.take()),
                    _ => Request::Accept { bind },
                }
            }
            Act::Refuse => {
                user.budget.failures -= 1;
                Request::Refuse { reason: RefuseReason::Busy, bind_error: None }
            }
            Act::Transfer | Act::Resume => {
                user.sending = Some((None, false));
                let resume = if act == Act::Resume {
                    user.budget.resumes -= 1;
                    user.resume.clone()
                } else {
                    user.budget.transfers -= 1;
                    user.resume = None;
                    None
                };
                Request::Transfer { payload: self.setting.0.unit(), resume }
            }
            Act::Content => {
                let asked = user.sending.as_mut().and_then(|(asked, _)| asked.take());
                Request::Content(vec![0; asked.unwrap_or(1)].into())
            }
            Act::ContentFailed => {
                user.budget.failures -= 1;
                user.sending = Some((None, false));
                Request::ContentFailed
            }
            Act::Interrupt => {
                user.budget.stops -= 1;
                Request::Interrupt
            }
            Act::Pause => {
                user.budget.stops -= 1;
                Request::Pause(true)
            }
            Act::Proceed => {
                if let Some((_, paused)) = &mut user.sending {
                    *paused = false;
                }
                Request::Pause(false)
            }
            Act::Stored => Request::Stored { octets: user.checkpoints.remove(0) },
            Act::Secured => {
                user.secured += 1;
                user.end_receiving();
                Request::TransferSecured
            }
            Act::RefuseForNow | Act::RefuseForGood => {
                user.budget.failures -= 1;
                (user.refused, user.at_end) = (true, false);
                user.checkpoints.clear();
                Request::TransferRefused(match act {
                    Act::RefuseForNow => AbortReason::TemporaryProblem,
                    _ => AbortReason::PermanentProblem,
                })
            }
            Act::TurnPlease => {
                user.budget.turns -= 1;
                Request::TurnPlease(0)
            }
            Act::TurnGive => {
                if user.role == Role::Initiator {
                    user.budget.turns -= 1;
                }
                user.turn = false;
                Request::TurnGive
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
    fn is_idle(&self) -> bool {
        self.phase == Phase::Open && self.sending.is_none() && self.receiving.is_none()
    }

    fn end_receiving(&mut self) {
        self.receiving = None;
        self.checkpoints.clear();
        (self.at_end, self.refused) = (false, false);
    }

    fn indication(&mut self, indication: &Indication, whole: u64) {
        use Indication as I;
        let fails =
            |user: &mut User, why: &str| user.fault = Some(format!("{why}: {indication:?}"));
        if self.phase == Phase::Over {
            return fails(self, "an indication after the end");
        }
        match indication {
            I::Open { reference, .. } => {
                self.called = Some(false);
                self.reference = Some(reference.clone());
            }
            I::RecoverAsked { association, .. } => {
                self.called = Some(true);
                self.reference = Some(association.clone());
            }
            I::Opened { reference, .. } => {
                if self.phase != Phase::Asked {
                    fails(self, "nothing was asked for");
                }
                (self.phase, self.turn) = (Phase::Open, true);
                self.reference = Some(reference.clone());
            }
            I::NeedContent { max, .. } => match &mut self.sending {
                Some((asked, _)) => *asked = Some(*max),
                None => fails(self, "nothing is sent"),
            },
            I::TransferStart { .. } if self.receiving.is_some() || self.turn => {
                fails(self, "in the middle of another, or of our turn");
            }
            I::TransferStart { .. } => self.receiving = Some((0, false)),
            I::TransferResumed { .. } => self.receiving = Some(self.left),
            I::Data { bytes, last } => match &mut self.receiving {
                Some((octets, ended)) if !*ended => {
                    *octets += bytes.len() as u64;
                    *ended = *last;
                    self.left = (*octets, *ended);
                }
                _ => fails(self, "outside a transfer"),
            },
            I::Checkpoint { octets } => self.checkpoints.push(*octets),
            I::TransferEnd => {
                if self.receiving != Some((whole, true)) {
                    fails(self, "the end of what is not whole");
                }
                self.at_end = true;
            }
            I::TransferStopped { .. } => self.end_receiving(),
            I::TransferFaulty { .. } => fails(self, "nothing was faulty"),
            I::Progress(point) => self.resume = Some(point.clone()),
            I::Paused => {
                if let Some((_, paused)) = &mut self.sending {
                    *paused = true;
                }
            }
            I::TransferConfirmed | I::TransferFailed { .. } if self.sending.is_none() => {
                fails(self, "nothing is sent");
            }
            I::TransferConfirmed => {
                self.confirmed += 1;
                (self.sending, self.resume) = (None, None);
            }
            I::TransferFailed { resume, .. } => {
                (self.sending, self.resume) = (None, resume.clone());
            }
            I::TurnGiven => self.turn = true,
            I::Refused { .. } | I::Aborted { .. } => self.over(),
            I::Released => {
                self.released = true;
                self.over();
            }
            I::TurnPlease(_) => {}
            _ => fails(self, "not of RTSE"),
        }
    }

    fn over(&mut self) {
        self.phase = Phase::Over;
        self.end_receiving();
        (self.sending, self.called, self.turn) = (None, None, false);
    }
}

impl End for Talker {
    type Act = Act;
    const LAYERS: &'static [&'static str] = &["cotp", "session", "presentation", "acse", "rtse"];
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
        let budget = user.budget;
        let initiator = user.role == Role::Initiator;
        let two_way = self.setting.0.dialogue == Dialogue::TwoWayAlternate;
        may(Act::Open, initiator && user.phase == Phase::Fresh);
        may(Act::Accept, user.called.is_some());
        let fails = budget.failures > 0;
        may(Act::Refuse, user.called.is_some() && fails);
        let can_send = user.is_idle() && user.turn;
        may(Act::Transfer, can_send && budget.transfers > 0);
        may(Act::Resume, can_send && user.resume.is_some() && budget.resumes > 0);
        may(Act::Release, can_send && initiator);
        may(Act::Close, user.is_idle() && fails);
        // Only the initiator releases: it gets the turn back.
        may(Act::TurnGive, can_send && two_way && (budget.turns > 0 || !initiator));
        let asks = user.phase == Phase::Open && !user.turn && budget.turns > 0;
        may(Act::TurnPlease, asks);
        if let Some((asked, paused)) = user.sending {
            may(Act::Content, asked.is_some());
            may(Act::ContentFailed, asked.is_some() && fails);
            may(Act::Interrupt, budget.stops > 0);
            may(Act::Pause, budget.stops > 0 && !paused);
            may(Act::Proceed, paused);
        }
        may(Act::Stored, !user.checkpoints.is_empty());
        may(Act::Secured, user.at_end);
        let refuses = user.receiving.is_some() && !user.refused && fails;
        may(Act::RefuseForNow, refuses);
        may(Act::RefuseForGood, refuses);
        may(Act::Abort, true);
        acts
    }

    fn act(&mut self, now: Instant, act: &Act) -> bool {
        let request = self.request(*act);
        self.handle(now, Input::Request(request));
        true
    }

    fn is_disturbing(act: &Act) -> bool {
        // A refusal for good, or before the first checkpoint, may be an abort.
        matches!(
            act,
            Act::Refuse | Act::Close | Act::Abort | Act::RefuseForNow | Act::RefuseForGood
        )
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
        if user.called.is_some() || user.at_end || !user.checkpoints.is_empty() {
            return Waits::User;
        }
        match (user.phase, user.sending) {
            (Phase::Asked | Phase::Releasing, _) => Waits::Peer,
            (_, Some((Some(_), _) | (_, true))) => Waits::User,
            (_, Some(_)) => Waits::Peer,
            (_, None) if user.receiving.is_some() => Waits::Peer,
            _ => Waits::Nobody,
        }
    }

    fn fault(&self) -> Option<String> {
        self.user.fault.clone()
    }

    fn held(&self) -> usize {
        self.stack.held()
    }

    fn most_held(&self) -> usize {
        let setting = &self.setting.0;
        let own = setting.unit().head.len() + 64;
        Association::most_held(&setting.config(0)) + own
    }

    fn successes(&self) -> (usize, usize) {
        (self.user.confirmed, self.user.secured)
    }

    fn again(&self) -> Option<Talker> {
        let lost = self.user.reference.clone()?;
        let setting = self.setting.0;
        let mut next = Talker::new(setting, self.user.role);
        let connection = self.user.connection + 1;
        let mut before = self.stack.clone();
        next.stack = Association::new(setting.config(connection), self.user.role);
        next.user = User {
            connection,
            lost: Some(lost),
            received: before.take_interrupted(),
            resume: self.user.resume.clone(),
            left: self.user.left,
            budget: self.user.budget,
            confirmed: self.user.confirmed,
            secured: self.user.secured,
            ..next.user
        };
        Some(next)
    }

    fn fingerprint(&self, now: Instant) -> u128 {
        if !self.closed {
            return fingerprint(self, now);
        }
        // It does nothing more: only what it leaves counts.
        let left = self.stack.clone().take_interrupted();
        fingerprint(&(&self.user, left), now)
    }

    fn names(&self) -> Vec<String> {
        let user = &self.user;
        let mut names = Vec::new();
        let mut is = |name: &str, when: bool| {
            if when {
                names.push(name.to_owned());
            }
        };
        is("user released", user.released);
        is("user confirmed", user.confirmed > 0);
        is("user paused", user.sending.is_some_and(|(_, paused)| paused));
        is("user resumes", user.sending.is_some() && user.resume.is_some());
        is("user recovered", user.connection > 0 && user.phase == Phase::Open);
        is("user confirmed after a recovery", user.connection > 0 && user.confirmed > 0);
        is("user has the turn as responder", user.turn && user.role == Role::Responder);
        names
    }
}
