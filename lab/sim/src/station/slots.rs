//! The users of a station, each bound by a pipe inside the host.

use super::{Arriving, PIPE, Station, StationEvent};
use crate::sim::simulated_hosts::{ScheduledEvent, SimulatedHosts};
use crate::station::user::{SimulatedUser, UserEvent, UserSubmission};
use base::AssociationId;
use bytes::Bytes;
use node::Input;
use std::time::Duration;

/// After so long a user binds again whose association ended.
const BIND_AGAIN: Duration = Duration::from_secs(1);

impl Station {
    /// A user binds, if he is not bound.
    pub(crate) fn bind(&mut self, simulated: &mut SimulatedHosts, user: usize) {
        let remote = self.address;
        let Some(listener) = self.p3 else { return };
        if self.slots.get(user).is_none_or(|slot| slot.association.is_some()) {
            return;
        }
        self.arriving = Some(Arriving::User(user));
        self.feed(simulated, Input::Accepted { connection: user as u64, listener, remote });
        if self.admitted.take().is_none() {
            let site = self.place;
            return simulated.later(BIND_AGAIN, ScheduledEvent::Bind { site, user });
        }
        let now = simulated.clock().mono;
        if let Some(slot) = self.slots.get_mut(user) {
            slot.user.connected(now);
        }
        self.drain_user(simulated, user);
    }

    fn slot_of(&self, association: AssociationId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.association == Some(association))
    }

    /// Octets of the node reach a user.
    pub(crate) fn user_receives(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        bytes: &[u8],
    ) {
        let Some(user) = self.slot_of(association) else { return };
        let now = simulated.clock().mono;
        if let Some(slot) = self.slots.get_mut(user) {
            slot.user.bytes(now, bytes);
        }
        self.drain_user(simulated, user);
    }

    /// Octets of a user reach the node.
    pub(crate) fn node_receives(
        &mut self,
        simulated: &mut SimulatedHosts,
        association: AssociationId,
        bytes: Bytes,
    ) {
        if self.slot_of(association).is_some() {
            self.feed(simulated, Input::Bytes { association, bytes });
        }
    }

    /// The pipe between a user and the node is closed: both are notified.
    pub(crate) fn unplugged(&mut self, simulated: &mut SimulatedHosts, association: AssociationId) {
        if self.slot_of(association).is_some() {
            self.lose_user(simulated, association);
            self.feed(simulated, Input::Closed { association, error: None });
        }
    }

    pub(super) fn lose_user(&mut self, simulated: &mut SimulatedHosts, association: AssociationId) {
        self.wanted.remove(&association);
        let Some(user) = self.slot_of(association) else { return };
        if let Some(slot) = self.slots.get_mut(user) {
            slot.association = None;
            slot.user.closed();
        }
        simulated.later(BIND_AGAIN, ScheduledEvent::Bind { site: self.place, user });
    }

    /// A user submits a message.
    pub(crate) fn submit(
        &mut self,
        simulated: &mut SimulatedHosts,
        user: usize,
        submission: UserSubmission,
    ) {
        let now = simulated.clock().mono;
        if let Some(slot) = self.slots.get_mut(user) {
            slot.user.submit(now, submission);
            self.drain_user(simulated, user);
        }
    }

    /// A user is asked something, and does it.
    pub(crate) fn with_user(
        &mut self,
        simulated: &mut SimulatedHosts,
        user: usize,
        act: impl FnOnce(&mut SimulatedUser, base::Instant),
    ) {
        let now = simulated.clock().mono;
        if let Some(slot) = self.slots.get_mut(user) {
            act(&mut slot.user, now);
            self.drain_user(simulated, user);
        }
    }

    /// Does what a user wants done, and reports what the user received.
    pub(super) fn drain_user(&mut self, simulated: &mut SimulatedHosts, user: usize) {
        let site = self.place;
        while let Some(slot) = self.slots.get_mut(user) {
            let Some(received_event) = slot.user.poll() else { break };
            match (received_event, slot.association) {
                (UserEvent::Write(bytes), Some(association)) => {
                    simulated.later(PIPE, ScheduledEvent::ToNode { site, association, bytes });
                }
                (UserEvent::Close, Some(association)) => {
                    simulated.later(PIPE, ScheduledEvent::Unplugged { site, association });
                }
                (UserEvent::Write(_) | UserEvent::Close, None) => {}
                (received_event, _) => {
                    self.events.push_back((site, StationEvent::UserEvent { user, received_event }));
                }
            }
        }
        self.set_due(simulated);
    }
}
