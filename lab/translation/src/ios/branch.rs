//! The queueing of a policy map: `bandwidth`, `priority`, `shape`, `random-detect`, `queue-limit`,
//! `fair-queue` and nested service policies.

use super::LineValue;
use super::map::{PolicyClass, PolicyMaker, PolicyMap, ReservationLine, is_default};
use router::policy::{Branch, BranchShare, Dropper, MeterAction, QueueLimit, Queueing};
use router::time::Rate;

/// IOS's default limit of a queue, in packets.
const QUEUE: usize = 64;

impl PolicyMaker<'_> {
    /// The queueing that corresponds to a policy map. `rate` is the rate of the line, or of the
    /// shaper above it.
    pub(super) fn queueing(
        &mut self,
        map: &PolicyMap,
        rate: Option<Rate>,
        depth: usize,
    ) -> Queueing {
        if !self.enter(map) {
            return Queueing::default();
        }
        let queueing = self.within(map, rate, depth);
        self.above.pop();
        queueing
    }

    fn within(&mut self, map: &PolicyMap, rate: Option<Rate>, depth: usize) -> Queueing {
        let (default, named): (Vec<_>, Vec<_>) =
            map.classes.iter().partition(|class| is_default(&class.name));
        let default = default.first().copied();
        self.queued_otherwise(map);
        // Packets of a class without a queue wait in the queue of class-default.
        let queued: Vec<_> = named.into_iter().filter(|class| self.has_queue(class)).collect();
        if queued.is_empty() && default.is_none_or(|class| class.reserved.is_none()) {
            return default.map_or_else(leaf_of_none, |class| self.class(class, rate, depth));
        }
        let left = left_over(&map.classes, rate);
        let mut branches = Vec::new();
        for class in queued {
            let Some(matches) = self.classes.get(&class.name).map(|class| class.matches.len())
            else {
                let name = &class.name;
                let reason = format!("left out: the class map {name} is not there, or not mapped");
                self.notes.add(class.line, reason);
                continue;
            };
            if !self.work.looks_at(matches) {
                break;
            }
            let Some(share) = self.share(class, rate, left) else { continue };
            let own = reserved_rate(class, rate).or(rate);
            let queueing = self.class(class, own, depth);
            branches.push(Branch { class: Some(class.name.clone()), share, queueing });
        }
        let share = default.and_then(|class| self.share(class, rate, left)).unwrap_or_default();
        let queueing = default.map_or_else(leaf_of_none, |class| self.class(class, rate, depth));
        branches.push(Branch { class: None, share, queueing });
        // Under a shaper, its rate is shared; else that of the line.
        Queueing::ClassBased { rate: if depth == 1 { rate } else { None }, branches }
    }

    /// The queueing of one class.
    fn class(&mut self, class: &PolicyClass, rate: Option<Rate>, depth: usize) -> Queueing {
        if !self.work.branches(1) {
            return Queueing::default();
        }
        let shape = class.shape.as_ref().map(|shape| shape.value);
        let rate = shape.map(|shape| shape.rate).or(rate);
        let child = class.child.as_ref().and_then(|name| self.map(name));
        let child = child.filter(|child| self.queueing.contains(child.name.as_str()));
        let inner = match child {
            Some(child) => {
                self.left_for_child(class);
                self.marked_above(class, child);
                self.queueing(child, rate, depth + 1)
            }
            None => leaf(class),
        };
        match shape {
            Some(shape) => Queueing::Shaper {
                rate: shape.rate,
                burst: shape.burst,
                interval: shape.interval,
                overhead: 0,
                child: Box::new(inner),
            },
            None => inner,
        }
    }

    /// Notes marks of a class that the classes of its service policy would match.
    fn marked_above(&mut self, class: &PolicyClass, child: &PolicyMap) {
        let looks =
            child.classes.iter().any(|inner| self.has_queue(inner) && !is_default(&inner.name));
        if !looks {
            return;
        }
        let marks = |action: &Option<MeterAction>| matches!(action, Some(MeterAction::Mark(_)));
        let police = class.police.as_ref().filter(|at| at.value.actions.iter().any(marks));
        let lines = class.set.iter().map(|at| at.line).chain(police.map(|at| at.line));
        for line in lines {
            let name = &child.name;
            let reason = format!(
                "marked before it is queued: the classes of {name} see the new code point, in IOS \
                 that which it came with"
            );
            self.notes.add(line, reason);
        }
    }

    /// Notes lines that are ignored because a class with a service policy has no queue of its own.
    fn left_for_child(&mut self, class: &PolicyClass) {
        let lines = [
            class.wred.as_ref().map(|at| at.line),
            class.limit.as_ref().map(|at| at.line),
            class.fair.as_ref().map(|at| at.line),
        ];
        for line in lines.into_iter().flatten() {
            self.notes.add(line, "left out: the class's packets wait in its service policy");
        }
    }

    /// The share of a class; `None` (and a note) if a policy cannot express it.
    fn share(
        &mut self,
        class: &PolicyClass,
        rate: Option<Rate>,
        left: Unreserved,
    ) -> Option<BranchShare> {
        let Some(LineValue { line, value }) = class.reserved.as_ref() else {
            return Some(BranchShare::None);
        };
        let share = match *value {
            ReservationLine::Rate(rate) => BranchShare::Bandwidth(rate),
            ReservationLine::Percent(percent) => BranchShare::Percent(percent),
            ReservationLine::RemainingPercent(percent) => match (left, rate) {
                (Unreserved::Rate(left), Some(rate)) if left < rate => {
                    BranchShare::Bandwidth(left.percent(percent))
                }
                (Unreserved::Rate(_), _) => BranchShare::Percent(percent),
                (Unreserved::Percent(left), _) => BranchShare::Percent(percent * left / 100.0),
                (Unreserved::Unknown, _) => {
                    let reason = "its share is left out: what remains of an unknown rate is not \
                        known; give a shaper above, or the interface a bandwidth";
                    self.notes.add(*line, reason);
                    BranchShare::None
                }
            },
            ReservationLine::RemainingRatio(ratio) => BranchShare::Weight(ratio),
            ReservationLine::Priority(own, percent, burst) => {
                let policed = class.police.as_ref().map(|police| match police.value.meter {
                    router::policy::MeterProfile::TokenBucket { rate, .. } => rate,
                    router::policy::MeterProfile::SingleRate { cir, .. }
                    | router::policy::MeterProfile::TwoRate { cir, .. } => cir,
                });
                match (own.or(policed).or(rate), percent) {
                    // What it is a percentage of must be known.
                    (_, Some(percent)) if rate.is_some() && percent > 0.0 => {
                        BranchShare::PriorityPercent { percent, burst }
                    }
                    (Some(rate), None) => BranchShare::Priority { rate, burst },
                    _ => {
                        let reason = "left out: priority of an unknown rate; give a shaper above, \
                            or the interface a bandwidth";
                        self.notes.add(*line, reason);
                        return None;
                    }
                }
            }
        };
        Some(share)
    }
}

/// The rate reserved for a class, if it can be expressed as a rate.
fn reserved_rate(class: &PolicyClass, rate: Option<Rate>) -> Option<Rate> {
    match class.reserved.as_ref()?.value {
        ReservationLine::Rate(rate) | ReservationLine::Priority(Some(rate), _, _) => Some(rate),
        ReservationLine::Percent(percent) | ReservationLine::Priority(None, Some(percent), _) => {
            rate.map(|rate| rate.percent(percent))
        }
        _ => None,
    }
}

/// The bandwidth that is not reserved by rate or percent.
#[derive(Clone, Copy, Debug)]
enum Unreserved {
    Rate(Rate),
    /// Of an unknown rate.
    Percent(f64),
    Unknown,
}

fn left_over(classes: &[PolicyClass], rate: Option<Rate>) -> Unreserved {
    if let Some(rate) = rate {
        let reserved = classes.iter().filter_map(|class| reserved_rate(class, Some(rate)));
        let reserved: u64 = reserved.fold(0, |sum, rate| sum.saturating_add(rate.bits()));
        let left = Rate::from_bits(rate.bits().saturating_sub(reserved).max(1));
        return left.map_or(Unreserved::Unknown, Unreserved::Rate);
    }
    let mut left = 100.0;
    for reserved in classes.iter().filter_map(|class| class.reserved.as_ref()) {
        match reserved.value {
            ReservationLine::Percent(percent)
            | ReservationLine::Priority(None, Some(percent), _) => {
                left -= percent;
            }
            ReservationLine::Rate(_) | ReservationLine::Priority(..) => return Unreserved::Unknown,
            ReservationLine::RemainingPercent(_) | ReservationLine::RemainingRatio(_) => {}
        }
    }
    Unreserved::Percent(f64::max(left, 0.0))
}

fn leaf_of_none() -> Queueing {
    leaf(&PolicyClass::default())
}

fn leaf(class: &PolicyClass) -> Queueing {
    let (dropper, highest) = match &class.wred {
        Some(wred) => wred.value.dropper(),
        None => (Dropper::Tail {}, 0),
    };
    // All maxima of WRED can be reached, unless a limit is configured.
    let own = QUEUE.max(highest as usize);
    if let Some(fair) = &class.fair {
        let limit = class.limit.as_ref().and_then(|limit| limit.value.packets);
        let limit = Some(limit.unwrap_or(own));
        return Queueing::FairFlows { queues: fair.value, limit, by_precedence: None, dropper };
    }
    let limit = class.limit.as_ref().map(|limit| limit.value);
    let limit = limit.unwrap_or(QueueLimit { packets: Some(own), ..QueueLimit::default() });
    Queueing::Fifo { limit, dropper }
}
