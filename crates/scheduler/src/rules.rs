//! The scheduler's configuration, and the state of associations that the caller supplies.

pub(crate) mod expiry;
pub(crate) mod fallback;
pub(crate) mod growth;
pub(crate) mod hold;
pub(crate) mod minimize;
pub(crate) mod preempt;
pub(crate) mod retry;
pub(crate) mod share;
pub(crate) mod shift;

use crate::rules::retry::Retry;
use base::{PeerId, Precedence};
use std::time::Duration;

/// A channel: a peer and the index of the channel in its configuration.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct ChannelId {
    /// The peer.
    pub peer: PeerId,
    /// The number of the channel at its peer; it stays the same when the configuration changes.
    pub index: u32,
}

/// The configuration of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// The channel: its peer, and its number there.
    pub id: ChannelId,
    /// Its schedule: the precedences that use it.
    pub precedences: Vec<Precedence>,
    /// Precedences it may carry while all their own channels are down (rule 5).
    pub fallback: Vec<Precedence>,
    /// Whether it always has an association, or only when there is something to send.
    pub permanent: bool,
    /// Most associations we open on it; one more is reserved for a message above everything in
    /// transfer.
    pub max: u32,
    /// A further association opens when this many messages of equal precedence wait; at least 1.
    pub grow_at: u32,
    /// One of several closes after one was free this long without interruption.
    pub keep: Duration,
}

/// Whether a higher message for a peer holds the lower ones (rule 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Hold {
    /// No: each channel serves its own precedences, highest first.
    Off,
    /// Yes, while a channel that could carry it has an association (rule 2).
    #[default]
    Conserving,
    /// Yes, even while none has.
    Strict,
}

/// The policy for all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// Rules 1 and 2.
    pub hold: Hold,
    /// A transfer without confirmed progress for this long holds nothing.
    pub stall: Duration,
    /// A channel counts as down after this long without an association, counted from the loss of
    /// the last one or from the first attempt to open one.
    pub patience: Duration,
    /// Rule 7: the share of octets, in percent, for messages that rule 1 holds; 1 to 50, higher
    /// values count as 50. `None`: they wait.
    pub share: Option<u8>,
    /// Rule 8: a transfer is paused while a higher one for the same peer makes progress.
    pub preempt: bool,
    /// Rule 9: the delays after a failed transfer, by [`Precedence::number`].
    pub retry: [Retry; 6],
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            hold: Hold::default(),
            stall: Duration::from_secs(15),
            patience: Duration::from_secs(5),
            share: None,
            preempt: false,
            retry: Retry::DEFAULTS,
        }
    }
}

/// The current associations of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Associations {
    /// Associations we opened or are opening, until they end.
    pub ours: u32,
    /// Of ours, those being opened or released.
    pub changing: u32,
    /// Open ones on which we may send, whoever opened them.
    pub usable: u32,
    /// Usable ones without a transfer in either direction.
    pub free: u32,
    /// Usable ones with an incoming transfer.
    pub receiving: u32,
    /// The last association was lost, or the last attempt to open one failed.
    pub failing: bool,
    /// None may be opened now (a scheduled channel outside its windows): without a usable
    /// association the channel counts as down at once.
    pub barred: bool,
}
