//! What the associations that are free do next, and who has their turn.

use crate::api::event::{Kind, LogLevel};
use crate::association::{Association, AssociationState};
use crate::config::{Channel, Peer};
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now, PeerId};
use scheduler::agenda::channels_of;
use scheduler::{Associations, ChannelId};

impl Outbound {
    /// Passes the state of a channel's associations to the scheduler.
    pub(crate) fn notify_associations(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        // One that is opened by traffic fails only where there is traffic for it.
        let permanent = |(_, c): (&Peer, &Channel)| c.connection.is_kept();
        let needed = || {
            cx.peer_and_channel(channel).is_some_and(permanent)
                || cx.recovery.wants(channel)
                || !cx.queue.scheduler.status(channel).is_empty()
        };
        let failed = self.channels.get(&channel).is_some_and(|state| state.failures > 0);
        let failing = failed && needed();
        let barred = self.channels.get(&channel).is_some_and(|state| state.is_barred(now.mono));
        let mut seen = Associations { failing, barred, ..Associations::default() };
        for association in cx.associations.of_channel(channel) {
            if association.drained().is_some() && association.is_open() {
                continue; // another one takes its place at once
            }
            let ours = association.is_initiator();
            match association.state() {
                AssociationState::Connecting
                | AssociationState::Opening { .. }
                | AssociationState::Releasing { .. }
                    if ours =>
                {
                    seen.ours += 1;
                    seen.changing += 1;
                }
                AssociationState::Open { .. } => {
                    seen.ours += u32::from(ours);
                    // What ends with the hours of its channel carries nothing more.
                    let ends = barred && association.is_ending();
                    if (ours || association.is_two_way()) && !ends {
                        seen.usable += 1;
                        seen.free += u32::from(association.is_free());
                        seen.receiving += u32::from(association.receiving().is_some());
                    }
                }
                _ => {}
            }
        }
        if seen.changing > 0 {
            self.agenda.wishes.news();
        }
        cx.queue.scheduler.associations(now.mono, channel, seen);
    }

    /// A transfer that was cut off waits for its channel to recover it; but not where the channel
    /// is down and another one may carry it.
    pub(crate) fn leave_lost_channels(&mut self, cx: &mut Context, now: Now, peer: PeerId) {
        let Context { queue, recovery, .. } = cx;
        let leaving = recovery.let_go(channels_of(peer), |channel, entry| {
            let precedence = queue.get(entry).map(|e| e.precedence);
            queue.scheduler.is_down(channel)
                && precedence.is_some_and(|p| queue.scheduler.has_channel(channel.peer, p))
        });
        for entry in leaving {
            queue.scheduler.put_back(now.mono, entry);
        }
        // Nor does it wait for the next try of a channel that is at fault.
        let at_fault: Vec<ChannelId> = self.blame.channels(channels_of(peer)).collect();
        for channel in at_fault {
            if !cx.queue.scheduler.is_down(channel) {
                continue;
            }
            let waiting: Vec<EntryId> = self.blame.waiting(channel).collect();
            for entry in waiting {
                let precedence = cx.queue.get(entry).map(|e| e.precedence);
                if precedence.is_some_and(|p| cx.queue.scheduler.has_channel(peer, p)) {
                    cx.queue.scheduler.hasten(now.mono, entry);
                }
            }
        }
    }

    pub(crate) fn dispatch_channel(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        self.release_leaving(cx, channel);
        self.release_surplus(cx, now, channel);
        let free: Vec<AssociationId> = cx
            .associations
            .of_channel(channel)
            .filter(|l| l.is_idle() && !l.is_ending())
            .map(|l| l.id)
            .collect();
        for id in free {
            if cx.associations.get(&id).is_some_and(|l| l.can_send() && l.has_failed()) {
                self.after_failure(cx, now, id);
                if cx.associations.get(&id).is_none_or(|l| !l.can_send()) {
                    continue;
                }
                // It waits for another try: the next one need not wait for anything.
                self.notify_associations(cx, now, channel);
            }
            let Some(association) = cx.associations.get(&id) else { continue };
            if !association.can_send() {
                let may_ask = association.p1().is_some_and(|p1| p1.turn.two_way && !p1.turn.wanted);
                if may_ask && cx.queue.scheduler.peek(now.mono, channel).is_some() {
                    self.want_turn(cx, now, id);
                }
                continue;
            }
            if association.security_context().is_some() {
                continue;
            }
            if let Some(start) = cx.queue.scheduler.next(now.mono, channel) {
                if let Some(record) = cx.take_up(id, start.id, start.reason) {
                    self.start_transfer(cx, now, id, channel, record);
                }
            } else {
                self.log_held(cx, now, channel);
            }
        }
        self.give_turns(cx, channel);
    }

    /// Releases one association that growth opened and that is not needed any more: the youngest.
    fn release_surplus(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        if !cx.queue.scheduler.has_surplus(now.mono, channel) {
            return;
        }
        // On one that was recovered, the peer may have to resume.
        let resumes = |l: &Association| l.p1().is_some_and(|p1| p1.suspended.is_some());
        let free =
            |l: &&Association| l.is_initiator() && l.is_free() && l.has_turn() && !resumes(l);
        let youngest = cx.associations.of_channel(channel).rfind(free).map(|l| l.id);
        if let Some(id) = youngest {
            cx.release(id);
            self.notify_associations(cx, now, channel);
        }
    }

    /// Logs what a free association of this channel would start but for a higher message.
    fn log_held(&self, cx: &mut Context, now: Now, channel: ChannelId) {
        while let Some((id, reason)) = cx.queue.scheduler.newly_held(now.mono, channel) {
            let Some(entry) = cx.queue.get(id) else { continue };
            cx.event(LogLevel::Info, Kind::Held, reason.to_string())
                .channel(Some(channel))
                .entry(id)
                .precedence(entry.precedence);
        }
    }

    /// Releases the associations of a closed channel on which the last transfer has ended.
    fn release_leaving(&self, cx: &mut Context, channel: ChannelId) {
        let done: Vec<AssociationId> = cx
            .associations
            .of_channel(channel)
            .filter(|l| l.is_leaving() && l.is_idle())
            .map(|l| l.id)
            .collect();
        for id in done {
            cx.release(id);
        }
    }
}
