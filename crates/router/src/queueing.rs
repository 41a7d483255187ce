//! Builds what waits for an interface from a policy: a tree of schedulers and shapers over queues.
//!
//! Everything a policy may say wrongly is refused here, with the path of its key; what is built keeps
//! within bounds whatever the policy says: a depth of [`MAX_DEPTH`], [`MAX_PARTS`] parts,
//! [`MAX_PACKETS`](crate::queue::MAX_PACKETS) and [`MAX_OCTETS`](crate::queue::MAX_OCTETS) a queue.

mod numbers;
mod shares;

use crate::classify::Classifier;
use crate::discipline::Discipline;
use crate::policy::{Branch, Dropper, Limit, Name, Policy, Queueing, Share, Wrong};
use crate::queue::{DEFAULT_EXPONENT, Early, Fifo, PushOut, Red, Room, Thresholds, Trio};
use crate::schedule::{
    self, ClassBased, FairFlows, Order, Priority, RoundRobin, Scheduler, WeightedFair,
};
use crate::shaper::Shaper;
use crate::time::Rate;
use base::rng::Rng;
use std::collections::BTreeSet;

/// How deep disciplines may stand inside one another.
pub const MAX_DEPTH: usize = 16;
/// How many parts the queueing of one interface may have.
pub const MAX_PARTS: usize = 1_000;
/// How many queues flow-based fair queueing may have.
pub const MAX_FLOW_QUEUES: usize = 65_536;

/// Octets a round gives a weight of 1 where a policy does not say.
const DEFAULT_QUANTUM: u64 = 1_500;
/// Queues of flow-based fair queueing, and packets in them, where a policy does not say.
const DEFAULT_FLOW_QUEUES: usize = 256;
const DEFAULT_FLOW_LIMIT: usize = 64;

/// The discipline that `queueing` describes. `interfaces` are the router's, by their places; `path`
/// is that of `queueing` in the policy; with the same seed the same packets are dropped by chance.
///
/// A scheduler without a branch for what belongs to no class gets one as its last: a FIFO of 100
/// packets without a share.
///
/// # Errors
/// A name that is not there, a number out of range, shares that do not go together, or a tree that is
/// too deep or too large.
pub fn build(
    policy: &Policy,
    interfaces: &[Name],
    queueing: &Queueing,
    path: &str,
    seed: u64,
) -> Result<Box<dyn Discipline>, Wrong> {
    let mut builder = Builder { policy, interfaces, rng: Rng::new(seed), parts: 0 };
    builder.part(queueing, path, None, 1)
}

struct Builder<'a> {
    policy: &'a Policy,
    interfaces: &'a [Name],
    /// Each part that draws lots has a generator of its own.
    rng: Rng,
    parts: usize,
}

/// Where a part stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    depth: usize,
}

impl Builder<'_> {
    /// `rate` is what the part may count on: that of the shaper above, or its share of it.
    fn part(
        &mut self,
        queueing: &Queueing,
        path: &str,
        rate: Option<Rate>,
        depth: usize,
    ) -> Result<Box<dyn Discipline>, Wrong> {
        let place = Place { path, depth };
        if depth > MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} disciplines inside one another");
            return Err(Wrong::at(path, what));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Wrong::at(path, format!("more than {MAX_PARTS} parts at one interface")));
        }
        match queueing {
            Queueing::Fifo { limit, dropper } => self.queue(limit, dropper, path),
            Queueing::Priority { branches } => {
                shares::none(branches, path)?;
                let branches = with_others(branches);
                let rates = vec![rate; branches.len()];
                self.scheduler(Priority, &branches, &rates, place)
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
                let branches = with_others(branches);
                let (reserved, rates) = shares::reservations(&branches, own.or(rate), path)?;
                self.scheduler(ClassBased::new(reserved), &branches, &rates, place)
            }
            Queueing::FairFlows { queues, limit, by_precedence, dropper } => {
                let queues = queues.unwrap_or(DEFAULT_FLOW_QUEUES);
                let most = MAX_FLOW_QUEUES as u64;
                numbers::within(queues as u64, 1, most, "queues", &format!("{path}.queues"))?;
                let limit = limit.unwrap_or(DEFAULT_FLOW_LIMIT);
                let limit = numbers::packets(limit, &format!("{path}.limit"))?;
                let early = self.early(dropper, limit, Some(limit), &format!("{path}.dropper"))?;
                let by_precedence = by_precedence.unwrap_or(true);
                let seed = self.rng.next_u64();
                Ok(Box::new(FairFlows::new(queues, limit, by_precedence, early, seed)))
            }
            Queueing::Shaper { rate, burst, interval, overhead, child } => {
                let interval =
                    interval.map(|span| numbers::nanos(span, &format!("{path}.interval")));
                let interval = interval.transpose()?;
                let child = self.part(child, &format!("{path}.child"), Some(*rate), depth + 1)?;
                Ok(Box::new(Shaper::new(*rate, burst.0, interval, *overhead, child)))
            }
        }
    }

    fn queue(
        &mut self,
        limit: &Limit,
        dropper: &Dropper,
        path: &str,
    ) -> Result<Box<dyn Discipline>, Wrong> {
        let room: Room = numbers::room(limit, &format!("{path}.limit"))?;
        if let Dropper::PushOut(push) = dropper {
            numbers::distinct(&push.lowest_first, &format!("{path}.dropper.lowest_first"))?;
            return Ok(Box::new(PushOut::new(room, push)));
        }
        let unlimited = limit.octets.is_some() || limit.delay.is_some();
        let packets = limit.packets.or((!unlimited).then_some(room.packets));
        let early = self.early(dropper, room.packets, packets, &format!("{path}.dropper"))?;
        Ok(Box::new(Fifo::new(room, early)))
    }

    /// `room` is the most packets that may wait; `limit` the same if the policy said it in packets.
    fn early(
        &mut self,
        dropper: &Dropper,
        room: usize,
        limit: Option<usize>,
        path: &str,
    ) -> Result<Early, Wrong> {
        let exponent = |given: &Option<u8>| {
            let exponent = given.unwrap_or(DEFAULT_EXPONENT);
            numbers::within(exponent.into(), 1, 16, "", &format!("{path}.weight_exponent"))?;
            Ok(exponent)
        };
        let rng = Rng::new(self.rng.next_u64());
        Ok(match dropper {
            Dropper::Tail => Early::Tail,
            Dropper::Thresholds { packets, others } => {
                Early::Thresholds(Thresholds::new(packets, others.unwrap_or(room)))
            }
            Dropper::PushOut(_) => {
                let what = "push-out is for a single queue: use it in a fifo";
                return Err(Wrong::at(path, what));
            }
            Dropper::Red { line, weight_exponent, ecn } => {
                numbers::line(line, &format!("{path}.line"))?;
                Early::Red(Red::plain(line, exponent(weight_exponent)?, *ecn, rng))
            }
            Dropper::Wred { lines, others, weight_exponent, ecn } => {
                for (dscp, line) in lines {
                    numbers::line(line, &format!("{path}.lines.{dscp}"))?;
                }
                if let Some(line) = others {
                    numbers::line(line, &format!("{path}.others"))?;
                }
                let exponent = exponent(weight_exponent)?;
                Early::Red(Red::wred(lines, others.as_ref(), exponent, *ecn, rng))
            }
            Dropper::Trio { green, yellow, red, weight_exponent } => {
                for (curve, name) in [(green, "green"), (yellow, "yellow"), (red, "red")] {
                    numbers::curve(curve, &format!("{path}.{name}"))?;
                }
                let Some(limit) = limit else {
                    let what = "needs a limit in packets: its percentages are of that";
                    return Err(Wrong::at(path, what));
                };
                let exponent = exponent(weight_exponent)?;
                Early::Trio(Trio::new([green, yellow, red], limit, exponent, rng))
            }
        })
    }

    fn scheduler<O: Order + 'static>(
        &mut self,
        order: O,
        branches: &[Branch],
        rates: &[Option<Rate>],
        at: Place<'_>,
    ) -> Result<Box<dyn Discipline>, Wrong> {
        let mut seen = BTreeSet::new();
        let mut built = Vec::new();
        for (place, (branch, rate)) in branches.iter().zip(rates).enumerate() {
            let path = format!("{}.branches[{place}]", at.path);
            if !seen.insert(branch.class.as_deref()) {
                let what = match &branch.class {
                    Some(name) => format!("{name:?} has a branch already: this one gets nothing"),
                    None => "two branches without a class: one is enough".to_owned(),
                };
                return Err(Wrong::at(format!("{path}.class"), what));
            }
            let path = format!("{path}.queueing");
            let child = self.part(&branch.queueing, &path, *rate, at.depth + 1)?;
            let name = branch.class.clone().unwrap_or_else(|| "others".to_owned());
            built.push(schedule::Branch { name, child });
        }
        let classes: Vec<_> = branches.iter().map(|branch| branch.class.as_deref()).collect();
        let path = format!("{}.branches", at.path);
        let classifier = Classifier::new(self.policy, self.interfaces, &classes, &path)?;
        Ok(Box::new(Scheduler::new(order, classifier, built)))
    }
}

/// The branches, with one for what belongs to no class.
fn with_others(branches: &[Branch]) -> Vec<Branch> {
    let mut branches = branches.to_vec();
    if branches.iter().all(|branch| branch.class.is_some()) {
        let queueing = Queueing::default();
        branches.push(Branch { class: None, share: Share::None, queueing });
    }
    branches
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
