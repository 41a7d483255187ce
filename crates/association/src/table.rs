//! All associations: by identifier, by channel, by mailbox and by address, with what is to be done for
//! them.

use crate::connection_table::ConnectionTable;
use crate::p1::P1;
use crate::p3::P3;
use crate::{Association, AssociationState};
use base::ip_prefix::Origin;
use base::marks::{Due, Marked};
use base::{AssociationId, Instant};
use node_api::api::shards::PeerAssociations;
use osi::api::Request;
use scheduler::ChannelId;
use std::collections::BTreeSet;

/// All associations. Only its methods add, move and remove one, so that its tables agree.
#[derive(Debug, Default)]
pub struct AssociationTable {
    all: Marked<AssociationId, Association>,
    /// The same by channel, mailbox and address.
    connections: ConnectionTable,
    /// Those with requests that their stacks have not taken yet.
    touched: BTreeSet<AssociationId>,
    /// When each is due.
    deadlines: Due<AssociationId>,
    /// One with a peer was opened, or has ended.
    with_peers_changed: bool,
}

impl AssociationTable {
    /// The association with this number.
    pub fn get(&self, id: &AssociationId) -> Option<&Association> {
        self.all.get(id)
    }

    /// Marks the association: it is about to change.
    pub fn get_mut(&mut self, id: &AssociationId) -> Option<&mut Association> {
        self.all.get_mut(id)
    }

    /// The P1 data of an association, if it speaks P1.
    pub fn p1_mut(&mut self, id: AssociationId) -> Option<&mut P1> {
        self.all.get_mut(&id)?.p1_mut()
    }

    /// The P3 data of an association, if it speaks P3.
    pub fn p3_mut(&mut self, id: AssociationId) -> Option<&mut P3> {
        self.all.get_mut(&id)?.p3_mut()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All associations: for rare work.
    pub fn values(&self) -> impl Iterator<Item = &Association> {
        self.all.values()
    }

    /// All identifiers: for rare work.
    pub fn keys(&self) -> impl Iterator<Item = &AssociationId> {
        self.all.keys()
    }

    /// Associations by channel, mailbox and address.
    pub fn connections(&self) -> &ConnectionTable {
        &self.connections
    }

    /// The associations of a channel, oldest first: ours, and the peer's that are bound.
    pub fn of_channel(&self, channel: ChannelId) -> impl DoubleEndedIterator<Item = &Association> {
        self.connections.channel(channel).filter_map(|id| self.all.get(&id))
    }

    /// The peers that have open associations, if that has changed since the last call.
    pub fn take_with_peers(&mut self) -> Option<PeerAssociations> {
        if !std::mem::take(&mut self.with_peers_changed) {
            return None;
        }
        let mut found = PeerAssociations::default();
        let mut ours = BTreeSet::new();
        for association in self.connections.peers().filter_map(|id| self.all.get(&id)) {
            let AssociationState::Open { since } = association.state() else { continue };
            let Some(peer) = association.channel().map(|channel| channel.peer) else { continue };
            found.open.insert(peer);
            if association.is_initiator() {
                ours.insert(peer);
                continue;
            }
            let last = found.called.entry(peer).or_insert(since);
            *last = since.max(*last);
            if association.is_two_way() {
                found.held.insert(peer);
            }
        }
        found.held.retain(|peer| !ours.contains(peer));
        Some(found)
    }

    // ----- added, moved, removed ------------------------------------------------------------------

    /// We open this association on a channel.
    pub fn insert_ours(&mut self, association: Association, channel: ChannelId) {
        let id = association.id;
        self.all.insert(id, association);
        self.connections.on_channel(id, channel);
    }

    /// Somebody connected from an address; `known` if the configuration names it.
    pub fn insert_incoming(&mut self, association: Association, origin: Origin, known: bool) {
        let (id, is_p3) = (association.id, association.p3().is_some());
        self.all.insert(id, association);
        self.connections.arrived(id, origin, known, is_p3);
        self.touched.insert(id);
    }

    /// Somebody connected beyond a limit. No limit counts this association.
    pub fn insert_turned_away(&mut self, association: Association) {
        let id = association.id;
        self.all.insert(id, association);
        self.touched.insert(id);
    }

    /// A peer has bound on this channel.
    pub fn peer_bound(&mut self, id: AssociationId, channel: ChannelId) {
        self.with_peers_changed = true;
        self.connections.on_channel(id, channel);
    }

    /// A user has bound to the mailbox of this number.
    pub fn user_bound(&mut self, id: AssociationId, mailbox: u32) {
        self.connections.user(id, mailbox);
    }

    /// The password of a bind is being checked: its connection need not make room.
    pub fn checking(&mut self, id: AssociationId) {
        self.connections.checking(id);
    }

    /// Nothing is checked for this connection: it may have to make room.
    pub fn not_checking(&mut self, id: AssociationId) {
        self.connections.checked(id);
    }

    /// The connection of this association has ended.
    pub fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.all.remove(&id)?;
        self.with_peers_changed |= association.channel().is_some();
        self.connections.gone(id, association.channel(), association.connection.origin);
        self.touched.remove(&id);
        self.deadlines.set(id, None);
        Some(association)
    }

    // ----- what is to be done ---------------------------------------------------------------------

    /// Queues a request for the stack of an association.
    pub fn request(&mut self, id: AssociationId, request: Request) {
        if let Some(association) = self.all.get_mut(&id) {
            association.request(request);
            self.touched.insert(id);
        }
    }

    /// Its stack may have something to do.
    pub fn touch(&mut self, id: AssociationId) {
        self.touched.insert(id);
    }

    /// The next association whose stack may have something to do.
    pub fn next_touched(&mut self) -> Option<AssociationId> {
        self.touched.pop_first()
    }

    /// How many were touched and not yet served.
    pub fn touched_count(&self) -> usize {
        self.touched.len()
    }

    /// Files when an association is due.
    pub fn file_deadline(&mut self, id: AssociationId) {
        if let Some(association) = self.all.get(&id) {
            self.deadlines.set(id, association.deadline());
        }
    }

    /// The next association that is due.
    pub fn next_due(&mut self, now: Instant) -> Option<AssociationId> {
        self.deadlines.pop(now)
    }

    /// When the first association is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// Marks all associations as changed.
    pub fn mark_all(&mut self) {
        self.all.mark_all();
    }

    /// Whether any is marked.
    pub fn has_marks(&self) -> bool {
        self.all.has_marks()
    }

    /// Those that may have changed since the last call, in order, removed ones too.
    pub fn take_marks(&mut self) -> BTreeSet<AssociationId> {
        self.all.take_marks()
    }
}
