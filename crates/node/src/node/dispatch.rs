//! What starts after an input: of every peer and mailbox that it touched.

use crate::node::Node;
use base::Now;
use scheduler::ChannelId;
use scheduler::agenda::channels_of;

impl Node {
    /// Gives every association that is free what goes next, closes those that are too many and
    /// opens those that are wanted: of the peers and mailboxes that something happened to.
    pub(crate) fn dispatch(&mut self, now: Now) {
        if !self.cx.life.is_started() {
            return;
        }
        self.cx.queue.scheduler.tick(now.mono);
        if self.cx.life.is_stopping() {
            return self.outbound.agenda.clear();
        }
        self.outbound.note_channels();
        let mut peers = self.outbound.agenda.take_peers();
        while let Some(peer) = self.cx.queue.scheduler.changed(now.mono) {
            peers.insert(peer);
        }
        let ids = peers.iter().flat_map(|peer| self.outbound.channels.keys_in(channels_of(*peer)));
        let ids: Vec<ChannelId> = ids.collect();
        // All first: the rules look across the channels of a peer.
        for channel in &ids {
            self.outbound.notify_associations(&mut self.cx, now, *channel);
        }
        for peer in peers {
            self.outbound.leave_lost_channels(&mut self.cx, now, peer);
        }
        for channel in &ids {
            self.outbound.dispatch_channel(&mut self.cx, now, *channel);
            self.outbound.notify_associations(&mut self.cx, now, *channel);
        }
        for channel in ids {
            self.outbound.file_wish(&mut self.cx, now, channel);
        }
        self.open_wanted(now);
        let mut mailboxes = self.outbound.agenda.take_mailboxes();
        while let Some(mailbox) = self.cx.queue.scheduler.changed_mailbox(now.mono) {
            mailboxes.insert(mailbox);
        }
        mailboxes.extend(self.stores.take_waiting());
        mailboxes.extend(self.outbound.take_expandable(&self.cx));
        for mailbox in mailboxes {
            if self.cx.is_list(mailbox) {
                self.outbound.expand_next(&mut self.cx, now, mailbox);
                continue;
            }
            if self.cx.is_stored(mailbox) {
                self.stores.take_up(&mut self.cx, now, mailbox);
                continue;
            }
            self.delivery.dispatch_mailbox(&mut self.cx, now, mailbox);
        }
    }
}
