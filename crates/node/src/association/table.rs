//! All associations: by identifier, by channel, by mailbox and by address, with what is to be done for
//! them.

use crate::association::Association;
use crate::association::connection_table::ConnectionTable;
use crate::association::p1::P1;
use crate::association::p3::P3;
use base::ip_prefix::Origin;
use base::marks::{Due, Marked};
use base::{AssociationId, Instant};
use osi::api::Request;
use scheduler::ChannelId;
use std::collections::BTreeSet;

/// All associations. Only its methods add, move and remove one, so that its tables agree.
#[derive(Debug, Default)]
pub(crate) struct AssociationTable {
    all: Marked<AssociationId, Association>,
    /// The same by channel, mailbox and address.
    connections: ConnectionTable,
    /// Those with requests that their stacks have not taken yet.
    touched: BTreeSet<AssociationId>,
    /// When each is due.
    deadlines: Due<AssociationId>,
}

impl AssociationTable {
    pub(crate) fn get(&self, id: &AssociationId) -> Option<&Association> {
        self.all.get(id)
    }

    /// Marks the association: it is about to change.
    pub(crate) fn get_mut(&mut self, id: &AssociationId) -> Option<&mut Association> {
        self.all.get_mut(id)
    }

    /// The P1 data of an association, if it speaks P1.
    pub(crate) fn p1_mut(&mut self, id: AssociationId) -> Option<&mut P1> {
        self.all.get_mut(&id)?.p1_mut()
    }

    /// The P3 data of an association, if it speaks P3.
    pub(crate) fn p3_mut(&mut self, id: AssociationId) -> Option<&mut P3> {
        self.all.get_mut(&id)?.p3_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All associations: for rare work.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Association> {
        self.all.values()
    }

    /// All identifiers: for rare work.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &AssociationId> {
        self.all.keys()
    }

    /// Associations by channel, mailbox and address.
    pub(crate) fn connections(&self) -> &ConnectionTable {
        &self.connections
    }

    /// The associations of a channel, oldest first: ours, and the peer's that are bound.
    pub(crate) fn of_channel(
        &self,
        channel: ChannelId,
    ) -> impl DoubleEndedIterator<Item = &Association> {
        self.connections.channel(channel).filter_map(|id| self.all.get(&id))
    }

    // ----- added, moved, removed ------------------------------------------------------------------

    /// We open this association on a channel.
    pub(crate) fn insert_ours(&mut self, association: Association, channel: ChannelId) {
        let id = association.id;
        self.all.insert(id, association);
        self.connections.on_channel(id, channel);
    }

    /// Somebody connected from an address; `known` if the configuration names it.
    pub(crate) fn insert_incoming(
        &mut self,
        association: Association,
        origin: Origin,
        known: bool,
    ) {
        let (id, is_p3) = (association.id, association.p3().is_some());
        self.all.insert(id, association);
        self.connections.arrived(id, origin, known, is_p3);
        self.touched.insert(id);
    }

    /// Somebody connected beyond a limit. No limit counts this association.
    pub(crate) fn insert_turned_away(&mut self, association: Association) {
        let id = association.id;
        self.all.insert(id, association);
        self.touched.insert(id);
    }

    /// A peer has bound on this channel.
    pub(crate) fn peer_bound(&mut self, id: AssociationId, channel: ChannelId) {
        self.connections.on_channel(id, channel);
    }

    /// A user has bound to the mailbox of this number.
    pub(crate) fn user_bound(&mut self, id: AssociationId, mailbox: u32) {
        self.connections.user(id, mailbox);
    }

    /// The password of a bind is being checked: its connection need not make room.
    pub(crate) fn checking(&mut self, id: AssociationId) {
        self.connections.checking(id);
    }

    /// Nothing is checked for this connection: it may have to make room.
    pub(crate) fn not_checking(&mut self, id: AssociationId) {
        self.connections.checked(id);
    }

    /// The connection of this association has ended.
    pub(crate) fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.all.remove(&id)?;
        self.connections.gone(id, association.channel(), association.connection.origin);
        self.touched.remove(&id);
        self.deadlines.set(id, None);
        Some(association)
    }

    // ----- what is to be done ---------------------------------------------------------------------

    /// Queues a request for the stack of an association.
    pub(crate) fn request(&mut self, id: AssociationId, request: Request) {
        if let Some(association) = self.all.get_mut(&id) {
            association.request(request);
            self.touched.insert(id);
        }
    }

    /// Its stack may have something to do.
    pub(crate) fn touch(&mut self, id: AssociationId) {
        self.touched.insert(id);
    }

    /// The next association whose stack may have something to do.
    pub(crate) fn next_touched(&mut self) -> Option<AssociationId> {
        self.touched.pop_first()
    }

    pub(crate) fn touched_count(&self) -> usize {
        self.touched.len()
    }

    /// Files when an association is due.
    pub(crate) fn file_deadline(&mut self, id: AssociationId) {
        if let Some(association) = self.all.get(&id) {
            self.deadlines.set(id, association.deadline());
        }
    }

    /// The next association that is due.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<AssociationId> {
        self.deadlines.pop(now)
    }

    /// When the first association is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// Marks all associations as changed.
    pub(crate) fn mark_all(&mut self) {
        self.all.mark_all();
    }

    pub(crate) fn has_marks(&self) -> bool {
        self.all.has_marks()
    }

    /// Those that may have changed since the last call, in order, removed ones too.
    pub(crate) fn take_marks(&mut self) -> BTreeSet<AssociationId> {
        self.all.take_marks()
    }
}
