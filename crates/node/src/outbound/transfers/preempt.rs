//! Rule 8 in the node: a transfer that the scheduler pauses stops after its next checkpoint and
//! continues later, on the same association. Nothing is aborted; without checkpoints it does not pause.

use crate::api::event::{Kind, LogLevel};
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now};
use osi::api::Request;
use scheduler::Destination;

impl Outbound {
    /// Pauses and continues transfers as the scheduler decides.
    pub(crate) fn pause_and_continue(&self, cx: &mut Context, now: Now) {
        while let Some((entry, pause)) = cx.queue.scheduler.pauses(now.mono) {
            if let Some(id) = self.sender_of(cx, entry) {
                self.pause(cx, id, pause);
            }
        }
    }

    /// The association that sends an entry to a peer.
    fn sender_of(&self, cx: &Context, entry: EntryId) -> Option<AssociationId> {
        let Destination::Peer(peer) = cx.queue.get(entry)?.destination else { return None };
        let mine = |id: &AssociationId| {
            cx.associations
                .get(id)
                .and_then(|l| l.sending.as_ref())
                .is_some_and(|s| s.entry == entry)
        };
        cx.associations.connections().peer(peer).find(mine)
    }

    /// Has an association pause its transfer, once it has begun, or continue it.
    pub(crate) fn pause(&self, cx: &mut Context, id: AssociationId, pause: bool) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let channel = association.channel();
        let Some(sending) =
            association.sending.as_mut().filter(|s| s.record.is_some() && !s.confirmed)
        else {
            return; // it pauses when it begins
        };
        let was_paused = std::mem::take(&mut sending.paused);
        let (entry, precedence, message) =
            (sending.entry, sending.precedence, sending.message.clone());
        cx.request(id, Request::Pause(pause));
        if was_paused && !pause {
            cx.event(LogLevel::Info, Kind::Resumed, "continues after a pause")
                .association(id)
                .channel(channel)
                .message(message)
                .entry(entry)
                .precedence(precedence);
        }
    }

    /// A transfer begins, perhaps again, while it is to pause.
    pub(crate) fn pause_at_start(&self, cx: &mut Context, id: AssociationId, entry: EntryId) {
        if cx.queue.scheduler.is_paused(entry) {
            self.pause(cx, id, true);
        }
    }

    /// A transfer stands behind a checkpoint.
    pub(crate) fn paused(&self, cx: &mut Context, id: AssociationId) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let channel = association.channel();
        let Some(sending) = &mut association.sending else { return };
        sending.paused = true;
        let octets = sending.resume.as_ref().map_or(0, |point| point.octets);
        let (entry, precedence, message) =
            (sending.entry, sending.precedence, sending.message.clone());
        let detail = format!("behind a checkpoint after {octets} octets, for a higher message");
        cx.event(LogLevel::Info, Kind::Paused, detail)
            .association(id)
            .channel(channel)
            .message(message)
            .entry(entry)
            .precedence(precedence);
    }
}
