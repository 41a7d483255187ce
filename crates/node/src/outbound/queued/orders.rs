//! Orders of an operator that are being carried out.

use crate::api::event::Kind;
use crate::api::operator::{Act, ActOutcome, Operator};
use base::{EntryId, PeerId};
use engine::Record;
use engine::journal::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// An order from its entries' check to its commit.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) act: Act,
    /// Only its outcomes are asked for.
    pub(crate) is_trial: bool,
    pub(crate) by: Operator,
    /// The peer that a reroute names.
    pub(crate) to: Option<PeerId>,
    pub(crate) outcomes: Vec<(EntryId, ActOutcome)>,
    /// Entries whose records are being read.
    pub(crate) reading: BTreeSet<EntryId>,
    /// What was read.
    pub(crate) records: BTreeMap<EntryId, Record>,
    /// Entries that are to be deleted although their records cannot be read.
    pub(crate) unread: BTreeSet<EntryId>,
    /// Keys that are looked up and reserved, by entry.
    pub(crate) keys: BTreeMap<EntryId, Vec<Digest>>,
}

impl Order {
    pub(crate) fn new(act: Act, is_trial: bool, by: Operator, to: Option<PeerId>) -> Order {
        Order {
            act,
            is_trial,
            by,
            to,
            outcomes: Vec::new(),
            reading: BTreeSet::new(),
            records: BTreeMap::new(),
            unread: BTreeSet::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Whether it is about to change this entry.
    pub(crate) fn has(&self, id: EntryId) -> bool {
        let is_read = self.records.contains_key(&id) || self.unread.contains(&id);
        is_read || self.reading.contains(&id)
    }

    pub(crate) fn put(&mut self, id: EntryId, outcome: ActOutcome) {
        self.outcomes.push((id, outcome));
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.act {
            Act::Hold => Kind::OperatorHeld,
            Act::Release => Kind::OperatorReleased,
            Act::Retry => Kind::OperatorRetried,
            Act::Reroute { .. } => Kind::OperatorRerouted,
            Act::Expire => Kind::OperatorExpired,
            Act::Delete | Act::Trial(_) => Kind::OperatorDeleted,
        }
    }
}
