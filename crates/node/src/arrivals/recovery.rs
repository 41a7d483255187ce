//! What was arriving on an association that ended.

use crate::arrivals::Arrivals;
use crate::association::lost::{HeldPart, LostReceive, LostTransfers};
use crate::association::recovery::KEPT;
use crate::config::channel_changes::ChannelChanges;
use crate::context::Context;
use base::{AssociationId, Instant, Now};
use scheduler::ChannelId;
use std::time::Duration;

/// A transfer to us is kept no longer than this: it takes room in the store.
pub(crate) const RECEIVE_KEPT: Duration = Duration::from_hours(24);

impl Arrivals {
    /// The association ended: what was arriving is kept for a recovery where that is possible, else
    /// discarded. An arrival that had ended is committed all the same. The peer learns that when it
    /// recovers the association, or its repetition is recognised as a duplicate.
    pub(crate) fn drop_receiving(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        was_open: bool,
        lost: bool,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let state = association.stack.take_interrupted().filter(|_| was_open);
        let (remote, ours, channel) =
            (association.connection.remote, association.is_initiator(), association.channel());
        let idle_since = association.idle_since();
        let lost_on = association.p1().map(|p1| p1.reference.clone()).unwrap_or_default();
        // The peer cannot resume on an association that we released or do not open again.
        // Nor where it was bound with a security-context: a recovery has none.
        let had_context = association.security_context().is_some();
        let may = !ours || (lost && !cx.life.is_stopping() && association.drained().is_none());
        let spool = association.take_receiving().or_else(|| association.p1_mut()?.suspended.take());
        self.drop_suspended(cx, id);
        let arrival = spool.and_then(|spool| self.open.get_mut(&spool));
        let kept_until = arrival.as_ref().and_then(|a| a.kept_until);
        let held = match (spool, arrival) {
            (Some(spool), Some(a)) if !a.is_sound() || !a.ended => {
                Some((HeldPart::Part(spool), a.is_sound()))
            }
            (Some(spool), _) => Some((HeldPart::Ended(spool), true)),
            (None, _) => {
                Some((HeldPart::Secured, state.as_ref().is_some_and(|s| s.is_completed())))
            }
        };
        let Some((held, sound)) = held else { return };
        let timeout = channel.and_then(|c| cx.peer_and_channel(c));
        let timeout = timeout.map(|(_, c)| c.rts.transfer_timeout).unwrap_or_default();
        // A peer that did not learn of the end gives up after a timeout of its own, and we learn of that after it.
        let recent = held != HeldPart::Secured || now.mono.since(idle_since) <= 2 * timeout;
        let state = state.filter(|s| s.serial() > 0 && sound && may && recent && !had_context);
        let dropped = match (channel, state) {
            (Some(channel), Some(state)) => {
                let until = kept_until.unwrap_or_else(|| self.receive_kept_until(cx, now, channel));
                if let HeldPart::Part(spool) = held
                    && let Some(arrival) = self.open.get_mut(&spool)
                {
                    arrival.kept_until = Some(until);
                }
                cx.recovery.keep_receive(LostReceive {
                    channel,
                    state,
                    held,
                    remote,
                    ours,
                    lost_on,
                    until,
                    asked: 0,
                })
            }
            _ => match held {
                HeldPart::Part(spool) => Some(spool),
                HeldPart::Ended(_) | HeldPart::Secured => None,
            },
        };
        if let Some(spool) = dropped {
            self.drop_arrival(cx, spool);
        }
    }

    /// A lost transfer is not recovered, because we decided so.
    pub(crate) fn let_lost_go(&mut self, cx: &mut Context, now: Now, lost: LostTransfers) {
        if let Some(send) = lost.send {
            cx.queue.scheduler.put_back(now.mono, send.entry);
        }
        self.drop_lost(cx, lost.receive.as_ref());
    }

    pub(crate) fn drop_lost(&mut self, cx: &mut Context, receive: Option<&LostReceive>) {
        if let Some(LostReceive { held: HeldPart::Part(spool), .. }) = receive {
            self.drop_arrival(cx, *spool);
        }
    }

    /// A transfer to us may be resumed on this association.
    pub(crate) fn adopt(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
        receive: Option<&LostReceive>,
    ) {
        let Some(HeldPart::Part(spool)) = receive.map(|lost| lost.held) else { return };
        if let Some(arrival) = self.open.get_mut(&spool) {
            arrival.association = id;
        }
        if let Some(p1) = cx.associations.p1_mut(id) {
            p1.suspended = Some(spool);
        }
    }

    /// Until when a transfer to us that was cut off now is kept.
    pub(crate) fn receive_kept_until(&self, cx: &Context, now: Now, channel: ChannelId) -> Instant {
        cx.kept_until(now, channel, KEPT, now.mono + RECEIVE_KEPT)
    }

    /// Transfers that were cut off no longer wait for channels that changed.
    pub(crate) fn leave_channels(&mut self, cx: &mut Context, now: Now, changes: &ChannelChanges) {
        let leaves =
            |channel| changes.removed.contains(&channel) || changes.rebound.contains(&channel);
        let recoded = |channel| leaves(channel) || changes.recoded.contains(&channel);
        for entry in cx.recovery.let_go(.., |channel, _| recoded(channel)) {
            cx.queue.scheduler.put_back(now.mono, entry);
        }
        for spool in cx.recovery.let_go_receives(leaves) {
            self.drop_arrival(cx, spool);
        }
    }
}
