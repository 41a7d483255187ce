//! The batches of a group merged: of each key the last change. What the batches of one group do to each other
//! is decided here, as if they were made one after the other.

use crate::group::Content;
use crate::group::staged::{Change, Source, Staged};
use crate::numbers::{Place, number};
use base::BodyId;
use bytes::Bytes;
use engine::journal::Digest;
use std::collections::{BTreeMap, BTreeSet};
use store::{Committed, StoreError};

/// An entry, or its absence, and the first batch that changed it.
#[derive(Clone, Debug)]
pub(crate) struct EntryChange {
    pub(crate) entry: Option<EntryRow>,
    pub(crate) batch: i64,
    /// The first change removes it. In a site it has to be there: else another node has removed it.
    pub(crate) removes: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct EntryRow {
    pub(crate) queue: i64,
    pub(crate) body: Option<i64>,
    pub(crate) record: Bytes,
}

#[derive(Clone, Debug)]
pub(crate) struct SeenRow {
    pub(crate) until: i64,
    pub(crate) record: Bytes,
}

/// Some batches as one change.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Of a node of a site: what a batch removes has to be there.
    pub(crate) is_of_site: bool,
    pub(crate) entries: BTreeMap<Place, EntryChange>,
    pub(crate) bodies: BTreeMap<i64, Option<Source>>,
    /// Bodies that have to be there: contents are copied from them.
    pub(crate) needed: BTreeSet<i64>,
    /// Keys that must not be remembered.
    pub(crate) absent: BTreeSet<[u8; 32]>,
    /// By the number of forgettings before it, and its key.
    pub(crate) seen: BTreeMap<(i32, [u8; 32]), SeenRow>,
    /// Until when, and how many.
    pub(crate) forgets: Vec<(i64, i64)>,
    pub(crate) meta: BTreeMap<String, Bytes>,
    /// Digests of the values that are replaced, as the first batch that does it knows them.
    pub(crate) over: BTreeMap<String, [u8; 32]>,
    /// The batches, by their places in the group.
    pub(crate) batches: Vec<usize>,
}

/// The content of a plan, and how many bodies have it.
pub(crate) type Bound<'p> = BTreeMap<i64, (&'p Content, i32)>;

impl Plan {
    /// Adds a batch after all others, or gives why it cannot be made after them.
    pub(crate) fn add(&mut self, place: usize, staged: &Staged) -> Result<(), Committed> {
        self.check_keys(staged)?;
        self.check_copies(staged)?;
        self.check_removals(staged)?;
        let batch = i64::try_from(staged.batch.0).unwrap_or(i64::MAX);
        for change in &staged.changes {
            self.apply(change, batch);
        }
        self.batches.push(place);
        Ok(())
    }

    fn check_keys(&self, staged: &Staged) -> Result<(), Committed> {
        let keys: Vec<Digest> = absent_keys(staged).filter(|key| self.has_seen(&key.0)).collect();
        if keys.is_empty() { Ok(()) } else { Err(Committed::Conflict(keys)) }
    }

    /// Whether a batch of the plan remembers this key. Only a batch that is alone forgets any.
    pub(crate) fn has_seen(&self, key: &[u8; 32]) -> bool {
        self.seen.contains_key(&(0, *key))
    }

    /// What it copies must not have been deleted by a batch before it.
    fn check_copies(&self, staged: &Staged) -> Result<(), Committed> {
        let mut own = BTreeSet::new();
        for change in &staged.changes {
            match change {
                Change::Body { id, source } => {
                    if let Source::Copy(from) = source
                        && !own.contains(from)
                        && matches!(self.bodies.get(from), Some(None))
                    {
                        let id = BodyId(number(*from));
                        return Err(Committed::NotDone(StoreError::BodyDamaged { id }));
                    }
                    own.insert(*id);
                }
                Change::NoBody { .. }
                | Change::Entry { .. }
                | Change::NoEntry { .. }
                | Change::Seen { .. }
                | Change::Forget { .. }
                | Change::Meta { .. } => {}
            }
        }
        Ok(())
    }

    /// What a batch of a node removes must not have been removed by a batch before it.
    fn check_removals(&self, staged: &Staged) -> Result<(), Committed> {
        let is_gone = |place: &Place| {
            let change = self.entries.get(place);
            change.is_some_and(|change| change.entry.is_none())
        };
        let mut changed = BTreeSet::new();
        for change in staged.changes.iter().filter(|_| self.is_of_site) {
            match change {
                Change::NoEntry { place } if changed.insert(*place) && is_gone(place) => {
                    return Err(Committed::Fenced(Vec::new()));
                }
                Change::Entry { place, .. } => _ = changed.insert(*place),
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: &Change, batch: i64) {
        match change {
            Change::Entry { place, queue, body, record } => {
                let row = EntryRow { queue: *queue, body: *body, record: record.clone() };
                self.put_entry(*place, Some(row), batch);
            }
            Change::NoEntry { place } => self.put_entry(*place, None, batch),
            Change::Body { id, source } => {
                let source = match source {
                    Source::Copy(from) => self.copied(*from),
                    Source::Content(_) => source.clone(),
                };
                self.bodies.insert(*id, Some(source));
            }
            Change::NoBody { id } => {
                self.bodies.insert(*id, None);
            }
            Change::Seen { key, until, record, absent } => {
                if *absent {
                    self.absent.insert(*key);
                }
                let step = i32::try_from(self.forgets.len()).unwrap_or(i32::MAX);
                let row = SeenRow { until: *until, record: record.clone() };
                self.seen.insert((step, *key), row);
            }
            Change::Forget { before, most } => self.forgets.push((*before, *most)),
            Change::Meta { name, value, over } => {
                if let Some(over) = over.filter(|_| !self.meta.contains_key(name)) {
                    self.over.insert(name.clone(), over);
                }
                self.meta.insert(name.clone(), value.clone());
            }
        }
    }

    fn put_entry(&mut self, place: Place, entry: Option<EntryRow>, batch: i64) {
        let removes = entry.is_none();
        self.entries
            .entry(place)
            .and_modify(|change| change.entry.clone_from(&entry))
            .or_insert(EntryChange { entry, batch, removes });
    }

    /// What a copy of this body copies: the database's, or what this plan makes.
    fn copied(&mut self, from: i64) -> Source {
        if let Some(Some(source)) = self.bodies.get(&from) {
            return source.clone();
        }
        self.needed.insert(from);
        Source::Copy(from)
    }

    /// The contents that bodies have in the end.
    pub(crate) fn bound(&self) -> Bound<'_> {
        let mut bound = Bound::new();
        for source in self.bodies.values().flatten() {
            if let Source::Content(content) = source {
                bound.entry(content.id()).or_insert((content, 0)).1 += 1;
            }
        }
        bound
    }
}

/// The keys that have to be absent for a batch, in its order.
pub(crate) fn absent_keys(staged: &Staged) -> impl Iterator<Item = Digest> + '_ {
    staged.changes.iter().filter_map(|change| match change {
        Change::Seen { key, absent: true, .. } => Some(Digest(*key)),
        _ => None,
    })
}
