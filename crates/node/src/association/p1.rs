//! The data of an association that speaks P1.

use crate::association::lost::LostSend;
use crate::association::transfer::FailedTransfer;
use crate::ids::ListenerId;
use base::Instant;
use dscp::Dscp;
use engine::journal::SpoolId;
use guard::NameDigest;
use osi::api::{AbortReason, Dialogue};
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;

/// Who opened an association with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    Us,
    /// The peer, on this listener.
    Peer(ListenerId),
}

#[derive(Debug)]
pub(crate) struct P1 {
    pub channel: ChannelId,
    pub opener: Opener,
    /// The name the peer bound with.
    pub presented: Option<NameDigest>,
    pub turn: Turn,
    /// The session connection reference, for recovery.
    pub reference: ConnectionReference,
    /// The association that it recovered.
    pub recovered: Option<ConnectionReference>,
    /// A transfer of ours that failed on this association, until it is clear what follows.
    pub failed: Option<FailedTransfer>,
    /// A transfer to us that was interrupted and may be resumed.
    pub suspended: Option<SpoolId>,
    /// A transfer of ours that is resumed once the turn comes, and until when it was to be kept.
    pub resumes: Option<LostSend>,
    /// Why the peer aborted it, where it gave a reason.
    pub abort: Option<AbortReason>,
    /// The mark of its channel when it was made.
    pub mark: Dscp,
}

/// RTSE's turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Whether either end may have it.
    pub two_way: bool,
    pub ours: bool,
    /// The peer asked for it.
    pub asked: bool,
    /// We asked for it.
    pub wanted: bool,
    /// When the association ends if its other end neither sends nor gives the turn.
    pub deadline: Option<Instant>,
}

impl P1 {
    pub(crate) fn new(channel: ChannelId, opener: Opener, mark: Dscp) -> P1 {
        P1 {
            channel,
            opener,
            presented: None,
            turn: Turn::default(),
            reference: ConnectionReference::default(),
            recovered: None,
            failed: None,
            suspended: None,
            resumes: None,
            abort: None,
            mark,
        }
    }

    /// Reference and dialogue mode with which the peer opened the association or asked for its
    /// recovery.
    pub(crate) fn proposed(&mut self, reference: ConnectionReference, dialogue: Dialogue) {
        self.reference = reference;
        self.turn.two_way = dialogue == Dialogue::TwoWayAlternate;
    }
}
