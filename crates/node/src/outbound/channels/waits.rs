//! What ends a channel's wait before its time: a configuration read again, the peer binding to us,
//! and an operator who wants it opened (`mta channel connect`).

use crate::api::Output;
use crate::api::connect::ConnectOutcome;
use crate::api::event::{Kind, LogLevel};
use crate::association::Association;
use crate::config::Peer;
use crate::config::channel_changes::ChannelChanges;
use crate::context::Context;
use crate::outbound::Outbound;
use crate::outbound::channels::state::ChannelState;
use base::{AssociationId, Now, PeerId};
use osi::api::Dialogue;
use p1::bind::MtaBindError;
use scheduler::ChannelId;
use std::time::Duration;

/// Between two binds of a peer that end the wait of a channel whose name or password it refuses.
const PEER_BOUND: Duration = Duration::from_secs(30);

impl Outbound {
    /// An operator wants this channel opened now.
    pub(crate) fn connect_channel(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        channel: ChannelId,
    ) {
        let open = |association: &&Association| association.is_initiator() && association.is_open();
        let associations = cx.associations.of_channel(channel).filter(open).count();
        let failed = match self.channels.get(&channel) {
            _ if cx.life.is_stopping() => Some("the MTA is stopping".to_owned()),
            None => Some("there is no such channel any more".to_owned()),
            Some(state) => state.schedule.disabled.as_ref().map(ToString::to_string),
        };
        if failed.is_none() {
            self.open_outside_hours(cx, now, channel);
        }
        self.end_waits(cx, now, channel, "an operator wants it opened");
        let outcome = match failed {
            Some(reason) => ConnectOutcome::Failed { reason },
            None if associations > 0 => ConnectOutcome::Open { associations },
            None => {
                if let Some(state) = self.channels.get_mut(&channel) {
                    state.asked.push(request);
                }
                return;
            }
        };
        cx.output(Output::ChannelConnected { request, outcome });
    }

    /// Answers operators who asked to open this channel.
    pub(crate) fn answer_connect(
        &mut self,
        cx: &mut Context,
        channel: ChannelId,
        outcome: &ConnectOutcome,
    ) {
        if self.channels.get(&channel).is_none_or(|state| state.asked.is_empty()) {
            return;
        }
        let asked = self.channels.get_mut(&channel).map(|state| std::mem::take(&mut state.asked));
        for request in asked.into_iter().flatten() {
            cx.output(Output::ChannelConnected { request, outcome: outcome.clone() });
        }
    }

    /// Answers operators who wait for a channel that could not be opened and waits again.
    pub(crate) fn answer_failed(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        let Some(state) = self.channels.get(&channel).filter(|s| !s.asked.is_empty()) else {
            return;
        };
        let waits = state.not_before.is_some_and(|at| at > now.mono);
        let reason = match state.schedule.describe() {
            Some(reason) => reason,
            None if waits => state.last_error.clone().unwrap_or_else(|| "it failed".to_owned()),
            None => return,
        };
        self.answer_connect(cx, channel, &ConnectOutcome::Failed { reason });
    }

    /// A peer has bound to us, or to another node of the site: it is there, so it is worth while to try its channels. Not where it
    /// aborts what we send: its bind does not change that. Where it refuses our name or password, only
    /// now and then: it refuses our bind result too, and binds again and again.
    pub(crate) fn peer_has_bound(&mut self, cx: &mut Context, now: Now, peer: PeerId, whom: &str) {
        let ids: Vec<_> = self.channels.keys_in(scheduler::agenda::channels_of(peer)).collect();
        for id in ids {
            let backs_off = self.blame.backs_off(id);
            let Some(state) = self.channels.get_mut(&id) else { continue };
            let lately = state.peer_bound.is_some_and(|at| now.mono.since(at) < PEER_BOUND);
            let waits = state.not_before.is_some_and(|at| at > now.mono);
            if waits && backs_off != state.not_before && !(state.refused.is_identity() && lately) {
                state.peer_bound = Some(now.mono);
                self.end_wait(cx, id, &format!("the peer has bound to {whom}"));
            }
        }
    }

    /// This channel is to be opened now: its wait ends, and what failed on it is tried again.
    pub(crate) fn end_waits(&mut self, cx: &mut Context, now: Now, channel: ChannelId, why: &str) {
        for entry in self.blame.try_again(channel) {
            cx.queue.scheduler.hasten(now.mono, entry);
        }
        cx.queue.scheduler.hasten_failed(now.mono, channel.peer);
        if self.channels.get(&channel).is_some_and(|s| s.not_before > Some(now.mono)) {
            self.end_wait(cx, channel, why);
        }
    }

    pub(crate) fn end_wait(&mut self, cx: &mut Context, channel: ChannelId, why: &str) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.end_wait();
            let detail = format!("the wait before the next try has ended: {why}");
            cx.event(LogLevel::Info, Kind::WaitEnded, detail).channel(Some(channel));
        }
    }

    /// Busy, where our name or password was refused before, may be for that.
    pub(crate) fn counted_perhaps(
        &self,
        channel: ChannelId,
        error: Option<MtaBindError>,
        text: String,
    ) -> String {
        let refused = self.channels.get(&channel).is_some_and(|state| state.refused.identity);
        if error != Some(MtaBindError::Busy) || !refused {
            return text;
        }
        format!(
            "{text}; it refused our name or password before, and may still be counting that: \
             `mta reload` at the peer ends it, else time does"
        )
    }

    /// The peer refused our name or password.
    pub(crate) fn note_identity_refused(&mut self, channel: ChannelId) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.refused.identity = true;
        }
    }

    /// The dialogue mode to propose after the peer refused this one, once.
    pub(crate) fn other_dialogue(
        &mut self,
        channel: ChannelId,
        refused: Dialogue,
    ) -> Option<Dialogue> {
        self.channels.get_mut(&channel)?.refused.turn(refused)
    }

    /// The next try of a channel does not wait, and no failure counts against it.
    pub(crate) fn begin_afresh(&mut self, channel: ChannelId) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.not_before = None;
            state.failures = 0;
        }
    }

    /// What to look at, here and there.
    pub(crate) fn identity_remedy(&self, cx: &Context, channel: ChannelId) -> String {
        let Some((peer, _)) = cx.peer_and_channel(channel) else { return String::new() };
        format!(
            "we bind as {:?}: check password and own_name of peer {:?} here, and the name, password \
             and addresses it expects of us there",
            peer.own_name.0, peer.name
        )
    }

    /// A window of a channel begins.
    pub(crate) fn window_begins(&mut self, cx: &mut Context, channel: ChannelId) {
        self.begin_afresh(channel);
        let ids: Vec<AssociationId> = cx.associations.of_channel(channel).map(|l| l.id).collect();
        for id in ids {
            // One on which the peer still sends is of use again.
            let association = cx.associations.get_mut(&id);
            if let Some(stays) = association.filter(|a| a.is_open() && !a.is_interrupting()) {
                stays.stay();
            }
        }
    }

    /// What failed on this channel no longer counts.
    fn forget_failed(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        for entry in self.blame.begin_anew(channel) {
            cx.queue.scheduler.hasten(now.mono, entry);
        }
    }

    pub(crate) fn change_channels(&mut self, cx: &mut Context, now: Now, changes: &ChannelChanges) {
        for id in &changes.removed {
            let reason = "it was taken out of the configuration".to_owned();
            self.answer_connect(cx, *id, &ConnectOutcome::Failed { reason });
            self.forget_failed(cx, now, *id);
            self.channels.remove(id);
        }
        let ids: Vec<ChannelId> =
            cx.config.peers.iter().flat_map(Peer::channels).map(|(id, _)| id).collect();
        for id in ids {
            // What failed with the old configuration may not fail with this one, and where nothing
            // of the channel changed, perhaps something did at its peer.
            self.forget_failed(cx, now, id);
            self.end_waits(cx, now, id, "the configuration was read again");
            if !self.channels.contains_key(&id) || changes.reopened.contains(&id) {
                let kept = self.channels.get_mut(&id).map(|state| ChannelState {
                    asked: std::mem::take(&mut state.asked),
                    refused: state.refused.reopened(),
                    ..ChannelState::default()
                });
                self.channels.insert(id, kept.unwrap_or_default());
            }
        }
    }
}
