//! One event as it is stored.

use base::{Precedence, Utc};
use serde::{Deserialize, Serialize};
use status::event::LogEvent;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of an event that stands for events which are missing; its detail has their number.
pub const LOST: &str = "events_lost";

/// What happened to a message. All text is as it came: who shows it escapes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When the node handled it.
    pub time: Utc,
    /// Name of the kind, as in the event log. A reader takes names that it does not know.
    pub kind: Cow<'static, str>,
    /// MTS identifier.
    pub message: Option<String>,
    /// Queue entry.
    pub entry: Option<u64>,
    /// Its level.
    pub precedence: Option<Precedence>,
    /// From or to which peer.
    pub peer: Option<String>,
    /// On which of its channels.
    pub channel: Option<String>,
    /// On which association.
    pub association: Option<u64>,
    /// Octets of content.
    pub bytes: Option<u64>,
    /// When this MTA accepted the message, on what ends a copy.
    pub accepted: Option<Utc>,
    /// The subject of a report, or the report on a message.
    pub related: Option<String>,
    /// From whom and to whom, where that is first seen.
    pub parties: Option<Parties>,
    /// By which operator, where one ordered it.
    pub operator: Option<String>,
    /// Details in words.
    pub detail: String,
    /// At which node of a site it happened. It is not in the file: all events of a file are of one node.
    #[serde(skip)]
    pub node: Option<Arc<str>>,
}

/// From whom and to whom a message is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parties {
    /// Canonical address of the originator.
    pub originator: Option<String>,
    /// Canonical addresses of the recipients, the first [`status::event::MAX_RECIPIENTS`].
    pub recipients: Vec<String>,
    /// How many there are.
    pub count: u64,
    /// Content identifier.
    pub content_id: Option<String>,
    /// How many copies were queued, one for each next hop: where it was accepted, routed again or expanded.
    pub copies: Option<u64>,
}

impl Event {
    /// An event of the node at this time; `place` is the name of its peer and of its channel.
    pub fn new(time: Utc, event: LogEvent, place: Option<(&str, &str)>) -> Event {
        let parties = event.parties.map(|p| Parties {
            originator: p.originator,
            recipients: p.recipients,
            count: p.count as u64,
            content_id: p.content_id,
            copies: p.copies.map(|copies| copies as u64),
        });
        Event {
            time,
            kind: Cow::Borrowed(event.kind.name()),
            message: event.message,
            entry: event.entry.map(|entry| entry.0),
            precedence: event.precedence,
            peer: place.map(|(peer, _)| peer.to_owned()),
            channel: place.map(|(_, channel)| channel.to_owned()),
            association: event.association.map(|association| association.0),
            bytes: event.bytes,
            accepted: event.accepted,
            related: event.related,
            parties,
            operator: event.operator.map(|by| by.0),
            detail: event.detail,
            node: None,
        }
    }

    /// It stands for so many events before this time that could not be stored; 0 where nobody knows how many,
    /// because the daemon was killed.
    pub fn lost(time: Utc, count: u64) -> Event {
        Event { time, kind: Cow::Borrowed(LOST), detail: count.to_string(), ..Event::default() }
    }

    /// Whether a message is first seen with it.
    pub fn begins(&self) -> bool {
        matches!(&*self.kind, "submitted" | "received")
    }

    /// Octets that it holds in memory, roughly.
    pub(crate) fn held(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let recipients = |p: &Parties| p.recipients.iter().map(|r| r.len() + 24).sum::<usize>();
        size_of::<Event>()
            + text(&self.message)
            + text(&self.related)
            + self.parties.as_ref().map_or(0, recipients)
            + self.detail.len()
    }
}
