//! How a channel stands, and what follows when one of its associations ends.

use crate::api::ChannelId;
use crate::association::{Association, Phase, Purpose};
use crate::blame::Fault;
use crate::config::{Channel, Connection, Peer, Reopen};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::log_rate::{Repeated, Why};
use crate::machines::Outbound;
use crate::node::Node;
use crate::pace::Line;
use crate::refused::Refused;
use crate::schedule::Schedule;
use base::{AssociationId, Instant, Now};
use std::time::Duration;

/// An association that lived so long was of use.
const LONG_LIVED: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// Do not open before.
    pub not_before: Option<Instant>,
    /// When an association of ours was last tried to open.
    pub tried: Option<Instant>,
    /// Failures in a row.
    pub failures: u32,
    /// Associations in a row that did not live for [`LONG_LIVED`].
    pub short_lived: u32,
    /// The last error, for the status.
    pub last_error: Option<String>,
    /// What a peer refused that trying again does not change; the channel counts as down.
    pub refused: Refused,
    /// Where it has hours.
    pub schedule: Schedule,
    /// How fast it is.
    pub line: Line,
    /// When a bind of its peer ended its wait last.
    pub peer_bound: Option<Instant>,
    /// Operators who want it opened and were not answered yet.
    pub asked: Vec<u64>,
}

impl ChannelState {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.not_before, self.schedule.deadline()].into_iter().flatten().min()
    }

    /// The wait before the next try is over: it is tried as soon as it may be.
    pub(crate) fn end_wait(&mut self) {
        self.not_before = None;
        self.short_lived = 0;
        self.failures = self.failures.min(1);
    }

    /// Whether nothing but time or an operator lets us open it, so that it counts as down at once.
    pub(crate) fn is_barred(&self, now: Instant) -> bool {
        let waits = self.not_before.is_some_and(|at| at > now);
        !self.schedule.is_open() || (self.refused.is_down() && waits)
    }
}

/// The wait before the next try after so many failures in a row, 1 or more: doubled each time, and
/// between half and the whole of that, so that peers do not come back in step.
pub(crate) fn reopen_wait(reopen: &Reopen, failures: u32, seed: u64) -> Duration {
    let doubled = reopen.first.saturating_mul(2u32.saturating_pow(failures.clamp(1, 32) - 1));
    jittered(doubled.min(reopen.longest), seed)
}

/// Between half and the whole of a wait.
pub(crate) fn jittered(wait: Duration, seed: u64) -> Duration {
    let half = wait / 2;
    let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
    half + Duration::from_micros(base::rng::Rng::new(seed).below(span.saturating_add(1)))
}

impl Context {
    pub(crate) fn peer_and_channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        self.config.channel(id).or_else(|| self.former_channel(id))
    }

    /// The names of a channel's peer and of the channel, for the log.
    pub(crate) fn place(&self, id: ChannelId) -> Option<(&str, &str)> {
        self.peer_and_channel(id).map(|(peer, channel)| (peer.name.as_str(), channel.name.as_str()))
    }

    /// When an association of ours that is idle is released, where its channel is opened by traffic.
    pub(crate) fn closes_at(&self, link: &Association) -> Option<Instant> {
        match self.config.channel(link.channel()?)?.1.connection {
            Connection::OnDemand { idle_close } => {
                let idle = link.is_initiator() && link.is_idle() && link.turn;
                idle.then(|| link.idle_since + idle_close)
            }
            Connection::Permanent | Connection::Scheduled { .. } => None,
        }
    }

    /// The associations of a channel, oldest first: ours, and the peer's that are bound.
    pub(crate) fn associations_of(
        &self,
        channel: ChannelId,
    ) -> impl DoubleEndedIterator<Item = &Association> {
        self.connections.channel(channel).filter_map(|id| self.associations.get(&id))
    }
}

impl Node {
    /// What follows when an association has ended, in order or not: what was being sent waits
    /// again, what was being received may be taken up by a recovered association.
    pub(crate) fn association_over(
        &mut self,
        now: Now,
        id: AssociationId,
        kind: Kind,
        detail: &str,
    ) {
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        if link.phase == Phase::Over {
            return;
        }
        let was_open = matches!(link.phase, Phase::Open | Phase::Releasing);
        // What was refused was told already, and what we ended ourselves is no loss.
        let refused = link.phase == Phase::Refusing;
        let ending =
            (self.cx.life.stopping || link.drain.is_some()) && link.phase == Phase::Releasing;
        // Perhaps the peer drains it too, and was first.
        let drained = link.drain.is_some() && link.sending.as_ref().is_none_or(|s| s.confirmed);
        let kind = match kind {
            Kind::AssociationLost if ending || drained || link.leaving => Kind::AssociationReleased,
            kind => kind,
        };
        let lived = link.opened.is_some_and(|at| at + LONG_LIVED <= now.mono);
        let given_up = link.given_up.take();
        let drained = link.drain.is_some();
        let leaving = link.leaving;
        link.phase = Phase::Over;
        let error = link.transport_error.take();
        let reason = error.clone().unwrap_or_else(|| detail.to_owned());
        let detail = match error {
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
            self.cx.hushed(now, Why::NoBind, origin, Some(id), &reason, line);
        } else if !refused && given_up.is_none() {
            self.cx.event(level, kind, detail).association(id).channel(channel);
        }
        // A scheduled channel's transfer goes on in its next hours, if they are not too far away.
        let lost = leaving || kind != Kind::AssociationReleased;
        let fault = self.give_back(now, id, lost);
        // What one that never opened was to recover stays with the recovery.
        self.arrivals.drop_receiving(&mut self.cx, now, id, was_open, lost);
        // How one ended that had to says nothing of its channel.
        let Some(channel) = channel.filter(|_| initiated && !drained) else { return };
        if kind == Kind::AssociationReleased {
            return;
        }
        if fault != Fault::Link {
            // What follows was decided by that.
            if let Some(state) = self.outbound.channels.get_mut(&channel) {
                state.last_error = Some(detail.to_owned());
            }
            return;
        }
        let reopen = self.cx.peer_and_channel(channel).map(|(_, c)| c.reopen).unwrap_or_default();
        let seed = self.cx.rng.next_u64();
        if let Some(state) = self.outbound.channels.get_mut(&channel) {
            state.failures = if was_open { 1 } else { state.failures.saturating_add(1) };
            // One that opens and is soon lost again waits as long as one that does not open.
            state.short_lived = if lived { 0 } else { state.short_lived.saturating_add(1) };
            let last_error = given_up.clone().unwrap_or_else(|| detail.to_owned());
            state.last_error = Some(last_error);
            let wait = if given_up.is_some() {
                state.refused.give_up();
                jittered(reopen.refused, seed)
            } else {
                reopen_wait(&reopen, state.failures.max(state.short_lived), seed)
            };
            state.not_before = Some(now.mono + wait);
        }
    }

    /// Does what the time brings for channels: one that waited may be opened again, one that is
    /// scheduled opens or closes.
    pub(crate) fn mind_channels(&mut self, now: Now) {
        while let Some(id) = self.outbound.agenda.looks.pop(now.mono) {
            let Some(state) = self.outbound.channels.get_mut(&id) else { continue };
            state.not_before = state.not_before.filter(|at| *at > now.mono);
            self.keep_schedule(now, id);
        }
    }
}

impl Outbound {
    /// Releases on-demand associations that carried nothing for their channel's `idle_close`.
    pub(crate) fn close_idle(&mut self, cx: &mut Context, now: Now) {
        while let Some(id) = self.agenda.idle.pop(now.mono) {
            let at = cx.associations.get(&id).and_then(|link| cx.closes_at(link));
            if at.is_some_and(|at| at <= now.mono) {
                cx.release(id);
            } else {
                self.agenda.idle.set(id, at);
            }
        }
    }
}
