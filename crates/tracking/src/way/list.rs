//! Messages of an originator, to a recipient, or of a time.

use super::text::{date_and_time, wrapped};
use super::{Way, entry_text};
use crate::event::{Event, LOST};
use crate::names::Key;
use crate::source::Source;
use base::{Precedence, Utc};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

/// Which messages are wanted. What is absent does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// An MTS identifier, a content identifier, or an entry as `e42`.
    pub id: Option<String>,
    /// Canonical address of the originator.
    pub originator: Option<String>,
    /// Canonical address of a recipient.
    pub recipient: Option<String>,
    /// First seen not before.
    pub since: Option<Utc>,
    /// First seen not after.
    pub until: Option<Utc>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// MTS identifiers, the oldest first.
    pub messages: Vec<String>,
    /// There are more than the limit.
    pub more: bool,
}

/// Finds messages.
pub fn list(events: &dyn Source, wanted: &Wanted) -> Found {
    if let Some(id) = &wanted.id {
        return by_identifier(events, id);
    }
    let times = (wanted.since.unwrap_or(Utc(0)), wanted.until.unwrap_or(Utc(u64::MAX)));
    let mut seen = BTreeSet::new();
    let mut found = Found::default();
    let mut take = |event: Event| {
        let Some(message) = event.message.clone().filter(|_| wanted.takes(&event, times)) else {
            return ControlFlow::Continue(());
        };
        if !seen.insert(message.clone()) {
            return ControlFlow::Continue(());
        }
        if found.messages.len() >= wanted.limit {
            found.more = true;
            return ControlFlow::Break(());
        }
        found.messages.push(message);
        ControlFlow::Continue(())
    };
    match (&wanted.recipient, &wanted.originator) {
        (Some(recipient), _) => events.find_newest(Key::Recipient(recipient), times, &mut take),
        (None, Some(originator)) => {
            events.find_newest(Key::Originator(originator), times, &mut take);
        }
        (None, None) => events.scan_newest(times, &mut take),
    }
    found.messages.reverse();
    found
}

fn by_identifier(events: &dyn Source, id: &str) -> Found {
    let exact = |message: String| Found { messages: vec![message], more: false };
    if Way::read(events, id).is_some() {
        return exact(id.to_owned());
    }
    let entry = id.strip_prefix('e').and_then(|number| number.parse().ok());
    if let Some(message) = entry.and_then(|entry| Way::message_of(events, entry)) {
        return exact(message);
    }
    let mut seen = BTreeSet::new();
    let its = events.find(Key::ContentId(id)).into_iter().filter_map(|event| event.message);
    Found { messages: its.filter(|message| seen.insert(message.clone())).collect(), more: false }
}

impl Wanted {
    fn takes(&self, event: &Event, times: (Utc, Utc)) -> bool {
        let has = |key: Option<Key<'_>>| key.is_none_or(|key| key.is_of(event));
        event.kind != LOST
            && (event.begins() || (self.recipient.is_some() && event.kind == "delivered"))
            && (times.0..=times.1).contains(&event.time)
            && has(self.originator.as_deref().map(Key::Originator))
            && has(self.recipient.as_deref().map(Key::Recipient))
    }
}

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// MTS identifier.
    pub mts_id: String,
    /// When it was first seen here, RFC 3339.
    pub time: String,
    /// Its level.
    pub precedence: Option<Precedence>,
    /// Octets of content.
    pub bytes: Option<u64>,
    /// Canonical address of the originator.
    pub originator: Option<String>,
    /// Canonical addresses of the recipients.
    pub recipients: Vec<String>,
    /// How many recipients there are.
    pub recipient_count: u64,
    /// Queue entries.
    pub entries: Vec<String>,
    /// The nodes of the site at which something happened to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Its outcome in a word or two.
    pub outcome: String,
}

impl Listed {
    /// The same of a message whose way is known.
    pub fn new(way: &Way) -> Listed {
        let parties = way.accepted().and_then(|event| event.parties.clone()).unwrap_or_default();
        let entries: BTreeSet<u64> = way.steps.iter().filter_map(|step| step.entry).collect();
        Listed {
            mts_id: way.message.clone(),
            time: way.begun().unwrap_or_default().to_string(),
            precedence: way.precedence(),
            bytes: way.bytes(),
            originator: parties.originator,
            recipients: parties.recipients,
            recipient_count: parties.count,
            entries: entries.into_iter().map(entry_text).collect(),
            nodes: way.nodes(),
            outcome: way.outcome().short(),
        }
    }

    /// As text of 80 columns: when, how urgent and its outcome; who it is below.
    pub fn to_text(ways: &[Way]) -> String {
        let mut out = String::from("TIME (UTC)           PRECEDENCE      OCTETS  OUTCOME\n");
        for way in ways {
            let row = Listed::new(way);
            let (date, time) = date_and_time(way.begun().unwrap_or_default());
            let time = time.get(..8).unwrap_or_default();
            let precedence = row.precedence.map_or("-", Precedence::name);
            let octets = row.bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
            let _ = write!(out, "{date} {time}  {precedence:<10}  {octets:>10}  ");
            wrapped(&mut out, 45, 45, &row.outcome);
            out.push_str("  ");
            wrapped(&mut out, 2, 4, &row.mts_id);
            if !row.nodes.is_empty() {
                out.push_str("  ");
                wrapped(&mut out, 2, 4, &format!("at {}", row.nodes.join(", ")));
            }
            let from = row.originator.unwrap_or_else(|| "(report)".to_owned());
            let to = row.recipients.first().cloned().unwrap_or_else(|| "-".to_owned());
            let more = match row.recipient_count {
                0 | 1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            out.push_str("  ");
            wrapped(&mut out, 2, 4, &format!("{from} -> {to}{more}"));
        }
        out
    }
}
