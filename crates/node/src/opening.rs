//! How associations are opened, and the marks that handshakes arrive with.

use crate::agenda::Rank;
use crate::api::{ChannelId, Output};
use crate::association::{Association, Phase, Purpose};
use crate::channel::ChannelState;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::node::Node;
use base::ber::{Writer, universal};
use base::{AssociationId, Now, Utc};
use bytes::Bytes;
use dscp::Dscp;
use osi::api::{Dialogue, Request, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association as Stack;
use std::cmp::Reverse;

impl Outbound {
    /// Notes whether a channel is to be opened now, and how much that matters.
    pub(crate) fn file_wish(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        self.answer_failed(cx, now, channel);
        let asked = self.channels.get(&channel).is_some_and(|state| !state.asked.is_empty());
        // One that is there already has been opened without a recovery.
        let opening = |link: &Association| {
            link.is_initiator() && matches!(link.phase, Phase::Connecting | Phase::Opening)
        };
        let wanted = cx.queue.scheduler.is_wanted(now.mono, channel)
            || ((asked || cx.recovery.wants(channel)) && !cx.associations_of(channel).any(opening));
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

    /// Whether it failed more than once in a row. Once is no sign: an outage fails every channel.
    pub(crate) fn is_hopeless(&self, channel: ChannelId) -> bool {
        self.channels.get(&channel).is_some_and(|state| state.failures > 1)
    }

    pub(crate) fn open(&mut self, cx: &mut Context, now: Now, channel: ChannelId) {
        let id = cx.issued.next_association();
        let reference = cx.new_reference(now.utc);
        let Some((peer, config)) = cx.peer_and_channel(channel) else { return };
        let configured = config.rts.dialogue;
        let dialogue =
            self.channels.get(&channel).map_or(configured, |c| c.refused.dialogue(configured));
        let checkpoint = self.checkpoint_size(channel, config);
        let stack = Stack::new(
            crate::config::association_config(peer, config, dialogue, checkpoint, reference),
            Role::Initiator,
        );
        let mut link = Association::new(id, stack, Purpose::Initiator { channel }, now.mono);
        link.phase = Phase::Connecting;
        link.two_way = dialogue == Dialogue::TwoWayAlternate;
        link.mark = Some(config.dscp);
        cx.associations.insert(id, link);
        self.agenda.wishes.is_opening(id, true);
        cx.connections.on_channel(id, channel);
        cx.output(Output::Connect { association: id, channel });
    }
}

impl Node {
    /// Opens associations that are wanted, as many at once as `limits.opening` allows: those a
    /// message waits for first, then by precedence, then those that were not tried for longest.
    pub(crate) fn open_wanted(&mut self, now: Now) {
        if !self.outbound.agenda.wishes.take_news() {
            return;
        }
        // Where there is no place for one, there is none for those that matter less.
        while let Some((rank, _, channel)) = self.outbound.agenda.wishes.first()
            && self.make_place(now, rank, channel)
        {
            self.outbound.agenda.wishes.set(channel, None);
            if let Some(state) = self.outbound.channels.get_mut(&channel) {
                state.not_before = None;
                state.tried = Some(now.mono);
            }
            self.outbound.open(&mut self.cx, now, channel);
        }
    }

    /// Whether this channel may open now. Where too many are being opened, the one that matters
    /// least makes room for one that matters more: dead peers must not keep a Flash out.
    fn make_place(&mut self, now: Now, rank: Rank, channel: ChannelId) -> bool {
        let most = self.cx.config.limits.opening.max(1);
        let mut opening: Vec<(AssociationId, Phase, ChannelId)> = Vec::new();
        for link in
            self.outbound.agenda.wishes.opening().filter_map(|id| self.cx.associations.get(&id))
        {
            if let (Phase::Connecting | Phase::Opening, Some(of)) = (link.phase, link.channel()) {
                opening.push((link.id, link.phase, of));
            }
        }
        // Channels that keep failing leave one place to the others.
        let failing = |of: &ChannelId| self.outbound.is_hopeless(*of);
        let all_taken = opening.len() >= most;
        let failed = opening.iter().filter(|(_, _, of)| failing(of)).count();
        let last_is_kept = failing(&channel) && most > 1 && failed >= most - 1;
        if !all_taken && !last_is_kept {
            return true;
        }
        if last_is_kept {
            opening.retain(|(_, _, of)| failing(of));
        }
        let mut lower = Vec::new();
        for (id, phase, of) in opening {
            let theirs = self.outbound.rank(&mut self.cx, now, of);
            if theirs < rank {
                lower.push((theirs, phase, id));
            }
        }
        // Of equals one whose transport connection is not there yet.
        let Some((.., id)) = lower.into_iter().min() else { return false };
        self.stop_opening(now, id);
        true
    }

    fn stop_opening(&mut self, now: Now, id: AssociationId) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.leaving = true; // what it was to recover is kept
        }
        let why = "makes room for a channel that matters more (limits.opening)";
        self.association_over(now, id, Kind::AssociationReleased, why);
        self.remove_association(id);
        self.cx.output(Output::Drop { association: id });
    }

    pub(crate) fn connect_failed(&mut self, now: Now, id: AssociationId, error: &str) {
        self.association_over(now, id, Kind::AssociationLost, &format!("no connection: {error}"));
        self.remove_association(id);
    }
}

impl Context {
    /// A session connection reference that no other association has had or will have, and that
    /// others do not guess: epoch, number and 64 random bits in the user part, the time in the
    /// common part (X.228 7.1.1.6).
    pub(crate) fn new_reference(&mut self, utc: Utc) -> ConnectionReference {
        let number = self.issued.next_reference();
        let secret = self.rng.next_u64();
        let user = format!("{:x}-{number:x}-{secret:016x}", self.config.epoch);
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

    pub(crate) fn connected(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.associations.get_mut(&id) else { return };
        let Some(channel) = link.channel() else { return };
        link.phase = Phase::Opening;
        // One deadline for all the answers together.
        link.bind_deadline = Some(now.mono + self.config.limits.bind_timeout);
        let request = match self.recovery.offer(channel, id) {
            Some((reference, received)) => Request::Recover { reference, received },
            None => Request::Open { bind: self.bind_argument(channel) },
        };
        self.request(id, request);
    }

    /// Takes note of the mark a peer's handshake arrived with. Whether somebody who connected is the
    /// peer is known once he has bound.
    pub(crate) fn mark_seen(&mut self, id: AssociationId, seen: Dscp) {
        let Some(link) = self.associations.get_mut(&id) else { return };
        let is_first = link.dscp_seen.replace(seen).is_none();
        if is_first && (link.is_initiator() || link.phase == Phase::Open) {
            self.compare_marks(id);
        }
    }

    /// Compares the mark a peer's handshake arrived with to its channel's. A user's has none to be
    /// compared to.
    pub(crate) fn compare_marks(&mut self, id: AssociationId) {
        let Some(link) = self.associations.get(&id) else { return };
        let (Some(channel), Some(seen)) = (link.channel(), link.dscp_seen) else { return };
        if let Some(expected) = link.mark.filter(|expected| *expected != seen) {
            let detail = format!("the peer's handshake came with {seen}, not with {expected}");
            self.event(Level::Warning, Kind::MarkMismatch, detail)
                .association(id)
                .channel(Some(channel));
        }
    }
}
