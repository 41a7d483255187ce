//! Builds what waits for an interface from a policy: a tree of schedulers and shapers over queues.
//!
//! Everything a policy may say wrongly is refused here, with the path of its key; what is built keeps
//! within bounds whatever the policy says: a depth of [`MAX_DEPTH`], [`MAX_PARTS`] parts,
//! [`MAX_PACKETS`](crate::queue::MAX_PACKETS) and [`MAX_OCTETS`](crate::queue::MAX_OCTETS) a queue.

use crate::classify::Classifier;
use crate::discipline::Discipline;
use crate::policy::{Branch, Limit, Name, Octets, Policy, Queueing, Share, Span, Wrong};
use crate::queue::{Fifo, MAX_OCTETS, MAX_PACKETS, Room};
use crate::schedule::{self, Order, Priority, Scheduler};
use crate::shaper::Shaper;
use crate::time::Rate;
use std::collections::BTreeSet;

/// How deep disciplines may stand inside one another.
pub const MAX_DEPTH: usize = 16;
/// How many parts the queueing of one interface may have.
pub const MAX_PARTS: usize = 1_000;

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
    _seed: u64,
) -> Result<Box<dyn Discipline>, Wrong> {
    let mut builder = Builder { policy, interfaces, parts: 0 };
    builder.part(queueing, path, None, 1)
}

struct Builder<'a> {
    policy: &'a Policy,
    interfaces: &'a [Name],
    parts: usize,
}

impl Builder<'_> {
    /// `rate` is what this part may count on: that of the shaper above, or its share of it.
    fn part(
        &mut self,
        queueing: &Queueing,
        path: &str,
        rate: Option<Rate>,
        depth: usize,
    ) -> Result<Box<dyn Discipline>, Wrong> {
        if depth > MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} disciplines inside one another");
            return Err(Wrong::at(path, what));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(Wrong::at(path, format!("more than {MAX_PARTS} parts at one interface")));
        }
        match queueing {
            Queueing::Fifo { limit, .. } => {
                Ok(Box::new(Fifo::new(room(limit, &format!("{path}.limit"))?)))
            }
            Queueing::Priority { branches } => {
                no_shares(branches, path)?;
                let branches = with_others(branches);
                let rates = vec![rate; branches.len()];
                self.scheduler(Priority, &branches, &rates, path, depth)
            }
            Queueing::Shaper { rate, burst, interval, overhead, child } => {
                let interval = interval.map(|span| nanos(span, &format!("{path}.interval")));
                let interval = interval.transpose()?;
                let child = self.part(child, &format!("{path}.child"), Some(*rate), depth + 1)?;
                Ok(Box::new(Shaper::new(*rate, burst.0, interval, *overhead, child)))
            }
            _ => Err(Wrong::at(path, "not built yet")),
        }
    }

    fn scheduler<O: Order + 'static>(
        &mut self,
        order: O,
        branches: &[Branch],
        rates: &[Option<Rate>],
        path: &str,
        depth: usize,
    ) -> Result<Box<dyn Discipline>, Wrong> {
        let mut seen = BTreeSet::new();
        let mut built = Vec::new();
        for (place, (branch, rate)) in branches.iter().zip(rates).enumerate() {
            let path = format!("{path}.branches[{place}]");
            if !seen.insert(branch.class.as_deref()) {
                let what = match &branch.class {
                    Some(name) => format!("{name:?} has a branch already: this one gets nothing"),
                    None => "two branches without a class: one is enough".to_owned(),
                };
                return Err(Wrong::at(format!("{path}.class"), what));
            }
            let path = format!("{path}.queueing");
            let child = self.part(&branch.queueing, &path, *rate, depth + 1)?;
            built.push(schedule::Branch { name: name_of(branch), child });
        }
        let classes: Vec<_> = branches.iter().map(|branch| branch.class.as_deref()).collect();
        let path = format!("{path}.branches");
        let classifier = Classifier::new(self.policy, self.interfaces, &classes, &path)?;
        Ok(Box::new(Scheduler::new(order, classifier, built)))
    }
}

fn name_of(branch: &Branch) -> String {
    branch.class.clone().unwrap_or_else(|| "others".to_owned())
}

/// The branches, with one for what belongs to no class.
fn with_others(branches: &[Branch]) -> Vec<Branch> {
    let mut branches = branches.to_vec();
    if branches.iter().all(|branch| branch.class.is_some()) {
        branches.push(Branch { class: None, share: Share::None, queueing: Queueing::default() });
    }
    branches
}

/// Strict priority goes by order alone.
fn no_shares(branches: &[Branch], path: &str) -> Result<(), Wrong> {
    match branches.iter().position(|branch| branch.share != Share::None) {
        None => Ok(()),
        Some(place) => {
            let what = "branches of \"priority\" have no share: their order decides";
            Err(Wrong::at(format!("{path}.branches[{place}].share"), what))
        }
    }
}

/// An interval above 0, in nanoseconds.
fn nanos(span: Span, path: &str) -> Result<u64, Wrong> {
    match u64::try_from(span.0.as_nanos()) {
        Ok(nanos) if nanos > 0 => Ok(nanos),
        _ => {
            Err(Wrong::at(path, "must be above 0; leave it out for tokens that come continuously"))
        }
    }
}

/// What a limit comes to.
fn room(limit: &Limit, path: &str) -> Result<Room, Wrong> {
    let packets = match limit.packets {
        None if limit.octets.is_none() && limit.delay.is_none() => 100,
        None => MAX_PACKETS,
        Some(packets) => in_packets(packets, &format!("{path}.packets"))?,
    };
    let by_delay = limit.delay.map(|(span, rate)| {
        (rate.octets_in(span.0.as_nanos().try_into().unwrap_or(u64::MAX)), "delay")
    });
    let by_octets = limit.octets.map(|Octets(octets)| (octets, "octets"));
    let mut octets = MAX_OCTETS;
    for (limit, key) in by_delay.into_iter().chain(by_octets) {
        if !(1..=MAX_OCTETS).contains(&limit) {
            let what = format!("comes to {limit} octets: a queue holds 1 to {MAX_OCTETS}");
            return Err(Wrong::at(format!("{path}.{key}"), what));
        }
        octets = octets.min(limit);
    }
    Ok(Room { packets, octets: usize::try_from(octets).unwrap_or(usize::MAX) })
}

fn in_packets(packets: usize, path: &str) -> Result<usize, Wrong> {
    if (1..=MAX_PACKETS).contains(&packets) {
        return Ok(packets);
    }
    Err(Wrong::at(path, format!("{packets} packets: a queue holds 1 to {MAX_PACKETS}")))
}

#[cfg(test)]
mod tests;
