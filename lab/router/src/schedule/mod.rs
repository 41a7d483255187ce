//! Schedulers: they select the branch that sends next.
//!
//! A [`PacketScheduler`] is the common part: branches, the classifier that assigns packets to them,
//! counters. A [`BranchOrder`] selects one of the branches that have a packet ready. To its scheduler, a
//! branch that a shaper holds back is like an empty one.

mod class_based;
mod fair;
mod fair_flows;
mod priority;
mod round_robin;
mod weighted_fair;

pub(crate) use class_based::{ClassBased, Reservation};
pub(crate) use fair_flows::FairFlows;
pub(crate) use priority::StrictPriority;
pub(crate) use round_robin::RoundRobin;
pub(crate) use weighted_fair::WeightedFair;

use crate::classify::{Classifier, FlowTables};
use crate::count::{Cause, PacketCounters, PartCounters};
use crate::discipline::{Backlog, Discarded, Discipline, Readiness};
use crate::packet::Packet;
use crate::time::Time;
use std::fmt::Debug;

/// The order in which a scheduler serves its branches.
pub(crate) trait BranchOrder: Debug + Send {
    /// Its kind, in reports.
    const KIND: &'static str;

    /// Whether a packet may enter the branch at this place. `waits`: some branch, this one
    /// included, holds a packet.
    fn admit(&mut self, _now: Time, _place: usize, _length: usize, _waits: bool) -> bool {
        true
    }

    /// The branch holds `octets` octets more than before an admitted packet: fewer than the packet
    /// has, if others were dropped for it.
    fn kept(&mut self, _place: usize, _octets: usize) {}

    /// The place of the branch that sends next, one of those that are [`Readiness::Now`]; `None` if
    /// there is none. The answer is the same until a packet is sent or the ready branches change.
    fn next(&mut self, branches: &[Readiness]) -> Option<usize>;

    /// The branch that [`BranchOrder::next`] selected has sent a packet of this length.
    fn sent(&mut self, _place: usize, _length: usize) {}
}

/// A branch of a scheduler.
#[derive(Debug)]
pub(crate) struct SchedulerBranch {
    /// The name of its class, or `others`.
    pub(crate) name: String,
    /// The discipline that holds its packets.
    pub(crate) child: Box<dyn Discipline>,
}

/// A scheduler: branches and their order.
#[derive(Debug)]
pub(crate) struct PacketScheduler<O> {
    order: O,
    classifier: Classifier,
    branches: Vec<SchedulerBranch>,
    /// The last answer of `ready` of each branch.
    answers: Vec<Readiness>,
    /// The selected branch and its answer at this time; cleared when a packet arrives or leaves.
    choice: Option<(Time, Readiness, usize)>,
    backlog: Backlog,
    counters: PacketCounters,
}

impl<O: BranchOrder> PacketScheduler<O> {
    /// The classifier returns positions in `branches`.
    pub(crate) fn new(
        order: O,
        classifier: Classifier,
        branches: Vec<SchedulerBranch>,
    ) -> PacketScheduler<O> {
        PacketScheduler {
            order,
            classifier,
            answers: vec![Readiness::Empty; branches.len()],
            branches,
            choice: None,
            backlog: Backlog::default(),
            counters: PacketCounters::default(),
        }
    }

    fn choose(&mut self, now: Time) -> (Readiness, usize) {
        if let Some((at, ready, place)) = self.choice
            && at == now
        {
            return (ready, place);
        }
        for (answer, branch) in self.answers.iter_mut().zip(&mut self.branches) {
            *answer = branch.child.ready(now);
        }
        let (ready, place) = match self.order.next(&self.answers) {
            Some(place) => (self.answers.get(place).copied().unwrap_or(Readiness::Empty), place),
            None => (earliest(&self.answers), 0),
        };
        self.choice = Some((now, ready, place));
        (ready, place)
    }

    fn depth(&mut self, now: Time) {
        self.counters.depth.set(now, self.backlog.packets, self.backlog.octets);
    }
}

/// The earliest time at which a branch may be ready, while none is.
fn earliest(answers: &[Readiness]) -> Readiness {
    let moments = answers.iter().filter_map(|ready| match ready {
        Readiness::At(moment) => Some(*moment),
        Readiness::Empty | Readiness::Now(_) => None,
    });
    moments.min().map_or(Readiness::Empty, Readiness::At)
}

impl<O: BranchOrder> Discipline for PacketScheduler<O> {
    fn push(&mut self, now: Time, packet: Packet, tables: &FlowTables, discarded: &mut Discarded) {
        let (dscp, length) = (packet.dscp(), packet.length());
        self.counters.came(dscp, length);
        let found = self.classifier.find(&packet, tables);
        let Some((place, branch)) =
            found.and_then(|place| Some((place, self.branches.get_mut(place)?)))
        else {
            self.counters.dropped(dscp, length, Cause::Refused);
            discarded.push((packet, Cause::Refused));
            return;
        };
        let before = branch.child.backlog();
        if !self.order.admit(now, place, length, self.backlog.packets > 0) {
            self.counters.dropped(dscp, length, Cause::Policed);
            discarded.push((packet, Cause::Policed));
            return;
        }
        branch.child.push(now, packet, tables, discarded);
        let after = branch.child.backlog();
        self.order.kept(place, after.octets.saturating_sub(before.octets));
        self.backlog.packets =
            (self.backlog.packets + after.packets).saturating_sub(before.packets);
        self.backlog.octets = (self.backlog.octets + after.octets).saturating_sub(before.octets);
        self.choice = None;
        self.depth(now);
    }

    fn ready(&mut self, now: Time) -> Readiness {
        self.choose(now).0
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        let (Readiness::Now(_), place) = self.choose(now) else { return None };
        let packet = self.branches.get_mut(place)?.child.pop(now)?;
        self.order.sent(place, packet.length());
        self.choice = None;
        self.backlog.take(&packet);
        self.counters.went_after(packet.dscp(), packet.length(), now.since(packet.held_since));
        self.depth(now);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters { path: path.to_owned(), kind: O::KIND, counters: &self.counters });
        for branch in &self.branches {
            branch.child.report(&format!("{path}/{}", branch.name), into);
        }
    }
}
