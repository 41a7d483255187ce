//! Orders of an operator that are being carried out.

use crate::api::event::Kind;
use crate::api::operator::{Act, ActOutcome, Operator};
use base::{EntryId, PeerId};
use engine::Record;
use engine::journal::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// An order from its entries' check to its commit.
#[derive(Debug)]
pub struct Order {
    /// What it does.
    pub act: Act,
    /// Only its outcomes are asked for.
    pub is_trial: bool,
    /// Who gave it.
    pub by: Operator,
    /// The peer that a reroute names.
    pub to: Option<PeerId>,
    /// The outcomes so far.
    pub outcomes: Vec<(EntryId, ActOutcome)>,
    /// Entries whose records are being read.
    pub reading: BTreeSet<EntryId>,
    /// What was read.
    pub records: BTreeMap<EntryId, Record>,
    /// Entries that are to be deleted although their records cannot be read.
    pub unread: BTreeSet<EntryId>,
    /// Keys that are looked up and reserved, by entry.
    pub keys: BTreeMap<EntryId, Vec<Digest>>,
}

impl Order {
    /// An order of which nothing is done yet.
    #[must_use]
    pub fn new(act: Act, is_trial: bool, by: Operator, to: Option<PeerId>) -> Order {
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
    #[must_use]
    pub fn has(&self, id: EntryId) -> bool {
        let is_read = self.records.contains_key(&id) || self.unread.contains(&id);
        is_read || self.reading.contains(&id)
    }

    /// The outcome for an entry.
    pub fn put(&mut self, id: EntryId, outcome: ActOutcome) {
        self.outcomes.push((id, outcome));
    }

    /// How the log names it.
    #[must_use]
    pub fn kind(&self) -> Kind {
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
