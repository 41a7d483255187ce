//! What is shown of an entry: its attributes as plain fields.

use base::ber::{Error, Oid};
use base::{Precedence, Utc};
use p1::flags::Priority;
use p1::names::{MtsIdentifier, ORName};
use p7::attributes::{self as a, AttributeType};
use p7::{AttributeSelection, EntryInformation, EntryType, RetrievalStatus, Value};

/// What an entry holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A delivered message.
    #[default]
    Message,
    /// A delivered report.
    Report,
    /// Another entry-type, by its number (X.413 6.3).
    Other(i64),
}

/// What was done with an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Nothing.
    #[default]
    New,
    /// It was listed.
    Listed,
    /// It was fetched.
    Processed,
    /// Another retrieval-status, by its number.
    Other(i64),
}

/// One entry of a mailbox. A field is `None` where the entry or the store does not have the attribute, or where
/// its value cannot be read, which [`Entry::unreadable`] states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Sequence number: never given to another entry of the mailbox.
    pub number: u32,
    /// Message or report.
    pub kind: Kind,
    /// Status before the operation that returned this.
    pub status: Status,
    /// The precedence at which the message was handled; that of a report too.
    pub precedence: Option<Precedence>,
    /// The grade of delivery, of which there are three.
    pub priority: Option<Priority>,
    /// MTS identifier: of the message, or of the subject of a report.
    pub identifier: Option<MtsIdentifier>,
    /// When it came into the mailbox.
    pub created: Option<Utc>,
    /// When the MTS delivered it.
    pub delivered: Option<Utc>,
    /// When the originator submitted it.
    pub submitted: Option<Utc>,
    /// Content type; 2.6.1.10.0 is P2 and 2.6.1.10.1 P22.
    pub content_type: Option<Oid>,
    /// Content identifier: of the message, or of the subject of a report.
    pub content_identifier: Option<String>,
    /// Who submitted it.
    pub originator: Option<ORName>,
    /// The name of ours to which it was delivered.
    pub recipient: Option<ORName>,
    /// The heading's subject.
    pub subject: Option<String>,
    /// Octets of content.
    pub size: Option<u64>,
    /// The attributes whose values are malformed, by their names in the standard.
    pub unreadable: Vec<&'static str>,
}

/// The attributes that make an [`Entry`].
const ATTRIBUTES: [AttributeType; 16] = [
    a::ENTRY_TYPE,
    a::RETRIEVAL_STATUS,
    a::PRIMARY_PRECEDENCE,
    a::PRIORITY,
    a::MESSAGE_IDENTIFIER,
    a::SUBJECT_SUBMISSION_IDENTIFIER,
    a::CREATION_TIME,
    a::MESSAGE_DELIVERY_TIME,
    a::MESSAGE_SUBMISSION_TIME,
    a::CONTENT_TYPE,
    a::CONTENT_IDENTIFIER,
    a::ORIGINATOR_NAME,
    a::THIS_RECIPIENT_NAME,
    a::SUBJECT,
    a::CONTENT_LENGTH,
    a::SEQUENCE_NUMBER,
];

/// The selection of those that a store has.
pub(super) fn selection(has: impl Fn(&Oid) -> bool) -> Vec<AttributeSelection> {
    // The sequence number comes with every entry.
    let wanted = ATTRIBUTES.iter().filter(|kind| **kind != a::SEQUENCE_NUMBER);
    wanted.map(AttributeType::oid).filter(|oid| has(oid)).map(AttributeSelection::new).collect()
}

/// Reads values of attributes, and notes those that are malformed.
struct Reading<'a> {
    entry: &'a EntryInformation,
    unreadable: Vec<&'static str>,
}

impl Reading<'_> {
    fn value<T>(
        &mut self,
        kind: &AttributeType,
        read: impl Fn(&Value) -> Result<T, Error>,
    ) -> Option<T> {
        let value = self.entry.attribute(&kind.oid())?.values.first()?;
        let read = read(value).ok();
        if read.is_none() {
            self.unreadable.push(kind.name);
        }
        read
    }

    /// A time of the calendar.
    fn time(&mut self, kind: &AttributeType) -> Option<Utc> {
        let time = self.value(kind, Value::time)?.utc;
        if time.is_none() {
            self.unreadable.push(kind.name);
        }
        time
    }
}

impl Entry {
    /// The fields of what a result or an alert has of an entry.
    pub fn read(information: &EntryInformation) -> Entry {
        let mut r = Reading { entry: information, unreadable: Vec::new() };
        let subject_of_report = r.value(&a::SUBJECT_SUBMISSION_IDENTIFIER, Value::mts_identifier);
        let precedence = r.value(&a::PRIMARY_PRECEDENCE, Value::integer);
        let mut entry = Entry {
            number: information.sequence_number.0,
            kind: r.value(&a::ENTRY_TYPE, Value::integer).map(kind).unwrap_or_default(),
            status: r.value(&a::RETRIEVAL_STATUS, Value::integer).map(status).unwrap_or_default(),
            precedence: precedence.and_then(Precedence::from_number),
            priority: r.value(&a::PRIORITY, |value| Priority::read(&value.element()?)),
            identifier: r
                .value(&a::MESSAGE_IDENTIFIER, Value::mts_identifier)
                .or(subject_of_report),
            created: r.time(&a::CREATION_TIME),
            delivered: r.time(&a::MESSAGE_DELIVERY_TIME),
            submitted: r.time(&a::MESSAGE_SUBMISSION_TIME),
            content_type: r.value(&a::CONTENT_TYPE, Value::oid),
            content_identifier: r.value(&a::CONTENT_IDENTIFIER, Value::text),
            originator: r.value(&a::ORIGINATOR_NAME, Value::or_name),
            recipient: r.value(&a::THIS_RECIPIENT_NAME, Value::or_name),
            subject: r.value(&a::SUBJECT, Value::text),
            size: r.value(&a::CONTENT_LENGTH, size),
            unreadable: Vec::new(),
        };
        entry.unreadable = r.unreadable;
        entry
    }

    /// When it came: delivered by the MTS, else into the mailbox.
    pub fn time(&self) -> Option<Utc> {
        self.delivered.or(self.created)
    }
}

fn kind(number: i64) -> Kind {
    match EntryType(number) {
        EntryType::DELIVERED_MESSAGE => Kind::Message,
        EntryType::DELIVERED_REPORT => Kind::Report,
        EntryType(other) => Kind::Other(other),
    }
}

fn status(number: i64) -> Status {
    match RetrievalStatus(number) {
        RetrievalStatus::NEW => Status::New,
        RetrievalStatus::LISTED => Status::Listed,
        RetrievalStatus::PROCESSED => Status::Processed,
        RetrievalStatus(other) => Status::Other(other),
    }
}

fn size(value: &Value) -> Result<u64, Error> {
    let size = value.integer()?;
    Ok(u64::try_from(size).map_err(|_| base::ber::Fault::Value("content-length, 0 or more"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p7::SequenceNumber;

    fn entry(attributes: Vec<p7::Attribute>) -> Entry {
        let sequence_number = SequenceNumber(7);
        Entry::read(&EntryInformation { sequence_number, attributes, ..Default::default() })
    }

    #[test]
    fn attributes_become_fields() {
        let read = entry(vec![
            a::ENTRY_TYPE.single(Value::from_integer(1)),
            a::RETRIEVAL_STATUS.single(Value::from_integer(2)),
            a::primary_precedence(Precedence::Flash),
            a::SUBJECT.single(Value::from_text(base::ber::universal::TELETEX_STRING, "Fire")),
            a::CONTENT_LENGTH.single(Value::from_integer(300)),
            a::CREATION_TIME.single(Value::from_utc(Utc(0))),
        ]);
        assert_eq!((read.number, read.kind, read.status), (7, Kind::Report, Status::Processed));
        assert_eq!((read.precedence, read.size), (Some(Precedence::Flash), Some(300)));
        assert_eq!(read.subject.as_deref(), Some("Fire"));
        assert_eq!((read.time(), read.unreadable), (Some(Utc(0)), Vec::new()));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_is_there() {
        let bad_time = Value::new(|w| w.string(base::ber::universal::UTC_TIME, b"soon")).unwrap();
        let read = entry(vec![
            a::SUBJECT.single(Value::from_boolean(true)),
            a::CONTENT_LENGTH.single(Value::from_integer(-1)),
            a::CREATION_TIME.single(bad_time),
            a::ENTRY_TYPE.single(Value::from_integer(2)),
        ]);
        assert_eq!(read.unreadable, ["creation-time", "subject", "content-length"]);
        assert_eq!((read.kind, read.size, read.subject), (Kind::Other(2), None, None));
    }

    #[test]
    fn only_what_a_store_has_is_asked_for() {
        let subject = a::SUBJECT.oid();
        assert_eq!(selection(|oid| *oid == subject), [AttributeSelection::new(subject)]);
        assert_eq!(selection(|_| true).len(), ATTRIBUTES.len() - 1);
    }
}
