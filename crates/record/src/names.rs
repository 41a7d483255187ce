//! Names of channels and listeners, which inputs and outputs have as numbers.

use base::{PeerId, shown};
use node::config::{ListenerService, NodeConfig};
use node::{ChannelId, Input, ListenerId};
use std::collections::BTreeMap;

/// Most characters of a name that are shown.
const MAX_NAME: usize = 100;

/// The names of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Names {
    peers: BTreeMap<PeerId, String>,
    channels: BTreeMap<ChannelId, String>,
    listeners: BTreeMap<ListenerId, String>,
}

impl Names {
    /// Those of this configuration.
    #[must_use]
    pub fn from_config(config: &NodeConfig) -> Names {
        let mut names = Names::default();
        names.know(config);
        names
    }

    /// An input that the node takes: a reload brings other names. Those of before stay, as associations of before do.
    pub fn input(&mut self, input: &Input) {
        if let Input::Configure { config, .. } = input {
            self.know(config);
        }
    }

    fn know(&mut self, config: &NodeConfig) {
        for peer in &config.peers {
            self.peers.insert(peer.id(), cut(&peer.name));
            for (id, channel) in peer.channels() {
                self.channels.insert(id, cut(&format!("{}/{}", peer.name, channel.name)));
            }
        }
        for listener in &config.listeners {
            let name = match &listener.service {
                ListenerService::P1 { peer, channel } => {
                    self.channel(ChannelId { peer: *peer, index: *channel })
                }
                ListenerService::P3 { .. } => "p3".to_owned(),
                ListenerService::P7 { .. } => "p7".to_owned(),
            };
            self.listeners.insert(listener.id, name);
        }
    }

    /// The name of a peer; its number where the configuration has none.
    #[must_use]
    pub fn peer(&self, id: PeerId) -> String {
        self.peers.get(&id).cloned().unwrap_or_else(|| format!("peer {id}"))
    }

    /// The name of a channel, such as `act/flash`; its numbers where the configuration has none.
    #[must_use]
    pub fn channel(&self, id: ChannelId) -> String {
        let name = self.channels.get(&id).cloned();
        name.unwrap_or_else(|| format!("peer {} channel {}", id.peer, id.index))
    }

    /// The name of a listener: its channel, `p3` or `p7`, with its number.
    #[must_use]
    pub fn listener(&self, id: ListenerId) -> String {
        match self.listeners.get(&id) {
            Some(name) => format!("{} ({name})", id.0),
            None => id.0.to_string(),
        }
    }
}

fn cut(name: &str) -> String {
    shown::line(name).chars().take(MAX_NAME).collect()
}
