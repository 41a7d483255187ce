//! Removed channels, as long as there are associations of them.

use crate::api::event::{Kind, LogLevel};
use crate::association::p1::{Opener, P1};
use crate::association::{Association, Protocol};
use crate::config::changes::Changes;
use crate::config::channel_changes::ChannelChanges;
use crate::config::channel_changes::Drain;
use crate::config::{Channel, ListenerService, NodeConfig};
use crate::context::Context;
use crate::operations::Operations;
use base::AssociationId;
use scheduler::ChannelId;
use std::collections::BTreeSet;

impl Operations {
    /// Keeps what associations of removed channels still need to know.
    pub(crate) fn keep_former(&self, cx: &mut Context, old: NodeConfig, changes: &ChannelChanges) {
        let mut removed = old.peers;
        for peer in &mut removed {
            let id = peer.id();
            let index = |c: &Channel| ChannelId { peer: id, index: c.index };
            peer.channels.retain(|c| changes.removed.contains(&index(c)));
            for channel in &peer.channels {
                cx.outputs.tally_mut().remember(index(channel), &peer.name, &channel.name);
            }
        }
        removed.retain(|peer| !peer.channels.is_empty());
        cx.config.keep_former(removed);
        self.forget_former(cx);
    }

    /// Forgets removed channels without associations.
    fn forget_former(&self, cx: &mut Context) {
        let used: BTreeSet<ChannelId> =
            cx.associations.values().filter_map(Association::channel).collect();
        cx.config.forget_former(&used);
    }

    /// Whether an association has to end, and how.
    pub(crate) fn drain_of(
        &self,
        cx: &Context,
        association: &Association,
        changes: &ChannelChanges,
    ) -> Option<Drain> {
        let serves = |listener| cx.config.listener(listener).map(|l| &l.service);
        match &association.protocol {
            Protocol::P1(P1 { channel, opener: Opener::Us, .. }) => changes.of_channel(*channel),
            Protocol::P1(P1 { channel, opener: Opener::Peer(listener), .. }) => {
                let still = match serves(*listener) {
                    Some(ListenerService::P1 { peer, channel: index }) => {
                        *channel == ChannelId { peer: *peer, index: *index }
                    }
                    _ => false,
                };
                changes.of_channel(*channel).or((!still).then_some(Drain::Reopened))
            }
            Protocol::P3(p3) => {
                let still = match serves(p3.listener) {
                    Some(ListenerService::P3 { .. }) => p3.store.is_none(),
                    Some(ListenerService::P7 { .. }) => p3.store.is_some(),
                    _ => false,
                };
                (!still).then_some(Drain::Reopened)
            }
        }
    }

    pub(crate) fn log_changes(&self, cx: &mut Context, changes: &Changes) {
        for key in &changes.keys {
            cx.event(LogLevel::Info, Kind::Reconfigured, format!("{key} changed"));
        }
        for peer in &changes.peers {
            let keys = peer.keys.join(", ");
            for channel in &peer.channels {
                let own = [keys.as_str(), &channel.keys.join(", ")].join(" ");
                let own = own.trim();
                let what = format!("{}/{}: {}", peer.name, channel.name, channel.effect.name());
                let detail = if own.is_empty() { what } else { format!("{what} ({own})") };
                if channel.effect != crate::config::changes::Effect::Kept || !own.is_empty() {
                    cx.event(LogLevel::Info, Kind::Reconfigured, detail);
                }
            }
        }
    }

    /// An association is gone; it was perhaps the last of a removed channel.
    pub(crate) fn is_drained(&mut self, cx: &mut Context, id: AssociationId) {
        if self.draining.remove(&id) && !cx.config.former().is_empty() {
            self.forget_former(cx);
        }
    }
}
