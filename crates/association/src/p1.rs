//! The data of an association that speaks P1.

use crate::lost::LostSend;
use crate::transfer::FailedTransfer;
use base::Instant;
use dscp::Dscp;
use engine::journal::SpoolId;
use guard::NameDigest;
use node_api::ids::ListenerId;
use osi::api::{AbortReason, Dialogue};
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;

/// Who opened an association with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// We.
    Us,
    /// The peer, on this listener.
    Peer(ListenerId),
}

/// What an association has that speaks P1.
#[derive(Debug)]
pub struct P1 {
    /// The channel that it belongs to.
    pub channel: ChannelId,
    /// Who opened it.
    pub opener: Opener,
    /// The name the peer bound with.
    pub presented: Option<NameDigest>,
    /// RTSE's turn.
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
pub struct Turn {
    /// Whether either end may have it.
    pub two_way: bool,
    /// Whether it is ours.
    pub ours: bool,
    /// The peer asked for it.
    pub asked: bool,
    /// We asked for it.
    pub wanted: bool,
    /// When the association ends if its other end neither sends nor gives the turn.
    pub deadline: Option<Instant>,
}

impl P1 {
    /// One of this channel.
    pub fn new(channel: ChannelId, opener: Opener, mark: Dscp) -> P1 {
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
    pub fn proposed(&mut self, reference: ConnectionReference, dialogue: Dialogue) {
        self.reference = reference;
        self.turn.two_way = dialogue == Dialogue::TwoWayAlternate;
    }
}
