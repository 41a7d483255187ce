//! Names of channels, for the log.

use crate::config::Site;
use node::ChannelId;
use std::collections::BTreeMap;

/// The names by channel number.
#[derive(Clone, Debug, Default)]
pub(in crate::driver) struct Labels(BTreeMap<ChannelId, String>);

impl Labels {
    pub(in crate::driver) fn from_site(site: &Site) -> Labels {
        Labels(site.channels.iter().map(|(id, socket)| (*id, socket.label.clone())).collect())
    }

    /// Adds the names of this site and keeps the earlier ones: their associations may still be
    /// open.
    pub(in crate::driver) fn add(&mut self, site: &Site) {
        self.0.extend(Labels::from_site(site).0);
    }

    /// `peer/channel`.
    pub(in crate::driver) fn channel(&self, id: ChannelId) -> &str {
        self.0.get(&id).map_or("?", String::as_str)
    }
}
