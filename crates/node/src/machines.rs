//! The machines' state.

use crate::access::Access;
use crate::agenda::Agenda;
use crate::api::ChannelId;
use crate::blame::Blame;
use crate::breaks::Breaks;
use crate::channel::ChannelState;
use crate::config::{NodeConfig, Peer};
use crate::late::Late;
use crate::limits::Limits;
use crate::marks::Marked;
use crate::memory::Memory;
use crate::minimize::Minimizing;
use crate::receiving::Arrival;
use crate::reload::UnroutedEntries;
use crate::reroute::Reroutes;
use base::AssociationId;
use engine::journal::SpoolId;
use std::collections::{BTreeMap, BTreeSet};

/// Connections and binds: who may connect, and who has the right password.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) access: Access,
    /// Newcomers beyond a limit that are being told so.
    pub(crate) turned_away: BTreeSet<AssociationId>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Admission {
        Admission { access: Access::new(limits), turned_away: BTreeSet::new() }
    }
}

/// Reception to commit, over P1 and P3.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// What is being received, by its spool.
    pub(crate) open: BTreeMap<SpoolId, Arrival>,
    pub(crate) memory: Memory,
}

/// Channels to peers, what goes out on them, and what is queued for them.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) channels: Marked<ChannelId, ChannelState>,
    /// What is to be looked at, because something it depends on was touched or is due.
    pub(crate) agenda: Agenda,
    /// Whose fault it was where associations ended under transfers.
    pub(crate) blame: Blame,
    pub(crate) reroutes: Reroutes,
    pub(crate) unrouted: UnroutedEntries,
    pub(crate) late: Late,
}

impl Outbound {
    pub(crate) fn new(config: &NodeConfig) -> Outbound {
        let mut channels = Marked::default();
        for (id, _) in config.peers.iter().flat_map(Peer::channels) {
            channels.insert(id, ChannelState::default());
        }
        Outbound {
            channels,
            agenda: Agenda::default(),
            blame: Blame::default(),
            reroutes: Reroutes::default(),
            unrouted: UnroutedEntries::default(),
            late: Late::default(),
        }
    }
}

/// Users and their mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) breaks: Breaks,
}

/// What an operator orders: MINIMIZE, and other configurations.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// Associations that end because the configuration changed.
    pub(crate) draining: BTreeSet<AssociationId>,
    pub(crate) minimizing: Minimizing,
}
