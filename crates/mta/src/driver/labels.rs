//! Names for numbers, for the log.

use crate::config::Site;
use node::ChannelId;
use std::collections::BTreeMap;

/// What channels are called.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(BTreeMap<ChannelId, String>);

impl Labels {
    pub(super) fn of(site: &Site) -> Labels {
        Labels(site.channels.iter().map(|(id, socket)| (*id, socket.label.clone())).collect())
    }

    /// Names those of this site too: associations of earlier ones may still be there.
    pub(super) fn add(&mut self, site: &Site) {
        self.0.extend(Labels::of(site).0);
    }

    /// `peer/channel`.
    pub(super) fn channel(&self, id: ChannelId) -> &str {
        self.0.get(&id).map_or("?", String::as_str)
    }
}
