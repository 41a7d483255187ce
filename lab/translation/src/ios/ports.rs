//! The ports of a router that represent the interfaces of a configuration.

use super::Imported;
use router::policy::{Match, RouterPolicy};
use std::collections::BTreeMap;

/// The longest name of a port, in octets.
const MAX_PORT_NAME: usize = 15;

/// An interface of the configuration and the port that represents it: `Ethernet0/1=wan`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name in IOS; case and blanks do not matter.
    pub interface: String,
    /// The name in a topology: 1 to 15 ASCII letters, digits, `-` and `_`.
    pub port: String,
}

impl std::str::FromStr for Renamed {
    type Err = String;

    fn from_str(text: &str) -> Result<Renamed, String> {
        let parts = text.split_once('=').filter(|(interface, _)| !plain(interface).is_empty());
        let (interface, port) =
            parts.ok_or("an interface and its port, as in Ethernet0/1=wan".to_owned())?;
        if !is_port(port) {
            return Err(format!(
                "invalid port name {port:?}: 1 to {MAX_PORT_NAME} letters, digits, - and _"
            ));
        }
        Ok(Renamed { interface: interface.to_owned(), port: port.to_owned() })
    }
}

/// Whether a port of a topology can have this name.
fn is_port(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=MAX_PORT_NAME).contains(&name.len()) && name.chars().all(good)
}

pub(super) fn plain(name: &str) -> String {
    name.split_whitespace().collect::<String>().to_ascii_lowercase()
}

/// All interface names in the matches of a policy.
fn named(policy: &mut RouterPolicy) -> impl Iterator<Item = &mut String> {
    let classes = policy.classes.values_mut().flat_map(|class| &mut class.matches);
    let flows = policy.tables.values_mut().flat_map(|table| &mut table.flows);
    let all = classes.chain(flows.map(|flow| &mut flow.matches));
    all.filter_map(|of: &mut Match| of.interface.as_mut())
}

impl Imported {
    /// Replaces interfaces by ports: in attachments, and in matches of the input interface.
    ///
    /// # Errors
    /// An interface that the configuration does not have, an interface with two ports, or a port of
    /// two interfaces.
    pub fn rename(&mut self, renamed: &[Renamed]) -> Result<(), String> {
        let mut ports: BTreeMap<String, String> = BTreeMap::new();
        for Renamed { interface, port } in renamed {
            let here = self.interfaces.iter().any(|known| plain(known) == plain(interface));
            if !here {
                let known: Vec<&str> = self.interfaces.iter().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(format!("no interface {interface} in it; it has: {known}"));
            }
            if ports.values().any(|other| other == port) {
                return Err(format!("two interfaces cannot both be the port {port}"));
            }
            if ports.insert(plain(interface), port.clone()).is_some() {
                return Err(format!("{interface} is given two ports"));
            }
        }
        let kept = |name: &&String| !ports.contains_key(&plain(name));
        if let Some(same) =
            self.interfaces.iter().filter(kept).find(|name| ports.values().any(|p| p == *name))
        {
            return Err(format!("{same} is another interface: give it a port of its own"));
        }
        let new = |name: &String| ports.get(&plain(name)).unwrap_or(name).clone();
        let attached = std::mem::take(&mut self.policy.interfaces);
        self.policy.interfaces = attached.into_iter().map(|(name, of)| (new(&name), of)).collect();
        named(&mut self.policy).for_each(|name| *name = new(name));
        self.interfaces = self.interfaces.iter().map(new).collect();
        Ok(())
    }

    /// Interfaces of the policy whose names no port can have. They need ports
    /// ([`Imported::rename`]) before a router can use the policy.
    pub fn without_port(&mut self) -> Vec<String> {
        let mut names: Vec<String> = self.policy.interfaces.keys().cloned().collect();
        names.extend(named(&mut self.policy).map(|name| name.clone()));
        names.retain(|name| !is_port(name));
        names.sort();
        names.dedup();
        names
    }
}
