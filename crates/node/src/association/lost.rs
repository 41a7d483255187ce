//! Transfers that were cut off with their association, and how they are known to both ends.

use crate::association::transfer::Resumption;
use base::{EntryId, Instant};
use engine::journal::SpoolId;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;
use std::net::IpAddr;

/// A transfer of ours that was cut off.
#[derive(Clone, Debug)]
pub(crate) struct LostSend {
    pub entry: EntryId,
    pub resumption: Resumption,
    /// Where its association came from, if the peer opened it.
    pub remote: Option<IpAddr>,
    /// Whether we opened its association.
    pub ours: bool,
    /// Whether we may ask for its recovery now.
    pub asks: bool,
    pub until: Instant,
    /// How often that was asked without an answer.
    pub asked: u8,
}

impl LostSend {
    /// Whether the peer may know it by this association. It need not know of the latest attempt, and we
    /// need not know of a confirm in it.
    pub(crate) fn is_known_by(&self, reference: &ConnectionReference) -> bool {
        self.resumption.point.reference == *reference || self.resumption.tried.contains(reference)
    }
}

/// What there is of a transfer to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldPart {
    /// A part of it.
    Part(SpoolId),
    /// All of it; its commit is in progress.
    Ended(SpoolId),
    /// It is committed, but the peer may not know.
    Secured,
}

/// A transfer to us that was cut off.
#[derive(Clone, Debug)]
pub(crate) struct LostReceive {
    pub channel: ChannelId,
    pub state: InterruptedReceive,
    pub held: HeldPart,
    /// Where its association came from, if the peer opened it.
    pub remote: Option<IpAddr>,
    /// Whether we opened its association, and so have to ask for its recovery.
    pub ours: bool,
    /// The association it was lost with.
    pub lost_on: ConnectionReference,
    pub until: Instant,
    /// How often that was asked without an answer.
    pub asked: u8,
}

impl LostReceive {
    /// What must be discarded if it is given up.
    pub(crate) fn part(&self) -> Option<SpoolId> {
        match self.held {
            HeldPart::Part(spool) => Some(spool),
            HeldPart::Ended(_) | HeldPart::Secured => None,
        }
    }

    pub(crate) fn asks(&self) -> bool {
        self.ours && !matches!(self.held, HeldPart::Ended(_))
    }

    pub(crate) fn is_known_by(&self, reference: &ConnectionReference) -> bool {
        // A transfer that was cut off twice is known by the names of both associations.
        self.lost_on == *reference || self.state.is_known_by(reference)
    }
}

/// What one association is to recover, or recovers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostTransfers {
    pub send: Option<LostSend>,
    pub receive: Option<LostReceive>,
}

impl LostTransfers {
    pub(crate) fn is_empty(&self) -> bool {
        self.send.is_none() && self.receive.is_none()
    }
}
