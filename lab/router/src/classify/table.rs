//! Tables of flows that can change while the router runs (the Bern study's `dstable`).

use super::MatchRule;
use super::index::Index;
use crate::packet::Packet;
use crate::policy::{ChainStep, KeyFault, Name, RouterPolicy, TableFlow};
use std::collections::BTreeMap;

/// Flows with a rate in a table that a `shape-flows` step shapes, at most.
pub const MAX_SHAPED: usize = 256;

/// Distance of the positions of adjacent flows. It leaves room for flows between them.
const STEP: u64 = 1 << 32;

/// All tables of a router, ordered by name.
#[derive(Clone, Debug, Default)]
pub struct FlowTables {
    tables: Vec<IndexedTable>,
    interfaces: Vec<Name>,
    version: u64,
}

#[derive(Clone, Debug)]
struct IndexedTable {
    name: Name,
    /// A step shapes the flows of this table.
    shaped: bool,
    /// Number of flows with a rate.
    rated: usize,
    slots: Vec<Option<Entry>>,
    /// Unused slots.
    free: Vec<usize>,
    /// The slots ordered by position, which is the order of the flows.
    order: BTreeMap<u64, usize>,
    names: BTreeMap<Name, usize>,
    index: Index,
    /// The number of the next flow that is added.
    next: u64,
    version: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    position: u64,
    revision: u64,
    flow: TableFlow,
    rule: MatchRule,
}

/// A flow of a table.
#[derive(Clone, Copy, Debug)]
pub struct FoundFlow<'a> {
    /// Its match, and the rate, burst and mark agreed for it.
    pub flow: &'a TableFlow,
    /// Its number, unique for the life of the table.
    pub number: u64,
    /// Changes with each replacement of the flow.
    pub revision: u64,
    /// Its slot: a small index, used again after the flow is removed.
    pub slot: usize,
}

/// Unknown table, or unknown flow of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} {name:?}")]
pub struct NoSuchFlow {
    what: &'static str,
    name: Name,
}

impl FlowTables {
    /// The tables of a policy in their initial state.
    ///
    /// # Errors
    /// Those of [`FlowTables::add`].
    pub fn new(policy: &RouterPolicy, interfaces: &[Name]) -> Result<FlowTables, KeyFault> {
        let mut built =
            FlowTables { tables: Vec::new(), interfaces: interfaces.to_vec(), version: 0 };
        for (name, table) in &policy.tables {
            let shapes = |step: &ChainStep| matches!(step, ChainStep::ShapeFlows { table, .. } if table == name);
            built.tables.push(IndexedTable {
                name: name.clone(),
                shaped: policy.chains.values().flatten().any(shapes),
                rated: 0,
                slots: Vec::new(),
                free: Vec::new(),
                order: BTreeMap::new(),
                names: BTreeMap::new(),
                index: Index::default(),
                next: 0,
                version: 0,
            });
            for flow in &table.flows {
                built.add(name, flow.clone())?;
            }
        }
        Ok(built)
    }

    /// The names of all tables, ordered by position.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// The position of a table, for [`FlowTables::find`].
    pub fn place(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|known| known.name == table)
    }

    /// The first flow of this table that the packet matches.
    pub fn find(&self, table: usize, packet: &Packet) -> Option<&TableFlow> {
        self.look_up(table, packet).map(|found| found.flow)
    }

    /// As [`FlowTables::find`], with number, revision and slot of the flow.
    #[inline]
    pub fn look_up(&self, table: usize, packet: &Packet) -> Option<FoundFlow<'_>> {
        let table = self.tables.get(table)?;
        let looks = |slot| table.entry(slot).is_some_and(|is| is.rule.matches(packet, self));
        table.at(table.index.find(packet, looks)?)
    }

    /// The flow with this name.
    pub fn named(&self, table: usize, name: &str) -> Option<FoundFlow<'_>> {
        let table = self.tables.get(table)?;
        table.at(*table.names.get(name)?)
    }

    /// The flow in this slot.
    pub fn at(&self, table: usize, slot: usize) -> Option<FoundFlow<'_>> {
        self.tables.get(table)?.at(slot)
    }

    /// The flows of a table, in their order; empty if there is no such table.
    pub fn flows(&self, table: usize) -> impl Iterator<Item = &TableFlow> {
        let table = self.tables.get(table).into_iter();
        table.flat_map(|table| {
            table.order.values().filter_map(|slot| table.at(*slot).map(|found| found.flow))
        })
    }

    /// Adds a flow after all others of its table.
    ///
    /// # Errors
    /// An unknown table; a flow with this name exists; an unknown interface; a match that refers to
    /// a table or that no packet can match; a burst of 0 octets; more flows with a rate than a
    /// shaper accepts ([`MAX_SHAPED`]).
    pub fn add(&mut self, table: &str, flow: TableFlow) -> Result<(), KeyFault> {
        self.put(table, flow, None)
    }

    /// Adds a flow immediately before the flow `other` of its table.
    ///
    /// # Errors
    /// Those of [`FlowTables::add`], and an unknown `other`.
    pub fn add_before(
        &mut self,
        table: &str,
        flow: TableFlow,
        other: &str,
    ) -> Result<(), KeyFault> {
        self.put(table, flow, Some(other))
    }

    fn put(&mut self, table: &str, flow: TableFlow, before: Option<&str>) -> Result<(), KeyFault> {
        let (path, rule) = self.check(table, &flow)?;
        let known = self.known(table, &path)?;
        if known.names.contains_key(&flow.name) {
            return Err(KeyFault::at(path, "a flow of this name is there already"));
        }
        if flow.rate.is_some() {
            known.has_room_for_a_rate(&path)?;
        }
        let before = match before {
            None => None,
            Some(name) => match known.names.get(name) {
                Some(slot) => Some(*slot),
                None => {
                    return Err(KeyFault::at(path, format!("no flow {name:?} to stand before")));
                }
            },
        };
        known.add(flow, rule, before);
        self.version += 1;
        Ok(())
    }

    /// Replaces the flow of the same name and returns the old one. State kept for the flow remains
    /// valid; rate and burst are the new ones.
    ///
    /// # Errors
    /// Those of [`FlowTables::add`], except that a flow with this name must exist.
    pub fn replace(&mut self, table: &str, flow: TableFlow) -> Result<TableFlow, KeyFault> {
        let (path, rule) = self.check(table, &flow)?;
        let known = self.known(table, &path)?;
        let had = known.names.get(&flow.name).and_then(|slot| known.at(*slot));
        let Some(had) = had.map(|found| found.flow.rate.is_some()) else {
            return Err(KeyFault::at(path, "no flow of this name to replace: add it"));
        };
        if flow.rate.is_some() && !had {
            known.has_room_for_a_rate(&path)?;
        }
        let old = known.replace(flow, rule);
        let old =
            old.ok_or_else(|| KeyFault::at(path, "no flow of this name to replace: add it"))?;
        self.version += 1;
        Ok(old)
    }

    /// The path of a flow in messages, and its rule, if a table accepts it.
    fn check(&self, table: &str, flow: &TableFlow) -> Result<(String, MatchRule), KeyFault> {
        let path = format!("tables.{table}.{}", flow.name);
        if flow.matches.table.is_some() {
            return Err(KeyFault::at(path, "a flow cannot refer to a table"));
        }
        if flow.burst.is_some_and(|burst| burst.0 == 0) {
            return Err(KeyFault::at(path, "a burst of 0 octets lets nothing pass"));
        }
        let rule =
            MatchRule::new(&RouterPolicy::default(), &self.interfaces, &flow.matches, &path)?;
        Ok((path, rule))
    }

    fn known(&mut self, table: &str, path: &str) -> Result<&mut IndexedTable, KeyFault> {
        let known = self.tables.iter_mut().find(|known| known.name == table);
        known.ok_or_else(|| KeyFault::at(path, format!("no table {table:?}")))
    }

    /// Removes a flow.
    ///
    /// # Errors
    /// Unknown table, or unknown flow.
    pub fn remove(&mut self, table: &str, flow: &str) -> Result<TableFlow, NoSuchFlow> {
        let no = |what, name: &str| NoSuchFlow { what, name: name.to_owned() };
        let known = self.tables.iter_mut().find(|known| known.name == table);
        let known = known.ok_or_else(|| no("table", table))?;
        let removed = known.remove(flow).ok_or_else(|| no("flow", flow))?;
        self.version += 1;
        Ok(removed)
    }

    /// Increases with each change of any table. A step that keeps state for flows compares it to
    /// notice changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version of one table.
    pub fn version_of(&self, table: usize) -> u64 {
        self.tables.get(table).map_or(0, |table| table.version)
    }
}

impl IndexedTable {
    fn entry(&self, slot: usize) -> Option<&Entry> {
        self.slots.get(slot)?.as_ref()
    }

    fn at(&self, slot: usize) -> Option<FoundFlow<'_>> {
        let entry = self.entry(slot)?;
        let Entry { number, revision, .. } = *entry;
        Some(FoundFlow { flow: &entry.flow, number, revision, slot })
    }

    fn has_room_for_a_rate(&self, path: &str) -> Result<(), KeyFault> {
        if !self.shaped || self.rated < MAX_SHAPED {
            return Ok(());
        }
        let what = format!(
            "{MAX_SHAPED} flows of this table have a rate, which is what a shaper takes: take one \
             away first, or leave the rate out"
        );
        Err(KeyFault::at(path, what))
    }

    /// A free position after all flows, or immediately before the flow in this slot.
    fn position(&mut self, before: Option<usize>) -> u64 {
        if let Some(free) = self.free_position(before) {
            return free;
        }
        self.spread();
        self.free_position(before).unwrap_or(u64::MAX)
    }

    fn free_position(&self, before: Option<usize>) -> Option<u64> {
        let Some(next) = before.and_then(|slot| self.entry(slot)).map(|entry| entry.position)
        else {
            let last = self.order.last_key_value().map_or(0, |(last, _)| *last);
            return last.checked_add(STEP);
        };
        let previous = self.order.range(..next).next_back().map_or(0, |(previous, _)| *previous);
        let middle = previous + (next - previous) / 2;
        (middle > previous).then_some(middle)
    }

    /// Assigns new positions to all flows, [`STEP`] apart.
    fn spread(&mut self) {
        let slots: Vec<_> = self.order.values().copied().collect();
        self.order.clear();
        self.index = Index::default();
        for (position, slot) in (1..).map(|n: u64| n.saturating_mul(STEP)).zip(slots) {
            if let Some(entry) = self.slots.get_mut(slot).and_then(Option::as_mut) {
                entry.position = position;
                self.index.insert(&entry.rule, position, slot);
                self.order.insert(position, slot);
            }
        }
    }

    fn add(&mut self, flow: TableFlow, rule: MatchRule, before: Option<usize>) {
        let position = self.position(before);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let number = self.next;
        self.next += 1;
        self.version += 1;
        self.rated += usize::from(flow.rate.is_some());
        self.order.insert(position, slot);
        self.names.insert(flow.name.clone(), slot);
        self.index.insert(&rule, position, slot);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(Entry { number, position, revision: 0, flow, rule });
        }
    }

    fn replace(&mut self, flow: TableFlow, rule: MatchRule) -> Option<TableFlow> {
        let slot = *self.names.get(&flow.name)?;
        let entry = self.slots.get_mut(slot)?.as_mut()?;
        self.index.remove(&entry.rule, entry.position);
        self.index.insert(&rule, entry.position, slot);
        self.rated += usize::from(flow.rate.is_some());
        self.rated -= usize::from(entry.flow.rate.is_some());
        self.version += 1;
        entry.revision += 1;
        entry.rule = rule;
        Some(std::mem::replace(&mut entry.flow, flow))
    }

    fn remove(&mut self, name: &str) -> Option<TableFlow> {
        let slot = self.names.remove(name)?;
        let entry = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        self.order.remove(&entry.position);
        self.index.remove(&entry.rule, entry.position);
        self.version += 1;
        self.rated -= usize::from(entry.flow.rate.is_some());
        Some(entry.flow)
    }
}
