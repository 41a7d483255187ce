//! Builds the queueing of an interface from a policy: a tree of schedulers and shapers over queues.
//!
//! Every fault of the queueing in a policy is refused here, with the path of its key. The result
//! has limits, whatever the policy: a depth of [`MAX_DEPTH`], [`MAX_PARTS`] parts,
//! [`MAX_PACKETS`](crate::queue::MAX_PACKETS) and [`MAX_OCTETS`] in a queue, [`MAX_FLOW_QUEUES`]
//! queues of flow-based fair queueing. The router limits all queues of an interface together to
//! [`MAX_OCTETS`].

mod numbers;
mod shares;

use crate::classify::Classifier;
use crate::discipline::Discipline;
use crate::policy::{
    Branch, BranchShare, Dropper, KeyFault, Name, QueueLimit, Queueing, RouterPolicy,
};
use crate::queue::{
    DEFAULT_EXPONENT, EarlyDropper, Fifo, MAX_OCTETS, PushOut, QueueRoom, Red, Thresholds, Trio,
};
use crate::schedule::{
    self, BranchOrder, ClassBased, FairFlows, PacketScheduler, RoundRobin, StrictPriority,
    WeightedFair,
};
use crate::shaper::Shaper;
use crate::time::Rate;
use base::rng::Rng;
use std::collections::BTreeSet;

/// Nested disciplines, at most.
pub const MAX_DEPTH: usize = 16;
/// Parts of the queueing of one interface, at most.
pub const MAX_PARTS: usize = 1_000;
/// Queues of flow-based fair queueing in all parts of one interface together, at most.
pub const MAX_FLOW_QUEUES: usize = 65_536;

/// Octets that a weight of 1 sends in a round, if a policy gives no quantum.
const DEFAULT_QUANTUM: u64 = 1_500;
/// Queues of flow-based fair queueing, and packets in them, if a policy gives no numbers.
const DEFAULT_FLOW_QUEUES: usize = 256;
const DEFAULT_FLOW_LIMIT: usize = 64;

/// The discipline that `queueing` describes. `interfaces` are the router's interfaces, by position;
/// `path` is the path of `queueing` in the policy. The same seed drops the same packets at random.
///
/// If no branch of a scheduler is for all other packets, one is added as the last: a FIFO of 100
/// packets without a share.
///
/// # Errors
/// An unknown name, a number out of range, shares that exceed the rate or are of a wrong kind, or a
/// tree that is too deep or has too many parts.
pub fn build(
    policy: &RouterPolicy,
    interfaces: &[Name],
    queueing: &Queueing,
    path: &str,
    seed: u64,
) -> Result<Box<dyn Discipline>, KeyFault> {
    let rng = Rng::new(seed);
    let mut builder = TreeBuilder { policy, interfaces, rng, parts: 0, lanes: 0 };
    builder.part(queueing, path, RateAbove::default(), 1)
}

struct TreeBuilder<'a> {
    policy: &'a RouterPolicy,
    interfaces: &'a [Name],
    /// Generates the seeds of the parts that drop at random, one for each.
    rng: Rng,
    parts: usize,
    /// Queues of flow-based fair queueing so far.
    lanes: usize,
}

/// The rate that the shapers and shares above a part leave it.
#[derive(Clone, Copy, Default)]
struct RateAbove {
    /// The rate that the part gets at least.
    share: Option<Rate>,
    /// The highest rate that a shaper above lets pass.
    most: Option<Rate>,
}

/// The place of a part in the tree.
#[derive(Clone, Copy)]
struct PartPlace<'a> {
    path: &'a str,
    depth: usize,
    most: Option<Rate>,
}

impl TreeBuilder<'_> {
    fn part(
        &mut self,
        queueing: &Queueing,
        path: &str,
        above: RateAbove,
        depth: usize,
    ) -> Result<Box<dyn Discipline>, KeyFault> {
        let place = PartPlace { path, depth, most: above.most };
        let rate = above.share;
        if depth > MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} disciplines inside one another");
            return Err(KeyFault::at(path, what));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(KeyFault::at(
                path,
                format!("more than {MAX_PARTS} parts at one interface"),
            ));
        }
        match queueing {
            Queueing::Fifo { limit, dropper } => self.queue(limit, dropper, path),
            Queueing::Priority { branches } => {
                shares::none(branches, path)?;
                let branches = with_others(branches);
                let rates = vec![rate; branches.len()];
                self.scheduler(StrictPriority, &branches, &rates, place)
            }
            Queueing::RoundRobin { quantum, branches } => {
                let quantum = quantum.map_or(DEFAULT_QUANTUM, |octets| octets.0);
                numbers::within(quantum, 1, 10_000_000, "octets", &format!("{path}.quantum"))?;
                let branches = with_others(branches);
                let (weights, rates) = shares::weights("round-robin", &branches, rate, path)?;
                self.scheduler(RoundRobin::new(quantum, &weights), &branches, &rates, place)
            }
            Queueing::WeightedFair { branches } => {
                let branches = with_others(branches);
                let (weights, rates) = shares::weights("weighted-fair", &branches, rate, path)?;
                self.scheduler(WeightedFair::new(&weights), &branches, &rates, place)
            }
            Queueing::ClassBased { rate: own, branches } => {
                if let (Some(own), Some(most)) = (own, above.most)
                    && *own > most
                {
                    let what = format!("{own}: the shaper above lets {most} pass");
                    return Err(KeyFault::at(format!("{path}.rate"), what));
                }
                let branches = with_others(branches);
                let (reserved, rates) = shares::reservations(&branches, own.or(rate), path)?;
                self.scheduler(ClassBased::new(reserved), &branches, &rates, place)
            }
            Queueing::FairFlows { queues, limit, by_precedence, dropper } => {
                let queues = queues.unwrap_or(DEFAULT_FLOW_QUEUES);
                let limit = limit.unwrap_or(DEFAULT_FLOW_LIMIT);
                self.fair_flows(queues, limit, by_precedence.unwrap_or(true), dropper, path)
            }
            Queueing::Shaper { rate, burst, interval, overhead, child } => {
                let interval =
                    interval.map(|span| numbers::nanos(span, &format!("{path}.interval")));
                let interval = interval.transpose()?;
                numbers::grant(*rate, *burst, interval, &format!("{path}.burst"))?;
                let most = above.most.map_or(*rate, |most| most.min(*rate));
                let inside = RateAbove { share: Some(*rate), most: Some(most) };
                let child = self.part(child, &format!("{path}.child"), inside, depth + 1)?;
                Ok(Box::new(Shaper::new(*rate, burst.0, interval, *overhead, child)))
            }
        }
    }

    fn fair_flows(
        &mut self,
        queues: usize,
        limit: usize,
        by_precedence: bool,
        dropper: &Dropper,
        path: &str,
    ) -> Result<Box<dyn Discipline>, KeyFault> {
        let most = MAX_FLOW_QUEUES as u64;
        numbers::within(queues as u64, 1, most, "queues", &format!("{path}.queues"))?;
        self.lanes += queues;
        if self.lanes > MAX_FLOW_QUEUES {
            let what = format!(
                "{} queues with those before: at one interface {MAX_FLOW_QUEUES} at most",
                self.lanes
            );
            return Err(KeyFault::at(format!("{path}.queues"), what));
        }
        let limit = numbers::packets(limit, &format!("{path}.limit"))?;
        let early = self.early(dropper, limit, Some(limit), &format!("{path}.dropper"))?;
        let seed = self.rng.next_u64();
        let octets = usize::try_from(MAX_OCTETS).unwrap_or(usize::MAX);
        let room = QueueRoom { packets: limit, octets };
        Ok(Box::new(FairFlows::new(queues, room, by_precedence, early, seed)))
    }

    fn queue(
        &mut self,
        limit: &QueueLimit,
        dropper: &Dropper,
        path: &str,
    ) -> Result<Box<dyn Discipline>, KeyFault> {
        let room: QueueRoom = numbers::room(limit, &format!("{path}.limit"))?;
        if let Dropper::PushOut(push) = dropper {
            numbers::distinct(&push.lowest_first, &format!("{path}.dropper.lowest_first"))?;
            return Ok(Box::new(PushOut::new(room, push)));
        }
        let unlimited = limit.octets.is_some() || limit.delay.is_some();
        let packets = limit.packets.or((!unlimited).then_some(room.packets));
        let early = self.early(dropper, room.packets, packets, &format!("{path}.dropper"))?;
        Ok(Box::new(Fifo::new(room, early)))
    }

    /// `room` is the limit in packets; `limit` is the same if the policy states it in packets.
    fn early(
        &mut self,
        dropper: &Dropper,
        room: usize,
        limit: Option<usize>,
        path: &str,
    ) -> Result<EarlyDropper, KeyFault> {
        let exponent = |given: &Option<u8>| {
            let exponent = given.unwrap_or(DEFAULT_EXPONENT);
            numbers::within(exponent.into(), 1, 16, "", &format!("{path}.weight_exponent"))?;
            Ok(exponent)
        };
        let rng = Rng::new(self.rng.next_u64());
        Ok(match dropper {
            Dropper::Tail {} => EarlyDropper::Tail,
            Dropper::Thresholds { packets, others } => {
                EarlyDropper::Thresholds(Thresholds::new(packets, others.unwrap_or(room)))
            }
            Dropper::PushOut(_) => {
                let what = "push-out is for a single queue: use it in a fifo";
                return Err(KeyFault::at(path, what));
            }
            Dropper::Red { line, weight_exponent, ecn } => {
                numbers::line(line, &format!("{path}.line"))?;
                EarlyDropper::Red(Red::plain(line, exponent(weight_exponent)?, *ecn, rng))
            }
            Dropper::Wred { lines, others, weight_exponent, ecn } => {
                for (dscp, line) in lines {
                    numbers::line(line, &format!("{path}.lines.{dscp}"))?;
                }
                if let Some(line) = others {
                    numbers::line(line, &format!("{path}.others"))?;
                }
                let exponent = exponent(weight_exponent)?;
                EarlyDropper::Red(Red::wred(lines, others.as_ref(), exponent, *ecn, rng))
            }
            Dropper::Trio { green, yellow, red, weight_exponent, ecn } => {
                for (curve, name) in [(green, "green"), (yellow, "yellow"), (red, "red")] {
                    numbers::curve(curve, &format!("{path}.{name}"))?;
                }
                let Some(limit) = limit else {
                    let what = "needs a limit in packets: its percentages are of that";
                    return Err(KeyFault::at(path, what));
                };
                let exponent = exponent(weight_exponent)?;
                EarlyDropper::Trio(Trio::new([green, yellow, red], limit, exponent, *ecn, rng))
            }
        })
    }

    fn scheduler<O: BranchOrder + 'static>(
        &mut self,
        order: O,
        branches: &[Branch],
        rates: &[Option<Rate>],
        at: PartPlace<'_>,
    ) -> Result<Box<dyn Discipline>, KeyFault> {
        let mut seen = BTreeSet::new();
        let mut built = Vec::new();
        for (place, (branch, rate)) in branches.iter().zip(rates).enumerate() {
            let path = format!("{}.branches[{place}]", at.path);
            if !seen.insert(branch.class.as_deref()) {
                let what = match &branch.class {
                    Some(name) => format!("{name:?} has a branch already: this one gets nothing"),
                    None => "two branches without a class: one is enough".to_owned(),
                };
                return Err(KeyFault::at(format!("{path}.class"), what));
            }
            let path = format!("{path}.queueing");
            let inside = RateAbove { share: *rate, most: at.most };
            let child = self.part(&branch.queueing, &path, inside, at.depth + 1)?;
            let name = branch.class.clone().unwrap_or_else(|| others_of(branches));
            built.push(schedule::SchedulerBranch { name, child });
        }
        let classes: Vec<_> = branches.iter().map(|branch| branch.class.as_deref()).collect();
        let path = format!("{}.branches", at.path);
        let classifier = Classifier::new(self.policy, self.interfaces, &classes, &path)?;
        Ok(Box::new(PacketScheduler::new(order, classifier, built)))
    }
}

/// The name of the branch for all other packets in reports: `others`, unless a class has that name.
fn others_of(branches: &[Branch]) -> String {
    let mut name = "others".to_owned();
    while branches.iter().any(|branch| branch.class.as_deref() == Some(&*name)) {
        name.push('+');
    }
    name
}

/// The branches, and one for all other packets.
fn with_others(branches: &[Branch]) -> Vec<Branch> {
    let mut branches = branches.to_vec();
    if branches.iter().all(|branch| branch.class.is_some()) {
        let queueing = Queueing::default();
        branches.push(Branch { class: None, share: BranchShare::None, queueing });
    }
    branches
}

#[cfg(test)]
mod low_latency;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod tests;
