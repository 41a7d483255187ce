//! Places for associations that are being opened: `limits.opening` of them.

use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, Now};
use scheduler::ChannelId;
use scheduler::agenda::Rank;

/// Whether there is a place to open one more association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpeningPlace {
    Free,
    /// Once this association, which matters less, makes room.
    InsteadOf(AssociationId),
    /// By associations that matter as much.
    Taken,
}

impl Outbound {
    /// Whether this channel may open now. Where too many are being opened, the one that matters
    /// least makes room for one that matters more: dead peers must not keep a Flash out.
    pub(crate) fn place_to_open(
        &mut self,
        cx: &mut Context,
        now: Now,
        rank: Rank,
        channel: ChannelId,
    ) -> OpeningPlace {
        let most = cx.config.limits.opening.max(1);
        let mut opening: Vec<(AssociationId, bool, ChannelId)> = Vec::new();
        for association in self.agenda.wishes.opening().filter_map(|id| cx.associations.get(&id)) {
            if let Some(of) = association.channel().filter(|_| association.is_opening()) {
                opening.push((association.id, association.is_binding(), of));
            }
        }
        // Channels that keep failing leave one place to the others.
        let failing = |of: &ChannelId| self.is_hopeless(*of);
        let all_taken = opening.len() >= most;
        let failed = opening.iter().filter(|(_, _, of)| failing(of)).count();
        let last_is_kept = failing(&channel) && most > 1 && failed >= most - 1;
        if !all_taken && !last_is_kept {
            return OpeningPlace::Free;
        }
        if last_is_kept {
            opening.retain(|(_, _, of)| failing(of));
        }
        let mut lower = Vec::new();
        for (id, connected, of) in opening {
            let theirs = self.rank(cx, now, of);
            if theirs < rank {
                lower.push((theirs, connected, id));
            }
        }
        // Of equals one whose transport connection is not there yet.
        lower.into_iter().min().map_or(OpeningPlace::Taken, |(.., id)| OpeningPlace::InsteadOf(id))
    }

    /// Opens an association of a channel that wants one.
    pub(crate) fn open_wanted(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        self.agenda.wishes.set(channel, None);
        if let Some(state) = self.channels.get_mut(&channel) {
            state.not_before = None;
            state.tried = Some(now.mono);
        }
        self.open(cx, now, channel);
    }
}
