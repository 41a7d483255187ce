//! What ends a channel's wait before its time: a configuration read again, the peer binding to us,
//! and an operator who wants it opened (`mta channel connect`).

use crate::api::{ChannelId, Output};
use crate::association::{Association, Phase};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::node::Node;
use base::{Now, PeerId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What came of an operator's wish to open a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Connected {
    /// It was opened.
    Opened,
    /// So many associations of ours were open already: nothing was done.
    Open {
        /// How many.
        associations: usize,
    },
    /// It is being opened: how that ends is not known yet.
    Opening,
    /// It could not be opened; it is tried again as ever.
    Failed {
        /// Why, as in the status.
        reason: String,
    },
}

/// Between two binds of a peer that end the wait of a channel whose name or password it refuses.
const PEER_BOUND: Duration = Duration::from_secs(30);

impl Node {
    /// The channel of this name, as `PEER/CHANNEL`.
    ///
    /// # Errors
    /// There is none; the text names those there are.
    pub fn channel_named(&self, name: &str) -> Result<ChannelId, String> {
        let channels = self.cx.config.peers.iter().flat_map(|peer| peer.channels());
        let named = |id| self.cx.place(id).map(|(peer, channel)| (id, format!("{peer}/{channel}")));
        let all: Vec<(ChannelId, String)> = channels.filter_map(|(id, _)| named(id)).collect();
        let found = all.iter().find(|(_, label)| label == name);
        found.map(|(id, _)| *id).ok_or_else(|| {
            let labels: Vec<&str> = all.iter().map(|(_, label)| label.as_str()).collect();
            format!("there is no channel {name:?}; there are: {}", labels.join(", "))
        })
    }
}

impl Outbound {
    /// An operator wants this channel opened now.
    pub(crate) fn connect_channel(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        channel: ChannelId,
    ) {
        let open = |link: &&Association| link.is_initiator() && link.phase == Phase::Open;
        let associations = cx.associations_of(channel).filter(open).count();
        let failed = match self.channels.get(&channel) {
            _ if cx.life.stopping => Some("the MTA is stopping".to_owned()),
            None => Some("there is no such channel any more".to_owned()),
            Some(state) => state.schedule.describe(),
        };
        self.end_waits(cx, now, channel, "an operator wants it opened");
        let outcome = match failed {
            Some(reason) => Connected::Failed { reason },
            None if associations > 0 => Connected::Open { associations },
            None => {
                if let Some(state) = self.channels.get_mut(&channel) {
                    state.asked.push(request);
                }
                return;
            }
        };
        cx.output(Output::ChannelConnected { request, outcome });
    }

    /// Tells operators what came of opening this channel.
    pub(crate) fn answer_connect(
        &mut self,
        cx: &mut Context,
        channel: ChannelId,
        outcome: &Connected,
    ) {
        if self.channels.get(&channel).is_none_or(|state| state.asked.is_empty()) {
            return;
        }
        let asked = self.channels.get_mut(&channel).map(|state| std::mem::take(&mut state.asked));
        for request in asked.into_iter().flatten() {
            cx.output(Output::ChannelConnected { request, outcome: outcome.clone() });
        }
    }

    /// Tells operators who wait for it where a channel could not be opened and waits again.
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
        self.answer_connect(cx, channel, &Connected::Failed { reason });
    }

    /// A peer has bound to us: it is there, and so a try to open its channels is worth while. Not
    /// where it aborts what we send it: of that its bind says nothing. Where it refuses our name or
    /// password, now and then only: it refuses our bind result too, and binds again and again.
    pub(crate) fn peer_has_bound(&mut self, cx: &mut Context, now: Now, peer: PeerId) {
        let ids: Vec<ChannelId> = self.channels.keys_in(crate::agenda::channels_of(peer)).collect();
        for id in ids {
            let backs_off = self.blame.backs_off(id);
            let Some(state) = self.channels.get_mut(&id) else { continue };
            let lately = state.peer_bound.is_some_and(|at| now.mono.since(at) < PEER_BOUND);
            let waits = state.not_before.is_some_and(|at| at > now.mono);
            if waits && backs_off != state.not_before && !(state.refused.is_identity() && lately) {
                state.peer_bound = Some(now.mono);
                self.end_wait(cx, id, "the peer has bound to us");
            }
        }
    }

    /// An operator changed something, or wants this channel opened: its wait ends, and what failed on
    /// it is tried again.
    pub(crate) fn end_waits(&mut self, cx: &mut Context, now: Now, channel: ChannelId, why: &str) {
        for entry in self.blame.begin_anew(channel) {
            cx.queue.scheduler.hasten(now.mono, entry);
        }
        cx.queue.scheduler.hasten_failed(now.mono, channel.peer);
        if self.channels.get(&channel).is_some_and(|s| s.not_before.is_some_and(|at| at > now.mono))
        {
            self.end_wait(cx, channel, why);
        }
    }

    pub(crate) fn end_wait(&mut self, cx: &mut Context, channel: ChannelId, why: &str) {
        if let Some(state) = self.channels.get_mut(&channel) {
            state.end_wait();
            let detail = format!("the wait before the next try has ended: {why}");
            cx.event(Level::Info, Kind::WaitEnded, detail).channel(Some(channel));
        }
    }
}
