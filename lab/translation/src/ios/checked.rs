//! Leaves out and lists the parts of the policy that a router would refuse, so that the result can
//! be used.

use super::Notes;
use super::read::IosConfig;
use router::policy::{KeyFault, Name, RouterPolicy};
use router::{Classifier, FlowTables, condition, queueing};

/// Removes the parts with which no router of these interfaces can be built.
pub(super) fn leave_out_refused(
    policy: &mut RouterPolicy,
    interfaces: &[Name],
    config: &IosConfig,
    notes: &mut Notes,
) {
    let mut refused = |name: &str, wrong: KeyFault| {
        let help = match wrong.what.contains("what is shared is not known") {
            true => "; in IOS: give the interface a bandwidth, or shape above",
            false => "",
        };
        let reason = format!("left out, a router would refuse it: {wrong}{help}");
        notes.add(line_of(config, name), reason);
    };
    // In the order of references: classes, then the parts that use them.
    for name in policy.classes.keys().cloned().collect::<Vec<_>>() {
        let path = format!("classes.{name}");
        if let Err(wrong) = Classifier::new(policy, interfaces, &[Some(&name)], &path) {
            policy.classes.remove(&name);
            refused(&name, wrong);
        }
    }
    for name in policy.tables.keys().cloned().collect::<Vec<_>>() {
        let tables = policy.tables.get_key_value(&name);
        let tables = tables.map(|(name, table)| (name.clone(), table.clone())).into_iter();
        let alone = RouterPolicy { tables: tables.collect(), ..RouterPolicy::default() };
        if let Err(wrong) = FlowTables::new(&alone, interfaces) {
            policy.tables.remove(&name);
            refused(&name, wrong);
        }
    }
    for (name, steps) in policy.chains.clone() {
        let path = format!("chains.{name}");
        if let Err(wrong) = condition::build(policy, interfaces, &steps, &path) {
            policy.chains.remove(&name);
            refused(&name, wrong);
        }
    }
    for (name, of) in policy.queueings.clone() {
        let path = format!("queueings.{name}");
        if let Err(wrong) = queueing::build(policy, interfaces, &of, &path, 0) {
            policy.queueings.remove(&name);
            refused(&name, wrong);
        }
    }
    let (chains, queueings) = (&policy.chains, &policy.queueings);
    for attached in policy.interfaces.values_mut() {
        attached.input.retain(|name| chains.contains_key(name));
        attached.output.retain(|name| chains.contains_key(name));
        attached.queueing.take_if(|name| !queueings.contains_key(name));
    }
}

/// The line of the map from which a part was made. The part has the map's name, or begins with it
/// (`MAP/CLASS`, `MAP@INTERFACE`).
fn line_of(config: &IosConfig, name: &str) -> usize {
    let line = |name: &str| {
        let policy = config.policies.get(name).map(|map| map.line);
        policy.or_else(|| config.classes.get(name).map(|map| map.line))
    };
    let mut parts = name.match_indices(['/', '@']).filter_map(|(at, _)| name.get(..at));
    line(name).or_else(|| parts.find_map(line)).unwrap_or(1)
}
