//! Tables of flows that change while the router runs (the Bern study's `dstable`).

use super::Rule;
use crate::packet::Packet;
use crate::policy::{Flow, Name, Policy, Wrong};

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
    flows: Vec<(Flow, Rule)>,
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
    /// A flow that names an interface that is not there, or a table, or stands there twice.
    pub fn new(policy: &Policy, interfaces: &[Name]) -> Result<Tables, Wrong> {
        let mut built = Tables { tables: Vec::new(), interfaces: interfaces.to_vec(), version: 0 };
        for (name, table) in &policy.tables {
            built.tables.push(Table { name: name.clone(), flows: Vec::new() });
            for flow in &table.flows {
                built.add(name, flow.clone())?;
            }
        }
        Ok(built)
    }

    /// The place of a table, for [`Tables::find`].
    pub fn place(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|known| known.name == table)
    }

    /// The first flow of this table that the packet belongs to.
    pub fn find(&self, table: usize, packet: &Packet) -> Option<&Flow> {
        let flows = &self.tables.get(table)?.flows;
        flows.iter().find(|(_, rule)| rule.matches(packet, self)).map(|(flow, _)| flow)
    }

    /// The flows of a table, in their order; empty where there is no such table.
    pub fn flows(&self, table: usize) -> impl Iterator<Item = &Flow> {
        self.tables.get(table).into_iter().flat_map(|table| &table.flows).map(|(flow, _)| flow)
    }

    /// Adds a flow behind all others of its table.
    ///
    /// # Errors
    /// No such table; a flow of this name is there already; or it names what is not there.
    pub fn add(&mut self, table: &str, flow: Flow) -> Result<(), Wrong> {
        let path = format!("tables.{table}.{}", flow.name);
        if flow.matches.table.is_some() {
            return Err(Wrong::at(path, "a flow cannot refer to a table"));
        }
        let rule = Rule::new(&Policy::default(), &self.interfaces, &flow.matches, &path)?;
        let Some(known) = self.tables.iter_mut().find(|known| known.name == table) else {
            return Err(Wrong::at(path, format!("no table {table:?}")));
        };
        if known.flows.iter().any(|(other, _)| other.name == flow.name) {
            return Err(Wrong::at(path, "a flow of this name is there already"));
        }
        known.flows.push((flow, rule));
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
        let place = known.flows.iter().position(|(other, _)| other.name == flow);
        let place = place.ok_or_else(|| no("flow", flow))?;
        self.version += 1;
        Ok(known.flows.remove(place).0)
    }

    /// Grows with each change, so that who keeps state by flow knows when to look again.
    pub fn version(&self) -> u64 {
        self.version
    }
}
