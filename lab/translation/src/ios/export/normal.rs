//! Policies that do the same, written in one way: for the comparison of a policy with what is read
//! back.

use crate::ios::matching::algebra::whole;
use crate::ios::matching::merged::{in_order, merged};
use dscp::Dscp;
use router::policy::{
    Attachment, Branch, ChainStep, ClassSteps, Dropper, IpPrefix, Match, MeterAction, MeterProfile,
    PacketClass, QueueLimit, Queueing, RouterPolicy, WredLine,
};
use std::collections::BTreeMap;

/// Packets of a queue, and of all queues of flow-based fair queueing, without a limit in the
/// policy.
pub(super) const FIFO_LIMIT: usize = 100;
pub(super) const FLOWS_LIMIT: usize = 64;

/// The policy with its defaults written out. The description is left out: it is of the file.
pub(super) fn normal(policy: &RouterPolicy) -> RouterPolicy {
    let matches = |class: &PacketClass| PacketClass { matches: parts(&class.matches) };
    let empty = Attachment::default();
    let attached = policy.interfaces.iter().filter(|(_, of)| **of != empty);
    RouterPolicy {
        about: String::new(),
        tables: policy.tables.clone(),
        classes: policy.classes.iter().map(|(name, of)| (name.clone(), matches(of))).collect(),
        chains: policy.chains.iter().map(|(name, of)| (name.clone(), chain(of))).collect(),
        queueings: policy.queueings.iter().map(|(name, of)| (name.clone(), queueing(of))).collect(),
        interfaces: attached.map(|(name, of)| (name.clone(), of.clone())).collect(),
    }
}

/// The matches by family, each family with the condition that names it, then joined and sorted.
fn parts(matches: &[Match]) -> Vec<Match> {
    let mut parts = Vec::new();
    for of in matches {
        let named = of.source.or(of.destination).map(|prefix| prefix.address().is_ipv4());
        for is_ipv4 in [true, false] {
            if named.is_none_or(|named| named == is_ipv4) {
                let narrow = |prefix: Option<IpPrefix>| prefix.filter(|prefix| prefix.length() > 0);
                let (mut source, destination) = (narrow(of.source), narrow(of.destination));
                if source.is_none() && destination.is_none() {
                    source = whole(is_ipv4);
                }
                parts.push(Match { source, destination, ..of.clone() });
            }
        }
    }
    let mut all = merged(&parts);
    all.sort_by_key(|of| format!("{of:?}"));
    all
}

/// The chain as a first-match step, if it can be one.
fn chain(steps: &[ChainStep]) -> Vec<ChainStep> {
    match as_cases(steps) {
        Some(classes) => vec![ChainStep::FirstMatch { classes: cases(&classes) }],
        None => steps.to_vec(),
    }
}

/// The cases of a chain: those of its first-match step, or its steps as a case. Several steps with
/// classes are not cases, as a step sees the marks of those before it.
pub(super) fn as_cases(steps: &[ChainStep]) -> Option<Vec<ClassSteps>> {
    if let [ChainStep::FirstMatch { classes }] = steps {
        return Some(classes.clone());
    }
    let mut classes = steps.iter().map(class_of);
    let class = match steps {
        [_] => classes.next()??.clone(),
        _ if classes.all(|class| class == Some(&None)) => None,
        _ => return None,
    };
    let mut steps = steps.to_vec();
    steps.iter_mut().for_each(of_all);
    Some(vec![ClassSteps { class, steps }])
}

/// The class of a step that can be in a case.
fn class_of(step: &ChainStep) -> Option<&Option<String>> {
    match step {
        ChainStep::Mark { class, .. }
        | ChainStep::Drop { class }
        | ChainStep::Meter { class, .. } => Some(class),
        _ => None,
    }
}

/// Takes the class from a step.
fn of_all(step: &mut ChainStep) {
    if let ChainStep::Mark { class, .. }
    | ChainStep::Drop { class }
    | ChainStep::Meter { class, .. } = step
    {
        *class = None;
    }
}

/// Cases with that of all other packets last, and without cases that have no effect.
fn cases(classes: &[ClassSteps]) -> Vec<ClassSteps> {
    let (named, others): (Vec<_>, Vec<_>) =
        classes.iter().cloned().partition(|case| case.class.is_some());
    let mut all: Vec<ClassSteps> = named.into_iter().chain(others).collect();
    for case in &mut all {
        let steps = case.steps.iter().map(step);
        case.steps = steps.filter(|step| !is_empty(step)).collect();
    }
    all.retain(|case| case.class.is_some() || !case.steps.is_empty());
    if all.iter().all(|case| case.class.is_some()) {
        let last = all.iter().rposition(|case| !case.steps.is_empty());
        all.truncate(last.map_or(0, |place| place + 1));
    }
    all
}

/// Whether these cases do nothing to any packet.
pub(super) fn without_effect(classes: &[ClassSteps]) -> bool {
    cases(classes).is_empty()
}

fn is_empty(step: &ChainStep) -> bool {
    matches!(step, ChainStep::FirstMatch { classes } if classes.is_empty())
}

fn step(of: &ChainStep) -> ChainStep {
    let mut of = of.clone();
    match &mut of {
        // A token bucket gives no yellow.
        ChainStep::Meter { meter: MeterProfile::TokenBucket { .. }, yellow, .. } => {
            *yellow = MeterAction::Pass;
        }
        ChainStep::FirstMatch { classes } => *classes = cases(classes),
        _ => {}
    }
    of
}

fn queueing(of: &Queueing) -> Queueing {
    let mut of = of.clone();
    match &mut of {
        Queueing::Fifo { limit, dropper } => {
            if *limit == QueueLimit::default() {
                limit.packets = Some(FIFO_LIMIT);
            }
            *dropper = early(dropper);
        }
        Queueing::FairFlows { limit, by_precedence, dropper, .. } => {
            *limit = limit.or(Some(FLOWS_LIMIT));
            by_precedence.take_if(|is| *is);
            *dropper = early(dropper);
        }
        Queueing::Shaper { child, .. } => **child = queueing(child),
        Queueing::ClassBased { branches, .. } => {
            if branches.iter().all(|branch| branch.class.is_some()) {
                branches.push(Branch {
                    class: None,
                    share: router::policy::BranchShare::None,
                    queueing: Queueing::default(),
                });
            }
            for branch in branches {
                branch.queueing = queueing(&branch.queueing);
            }
        }
        Queueing::Priority { .. } | Queueing::RoundRobin { .. } | Queueing::WeightedFair { .. } => {
        }
    }
    of
}

/// RED is WRED with one drop function. In WRED, code points with the function of all others are
/// not named.
fn early(dropper: &Dropper) -> Dropper {
    let Some((lines, weight_exponent, ecn)) = functions(dropper) else { return dropper.clone() };
    let others = lines.get(&Dscp::CS0).copied();
    let lines = lines.into_iter().filter(|(_, line)| Some(*line) != others).collect();
    Dropper::Wred { lines, others, weight_exponent, ecn }
}

/// The drop function of each code point, with the weight exponent and whether packets are marked.
pub(super) type DropFunctions = (BTreeMap<Dscp, WredLine>, Option<u8>, bool);

/// The drop functions of RED or WRED; `None` if a code point has none.
pub(super) fn functions(dropper: &Dropper) -> Option<DropFunctions> {
    let (lines, others, exponent, ecn) = match dropper {
        Dropper::Red { line, weight_exponent, ecn } => {
            (&BTreeMap::new(), Some(*line), *weight_exponent, *ecn)
        }
        Dropper::Wred { lines, others, weight_exponent, ecn } => {
            (lines, *others, *weight_exponent, *ecn)
        }
        _ => return None,
    };
    let all = (0..64).filter_map(Dscp::new);
    let each = all.map(|dscp| Some((dscp, lines.get(&dscp).copied().or(others)?)));
    Some((each.collect::<Option<_>>()?, exponent, ecn))
}

/// The code points of a match by number; none for all.
pub(super) fn code_points(of: &Match) -> Vec<Dscp> {
    in_order(&of.dscp)
}
