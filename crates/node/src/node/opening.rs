//! Associations that are wanted, as many at once as may be.

use crate::api::Output;
use crate::api::event::Kind;
use crate::node::Node;
use crate::outbound::channels::agenda::Rank;
use base::{AssociationId, Now};
use scheduler::ChannelId;

impl Node {
    /// Opens associations that are wanted, as many at once as `limits.opening` allows: those a
    /// message waits for first, then by precedence, then those that were not tried for longest.
    pub(crate) fn open_wanted(&mut self, now: Now) {
        if !self.outbound.agenda.wishes.take_news() {
            return;
        }
        // Where there is no place for one, there is none for those that matter less.
        while let Some((rank, _, channel)) = self.outbound.agenda.wishes.first()
            && self.make_place(now, rank, channel)
        {
            self.outbound.agenda.wishes.set(channel, None);
            if let Some(state) = self.outbound.channels.get_mut(&channel) {
                state.not_before = None;
                state.tried = Some(now.mono);
            }
            self.outbound.open(&mut self.cx, now, channel);
        }
    }

    /// Whether this channel may open now. Where too many are being opened, the one that matters
    /// least makes room for one that matters more: dead peers must not keep a Flash out.
    fn make_place(&mut self, now: Now, rank: Rank, channel: ChannelId) -> bool {
        let most = self.cx.config.limits.opening.max(1);
        let mut opening: Vec<(AssociationId, bool, ChannelId)> = Vec::new();
        for link in
            self.outbound.agenda.wishes.opening().filter_map(|id| self.cx.associations.get(&id))
        {
            if let Some(of) = link.channel().filter(|_| link.is_opening()) {
                opening.push((link.id, link.is_binding(), of));
            }
        }
        // Channels that keep failing leave one place to the others.
        let failing = |of: &ChannelId| self.outbound.is_hopeless(*of);
        let all_taken = opening.len() >= most;
        let failed = opening.iter().filter(|(_, _, of)| failing(of)).count();
        let last_is_kept = failing(&channel) && most > 1 && failed >= most - 1;
        if !all_taken && !last_is_kept {
            return true;
        }
        if last_is_kept {
            opening.retain(|(_, _, of)| failing(of));
        }
        let mut lower = Vec::new();
        for (id, connected, of) in opening {
            let theirs = self.outbound.rank(&mut self.cx, now, of);
            if theirs < rank {
                lower.push((theirs, connected, id));
            }
        }
        // Of equals one whose transport connection is not there yet.
        let Some((.., id)) = lower.into_iter().min() else { return false };
        self.stop_opening(now, id);
        true
    }

    fn stop_opening(&mut self, now: Now, id: AssociationId) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.end.leaving = true; // what it was to recover is kept
        }
        let why = "makes room for a channel that matters more (limits.opening)";
        self.association_over(now, id, Kind::AssociationReleased, why);
        self.remove_association(id);
        self.cx.output(Output::Drop { association: id });
    }
}
