//! A session and transport connection, and a user that requests whatever the table of the session lets it.

use crate::fingerprint::fingerprint;
use crate::pair::{End, Waits};
use base::Instant;
use bytes::Bytes;
use osi::api::{Config, Role, Selectors};
use osi::lower::{Lower, LowerOutput};
use osi::profiles;
use osi::session::service::{
    Accept, Connect, ConnectionReference, ExceptionReason, Indication, Refuse, Request, Resume,
    requirements,
};

/// A request of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the requests of osi::session::service")]
pub enum Act {
    Connect,
    Accept,
    Refuse,
    Data,
    DataBegun,
    DataEnded,
    GiveTokens,
    GiveControl,
    PleaseTokens,
    ActivityStart,
    ActivityResume,
    ActivityInterrupt,
    InterruptResponse,
    ActivityDiscard,
    DiscardResponse,
    ActivityEnd,
    EndResponse,
    MinorSync,
    MinorSyncResponse,
    Exception,
    Release,
    ReleaseResponse,
    Abort,
}

/// All requests.
const ALL: &[Act] = &[
    Act::Connect,
    Act::Accept,
    Act::Refuse,
    Act::Data,
    Act::DataBegun,
    Act::DataEnded,
    Act::GiveTokens,
    Act::GiveControl,
    Act::PleaseTokens,
    Act::ActivityStart,
    Act::ActivityResume,
    Act::ActivityInterrupt,
    Act::InterruptResponse,
    Act::ActivityDiscard,
    Act::DiscardResponse,
    Act::ActivityEnd,
    Act::EndResponse,
    Act::MinorSync,
    Act::MinorSyncResponse,
    Act::Exception,
    Act::Release,
    Act::ReleaseResponse,
    Act::Abort,
];

/// An end.
#[derive(Clone, Debug)]
pub struct Sessioner {
    lower: Lower,
    user: User,
    closed: bool,
    writes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct User {
    /// Only it may connect.
    initiator: bool,
    /// Activities that may begin, tokens that may be given and asked for, data, synchronization points and
    /// exceptions: of each as many.
    activities: u8,
    tokens: u8,
    data: u8,
    points: u8,
    exceptions: u8,
    /// Serial number of the last point indicated, not yet answered.
    point: Option<u32>,
    /// What we asked the peer for, and it asked us for.
    asked: Option<&'static str>,
    due: Option<&'static str>,
    /// The transport connection was lost before the session asked for it: it is not indicated, the
    /// layers above see it closed.
    early: bool,
    /// An SSDU of ours is not at its end.
    sending: bool,
    /// It asked for a connection, or was asked.
    begun: bool,
    over: bool,
    released: bool,
    fault: Option<String>,
}

fn config() -> Config {
    profiles::p1(Selectors::default(), Selectors::default(), ConnectionReference::default())
}

fn request(act: Act, user: &User) -> Option<Request> {
    let activity = Bytes::from_static(b"1");
    let none = Bytes::new;
    let reason = ExceptionReason::NonSpecific;
    Some(match act {
        Act::Connect => Request::Connect(Connect {
            calling_selector: None,
            called_selector: None,
            reference: ConnectionReference::default(),
            requirements: requirements::RTSE,
            user_data: none(),
        }),
        Act::Accept => Request::Accept(Accept {
            responding_selector: None,
            requirements: requirements::RTSE,
            user_data: none(),
        }),
        Act::Refuse => Request::Refuse(Refuse { reason: 2, user_data: none() }),
        Act::Data => Request::Data { bytes: Bytes::from_static(b"d"), last: true },
        Act::DataBegun => Request::Data { bytes: Bytes::from_static(b"d"), last: false },
        Act::DataEnded if !user.sending => return None,
        Act::DataEnded => Request::Data { bytes: none(), last: true },
        Act::GiveTokens => Request::GiveTokens,
        Act::GiveControl => Request::GiveControl,
        Act::PleaseTokens => Request::PleaseTokens { user_data: none() },
        Act::ActivityStart => Request::ActivityStart { activity },
        Act::ActivityResume => Request::ActivityResume(Resume {
            activity: Bytes::from_static(b"2"),
            old_activity: activity,
            serial: 1,
            old_reference: None,
        }),
        Act::ActivityInterrupt => Request::ActivityInterrupt(reason),
        Act::InterruptResponse => Request::ActivityInterruptResponse,
        Act::ActivityDiscard => Request::ActivityDiscard(reason),
        Act::DiscardResponse => Request::ActivityDiscardResponse,
        Act::ActivityEnd => Request::ActivityEnd,
        Act::EndResponse => Request::ActivityEndResponse,
        Act::MinorSync => Request::MinorSync,
        Act::MinorSyncResponse => Request::MinorSyncResponse { serial: user.point? },
        Act::Exception => Request::ExceptionReport(reason),
        Act::Release => Request::Release { user_data: none() },
        Act::ReleaseResponse => Request::ReleaseResponse { user_data: none() },
        Act::Abort => Request::Abort { user_data: none() },
    })
}

impl Sessioner {
    /// One at rest, whose user begins so many activities, and so on.
    pub fn new(role: Role, budget: u8) -> Sessioner {
        Sessioner {
            lower: Lower::new(&config(), role),
            user: User {
                initiator: role == Role::Initiator,
                activities: budget,
                tokens: budget,
                data: budget,
                points: budget,
                exceptions: budget,
                point: None,
                asked: None,
                due: None,
                early: false,
                sending: false,
                begun: false,
                over: false,
                released: false,
                fault: None,
            },
            closed: false,
            writes: Vec::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.lower.poll() {
            if self.closed {
                self.user.fault = Some(format!("{output:?} after the connection was closed"));
            }
            match output {
                LowerOutput::Send(octets) => self.writes.extend_from_slice(&octets),
                LowerOutput::Close => self.closed = true,
                LowerOutput::Indication(indication) => self.user.indication(&indication),
            }
        }
    }
}

impl User {
    /// What this may be requested for so often.
    fn budget(&mut self, act: Act) -> Option<&mut u8> {
        match act {
            Act::ActivityStart | Act::ActivityResume => Some(&mut self.activities),
            Act::GiveTokens | Act::GiveControl | Act::PleaseTokens => Some(&mut self.tokens),
            Act::Data | Act::DataBegun => Some(&mut self.data),
            Act::MinorSync => Some(&mut self.points),
            Act::Exception => Some(&mut self.exceptions),
            _ => None,
        }
    }

    fn requested(&mut self, act: Act) {
        if let Some(budget) = self.budget(act) {
            *budget -= 1;
        }
        match act {
            Act::Connect => (self.begun, self.asked) = (true, Some("connect")),
            Act::Release => self.asked = Some("release"),
            Act::ActivityEnd => self.asked = Some("end"),
            Act::ActivityInterrupt | Act::ActivityDiscard => self.asked = Some("cut"),
            Act::Accept | Act::EndResponse | Act::InterruptResponse | Act::DiscardResponse => {
                self.due = None;
            }
            Act::MinorSyncResponse => self.point = None,
            Act::DataBegun => self.sending = true,
            Act::DataEnded => self.sending = false,
            Act::ReleaseResponse => (self.over, self.released, self.due) = (true, true, None),
            Act::Refuse | Act::Abort => (self.over, self.due, self.asked) = (true, None, None),
            _ => {}
        }
    }

    fn indication(&mut self, indication: &Indication) {
        use Indication as I;
        if self.over {
            self.fault = Some(format!("an indication after the end: {indication:?}"));
            return;
        }
        match indication {
            I::Connect(_) => (self.begun, self.due) = (true, Some("connect")),
            I::Release { .. } => self.due = Some("release"),
            I::ActivityEnd { .. } => self.due = Some("end"),
            I::ActivityInterrupt(_) | I::ActivityDiscard(_) => {
                (self.due, self.point) = (Some("cut"), None);
            }
            I::Accepted(_)
            | I::ActivityEndConfirm
            | I::ActivityInterruptConfirm
            | I::ActivityDiscardConfirm => self.asked = None,
            I::MinorSync { serial } => self.point = Some(*serial),
            // It may take the place of the confirm.
            I::ExceptionReport(_) if self.asked == Some("end") => self.asked = None,
            I::Released { .. } => (self.over, self.released, self.asked) = (true, true, None),
            I::Refused(_) | I::UserAbort { .. } | I::ProviderAbort { .. } => {
                (self.over, self.asked, self.due) = (true, None, None);
            }
            _ => {}
        }
    }
}

impl End for Sessioner {
    type Act = Act;
    const LAYERS: &'static [&'static str] = &["cotp", "session"];
    const ABORT: Act = Act::Abort;

    fn acts(&self) -> Vec<Act> {
        if self.user.over {
            return Vec::new();
        }
        let mut user = self.user.clone();
        let may = |act: &Act| *act != Act::Connect || self.user.initiator;
        let within = |act: &Act| may(act) && user.budget(*act).is_none_or(|left| *left > 0);
        ALL.iter().copied().filter(within).collect()
    }

    fn act(&mut self, now: Instant, act: &Act) -> bool {
        let Some(request) = request(*act, &self.user) else { return false };
        let allowed = self.lower.request(now, request).is_ok();
        if allowed {
            self.user.requested(*act);
        }
        self.drain();
        allowed
    }

    fn is_disturbing(act: &Act) -> bool {
        matches!(act, Act::Refuse | Act::Abort)
    }

    fn bytes(&mut self, now: Instant, octets: &[u8]) {
        self.user.early |= self.user.initiator && !self.user.begun;
        self.lower.bytes(now, octets);
        self.drain();
    }

    fn eof(&mut self, now: Instant) {
        self.lower.eof(now);
        self.drain();
    }

    fn tick(&mut self, now: Instant) {
        self.lower.tick(now);
        self.drain();
    }

    fn deadline(&self) -> Option<Instant> {
        self.lower.deadline()
    }

    fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writes)
    }

    fn closed(&self) -> bool {
        self.closed
    }

    fn ended(&self) -> bool {
        self.user.over
    }

    fn begun(&self) -> bool {
        self.user.begun && !self.user.early
    }

    fn released(&self) -> bool {
        self.user.released
    }

    fn waits(&self) -> Waits {
        match (self.user.asked, self.user.due) {
            (_, Some(_)) => Waits::User,
            // What the peer's user answers is for the layers above to bound (X.225 A.5).
            (Some("connect" | "release"), None) => Waits::Peer,
            _ => Waits::Nobody,
        }
    }

    fn fault(&self) -> Option<String> {
        self.user.fault.clone()
    }

    fn held(&self) -> usize {
        0
    }

    fn most_held(&self) -> usize {
        0
    }

    fn fingerprint(&self, now: Instant) -> u128 {
        if self.closed { fingerprint(&self.user, now) } else { fingerprint(self, now) }
    }

    fn names(&self) -> Vec<String> {
        if self.user.released { vec!["user released".to_owned()] } else { Vec::new() }
    }
}
