//! Tables of flows that change while the router runs (the Bern study's `dstable`).

use super::Rule;
use super::index::Index;
use crate::packet::Packet;
use crate::policy::{Flow, Name, Policy, Step, Wrong};
use std::collections::BTreeMap;

/// Flows with a rate that a table may have where a `shape-flows` step shapes it.
pub const MAX_SHAPED: usize = 256;

/// How far apart flows are placed, so that there is room for others between them.
const STEP: u64 = 1 << 32;

/// All tables of a router, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: Vec<Table>,
    interfaces: Vec<Name>,
    version: u64,
}

#[derive(Clone, Debug)]
struct Table {
    name: Name,
    /// Whether some step shapes its flows.
    shaped: bool,
    /// Flows with a rate.
    rated: usize,
    slots: Vec<Option<Entry>>,
    /// Slots that are free.
    free: Vec<usize>,
    /// The slots by position, which is their order.
    order: BTreeMap<u64, usize>,
    names: BTreeMap<Name, usize>,
    index: Index,
    /// The number of the next flow.
    next: u64,
    version: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    position: u64,
    revision: u64,
    flow: Flow,
    rule: Rule,
}

/// A flow of a table.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// What is agreed for it.
    pub flow: &'a Flow,
    /// Its number: none is given twice in a table.
    pub number: u64,
    /// Another one after each time it was replaced.
    pub revision: u64,
    /// Where it stands: small, and given anew when the flow is taken away.
    pub slot: usize,
}

/// There is no such table, or no such flow in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} {name:?}")]
pub struct NoSuchFlow {
    what: &'static str,
    name: Name,
}

impl Tables {
    /// The tables of a policy as they are at the start.
    ///
    /// # Errors
    /// What [`Tables::add`] refuses.
    pub fn new(policy: &Policy, interfaces: &[Name]) -> Result<Tables, Wrong> {
        let mut built = Tables { tables: Vec::new(), interfaces: interfaces.to_vec(), version: 0 };
        for (name, table) in &policy.tables {
            let shapes =
                |step: &Step| matches!(step, Step::ShapeFlows { table, .. } if table == name);
            built.tables.push(Table {
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

    /// The names of all tables, in the order of their places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// The place of a table, for [`Tables::find`].
    pub fn place(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|known| known.name == table)
    }

    /// The first flow of this table that the packet belongs to.
    pub fn find(&self, table: usize, packet: &Packet) -> Option<&Flow> {
        self.look_up(table, packet).map(|found| found.flow)
    }

    /// The same, with where it stands.
    #[inline]
    pub fn look_up(&self, table: usize, packet: &Packet) -> Option<Found<'_>> {
        let table = self.tables.get(table)?;
        let looks = |slot| table.entry(slot).is_some_and(|is| is.rule.matches(packet, self));
        table.at(table.index.find(packet, looks)?)
    }

    /// The flow of this name.
    pub fn named(&self, table: usize, name: &str) -> Option<Found<'_>> {
        let table = self.tables.get(table)?;
        table.at(*table.names.get(name)?)
    }

    /// The flow in this slot.
    pub fn at(&self, table: usize, slot: usize) -> Option<Found<'_>> {
        self.tables.get(table)?.at(slot)
    }

    /// The flows of a table, in their order; empty where there is no such table.
    pub fn flows(&self, table: usize) -> impl Iterator<Item = &Flow> {
        let table = self.tables.get(table).into_iter();
        table.flat_map(|table| {
            table.order.values().filter_map(|slot| table.at(*slot).map(|found| found.flow))
        })
    }

    /// Adds a flow behind all others of its table.
    ///
    /// # Errors
    /// No such table; a flow of this name is there already; it names an interface that is not there,
    /// or a table; nothing can match it; a burst of nothing; or it is one flow with a rate more than
    /// a shaper takes.
    pub fn add(&mut self, table: &str, flow: Flow) -> Result<(), Wrong> {
        self.put(table, flow, None)
    }

    /// Adds a flow right before another one of its table.
    ///
    /// # Errors
    /// As with [`Tables::add`]; or the other is not there.
    pub fn add_before(&mut self, table: &str, flow: Flow, other: &str) -> Result<(), Wrong> {
        self.put(table, flow, Some(other))
    }

    fn put(&mut self, table: &str, flow: Flow, before: Option<&str>) -> Result<(), Wrong> {
        let (path, rule) = self.check(table, &flow)?;
        let known = self.known(table, &path)?;
        if known.names.contains_key(&flow.name) {
            return Err(Wrong::at(path, "a flow of this name is there already"));
        }
        if flow.rate.is_some() {
            known.has_room_for_a_rate(&path)?;
        }
        let before = match before {
            None => None,
            Some(name) => match known.names.get(name) {
                Some(slot) => Some(*slot),
                None => return Err(Wrong::at(path, format!("no flow {name:?} to stand before"))),
            },
        };
        known.add(flow, rule, before);
        self.version += 1;
        Ok(())
    }

    /// Puts a flow in the place of the one of its name: who keeps state for it goes on with that, at
    /// the new rate and burst. Gives back the old one.
    ///
    /// # Errors
    /// As with [`Tables::add`], but that there must be one of this name.
    pub fn replace(&mut self, table: &str, flow: Flow) -> Result<Flow, Wrong> {
        let (path, rule) = self.check(table, &flow)?;
        let known = self.known(table, &path)?;
        let had = known.names.get(&flow.name).and_then(|slot| known.at(*slot));
        let Some(had) = had.map(|found| found.flow.rate.is_some()) else {
            return Err(Wrong::at(path, "no flow of this name to replace: add it"));
        };
        if flow.rate.is_some() && !had {
            known.has_room_for_a_rate(&path)?;
        }
        let old = known.replace(flow, rule);
        let old = old.ok_or_else(|| Wrong::at(path, "no flow of this name to replace: add it"))?;
        self.version += 1;
        Ok(old)
    }

    /// A flow's path and rule, if it may stand in a table.
    fn check(&self, table: &str, flow: &Flow) -> Result<(String, Rule), Wrong> {
        let path = format!("tables.{table}.{}", flow.name);
        if flow.matches.table.is_some() {
            return Err(Wrong::at(path, "a flow cannot refer to a table"));
        }
        if flow.burst.is_some_and(|burst| burst.0 == 0) {
            return Err(Wrong::at(path, "a burst of 0 octets lets nothing pass"));
        }
        let rule = Rule::new(&Policy::default(), &self.interfaces, &flow.matches, &path)?;
        Ok((path, rule))
    }

    fn known(&mut self, table: &str, path: &str) -> Result<&mut Table, Wrong> {
        let known = self.tables.iter_mut().find(|known| known.name == table);
        known.ok_or_else(|| Wrong::at(path, format!("no table {table:?}")))
    }

    /// Takes a flow away.
    ///
    /// # Errors
    /// There is none of this name, or no such table.
    pub fn remove(&mut self, table: &str, flow: &str) -> Result<Flow, NoSuchFlow> {
        let no = |what, name: &str| NoSuchFlow { what, name: name.to_owned() };
        let known = self.tables.iter_mut().find(|known| known.name == table);
        let known = known.ok_or_else(|| no("table", table))?;
        let removed = known.remove(flow).ok_or_else(|| no("flow", flow))?;
        self.version += 1;
        Ok(removed)
    }

    /// Grows with each change, so that who keeps state by flow knows when to look again.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same for one table alone.
    pub fn version_of(&self, table: usize) -> u64 {
        self.tables.get(table).map_or(0, |table| table.version)
    }
}

impl Table {
    fn entry(&self, slot: usize) -> Option<&Entry> {
        self.slots.get(slot)?.as_ref()
    }

    fn at(&self, slot: usize) -> Option<Found<'_>> {
        let entry = self.entry(slot)?;
        let Entry { number, revision, .. } = *entry;
        Some(Found { flow: &entry.flow, number, revision, slot })
    }

    fn has_room_for_a_rate(&self, path: &str) -> Result<(), Wrong> {
        if !self.shaped || self.rated < MAX_SHAPED {
            return Ok(());
        }
        let what = format!(
            "{MAX_SHAPED} flows of this table have a rate, which is what a shaper takes: take one \
             away first, or leave the rate out"
        );
        Err(Wrong::at(path, what))
    }

    /// A free position behind all flows, or right before the one in this slot.
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

    /// Places all flows anew, with room between them.
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

    fn add(&mut self, flow: Flow, rule: Rule, before: Option<usize>) {
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

    fn replace(&mut self, flow: Flow, rule: Rule) -> Option<Flow> {
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

    fn remove(&mut self, name: &str) -> Option<Flow> {
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
