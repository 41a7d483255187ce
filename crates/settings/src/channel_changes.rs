//! What a changed configuration does to the channels there were.

use crate::NodeConfig;
use crate::changes::{EdgeChanges, channel_keys, peer_keys};
use scheduler::ChannelId;
use std::collections::BTreeSet;

/// Why an association takes nothing new and ends after what is in transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drain {
    /// Another one takes its place, with the configuration of now.
    Reopened,
    /// Its channel is removed: a transfer of ours ends at its next checkpoint.
    Removed,
}

/// The effect of a changed configuration on the channels before it.
#[derive(Debug, Default)]
pub struct ChannelChanges {
    /// Those that are gone.
    pub removed: BTreeSet<ChannelId>,
    /// Those that stay with other associations.
    pub reopened: BTreeSet<ChannelId>,
    /// Those of the reopened ones whose peer must bind again: nothing is recovered without a bind.
    pub rebound: BTreeSet<ChannelId>,
    /// Those whose transfers have other octets from now on: a transfer that was cut off cannot be
    /// resumed.
    pub recoded: BTreeSet<ChannelId>,
}

impl ChannelChanges {
    /// From one configuration to another.
    pub fn between(old: &NodeConfig, new: &NodeConfig, edge: &EdgeChanges) -> ChannelChanges {
        let mut changes = ChannelChanges::default();
        for before in &old.peers {
            let now = new.peer(before.id());
            let rebinds = now.is_some_and(|now| peer_keys(before, now, edge).reopens);
            for (id, channel) in before.channels() {
                let Some((_, now)) = new.channel(id) else {
                    changes.removed.insert(id);
                    continue;
                };
                if channel.rts.indefinite_lengths != now.rts.indefinite_lengths {
                    changes.recoded.insert(id);
                }
                if rebinds {
                    changes.rebound.insert(id);
                }
                if rebinds || channel_keys((old, channel), (new, now), id, edge).reopens {
                    changes.reopened.insert(id);
                }
            }
        }
        changes
    }

    /// What happens to the associations of a channel, if anything does.
    pub fn of_channel(&self, channel: ChannelId) -> Option<Drain> {
        match (self.removed.contains(&channel), self.reopened.contains(&channel)) {
            (true, _) => Some(Drain::Removed),
            (false, true) => Some(Drain::Reopened),
            (false, false) => None,
        }
    }
}
