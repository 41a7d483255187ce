//! Several nodes of one site on one store: what this node owns, and what follows where that changes
//! ([`crate::api::shards`]).
//!
//! A node queues and sends the entries of its shards only. What it accepts for others goes into the store, and their
//! owner reads it there. Nothing here changes the store: an entry that is lost is another node's.

use crate::api::Output;
use crate::api::shards::ShardChange;
use crate::association::Association;
use crate::node::Node;
use crate::queue::IN_PAGE;
use base::{AssociationId, Now, PeerId, Precedence};
use engine::NextHop;

impl Node {
    /// What this node owns changes.
    pub(crate) fn shard_changed(&mut self, now: Now, change: ShardChange) {
        match change {
            ShardChange::Several => {
                self.cx.queue.own_nothing();
                self.cx.commits.removals.keep();
                self.stores.mailboxes.share();
                self.outbound.renew_schedules(&mut self.cx);
            }
            ShardChange::Gained(hop) => {
                let to = self.cx.queue.destination(&hop);
                self.cx.queue.own(to, true);
                self.operations.leaving.remove(&hop);
                // What was concluded of its entries before is removed first.
                self.cx.commits.gained(&hop);
                self.cx.commits.retry_now(now);
                self.cx.retry_due(now);
                self.ownership_changed(&hop);
            }
            ShardChange::Lost(hop) => {
                self.operations.leaving.remove(&hop);
                self.give_up_shard(now, &hop);
            }
            ShardChange::Leave(hop) => self.leave_shard(now, hop),
            ShardChange::Lease(holds) => self.lease_changed(now, holds),
        }
    }

    /// Channels of a peer open or close; a mailbox is served, or not.
    fn ownership_changed(&mut self, hop: &NextHop) {
        if matches!(hop, NextHop::Peer(_)) {
            self.outbound.renew_schedules(&mut self.cx);
        }
        self.outbound.touch_all(&mut self.cx);
    }

    /// The associations that serve a shard: those of the peer's channels, or those of the mailbox's user.
    fn serving(&self, hop: &NextHop) -> Vec<AssociationId> {
        let ids = match hop {
            NextHop::Peer(peer) => {
                let of_peer = |a: &&Association| a.channel().is_some_and(|c| c.peer == *peer);
                self.cx.associations.values().filter(of_peer).map(|a| a.id).collect()
            }
            NextHop::Mailbox(address) => {
                let number = self.cx.queue.mailbox_number(address);
                let connections = self.cx.associations.connections();
                let users = number.into_iter().flat_map(|number| connections.users(number));
                users.chain(self.stores.mailboxes.binding(address)).collect()
            }
        };
        self.only_there(ids)
    }

    fn only_there(&self, mut ids: Vec<AssociationId>) -> Vec<AssociationId> {
        ids.retain(|id| self.cx.associations.get(id).is_some());
        ids
    }

    /// It is another node's: its associations end at once, and its entries are forgotten here.
    fn give_up_shard(&mut self, now: Now, hop: &NextHop) {
        for id in self.serving(hop) {
            let why = "another node of the site has this peer or mailbox now";
            self.abort_association(now, id, why);
        }
        if let NextHop::Peer(peer) = hop {
            self.forget_lost_transfers(now, *peer);
        }
        self.forget_shard(hop);
    }

    /// Nothing of it is in progress, or is to be: forgets its entries.
    fn forget_shard(&mut self, hop: &NextHop) {
        let to = self.cx.queue.destination(hop);
        self.cx.queue.own(to, false);
        for precedence in Precedence::ALL {
            loop {
                let page = self.cx.queue.scheduler.list(to, precedence, None, IN_PAGE);
                if page.is_empty() {
                    break;
                }
                page.iter().for_each(|listed| self.cx.queue.leave_to_others(listed.item.id));
            }
        }
        if let NextHop::Mailbox(address) = hop {
            self.stores.mailboxes.forget(address);
        }
        self.ownership_changed(hop);
    }

    /// What was cut off is resumed by nobody: it waits again, here or at the next owner.
    fn forget_lost_transfers(&mut self, now: Now, peer: PeerId) {
        for entry in self.cx.recovery.forget_sends(peer) {
            self.cx.queue.scheduler.put_back(now.mono, entry);
        }
    }

    /// Another node is to have it: in order.
    fn leave_shard(&mut self, now: Now, hop: NextHop) {
        let to = self.cx.queue.destination(&hop);
        let is_bound = matches!(hop, NextHop::Mailbox(_)) && !self.serving(&hop).is_empty();
        if is_bound && !self.cx.life.is_stopping() {
            return self.cx.output(Output::ShardLeft { shard: hop, stays: true });
        }
        self.cx.queue.own(to, false);
        self.ownership_changed(&hop);
        if let NextHop::Peer(peer) = hop {
            self.forget_lost_transfers(now, peer);
        }
        for id in self.serving(&hop) {
            if let Some(association) = self.cx.associations.get_mut(&id) {
                association.leave();
            }
            self.wind_down(now, id);
        }
        self.operations.leaving.insert(hop);
    }

    /// Gives away what is to leave, has no transfer in progress and nothing to remove. Gives whether anything was.
    pub(crate) fn settle_leaving(&mut self, now: Now) -> bool {
        self.cx.commits.removals.forget_ended();
        if self.operations.leaving.is_empty() {
            return false;
        }
        // A transfer that the handover interrupted is kept to be resumed once its association has ended: not here.
        let peers = self.operations.leaving.iter().filter_map(|hop| match hop {
            NextHop::Peer(peer) => Some(*peer),
            NextHop::Mailbox(_) => None,
        });
        for peer in peers.collect::<Vec<_>>() {
            self.forget_lost_transfers(now, peer);
        }
        let busy = |node: &Node, hop: &NextHop| {
            let sending = |id: &AssociationId| {
                node.cx.associations.get(id).is_some_and(|a| a.sending().is_some())
            };
            let to = node.cx.queue.destination_of(hop);
            // What was sent and is not removed yet would be sent again by the next owner.
            let removes = to.is_some_and(|to| node.cx.commits.removals.has_any_for(to));
            removes || node.serving(hop).iter().any(sending) || node.cx.queue.is_in_transfer(to)
        };
        let ready: Vec<NextHop> =
            self.operations.leaving.iter().filter(|hop| !busy(self, hop)).cloned().collect();
        let is_any = !ready.is_empty();
        for hop in ready {
            self.operations.leaving.remove(&hop);
            self.forget_shard(&hop);
            self.cx.output(Output::ShardLeft { shard: hop, stays: false });
        }
        is_any
    }

    /// Without its lease a node acknowledges nothing: who is connected finds another one.
    fn lease_changed(&mut self, now: Now, holds: bool) {
        self.cx.life.lease_changed(holds);
        if holds {
            return;
        }
        let ids: Vec<AssociationId> = self.cx.associations.keys().copied().collect();
        for id in ids {
            let why = "this node has lost its lease: it cannot reach the store of the site";
            self.abort_association(now, id, why);
        }
    }
}
