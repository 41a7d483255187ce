//! How associations are opened, and the marks that handshakes arrive with.

use crate::api::Output;
use crate::api::connect::ConnectOutcome;
use crate::api::event::{Kind, LogLevel};
use crate::association::looks::LineSample;
use crate::association::p1::{Opener, P1};
use crate::association::{Association, AssociationState, Protocol};
use crate::config::Channel;
use crate::context::Context;
use crate::outbound::Outbound;
use crate::outbound::channels::state::ChannelState;
use base::ber::{Writer, universal};
use base::{AssociationId, Now, Utc};
use bytes::Bytes;
use osi::api::{Dialogue, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association as Stack;
use scheduler::ChannelId;
use scheduler::agenda::Rank;
use std::cmp::Reverse;

impl Outbound {
    /// Notes whether a channel is to be opened now, and how much that matters.
    pub(crate) fn file_wish(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        self.answer_failed(cx, now, channel);
        let asked = self.channels.get(&channel).is_some_and(|state| !state.asked.is_empty());
        // One that is there already has been opened without a recovery.
        let opening =
            |association: &Association| association.is_initiator() && association.is_opening();
        let wanted = cx.queue.scheduler.is_wanted(now.mono, channel)
            || ((asked || cx.recovery.wants(channel))
                && !cx.associations.of_channel(channel).any(opening));
        let has_trial = wanted && self.has_trial(cx, now, channel);
        let is_due = |state: &&ChannelState| {
            let waits = state.not_before.is_some_and(|at| at > now.mono);
            state.schedule.is_open() && (!waits || has_trial)
        };
        let state = self.channels.get(&channel).filter(|_| wanted).filter(is_due);
        let tried = state.map(|state| Reverse(state.tried));
        let wish = tried.map(|tried| (self.rank(cx, now, channel), tried, channel));
        self.agenda.wishes.set(channel, wish);
    }

    /// How much it matters that a channel opens.
    pub(crate) fn rank(&mut self, cx: &mut Context, now: Now, channel: ChannelId) -> Rank {
        let waiting = cx.queue.scheduler.peek(now.mono, channel).map(|start| start.precedence);
        let recovers = cx.recovery.first(channel).and_then(|entry| cx.queue.get(entry));
        let recovers = recovers.map(|entry| entry.precedence);
        let config = cx.peer_and_channel(channel).map(|(_, config)| config);
        let highest = config.and_then(|config| config.precedences.iter().max().copied());
        let hopeful = !self.is_hopeless(channel);
        Rank {
            waiting: waiting.max(recovers).filter(|_| hopeful),
            hopeful: highest.filter(|_| hopeful),
        }
    }

    /// Whether it failed more than once in a row. Once is not a sign: an outage fails every channel.
    pub(crate) fn is_hopeless(&self, channel: ChannelId) -> bool {
        self.channels.get(&channel).is_some_and(|state| state.failures > 1)
    }

    /// Opens an association of a channel.
    pub(crate) fn open(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        let id = cx.issued.next_association();
        let reference = self.new_reference(cx, now.utc);
        let Some((peer, config)) = cx.peer_and_channel(channel) else { return };
        let configured = config.rts.dialogue;
        let dialogue =
            self.channels.get(&channel).map_or(configured, |c| c.refused.dialogue(configured));
        let checkpoint = self.checkpoint_size(channel, config);
        let stack = Stack::new(
            crate::config::association_config(peer, config, dialogue, checkpoint, reference),
            Role::Initiator,
        );
        let mut p1 = P1::new(channel, Opener::Us, config.dscp);
        p1.turn.two_way = dialogue == Dialogue::TwoWayAlternate;
        let protocol = Protocol::P1(p1);
        let association =
            Association::new(id, stack, protocol, AssociationState::Connecting, now.mono);
        cx.associations.insert_ours(association, channel);
        self.agenda.wishes.is_opening(id, true);
        cx.output(Output::Connect { association: id, channel });
    }

    /// A session connection reference that no other association has had or will have, and that
    /// others do not guess: epoch, number and 64 random bits in the user part, the time in the
    /// common part (X.228 7.1.1.6).
    fn new_reference(&self, cx: &mut Context, utc: Utc) -> ConnectionReference {
        let number = cx.issued.next_reference();
        let secret = cx.rng.next_u64();
        let user = format!("{:x}-{number:x}-{secret:016x}", cx.config.epoch);
        let element = |tag, text: String| {
            let mut writer = Writer::new();
            writer.string(tag, text);
            Bytes::from(writer.into_vec())
        };
        ConnectionReference {
            user: element(universal::OCTET_STRING, user),
            common: element(universal::UTC_TIME, utc.to_utc_time()),
            additional: Bytes::new(),
        }
    }

    /// The checkpoint size that an association of this channel proposes, or accepts at most.
    pub(crate) fn checkpoint_size(&self, id: ChannelId, channel: &Channel) -> u32 {
        let most = channel.rts.checkpoint_size;
        let line = self.channels.get(&id).map(|state| state.line).unwrap_or_default();
        if channel.checkpoint_adapts { line.checkpoint(most) } else { most }
    }

    /// The rate of a channel's line was measured on one of its associations.
    pub(crate) fn note_rate(&mut self, channel: ChannelId, sample: LineSample) {
        if let Some(state) = self.channels.get_mut(&channel) {
            match sample.may_be_idle {
                true => state.line.at_least(sample.octets, sample.took),
                false => state.line.measured(sample.octets, sample.took),
            }
        }
    }

    /// The association is open and the peer is who it should be.
    pub(crate) fn initiator_open(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        let mut recovered = false;
        if let Some(association) = cx.associations.get_mut(&id) {
            association.open(now.mono);
            if let Some(p1) = association.p1_mut() {
                p1.turn.ours = true;
                recovered = p1.recovered.is_some();
            }
        }
        if let Some(state) = self.channels.get_mut(&channel) {
            state.failures = 0;
            state.last_error = None;
            state.failure = None;
            state.down_since = None;
            state.refused.opened();
        }
        let how = if recovered { "as initiator, recovered" } else { "as initiator" };
        cx.event(LogLevel::Info, Kind::AssociationOpened, how)
            .association(id)
            .channel(Some(channel));
        self.answer_connect(cx, channel, &ConnectOutcome::Opened);
        if cx.life.is_stopping() {
            cx.finish(id);
        }
    }
}
