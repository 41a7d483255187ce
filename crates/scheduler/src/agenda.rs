//! What is checked after an input: the peers and mailboxes that it touched, and what is due.
//!
//! Whether something can start, close or open depends on the associations of one peer, on its
//! channels, on what the scheduler has for it, and on the time. The first two are marked where they
//! are touched ([`base::marks`]), the scheduler names the peers that changed, and times are filed.
//! So an input costs what it touched, however many channels and users there are. In debug builds
//! `Node::check_settled` looks at everything after each input, and finds what was not marked.

use crate::ChannelId;
use base::marks::Due;
use base::steps::step;
use base::{AssociationId, Instant, PeerId, Precedence};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Which of several channels is opened first: the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Of the highest message that waits for it, or that it is to resume. Here and below nothing where
    /// it failed more than once: those channels take turns, or a few dead ones of high precedence
    /// would leave no time to the others.
    pub waiting: Option<Precedence>,
    /// The highest it may carry.
    pub hopeful: Option<Precedence>,
}

/// A channel to be opened: how much that matters, and when it was last tried.
pub type Wish = (Rank, Reverse<Option<Instant>>, ChannelId);

/// The channels that are to be opened, by rank, and those being opened.
#[derive(Debug, Default)]
#[cfg_attr(debug_assertions, derive(Clone, PartialEq))]
pub struct Wishes {
    /// By rank.
    pub ranked: BTreeSet<Wish>,
    /// By channel.
    pub of: BTreeMap<ChannelId, Wish>,
    /// Associations that are being opened.
    pub opening: BTreeSet<AssociationId>,
    /// Whether there may be a place now for one that found none.
    pub news: bool,
}

impl Wishes {
    /// What a channel wants from now on.
    pub fn set(&mut self, channel: ChannelId, wish: Option<Wish>) {
        step();
        if self.of.get(&channel) == wish.as_ref() {
            return;
        }
        self.news = true;
        let old = match wish {
            Some(wish) => {
                self.ranked.insert(wish);
                self.of.insert(channel, wish)
            }
            None => self.of.remove(&channel),
        };
        if let Some(old) = old {
            self.ranked.remove(&old);
        }
    }

    /// The one that matters most.
    pub fn first(&self) -> Option<Wish> {
        self.ranked.last().copied()
    }

    /// An association of ours is being opened, or no longer is.
    pub fn is_opening(&mut self, id: AssociationId, is: bool) {
        self.news |= if is { self.opening.insert(id) } else { self.opening.remove(&id) };
    }

    /// Associations that are being opened; of some it is perhaps not noted yet that they are open.
    pub fn opening(&self) -> impl Iterator<Item = AssociationId> + use<'_> {
        self.opening.iter().copied().inspect(|_| step())
    }

    /// There may be a place for one that found none.
    pub fn news(&mut self) {
        self.news = true;
    }

    /// Whether there may be a place since the last call.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
#[cfg_attr(debug_assertions, derive(Clone, PartialEq))]
pub struct ChannelAgenda {
    /// Peers to look at.
    pub peers: BTreeSet<PeerId>,
    /// Mailboxes to look at.
    pub mailboxes: BTreeSet<u32>,
    /// Idle associations, and when they are released.
    pub idle: Due<AssociationId>,
    /// Channels, and when they may be opened again or change their hours.
    pub looks: Due<ChannelId>,
    /// Channels to open.
    pub wishes: Wishes,
    /// Whether `Node::check_settled` is left out, for tests of the cost.
    #[cfg(debug_assertions)]
    pub unchecked: bool,
}

impl ChannelAgenda {
    /// When something is due.
    pub fn deadline(&self) -> Option<Instant> {
        [self.idle.first(), self.looks.first()].into_iter().flatten().min()
    }

    /// An association is gone.
    pub fn gone(&mut self, id: AssociationId, channel: Option<ChannelId>) {
        self.idle.set(id, None);
        self.wishes.is_opening(id, false);
        self.peers.extend(channel.map(|channel| channel.peer));
    }

    /// The peers to look at, once.
    pub fn take_peers(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.peers)
    }

    /// The mailboxes to look at, once.
    pub fn take_mailboxes(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.mailboxes)
    }

    /// Nothing is dispatched any more.
    pub fn clear(&mut self) {
        (self.peers, self.mailboxes) = Default::default();
    }
}

/// The range of the channels of a peer.
pub fn channels_of(peer: PeerId) -> RangeInclusive<ChannelId> {
    ChannelId { peer, index: 0 }..=ChannelId { peer, index: u32::MAX }
}
