//! A message's way through this MTA, and its outcome as far as it is known here.

mod json;
mod list;
mod outcome;
mod text;

pub(crate) use json::Step;
pub use list::{Found, Listed, Wanted, list};
pub use outcome::Outcome;
pub(crate) use text::{date_and_time, duration, words};

use crate::event::{Event, LOST};
use crate::names::Key;
use crate::source::Source;
use base::{EntryId, Precedence, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most queue entries and reports of one message that are followed.
const MAX_FOLLOWED: usize = 1_000;

/// All that is known of a message, probe or report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its MTS identifier.
    pub message: String,
    /// Of a report: the MTS identifier of its subject.
    pub subject: Option<String>,
    /// What happened to it, in order.
    pub steps: Vec<Event>,
    /// Its reports, each with its way.
    pub reports: Vec<Way>,
    /// When events were lost while it was here, and how many.
    pub gaps: Vec<Gap>,
}

/// Events are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Those before this time.
    pub before: Utc,
    /// How many; 0 where nobody knows.
    pub count: u64,
    /// Of which node of a site.
    pub node: Option<Arc<str>>,
}

/// All times for which events are missing.
fn missing(events: &dyn Source) -> Vec<Gap> {
    let lost = events.find(Key::Lost).into_iter().filter(|event| event.kind == LOST);
    let gap = |event: Event| {
        let count = event.detail.parse().ok()?;
        Some(Gap { before: event.time, count, node: event.node })
    };
    lost.filter_map(gap).collect()
}

impl Way {
    /// The way of the message with this MTS identifier, its reports with it; `None` where no event is
    /// known of it.
    pub fn read(events: &dyn Source, message: &str) -> Option<Way> {
        Way::read_with(events, message, &missing(events))
    }

    /// Those of several messages, without the messages of which no event is known.
    pub fn read_all(events: &dyn Source, messages: &[String]) -> Vec<Way> {
        let gaps = missing(events);
        messages.iter().filter_map(|message| Way::read_with(events, message, &gaps)).collect()
    }

    fn read_with(events: &dyn Source, message: &str, gaps: &[Gap]) -> Option<Way> {
        let related = events.find(Key::Related(message));
        let mut way = Way::alone(events, message, &related, gaps)?;
        let mut reports: BTreeSet<String> = BTreeSet::new();
        let made = way.steps.iter().filter(|step| step.message.as_deref() == Some(message));
        reports.extend(
            made.filter(|step| step.kind == "report_made").filter_map(|s| s.related.clone()),
        );
        // On the report's own events the subject is the other side.
        let its = related.into_iter().filter(|event| event.kind != "report_made");
        reports.extend(its.filter_map(|event| event.message));
        reports.remove(message);
        let its = reports.iter().take(MAX_FOLLOWED);
        way.reports = its
            .filter_map(|id| Way::alone(events, id, &events.find(Key::Related(id)), gaps))
            .collect();
        way.reports.sort_by_key(|report| report.begun());
        Some(way)
    }

    fn alone(events: &dyn Source, message: &str, related: &[Event], gaps: &[Gap]) -> Option<Way> {
        let mut steps = events.find(Key::Message(message));
        let mut subject =
            steps.iter().filter(|s| s.kind != "report_made").find_map(|s| s.related.clone());
        for event in related.iter().filter(|event| event.kind == "report_made") {
            subject = subject.or_else(|| event.message.clone());
            // Before what happened to it at the same time.
            steps.insert(0, event.clone());
        }
        let entries: BTreeSet<u64> = steps.iter().filter_map(|step| step.entry).collect();
        for entry in entries.into_iter().take(MAX_FOLLOWED) {
            let its = events.find(Key::Entry(entry));
            steps.extend(its.into_iter().filter(|event| event.message.is_none()));
        }
        if steps.is_empty() {
            return None;
        }
        steps.sort_by_key(|step| step.time);
        let mut way = Way {
            message: message.to_owned(),
            subject,
            steps,
            reports: Vec::new(),
            gaps: Vec::new(),
        };
        let begun = way.begun();
        let its =
            gaps.iter().filter(|gap| begun < Some(gap.before) && !way.is_over_before(gap.before));
        // Of what begins without its beginning that is missing too, and what happened to it until then.
        let is_whole = |step: &Event| step.begins() || step.kind == "report_made";
        let earlier = gaps.iter().rfind(|gap| Some(gap.before) <= begun);
        let earlier = earlier.filter(|_| !way.steps.iter().any(is_whole));
        way.gaps = earlier.into_iter().chain(its).cloned().collect();
        Some(way)
    }

    /// The message of a queue entry.
    pub fn message_of(events: &dyn Source, entry: u64) -> Option<String> {
        events.find(Key::Entry(entry)).into_iter().find_map(|event| event.message)
    }

    fn is_over_before(&self, time: Utc) -> bool {
        self.ended().is_some_and(|ended| ended < time) && self.outcome().is_known()
    }

    /// The time of its first event.
    pub fn begun(&self) -> Option<Utc> {
        self.steps.first().map(|step| step.time)
    }

    /// Whether it is a report of a peer by which somebody did not get the message.
    fn is_negative(&self) -> bool {
        let came = self.steps.iter().filter(|step| step.kind == "received");
        came.into_iter().any(|step| step.detail.contains(" not delivered ("))
    }

    fn ended(&self) -> Option<Utc> {
        self.steps.last().map(|step| step.time)
    }

    /// The first of its events that name originator and recipients as they were accepted.
    fn accepted(&self) -> Option<&Event> {
        let begun = self.steps.iter().find(|step| step.begins() && step.parties.is_some());
        // An event about the end of a copy has parties for their number alone.
        let names = |step: &&Event| step.parties.as_ref().is_some_and(|p| p.count > 0);
        begun.or_else(|| self.steps.iter().find(names))
    }

    /// Its level.
    pub fn precedence(&self) -> Option<Precedence> {
        self.steps.iter().find_map(|step| step.precedence)
    }

    /// The nodes of the site at which something happened to it, in order.
    pub fn nodes(&self) -> Vec<String> {
        let mut nodes: Vec<String> = Vec::new();
        for node in self.steps.iter().filter_map(|step| step.node.as_deref()) {
            if !nodes.iter().any(|known| known == node) {
                nodes.push(node.to_owned());
            }
        }
        nodes
    }

    /// Octets of its content.
    pub fn bytes(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| step.bytes)
    }

    /// What is known of its end.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            reports: self.reports.len(),
            negative: self.reports.iter().any(Way::is_negative),
            ..Outcome::from_steps(&self.steps)
        }
    }
}

/// An entry as people write it.
fn entry_text(entry: u64) -> String {
    EntryId(entry).to_string()
}
