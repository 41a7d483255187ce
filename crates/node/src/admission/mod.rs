//! Admission: connections and binds.

pub(crate) mod credentials;
pub(crate) mod initiator;
pub(crate) mod refusals;
pub(crate) mod responder;
pub(crate) mod room;
pub(crate) mod users;

use crate::association::Association;
use base::AssociationId;
use guard::Limits;
use guard::access::Access;
use std::collections::BTreeSet;

/// Most connections beyond a limit that are being refused at the same time. The oldest makes room.
const MAX_TURNED_AWAY: usize = 64;

/// Connections and binds: who may connect, and who has the right password.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) access: Access,
    /// Incoming connections beyond a limit that are being refused.
    turned_away: BTreeSet<AssociationId>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Admission {
        Admission { access: Access::new(limits), turned_away: BTreeSet::new() }
    }

    /// The connection that is being refused and must make room before another one is.
    pub(crate) fn makes_room_to_turn_away(&self) -> Option<AssociationId> {
        let is_full = self.turned_away.len() >= MAX_TURNED_AWAY;
        self.turned_away.first().copied().filter(|_| is_full)
    }

    /// This connection is beyond a limit and is being refused.
    pub(crate) fn turns_away(&mut self, id: AssociationId) {
        self.turned_away.insert(id);
    }

    /// The connection of this association is gone: nothing of it waits any more.
    pub(crate) fn forget(&mut self, association: &Association) {
        self.turned_away.remove(&association.id);
        if let Some(origin) = association.connection.origin {
            let presented = association.p1().and_then(|p1| p1.presented);
            self.access.forget(association.id, origin, presented);
        }
    }
}
