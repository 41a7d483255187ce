//! One association and the transport connection below it, as the node sees them.

pub(crate) mod meter;
pub(crate) mod transfer;

use crate::admission::access::Name;
use crate::association::transfer::{Failed, Sending};
use crate::config::address_prefix::Origin;
use crate::context::recovery::LostSend;
use crate::ids::ListenerId;
use base::{AssociationId, Instant};
use dscp::Dscp;
use engine::journal::SpoolId;
use osi::api::AbortReason;
use osi::session::service::ConnectionReference;
use osi::stack::Association as Stack;
use scheduler::ChannelId;
use std::collections::VecDeque;
use std::net::IpAddr;

/// What an association is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// P1, opened by us.
    Initiator { channel: ChannelId },
    /// P1, opened by a peer.
    Responder { listener: ListenerId, channel: ChannelId },
    /// P3, opened by a user; the mailbox is known once bound.
    User {
        listener: ListenerId,
        mailbox: Option<String>,
        /// Whether the user takes deliveries on this association (message delivery was proposed).
        takes_deliveries: bool,
    },
}

/// How far an association has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The transport connection is being made.
    Connecting,
    /// Layers above are being opened, or a bind is awaited or checked.
    Opening,
    /// Open.
    Open,
    /// A release was asked for.
    Releasing,
    /// We refused the bind, and said so in the log.
    Refusing,
    /// Over: only the end of the connection is awaited.
    Over,
}

/// Why an association takes nothing new and ends after what is in transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drain {
    /// Another one takes its place, with what the configuration says now.
    Reopened,
    /// Its channel is no more: a transfer of ours ends at its next checkpoint.
    Removed,
}

#[derive(Debug)]
pub(crate) struct Association {
    pub id: AssociationId,
    pub stack: Stack,
    pub purpose: Purpose,
    pub phase: Phase,
    pub remote: Option<IpAddr>,
    /// Whom it is counted against, where somebody else opened it.
    pub origin: Option<Origin>,
    /// When its TCP connection was accepted, or asked for.
    pub accepted: Instant,
    /// P1: the name the peer bound with.
    pub presented: Option<Name>,
    /// The mark the peer's handshake arrived with, where it could be seen.
    pub dscp_seen: Option<Dscp>,
    /// Requests to hand to the stack, one after each drain.
    pub requests: VecDeque<osi::api::Request>,
    pub sending: Option<Sending>,
    /// A transfer of ours that failed on this association, until it is clear what follows.
    pub failed: Option<Failed>,
    /// What is arriving now.
    pub receiving: Option<SpoolId>,
    /// RTSE: a transfer to us that was interrupted and may be resumed.
    pub suspended: Option<SpoolId>,
    /// RTSE: a transfer of ours that goes on once the turn comes, and until when it was to be kept.
    pub resumes: Option<LostSend>,
    /// P3: what data now arriving belongs to, and how many invocations wait for our answer.
    pub unit: Unit,
    pub unanswered: u32,
    /// RTSE: whether either end may have the turn.
    pub two_way: bool,
    /// Whether RTSE's turn is ours.
    pub turn: bool,
    /// The peer asked for the turn.
    pub turn_asked: bool,
    /// We asked for the turn.
    pub turn_wanted: bool,
    /// Ends an association whose other end neither sends nor gives the turn.
    pub turn_deadline: Option<Instant>,
    /// The session connection reference, for recovery.
    pub reference: ConnectionReference,
    /// The association that it recovered.
    pub recovered: Option<ConnectionReference>,
    /// No transfer since.
    pub idle_since: Instant,
    /// P3: ends an association whose user does not answer a delivery.
    pub delivery_deadline: Option<Instant>,
    /// P3: ends an association whose user does not get on with an argument.
    pub argument_deadline: Option<Instant>,
    /// When to ask how much the peer has taken, and how much it had at an earlier time since which
    /// something was always outstanding.
    pub look_at: Option<Instant>,
    pub looked: Option<(Instant, u64)>,
    /// How much it had taken when that was last progress.
    pub progressed: u64,
    /// Ends a connection whose bind does not come (X.411 8.1.1 sets no bound; ours).
    pub bind_deadline: Option<Instant>,
    /// When it opened.
    pub opened: Option<Instant>,
    /// Why we give the peer up for a while.
    pub given_up: Option<String>,
    /// Why the peer aborted it, where it said so.
    pub abort: Option<AbortReason>,
    /// What the edge said of the end of the connection.
    pub transport_error: Option<String>,
    pub next_invoke: i64,
    /// The transfer is to be interrupted at its next checkpoint.
    pub interrupting: bool,
    /// It takes nothing new and ends, for the configuration changed.
    pub drain: Option<Drain>,
    /// P1: the mark of its channel when it was made.
    pub mark: Option<Dscp>,
    /// The hours of its channel are over: nothing more begins on it, and it is released.
    pub leaving: bool,
}

impl Association {
    pub(crate) fn new(
        id: AssociationId,
        stack: Stack,
        purpose: Purpose,
        now: Instant,
    ) -> Association {
        Association {
            id,
            stack,
            purpose,
            phase: Phase::Opening,
            remote: None,
            origin: None,
            accepted: now,
            presented: None,
            dscp_seen: None,
            requests: VecDeque::new(),
            sending: None,
            failed: None,
            receiving: None,
            suspended: None,
            resumes: None,
            unit: Unit::None,
            unanswered: 0,
            two_way: false,
            turn: false,
            turn_asked: false,
            turn_wanted: false,
            turn_deadline: None,
            reference: ConnectionReference::default(),
            recovered: None,
            idle_since: now,
            delivery_deadline: None,
            argument_deadline: None,
            look_at: None,
            looked: None,
            progressed: 0,
            bind_deadline: None,
            opened: None,
            given_up: None,
            abort: None,
            transport_error: None,
            next_invoke: 1,
            interrupting: false,
            drain: None,
            mark: None,
            leaving: false,
        }
    }

    pub(crate) fn request(&mut self, request: osi::api::Request) {
        self.requests.push_back(request);
    }

    /// The channel it belongs to, where it is P1.
    pub(crate) fn channel(&self) -> Option<ChannelId> {
        match &self.purpose {
            Purpose::Initiator { channel } | Purpose::Responder { channel, .. } => Some(*channel),
            Purpose::User { .. } => None,
        }
    }

    /// Whether nothing is in transfer in either direction.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Open && self.sending.is_none() && self.receiving.is_none()
    }

    /// Whether nothing more begins on it.
    pub(crate) fn is_ending(&self) -> bool {
        self.interrupting || self.leaving || self.drain.is_some()
    }

    /// Whether it could take the next transfer, once the turn is ours.
    pub(crate) fn is_free(&self) -> bool {
        self.is_idle() && !self.is_ending() && self.failed.is_none()
    }

    /// Whether a transfer could begin now.
    pub(crate) fn can_send(&self) -> bool {
        self.is_idle() && self.turn && !self.is_ending()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = [
            self.bind_deadline,
            self.delivery_deadline,
            self.argument_deadline,
            self.turn_deadline,
            self.look_at,
        ];
        let all = own.into_iter().chain([self.stack.deadline()]);
        all.flatten().min()
    }

    pub(crate) fn is_initiator(&self) -> bool {
        matches!(self.purpose, Purpose::Initiator { .. })
    }

    /// The bound user's mailbox.
    pub(crate) fn mailbox(&self) -> Option<&str> {
        match &self.purpose {
            Purpose::User { mailbox, .. } => mailbox.as_deref(),
            _ => None,
        }
    }
}

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

impl Association {
    /// A look at its connection is due.
    pub(crate) fn take_due_look(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }
}
