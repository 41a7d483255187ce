//! A changed configuration takes effect while the node runs.
//!
//! Associations that the change does not concern are not touched. The others are *drained*: nothing
//! new starts on them, and they end once what is in transfer has ended. Where the channel stays,
//! that goes on to its end and new associations are opened beside it; where it is no more, a
//! transfer of ours is interrupted at its next checkpoint, and its message takes another channel.
//!
//! What is queued stays with its peer. What is queued for a peer that is gone is *unrouted*: it is read
//! from the store, a few entries at a time, and routed again; one commit replaces an entry by its
//! successors. One in transfer has its turn when it comes back.

use crate::api::{ChannelId, Output};
use crate::association::{Association, Drain, Phase, Purpose};
use crate::changes::{Changes, EdgeChanges, channel_keys, peer_keys};
use crate::channel::ChannelState;
use crate::commits::RETRY_AFTER;
use crate::config::{ListenerService, NodeConfig, Peer};
use crate::configured::Configured;
use crate::connect::Connected;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Arrivals;
use crate::machines::Operations;
use crate::machines::Outbound;
use crate::node::Node;
use crate::pending::Pending;
use base::{AssociationId, EntryId, Instant, Now, PeerId, Precedence};
use bytes::Bytes;
use engine::{NextHop, Record};
use scheduler::{Destination, ItemState};
use std::collections::BTreeSet;
use std::time::Duration;

/// Entries being read to be routed again, or not yet durably so, at once.
const MAX_READ: usize = 32;

/// What is queued for peers that are configured no more.
#[derive(Debug, Default)]
pub(crate) struct UnroutedEntries {
    /// Peers that something may be queued for.
    peers: BTreeSet<PeerId>,
    /// Entries being read to be routed again.
    pub(crate) reading: BTreeSet<EntryId>,
    /// Entries whose record cannot be read.
    damaged: BTreeSet<EntryId>,
    /// The store failed: none is read before.
    not_before: Option<Instant>,
}

impl UnroutedEntries {
    /// None is read before so long.
    pub(crate) fn read_later(&mut self, now: Now, wait: Duration) {
        self.not_before = Some(now.mono + wait);
    }
}

/// What becomes of the channels there were.
#[derive(Debug, Default)]
pub(crate) struct ChannelChanges {
    removed: BTreeSet<ChannelId>,
    reopened: BTreeSet<ChannelId>,
    /// Of the reopened ones, those whose peer is to bind anew: no recovery without a bind.
    rebound: BTreeSet<ChannelId>,
    /// Those whose transfers have other octets from now on: what was cut off cannot go on.
    recoded: BTreeSet<ChannelId>,
}

impl ChannelChanges {
    fn of(old: &NodeConfig, new: &NodeConfig, edge: &EdgeChanges) -> ChannelChanges {
        let mut changes = ChannelChanges::default();
        for before in &old.peers {
            let now = new.peer(before.id());
            let rebinds = now.is_some_and(|now| peer_keys(before, now, edge).reopens);
            for (id, channel) in before.channels() {
                let Some((_, now)) = new.channel(id) else {
                    changes.removed.insert(id);
                    continue;
                };
                if channel.rts.indefinite_lengths != now.rts.indefinite_lengths {
                    changes.recoded.insert(id);
                }
                if rebinds {
                    changes.rebound.insert(id);
                }
                if rebinds || channel_keys((old, channel), (new, now), id, edge).reopens {
                    changes.reopened.insert(id);
                }
            }
        }
        changes
    }

    fn of_channel(&self, channel: ChannelId) -> Option<Drain> {
        match (self.removed.contains(&channel), self.reopened.contains(&channel)) {
            (true, _) => Some(Drain::Removed),
            (false, true) => Some(Drain::Reopened),
            (false, false) => None,
        }
    }
}

impl Node {
    /// What a changed configuration would do. Where it names keys that take a restart, it is not to
    /// be handed in.
    pub fn changes(&self, config: &NodeConfig, edge: &EdgeChanges) -> Changes {
        Changes::between(&self.cx.config, config, edge)
    }

    /// Another configuration holds from now on.
    pub(crate) fn configure(&mut self, now: Now, mut config: NodeConfig, edge: &EdgeChanges) {
        if self.cx.life.stopping {
            return;
        }
        config.mailboxes = std::mem::take(&mut self.cx.config.mailboxes);
        (config.seed, config.epoch) = (self.cx.config.seed, self.cx.config.epoch);
        config.limits.sockets = self.cx.config.limits.sockets;
        let changes = Changes::between(&self.cx.config, &config, edge);
        let channels = ChannelChanges::of(&self.cx.config, &config, edge);
        let peers = self.cx.config.peers.iter().map(Peer::id).collect();
        let old = std::mem::replace(&mut self.cx.config, Configured::new(config)).into_inner();
        self.cx.engine.configure(crate::config::engine_config(&self.cx.config));
        self.admission.access.reload(&self.cx.config.limits);
        let rules = crate::config::channel_rules(&self.cx.config);
        self.cx.queue.scheduler.configure(now.mono, rules, self.cx.config.hold);
        self.outbound.change_channels(&mut self.cx, now, &channels);
        self.operations.look_at_minimize(&mut self.cx, now);
        self.renew_schedules(now);
        self.cx.keep_former(old, &channels);
        self.arrivals.leave_channels(&mut self.cx, now, &channels);
        self.outbound.find_unrouted(&mut self.cx, &peers);
        self.drain_associations(now, &channels);
        self.outbound.touch_all(&mut self.cx);
        self.cx.log_changes(&changes);
    }

    /// Ends what of these is drained and has nothing in transfer any more.
    pub(crate) fn end_drained(&mut self, now: Now, touched: &BTreeSet<AssociationId>) {
        if self.operations.draining.is_empty() {
            return;
        }
        let is_due = |id: &&AssociationId| {
            // A user waits for answers to what was submitted.
            let due = |l: &Association| l.phase == Phase::Open && l.unanswered == 0;
            self.operations.draining.contains(*id) && self.cx.associations.get(id).is_some_and(due)
        };
        let due: Vec<AssociationId> = touched.iter().filter(is_due).copied().collect();
        for id in due {
            self.wind_down(now, id);
        }
    }

    fn drain_associations(&mut self, now: Now, changes: &ChannelChanges) {
        let drained: Vec<(AssociationId, Drain)> = self
            .cx
            .associations
            .values()
            .filter_map(|link| Some((link.id, self.cx.drain_of(link, changes)?)))
            .collect();
        for (id, drain) in drained {
            let Some(link) = self.cx.associations.get_mut(&id) else { continue };
            link.drain = link.drain.max(Some(drain));
            let is_open = link.phase == Phase::Open;
            // What has not begun begins elsewhere.
            if let Some(sending) = link.sending.take_if(|s| s.record.is_none()) {
                self.cx.queue.scheduler.put_back(now.mono, sending.entry);
            }
            self.operations.draining.insert(id);
            if !is_open {
                self.wind_down(now, id);
            }
        }
    }
}

impl Outbound {
    pub(crate) fn change_channels(&mut self, cx: &mut Context, now: Now, changes: &ChannelChanges) {
        for id in &changes.removed {
            let reason = "it was taken out of the configuration".to_owned();
            self.answer_connect(cx, *id, &Connected::Failed { reason });
            for entry in self.blame.begin_anew(*id) {
                cx.queue.scheduler.hasten(now.mono, entry);
            }
            self.channels.remove(id);
        }
        let ids: Vec<ChannelId> =
            cx.config.peers.iter().flat_map(Peer::channels).map(|(id, _)| id).collect();
        for id in ids {
            // What failed with the old configuration may not fail with this one, and where nothing
            // of the channel changed, perhaps something did at its peer.
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

    // ----- unrouted ---------------------------------------------------------------------------------

    /// Peers that are gone leave what is queued for them.
    pub(crate) fn find_unrouted(&mut self, cx: &mut Context, old: &BTreeSet<PeerId>) {
        self.unrouted.peers.extend(old);
        let config = &cx.config;
        self.unrouted.peers.retain(|peer| config.peer(*peer).is_none());
    }

    /// Something is queued for this peer: is it there?
    pub(crate) fn note_stray(&mut self, cx: &mut Context, peer: PeerId) {
        if cx.config.peer(peer).is_none() {
            self.unrouted.peers.insert(peer);
        }
    }

    /// Peers that are configured no more, and for which something may be queued.
    pub(crate) fn stray_peers(&self) -> impl Iterator<Item = PeerId> + use<'_> {
        self.unrouted.peers.iter().copied()
    }

    /// Whether it is one of these.
    pub(crate) fn is_stray(&self, peer: PeerId) -> bool {
        self.unrouted.peers.contains(&peer)
    }

    pub(crate) fn room_for_unrouted(&self, cx: &Context) -> usize {
        cx.room_for_retries(self.unrouted.reading.len(), MAX_READ)
    }

    /// When to read again after the store failed, where there is room: what makes room wakes us.
    pub(crate) fn unrouted_deadline(&self, cx: &Context) -> Option<Instant> {
        self.unrouted.not_before.filter(|_| self.room_for_unrouted(cx) > 0)
    }

    /// Has the next unrouted read, as many at once as may be.
    pub(crate) fn read_unrouted(&mut self, cx: &mut Context, now: Now) {
        if self.room_for_unrouted(cx) == 0 {
            return;
        }
        if self.unrouted.not_before.is_some_and(|at| at > now.mono) {
            return;
        }
        self.unrouted.not_before = None;
        let peers: Vec<PeerId> = self.unrouted.peers.iter().copied().collect();
        for peer in peers {
            let mut any = false;
            for precedence in Precedence::ALL.into_iter().rev() {
                any |= self.read_strays_of(cx, peer, precedence);
            }
            if !any {
                self.unrouted.peers.remove(&peer);
            }
        }
    }

    /// Whether there is any left. What is in transfer, or reported as expired, is left alone: it
    /// comes back here or goes.
    pub(crate) fn read_strays_of(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        precedence: Precedence,
    ) -> bool {
        let (mut any, mut after) = (false, None);
        while self.room_for_unrouted(cx) > 0 {
            let to = Destination::Peer(peer);
            let page = cx.queue.scheduler.list(to, precedence, after, MAX_READ);
            let Some(last) = page.last() else { break };
            any = true;
            after = Some((last.item.accepted, last.item.id));
            for id in page.iter().filter(|listed| is_at_rest(listed.at)).map(|l| l.item.id) {
                let room = self.room_for_unrouted(cx) > 0;
                let readable = !self.unrouted.damaged.contains(&id);
                if room && readable && self.unrouted.reading.insert(id) {
                    let token = cx.token(Pending::Unrouted { entry: id });
                    cx.output(Output::Load { token, precedence, id });
                }
            }
        }
        any || self.room_for_unrouted(cx) == 0
    }

    /// The record of an unrouted entry was read.
    pub(crate) fn unrouted_loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        entry: EntryId,
        result: Result<Option<Bytes>, String>,
    ) {
        self.unrouted.reading.remove(&entry);
        let listed = cx.queue.scheduler.listed(entry);
        if listed.is_none_or(|listed| !is_at_rest(listed.at)) {
            return; // it expired meanwhile
        }
        let octets = match result {
            Ok(octets) => octets,
            Err(error) => {
                cx.event(Level::Error, Kind::StoreFailed, error).entry(entry);
                self.unrouted.not_before = Some(now.mono + RETRY_AFTER);
                return;
            }
        };
        match Record::decode(&octets.unwrap_or_default()) {
            Ok(record) => {
                let NextHop::Peer(peer) = record.next_hop else { return };
                // It may be there again.
                if cx.config.peer(peer).is_none() {
                    self.reroute(cx, now, entry, &record);
                }
            }
            Err(error) => {
                let detail = format!("unreadable record: {error}");
                cx.event(Level::Error, Kind::StoreFailed, detail).entry(entry);
                self.unrouted.damaged.insert(entry);
            }
        }
    }
}

impl Context {
    /// What associations of removed channels still need to know.
    pub(crate) fn keep_former(&mut self, old: NodeConfig, changes: &ChannelChanges) {
        for mut peer in old.peers {
            let id = peer.id();
            let index = |c: &crate::config::Channel| ChannelId { peer: id, index: c.index };
            peer.channels.retain(|c| changes.removed.contains(&index(c)));
            for channel in &peer.channels {
                self.tally.remember(index(channel), &peer.name, &channel.name);
            }
            if !peer.channels.is_empty() {
                self.former.push(peer);
            }
        }
        self.forget_former();
    }

    /// Forgets removed channels without associations.
    pub(crate) fn forget_former(&mut self) {
        let used: BTreeSet<ChannelId> =
            self.associations.values().filter_map(Association::channel).collect();
        for peer in &mut self.former {
            let id = peer.id();
            peer.channels.retain(|c| used.contains(&ChannelId { peer: id, index: c.index }));
        }
        self.former.retain(|peer| !peer.channels.is_empty());
    }

    /// A channel that is configured, or was while some association of it is there.
    pub(crate) fn former_channel(&self, id: ChannelId) -> Option<(&Peer, &crate::config::Channel)> {
        let of = |peer: &'_ &Peer| peer.id() == id.peer;
        self.former
            .iter()
            .filter(of)
            .find_map(|peer| Some((peer, peer.channels.iter().find(|c| c.index == id.index)?)))
    }

    /// Whether an association has to end, and how.
    pub(crate) fn drain_of(&self, link: &Association, changes: &ChannelChanges) -> Option<Drain> {
        let serves = |listener| self.config.listener(listener).map(|l| &l.service);
        match &link.purpose {
            Purpose::Initiator { channel } => changes.of_channel(*channel),
            Purpose::Responder { listener, channel } => {
                let still = match serves(*listener) {
                    Some(ListenerService::P1 { peer, channel: index }) => {
                        *channel == ChannelId { peer: *peer, index: *index }
                    }
                    _ => false,
                };
                changes.of_channel(*channel).or((!still).then_some(Drain::Reopened))
            }
            Purpose::User { listener, .. } => {
                let still = matches!(serves(*listener), Some(ListenerService::P3 { .. }));
                (!still).then_some(Drain::Reopened)
            }
        }
    }

    pub(crate) fn log_changes(&mut self, changes: &Changes) {
        for key in &changes.keys {
            self.event(Level::Info, Kind::Reconfigured, format!("{key} changed"));
        }
        for peer in &changes.peers {
            let keys = peer.keys.join(", ");
            for channel in &peer.channels {
                let own = [keys.as_str(), &channel.keys.join(", ")].join(" ");
                let own = own.trim();
                let what = format!("{}/{}: {}", peer.name, channel.name, channel.effect.name());
                let told = if own.is_empty() { what } else { format!("{what} ({own})") };
                if channel.effect != crate::changes::Effect::Kept || !own.is_empty() {
                    self.event(Level::Info, Kind::Reconfigured, told);
                }
            }
        }
    }
}

impl Operations {
    /// An association is gone; it was perhaps the last of a removed channel.
    pub(crate) fn is_drained(&mut self, cx: &mut Context, id: AssociationId) {
        if self.draining.remove(&id) && !cx.former.is_empty() {
            cx.forget_former();
        }
    }
}

impl Arrivals {
    /// What was cut off waits no longer for its channel.
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

pub(crate) fn is_at_rest(at: ItemState) -> bool {
    !matches!(at, ItemState::InTransfer { .. } | ItemState::Expired)
}
