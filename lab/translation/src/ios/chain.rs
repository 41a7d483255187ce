//! The conditioners of a policy map: `set`, `police`, `drop`. A packet is in the first class that
//! it matches as it arrived. One first-match step expresses exactly this.

use super::MAX_DEPTH;
use super::map::{DEFAULT, PoliceLine, PolicyClass, PolicyMaker, PolicyMap, is_default};
use super::matching::algebra::any_common;
use dscp::Dscp;
use router::policy::{ChainStep, ClassSteps, Match, MeterAction, MeterProfile, Name};
use std::collections::BTreeSet;

impl PolicyMaker<'_> {
    /// The chain of marks, meters and drops of a policy map; `None` if it has none.
    pub(super) fn chain(&mut self, map: &PolicyMap) -> Option<Name> {
        if !map.classes.iter().any(|class| class.conditions() || class.child.is_some()) {
            return None;
        }
        if self.policy.chains.contains_key(&map.name) {
            return Some(map.name.clone());
        }
        let classes = self.cases(map);
        if classes.is_empty() {
            return None;
        }
        self.policy.chains.insert(map.name.clone(), vec![ChainStep::FirstMatch { classes }]);
        Some(map.name.clone())
    }

    /// The cases of a policy map; empty if none has steps. A class without steps still keeps its
    /// packets from the classes after it.
    fn cases(&mut self, map: &PolicyMap) -> Vec<ClassSteps> {
        let mut cases: Vec<ClassSteps> = Vec::new();
        if !self.enter(map) {
            return cases;
        }
        for class in &map.classes {
            let Some(matches) = self.matches(class) else { continue };
            self.work.looks_at(matches.len());
            let name = (!is_default(&class.name)).then(|| class.name.clone());
            let steps = self.steps(class);
            if name.is_some() || !steps.is_empty() {
                cases.push(ClassSteps { class: name, steps });
            }
        }
        self.above.pop();
        // At the end, classes without steps have no effect.
        if cases.iter().all(|case| case.class.is_some()) {
            let last = cases.iter().rposition(|case| !case.steps.is_empty());
            cases.truncate(last.map_or(0, |place| place + 1));
        }
        cases
    }

    /// The steps for the packets of a class, which are the only packets that reach them. As in IOS,
    /// the service policy of the class acts before the lines of the class.
    fn steps(&mut self, class: &PolicyClass) -> Vec<ChainStep> {
        if class.drop.is_some() {
            return vec![ChainStep::Drop { class: None }];
        }
        let child = class.child.as_ref().and_then(|name| self.map(name));
        let classes = child.map_or_else(Vec::new, |child| self.cases(child));
        let inside = (!classes.is_empty()).then_some(ChainStep::FirstMatch { classes });
        let set = class.set.as_ref().map(|set| ChainStep::Mark { class: None, dscp: set.value });
        // A mark by colour replaces the mark of the class.
        let police = class.police.as_ref().map(|police| police.value.step());
        inside.into_iter().chain(set).chain(police).collect()
    }

    /// Enters a policy map, unless it is nested in itself or too deep. After `true`, the caller
    /// pops `above` when it leaves the map.
    pub(super) fn enter(&mut self, map: &PolicyMap) -> bool {
        let why = if self.above.contains(&map.name) {
            "left out: the policy stands in itself".to_owned()
        } else if self.above.len() >= MAX_DEPTH {
            format!("left out: policies stand more than {MAX_DEPTH} deep")
        } else if self.work.goes_through(map.classes.len()) {
            self.above.push(map.name.clone());
            return true;
        } else {
            return false;
        };
        self.notes.add(map.line, why);
        false
    }

    /// The matches of a class of the map; `None` if the class was left out.
    fn matches(&mut self, class: &PolicyClass) -> Option<Vec<Match>> {
        if is_default(&class.name) {
            return Some(vec![Match::default()]);
        }
        let found = self.classes.get(&class.name).map(|class| &class.matches);
        let found = found.filter(|matches| self.work.makes(matches.len())).cloned();
        if found.is_none() && !self.work.is_spent() {
            let why = if self.config.classes.contains_key(&class.name) {
                "is not mapped"
            } else {
                "is not there"
            };
            self.notes.add(class.line, format!("left out: the class map {} {why}", class.name));
        }
        found
    }

    /// IOS queues a packet as it arrived, by the first class that it matches. This router queues it
    /// with its new mark, by the first class that has a queue. Notes the lines for which the
    /// results differ.
    pub(super) fn queued_otherwise(&mut self, map: &PolicyMap) {
        for (place, class) in map.classes.iter().enumerate() {
            let is_named = !is_default(&class.name);
            let mut given = BTreeSet::new();
            self.marks(class, &mut given);
            // Unmarked packets of a class with a queue find it in the order of IOS.
            let stays = is_named && !self.has_queue(class) && passes_unmarked(class);
            if given.is_empty() && !stays {
                continue;
            }
            let Some(matches) = self.matches(class) else { continue };
            for (line, dscp) in given {
                let all = matches.iter().map(|of| Match { dscp: vec![dscp], ..of.clone() });
                if let Some(queue) = self.other_queue(map, 0, class, all) {
                    let reason = format!(
                        "marked {dscp} before it is queued: it is queued by that, with {queue}"
                    );
                    self.notes.add(line, reason);
                }
            }
            let other = stays.then(|| self.other_queue(map, place, class, matches.into_iter()));
            if let Some(queue) = other.flatten() {
                let reason = format!(
                    "its packets have no queue of their own: those that belong to {queue}, too, wait \
                     there, in IOS with class-default"
                );
                self.notes.add(class.line, reason);
            }
        }
    }

    /// The code points that a class and its service policies set, with their lines.
    fn marks(&mut self, class: &PolicyClass, into: &mut BTreeSet<(usize, Dscp)>) {
        if class.drop.is_some() {
            return;
        }
        into.extend(class.set.iter().map(|set| (set.line, set.value)));
        if let Some(police) = &class.police {
            let marks = police.value.actions.iter().filter_map(|action| match action {
                Some(MeterAction::Mark(dscp)) => Some((police.line, *dscp)),
                _ => None,
            });
            into.extend(marks);
        }
        let child = class.child.as_ref().and_then(|name| self.map(name));
        if let Some(child) = child.filter(|child| self.enter(child)) {
            child.classes.iter().for_each(|class| self.marks(class, into));
            self.above.pop();
        }
    }

    /// The first queue, from the class at `place` on, that packets of these matches may enter, if
    /// it is not the queue of their class.
    fn other_queue(
        &mut self,
        map: &PolicyMap,
        place: usize,
        class: &PolicyClass,
        matches: impl Iterator<Item = Match>,
    ) -> Option<String> {
        let own = self.has_queue(class) && !is_default(&class.name);
        let own = own.then_some(class.name.as_str());
        let queues = map.classes.iter().skip(place);
        let queues = queues.filter(|class| self.has_queue(class) && !is_default(&class.name));
        let queues: Vec<(&str, &[Match])> = queues
            .filter_map(|class| Some((class.name.as_str(), self.classes.get(&class.name)?)))
            .map(|(name, class)| (name, class.matches.as_slice()))
            .collect();
        let work = &mut *self.work;
        for of in matches {
            let of = std::slice::from_ref(&of);
            let found = queues.iter().find(|(_, all)| any_common(all, of, work));
            let found = found.map(|(name, _)| *name);
            if found != own {
                return Some(found.unwrap_or(DEFAULT).to_owned());
            }
        }
        None
    }
}

/// Whether some packets of a class keep the code point with which they arrived.
fn passes_unmarked(class: &PolicyClass) -> bool {
    // Without a conform-action, conforming packets are sent unchanged.
    let passes = |police: &PoliceLine| {
        police.actions[0].is_none() || police.actions.contains(&Some(MeterAction::Pass))
    };
    class.set.is_none() && class.police.as_ref().is_none_or(|police| passes(&police.value))
}

impl PoliceLine {
    fn step(&self) -> ChainStep {
        let [conform, exceed, violate] = self.actions;
        let exceed = exceed.unwrap_or(MeterAction::Drop);
        let (yellow, red) = match self.meter {
            // A token bucket gives no yellow, and a router refuses a mark for it.
            MeterProfile::TokenBucket { .. } => (MeterAction::Pass, exceed),
            _ => (exceed, violate.unwrap_or(exceed)),
        };
        let green = conform.unwrap_or(MeterAction::Pass);
        ChainStep::Meter { class: None, meter: self.meter.clone(), green, yellow, red }
    }
}
