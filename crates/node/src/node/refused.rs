//! What follows when a peer refuses an association.

use crate::api::event::Kind;
use crate::association::failed::refusal;
use crate::association::refused::{RefusalSubject, about, name_of};
use crate::node::Node;
use base::{AssociationId, Now};
use osi::api::{Dialogue, RefuseReason};
use p1::bind::MtaBindError;
use scheduler::ChannelId;

impl Node {
    pub(crate) fn refused(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        reason: RefuseReason,
        bind_error: Option<&[u8]>,
        detail: &str,
    ) {
        let (error, text, mut failure) = refusal(reason, bind_error, detail);
        failure.reason = self.cx.shown_of(channel, &failure.reason);
        let text = self.cx.shown_of(channel, &text);
        if let Some(association) = self.cx.associations.get_mut(&id) {
            association.was_refused(failure);
        }
        let text = self.outbound.counted_perhaps(channel, error, text);
        let busy = reason == RefuseReason::Busy || error == Some(MtaBindError::Busy);
        // Not about the recovery: a layer below refused before anybody looked at it.
        let below = reason == RefuseReason::Unspecified && bind_error.is_none();
        if (busy || below) && self.cx.recovery.is_offered(id) {
            // The recovery may still succeed: what is to be resumed is kept.
            if busy {
                self.cx.recovery.was_answered(id);
            }
            return self.association_over(now, id, Kind::AssociationRefused, &text);
        }
        let recovering = self.cx.recovery.take_offered(id);
        // A fresh association would meet the same bind error.
        let of_recovery = recovering.is_some()
            && matches!(about(reason, error), RefusalSubject::Passing)
            && error.is_none();
        if let Some(association) = self.cx.associations.get_mut(&id).filter(|_| of_recovery) {
            association.try_at_once();
        }
        match about(reason, error) {
            RefusalSubject::Passing => {
                self.association_over(now, id, Kind::AssociationRefused, &text);
            }
            RefusalSubject::Identity => {
                let remedy = self.outbound.identity_remedy(&self.cx, channel);
                self.outbound.note_identity_refused(channel);
                self.refused_for_long(now, id, format!("{text}; {remedy}"));
            }
            RefusalSubject::Dialogue => self.refused_dialogue(now, id, channel, &text),
        }
        if let Some(offered) = recovering {
            // Fall back to a fresh association, sending all again.
            self.give_up_lost(now, offered.lost);
            if of_recovery {
                self.outbound.begin_afresh(channel);
            }
        }
    }

    fn refused_dialogue(&mut self, now: Now, id: AssociationId, channel: ChannelId, text: &str) {
        let refused = match self.cx.associations.get(&id).is_some_and(|a| a.is_two_way()) {
            true => Dialogue::TwoWayAlternate,
            false => Dialogue::Monologue,
        };
        let Some(other) = self.outbound.other_dialogue(channel, refused) else {
            let text = format!("{text}; it takes neither dialogue mode: check its configuration");
            return self.refused_for_long(now, id, text);
        };
        let text = format!("{text}; {} was proposed, next is {}", name_of(refused), name_of(other));
        if let Some(association) = self.cx.associations.get_mut(&id) {
            association.try_at_once();
        }
        self.association_over(now, id, Kind::AssociationRefused, &text);
    }

    /// It was refused for something that somebody has to change.
    fn refused_for_long(&mut self, now: Now, id: AssociationId, text: String) {
        if let Some(association) = self.cx.associations.get_mut(&id) {
            association.give_up(text);
        }
        self.association_over(now, id, Kind::AssociationRefused, "refused");
    }
}
