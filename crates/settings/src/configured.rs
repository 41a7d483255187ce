//! The configuration in force, with its peers and channels by identifier: looking one up does not
//! look through the others.

use crate::{Channel, NodeConfig, Peer};
use base::PeerId;
use scheduler::ChannelId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A [`NodeConfig`] whose peers and channels stay as they are.
#[derive(Debug)]
pub struct Configured {
    config: NodeConfig,
    /// Where in the configuration they stand.
    peers: BTreeMap<PeerId, usize>,
    channels: BTreeMap<ChannelId, (usize, usize)>,
    /// Channels with hours of MINIMIZE.
    minimized: Vec<ChannelId>,
    /// Removed channels as they were, as long as there are associations of them.
    former: Vec<Peer>,
}

impl Configured {
    /// This configuration.
    pub fn new(config: NodeConfig) -> Configured {
        let (mut peers, mut channels) = (BTreeMap::new(), BTreeMap::new());
        for (at, peer) in config.peers.iter().enumerate() {
            peers.entry(peer.id()).or_insert(at);
            for (of_peer, (id, _)) in peer.channels().enumerate() {
                channels.entry(id).or_insert((at, of_peer));
            }
        }
        let of_all = config.peers.iter().flat_map(Peer::channels);
        let minimized = of_all.filter(|(_, channel)| channel.minimize.is_some());
        let minimized = minimized.map(|(id, _)| id).collect();
        Configured { config, peers, channels, minimized, former: Vec::new() }
    }

    /// Another configuration holds from now on. Gives the one before it; its removed channels stay.
    pub fn replace(&mut self, config: NodeConfig) -> NodeConfig {
        let former = std::mem::take(&mut self.former);
        let old = std::mem::replace(self, Configured { former, ..Configured::new(config) });
        old.config
    }

    /// The users changed: all of them, and those of the message store.
    pub fn set_mailboxes(&mut self, addresses: Vec<String>, stored: BTreeSet<String>) {
        self.config.mailboxes = addresses;
        self.config.store.users = stored;
    }

    /// Keeps what associations of removed channels still need to know.
    pub fn keep_former(&mut self, removed: Vec<Peer>) {
        self.former.extend(removed);
    }

    /// Forgets removed channels, but for these.
    pub fn forget_former(&mut self, used: &BTreeSet<ChannelId>) {
        for peer in &mut self.former {
            let id = peer.id();
            peer.channels.retain(|c| used.contains(&ChannelId { peer: id, index: c.index }));
        }
        self.former.retain(|peer| !peer.channels.is_empty());
    }

    /// Peers with their removed channels, in the order in which they were removed.
    pub fn former(&self) -> &[Peer] {
        &self.former
    }

    /// A channel that is configured, or was while an association of it exists.
    pub fn channel_or_former(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        self.channel(id).or_else(|| {
            let of_peer = self.former.iter().filter(|peer| peer.id() == id.peer);
            let mut channels =
                of_peer.flat_map(|peer| peer.channels.iter().map(move |c| (peer, c)));
            channels.find(|(_, channel)| channel.index == id.index)
        })
    }

    /// Channels with hours of MINIMIZE.
    pub fn minimized(&self) -> impl Iterator<Item = ChannelId> + use<'_> {
        self.minimized.iter().copied()
    }

    /// As [`NodeConfig::peer`].
    pub fn peer(&self, id: PeerId) -> Option<&Peer> {
        self.config.peers.get(*self.peers.get(&id)?)
    }

    /// As [`NodeConfig::channel`].
    pub fn channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        let (peer, channel) = self.channels.get(&id)?;
        let peer = self.config.peers.get(*peer)?;
        Some((peer, peer.channels.get(*channel)?))
    }
}

impl Deref for Configured {
    type Target = NodeConfig;

    fn deref(&self) -> &NodeConfig {
        &self.config
    }
}
