//! The steps of a chain (RFC 2475 2.3.1): markers, meters with an action for each colour, demotion,
//! shapers.

mod demote;
mod first_match;
mod mark;
mod meter;
mod per_flow;
mod queue;
mod shape;
mod shape_flows;

use crate::classify::{Classifier, Tables};
use crate::conditioner::Conditioner;
use crate::count::Counters;
use crate::packet::Packet;
use crate::policy::{Action, Flow, Meter, Name, Policy, Step, Wrong};
use crate::time::{Rate, SECOND};
use dscp::Dscp;

/// Nested `first-match` steps, at most.
const MAX_DEPTH: usize = 8;

/// Builds the steps of a chain, in their order. `path` names the chain in messages: `chains.edge`.
///
/// # Errors
/// An unknown class or table, or a number out of its range; with the path of the key.
pub fn build(
    policy: &Policy,
    interfaces: &[Name],
    steps: &[Step],
    path: &str,
) -> Result<Vec<Box<dyn Conditioner>>, Wrong> {
    self::steps(Place { policy, interfaces, depth: 0 }, steps, path)
}

/// The context of a step while it is built.
#[derive(Clone, Copy)]
struct Place<'a> {
    policy: &'a Policy,
    interfaces: &'a [Name],
    /// Number of `first-match` steps around this one.
    depth: usize,
}

impl Place<'_> {
    fn inside(self) -> Self {
        Place { depth: self.depth + 1, ..self }
    }
}

fn steps(at: Place<'_>, steps: &[Step], path: &str) -> Result<Vec<Box<dyn Conditioner>>, Wrong> {
    if at.depth > MAX_DEPTH {
        let what = format!("more than {MAX_DEPTH} first-match steps inside one another");
        return Err(Wrong::at(path, what));
    }
    let steps = steps.iter().enumerate();
    steps.map(|(n, step)| one(at, step, &format!("{path}[{n}]"))).collect()
}

fn one(at: Place<'_>, step: &Step, path: &str) -> Result<Box<dyn Conditioner>, Wrong> {
    let Place { policy, interfaces, depth } = at;
    if depth > 0 && matches!(step, Step::Shape { .. } | Step::ShapeFlows { .. }) {
        let what =
            "no shaper can stand in a first-match step: let it follow as a step of the chain";
        return Err(Wrong::at(path, what));
    }
    let class = |class: &Option<Name>| Selector::new(policy, interfaces, class.as_deref(), path);
    let table = |name: &Name| {
        let place = policy.tables.keys().position(|known| known == name);
        let what = || format!("no table {name:?}: write one under [tables]");
        place.ok_or_else(|| Wrong::at(format!("{path}.table"), what()))
    };
    Ok(match step {
        Step::Mark { class: of, dscp } => Box::new(mark::Mark::new(class(of)?, *dscp)),
        Step::Drop { class: of } => Box::new(mark::Drop::new(class(of)?)),
        Step::Meter { class: of, meter, green, yellow, red } => {
            if matches!(meter, Meter::TokenBucket { .. }) && *yellow != Action::Pass {
                let what = "a token bucket finds nothing yellow, only green and red: leave it out, or \
                            take a meter of kind single-rate or two-rate";
                return Err(Wrong::at(format!("{path}.yellow"), what));
            }
            let meter = crate::meter::Meter::new(meter, &format!("{path}.meter"))?;
            Box::new(meter::Metered::new(class(of)?, meter, [*green, *yellow, *red]))
        }
        Step::Demote(demotion) => Box::new(demote::Demote::new(demotion, path)?),
        Step::MarkFlows { table: of } => Box::new(mark::MarkFlows::new(table(of)?)),
        Step::MeterFlows { table: of, green, red } => {
            Box::new(meter::MeterFlows::new(table(of)?, [*green, *red]))
        }
        Step::ShapeFlows { table: of, delay, limit } => {
            Box::new(shape_flows::ShapeFlows::new(policy, table(of)?, *delay, *limit, path)?)
        }
        Step::Shape { class: of, rate, burst, limit } => {
            Box::new(shape::Shape::new(class(of)?, *rate, *burst, *limit, path)?)
        }
        Step::FirstMatch { classes } => Box::new(first_match::FirstMatch::new(classes, at, path)?),
    })
}

/// The packets that a step applies to: those of a class, or all.
#[derive(Debug)]
struct Selector(Option<Classifier>);

impl Selector {
    fn new(
        policy: &Policy,
        interfaces: &[Name],
        class: Option<&str>,
        path: &str,
    ) -> Result<Selector, Wrong> {
        let Some(class) = class else {
            return Ok(Selector(None));
        };
        let path = format!("{path}.class");
        Classifier::new(policy, interfaces, &[Some(class)], &path).map(|is| Selector(Some(is)))
    }

    fn takes(&self, packet: &Packet, tables: &Tables) -> bool {
        self.0.as_ref().is_none_or(|class| class.find(packet, tables).is_some())
    }
}

/// Sets the DSCP of a packet, and counts a change. It removes the colour of earlier meters: from
/// here on, the code point gives the drop precedence.
fn mark(counters: &mut Counters, packet: &mut Packet, dscp: Dscp) {
    packet.colour = None;
    if packet.set_dscp(dscp) {
        counters.marked(dscp);
    }
}

/// Rate, and burst in octets, of a flow that has a rate.
fn profile(flow: &Flow) -> Option<(Rate, u64)> {
    let rate = flow.rate?;
    let tenth = || rate.octets_in(SECOND / 10).max(1_500);
    Some((rate, flow.burst.map_or_else(tenth, |burst| burst.0)))
}
#[cfg(test)]
mod tests;
