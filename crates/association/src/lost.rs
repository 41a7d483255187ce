//! Transfers that were cut off with their association, and how they are known to both ends.

use crate::transfer::Resumption;
use base::{EntryId, Instant};
use engine::journal::SpoolId;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;
use std::net::IpAddr;

/// A transfer of ours that was cut off.
#[derive(Clone, Debug)]
pub struct LostSend {
    /// The entry that was sent.
    pub entry: EntryId,
    /// Where it goes on.
    pub resumption: Resumption,
    /// Where its association came from, if the peer opened it.
    pub remote: Option<IpAddr>,
    /// Whether we opened its association.
    pub ours: bool,
    /// Whether we may ask for its recovery now.
    pub asks: bool,
    /// When it is given up.
    pub until: Instant,
    /// How often that was asked without an answer.
    pub asked: u8,
}

impl LostSend {
    /// Whether the peer may know it by this association. It need not know of the latest attempt, and we
    /// need not know of a confirm in it.
    pub fn is_known_by(&self, reference: &ConnectionReference) -> bool {
        self.resumption.point.reference == *reference || self.resumption.tried.contains(reference)
    }
}

/// What there is of a transfer to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldPart {
    /// A part of it.
    Part(SpoolId),
    /// All of it; its commit is in progress.
    Ended(SpoolId),
    /// It is committed, but the peer may not know.
    Secured,
}

/// A transfer to us that was cut off.
#[derive(Clone, Debug)]
pub struct LostReceive {
    /// The channel that it came on.
    pub channel: ChannelId,
    /// What RTSE keeps of it.
    pub state: InterruptedReceive,
    /// What of its content is kept.
    pub held: HeldPart,
    /// Where its association came from, if the peer opened it.
    pub remote: Option<IpAddr>,
    /// Whether we opened its association, and so have to ask for its recovery.
    pub ours: bool,
    /// The association it was lost with.
    pub lost_on: ConnectionReference,
    /// When it is given up.
    pub until: Instant,
    /// How often that was asked without an answer.
    pub asked: u8,
}

impl LostReceive {
    /// What must be discarded if it is given up.
    pub fn part(&self) -> Option<SpoolId> {
        match self.held {
            HeldPart::Part(spool) => Some(spool),
            HeldPart::Ended(_) | HeldPart::Secured => None,
        }
    }

    /// Whether the peer is to ask for it.
    pub fn asks(&self) -> bool {
        self.ours && !matches!(self.held, HeldPart::Ended(_))
    }

    /// Whether the peer knows it by this reference.
    pub fn is_known_by(&self, reference: &ConnectionReference) -> bool {
        // A transfer that was cut off twice is known by the names of both associations.
        self.lost_on == *reference || self.state.is_known_by(reference)
    }
}

/// What one association is to recover, or recovers.
#[derive(Clone, Debug, Default)]
pub struct LostTransfers {
    /// A transfer of ours.
    pub send: Option<LostSend>,
    /// A transfer to us.
    pub receive: Option<LostReceive>,
}

impl LostTransfers {
    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.send.is_none() && self.receive.is_none()
    }
}
