//! Associations by channel, and how one is brought to its end.

use crate::association::ended::EndedAssociation;
use crate::association::recovery::KEPT;
use crate::association::{Association, AssociationState};
use crate::config::channel_changes::Drain;
use crate::config::{Channel, Connection, Peer};
use crate::context::Context;
use crate::log::rate::{RefusalCause, RepeatedEvent};
use base::{AssociationId, Instant, Now};
use osi::api as stack;
use scheduler::ChannelId;
use std::time::Duration;

impl Context {
    /// A channel as `PEER/CHANNEL`.
    pub(crate) fn label(&self, channel: ChannelId) -> Option<String> {
        self.place(channel).map(|(peer, channel)| format!("{peer}/{channel}"))
    }

    /// Why a channel is disabled: an operator did that, or this node can acknowledge nothing.
    pub(crate) fn disabled(&self, channel: ChannelId) -> Option<String> {
        if let Some(why) = self.life.without_lease() {
            return Some(why.to_owned());
        }
        self.label(channel).and_then(|name| self.closed.get(&name)).map(ToString::to_string)
    }

    pub(crate) fn peer_and_channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        self.config.channel_or_former(id)
    }

    /// What the peer of a channel sent, as it may be shown.
    pub(crate) fn shown_of(&self, id: ChannelId, text: &str) -> String {
        let peer = self.peer_and_channel(id);
        peer.map_or_else(|| text.to_owned(), |(peer, _)| peer.without_password(text))
    }

    /// The names of a channel's peer and of the channel, for the log.
    pub(crate) fn place(&self, id: ChannelId) -> Option<(&str, &str)> {
        self.peer_and_channel(id).map(|(peer, channel)| (peer.name.as_str(), channel.name.as_str()))
    }

    /// Logs the end of an association. Not where it was refused or given up, which is logged already.
    pub(crate) fn log_end(&mut self, now: Now, id: AssociationId, ended: &EndedAssociation) {
        let (level, kind, channel) = (ended.level(), ended.kind, ended.channel);
        if ended.had_no_bind() {
            // Anybody can connect and go, as often as they like.
            let detail = match ended.remote {
                Some(remote) => format!("{remote}, nobody had bound: {}", ended.detail),
                None => ended.detail.clone(),
            };
            let line = RepeatedEvent { level, kind, channel, detail };
            let (origin, reason) = (ended.origin, &ended.reason);
            self.outputs.limited_event(now, RefusalCause::NoBind, origin, Some(id), reason, line);
        } else if !ended.refused && ended.given_up.is_none() {
            self.event(level, kind, ended.detail.as_str()).association(id).channel(channel);
        }
    }

    /// Brings an association with a connection to its end: releases it where idle, interrupts a
    /// long transfer at its next checkpoint, lets the rest finish.
    pub(crate) fn finish(&mut self, id: AssociationId) {
        let Some(association) = self.associations.get(&id) else { return };
        let interrupts = self.life.is_stopping()
            || association.is_leaving()
            || association.drained() == Some(Drain::Removed);
        match association.state() {
            AssociationState::Opening { .. } => {
                self.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            }
            AssociationState::Open { .. } if association.is_idle() && association.is_answered() => {
                self.release(id);
            }
            AssociationState::Open { .. } => {
                let sends = association.sending().is_some_and(|s| !s.confirmed);
                let is_p1 = association.channel().is_some();
                // A peer's transfer to us, or a delivery, may finish; the edge bounds the wait.
                if sends && is_p1 && interrupts && !association.is_interrupting() {
                    if let Some(association) = self.associations.get_mut(&id) {
                        association.interrupt();
                    }
                    self.request(id, stack::Request::Interrupt);
                }
            }
            AssociationState::Connecting
            | AssociationState::Releasing { .. }
            | AssociationState::Refusing
            | AssociationState::Over => {}
        }
    }

    pub(crate) fn release(&mut self, id: AssociationId) {
        let channel = self.associations.get(&id).and_then(Association::channel);
        let peer = channel.and_then(|channel| self.peer_and_channel(channel));
        let by = peer.map(|(peer, _)| peer.release).unwrap_or_default();
        if let Some(association) = self.associations.get_mut(&id) {
            let request = association.release(by);
            self.request(id, request);
        }
    }

    /// An idle peer that was asked for the turn has to give it in time.
    pub(crate) fn await_turn(&mut self, now: Now, id: AssociationId) {
        let channel = self.associations.get(&id).and_then(Association::channel);
        let wait = channel.and_then(|c| self.peer_and_channel(c)).map(|(_, c)| c.setup_timeout);
        if let (Some(association), Some(wait)) = (self.associations.get_mut(&id), wait) {
            let receives = association.receiving().is_some();
            if let Some(p1) = association.p1_mut() {
                let waits = p1.turn.wanted && !receives;
                p1.turn.deadline = waits.then_some(now.mono + wait);
            }
        }
    }

    /// Until when a transfer of ours that was cut off now may be resumed: until its channel's next
    /// window has begun, but not beyond its expiry.
    pub(crate) fn kept_until(
        &self,
        now: Now,
        channel: ChannelId,
        usual: Duration,
        expires: Instant,
    ) -> Instant {
        let usual = now.mono + usual;
        self.opens_next(now, channel).map_or(usual, |at| (at + KEPT).min(expires).max(usual))
    }

    /// When a channel that is outside its windows, or will be before a transfer that is cut off now
    /// is given up, is within them again.
    fn opens_next(&self, now: Now, channel: ChannelId) -> Option<Instant> {
        let (_, config) = self.peer_and_channel(channel)?;
        let Connection::Scheduled { windows } = &config.connection else { return None };
        let change = windows.next_change(now.utc)?;
        let opens = match windows.is_open(now.utc) {
            true if change.since(now.utc) < KEPT => windows.next_change(change)?,
            true => return None,
            false => change,
        };
        Some(now.mono + opens.since(now.utc))
    }
}
