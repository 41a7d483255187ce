//! A way as JSON.

use super::{Gap, Outcome, Way, entry_text};
use crate::event::{Event, Parties};
use base::{Precedence, Utc};
use serde::Serialize as Derived;
use serde::ser::{Serialize, Serializer};

#[derive(Debug, Derived)]
pub(crate) struct Step<'a> {
    time: String,
    time_us: u64,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    association: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

impl<'a> Step<'a> {
    pub(crate) fn new(event: &'a Event) -> Step<'a> {
        Step {
            time: event.time.to_string(),
            time_us: event.time.0,
            event: &event.kind,
            node: event.node.as_deref(),
            entry: event.entry.map(entry_text),
            peer: event.peer.as_deref(),
            channel: event.channel.as_deref(),
            association: event.association.map(|a| format!("a{a}")),
            bytes: event.bytes,
            related: event.related.as_deref(),
            copies: event.parties.as_ref().and_then(|p| p.copies),
            operator: event.operator.as_deref(),
            detail: &event.detail,
        }
    }
}

#[derive(Derived)]
struct Line<'a> {
    mts_id: &'a str,
    subject: Option<&'a str>,
    originator: Option<&'a str>,
    recipients: &'a [String],
    recipient_count: u64,
    content_id: Option<&'a str>,
    precedence: Option<Precedence>,
    bytes: Option<u64>,
    steps: Vec<Step<'a>>,
    reports: &'a [Way],
    gaps: Vec<Missing<'a>>,
    outcome: OutcomeLine,
}

#[derive(Derived)]
struct Missing<'a> {
    before: String,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

impl<'a> Missing<'a> {
    fn new(gap: &'a Gap) -> Missing<'a> {
        let (before, node) = (gap.before.to_string(), gap.node.as_deref());
        Missing { before, count: gap.count, node }
    }
}

#[derive(Derived)]
struct End {
    to: String,
    time: String,
    after_us: Option<u64>,
}

/// A outcome as JSON.
#[derive(Derived)]
struct OutcomeLine {
    delivered: Vec<End>,
    transferred: Vec<End>,
    ended: Vec<(String, String)>,
    waiting: Option<u64>,
    words: String,
}

impl OutcomeLine {
    fn new(outcome: &Outcome) -> OutcomeLine {
        let end = |(to, at): &(String, Utc)| End {
            to: to.clone(),
            time: at.to_string(),
            after_us: outcome.accepted.map(|from| at.0.saturating_sub(from.0)),
        };
        OutcomeLine {
            delivered: outcome.delivered.iter().map(end).collect(),
            transferred: outcome.transferred.iter().map(end).collect(),
            ended: outcome.ended.clone(),
            waiting: outcome.waiting,
            words: outcome.to_string(),
        }
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let none = Parties::default();
        let parties = self.accepted().and_then(|event| event.parties.as_ref()).unwrap_or(&none);
        let line = Line {
            mts_id: &self.message,
            subject: self.subject.as_deref(),
            originator: parties.originator.as_deref(),
            recipients: &parties.recipients,
            recipient_count: parties.count,
            content_id: parties.content_id.as_deref(),
            precedence: self.precedence(),
            bytes: self.bytes(),
            steps: self.steps.iter().map(Step::new).collect(),
            reports: &self.reports,
            gaps: self.gaps.iter().map(Missing::new).collect(),
            outcome: OutcomeLine::new(&self.outcome()),
        };
        Derived::serialize(&line, serializer)
    }
}
