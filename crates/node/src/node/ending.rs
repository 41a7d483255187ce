//! What follows for all machines when an association ends.

use crate::api::Output;
use crate::api::event::{Kind, Level};
use crate::association::{Association, State};
use crate::log::rate::{Repeated, Why};
use crate::node::Node;
use crate::outbound::channels::state::{jittered, reopen_wait};
use crate::outbound::faults::blame::Fault;
use base::{AssociationId, Now};
use osi::api as stack;
use std::time::Duration;

/// An association that lived so long was of use.
const LONG_LIVED: Duration = Duration::from_secs(10);

impl Node {
    pub(crate) fn connect_failed(&mut self, now: Now, id: AssociationId, error: &str) {
        self.association_over(now, id, Kind::AssociationLost, &format!("no connection: {error}"));
        self.remove_association(id);
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
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        if link.state == State::Over {
            return;
        }
        let opened = match link.state {
            State::Open { since } | State::Releasing { since } => Some(since),
            _ => None,
        };
        let was_open = opened.is_some();
        // What was refused was told already, and what we ended ourselves is no loss.
        let refused = link.state == State::Refusing;
        let releasing = matches!(link.state, State::Releasing { .. });
        let ending = (self.cx.life.is_stopping() || link.end.drain.is_some()) && releasing;
        // Perhaps the peer drains it too, and was first.
        let drained = link.end.drain.is_some() && link.sending.as_ref().is_none_or(|s| s.confirmed);
        let kind = match kind {
            Kind::AssociationLost if ending || drained || link.end.leaving => {
                Kind::AssociationReleased
            }
            kind => kind,
        };
        let lived = opened.is_some_and(|at| at + LONG_LIVED <= now.mono);
        let given_up = link.end.given_up.take();
        let drained = link.end.drain.is_some();
        let leaving = link.end.leaving;
        link.state = State::Over;
        let error = link.connection.error.take();
        let reason = error.clone().unwrap_or_else(|| detail.to_owned());
        let detail = match error {
            Some(error) => format!("{detail}: {error}"),
            None => detail.to_owned(),
        };
        let detail = detail.as_str();
        link.requests.clear();
        let channel = link.channel();
        let initiated = link.is_initiator();
        let level = if kind == Kind::AssociationReleased { Level::Info } else { Level::Warning };
        let origin = link.connection.origin;
        if origin.is_some() && !was_open && !refused {
            // Anybody can connect and go, as often as he likes.
            let detail = match link.connection.remote {
                Some(remote) => format!("{remote}, nobody had bound: {detail}"),
                None => detail.to_owned(),
            };
            let line = Repeated { level, kind, channel, detail };
            self.cx.outputs.limited_event(now, Why::NoBind, origin, Some(id), &reason, line);
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

    /// Removes an association whose connection has ended.
    pub(crate) fn remove_association(&mut self, id: AssociationId) -> Option<Association> {
        let link = self.cx.associations.remove(id)?;
        self.outbound.agenda.gone(id, link.channel());
        self.admission.turned_away.remove(&id);
        if let Some(origin) = link.connection.origin {
            let presented = link.p1().and_then(|p1| p1.presented);
            self.admission.access.forget(id, origin, presented);
        }
        self.operations.is_drained(&mut self.cx, id);
        Some(link)
    }

    pub(crate) fn closed(&mut self, now: Now, id: AssociationId, error: Option<&str>) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            // What made us end it says more than how it ended.
            let why = link.connection.error.take();
            link.connection.error = why.or_else(|| error.map(str::to_owned));
        }
        self.feed(now, id, stack::Input::Eof);
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        if link.state != State::Over {
            // The stack said nothing: the connection went before it was of any use.
            self.association_over(now, id, Kind::AssociationLost, "the connection closed");
        }
        self.remove_association(id);
    }

    pub(crate) fn stop(&mut self, now: Now) {
        let again = self.cx.life.stop();
        if !again {
            self.cx.write_clock(now);
        }
        let ids: Vec<AssociationId> = self.cx.associations.keys().copied().collect();
        for id in ids {
            if again
                && self.cx.associations.get(&id).is_some_and(|link| link.state != State::Connecting)
            {
                self.cx.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            } else {
                self.wind_down(now, id);
            }
        }
    }

    /// Brings one association to its end, even if its connection is still being made.
    pub(crate) fn wind_down(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.cx.associations.get(&id) else { return };
        if link.state != State::Connecting {
            return self.cx.finish(id);
        }
        let why = match (self.cx.life.is_stopping(), link.end.leaving) {
            (true, _) => "stopping",
            (false, true) => "its window has ended",
            (false, false) => "its channel has changed",
        };
        self.cx.output(Output::Close { association: id });
        self.association_over(now, id, Kind::AssociationReleased, why);
    }
}
