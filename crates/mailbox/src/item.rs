//! An item of a mailbox: what is known of a delivered message or report without its content (X.413 6.3).

use crate::heading::{self, MAX_HEADING};
use base::ber::{Element, Error};
use base::{EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{ItemId, Op, QueueId};
use engine::{Delivery, Record, RecordKind};
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::p3::{ArgumentEvent, DeliveryParser, MessageDeliveryEnvelope, ReportDelivery};
use serde::{Deserialize, Serialize};

/// Version of the encoding, in its first octet.
const VERSION: u8 = 1;

/// Longest originator and subject that an item keeps as text, octets. The envelope and the heading have
/// them whole.
pub const MAX_TEXT: usize = 1 << 10;

/// The retrieval-status of an item (X.413 6.3.3). It only ascends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Status {
    /// new, 0: neither listed nor fetched.
    #[default]
    New,
    /// listed, 1: a list returned it.
    Listed,
    /// processed, 2: a fetch returned it.
    Processed,
}

impl Status {
    /// The standard's number.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Status::New => 0,
            Status::Listed => 1,
            Status::Processed => 2,
        }
    }
}

/// What an item holds: the entry-type of X.413, of which a delivery makes these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// delivered-message, 0.
    Message,
    /// delivered-report, 1.
    Report,
}

impl Kind {
    /// The standard's number.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Kind::Message => 0,
            Kind::Report => 1,
        }
    }
}

/// The key of an item's entry in the store: its level and [`ItemId::entry`].
pub type Key = (Precedence, EntryId);

/// One item. Its content is the body [`ItemId::body`]: of a report, the content that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its mailbox and sequence number.
    pub id: ItemId,
    /// The level at which the MTS handled it: the first part of its key.
    pub precedence: Precedence,
    /// Its retrieval-status.
    pub status: Status,
    /// Message or report.
    pub kind: Kind,
    /// MTS identifier as text: of the message, or of the subject of the report.
    pub identifier: String,
    /// creation-time: when it came into the mailbox.
    pub created: Utc,
    /// message-delivery-time; that of creation for a report.
    pub delivered: Utc,
    /// message-submission-time; `None` for a report, or if it is not of the calendar.
    pub submitted: Option<Utc>,
    /// content-type; a report has that of its subject, if it is known.
    pub content_type: Option<ContentType>,
    /// originator-name as text, up to [`MAX_TEXT`]; empty for a report.
    pub originator: String,
    /// The heading's subject, up to [`MAX_TEXT`].
    pub subject: Option<String>,
    /// Octets of content: of a report, those that it returns.
    pub size: u64,
    /// SHA-256 of the content, if known.
    pub digest: Option<[u8; 32]>,
    /// The argument of message-delivery or report-delivery with an empty content: one element (X.411 8.3.1). A
    /// report that returns none has none.
    pub argument: Bytes,
    /// The element of the heading as it came, up to [`MAX_HEADING`] octets.
    pub heading: Option<Bytes>,
}

/// An item that cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// A newer release wrote it.
    #[error("item version {0} is not known")]
    Version(u8),
    /// Its fields are malformed.
    #[error("item fields: {0}")]
    Fields(#[from] postcard::Error),
    /// The argument of its delivery is malformed.
    #[error("delivery argument: {0}")]
    Argument(#[from] Error),
    /// It is empty, or its argument is not whole.
    #[error("item ends early")]
    Short,
    /// A probe is never delivered.
    #[error("a probe has no item")]
    Probe,
}

/// The fields of an item as they are stored, without copies: a list reads no more of them than it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief<'a> {
    /// See [`Item::status`].
    pub status: Status,
    /// See [`Item::kind`].
    pub kind: Kind,
    /// See [`Item::identifier`].
    pub identifier: &'a str,
    /// See [`Item::created`].
    pub created: Utc,
    /// See [`Item::delivered`].
    pub delivered: Utc,
    /// See [`Item::submitted`].
    pub submitted: Option<Utc>,
    /// See [`Item::content_type`]: the element.
    #[serde(borrow)]
    pub content_type: Option<&'a [u8]>,
    /// See [`Item::originator`].
    pub originator: &'a str,
    /// See [`Item::subject`].
    #[serde(borrow)]
    pub subject: Option<&'a str>,
    /// See [`Item::size`].
    pub size: u64,
    /// See [`Item::digest`].
    pub digest: Option<[u8; 32]>,
    /// See [`Item::argument`].
    pub argument: &'a [u8],
    /// See [`Item::heading`].
    #[serde(borrow)]
    pub heading: Option<&'a [u8]>,
}

impl<'a> Brief<'a> {
    /// Reads the record of an item.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn read(record: &'a [u8]) -> Result<Brief<'a>, ItemError> {
        match record.split_first().ok_or(ItemError::Short)? {
            (&VERSION, fields) => Ok(postcard::from_bytes(fields)?),
            (&version, _) => Err(ItemError::Version(version)),
        }
    }

    /// The record of these fields.
    fn write(&self) -> Bytes {
        // Plain data into a growing buffer cannot fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default().into()
    }
}

/// The record of an item with this status instead of its own.
///
/// # Errors
/// Another version, or malformed.
pub fn with_status(record: &[u8], status: Status) -> Result<Bytes, ItemError> {
    Ok(Brief { status, ..Brief::read(record)? }.write())
}

/// The octets that an item counts against a quota: its content and its record.
#[must_use]
pub fn counted(size: u64, record: &[u8]) -> u64 {
    size.saturating_add(record.len() as u64)
}

/// The queue of the items of an address's mailbox, where several nodes share the store.
#[must_use]
pub fn queue_at(address: &str) -> QueueId {
    crate::machine::shared_number(address).queue()
}

/// Whether a queue has items of a mailbox.
#[must_use]
pub fn is_queue(id: QueueId) -> bool {
    id.0 >> 62 == 1
}

/// The change that writes the record of an item.
#[must_use]
pub fn put(id: ItemId, precedence: Precedence, record: Bytes) -> Op {
    Op::PutEntry { precedence, id: id.entry(), queue: id.mailbox.queue(), record }
}

/// At most [`MAX_TEXT`] octets of a text, whole characters.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_TEXT).last();
        text.truncate(end.unwrap_or_default());
    }
    text
}

/// The envelope in the head of a message-delivery argument.
fn envelope(mut head: &[u8]) -> Result<MessageDeliveryEnvelope, ItemError> {
    let mut parser = DeliveryParser::default();
    match parser.next(&mut head)? {
        Some(ArgumentEvent::Envelope(envelope)) => Ok(*envelope),
        _ => Err(ItemError::Short),
    }
}

impl Item {
    /// The item of a copy that is delivered now into a mailbox. `delivery` is what
    /// [`engine::Engine::delivery_argument`] makes of the record; `first` the first octets of the content, of
    /// which more than [`MAX_HEADING`] and some octets are not needed.
    ///
    /// # Errors
    /// [`ItemError::Probe`]; an argument that is malformed.
    pub fn new(
        id: ItemId,
        now: Utc,
        record: &Record,
        delivery: &Delivery,
        first: &[u8],
    ) -> Result<Item, ItemError> {
        let mut item = Item {
            id,
            precedence: record.precedence,
            status: Status::New,
            kind: Kind::Report,
            identifier: record.message.clone(),
            created: now,
            delivered: now,
            submitted: None,
            content_type: None,
            originator: String::new(),
            subject: None,
            size: 0,
            digest: None,
            argument: delivery.payload.head.clone(),
            heading: None,
        };
        match record.kind() {
            RecordKind::Message => item.take_message(record, delivery, first)?,
            RecordKind::Report => {
                let report = item.take_report(record)?;
                item.identifier = report.subject_identifier.to_string();
                item.content_type = report.content_type;
            }
            RecordKind::Probe => return Err(ItemError::Probe),
        }
        Ok(item)
    }

    /// The report, with an empty content where it returns one.
    fn take_report(&mut self, record: &Record) -> Result<ReportDelivery, ItemError> {
        let MtsApduHead::Report(report) = &record.head else { return Err(ItemError::Short) };
        if record.body.is_none() {
            return Ok(ReportDelivery::read(&Element::parse_accepted(&self.argument)?)?);
        }
        (self.size, self.digest) = (record.size, record.digest);
        let argument = engine::report_argument(report);
        let mut report = ReportDelivery::read(&Element::parse_accepted(&argument)?)?;
        report.returned_content = Some(Bytes::new());
        self.argument = report.argument_head(0).into();
        Ok(report)
    }

    fn take_message(
        &mut self,
        record: &Record,
        delivery: &Delivery,
        first: &[u8],
    ) -> Result<(), ItemError> {
        let envelope = envelope(&delivery.payload.head)?;
        self.kind = Kind::Message;
        self.identifier = envelope.identifier.to_string();
        self.delivered = envelope.delivery_time.utc.unwrap_or(self.created);
        self.submitted = envelope.submission_time.utc;
        self.originator = bounded(envelope.originator.to_string());
        self.size = record.size;
        self.digest = record.digest;
        self.argument = envelope.argument_head(0).into();
        self.content_type = Some(envelope.content_type);
        let heading = heading::find(first);
        self.subject = heading.and_then(heading::subject).map(bounded);
        let heading = heading.filter(|heading| heading.len() <= MAX_HEADING);
        self.heading = heading.map(Bytes::copy_from_slice);
        Ok(())
    }

    /// Its key in the store.
    #[must_use]
    pub fn key(&self) -> Key {
        (self.precedence, self.id.entry())
    }

    /// Its record.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let content_type = self.content_type.as_ref().map(|content_type| {
            let mut w = base::ber::Writer::new();
            content_type.write(&mut w);
            w.into_vec()
        });
        let brief = Brief {
            status: self.status,
            kind: self.kind,
            identifier: &self.identifier,
            created: self.created,
            delivered: self.delivered,
            submitted: self.submitted,
            content_type: content_type.as_deref(),
            originator: &self.originator,
            subject: self.subject.as_deref(),
            size: self.size,
            digest: self.digest,
            argument: &self.argument,
            heading: self.heading.as_deref(),
        };
        brief.write()
    }

    /// Reads one back.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn decode(id: ItemId, precedence: Precedence, record: &[u8]) -> Result<Item, ItemError> {
        let brief = Brief::read(record)?;
        let content_type = match brief.content_type {
            Some(octets) => Some(ContentType::read(&Element::parse(octets)?)?),
            None => None,
        };
        Ok(Item {
            id,
            precedence,
            status: brief.status,
            kind: brief.kind,
            identifier: brief.identifier.to_owned(),
            created: brief.created,
            delivered: brief.delivered,
            submitted: brief.submitted,
            content_type,
            originator: brief.originator.to_owned(),
            subject: brief.subject.map(str::to_owned),
            size: brief.size,
            digest: brief.digest,
            argument: Bytes::copy_from_slice(brief.argument),
            heading: brief.heading.map(Bytes::copy_from_slice),
        })
    }
}

#[cfg(test)]
mod tests;
