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

use crate::classify::{Classifier, FlowTables};
use crate::conditioner::Conditioner;
use crate::count::PacketCounters;
use crate::packet::Packet;
use crate::policy::{
    ChainStep, KeyFault, MeterAction, MeterProfile, Name, RouterPolicy, TableFlow,
};
use crate::time::{Rate, SECOND};
use dscp::Dscp;

/// Nested `first-match` steps, at most.
const MAX_DEPTH: usize = 8;

/// Builds the steps of a chain, in their order. `path` names the chain in messages: `chains.edge`.
///
/// # Errors
/// An unknown class or table, or a number out of its range; with the path of the key.
pub fn build(
    policy: &RouterPolicy,
    interfaces: &[Name],
    steps: &[ChainStep],
    path: &str,
) -> Result<Vec<Box<dyn Conditioner>>, KeyFault> {
    self::steps(StepContext { policy, interfaces, depth: 0 }, steps, path)
}

/// The context of a step while it is built.
#[derive(Clone, Copy)]
struct StepContext<'a> {
    policy: &'a RouterPolicy,
    interfaces: &'a [Name],
    /// Number of `first-match` steps around this one.
    depth: usize,
}

impl StepContext<'_> {
    fn inside(self) -> Self {
        StepContext { depth: self.depth + 1, ..self }
    }
}

fn steps(
    at: StepContext<'_>,
    steps: &[ChainStep],
    path: &str,
) -> Result<Vec<Box<dyn Conditioner>>, KeyFault> {
    if at.depth > MAX_DEPTH {
        let what = format!("more than {MAX_DEPTH} first-match steps inside one another");
        return Err(KeyFault::at(path, what));
    }
    let steps = steps.iter().enumerate();
    steps.map(|(n, step)| one(at, step, &format!("{path}[{n}]"))).collect()
}

fn one(
    at: StepContext<'_>,
    step: &ChainStep,
    path: &str,
) -> Result<Box<dyn Conditioner>, KeyFault> {
    let StepContext { policy, interfaces, depth } = at;
    if depth > 0 && matches!(step, ChainStep::Shape { .. } | ChainStep::ShapeFlows { .. }) {
        let what =
            "no shaper can stand in a first-match step: let it follow as a step of the chain";
        return Err(KeyFault::at(path, what));
    }
    let class = |class: &Option<Name>| Selector::new(policy, interfaces, class.as_deref(), path);
    let table = |name: &Name| {
        let place = policy.tables.keys().position(|known| known == name);
        let what = || format!("no table {name:?}: write one under [tables]");
        place.ok_or_else(|| KeyFault::at(format!("{path}.table"), what()))
    };
    Ok(match step {
        ChainStep::Mark { class: of, dscp } => Box::new(mark::ClassMarker::new(class(of)?, *dscp)),
        ChainStep::Drop { class: of } => Box::new(mark::ClassDropper::new(class(of)?)),
        ChainStep::Meter { class: of, meter, green, yellow, red } => {
            if matches!(meter, MeterProfile::TokenBucket { .. }) && *yellow != MeterAction::Pass {
                let what = "a token bucket finds nothing yellow, only green and red: leave it out, or \
                            take a meter of kind single-rate or two-rate";
                return Err(KeyFault::at(format!("{path}.yellow"), what));
            }
            let meter = crate::meter::ColourMeter::new(meter, &format!("{path}.meter"))?;
            Box::new(meter::ClassMeter::new(class(of)?, meter, [*green, *yellow, *red]))
        }
        ChainStep::Demote(demotion) => Box::new(demote::Demote::new(demotion, path)?),
        ChainStep::MarkFlows { table: of } => Box::new(mark::MarkFlows::new(table(of)?)),
        ChainStep::MeterFlows { table: of, green, red } => {
            Box::new(meter::MeterFlows::new(table(of)?, [*green, *red]))
        }
        ChainStep::ShapeFlows { table: of, delay, limit } => {
            Box::new(shape_flows::ShapeFlows::new(policy, table(of)?, *delay, *limit, path)?)
        }
        ChainStep::Shape { class: of, rate, burst, limit } => {
            Box::new(shape::ClassShaper::new(class(of)?, *rate, *burst, *limit, path)?)
        }
        ChainStep::FirstMatch { classes } => {
            Box::new(first_match::FirstMatch::new(classes, at, path)?)
        }
    })
}

/// The packets that a step applies to: those of a class, or all.
#[derive(Debug)]
struct Selector(Option<Classifier>);

impl Selector {
    fn new(
        policy: &RouterPolicy,
        interfaces: &[Name],
        class: Option<&str>,
        path: &str,
    ) -> Result<Selector, KeyFault> {
        let Some(class) = class else {
            return Ok(Selector(None));
        };
        let path = format!("{path}.class");
        Classifier::new(policy, interfaces, &[Some(class)], &path).map(|is| Selector(Some(is)))
    }

    fn takes(&self, packet: &Packet, tables: &FlowTables) -> bool {
        self.0.as_ref().is_none_or(|class| class.find(packet, tables).is_some())
    }
}

/// Sets the DSCP of a packet, and counts a change. It removes the colour of earlier meters: from
/// here on, the code point gives the drop precedence.
fn mark(counters: &mut PacketCounters, packet: &mut Packet, dscp: Dscp) {
    packet.colour = None;
    if packet.set_dscp(dscp) {
        counters.marked(dscp);
    }
}

/// Rate, and burst in octets, of a flow that has a rate.
fn profile(flow: &TableFlow) -> Option<(Rate, u64)> {
    let rate = flow.rate?;
    let tenth = || rate.octets_in(SECOND / 10).max(1_500);
    Some((rate, flow.burst.map_or_else(tenth, |burst| burst.0)))
}
#[cfg(test)]
mod tests;
