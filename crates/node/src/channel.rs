//! When a channel's associations are opened, used and closed.

use crate::api::{ChannelId, Output};
use crate::config::{Channel, Connection, Peer};
use crate::event::{Kind, Level};
use crate::hush::{Repeated, Why};
use crate::link::{Link, Phase, Purpose};
use crate::node::Node;
use base::ber::{Writer, universal};
use base::{AssociationId, Instant, Now, Utc};
use bytes::Bytes;
use dscp::Dscp;
use osi::api::{Dialogue, Request, Role};
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use scheduler::Associations;
use std::time::Duration;

/// First wait after an association could not be opened; doubled each time.
const FIRST_REOPEN: Duration = Duration::from_secs(1);
/// An association that lived so long was of use.
const LONG_LIVED: Duration = Duration::from_secs(10);
/// Longest wait between two tries to open.
const LONGEST_REOPEN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// Do not open before.
    pub not_before: Option<Instant>,
    /// Failures in a row.
    pub failures: u32,
    /// Associations in a row that did not live for [`LONG_LIVED`].
    pub short_lived: u32,
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
        self.config.channel(id)
    }

    /// Gives every association that is free what goes next, closes those that are too many and
    /// opens those that are wanted.
    pub(crate) fn dispatch(&mut self, now: Now) {
        if !self.started {
            return;
        }
        self.queue.scheduler.tick(now.mono);
        if !self.stopping {
            let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
            // All first: the rules look across the channels of a peer.
            for channel in &ids {
                self.tell_associations(now, *channel);
            }
            self.leave_lost_channels(now);
            for channel in ids {
                self.dispatch_channel(now, channel);
                self.tell_associations(now, channel);
            }
            self.open_wanted(now);
        }
        self.dispatch_mailboxes(now);
    }

    /// Tells the scheduler how a channel's associations stand.
    fn tell_associations(&mut self, now: Now, channel: ChannelId) {
        // One that is opened by traffic fails only where there is traffic for it.
        let permanent = |(_, c): (&Peer, &Channel)| c.connection == Connection::Permanent;
        let needed = || {
            self.peer_and_channel(channel).is_some_and(permanent)
                || self.recovery.has_send(channel)
                || self.queue.scheduler.status(channel).by_precedence.iter().any(|n| *n > 0)
        };
        let failed = self.channels.get(&channel).is_some_and(|state| state.failures > 0);
        let failing = failed && needed();
        let mut seen = Associations { failing, ..Associations::default() };
        for link in self.links_of(channel) {
            let ours = link.is_initiator();
            match link.phase {
                Phase::Connecting | Phase::Opening | Phase::Releasing if ours => {
                    seen.ours += 1;
                    seen.changing += 1;
                }
                Phase::Open => {
                    seen.ours += u32::from(ours);
                    if ours || link.two_way {
                        seen.usable += 1;
                        seen.free += u32::from(link.is_free());
                    }
                }
                _ => {}
            }
        }
        self.queue.scheduler.associations(now.mono, channel, seen);
    }

    /// A transfer that was cut off waits for its channel to recover it; but not where the channel
    /// is down and another one may carry it.
    fn leave_lost_channels(&mut self, now: Now) {
        let Node { queue, recovery, .. } = self;
        let leaving = recovery.let_go(|channel, entry| {
            let precedence = queue.get(entry).map(|e| e.precedence);
            queue.scheduler.is_down(channel)
                && precedence.is_some_and(|p| queue.scheduler.has_way(channel.peer, p))
        });
        for entry in leaving {
            queue.scheduler.put_back(now.mono, entry);
        }
    }

    fn dispatch_channel(&mut self, now: Now, channel: ChannelId) {
        self.release_surplus(now, channel);
        let free: Vec<AssociationId> = self
            .links_of(channel)
            .filter(|l| l.is_idle() && !l.interrupting)
            .map(|l| l.id)
            .collect();
        for id in free {
            if self.links.get(&id).is_some_and(|l| l.can_send() && l.failed.is_some()) {
                self.after_failure(now, id);
                if self.links.get(&id).is_none_or(|l| !l.can_send()) {
                    continue;
                }
                // It waits for another try: the next one need not wait for anything.
                self.tell_associations(now, channel);
            }
            let Some(link) = self.links.get_mut(&id) else { continue };
            if !link.can_send() {
                let may_ask = link.two_way && !link.turn_wanted;
                if may_ask && self.queue.scheduler.peek(now.mono, channel).is_some() {
                    self.want_turn(now, id);
                }
                continue;
            }
            if let Some(start) = self.queue.scheduler.next(now.mono, channel) {
                self.begin_sending(id, start.id, start.licence);
            } else {
                self.tell_held(now, channel);
            }
        }
        self.give_turns(channel);
    }

    /// Says what a free association of this channel would start but for a higher message.
    fn tell_held(&mut self, now: Now, channel: ChannelId) {
        while let Some((id, reason)) = self.queue.scheduler.newly_held(now.mono, channel) {
            let Some(entry) = self.queue.get(id) else { continue };
            self.event(Level::Info, Kind::Held, reason.to_string())
                .channel(Some(channel))
                .entry(id)
                .precedence(entry.precedence);
        }
    }

    /// Releases one association that growth opened and that is not needed any more: the youngest.
    fn release_surplus(&mut self, now: Now, channel: ChannelId) {
        if !self.queue.scheduler.has_surplus(now.mono, channel) {
            return;
        }
        let free = |l: &&Link| l.is_initiator() && l.is_free() && l.turn;
        let youngest = self.links_of(channel).rfind(free).map(|l| l.id);
        if let Some(id) = youngest {
            self.release(id);
            self.tell_associations(now, channel);
        }
    }

    fn open_wanted(&mut self, now: Now) {
        let mut wanted: Vec<ChannelId> =
            self.queue.scheduler.wanted(now.mono).map(|open| open.channel).collect();
        let recovering = self.channels.keys().copied().filter(|id| self.recovery.has_send(*id));
        for channel in recovering {
            let any = self.links_of(channel).any(|l| l.is_initiator() && l.phase != Phase::Over);
            if !any && !wanted.contains(&channel) {
                wanted.push(channel);
            }
        }
        for channel in wanted {
            let Some(state) = self.channels.get_mut(&channel) else { continue };
            if state.not_before.is_none_or(|at| at <= now.mono) {
                state.not_before = None;
                self.open(now, channel);
            }
        }
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
        self.roll.on_channel(id, channel);
        self.output(Output::Connect { association: id, channel });
    }

    /// A session connection reference that no other association has had or will have, and that
    /// others do not guess: epoch, number and 64 random bits in the user part, the time in the
    /// common part (X.228 7.1.1.6).
    fn new_reference(&mut self, utc: Utc) -> ConnectionReference {
        let number = self.next_reference();
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
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(channel) = link.channel() else { return };
        link.phase = Phase::Opening;
        // One deadline for all the answers together.
        link.bind_deadline = Some(now.mono + self.config.limits.bind_timeout);
        let request = match self.recovery.offer(channel, id) {
            Some(reference) => Request::Recover(reference),
            None => Request::Open { bind: self.bind_argument(channel) },
        };
        self.request(id, request);
    }

    /// Takes note of the mark a peer's handshake arrived with. Whether somebody who connected is the
    /// peer is known once he has bound.
    pub(crate) fn mark_seen(&mut self, id: AssociationId, seen: Dscp) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_first = link.dscp_seen.replace(seen).is_none();
        if is_first && (link.is_initiator() || link.phase == Phase::Open) {
            self.compare_marks(id);
        }
    }

    /// Compares the mark a peer's handshake arrived with to its channel's. A user's has none to be
    /// compared to.
    pub(crate) fn compare_marks(&mut self, id: AssociationId) {
        let Some(link) = self.links.get(&id) else { return };
        let (Some(channel), Some(seen)) = (link.channel(), link.dscp_seen) else { return };
        let expected = self.peer_and_channel(channel).map(|(_, config)| config.dscp);
        if let Some(expected) = expected.filter(|expected| *expected != seen) {
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
        let lived = link.opened.is_some_and(|at| at + LONG_LIVED <= now.mono);
        let given_up = link.given_up.take();
        link.phase = Phase::Over;
        let detail = match link.transport_error.take() {
            Some(error) => format!("{detail}: {error}"),
            None => detail.to_owned(),
        };
        let detail = detail.as_str();
        link.requests.clear();
        link.bind_deadline = None;
        let channel = link.channel();
        let initiated = matches!(link.purpose, Purpose::Initiator { .. });
        let level = if kind == Kind::AssociationReleased { Level::Info } else { Level::Warning };
        let origin = link.origin;
        if origin.is_some() && !was_open && !refused {
            // Anybody can connect and go, as often as he likes.
            let detail = match link.remote {
                Some(remote) => format!("{remote}, nobody had bound: {detail}"),
                None => detail.to_owned(),
            };
            let line = Repeated { level, kind, channel, detail };
            self.hushed(now, Why::NoBind, origin, Some(id), line);
        } else if !refused && given_up.is_none() {
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
            // One that opens and is soon lost again waits as long as one that does not open.
            state.short_lived = if lived { 0 } else { state.short_lived.saturating_add(1) };
            let last_error = given_up.clone().unwrap_or_else(|| detail.to_owned());
            state.last_error = Some(last_error);
            let tries = state.failures.max(state.short_lived).min(16);
            let doubled = FIRST_REOPEN * 2u32.saturating_pow(tries.max(1) - 1);
            let wait = match given_up {
                Some(_) => LONGEST_REOPEN,
                None => doubled.min(LONGEST_REOPEN),
            };
            // Between half and the whole of it, so that peers do not come back in step.
            let wait = wait / 2 + wait / 2_000 * u32::try_from(jitter).unwrap_or(0);
            state.not_before = Some(now.mono + wait);
        }
    }

    /// Releases on-demand associations that carried nothing for their channel's `idle_close`.
    pub(crate) fn close_idle(&mut self, now: Now) {
        let mut late = Vec::new();
        for (link, idle_close) in self.on_demand() {
            if link.idle_since + idle_close <= now.mono {
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
        self.on_demand().map(|(link, idle_close)| link.idle_since + idle_close).min()
    }

    /// Idle associations of ours that are released after a while, and after which.
    fn on_demand(&self) -> impl Iterator<Item = (&Link, Duration)> {
        let timed = self.channels.keys().filter_map(|channel| {
            match self.peer_and_channel(*channel)?.1.connection {
                Connection::OnDemand { idle_close } => Some((*channel, idle_close)),
                Connection::Permanent => None,
            }
        });
        timed.flat_map(|(channel, idle_close)| {
            let idle = |l: &&Link| l.is_initiator() && l.is_idle() && l.turn;
            self.links_of(channel).filter(idle).map(move |link| (link, idle_close))
        })
    }

    /// The associations of a channel, oldest first: ours, and the peer's that are bound.
    pub(crate) fn links_of(&self, channel: ChannelId) -> impl DoubleEndedIterator<Item = &Link> {
        self.roll.channel(channel).filter_map(|id| self.links.get(&id))
    }

    // ----- turns --------------------------------------------------------------------------------

    fn want_turn(&mut self, now: Now, id: AssociationId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.turn_wanted = true;
        }
        self.await_turn(now, id);
        // Priority 0 is highest (X.228 7.5); transfers of any precedence ask alike here, the
        // channel being the precedence.
        self.request(id, Request::TurnPlease(0));
    }

    /// An idle peer that was asked for the turn has to give it in time.
    pub(crate) fn await_turn(&mut self, now: Now, id: AssociationId) {
        let channel = self.links.get(&id).and_then(Link::channel);
        let wait = channel.and_then(|c| self.peer_and_channel(c)).map(|(_, c)| c.setup_timeout);
        if let (Some(link), Some(wait)) = (self.links.get_mut(&id), wait) {
            let waits = link.turn_wanted && link.receiving.is_none();
            link.turn_deadline = waits.then_some(now.mono + wait);
        }
    }

    /// Gives the turn where the peer asked for it and nothing of ours is in transfer.
    fn give_turns(&mut self, channel: ChannelId) {
        let giving: Vec<AssociationId> =
            self.links_of(channel).filter(|l| l.can_send() && l.turn_asked).map(|l| l.id).collect();
        for id in giving {
            if let Some(link) = self.links.get_mut(&id) {
                link.turn = false;
                link.turn_asked = false;
            }
            self.request(id, Request::TurnGive);
        }
    }
}
