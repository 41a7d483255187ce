//! A transfer of which nothing is confirmed or taken for `stall`: it is logged, once. One that is urgent and could
//! go elsewhere does not wait for the end of its association's timers.

use crate::api::event::{Kind, LogLevel};
use crate::association::Association;
use crate::association::transfer::Sending;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, Now, Precedence};
use osi::api::{AbortReason, Request};
use std::time::Duration;

/// Least time between two looks at a transfer.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The lowest precedence that is urgent.
const URGENT: Precedence = Precedence::Flash;

impl Outbound {
    /// It is to be looked at whether the transfer on this association makes progress.
    pub(crate) fn look_at_stall(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let association = cx.associations.get(&id);
        let Some(sending) = association.and_then(Association::sending).filter(|s| !s.confirmed)
        else {
            return;
        };
        let (entry, stall) = (sending.entry, cx.config.hold.stall);
        let since = cx.stalled_since(now, entry);
        let is_new = since.is_some() && !sending.stall_logged;
        let last = cx.queue.scheduler.last_progress(entry).filter(|_| since.is_none());
        let next = last.map_or(now.mono + stall, |last| last + stall).max(now.mono + MIN_PAUSE);
        if let Some(sending) = cx.associations.get_mut(&id).and_then(|a| a.sending_mut()) {
            sending.stall_look = Some(next);
            sending.stall_logged |= is_new;
        }
        if is_new {
            self.log_stall(cx, id, stall);
        }
        if since.is_some() && self.goes_elsewhere(cx, id) {
            self.free(cx, id);
        }
    }

    fn log_stall(&self, cx: &mut Context, id: AssociationId, stall: Duration) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (Some(channel), Some(sending)) = (association.channel(), association.sending()) else {
            return;
        };
        let Sending { entry, precedence, total, .. } = *sending;
        let (message, bytes) = (sending.message.clone(), sending.bytes());
        let confirmed = sending.confirmed_octets();
        let detail = format!(
            "nothing was confirmed or taken for {} s; {confirmed} of {total} octets are confirmed",
            stall.as_secs()
        );
        cx.event(LogLevel::Warning, Kind::TransferStalled, detail)
            .association(id)
            .channel(Some(channel))
            .message(message)
            .entry(entry)
            .precedence(precedence)
            .bytes(bytes);
    }

    /// Whether this transfer is urgent, waits for its peer, and another association that is free may carry it.
    /// Only once for each message: on a line that carries nothing, it would end one association after the other.
    fn goes_elsewhere(&self, cx: &Context, id: AssociationId) -> bool {
        let Some(association) = cx.associations.get(&id).filter(|a| a.is_open()) else {
            return false;
        };
        let (Some(channel), Some(sending)) = (association.channel(), association.sending()) else {
            return false;
        };
        let precedence = sending.precedence;
        if precedence < URGENT || sending.reading || self.freed.contains(&sending.entry) {
            return false;
        }
        let may_carry = |other: &Association| {
            let its = other.channel();
            let config = its.and_then(|its| cx.config.channel(its)).map(|(_, config)| config);
            let floor = its.and_then(|its| cx.queue.scheduler.floor_on(its));
            config.is_some_and(|config| config.precedences.contains(&precedence))
                && floor.is_none_or(|floor| floor.lowest <= precedence)
        };
        let mut others = cx.associations.connections().peer(channel.peer);
        others.any(|other| {
            let other = cx.associations.get(&other).filter(|other| other.id != id);
            other.is_some_and(|other| {
                let is_free = other.is_free() && other.can_send();
                is_free && other.security_context().is_none() && may_carry(other)
            })
        })
    }

    /// Ends the association of a transfer: the message is tried again at once.
    fn free(&mut self, cx: &mut Context, id: AssociationId) {
        let sending = cx.associations.get(&id).and_then(Association::sending);
        let Some(entry) = sending.map(|sending| sending.entry) else { return };
        self.freed.retain(|entry| cx.queue.get(*entry).is_some());
        self.freed.insert(entry);
        let why = "its urgent transfer stalled, and another association is free";
        if let Some(association) = cx.associations.get_mut(&id) {
            association.connection.error = Some(why.to_owned());
        }
        cx.request(id, Request::Abort(AbortReason::TemporaryProblem));
    }
}
