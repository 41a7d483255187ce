//! Attributes that a store generates when an entry is made (X.413 clause 11).

use super::{
    CHILD_SEQUENCE_NUMBERS, CONTENT, CONTENT_IDENTIFIER, CONTENT_LENGTH, CONTENT_TYPE,
    COPY_PRECEDENCE, CREATION_TIME, ENTRY_TYPE, MESSAGE_DELIVERY_ENVELOPE, MESSAGE_DELIVERY_TIME,
    MESSAGE_IDENTIFIER, MESSAGE_SUBMISSION_TIME, ORIGINAL_EITS, ORIGINATOR_NAME,
    OTHER_RECIPIENT_NAMES, PARENT_SEQUENCE_NUMBER, PRIMARY_PRECEDENCE, PRIORITY,
    REPORT_DELIVERY_ENVELOPE, RETRIEVAL_STATUS, SEQUENCE_NUMBER, SUBJECT,
    SUBJECT_SUBMISSION_IDENTIFIER, THIS_RECIPIENT_NAME,
};
use crate::entry::{Attribute, EntryType, RetrievalStatus, SequenceNumber};
use crate::value::Value;
use base::ber::{Oid, universal as u};
use base::{Precedence, Utc};
use p1::wire::tag;
use p1::{ContentType, EncodedInformationTypes, MtsIdentifier, ORName, Priority, Time};

fn number(value: SequenceNumber) -> Value {
    Value::from_integer(i64::from(value.0))
}

/// sequence-number.
pub fn sequence_number(value: SequenceNumber) -> Attribute {
    SEQUENCE_NUMBER.single(number(value))
}

/// parent-sequence-number: of a child entry.
pub fn parent_sequence_number(value: SequenceNumber) -> Attribute {
    PARENT_SEQUENCE_NUMBER.single(number(value))
}

/// child-sequence-numbers; `None` where there are no children.
pub fn child_sequence_numbers(values: &[SequenceNumber]) -> Option<Attribute> {
    CHILD_SEQUENCE_NUMBERS.multi(values.iter().copied().map(number).collect())
}

/// creation-time: when the entry was made.
pub fn creation_time(value: Utc) -> Attribute {
    CREATION_TIME.single(Value::from_utc(value))
}

/// retrieval-status.
pub fn retrieval_status(value: RetrievalStatus) -> Attribute {
    RETRIEVAL_STATUS.single(Value::from_integer(value.0))
}

/// entry-type.
pub fn entry_type(value: EntryType) -> Attribute {
    ENTRY_TYPE.single(Value::from_integer(value.0))
}

/// content: its octets.
pub fn content(octets: &[u8]) -> Attribute {
    CONTENT.single(Value::from_octet_string(octets))
}

/// content-length, octets; up to the largest signed number of 64 bits.
pub fn content_length(octets: u64) -> Attribute {
    CONTENT_LENGTH.single(Value::from_integer(i64::try_from(octets).unwrap_or(i64::MAX)))
}

/// content-type: an object identifier here. `None` for a built-in type without one: see
/// [`content_type_oid`].
pub fn content_type(value: &ContentType) -> Option<Attribute> {
    content_type_oid(value).map(|oid| CONTENT_TYPE.single(Value::from_oid(&oid)))
}

/// The object identifier that stands for a content type: itself, or 2.6.1.10.0 for P2 and 2.6.1.10.1
/// for P22 (X.420). Those of other built-in types are not known here.
pub fn content_type_oid(value: &ContentType) -> Option<Oid> {
    match value {
        ContentType::Extended(oid) => Some(oid.clone()),
        &ContentType::P2 => Oid::from_content(&[0x56, 1, 10, 0]).ok(),
        &ContentType::P22 => Oid::from_content(&[0x56, 1, 10, 1]).ok(),
        ContentType::BuiltIn(_) => None,
    }
}

/// content-identifier.
pub fn content_identifier(value: &str) -> Attribute {
    CONTENT_IDENTIFIER.single(Value::from_text(tag::CONTENT_IDENTIFIER, value))
}

/// message-identifier.
pub fn message_identifier(value: &MtsIdentifier) -> Attribute {
    MESSAGE_IDENTIFIER.single(Value::written(|w| value.write(w)))
}

/// subject-submission-identifier: of a report.
pub fn subject_submission_identifier(value: &MtsIdentifier) -> Attribute {
    SUBJECT_SUBMISSION_IDENTIFIER.single(Value::written(|w| value.write(w)))
}

/// message-delivery-time.
pub fn message_delivery_time(value: &Time) -> Attribute {
    MESSAGE_DELIVERY_TIME.single(Value::from_time(value))
}

/// message-submission-time.
pub fn message_submission_time(value: &Time) -> Attribute {
    MESSAGE_SUBMISSION_TIME.single(Value::from_time(value))
}

/// message-delivery-envelope: the whole envelope, a SET.
pub fn message_delivery_envelope(envelope: Value) -> Attribute {
    MESSAGE_DELIVERY_ENVELOPE.single(envelope)
}

/// report-delivery-envelope: the whole envelope, a SET.
pub fn report_delivery_envelope(envelope: Value) -> Attribute {
    REPORT_DELIVERY_ENVELOPE.single(envelope)
}

/// originator-name.
pub fn originator_name(value: &ORName) -> Attribute {
    ORIGINATOR_NAME.single(Value::from_or_name(value))
}

/// this-recipient-name.
pub fn this_recipient_name(value: &ORName) -> Attribute {
    THIS_RECIPIENT_NAME.single(Value::from_or_name(value))
}

/// other-recipient-names; `None` where there are none.
pub fn other_recipient_names(values: &[ORName]) -> Option<Attribute> {
    OTHER_RECIPIENT_NAMES.multi(values.iter().map(Value::from_or_name).collect())
}

/// priority: three values, and no order among their numbers.
pub fn priority(value: Priority) -> Attribute {
    PRIORITY.single(Value::written(|w| value.write(w)))
}

/// original-EITs; `None` where there are none. Built-in type `n` is 2.6.3.4.n (X.411 Annex A, *unproven*).
pub fn original_eits(value: &EncodedInformationTypes) -> Option<Attribute> {
    ORIGINAL_EITS.multi(eits(value).iter().map(Value::from_oid).collect())
}

/// Encoded information types as object identifiers.
pub fn eits(value: &EncodedInformationTypes) -> Vec<Oid> {
    let built_in = (0u8..32).filter(|n| value.built_in & 1 << n != 0);
    let built_in = built_in.filter_map(|n| Oid::from_content(&[0x56, 3, 4, n]).ok());
    built_in.chain(value.extended.iter().cloned()).collect()
}

/// subject of an interpersonal message: TeletexString.
pub fn subject(value: &str) -> Attribute {
    SUBJECT.single(Value::from_text(u::TELETEX_STRING, value))
}

/// primary-precedence of a military message.
pub fn primary_precedence(value: Precedence) -> Attribute {
    PRIMARY_PRECEDENCE.single(Value::from_integer(i64::from(value.number())))
}

/// copy-precedence of a military message.
pub fn copy_precedence(value: Precedence) -> Attribute {
    COPY_PRECEDENCE.single(Value::from_integer(i64::from(value.number())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(attribute: &Attribute) -> &[u8] {
        attribute.values[0].octets()
    }

    #[test]
    fn values_have_the_form_of_their_types() {
        assert_eq!(octets(&sequence_number(SequenceNumber(300))), [2, 2, 1, 44]);
        assert_eq!(octets(&retrieval_status(RetrievalStatus::LISTED)), [2, 1, 1]);
        assert_eq!(octets(&priority(Priority::Urgent)), [0x47, 1, 2]);
        assert_eq!(octets(&creation_time(Utc(0))), b"\x17\x0d700101000000Z");
        assert_eq!(octets(&content_identifier("REF1")), b"\x4a\x04REF1");
        assert_eq!(octets(&content(b"ab")), b"\x04\x02ab");
        assert_eq!(octets(&primary_precedence(Precedence::Flash)), [2, 1, 4]);
        assert_eq!(child_sequence_numbers(&[]), None);
    }

    #[test]
    fn content_types_are_identifiers() {
        let text = |kind: &ContentType| content_type_oid(kind).map(|oid| oid.to_string());
        assert_eq!(text(&ContentType::P22).as_deref(), Some("2.6.1.10.1"));
        assert_eq!(text(&ContentType::p772()).as_deref(), Some("1.3.26.0.4406.0.4.1"));
        assert_eq!(text(&ContentType::UNIDENTIFIED), None);
        let ia5 = EncodedInformationTypes {
            built_in: EncodedInformationTypes::IA5_TEXT,
            ..EncodedInformationTypes::default()
        };
        assert_eq!(eits(&ia5)[0].to_string(), "2.6.3.4.2");
    }
}
