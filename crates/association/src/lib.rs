//! One association and the transport connection below it, as the node sees them.

pub mod connection_table;
pub mod ended;
pub mod failed;
pub mod kept_sends;
pub mod line;
pub mod looks;
pub mod lost;
pub mod p1;
pub mod p3;
pub mod recovery;
pub mod refused;
pub mod table;
pub mod taken;
pub mod transfer;

use crate::looks::ProgressLooks;
use crate::p1::{Opener, P1};
use crate::p3::{P3, StoreSession};
use crate::transfer::Sending;
use ::p1::SecurityContext;
use base::ip_prefix::Origin;
use base::{AssociationId, Instant};
use dscp::Dscp;
use engine::journal::SpoolId;
use osi::api::{AbortReason, Request};
use osi::stack::Association as Stack;
use scheduler::ChannelId;
use settings::Release;
use settings::channel_changes::Drain;
use std::collections::VecDeque;
use std::net::IpAddr;

/// One association, its connection and what is transferred on it.
#[derive(Debug)]
pub struct Association {
    /// Its number.
    pub id: AssociationId,
    /// Its layers.
    pub stack: Stack,
    /// Requests to hand to the stack, one after each drain.
    pub requests: VecDeque<Request>,
    /// What is below it.
    pub connection: TransportConnection,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// When its progress is looked at.
    pub looks: ProgressLooks,
    /// The security-context that its other end asked for, or why it cannot have it.
    context: Option<Result<SecurityContext, String>>,
    state: AssociationState,
    sending: Option<Sending>,
    /// The arrival on it.
    receiving: Option<SpoolId>,
    /// Since when it has no transfer.
    idle_since: Instant,
    end: AssociationEnd,
}

/// What is spoken on an association, with what that needs.
#[derive(Debug)]
pub enum Protocol {
    /// P1, with a peer.
    P1(P1),
    /// P3 or P7, with a user.
    P3(P3),
}

/// How far an association has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssociationState {
    /// The transport connection is being made.
    Connecting,
    /// Layers above are being opened, or a bind is awaited or checked: until then, if it was not
    /// aborted meanwhile (X.411 8.1.1 sets no bound; ours).
    Opening {
        /// When that takes too long.
        until: Option<Instant>,
    },
    /// Open since then.
    Open {
        /// Since when.
        since: Instant,
    },
    /// A release was asked for of one that was open since then.
    Releasing {
        /// Since when it was open.
        since: Instant,
    },
    /// We refused the bind, which the log has.
    Refusing,
    /// Over: only the end of the connection is awaited.
    Over,
}

/// The transport connection.
#[derive(Debug)]
pub struct TransportConnection {
    /// The peer's address, once there is one.
    pub remote: Option<IpAddr>,
    /// The address that it is counted for, where somebody else opened it.
    pub origin: Option<Origin>,
    /// When it was accepted, or asked for.
    pub accepted: Instant,
    /// The mark the peer's handshake arrived with, where it could be seen.
    pub dscp_seen: Option<Dscp>,
    /// The error with which the edge reported its end, or why we ended it.
    pub error: Option<String>,
}

/// Why nothing more begins on an association.
#[derive(Debug, Default)]
struct AssociationEnd {
    /// The transfer is to be interrupted at its next checkpoint.
    interrupting: bool,
    /// It takes nothing new and ends, for the configuration changed.
    drain: Option<Drain>,
    /// The hours of its channel are over: nothing more begins on it, and it is released.
    leaving: bool,
    /// Why we give the peer up for a while.
    given_up: Option<String>,
    /// What the peer refused it for.
    refused: Option<failed::Failure>,
    /// The next is tried at once.
    at_once: bool,
}

impl AssociationEnd {
    /// Whether nothing more begins.
    fn is_near(&self) -> bool {
        self.interrupting || self.leaving || self.drain.is_some()
    }
}

impl Association {
    /// One that is in this state from now on.
    pub fn new(
        id: AssociationId,
        stack: Stack,
        protocol: Protocol,
        state: AssociationState,
        now: Instant,
    ) -> Association {
        Association {
            id,
            stack,
            requests: VecDeque::new(),
            connection: TransportConnection {
                remote: None,
                origin: None,
                accepted: now,
                dscp_seen: None,
                error: None,
            },
            protocol,
            state,
            sending: None,
            receiving: None,
            idle_since: now,
            end: AssociationEnd::default(),
            looks: ProgressLooks::default(),
            context: None,
        }
    }

    /// Hands a request to its layers.
    pub fn request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// What P1 needs, if it is spoken.
    pub fn p1(&self) -> Option<&P1> {
        match &self.protocol {
            Protocol::P1(p1) => Some(p1),
            Protocol::P3(_) => None,
        }
    }

    /// The same, to change.
    pub fn p1_mut(&mut self) -> Option<&mut P1> {
        match &mut self.protocol {
            Protocol::P1(p1) => Some(p1),
            Protocol::P3(_) => None,
        }
    }

    /// What P3 needs, if it or P7 is spoken.
    pub fn p3(&self) -> Option<&P3> {
        match &self.protocol {
            Protocol::P1(_) => None,
            Protocol::P3(p3) => Some(p3),
        }
    }

    /// The same, to change.
    pub fn p3_mut(&mut self) -> Option<&mut P3> {
        match &mut self.protocol {
            Protocol::P1(_) => None,
            Protocol::P3(p3) => Some(p3),
        }
    }

    /// The channel it belongs to, where it is P1.
    pub fn channel(&self) -> Option<ChannelId> {
        self.p1().map(|p1| p1.channel)
    }

    /// Whether we opened it, to a peer.
    pub fn is_initiator(&self) -> bool {
        self.p1().is_some_and(|p1| p1.opener == Opener::Us)
    }

    /// The bound user's mailbox.
    pub fn mailbox(&self) -> Option<&str> {
        self.p3()?.mailbox.as_deref()
    }

    /// Whether no operation of its user waits for an answer.
    pub fn is_answered(&self) -> bool {
        self.p3().is_none_or(|p3| p3.unanswered == 0)
    }

    /// Its other end asked for this security-context, or cannot have what it asked for. A peer sends on such an
    /// association, and nothing goes back on it.
    pub fn set_context(&mut self, context: Option<Result<SecurityContext, String>>) {
        if let (Some(_), Protocol::P1(p1)) = (&context, &mut self.protocol) {
            p1.turn.two_way = false;
        }
        self.context = context;
    }

    /// Why the security-context that was asked for cannot be had.
    pub fn context_refused(&self) -> Option<&str> {
        self.context.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// The security-context that it has (X.411 8.1.1.1.1.3): it carries nothing else.
    pub fn security_context(&self) -> Option<&SecurityContext> {
        self.context.as_ref()?.as_ref().ok()
    }

    /// What P7 needs, if it is spoken.
    pub fn store(&self) -> Option<&StoreSession> {
        self.p3()?.store.as_ref()
    }

    /// Whether it is a user's who takes deliveries on it.
    pub fn takes_deliveries(&self) -> bool {
        self.p3().is_some_and(|p3| p3.takes_deliveries)
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        matches!(self.state, AssociationState::Open { .. })
    }

    /// Whether its connection is there and its bind is not done.
    pub fn is_binding(&self) -> bool {
        matches!(self.state, AssociationState::Opening { .. })
    }

    /// Whether it is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, AssociationState::Connecting | AssociationState::Opening { .. })
    }

    /// Whether nothing is in transfer in either direction.
    pub fn is_idle(&self) -> bool {
        self.is_open() && self.sending.is_none() && self.receiving.is_none()
    }

    /// Whether nothing more begins on it.
    pub fn is_ending(&self) -> bool {
        self.end.is_near()
    }

    /// Whether RTSE's turn is ours.
    pub fn has_turn(&self) -> bool {
        self.p1().is_some_and(|p1| p1.turn.ours)
    }

    /// Whether we have asked for the turn, and it has not come.
    pub fn wants_turn(&self) -> bool {
        self.p1().is_some_and(|p1| p1.turn.wanted)
    }

    /// Whether RTSE lets either end have the turn.
    pub fn is_two_way(&self) -> bool {
        self.p1().is_some_and(|p1| p1.turn.two_way)
    }

    /// Whether a transfer of ours failed on it, and it is not clear what follows.
    pub fn has_failed(&self) -> bool {
        self.p1().is_some_and(|p1| p1.failed.is_some())
    }

    /// Whether it could take the next transfer, once the turn is ours.
    pub fn is_free(&self) -> bool {
        self.is_idle() && !self.is_ending() && !self.has_failed()
    }

    /// Whether a transfer could begin now.
    pub fn can_send(&self) -> bool {
        self.is_idle() && self.has_turn() && !self.is_ending()
    }

    /// How far it has come.
    pub fn state(&self) -> AssociationState {
        self.state
    }

    /// Its transport connection is made. The layers above open until then.
    pub fn connected(&mut self, until: Instant) {
        self.state = AssociationState::Opening { until: Some(until) };
    }

    /// We refuse it.
    pub fn refuse(&mut self) {
        self.state = AssociationState::Refusing;
    }

    /// We end it in order, if it is open; gives the request. Only the end that opened a P1 association and has the
    /// turn may release it (X.228 7.2.1): the other end aborts.
    pub fn release(&mut self, by: Release) -> Request {
        let request = match by {
            Release::Close if self.is_idle() => Request::Close,
            _ if self.is_initiator() && self.has_turn() => Request::Release,
            _ => Request::Abort(AbortReason::TemporaryProblem),
        };
        if let AssociationState::Open { since } = self.state {
            self.state = AssociationState::Releasing { since };
        }
        request
    }

    // ----- its end ------------------------------------------------------------------------------

    /// The hours of its channel are over: nothing more begins on it.
    pub fn leave(&mut self) {
        self.end.leaving = true;
    }

    /// The hours of its channel begin again.
    pub fn stay(&mut self) {
        self.end.leaving = false;
    }

    /// Whether the hours of its channel are over, or we abandoned it.
    pub fn is_leaving(&self) -> bool {
        self.end.leaving
    }

    /// The transfer is to be interrupted at its next checkpoint.
    pub fn interrupt(&mut self) {
        self.end.interrupting = true;
    }

    /// Whether its transfer is to be interrupted at the next checkpoint.
    pub fn is_interrupting(&self) -> bool {
        self.end.interrupting
    }

    /// The configuration changed: nothing more begins on it. The stronger reason counts.
    pub fn drain(&mut self, drain: Drain) {
        self.end.drain = self.end.drain.max(Some(drain));
    }

    /// Why the configuration ends it, if it does.
    pub fn drained(&self) -> Option<Drain> {
        self.end.drain
    }

    /// We give the peer up for a while.
    pub fn give_up(&mut self, why: String) {
        self.end.given_up = Some(why);
    }

    /// The peer refused it for this.
    pub fn was_refused(&mut self, why: failed::Failure) {
        self.end.refused = Some(why);
    }

    /// Its channel is tried again at once.
    pub fn try_at_once(&mut self) {
        self.end.at_once = true;
    }

    // ----- its transfers ------------------------------------------------------------------------

    /// What it sends.
    pub fn sending(&self) -> Option<&Sending> {
        self.sending.as_ref()
    }

    /// The same, to change.
    pub fn sending_mut(&mut self) -> Option<&mut Sending> {
        self.sending.as_mut()
    }

    /// A transfer of ours begins.
    pub fn begin_sending(&mut self, sending: Sending) {
        self.sending = Some(sending);
    }

    /// What it was sending, which it no longer sends.
    pub fn take_sending(&mut self) -> Option<Sending> {
        self.sending.take()
    }

    /// What it was to send, if its record is not read yet.
    pub fn take_unread(&mut self) -> Option<Sending> {
        self.sending.take_if(|sending| sending.record.is_none())
    }

    /// It no longer sends, and is idle from now on. Gives what it was sending.
    pub fn end_sending(&mut self, now: Instant) -> Option<Sending> {
        let sending = self.sending.take()?;
        self.idle_since = now;
        Some(sending)
    }

    /// The arrival on it.
    pub fn receiving(&self) -> Option<SpoolId> {
        self.receiving
    }

    /// The arrival on it, which is no longer received there.
    pub fn take_receiving(&mut self) -> Option<SpoolId> {
        self.receiving.take()
    }

    /// It no longer receives, and is idle from now on. Gives what it was receiving.
    pub fn end_receiving(&mut self, now: Instant) -> Option<SpoolId> {
        self.idle_since = now;
        self.receiving.take()
    }

    /// RTSE's turn is ours from now on.
    pub fn gain_turn(&mut self, now: Instant) {
        self.idle_since = now;
        if let Some(p1) = self.p1_mut() {
            p1.turn.ours = true;
            p1.turn.wanted = false;
            p1.turn.deadline = None;
        }
    }

    /// Since when it has no transfer.
    pub fn idle_since(&self) -> Instant {
        self.idle_since
    }

    /// A transfer to us begins or continues.
    pub fn receive(&mut self, spool: SpoolId) {
        self.receiving = Some(spool);
        if let Some(p1) = self.p1_mut() {
            p1.turn.deadline = None;
        }
    }

    /// It is open from now on, and idle.
    pub fn open(&mut self, now: Instant) {
        self.state = AssociationState::Open { since: now };
        self.idle_since = now;
    }

    /// When something on it is due.
    pub fn deadline(&self) -> Option<Instant> {
        let opening = match self.state {
            AssociationState::Opening { until } => until,
            _ => None,
        };
        let of_protocol = match &self.protocol {
            Protocol::P1(p1) => [p1.turn.deadline, None],
            Protocol::P3(p3) => [p3.delivery_deadline, p3.argument_deadline],
        };
        let stall = self.sending.as_ref().and_then(|sending| sending.stall_look);
        let own = [opening, self.looks.at, stall, self.stack.deadline()];
        own.into_iter().chain(of_protocol).flatten().min()
    }

    /// What did not come in time, if anything; it is no longer awaited.
    pub fn take_overdue(&mut self, now: Instant) -> Option<&'static str> {
        let overdue = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if let AssociationState::Opening { until } = &mut self.state
            && overdue(until)
        {
            return Some("no association in time (limits.bind_timeout)");
        }
        match &mut self.protocol {
            Protocol::P1(p1) => {
                overdue(&mut p1.turn.deadline).then_some("the peer did not give the turn in time")
            }
            Protocol::P3(p3) => {
                if overdue(&mut p3.delivery_deadline) {
                    return Some("the user did not answer a delivery in time");
                }
                overdue(&mut p3.argument_deadline).then_some("an argument did not come in time")
            }
        }
    }

    /// It is to be looked at whether its transfer makes progress.
    pub fn take_due_stall_look(&mut self, now: Instant) -> bool {
        let look = self.sending.as_mut().map(|sending| &mut sending.stall_look);
        look.is_some_and(|look| look.take_if(|at| *at <= now).is_some())
    }

    /// A look at its connection is due.
    pub fn take_due_look(&mut self, now: Instant) -> bool {
        self.looks.at.take_if(|at| *at <= now).is_some()
    }
}
