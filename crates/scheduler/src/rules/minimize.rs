//! Rule 6, MINIMIZE: below the floor nothing starts, and nothing holds.
//!
//! A floor of the MTA or of a peer bars a message from the peer; a floor of a channel bars it from
//! that channel only, and from the peer if no other channel may carry it. Transfers continue.
//! Mailboxes are not affected.

use crate::peer::{ChannelState, Peer, View};
use crate::rules::ChannelId;
use crate::rules::hold::Reason;
use base::{PeerId, Precedence};
use std::fmt;

/// The scope of a floor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Scope {
    /// All peers.
    Mta,
    /// One peer.
    Peer(PeerId),
    /// One channel.
    Channel(ChannelId),
}

/// The lowest precedence that may start, and the scope of that floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Lower precedences do not start.
    pub lowest: Precedence,
    /// The scope.
    pub scope: Scope,
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lowest = self.lowest;
        match self.scope {
            Scope::Mta => write!(f, "MINIMIZE: nothing below {lowest} goes out"),
            Scope::Peer(_) => write!(f, "MINIMIZE: nothing below {lowest} to this peer"),
            Scope::Channel(_) => write!(f, "MINIMIZE: nothing below {lowest} on its channel"),
        }
    }
}

impl ChannelState {
    /// Whether the channel's own floor bars this precedence.
    pub(crate) fn bars(&self, precedence: Precedence) -> bool {
        self.floor.is_some_and(|floor| precedence < floor)
    }
}

impl Peer {
    /// The floor of the MTA or the peer that bars this precedence.
    pub(crate) fn below_floor(&self, view: &View<'_>, precedence: Precedence) -> Option<Floor> {
        let switch = view.floor.map(|lowest| Floor { lowest, scope: Scope::Mta });
        let own = self.floor.map(|lowest| Floor { lowest, scope: Scope::Peer(self.id) });
        [switch, own].into_iter().flatten().find(|floor| precedence < floor.lowest)
    }

    /// The floor by which no channel carries this precedence to the peer, if rule 6 is the reason.
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

    /// The floor in force on a channel: the highest.
    pub(crate) fn floor_on(&self, view: &View<'_>, channel: &ChannelState) -> Option<Floor> {
        let (id, scope) = (channel.rules.id, Scope::Channel);
        let floors = [
            view.floor.map(|lowest| Floor { lowest, scope: Scope::Mta }),
            self.floor.map(|lowest| Floor { lowest, scope: Scope::Peer(self.id) }),
            channel.floor.map(|lowest| Floor { lowest, scope: scope(id) }),
        ];
        floors.into_iter().flatten().rev().max_by_key(|floor| floor.lowest)
    }
}
