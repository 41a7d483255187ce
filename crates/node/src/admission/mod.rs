//! Admission: connections and binds.

pub(crate) mod access;
pub(crate) mod credentials;
pub(crate) mod initiator;
pub(crate) mod refusals;
pub(crate) mod responder;
pub(crate) mod room;
pub(crate) mod users;

use crate::admission::access::Access;
use crate::config::limits::Limits;
use base::AssociationId;
use std::collections::BTreeSet;

/// Connections and binds: who may connect, and who has the right password.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) access: Access,
    /// Incoming connections beyond a limit that are being refused.
    pub(crate) turned_away: BTreeSet<AssociationId>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Admission {
        Admission { access: Access::new(limits), turned_away: BTreeSet::new() }
    }
}
