//! What the scheduler is configured with, and what it is told of associations.

use crate::retry::Retry;
use base::{PeerId, Precedence};
use std::time::Duration;

/// A channel: a peer and the index of the channel in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelId {
    /// The peer.
    pub peer: PeerId,
    /// Which of the peer's channels; the same one keeps its number over a change of configuration.
    pub index: u32,
}

/// What a channel is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// Which channel.
    pub id: ChannelId,
    /// Its schedule: the precedences that use it.
    pub precedences: Vec<Precedence>,
    /// Precedences it may carry while every channel of theirs is down (rule 5).
    pub fallback: Vec<Precedence>,
    /// Whether it has an association at all times, or only when there is something to send.
    pub permanent: bool,
    /// Most associations we open on it; one more is reserved for a message above everything in
    /// transfer.
    pub max: u32,
    /// A further association opens when so many of equal precedence wait; 1 or more.
    pub grow_at: u32,
    /// One of several closes once one was free for so long without a break.
    pub keep: Duration,
}

/// Whether a higher message for a peer holds the lower ones (rule 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// It does not: each channel serves its own, highest first.
    Off,
    /// It does while a channel that could carry it is there (rule 2).
    #[default]
    Conserving,
    /// It does even while none is there.
    Strict,
}

/// What holds for all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Rules 1 and 2.
    pub hold: Hold,
    /// A transfer without confirmed progress for so long holds nothing.
    pub stall: Duration,
    /// A channel counts as down after so long without an association, counted from the loss of
    /// the last one or from the first try to open one.
    pub patience: Duration,
    /// Rule 7: the share of the octets, in percent, that goes to messages that rule 1 holds; 1 to
    /// 50, what is beyond counts as 50. `None`: they wait.
    pub share: Option<u8>,
    /// Rule 8: a transfer is paused while a higher one for the same peer makes progress.
    pub preempt: bool,
    /// Rule 9: how long a message whose transfer failed waits, by [`Precedence::number`].
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

/// A channel's associations, as they are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Associations {
    /// Those we opened or are opening, until they are over.
    pub ours: u32,
    /// Of ours, those being opened or released.
    pub changing: u32,
    /// Open ones, whoever opened them, on which we may send.
    pub usable: u32,
    /// Usable ones on which nothing is in transfer, either way.
    pub free: u32,
    /// Usable ones on which something is in transfer to us.
    pub receiving: u32,
    /// The last one was lost, or the last try to open one failed.
    pub failing: bool,
    /// None may be opened now (a scheduled channel outside its windows): without a usable one it
    /// counts as down at once.
    pub barred: bool,
}
