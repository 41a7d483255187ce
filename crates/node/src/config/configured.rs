//! The configuration in force, with its peers and channels by identifier: looking one up does not
//! look through the others.

use crate::config::{Channel, NodeConfig, Peer};
use base::PeerId;
use scheduler::ChannelId;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// A [`NodeConfig`] whose peers and channels stay as they are.
#[derive(Debug)]
pub(crate) struct Configured {
    config: NodeConfig,
    /// Where in the configuration they stand.
    peers: BTreeMap<PeerId, usize>,
    channels: BTreeMap<ChannelId, (usize, usize)>,
    /// Channels with hours of MINIMIZE.
    minimized: Vec<ChannelId>,
}

impl Configured {
    pub(crate) fn new(config: NodeConfig) -> Configured {
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
        Configured { config, peers, channels, minimized }
    }

    pub(crate) fn into_inner(self) -> NodeConfig {
        self.config
    }

    /// Channels with hours of MINIMIZE.
    pub(crate) fn minimized(&self) -> impl Iterator<Item = ChannelId> + use<'_> {
        self.minimized.iter().copied()
    }

    /// As [`NodeConfig::peer`].
    pub(crate) fn peer(&self, id: PeerId) -> Option<&Peer> {
        self.config.peers.get(*self.peers.get(&id)?)
    }

    /// As [`NodeConfig::channel`].
    pub(crate) fn channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
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

/// For all but peers and channels.
impl DerefMut for Configured {
    fn deref_mut(&mut self) -> &mut NodeConfig {
        &mut self.config
    }
}
