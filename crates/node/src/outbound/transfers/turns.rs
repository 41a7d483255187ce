//! RTSE's turn: asked for, and given.

use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, Now};
use osi::api::Request;
use scheduler::ChannelId;

impl Outbound {
    pub(crate) fn want_turn(&self, cx: &mut Context, now: Now, id: AssociationId) {
        if let Some(p1) = cx.associations.p1_mut(id) {
            p1.turn.wanted = true;
        }
        cx.await_turn(now, id);
        // Priority 0 is highest (X.228 7.5); transfers of any precedence ask alike here, the
        // channel being the precedence.
        cx.request(id, Request::TurnPlease(0));
    }

    /// The turn is ours. A transfer that was cut off is resumed first.
    pub(crate) fn turn_given(&self, cx: &mut Context, now: Now, id: AssociationId) {
        if let Some(association) = cx.associations.get_mut(&id) {
            association.gain_turn(now.mono);
        }
        self.resume_in_turn(cx, now, id);
    }

    /// Gives the turn where the peer asked for it and nothing of ours is in transfer.
    pub(crate) fn give_turns(&self, cx: &mut Context, channel: ChannelId) {
        let giving: Vec<AssociationId> = cx
            .associations
            .of_channel(channel)
            .filter(|l| l.can_send() && l.p1().is_some_and(|p1| p1.turn.asked))
            .map(|l| l.id)
            .collect();
        for id in giving {
            if let Some(p1) = cx.associations.p1_mut(id) {
                p1.turn.ours = false;
                p1.turn.asked = false;
            }
            cx.request(id, Request::TurnGive);
        }
    }
}
