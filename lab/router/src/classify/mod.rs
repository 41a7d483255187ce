//! Classifiers (RFC 2475 2.3.1): they assign a packet to a class. The first class that matches
//! applies.

mod index;
mod key_map;
mod table;

pub use table::{FlowTables, FoundFlow, MAX_SHAPED, NoSuchFlow};

use crate::packet::Packet;
use crate::policy::{KeyFault, Match, Name, RouterPolicy};
use index::Index;

/// Up to this number of rules, a linear search is faster than the index.
const FEW: usize = 4;

/// Finds the first of several classes that a packet matches.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// The match rules, each with the position of its class.
    rules: Vec<(usize, MatchRule)>,
    finder: Finder,
    /// The position of the class for all other packets.
    others: Option<usize>,
}

/// How the first matching rule is found.
#[derive(Clone, Debug)]
enum Finder {
    /// By the code point alone (behaviour aggregate classifier): the position of the class for each
    /// DSCP.
    Aggregate(Box<[Option<usize>; 64]>),
    /// Linear search.
    Few,
    /// By the fields that the rules test.
    Index(Index),
}

/// A [`Match`] whose interface and table are resolved to positions.
#[derive(Clone, Debug)]
pub(crate) struct MatchRule {
    what: Match,
    interface: Option<usize>,
    table: Option<usize>,
}

impl Classifier {
    /// A classifier for these classes, in this order. `None` is the class of the packets that match
    /// no other class; its position does not matter. `interfaces` are the router's interfaces, by
    /// position.
    ///
    /// # Errors
    /// An unknown class, table or interface; two classes for all other packets; a rule that no
    /// packet can match.
    pub fn new(
        policy: &RouterPolicy,
        interfaces: &[Name],
        classes: &[Option<&str>],
        path: &str,
    ) -> Result<Classifier, KeyFault> {
        let (mut rules, mut others) = (Vec::new(), None);
        for (place, class) in classes.iter().enumerate() {
            let Some(name) = class else {
                if others.replace(place).is_some() {
                    return Err(KeyFault::at(path, "two classes for what belongs to no other"));
                }
                continue;
            };
            let Some(class) = policy.classes.get(*name) else {
                let what = format!("no class {name:?}: write one under [classes]");
                return Err(KeyFault::at(path, what));
            };
            for (number, what) in class.matches.iter().enumerate() {
                let path = format!("classes.{name}.match[{number}]");
                rules.push((place, MatchRule::new(policy, interfaces, what, &path)?));
            }
        }
        Ok(Classifier { finder: Finder::new(&rules), rules, others })
    }

    /// The position of the first class that the packet matches.
    #[inline]
    pub fn find(&self, packet: &Packet, tables: &FlowTables) -> Option<usize> {
        let found = match &self.finder {
            Finder::Aggregate(places) => {
                places.get(usize::from(packet.dscp().number())).copied().flatten()
            }
            Finder::Few => {
                let found = self.rules.iter().find(|(_, rule)| rule.matches(packet, tables));
                found.map(|(place, _)| *place)
            }
            Finder::Index(index) => {
                let rule = |number: usize| self.rules.get(number);
                let looks = |number| rule(number).is_some_and(|(_, is)| is.matches(packet, tables));
                index.find(packet, looks).and_then(rule).map(|(place, _)| *place)
            }
        };
        found.or(self.others)
    }
}

impl Finder {
    fn new(rules: &[(usize, MatchRule)]) -> Finder {
        if rules.iter().all(|(_, rule)| rule.looks_at_dscp_alone()) {
            let mut places = Box::new([None; 64]);
            for (point, found) in places.iter_mut().enumerate() {
                let mut rules = rules.iter();
                *found = rules.find(|(_, rule)| rule.takes_dscp(point)).map(|(place, _)| *place);
            }
            return Finder::Aggregate(places);
        }
        if rules.len() <= FEW {
            return Finder::Few;
        }
        let mut index = Index::default();
        for (number, (_, rule)) in rules.iter().enumerate() {
            index.insert(rule, number as u64, number);
        }
        Finder::Index(index)
    }
}

impl MatchRule {
    pub(crate) fn new(
        policy: &RouterPolicy,
        interfaces: &[Name],
        what: &Match,
        path: &str,
    ) -> Result<MatchRule, KeyFault> {
        what.check(path)?;
        let interface = what.interface.as_ref().map(|name| {
            let place = interfaces.iter().position(|interface| interface == name);
            place.ok_or_else(|| {
                KeyFault::at(format!("{path}.interface"), format!("no {name:?} here"))
            })
        });
        let table = what.table.as_ref().map(|name| {
            let place = policy.tables.keys().position(|table| table == name);
            place.ok_or_else(|| KeyFault::at(format!("{path}.table"), format!("no table {name:?}")))
        });
        let (interface, table) = (interface.transpose()?, table.transpose()?);
        Ok(MatchRule { what: what.clone(), interface, table })
    }

    fn looks_at_dscp_alone(&self) -> bool {
        self.what == Match { dscp: self.what.dscp.clone(), ..Match::default() }
    }

    fn takes_dscp(&self, point: usize) -> bool {
        let dscp = &self.what.dscp;
        dscp.is_empty() || dscp.iter().any(|of| usize::from(of.number()) == point)
    }

    /// Whether the packet matches, field by field. All finders must agree with this definition.
    pub(crate) fn matches(&self, packet: &Packet, tables: &FlowTables) -> bool {
        let (header, what) = (packet.header(), &self.what);
        let ports = |wanted: Option<crate::policy::PortRange>, of: fn((u16, u16)) -> u16| {
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

#[cfg(test)]
mod tests;
