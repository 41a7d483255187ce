//! One classification into several classes, each with its own steps.

use super::StepContext;
use crate::classify::{Classifier, FlowTables};
use crate::conditioner::{Conditioner, PacketVerdict};
use crate::count::{PacketCounters, PartCounters};
use crate::packet::Packet;
use crate::policy::{ClassSteps, KeyFault, Name};
use crate::time::Time;
use std::collections::BTreeSet;

/// Classifies a packet as it arrived, and passes it through the steps of the first class that
/// matches. No step holds packets.
#[derive(Debug)]
pub(super) struct FirstMatch {
    classifier: Classifier,
    cases: Vec<(Name, Vec<Box<dyn Conditioner>>)>,
    counters: PacketCounters,
}

impl FirstMatch {
    pub(super) fn new(
        cases: &[ClassSteps],
        at: StepContext<'_>,
        path: &str,
    ) -> Result<FirstMatch, KeyFault> {
        let path = format!("{path}.classes");
        if cases.is_empty() {
            return Err(KeyFault::at(path, "none: it would do nothing"));
        }
        let (mut seen, mut built) = (BTreeSet::new(), Vec::new());
        for (number, ClassSteps { class, steps }) in cases.iter().enumerate() {
            let path = format!("{path}[{number}]");
            if !seen.insert(class.as_deref()) {
                let what = match class {
                    Some(name) => format!("{name:?} has its steps already: these are for nothing"),
                    None => "two without a class: one is enough".to_owned(),
                };
                return Err(KeyFault::at(format!("{path}.class"), what));
            }
            let name = class.clone().unwrap_or_else(|| "others".to_owned());
            built.push((name, super::steps(at.inside(), steps, &format!("{path}.steps"))?));
        }
        let classes: Vec<_> = cases.iter().map(|case| case.class.as_deref()).collect();
        let classifier = Classifier::new(at.policy, at.interfaces, &classes, &path)?;
        Ok(FirstMatch { classifier, cases: built, counters: PacketCounters::default() })
    }
}

impl Conditioner for FirstMatch {
    fn take(&mut self, now: Time, mut packet: Packet, tables: &FlowTables) -> PacketVerdict {
        let place = self.classifier.find(&packet, tables);
        let Some((_, steps)) = place.and_then(|place| self.cases.get_mut(place)) else {
            return PacketVerdict::Pass(packet);
        };
        self.counters.came(packet.dscp(), packet.length());
        for step in steps {
            packet = match step.take(now, packet, tables) {
                PacketVerdict::Pass(packet) => packet,
                PacketVerdict::Drop(packet, cause) => {
                    self.counters.dropped(packet.dscp(), packet.length(), cause);
                    return PacketVerdict::Drop(packet, cause);
                }
                PacketVerdict::Hold => return PacketVerdict::Hold,
            };
        }
        self.counters.went(packet.dscp(), packet.length());
        PacketVerdict::Pass(packet)
    }

    fn follow(&mut self, now: Time, tables: &FlowTables) {
        for step in self.cases.iter_mut().flat_map(|(_, steps)| steps) {
            step.follow(now, tables);
        }
    }

    fn report<'a>(&'a self, path: &str, into: &mut Vec<PartCounters<'a>>) {
        into.push(PartCounters {
            path: path.to_owned(),
            kind: "first-match",
            counters: &self.counters,
        });
        for (name, steps) in &self.cases {
            for (number, step) in steps.iter().enumerate() {
                step.report(&format!("{path}/{name}/{number}"), into);
            }
        }
    }
}
