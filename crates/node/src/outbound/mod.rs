//! Outbound: channels to peers, what is queued for them, and its transfer.

pub(crate) mod channels;
pub(crate) mod faults;
pub(crate) mod queued;
pub(crate) mod transfers;

use crate::config::{NodeConfig, Peer};
use crate::outbound::channels::state::ChannelState;
use crate::outbound::queued::late::Late;
use crate::outbound::queued::unrouted::UnroutedEntries;
use base::EntryId;
use base::marks::Marked;
use guard::blame::Blame;
use node_api::queue::orders::Order;
use node_api::queue::reroutes::Reroutes;
use scheduler::ChannelId;
use scheduler::agenda::ChannelAgenda;
use std::collections::{BTreeMap, BTreeSet};

/// Channels to peers, what goes out on them, and what is queued for them.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) channels: Marked<ChannelId, ChannelState>,
    /// What is to be checked, because something that it depends on was touched or is due.
    pub(crate) agenda: ChannelAgenda,
    /// Whose fault it was where associations ended under transfers.
    pub(crate) blame: Blame,
    pub(crate) reroutes: Reroutes,
    pub(crate) unrouted: UnroutedEntries,
    pub(crate) late: Late,
    /// Entries whose damaged records were reported in an event.
    pub(crate) set_aside: BTreeSet<EntryId>,
    /// Orders of an operator that are being carried out, by their request.
    pub(crate) orders: BTreeMap<u64, Order>,
    /// What is being expanded, with its list's number.
    pub(crate) expanding: BTreeMap<EntryId, u32>,
    /// Urgent entries whose association was ended because they stalled: once for each.
    pub(crate) freed: BTreeSet<EntryId>,
    /// Lists for which more may wait.
    pub(crate) expand_later: BTreeSet<u32>,
}

impl Outbound {
    pub(crate) fn new(config: &NodeConfig) -> Outbound {
        let mut channels = Marked::default();
        for (id, _) in config.peers.iter().flat_map(Peer::channels) {
            channels.insert(id, ChannelState::default());
        }
        Outbound {
            channels,
            agenda: ChannelAgenda::default(),
            blame: Blame::default(),
            reroutes: Reroutes::default(),
            unrouted: UnroutedEntries::default(),
            late: Late::default(),
            set_aside: BTreeSet::new(),
            orders: BTreeMap::new(),
            expanding: BTreeMap::new(),
            freed: BTreeSet::new(),
            expand_later: BTreeSet::new(),
        }
    }
}
