//! Reads an exported configuration back, and compares.

use super::normal::normal;
use super::{InterfaceNames, key};
use crate::ios::import;
use router::policy::{KeyFault, RouterPolicy};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of the policy that the text does not have as they are. `owners` has the part of each
/// policy map.
pub(super) fn read_back(
    policy: &RouterPolicy,
    names: &InterfaceNames,
    text: &str,
    owners: &BTreeMap<String, String>,
) -> Vec<KeyFault> {
    let read = match import("the configuration", text) {
        Ok(read) => read,
        // Too long, or too much work: it has too many classes, or too large ones.
        Err(not) => {
            return vec![KeyFault::at("classes", format!("not read back: {}", not.what))];
        }
    };
    if !read.unmapped.is_empty() {
        let fault = |one: &crate::ios::Unmapped| {
            let owner = owner_of(text, one.line, owners);
            KeyFault::at(owner, format!("IOS does it otherwise: {}: {}", one.text, one.reason))
        };
        return read.unmapped.iter().map(fault).collect();
    }
    let (ours, theirs) = (normal(&names.in_ios(policy)), normal(&read.policy));
    let mut faults = Vec::new();
    differing("classes", &ours.classes, &theirs.classes, &mut faults);
    differing("chains", &ours.chains, &theirs.chains, &mut faults);
    differing("queueings", &ours.queueings, &theirs.queueings, &mut faults);
    differing("interfaces", &ours.interfaces, &theirs.interfaces, &mut faults);
    faults
}

fn differing<T: PartialEq>(
    table: &str,
    ours: &BTreeMap<String, T>,
    theirs: &BTreeMap<String, T>,
    into: &mut Vec<KeyFault>,
) {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name)) {
        let what = "IOS has it in part only: it is read back as something else";
        into.push(KeyFault::at(key(table, name), what));
    }
}

/// The part of the policy that a line of the text is from.
fn owner_of(text: &str, line: usize, owners: &BTreeMap<String, String>) -> String {
    let before: Vec<&str> = text.lines().take(line).collect();
    let name = |line: &str| line.split_whitespace().last().map(str::to_owned);
    let map = before.iter().rev().find_map(|line| {
        let owner = owners.get(&name(line.strip_prefix("policy-map ")?)?)?;
        Some(owner.clone())
    });
    map.unwrap_or_else(|| "classes".to_owned())
}
