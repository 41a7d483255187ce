//! Peers and channels by the names of the configuration.

use crate::api::channel_order::{ChannelOrder, ChannelOutcome};
use crate::config::Peer;
use crate::node::Node;
use base::Now;
use scheduler::ChannelId;
use thiserror::Error;

/// A name that is not in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Of a peer.
    #[error("there is no peer {name:?}; there are: {there}")]
    NoPeer {
        /// What was named.
        name: String,
        /// Those there are.
        there: String,
    },
    /// Of a channel.
    #[error("there is no channel {name:?}; there are: {there}")]
    NoChannel {
        /// What was named.
        name: String,
        /// Those there are.
        there: String,
    },
}

impl Node {
    /// The channel of this name, as `PEER/CHANNEL`.
    ///
    /// # Errors
    /// There is none; the text names those there are.
    pub fn channel_named(&self, name: &str) -> Result<ChannelId, NameError> {
        let channels = self.cx.config.peers.iter().flat_map(|peer| peer.channels());
        let named = |id| self.cx.place(id).map(|(peer, channel)| (id, format!("{peer}/{channel}")));
        let all: Vec<(ChannelId, String)> = channels.filter_map(|(id, _)| named(id)).collect();
        let found = all.iter().find(|(_, label)| label == name);
        found.map(|(id, _)| *id).ok_or_else(|| {
            let labels: Vec<&str> = all.iter().map(|(_, label)| label.as_str()).collect();
            NameError::NoChannel { name: name.to_owned(), there: labels.join(", ") }
        })
    }

    /// What an order for a channel would do.
    pub fn channel_preview(
        &self,
        now: Now,
        channel: ChannelId,
        order: ChannelOrder,
    ) -> ChannelOutcome {
        self.outbound.outcome(&self.cx, channel, now, order)
    }

    /// The peer an operator names.
    pub(crate) fn peer_named(&self, name: &str) -> Result<&Peer, NameError> {
        let peers = &self.cx.config.peers;
        peers.iter().find(|peer| peer.name == *name).ok_or_else(|| {
            let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
            NameError::NoPeer { name: name.to_owned(), there: names.join(", ") }
        })
    }
}
