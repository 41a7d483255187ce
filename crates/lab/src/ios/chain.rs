//! The conditioners of a policy map: `set`, `police`, `drop`. A packet belongs to the first class
//! that it matches, by what it was when it came.

use super::algebra::{all_without, any_common};
use super::map::{Maker, Police, PolicyClass, PolicyMap, is_default};
use super::work::Work;
use dscp::Dscp;
use router::policy::{Action, Class, Flow, Match, Name, Step, Table};

impl Maker<'_> {
    /// The chain of what a policy map marks, meters and drops; none where it does not.
    pub(super) fn chain(&mut self, map: &PolicyMap) -> Option<Name> {
        if !map.classes.iter().any(PolicyClass::conditions) {
            return None;
        }
        if self.policy.chains.contains_key(&map.name) {
            return Some(map.name.clone());
        }
        let only_marks = map.classes.iter().all(|c| c.police.is_none() && c.drop.is_none());
        let steps = if only_marks { self.marks(map) } else { self.steps(map) };
        self.policy.chains.insert(map.name.clone(), steps);
        Some(map.name.clone())
    }

    /// What a class of the map matches; `None` where that was left out.
    fn matches(&mut self, class: &PolicyClass) -> Option<Vec<Match>> {
        if is_default(&class.name) {
            return Some(vec![Match::default()]);
        }
        let found = self.classes.get(&class.name).map(|class| &class.matches);
        let found = found.filter(|matches| self.work.keeps(matches.len())).cloned();
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

    /// One table in which the first flow that matches marks: as IOS looks for the class.
    fn marks(&mut self, map: &PolicyMap) -> Vec<Step> {
        let mut table = Table::default();
        // What belongs to no class comes last, wherever it is written.
        let (default, named): (Vec<_>, Vec<_>) =
            map.classes.iter().partition(|class| is_default(&class.name));
        for class in named.into_iter().chain(default) {
            let Some(matches) = self.matches(class) else { continue };
            let mark = class.set.as_ref().map(|set| set.value);
            let several = matches.len() > 1;
            for (number, matches) in matches.into_iter().enumerate() {
                let name = match several {
                    true => format!("{}-{}", class.name, number + 1),
                    false => class.name.clone(),
                };
                table.flows.push(Flow { name, matches, mark, rate: None, burst: None });
            }
        }
        self.policy.tables.insert(map.name.clone(), table);
        vec![Step::MarkFlows { table: map.name.clone() }]
    }

    /// A step for each class, each of what no class before it matches.
    fn steps(&mut self, map: &PolicyMap) -> Vec<Step> {
        let (mut made, mut before): (Vec<Made>, Vec<Match>) = (Vec::new(), Vec::new());
        let (default, named): (Vec<_>, Vec<_>) =
            map.classes.iter().partition(|class| is_default(&class.name));
        for class in named.into_iter().chain(default) {
            let Some(matches) = self.matches(class) else { continue };
            let own = match all_without(&matches, &before, self.work) {
                Ok(own) => own,
                Err(why) => {
                    let reason = format!("left out: without the classes before it, {why}");
                    self.notes.add(class.line, reason);
                    continue;
                }
            };
            before.extend(matches.iter().cloned());
            if !class.conditions() || own.is_empty() {
                continue;
            }
            let name = if own == matches && !is_default(&class.name) {
                class.name.clone()
            } else {
                format!("{}/{}", map.name, class.name)
            };
            self.policy.classes.insert(name.clone(), Class { matches: own.clone() });
            made.push(Made { line: class.line, step: step(class, name), own });
        }
        self.in_order(made)
    }

    /// The steps in an order in which none sees what another has marked.
    fn in_order(&mut self, mut made: Vec<Made>) -> Vec<Step> {
        let mut steps = Vec::new();
        while !made.is_empty() {
            let work = &mut *self.work;
            let unseen = made.iter().position(|one| {
                !work.is_spent() && !made.iter().any(|other| one.is_seen_by(other, work))
            });
            match unseen {
                Some(place) => steps.push(made.remove(place).step),
                None => {
                    let last = made.pop();
                    let reason = "left out: it would match what another class has marked";
                    last.into_iter().for_each(|last| self.notes.add(last.line, reason));
                }
            }
        }
        steps
    }

    /// IOS queues by what a packet was and by the first class that it belongs to; this router by what
    /// it has become, and by the first class that has a queue: told where it differs. `marks` where
    /// the policy's marks are given before.
    pub(super) fn queued_otherwise(&mut self, map: &PolicyMap, marks: bool) {
        for (place, class) in map.classes.iter().enumerate() {
            let is_named = !is_default(&class.name);
            let set = class.set.as_ref().filter(|_| marks);
            // Unmarked packets find the queue of their class in the order of IOS.
            if set.is_none() && (class.has_queue() || !is_named) {
                continue;
            }
            let Some(matches) = self.matches(class) else { continue };
            let own = (is_named && class.has_queue()).then_some(class.name.as_str());
            let now = |of: Match| match set {
                Some(set) => Match { dscp: vec![set.value], ..of },
                None => of,
            };
            let before = if set.is_some() { 0 } else { place };
            let queues: Vec<(&str, &Vec<Match>)> = map
                .classes
                .iter()
                .skip(before)
                .filter(|class| class.has_queue() && !is_default(&class.name))
                .filter_map(|class| Some((class.name.as_str(), self.classes.get(&class.name)?)))
                .map(|(name, class)| (name, &class.matches))
                .collect();
            let work = &mut *self.work;
            let elsewhere = matches.into_iter().map(now).find_map(|of| {
                let mut queues = queues.iter();
                let found =
                    queues.find(|(_, all)| any_common(all, std::slice::from_ref(&of), work));
                let found = found.map(|(name, _)| *name);
                (found != own).then_some(found.unwrap_or("class-default"))
            });
            let Some(queue) = elsewhere else { continue };
            let (line, reason) = match set {
                Some(set) => (
                    set.line,
                    format!(
                        "marked before it is queued: it is queued by its new code point, with {queue}"
                    ),
                ),
                None => (
                    class.line,
                    format!(
                        "its packets have no queue of their own: those that belong to {queue}, too, \
                        wait there, in IOS with class-default"
                    ),
                ),
            };
            self.notes.add(line, reason);
        }
    }
}

/// A step, and which packets it is for.
struct Made {
    line: usize,
    step: Step,
    own: Vec<Match>,
}

impl Made {
    /// Whether packets that this step has marked match another.
    fn is_seen_by(&self, other: &Made, work: &mut Work) -> bool {
        self.line != other.line
            && marks_of(&self.step).iter().any(|dscp| {
                let marked = |own: &Match| Match { dscp: vec![*dscp], ..own.clone() };
                let marked: Vec<Match> = self.own.iter().map(marked).collect();
                work.keeps(1) && any_common(&marked, &other.own, work)
            })
    }
}

fn step(class: &PolicyClass, name: Name) -> Step {
    let own = class.set.as_ref().map(|set| Action::Mark(set.value));
    match (&class.drop, &class.police, &class.set) {
        (Some(_), _, _) => Step::Drop { class: Some(name) },
        (None, Some(police), _) => {
            let Police { meter, actions: [conform, exceed, violate] } = &police.value;
            // What is sent on carries the class's own mark, if it has one.
            let sent = |action: Action| match action {
                Action::Pass => own.unwrap_or(Action::Pass),
                other => other,
            };
            let exceed = exceed.unwrap_or(Action::Drop);
            let (yellow, red) = match meter {
                // It finds nothing yellow, and a router takes no mark for that.
                router::policy::Meter::TokenBucket { .. } => (Action::Pass, sent(exceed)),
                _ => (sent(exceed), sent(violate.unwrap_or(exceed))),
            };
            Step::Meter {
                class: Some(name),
                meter: meter.clone(),
                green: sent(conform.unwrap_or(Action::Pass)),
                yellow,
                red,
            }
        }
        (None, None, set) => {
            let dscp = set.as_ref().map(|set| set.value).unwrap_or_default();
            Step::Mark { class: Some(name), dscp }
        }
    }
}

/// The code points that a step gives.
fn marks_of(step: &Step) -> Vec<Dscp> {
    match step {
        Step::Mark { dscp, .. } => vec![*dscp],
        Step::Meter { green, yellow, red, .. } => [green, yellow, red]
            .into_iter()
            .filter_map(|action| match action {
                Action::Mark(dscp) => Some(*dscp),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
