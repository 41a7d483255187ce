//! An event of the log, put together and given out.

use crate::api::Output;
use crate::api::event::{Kind, LogEvent, LogLevel, OrderedBy, Parties};
use crate::api::operator::Operator;
use crate::log::parties::Reported;
use crate::log::tally::EventTally;
use base::{AssociationId, EntryId, Precedence, Utc};
use engine::NewEntry;
use scheduler::ChannelId;
use std::collections::VecDeque;

/// What the log shows of the copies of a message that were committed together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copies {
    /// The one, where there is no other.
    entry: Option<EntryId>,
    precedence: Option<Precedence>,
    bytes: Option<u64>,
    count: usize,
}

impl Copies {
    /// Those of a message.
    pub fn new(message: &str, entries: &[NewEntry]) -> Copies {
        let mut its = entries.iter().filter(|entry| entry.record.message == message);
        let Some(first) = its.next() else { return Copies::default() };
        Copies {
            precedence: Some(first.precedence),
            bytes: first.record.body.map(|_| first.record.size),
            count: 1 + its.count(),
            entry: None,
        }
        .only(first.id)
    }

    fn only(self, first: EntryId) -> Copies {
        Copies { entry: (self.count == 1).then_some(first), ..self }
    }
}

/// An event being put together; it is given out when dropped.
pub struct EventDraft<'a> {
    event: LogEvent,
    outputs: &'a mut VecDeque<Output>,
    tally: &'a mut EventTally,
}

/// Most octets of an event's detail: it may quote what a peer sent.
const MAX_DETAIL: usize = 500;

/// The beginning of a text that is too long for the log, marked as one.
fn bounded(mut detail: String) -> String {
    if detail.len() > MAX_DETAIL {
        detail.truncate(detail.floor_char_boundary(MAX_DETAIL));
        detail.push('…');
    }
    detail
}

impl<'a> EventDraft<'a> {
    /// An event of this kind.
    pub fn new(
        level: LogLevel,
        kind: Kind,
        detail: String,
        outputs: &'a mut VecDeque<Output>,
        tally: &'a mut EventTally,
    ) -> EventDraft<'a> {
        let event = LogEvent { detail: bounded(detail), ..LogEvent::new(level, kind) };
        EventDraft { event, outputs, tally }
    }

    /// On this association.
    pub fn association(mut self, id: AssociationId) -> Self {
        self.event.association = Some(id);
        self
    }
    /// On this channel.
    pub fn channel(mut self, channel: Option<ChannelId>) -> Self {
        self.event.channel = channel;
        self
    }
    /// Of this message.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.event.message = Some(message.into());
        self
    }
    /// Of this entry.
    pub fn entry(mut self, entry: EntryId) -> Self {
        self.event.entry = Some(entry);
        self
    }
    /// Of this precedence.
    pub fn precedence(mut self, precedence: Precedence) -> Self {
        self.event.precedence = Some(precedence);
        self
    }
    /// Of so many octets.
    pub fn bytes(mut self, bytes: Option<u64>) -> Self {
        self.event.bytes = bytes;
        self
    }
    /// From whom and to whom it is.
    pub fn parties(mut self, parties: Option<Box<Parties>>) -> Self {
        self.event.parties = parties;
        self
    }
    /// Delivered to this mailbox, of a message that we accepted then.
    pub fn ends_at(mut self, accepted: Utc, mailbox: &str) -> Self {
        let recipients = vec![mailbox.to_owned()];
        self.event.parties = Some(Box::new(Parties { recipients, count: 1, ..Parties::default() }));
        self.accepted(Some(accepted))
    }
    /// Of a message that we accepted then.
    pub fn accepted(mut self, accepted: Option<Utc>) -> Self {
        self.event.accepted = accepted;
        self
    }
    /// The subject of this report, or the report on this message.
    pub fn related(mut self, other: Option<String>) -> Self {
        self.event.related = other;
        self
    }
    /// What a report is about, and what it reports.
    pub fn reported(mut self, reported: Option<Reported>) -> Self {
        if let Some(Reported { subject, outcome }) = reported {
            self.event.related = Some(subject);
            self.event.detail = outcome;
        }
        self
    }
    /// By this operator.
    pub fn by(mut self, operator: &Operator) -> Self {
        self.event.operator = Some(Box::new(OrderedBy(operator.to_string())));
        self
    }
    /// So many copies take the place of this one.
    pub fn became(mut self, copies: usize) -> Self {
        self.event.parties = Some(Box::new(Parties { copies: Some(copies), ..Parties::default() }));
        self
    }
    /// A message and what was committed for it.
    pub fn committed(mut self, message: String, copies: Copies) -> Self {
        if let Some(parties) = &mut self.event.parties {
            parties.copies = Some(copies.count);
        }
        self.event.entry = copies.entry;
        self.event.precedence = copies.precedence;
        self.event.bytes = copies.bytes;
        self.message(message)
    }
}

impl Drop for EventDraft<'_> {
    fn drop(&mut self) {
        let blank = LogEvent::new(LogLevel::Info, self.event.kind);
        self.tally.count(&self.event);
        self.outputs.push_back(Output::Event(Box::new(std::mem::replace(&mut self.event, blank))));
    }
}
