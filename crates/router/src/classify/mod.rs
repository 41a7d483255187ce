//! Classifiers: which class a packet belongs to. The first that matches wins.

mod table;

pub use table::{Found, NoSuchFlow, SHAPED_MAX, Tables};

use crate::packet::Packet;
use crate::policy::{Match, Name, Policy, Wrong};

/// Finds the first of several classes that a packet belongs to.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// By place of the class: what it matches.
    rules: Vec<(usize, Rule)>,
    /// The place of the class for all others.
    others: Option<usize>,
}

/// A [`Match`] with its names looked up.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    what: Match,
    interface: Option<usize>,
    table: Option<usize>,
}

impl Classifier {
    /// For these classes, in this order; `None` is the class of what belongs to no other, wherever it
    /// stands. `interfaces` are the router's, by their places.
    ///
    /// # Errors
    /// A class, table or interface that is not there, or two classes for all others.
    pub fn new(
        policy: &Policy,
        interfaces: &[Name],
        classes: &[Option<&str>],
        path: &str,
    ) -> Result<Classifier, Wrong> {
        let mut built = Classifier { rules: Vec::new(), others: None };
        for (place, class) in classes.iter().enumerate() {
            let Some(name) = class else {
                if built.others.replace(place).is_some() {
                    return Err(Wrong::at(path, "two classes for what belongs to no other"));
                }
                continue;
            };
            let Some(class) = policy.classes.get(*name) else {
                let what = format!("no class {name:?}: write one under [classes]");
                return Err(Wrong::at(path, what));
            };
            for (number, what) in class.matches.iter().enumerate() {
                let path = format!("classes.{name}.match[{number}]");
                built.rules.push((place, Rule::new(policy, interfaces, what, &path)?));
            }
        }
        Ok(built)
    }

    /// The place of the first class the packet belongs to.
    pub fn find(&self, packet: &Packet, tables: &Tables) -> Option<usize> {
        let found = self.rules.iter().find(|(_, rule)| rule.matches(packet, tables));
        found.map(|(place, _)| *place).or(self.others)
    }
}

impl Rule {
    pub(crate) fn new(
        policy: &Policy,
        interfaces: &[Name],
        what: &Match,
        path: &str,
    ) -> Result<Rule, Wrong> {
        let interface = what.interface.as_ref().map(|name| {
            let place = interfaces.iter().position(|interface| interface == name);
            place.ok_or_else(|| Wrong::at(format!("{path}.interface"), format!("no {name:?} here")))
        });
        let table = what.table.as_ref().map(|name| {
            let place = policy.tables.keys().position(|table| table == name);
            place.ok_or_else(|| Wrong::at(format!("{path}.table"), format!("no table {name:?}")))
        });
        let (interface, table) = (interface.transpose()?, table.transpose()?);
        Ok(Rule { what: what.clone(), interface, table })
    }

    pub(crate) fn matches(&self, packet: &Packet, tables: &Tables) -> bool {
        let (header, what) = (packet.header(), &self.what);
        let ports = |wanted: Option<crate::policy::Ports>, of: fn((u16, u16)) -> u16| {
            wanted.is_none_or(|wanted| header.ports.is_some_and(|ports| wanted.contains(of(ports))))
        };
        (what.dscp.is_empty() || what.dscp.contains(&header.dscp))
            && self.interface.is_none_or(|interface| interface == packet.interface)
            && what.source.is_none_or(|prefix| prefix.contains(header.source))
            && what.destination.is_none_or(|prefix| prefix.contains(header.destination))
            && what.protocol.is_none_or(|protocol| protocol.0 == header.protocol)
            && ports(what.source_port, |ports| ports.0)
            && ports(what.destination_port, |ports| ports.1)
            && self.table.is_none_or(|table| tables.find(table, packet).is_some())
    }
}
