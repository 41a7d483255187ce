//! A changed configuration takes effect while the node runs.
//!
//! Associations that the change does not concern are not touched. The others are *drained*: nothing
//! new starts on them, and they end once what is in transfer has ended. If the channel stays, the
//! transfer continues to its end, and new associations are opened beside it. If the channel is removed, a
//! transfer of ours is interrupted at its next checkpoint, and its message takes another channel.
//!
//! What is queued stays with its peer. Entries for a peer that is gone are *unrouted*: they are read from
//! the store, a few at a time, and routed again. One commit replaces an entry by its successors. An
//! entry in transfer is routed again when its transfer ends without success.

use crate::association::Association;
use crate::config::changes::{Changes, EdgeChanges};
use crate::config::channel_changes::ChannelChanges;
use crate::config::channel_changes::Drain;
use crate::config::{NodeConfig, Peer};
use crate::node::Node;
use base::{AssociationId, Now};
use std::collections::BTreeSet;

impl Node {
    /// The effect that a changed configuration would have. If that names keys that take a restart, the
    /// configuration must not be handed in.
    pub fn changes(&self, config: &NodeConfig, edge: &EdgeChanges) -> Changes {
        Changes::between(&self.cx.config, config, edge)
    }

    /// Another configuration holds from now on.
    pub(crate) fn configure(&mut self, now: Now, mut config: NodeConfig, edge: &EdgeChanges) {
        if self.cx.life.is_stopping() {
            return;
        }
        config.mailboxes.clone_from(&self.cx.config.mailboxes);
        config.store.users.clone_from(&self.cx.config.store.users);
        (config.seed, config.epoch) = (self.cx.config.seed, self.cx.config.epoch);
        config.limits.sockets = self.cx.config.limits.sockets;
        let changes = Changes::between(&self.cx.config, &config, edge);
        let channels = ChannelChanges::between(&self.cx.config, &config, edge);
        let peers = self.cx.config.peers.iter().map(Peer::id).collect();
        let old = self.cx.config.replace(config);
        self.cx.engine.configure(crate::config::engine_config(&self.cx.config));
        self.admission.access.reload(&self.cx.config.limits);
        self.stores.configure(&self.cx.config.store);
        self.stores.rooms_changed(&mut self.cx, now);
        let rules = crate::config::channel_rules(&self.cx.config);
        self.cx.queue.scheduler.configure(now.mono, rules, self.cx.config.hold);
        self.outbound.change_channels(&mut self.cx, now, &channels);
        self.operations.look_at_minimize(&mut self.cx, now);
        self.renew_schedules(now);
        self.operations.keep_former(&mut self.cx, old, &channels);
        self.arrivals.leave_channels(&mut self.cx, now, &channels);
        self.outbound.find_unrouted(&mut self.cx, &peers);
        self.drain_associations(now, &channels);
        self.outbound.touch_all(&mut self.cx);
        self.operations.log_changes(&mut self.cx, &changes);
    }

    /// Ends what of these is drained and has nothing in transfer any more; in a stop, all users that are answered.
    pub(crate) fn end_drained(&mut self, now: Now, touched: &BTreeSet<AssociationId>) {
        let is_stopping = self.cx.life.is_stopping();
        if self.operations.draining().is_empty() && !is_stopping {
            return;
        }
        let is_due = |id: &&AssociationId| {
            // A user waits for answers to what was submitted.
            let due = |a: &Association| {
                let ends =
                    self.operations.draining().contains(&a.id) || (is_stopping && a.p3().is_some());
                ends && a.is_open() && a.is_answered()
            };
            self.cx.associations.get(id).is_some_and(due)
        };
        let due: Vec<AssociationId> = touched.iter().filter(is_due).copied().collect();
        for id in due {
            self.wind_down(now, id);
        }
    }

    fn drain_associations(&mut self, now: Now, changes: &ChannelChanges) {
        let drained: Vec<(AssociationId, Drain)> = self
            .cx
            .associations
            .values()
            .filter_map(|association| {
                Some((association.id, self.operations.drain_of(&self.cx, association, changes)?))
            })
            .collect();
        for (id, drain) in drained {
            let Some(association) = self.cx.associations.get_mut(&id) else { continue };
            association.drain(drain);
            let is_open = association.is_open();
            // What has not begun begins elsewhere.
            if let Some(sending) = association.take_unread() {
                self.cx.queue.scheduler.put_back(now.mono, sending.entry);
            }
            self.operations.drain(id);
            if !is_open {
                self.wind_down(now, id);
            }
        }
    }
}
