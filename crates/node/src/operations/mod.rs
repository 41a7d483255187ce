//! Operations: what an operator orders.

pub(crate) mod cancelling;
pub(crate) mod holding;
pub(crate) mod lists;
pub(crate) mod minimize;
pub(crate) mod minimizing;
pub(crate) mod registering;
pub(crate) mod registrations;
pub(crate) mod reload;

use crate::api::lists::List;
use crate::operations::minimizing::Minimizing;
use crate::operations::registrations::Registrations;
use base::AssociationId;
use engine::NextHop;
use engine::journal::KnownValue;
use std::collections::BTreeSet;

/// What an operator orders: MINIMIZE, distribution lists, and other configurations; and what users
/// register.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// Associations that end because the configuration changed.
    draining: BTreeSet<AssociationId>,
    pub(crate) minimizing: Minimizing,
    /// The distribution lists, as they are stored.
    lists: Vec<List>,
    /// A change of them is being committed.
    changing_lists: bool,
    known_lists: KnownValue,
    registrations: Registrations,
    /// What another node of the site is to have.
    pub(crate) leaving: BTreeSet<NextHop>,
}

impl Operations {
    /// Associations that end because the configuration changed.
    pub(crate) fn draining(&self) -> &BTreeSet<AssociationId> {
        &self.draining
    }

    /// This association ends because the configuration changed.
    pub(crate) fn drain(&mut self, id: AssociationId) {
        self.draining.insert(id);
    }
}
