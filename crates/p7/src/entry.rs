//! Entries of a store: numbers, classes, types, states, and the attributes that a result carries
//! (X.413 clause 6 and 8.1).

use crate::limits::{MAX_ATTRIBUTES, MAX_VALUES};
use crate::named::named_numbers;
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Oid, Tag, Writer, universal as u};

/// SequenceNumber: identifies an entry of a store for ever, in the order of creation. 0 to
/// 2,147,483,647 (ub-messages, *unproven*); greater ones up to the size of the type are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// Reads an INTEGER.
    ///
    /// # Errors
    /// Another tag, a negative number, or one above 4,294,967,295.
    pub fn read(e: &Element<'_>) -> Result<SequenceNumber, Error> {
        let number = require(e, u::INTEGER)?.integer()?;
        let number = u32::try_from(number);
        Ok(SequenceNumber(number.map_err(|_| Fault::Value("SequenceNumber (X.413 6.3)"))?))
    }

    /// Appends an INTEGER.
    pub fn write(&self, w: &mut Writer) {
        w.integer(u::INTEGER, i64::from(self.0));
    }

    /// `[n] SequenceNumber`.
    pub(crate) fn read_inner(e: &Element<'_>) -> Result<SequenceNumber, Error> {
        SequenceNumber::read(&e.only_child()?)
    }

    pub(crate) fn write_as(self, w: &mut Writer, n: u32) {
        explicit(w, n, |w| self.write(w));
    }

    /// Writes `[n]`, if there is one.
    pub(crate) fn write_option(number: Option<SequenceNumber>, w: &mut Writer, n: u32) {
        if let Some(number) = number {
            number.write_as(w, n);
        }
    }
}

impl std::fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

named_numbers! {
    /// EntryClass: which of a store's information bases. Only delivery is of 1988.
    EntryClass {
        /// Delivered messages and reports: the default.
        DELIVERY = 0 "delivery";
        /// Submitted messages (1994).
        SUBMISSION = 1 "submission";
        /// Drafts (1994).
        DRAFT = 2 "draft";
        /// All stored messages: delivery, submission and draft (1994).
        STORED_MESSAGE = 3 "stored-message";
        /// Log of deliveries (1994).
        DELIVERY_LOG = 4 "delivery-log";
        /// Log of submissions (1994).
        SUBMISSION_LOG = 5 "submission-log";
        /// Both logs of messages (1994).
        MESSAGE_LOG = 6 "message-log";
        /// Log of auto-actions (1994).
        AUTO_ACTION_LOG = 7 "auto-action-log";
    }
}

impl EntryClass {
    pub(crate) fn read_inner(e: &Element<'_>) -> Result<EntryClass, Error> {
        wire::integer(e).map(EntryClass)
    }

    /// Writes `[0] EntryClass DEFAULT delivery`.
    pub(crate) fn write_default(self, w: &mut Writer) {
        if self != EntryClass::DELIVERY {
            wire::write_integer(w, 0, self.0);
        }
    }
}

named_numbers! {
    /// EntryType: what an entry holds.
    EntryType {
        /// A delivered message.
        DELIVERED_MESSAGE = 0 "delivered-message";
        /// A delivered report.
        DELIVERED_REPORT = 1 "delivered-report";
        /// The content that a report returned: a child entry of the report's.
        RETURNED_CONTENT = 2 "returned-content";
        /// A submitted message (1994).
        SUBMITTED_MESSAGE = 3 "submitted-message";
        /// A submitted probe (1994).
        SUBMITTED_PROBE = 4 "submitted-probe";
        /// A draft (1994).
        DRAFT_MESSAGE = 5 "draft-message";
        /// A record of an auto-action (1994).
        AUTO_ACTION_EVENT = 6 "auto-action-event";
    }
}

named_numbers! {
    /// RetrievalStatus. List makes a new entry listed; fetch makes it processed (*unproven*).
    RetrievalStatus {
        /// Neither listed nor fetched.
        NEW = 0 "new";
        /// List returned information about it.
        LISTED = 1 "listed";
        /// Fetch returned it, or an auto-action processed it.
        PROCESSED = 2 "processed";
    }
}

/// Attribute: a type and its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// attribute-type.
    pub attribute_type: Oid,
    /// attribute-values, at least one.
    pub values: Vec<Value>,
}

impl Attribute {
    /// An attribute with one value.
    pub fn single(attribute_type: Oid, value: Value) -> Attribute {
        Attribute { attribute_type, values: vec![value] }
    }

    /// Reads the SEQUENCE.
    ///
    /// # Errors
    /// Malformed BER, or more than [`MAX_VALUES`] values; the field is named.
    pub fn read(e: &Element<'_>) -> Result<Attribute, Error> {
        let mut members =
            require(e, u::SEQUENCE).field("attribute")?.children().field("attribute")?;
        let attribute_type =
            members.require(u::OID).and_then(|e| e.oid()).field("attribute-type")?;
        let values = members.require(u::SEQUENCE);
        let values = values.and_then(|e| p1::wire::list(&e, MAX_VALUES, Value::keep));
        let values = values.field("attribute-values")?;
        members.finish().field("attribute")?;
        Ok(Attribute { attribute_type, values })
    }

    /// Appends the SEQUENCE.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.attribute_type);
            w.constructed(u::SEQUENCE, |w| self.values.iter().for_each(|value| value.write(w)));
        });
    }
}

/// AttributeValueCount: an attribute of which a selection left out values, and how many it has (1994).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttributeValueCount {
    /// type.
    pub attribute_type: Oid,
    /// total: all values of the attribute.
    pub total: i64,
}

impl AttributeValueCount {
    fn read(e: &Element<'_>) -> Result<AttributeValueCount, Error> {
        let mut members = require(e, u::SEQUENCE)?.children()?;
        let attribute_type = wire::oid(&members.require(Tag::context(0))?)?;
        let total = wire::integer(&members.require(Tag::context(1))?)?;
        Ok(AttributeValueCount { attribute_type, total })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            wire::write_oid(w, 0, &self.attribute_type);
            wire::write_integer(w, 1, self.total);
        });
    }
}

/// EntryInformation: what a result has of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryInformation {
    /// sequence-number.
    pub sequence_number: SequenceNumber,
    /// attributes; absent where there are none.
    pub attributes: Vec<Attribute>,
    /// value-count-exceeded (1994).
    pub value_count_exceeded: Vec<AttributeValueCount>,
}

const VALUE_COUNT_EXCEEDED: Tag = Tag::context(0);

impl EntryInformation {
    /// The attribute of this type.
    pub fn attribute(&self, attribute_type: &Oid) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.attribute_type == *attribute_type)
    }

    /// Reads the SEQUENCE. Members after the known ones are skipped.
    ///
    /// # Errors
    /// Malformed BER, no number, or more than [`MAX_ATTRIBUTES`] attributes; the field is named.
    pub fn read(e: &Element<'_>) -> Result<EntryInformation, Error> {
        let name = "entry-information";
        let mut members = require(e, u::SEQUENCE).field(name)?.children().field(name)?;
        let number = members.require(u::INTEGER).and_then(|e| SequenceNumber::read(&e));
        let sequence_number = number.field("sequence-number")?;
        let attributes = members.optional(u::SET).field("attributes")?;
        let attributes = attributes.map(|e| p1::wire::list(&e, MAX_ATTRIBUTES, Attribute::read));
        let attributes = attributes.transpose().field("attributes")?.unwrap_or_default();
        let counts = members.optional(VALUE_COUNT_EXCEEDED).field("value-count-exceeded")?;
        let counts = counts
            .map(|e| wire::list(&e, u::SET, MAX_ATTRIBUTES, AttributeValueCount::read))
            .transpose();
        let value_count_exceeded = counts.field("value-count-exceeded")?.unwrap_or_default();
        while members.next().field(name)?.is_some() {}
        Ok(EntryInformation { sequence_number, attributes, value_count_exceeded })
    }

    /// Appends the SEQUENCE.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            self.sequence_number.write(w);
            if !self.attributes.is_empty() {
                w.constructed(u::SET, |w| self.attributes.iter().for_each(|a| a.write(w)));
            }
            let counts = &self.value_count_exceeded;
            wire::write_some(w, 0, u::SET, counts, AttributeValueCount::write);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_form_of_the_module() {
        // Entry 5 with retrieval-status new (2.6.4.3.15 = INTEGER 0), and one value count.
        let octets = [
            0x30, 0x26, 2, 1, 5, 0x31, 0x0d, 0x30, 0x0b, 6, 4, 0x56, 4, 3, 15, 0x30, 3, 2, 1, 0,
            0xa0, 0x12, 0x31, 0x10, 0x30, 0x0e, 0xa0, 6, 6, 4, 0x56, 4, 3, 28, 0xa1, 4, 2, 2, 1, 0,
        ];
        let entry = EntryInformation::read(&Element::parse(&octets).unwrap()).unwrap();
        assert_eq!(entry.sequence_number, SequenceNumber(5));
        let status: Oid = "2.6.4.3.15".parse().unwrap();
        assert_eq!(entry.attribute(&status).unwrap().values, [Value::from_integer(0)]);
        assert_eq!(entry.value_count_exceeded[0].total, 256);
        let mut w = Writer::new();
        entry.write(&mut w);
        assert_eq!(w.as_slice(), octets);
    }

    #[test]
    fn numbers_have_bounds() {
        let read = |octets: &[u8]| SequenceNumber::read(&Element::parse(octets).unwrap());
        assert_eq!(read(&[2, 5, 0, 0xff, 0xff, 0xff, 0xff]), Ok(SequenceNumber(u32::MAX)));
        assert!(read(&[2, 5, 1, 0, 0, 0, 0]).is_err());
        assert!(read(&[2, 1, 0xff]).is_err());
        assert!(read(&[10, 1, 1]).is_err());
    }

    #[test]
    fn unknown_numbers_are_shown_as_numbers() {
        assert_eq!(EntryClass::DRAFT.to_string(), "draft");
        assert_eq!(EntryType(9).to_string(), "9");
        assert_eq!(RetrievalStatus(7).name(), None);
    }
}
