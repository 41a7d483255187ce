//! Tables of flows that change while the router runs (the Bern study's `dstable`).

use super::Rule;
use super::index::Index;
use crate::packet::Packet;
use crate::policy::{Flow, Name, Policy, Step, Wrong};
use std::collections::BTreeMap;

/// Flows with a rate that a table may have where a `shape-flows` step shapes it.
pub const SHAPED_MAX: usize = 256;

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
    /// By number, which is their order.
    order: BTreeMap<u64, usize>,
    names: BTreeMap<Name, usize>,
    index: Index,
    next: u64,
    version: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    number: u64,
    flow: Flow,
    rule: Rule,
}

/// A flow of a table.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// What is agreed for it.
    pub flow: &'a Flow,
    /// Its number: flows stand in its order, and none is given twice in a table.
    pub number: u64,
    /// Where it stands: small, and given anew when the flow is taken away.
    pub slot: usize,
    pub(crate) rule: &'a Rule,
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
        let looks = |slot| table.at(slot).is_some_and(|is| is.rule.matches(packet, self));
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
    /// or a table; a burst of nothing; or it is one flow with a rate more than a shaper takes.
    pub fn add(&mut self, table: &str, flow: Flow) -> Result<(), Wrong> {
        let path = format!("tables.{table}.{}", flow.name);
        if flow.matches.table.is_some() {
            return Err(Wrong::at(path, "a flow cannot refer to a table"));
        }
        if flow.burst.is_some_and(|burst| burst.0 == 0) {
            return Err(Wrong::at(path, "a burst of 0 octets lets nothing pass"));
        }
        let rule = Rule::new(&Policy::default(), &self.interfaces, &flow.matches, &path)?;
        let Some(known) = self.tables.iter_mut().find(|known| known.name == table) else {
            return Err(Wrong::at(path, format!("no table {table:?}")));
        };
        if known.names.contains_key(&flow.name) {
            return Err(Wrong::at(path, "a flow of this name is there already"));
        }
        if known.shaped && flow.rate.is_some() && known.rated >= SHAPED_MAX {
            let what = format!(
                "{SHAPED_MAX} flows of this table have a rate, which is what a shaper takes: take \
                 one away first, or leave the rate out"
            );
            return Err(Wrong::at(path, what));
        }
        known.add(flow, rule);
        self.version += 1;
        Ok(())
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
    fn at(&self, slot: usize) -> Option<Found<'_>> {
        let entry = self.slots.get(slot)?.as_ref()?;
        Some(Found { flow: &entry.flow, number: entry.number, slot, rule: &entry.rule })
    }

    fn add(&mut self, flow: Flow, rule: Rule) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let number = self.next;
        self.next += 1;
        self.version += 1;
        self.rated += usize::from(flow.rate.is_some());
        self.order.insert(number, slot);
        self.names.insert(flow.name.clone(), slot);
        self.index.insert(&rule, number, slot);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(Entry { number, flow, rule });
        }
    }

    fn remove(&mut self, name: &str) -> Option<Flow> {
        let slot = self.names.remove(name)?;
        let entry = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        self.order.remove(&entry.number);
        self.index.remove(&entry.rule, entry.number);
        self.version += 1;
        self.rated -= usize::from(entry.flow.rate.is_some());
        Some(entry.flow)
    }
}
