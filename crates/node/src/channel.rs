//! When a channel's associations are opened, used and closed.

use crate::api::{ChannelId, Output};
use crate::config::{Channel, Connection, Peer};
use crate::event::{Kind, Level};
use crate::link::{Link, Phase, Purpose};
use crate::node::Node;
use crate::queue::QueueKey;
use base::ber::{Writer, universal};
use base::{AssociationId, Instant, Now, Utc};
use bytes::Bytes;
use dscp::Dscp;
use osi::api::{Dialogue, Request, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use std::time::Duration;

/// First wait after an association could not be opened; doubled each time.
const FIRST_REOPEN: Duration = Duration::from_secs(1);
/// Longest wait between two tries to open.
const LONGEST_REOPEN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// Do not open before.
    pub not_before: Option<Instant>,
    /// Failures in a row.
    pub failures: u32,
    /// The last error, for the status.
    pub last_error: Option<String>,
}

impl ChannelState {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.not_before
    }
}

impl Node {
    pub(crate) fn peer_and_channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        let peer = self.config.peer(id.peer)?;
        let channel = peer.channels.get(usize::try_from(id.index).ok()?)?;
        Some((peer, channel))
    }

    /// Gives every association that is free the next message of its queue, and opens associations
    /// for channels that want one.
    pub(crate) fn dispatch(&mut self, now: Now) {
        if !self.started {
            return;
        }
        self.queue.scheduler.tick(now.mono);
        let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
        for channel in ids {
            self.dispatch_channel(now, channel);
        }
        self.dispatch_mailboxes(now);
    }

    fn dispatch_channel(&mut self, now: Now, channel: ChannelId) {
        let key = QueueKey::Channel(channel);
        if self.stopping {
            return;
        }
        let free: Vec<AssociationId> = self
            .links
            .values()
            .filter(|l| l.channel() == Some(channel) && l.is_idle() && !l.interrupting)
            .map(|l| l.id)
            .collect();
        for id in free {
            let cut_off =
                self.links.get_mut(&id).filter(|l| l.can_send()).and_then(|l| l.cut_off.take());
            if let Some((entry, point)) = cut_off {
                self.go_on(id, entry, point);
                continue;
            }
            if self.queue.scheduler.ready(&key) == 0 {
                break;
            }
            let Some(link) = self.links.get_mut(&id) else { continue };
            if link.can_send() {
                if let Some(entry) = self.next_for(now, key) {
                    self.begin_sending(id, entry);
                }
            } else if !link.turn_wanted && self.two_way(id) {
                self.want_turn(id);
            }
        }
        self.give_turns(channel);
        self.open_if_wanted(now, channel);
    }

    fn open_if_wanted(&mut self, now: Now, channel: ChannelId) {
        let Some((_, config)) = self.peer_and_channel(channel) else { return };
        let (permanent, most, grow_at) = (
            config.connection == Connection::Permanent,
            config.associations_max.max(1),
            u64::from(config.grow_at),
        );
        let ours: Vec<&Link> = self
            .links
            .values()
            .filter(|l| l.purpose == Purpose::Initiator { channel } && l.phase != Phase::Over)
            .collect();
        let opening = ours.iter().filter(|l| l.phase < Phase::Open).count();
        let open = ours.len();
        let key = QueueKey::Channel(channel);
        let waiting = self.queue.scheduler.ready(&key) > 0 || self.recovery.has_send(channel);
        // A further association, up to `max`, only when all there are carry something already and
        // enough of equal precedence wait.
        let busy = ours.iter().all(|l| l.phase == Phase::Open && l.sending.is_some());
        let crowded = || {
            let queued = self.queue.scheduler.status(&key).by_precedence;
            queued.iter().any(|n| *n >= grow_at)
        };
        let wanted = match open {
            0 => permanent || waiting,
            _ => waiting && busy && opening == 0 && crowded(),
        };
        if !wanted || open >= usize::try_from(most).unwrap_or(usize::MAX) {
            return;
        }
        if let Some(state) = self.channels.get_mut(&channel) {
            if state.not_before.is_some_and(|at| at > now.mono) {
                return;
            }
            state.not_before = None;
        }
        self.open(now, channel);
    }

    fn open(&mut self, now: Now, channel: ChannelId) {
        let id = self.next_association();
        let reference = self.new_reference(now.utc);
        let Some((peer, config)) = self.peer_and_channel(channel) else { return };
        let stack = Association::new(
            crate::config::association_config(peer, config, reference),
            Role::Initiator,
        );
        let mut link = Link::new(id, stack, Purpose::Initiator { channel }, now.mono);
        link.phase = Phase::Connecting;
        link.two_way = config.rts.dialogue == Dialogue::TwoWayAlternate;
        self.links.insert(id, link);
        self.output(Output::Connect { association: id, channel });
    }

    /// A session connection reference that no other association has had or will have: epoch and
    /// number in the user part, the time in the common part (X.228 7.1.1.6).
    fn new_reference(&mut self, utc: Utc) -> ConnectionReference {
        let number = self.next_reference();
        let user = format!("{}-{:x}-{number:x}", self.config.mta.0, self.config.epoch);
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

    pub(crate) fn connected(&mut self, _now: Now, id: AssociationId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(channel) = link.channel() else { return };
        link.phase = Phase::Opening;
        let request = match self.recovery.offer(channel, id) {
            Some(reference) => Request::Recover(reference),
            None => Request::Open { bind: self.bind_argument(channel) },
        };
        self.request(id, request);
    }

    /// Compares the mark a peer's handshake arrived with to its channel's. A user's has none to be
    /// compared to.
    pub(crate) fn mark_seen(&mut self, id: AssociationId, seen: Dscp) {
        let Some(channel) = self.links.get(&id).and_then(Link::channel) else { return };
        let Some(expected) = self.peer_and_channel(channel).map(|(_, config)| config.dscp) else {
            return;
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_first = link.dscp_seen.replace(seen).is_none();
        if is_first && seen != expected {
            let detail = format!("the peer's handshake came with {seen}, not with {expected}");
            self.event(Level::Warning, Kind::MarkMismatch, detail)
                .association(id)
                .channel(Some(channel));
        }
    }

    pub(crate) fn connect_failed(&mut self, now: Now, id: AssociationId, error: &str) {
        self.association_over(now, id, Kind::AssociationLost, &format!("no connection: {error}"));
        self.remove_link(id);
    }

    /// What follows when an association has ended, in order or not: what was being sent waits
    /// again, what was being received may be taken up by a recovered association.
    pub(crate) fn association_over(
        &mut self,
        now: Now,
        id: AssociationId,
        kind: Kind,
        detail: &str,
    ) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.phase == Phase::Over {
            return;
        }
        let was_open = matches!(link.phase, Phase::Open | Phase::Releasing);
        // What was refused was told already, and what we ended ourselves is no loss.
        let refused = link.phase == Phase::Refusing;
        let kind = match kind {
            Kind::AssociationLost if self.stopping && link.phase == Phase::Releasing => {
                Kind::AssociationReleased
            }
            kind => kind,
        };
        link.phase = Phase::Over;
        link.requests.clear();
        link.bind_deadline = None;
        let channel = link.channel();
        let initiated = matches!(link.purpose, Purpose::Initiator { .. });
        let level = if kind == Kind::AssociationReleased { Level::Info } else { Level::Warning };
        if !refused {
            self.event(level, kind, detail).association(id).channel(channel);
        }
        self.give_back(now, id, kind != Kind::AssociationReleased);
        self.drop_receiving(now, id);
        let Some(channel) = channel.filter(|_| initiated) else { return };
        let jitter = self.rng.below(1_000);
        if let Some(state) = self.channels.get_mut(&channel) {
            if kind == Kind::AssociationReleased {
                return;
            }
            state.failures = if was_open { 1 } else { state.failures.saturating_add(1) };
            state.last_error = Some(detail.to_owned());
            let doubled = FIRST_REOPEN * 2u32.saturating_pow(state.failures.min(16) - 1);
            let wait = doubled.min(LONGEST_REOPEN);
            // Between half and the whole of it, so that peers do not come back in step.
            let wait = wait / 2 + wait / 2_000 * u32::try_from(jitter).unwrap_or(0);
            state.not_before = Some(now.mono + wait);
        }
    }

    /// Releases on-demand associations that carried nothing for their channel's `idle_close`.
    pub(crate) fn close_idle(&mut self, now: Now) {
        let mut late = Vec::new();
        for link in self.links.values() {
            let Purpose::Initiator { channel } = link.purpose else { continue };
            let Some((_, config)) = self.peer_and_channel(channel) else { continue };
            if let Connection::OnDemand { idle_close } = config.connection
                && link.is_idle()
                && link.turn
                && link.idle_since + idle_close <= now.mono
            {
                late.push(link.id);
            }
        }
        for id in late {
            self.release(id);
        }
        for state in self.channels.values_mut() {
            if state.not_before.is_some_and(|at| at <= now.mono) {
                state.not_before = None;
            }
        }
    }

    /// When the first on-demand association will have been idle for long enough.
    pub(crate) fn idle_deadline(&self) -> Option<Instant> {
        self.links
            .values()
            .filter_map(|link| {
                let Purpose::Initiator { channel } = link.purpose else { return None };
                let (_, config) = self.peer_and_channel(channel)?;
                match config.connection {
                    Connection::OnDemand { idle_close } if link.is_idle() && link.turn => {
                        Some(link.idle_since + idle_close)
                    }
                    _ => None,
                }
            })
            .min()
    }

    // ----- turns --------------------------------------------------------------------------------

    fn two_way(&self, id: AssociationId) -> bool {
        self.links.get(&id).is_some_and(|link| link.two_way)
    }

    fn want_turn(&mut self, id: AssociationId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.turn_wanted = true;
        }
        // Priority 0 is highest (X.228 7.5); transfers of any precedence ask alike here, the
        // channel being the precedence.
        self.request(id, Request::TurnPlease(0));
    }

    /// Gives the turn where the peer asked for it and nothing of ours is in transfer.
    fn give_turns(&mut self, channel: ChannelId) {
        let giving: Vec<AssociationId> = self
            .links
            .values()
            .filter(|l| l.channel() == Some(channel) && l.can_send() && l.turn_asked)
            .map(|l| l.id)
            .collect();
        for id in giving {
            if let Some(link) = self.links.get_mut(&id) {
                link.turn = false;
                link.turn_asked = false;
            }
            self.request(id, Request::TurnGive);
        }
    }
}
