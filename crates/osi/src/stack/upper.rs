//! Presentation, ACSE and RTSE or ROSE as one machine on the session service.

use super::below::{Above, Below};
use crate::api::{Config, Indication, Request, Role, Service};
use crate::rose::Rose;
use crate::rtse::{InterruptedReceive, Rtse};
use crate::session::service as session;
use base::time::Instant;
use std::time::Duration;

#[derive(Clone, Debug)]
enum User {
    Rtse(Box<Rtse>),
    Rose(Box<Rose>),
}

/// An output of the upper layers.
#[derive(Clone, Debug)]
pub(crate) enum UpperOutput {
    /// Hand this to the session.
    Session(session::Request),
    /// Indicate to the user.
    User(Indication),
    /// End the connection below, however far it has come.
    End,
}

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Upper {
    below: Below,
    user: User,
    setup_timeout: Duration,
    stall_timeout: Duration,
    /// When to give up waiting for an association, or for its release.
    setup: Option<(Instant, &'static str)>,
    /// The end of the association was indicated.
    over: bool,
    /// The connection below is to be ended.
    end_due: bool,
}

impl Upper {
    pub(crate) fn new(config: &Config, role: Role) -> Upper {
        let user = match &config.service {
            Service::Rtse(parameters) => User::Rtse(Box::new(Rtse::new(config, parameters))),
            Service::Rose => User::Rose(Box::new(Rose::new(config, role))),
        };
        Upper {
            below: Below::new(config, role),
            user,
            setup_timeout: config.setup_timeout,
            stall_timeout: match &config.service {
                Service::Rtse(parameters) => parameters.transfer_timeout,
                Service::Rose => config.operation_timeout,
            },
            setup: None,
            over: false,
            end_due: false,
        }
    }

    /// A responder's transport connection is there: the whole set-up has one bound, however slowly
    /// its steps come.
    pub(crate) fn listen(&mut self, now: Instant) {
        self.setup = Some((now + self.setup_timeout, "the association to be asked for"));
    }

    /// A request of the user; nothing after the end.
    pub(crate) fn request(&mut self, now: Instant, request: Request) {
        if self.over {
            return;
        }
        let awaited = match &request {
            Request::Open { .. } | Request::Recover { .. } => {
                Some("the association to be accepted")
            }
            Request::Release => Some("the release to be answered"),
            _ => None,
        };
        if let Some(what) = awaited {
            self.setup = Some((now + self.setup_timeout, what));
        }
        let aborts = matches!(request, Request::Abort(_));
        match &mut self.user {
            User::Rtse(rtse) => rtse.request(now, &mut self.below, request),
            User::Rose(rose) => rose.request(now, &mut self.below, request),
        }
        if aborts {
            // Also where there is no association yet that the layers above could abort.
            self.fail(now, "acse: aborted by us (X.227 7.3.3.1)".to_owned());
        }
        self.route(now);
    }

    /// An indication of the session.
    pub(crate) fn indication(&mut self, now: Instant, indication: session::Indication) {
        self.below.indication(indication);
        self.route(now);
    }

    fn route(&mut self, now: Instant) {
        while let Some(above) = self.below.poll_up() {
            match (above, &mut self.user) {
                (Above::Association(i), User::Rtse(rtse)) => {
                    rtse.association(now, &mut self.below, i);
                }
                (Above::Association(i), User::Rose(rose)) => rose.association(&mut self.below, i),
                (Above::Presentation(i), User::Rtse(rtse)) => {
                    rtse.presentation(now, &mut self.below, i);
                }
                (Above::Presentation(i), User::Rose(rose)) => {
                    rose.presentation(now, &mut self.below, i);
                }
            }
        }
    }

    /// Whether the layers here wait for nobody, though the association is there: then what the peer
    /// has begun to send has no other bound than [`Upper::stall_timeout`].
    pub(crate) fn is_idle(&self) -> bool {
        let idle = match &self.user {
            User::Rtse(rtse) => rtse.is_idle(),
            User::Rose(_) => true,
        };
        idle && !self.over && self.deadline().is_none()
    }

    /// Longest that a packet, or a TSDU, may take from its first octet to its last.
    pub(crate) fn stall_timeout(&self) -> Duration {
        self.stall_timeout
    }

    /// The peer's transport took octets; whether of what our user sends or sent.
    pub(crate) fn peer_took(&mut self, now: Instant, ours: bool) {
        match &mut self.user {
            _ if self.over => {}
            User::Rtse(rtse) => rtse.peer_took(now),
            User::Rose(rose) => rose.peer_took(now, ours),
        }
    }

    /// Whether what was written last belongs to what our user sends. Asked after each input.
    pub(crate) fn sends(&mut self) -> bool {
        match &mut self.user {
            User::Rtse(rtse) => rtse.awaits_answer(),
            User::Rose(rose) => rose.sends(),
        }
    }

    /// Whether an acknowledgement, confirm or answer of the peer is pending.
    pub(crate) fn awaits_answer(&self) -> bool {
        match &self.user {
            _ if self.over => false,
            User::Rtse(rtse) => rtse.awaits_answer(),
            User::Rose(rose) => rose.awaits_answer(),
        }
    }

    /// Octets between checkpoints.
    pub(crate) fn checkpoint(&self) -> Option<u64> {
        match &self.user {
            User::Rtse(rtse) => rtse.checkpoint,
            User::Rose(_) => None,
        }
    }

    /// The deadline passed.
    pub(crate) fn tick(&mut self, now: Instant) {
        match &mut self.user {
            User::Rtse(rtse) => rtse.tick(now, &mut self.below),
            User::Rose(rose) => rose.tick(now, &mut self.below),
        }
        if let Some((at, what)) = self.setup
            && at <= now
        {
            self.setup = None;
            let why = format!("acse: setup timeout, waiting for {what} (X.227 7.1, 7.2)");
            self.fail(now, why);
        }
        self.route(now);
    }

    /// Aborts for a fault found outside the layers here.
    pub(crate) fn fail(&mut self, now: Instant, detail: String) {
        self.below.fail(detail);
        self.end_due = true;
        self.route(now);
    }

    /// When to call [`Upper::tick`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let user = match &self.user {
            _ if self.over => None,
            User::Rtse(rtse) => rtse.deadline(),
            User::Rose(rose) => rose.deadline(),
        };
        [self.setup.map(|(at, _)| at), user].into_iter().flatten().min()
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self) -> Option<UpperOutput> {
        if let Some(request) = self.below.poll_down() {
            return Some(UpperOutput::Session(request));
        }
        // After the indications of the layers above.
        if std::mem::take(&mut self.end_due) {
            return Some(UpperOutput::End);
        }
        while let Some(indication) = match &mut self.user {
            User::Rtse(rtse) => rtse.up.pop_front(),
            User::Rose(rose) => rose.up.pop_front(),
        } {
            if self.over {
                continue;
            }
            let is_set_up = matches!(
                indication,
                Indication::Opened { .. }
                    | Indication::Open { .. }
                    | Indication::RecoverAsked { .. }
            );
            self.over = matches!(
                indication,
                Indication::Released | Indication::Refused { .. } | Indication::Aborted { .. }
            );
            if is_set_up || self.over {
                self.setup = None;
            }
            return Some(UpperOutput::User(indication));
        }
        None
    }

    /// Octets held between calls.
    pub(super) fn held(&self) -> usize {
        let user = match &self.user {
            User::Rtse(rtse) => rtse.held(),
            User::Rose(rose) => rose.held(),
        };
        self.below.held() + user
    }

    /// Most octets [`Upper::held`] ever gives.
    pub(super) fn most_held(config: &Config) -> usize {
        let user = match &config.service {
            Service::Rtse(rtse) => {
                Rtse::most_held(usize::try_from(rtse.window.max(1)).unwrap_or(usize::MAX / 64))
            }
            Service::Rose => Rose::MAX_HELD,
        };
        Below::MAX_HELD + user
    }

    /// The states of the layers here, for tests.
    #[cfg(test)]
    pub(super) fn states(&self) -> [String; 2] {
        let user = match &self.user {
            User::Rtse(rtse) => rtse.state(),
            User::Rose(rose) => rose.state(),
        };
        [self.below.state(), user]
    }

    /// The transfer that is being received, at the last checkpoint before so many octets of the user's.
    pub(crate) fn at_checkpoint(&self, octets: u64) -> Option<InterruptedReceive> {
        match &self.user {
            User::Rtse(rtse) => rtse.at_checkpoint(octets),
            User::Rose(_) => None,
        }
    }

    /// What the association left of a transfer that was being received.
    pub(crate) fn take_interrupted(&mut self) -> Option<InterruptedReceive> {
        match &mut self.user {
            User::Rtse(rtse) => rtse.take_interrupted(),
            User::Rose(_) => None,
        }
    }
}
