//! Configuration at run time: channels, policy, floors.

use crate::machine::Scheduler;
use crate::peer::{ChannelState, Peer};
use crate::rules::minimize::Scope;
use crate::rules::{ChannelId, ChannelRules, Policy};
use base::{Instant, PeerId, Precedence};
use std::collections::BTreeSet;

impl Scheduler {
    /// Replaces the channels and the policy. A channel that stays keeps its associations, its
    /// floor and its transfers; a new one is assumed closed. Transfers on a removed channel
    /// continue, and items stay, whatever their destination.
    pub fn configure(
        &mut self,
        now: Instant,
        rules: impl IntoIterator<Item = ChannelRules>,
        policy: Policy,
    ) {
        self.tick(now);
        self.policy = policy;
        let mut kept = BTreeSet::new();
        for rules in rules {
            let id = rules.id;
            kept.insert(id);
            match self.channel_mut(id) {
                Some(channel) => channel.rules = rules,
                None => self.add(rules),
            }
        }
        for (id, peer) in &mut self.peers {
            peer.by_index.retain(|index, _| kept.contains(&ChannelId { peer: *id, index: *index }));
        }
        self.refresh_all();
    }

    fn add(&mut self, rules: ChannelRules) {
        let id = rules.id;
        let mut channel = ChannelState::new(rules);
        // The channel may have existed before and left transfers behind.
        for (item, transfer) in &self.transfers {
            if transfer.channel == Some(id)
                && let Some(slot) = self.items.get(*item)
            {
                channel.started(slot.precedence);
            }
        }
        let peer = self.peers.entry(id.peer).or_insert_with(|| Peer::new(id.peer));
        peer.by_index.insert(id.index, channel);
    }

    /// Rule 6: nothing below `lowest` starts in this scope from now on; `None` removes the floor.
    /// False if the channel is not known.
    pub fn set_floor(&mut self, now: Instant, scope: Scope, lowest: Option<Precedence>) -> bool {
        self.tick(now);
        match scope {
            Scope::Mta => {
                self.floor = lowest;
                self.refresh_all();
            }
            Scope::Peer(peer) => {
                self.peers.entry(peer).or_insert_with(|| Peer::new(peer)).floor = lowest;
                self.refresh(peer);
            }
            Scope::Channel(id) => {
                let Some(channel) = self.channel_mut(id) else { return false };
                channel.floor = lowest;
                self.refresh(id.peer);
            }
        }
        true
    }

    fn refresh_all(&mut self) {
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.refresh(peer);
        }
    }
}
