//! Rule 6, MINIMIZE: below the floor nothing starts, and nothing holds.
//!
//! The floor of the switch or of a peer bars a message from the peer; the floor of a channel bars it
//! from that channel only, and where no other may carry it, from the peer. What is in transfer goes
//! on. Mailboxes are not concerned.

use crate::hold::Reason;
use crate::peer::{Channel, Peer, View};
use crate::rules::ChannelId;
use base::{PeerId, Precedence};
use std::fmt;

/// Where a floor applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All peers.
    Switch,
    /// One peer.
    Peer(PeerId),
    /// One channel.
    Channel(ChannelId),
}

/// The lowest precedence that may start, and where that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// What is below does not start.
    pub lowest: Precedence,
    /// Where.
    pub scope: Scope,
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lowest = self.lowest;
        match self.scope {
            Scope::Switch => write!(f, "MINIMIZE: nothing below {lowest} goes out"),
            Scope::Peer(_) => write!(f, "MINIMIZE: nothing below {lowest} to this peer"),
            Scope::Channel(_) => write!(f, "MINIMIZE: nothing below {lowest} on its channel"),
        }
    }
}

impl Channel {
    /// Whether its own floor bars this precedence.
    pub(crate) fn bars(&self, precedence: Precedence) -> bool {
        self.floor.is_some_and(|floor| precedence < floor)
    }
}

impl Peer {
    /// The floor of the switch or the peer that this precedence is below.
    pub(crate) fn below_floor(&self, view: &View<'_>, precedence: Precedence) -> Option<Floor> {
        let switch = view.floor.map(|lowest| Floor { lowest, scope: Scope::Switch });
        let own = self.floor.map(|lowest| Floor { lowest, scope: Scope::Peer(self.id) });
        [switch, own].into_iter().flatten().find(|floor| precedence < floor.lowest)
    }

    /// Why this precedence goes to the peer on no channel, if that is by rule 6.
    pub(crate) fn minimized(&self, view: &View<'_>, precedence: Precedence) -> Option<Reason> {
        if let Some(floor) = self.below_floor(view, precedence) {
            return Some(Reason::Minimize(floor));
        }
        if self.has_carrier(view, precedence) {
            return None;
        }
        self.able(precedence).find(|c| c.bars(precedence)).and_then(|c| {
            let (lowest, scope) = (c.floor?, Scope::Channel(c.rules.id));
            Some(Reason::Minimize(Floor { lowest, scope }))
        })
    }

    /// The floor that counts on a channel: the highest.
    pub(crate) fn floor_on(&self, view: &View<'_>, channel: &Channel) -> Option<Floor> {
        let (id, scope) = (channel.rules.id, Scope::Channel);
        let floors = [
            view.floor.map(|lowest| Floor { lowest, scope: Scope::Switch }),
            self.floor.map(|lowest| Floor { lowest, scope: Scope::Peer(self.id) }),
            channel.floor.map(|lowest| Floor { lowest, scope: scope(id) }),
        ];
        floors.into_iter().flatten().rev().max_by_key(|floor| floor.lowest)
    }
}
