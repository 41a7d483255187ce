//! The names of interfaces in IOS for the ports of a policy.

use super::super::ports::plain;
use router::policy::{Name, RouterPolicy};
use std::collections::{BTreeMap, BTreeSet};

/// A port of the policy and the interface that it is in IOS: `wan=Serial0/0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name in the policy.
    pub port: String,
    /// The name in IOS, without blanks.
    pub interface: String,
}

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let (port, interface) = text
            .split_once('=')
            .ok_or("a port and its interface, as in wan=Serial0/0".to_owned())?;
        let interface: String = interface.split_whitespace().collect();
        if let Some(what) = super::refused_name(&interface, &[]) {
            return Err(format!("{interface:?}: {what}"));
        }
        Ok(Named { port: port.to_owned(), interface })
    }
}

/// The names of the interfaces in IOS.
#[derive(Clone, Debug, Default)]
pub struct InterfaceNames {
    by_port: BTreeMap<String, String>,
}

impl InterfaceNames {
    /// The names for the ports of a policy. Ports without one keep their own.
    ///
    /// # Errors
    /// A port that the policy does not have, a port with two names, or one name for two ports.
    pub fn new(policy: &RouterPolicy, named: &[Named]) -> Result<InterfaceNames, String> {
        let ports = of_policy(policy);
        let mut names = InterfaceNames::default();
        for Named { port, interface } in named {
            if !ports.contains(port) {
                let known: Vec<&str> = ports.iter().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(format!(
                    "no interface {port} in it; it has: {known} (write PORT=IOS-NAME)"
                ));
            }
            if names.by_port.insert(port.clone(), interface.clone()).is_some() {
                return Err(format!("{port} is given two names"));
            }
        }
        let mut taken: BTreeMap<String, &Name> = BTreeMap::new();
        for port in &ports {
            if let Some(other) = taken.insert(plain(&names.name_in_ios(port)), port) {
                return Err(format!(
                    "{other} and {port} cannot both be {}",
                    names.name_in_ios(port)
                ));
            }
        }
        Ok(names)
    }

    /// The name in IOS of a port.
    pub fn name_in_ios(&self, port: &str) -> String {
        self.by_port.get(port).cloned().unwrap_or_else(|| port.to_owned())
    }

    /// Ports whose names are not those of interfaces in IOS, such as `Serial0/0`.
    pub fn unnamed(&self, policy: &RouterPolicy) -> Vec<String> {
        let is_ios = |port: &String| {
            let name = self.name_in_ios(port);
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.ends_with(|c: char| c.is_ascii_digit())
        };
        of_policy(policy).into_iter().filter(|port| port != "*" && !is_ios(port)).collect()
    }

    /// The policy with the names of IOS.
    pub(super) fn in_ios(&self, policy: &RouterPolicy) -> RouterPolicy {
        let mut policy = policy.clone();
        let attached = std::mem::take(&mut policy.interfaces);
        policy.interfaces =
            attached.into_iter().map(|(port, of)| (self.name_in_ios(&port), of)).collect();
        for of in policy.classes.values_mut().flat_map(|class| &mut class.matches) {
            of.interface = of.interface.take().map(|port| self.name_in_ios(&port));
        }
        policy
    }
}

/// The interfaces that a policy has, also those that only matches name.
pub(super) fn of_policy(policy: &RouterPolicy) -> BTreeSet<Name> {
    let classes = policy.classes.values().flat_map(|class| &class.matches);
    let flows = policy.tables.values().flat_map(|table| &table.flows);
    let matches = classes.chain(flows.map(|flow| &flow.matches));
    let named = matches.filter_map(|of| of.interface.clone());
    policy.interfaces.keys().cloned().chain(named).collect()
}
