//! Policy maps: the cases of a chain and the branches of a queueing as the classes of one map.

use super::Exporter;
use super::cases::{Case, StepLines};
use super::queue::{QueueLines, unit};
use crate::ios::MAX_DEPTH;
use crate::ios::map::DEFAULT;
use router::policy::{Branch, BranchShare, Dropper, Queueing};
use std::sync::LazyLock;

/// A class of a policy map, of a case or a branch or both.
struct MapClass<'q> {
    /// Of all other packets if absent.
    class: Option<String>,
    case: Option<&'q Case>,
    share: BranchShare,
    share_path: String,
    queueing: Option<(&'q Queueing, String)>,
}

impl<'q> MapClass<'q> {
    fn new(class: Option<String>) -> MapClass<'q> {
        let (share, share_path) = (BranchShare::None, String::new());
        MapClass { class, case: None, share, share_path, queueing: None }
    }
}

impl Exporter<'_> {
    /// Writes the policy map `name` after the maps inside it.
    pub(super) fn map(
        &mut self,
        name: &str,
        cases: &[Case],
        queueing: Option<(&Queueing, &str)>,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            let path = queueing.map(|(_, path)| path.to_owned());
            let path = path.or_else(|| cases.first().map(|case| case.path.clone()));
            let what = format!("policy maps inside one another: {MAX_DEPTH} at most are read back");
            self.fault(path.unwrap_or_default(), what);
            return;
        }
        let classes = self.classes_of(cases, queueing, depth);
        let mut text = format!("policy-map {name}\n");
        for class in classes {
            let shown = class.class.as_deref().unwrap_or(DEFAULT);
            text.push_str(&format!(" class {shown}\n"));
            for line in self.class_lines(name, &class, depth) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        self.policies.push(text);
    }

    /// The classes of a map, that of all other packets last.
    fn classes_of<'q>(
        &mut self,
        cases: &'q [Case],
        queueing: Option<(&'q Queueing, &str)>,
        depth: usize,
    ) -> Vec<MapClass<'q>> {
        let mut classes: Vec<MapClass<'q>> = Vec::new();
        for case in cases {
            if classes.iter().any(|other| other.class == case.of.class) {
                self.fault(&case.path, "the class has a case already: the first decides");
            } else {
                classes.push(MapClass { case: Some(case), ..MapClass::new(case.of.class.clone()) });
            }
        }
        classes.sort_by_key(|class| class.class.is_none());
        match queueing {
            None => {}
            Some((Queueing::ClassBased { rate, branches }, path)) => {
                if rate.is_some() && depth > 1 {
                    let what = "IOS shares the rate that the class above has: leave it out";
                    self.fault(format!("{path}.rate"), what);
                }
                if branches.iter().all(|of| of.class.is_none() && of.share == BranchShare::None) {
                    let what =
                        "IOS has nothing to share here: write the queueing of the branch alone";
                    self.fault(format!("{path}.branches"), what);
                }
                self.one_unit(branches.iter().map(|branch| branch.share), path);
                self.branches(&mut classes, branches, path);
            }
            Some((other, path)) => {
                let place = default_of(&mut classes);
                if let Some(default) = classes.get_mut(place) {
                    default.queueing = Some((other, path.to_owned()));
                }
            }
        }
        classes
    }

    /// Adds the branches of a scheduler.
    fn branches<'q>(
        &mut self,
        classes: &mut Vec<MapClass<'q>>,
        branches: &'q [Branch],
        path: &str,
    ) {
        let mut least = 0;
        for (number, branch) in branches.iter().enumerate() {
            let path = format!("{path}.branches[{number}]");
            if branch.class.is_none() && number + 1 < branches.len() {
                let what =
                    "in IOS class-default is the last: put the branch of all other packets last";
                self.fault(&path, what);
            }
            let named = classes.iter().filter(|class| class.class.is_some()).count();
            let place = match &branch.class {
                None => default_of(classes),
                Some(class) => {
                    let known =
                        classes.iter().position(|other| other.class.as_ref() == Some(class));
                    known.unwrap_or_else(|| {
                        classes.insert(named, MapClass::new(Some(class.clone())));
                        named
                    })
                }
            };
            if place < least {
                let what = "the chain of this name has its classes in another order, and a policy \
                    map has one";
                self.fault(format!("{path}.class"), what);
            }
            least = place;
            if let Some(class) = classes.get_mut(place) {
                class.share = branch.share;
                class.share_path = format!("{path}.share");
                class.queueing = Some((&branch.queueing, format!("{path}.queueing")));
            }
        }
        let place = default_of(classes);
        if let Some(default) = classes.get_mut(place) {
            default.queueing.get_or_insert_with(|| (others(), path.to_owned()));
        }
    }

    /// IOS has one unit for the `bandwidth` lines of a policy map.
    fn one_unit(&mut self, shares: impl Iterator<Item = BranchShare>, path: &str) {
        let mut first = None;
        for (number, share) in shares.enumerate() {
            let Some(unit) = unit(share) else { continue };
            if *first.get_or_insert(unit) != unit {
                let what = "IOS has one unit in a policy map: bandwidth, percent or weight";
                self.fault(format!("{path}.branches[{number}].share"), what);
            }
        }
    }

    /// The lines of a class, in the order of a configuration.
    fn class_lines(&mut self, map: &str, class: &MapClass<'_>, depth: usize) -> Vec<String> {
        let named = class.class.is_some();
        let share = self.share(class.share, named, &class.share_path);
        let steps = match class.case {
            Some(case) => self.steps(&case.of.steps, &case.path),
            None => StepLines::default(),
        };
        let queue = match &class.queueing {
            Some((of, path)) => self.queue(of, path),
            None => QueueLines::default(),
        };
        if let BranchShare::Priority { .. } | BranchShare::PriorityPercent { .. } = class.share
            && let Some((of, path)) = &class.queueing
            && !matches!(of, Queueing::Fifo { dropper: Dropper::Tail {}, .. })
        {
            self.fault(path, "a class of priority has one queue with tail drop in IOS");
        }
        let mut lines: Vec<String> = share.into_iter().chain(queue.shape).collect();
        lines.extend(steps.lines);
        lines.extend(queue.queue);
        if !steps.inner.is_empty() || queue.inner.is_some() {
            let inner = self.inner_name(map, class.class.as_deref());
            let queueing = queue.inner.as_ref().map(|(of, path)| (*of, path.as_str()));
            self.map(&inner, &steps.inner, queueing, depth + 1);
            lines.push(format!("service-policy {inner}"));
        }
        lines
    }
}

/// The place of the class of all other packets, which is added as the last one if there is none.
fn default_of(classes: &mut Vec<MapClass<'_>>) -> usize {
    let place = classes.iter().position(|class| class.class.is_none());
    place.unwrap_or_else(|| {
        classes.push(MapClass::new(None));
        classes.len() - 1
    })
}

/// The queue of packets for which no branch is.
fn others() -> &'static Queueing {
    static OTHERS: LazyLock<Queueing> = LazyLock::new(Queueing::default);
    &OTHERS
}
