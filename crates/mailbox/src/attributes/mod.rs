//! An item as attributes (X.413 clause 11, X.420 Annex C, STANAG 4406), made one by one when they are asked for.
//!
//! What a list shows of most items (number, times, status, type, length, subject, precedence) needs no more than
//! the record; the envelope is read when the first attribute of it is asked for, and then once.
//!
//! primary-precedence is the level at which the MTS handled the item, whatever the content is: it is what a user
//! filters for, and a store finds the items of one level without reading others. The heading as it came is the
//! attribute heading.

mod envelope;
mod heading;

use crate::item::{Brief, ItemError, Kind};
use base::Precedence;
use base::ber::{Element, Oid};
use p1::content_type::ContentType;
use p1::p3::{MessageDeliveryEnvelope, ReportDelivery};
use p7::attributes::{self as a, AttributeType};
use p7::entry::AttributeValueCount;
use p7::error::AttributeProblem;
use p7::matching::{AttributeLookup, Found};
use p7::{
    AttributeProblemItem, AttributeSelection, EntryInformation, EntryType, RetrievalStatus,
    SequenceNumber, Value,
};
use std::borrow::Cow;
use std::cell::OnceCell;

/// The attribute types of this store: what a bind states as available-attribute-types.
pub const AVAILABLE: &[AttributeType] = &[
    a::SEQUENCE_NUMBER,
    a::CREATION_TIME,
    a::RETRIEVAL_STATUS,
    a::ENTRY_TYPE,
    a::CONTENT,
    a::CONTENT_LENGTH,
    a::CONTENT_TYPE,
    a::CONTENT_IDENTIFIER,
    a::CONTENT_RETURNED,
    a::CONVERTED_EITS,
    a::DELIVERED_EITS,
    a::ORIGINAL_EITS,
    a::MESSAGE_DELIVERY_ENVELOPE,
    a::MESSAGE_IDENTIFIER,
    a::MESSAGE_DELIVERY_TIME,
    a::MESSAGE_SUBMISSION_TIME,
    a::MESSAGE_SECURITY_LABEL,
    a::DL_EXPANSION_HISTORY,
    a::REDIRECTION_HISTORY,
    a::ORIGINATOR_NAME,
    a::OTHER_RECIPIENT_NAMES,
    a::ORIGINALLY_INTENDED_RECIPIENT_NAME,
    a::THIS_RECIPIENT_NAME,
    a::PRIORITY,
    a::PER_RECIPIENT_REPORT_DELIVERY_FIELDS,
    a::REPORT_DELIVERY_ENVELOPE,
    a::SUBJECT_SUBMISSION_IDENTIFIER,
    a::HEADING,
    a::THIS_IPM,
    a::ORIGINATOR,
    a::REPLIED_TO_IPM,
    a::SUBJECT,
    a::EXPIRY_TIME,
    a::REPLY_TIME,
    a::IMPORTANCE,
    a::SENSITIVITY,
    a::AUTO_FORWARDED,
    a::AUTHORIZING_USERS,
    a::PRIMARY_RECIPIENTS,
    a::COPY_RECIPIENTS,
    a::BLIND_COPY_RECIPIENTS,
    a::OBSOLETED_IPMS,
    a::RELATED_IPMS,
    a::REPLY_RECIPIENTS,
    a::PRIMARY_PRECEDENCE,
    a::COPY_PRECEDENCE,
    a::MESSAGE_TYPE,
    a::ADDRESS_LIST_INDICATOR,
    a::EXEMPTED_ADDRESS,
    a::EXTENDED_AUTHORISATION_INFO,
    a::DISTRIBUTION_CODES,
    a::HANDLING_INSTRUCTIONS,
    a::MESSAGE_INSTRUCTIONS,
    a::CODRESS_MESSAGE,
    a::ORIGINATOR_REFERENCE,
    a::OTHER_RECIPIENTS_INDICATOR,
    a::PILOT_FORWARDING_INFO,
    a::ACP127_MESSAGE_IDENTIFIER,
    a::ORIGINATOR_PLAD,
    a::SUBJECT_INDICATOR_CODE,
];

/// The attribute type of this identifier, if this store has it.
#[must_use]
pub fn available(oid: &Oid) -> Option<&'static AttributeType> {
    AVAILABLE.iter().find(|kind| kind.is(oid))
}

/// The problem of an attribute type that this store does not have.
#[must_use]
pub fn unavailable(oid: &Oid) -> AttributeProblemItem {
    let problem = AttributeProblem::UNAVAILABLE_ATTRIBUTE_TYPE;
    AttributeProblemItem { problem, attribute_type: oid.clone(), value: None }
}

/// The attributes of one item.
#[derive(Debug)]
pub struct Attributes<'a> {
    number: u32,
    precedence: Precedence,
    brief: Brief<'a>,
    message: OnceCell<Option<Box<MessageDeliveryEnvelope>>>,
    report: OnceCell<Option<Box<ReportDelivery>>>,
    members: OnceCell<heading::Members<'a>>,
}

impl<'a> Attributes<'a> {
    /// Of the item with this number, level and record.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn new(
        number: u32,
        precedence: Precedence,
        record: &'a [u8],
    ) -> Result<Attributes<'a>, ItemError> {
        Ok(Attributes {
            number,
            precedence,
            brief: Brief::read(record)?,
            message: OnceCell::new(),
            report: OnceCell::new(),
            members: OnceCell::new(),
        })
    }

    /// The fields of the record.
    #[must_use]
    pub fn brief(&self) -> &Brief<'a> {
        &self.brief
    }

    /// The values of an attribute; none if the item does not have it. That of content is not here: it may be of
    /// any size, and is in the body of the item.
    #[must_use]
    pub fn values(&self, kind: &AttributeType) -> Vec<Value> {
        let brief = &self.brief;
        let attribute = match *kind {
            a::SEQUENCE_NUMBER => Some(a::sequence_number(SequenceNumber(self.number))),
            a::CREATION_TIME => Some(a::creation_time(brief.created)),
            a::RETRIEVAL_STATUS => {
                Some(a::retrieval_status(RetrievalStatus(brief.status.number())))
            }
            a::ENTRY_TYPE => Some(a::entry_type(EntryType(brief.kind.number()))),
            a::PRIMARY_PRECEDENCE => Some(a::primary_precedence(self.precedence)),
            a::CONTENT_LENGTH if brief.kind == Kind::Message || brief.size > 0 => {
                Some(a::content_length(brief.size))
            }
            a::CONTENT_TYPE => self.content_type().and_then(|kind| a::content_type(&kind)),
            a::SUBJECT => brief.subject.map(a::subject),
            _ => return self.read_values(kind),
        };
        attribute.map(|attribute| attribute.values).unwrap_or_default()
    }

    /// The content-type of the record.
    #[must_use]
    pub fn content_type(&self) -> Option<ContentType> {
        ContentType::read(&Element::parse(self.brief.content_type?).ok()?).ok()
    }

    /// Encoded information types of a message as it was delivered: the converted ones, else the original ones.
    #[must_use]
    pub fn delivered_eits(&self) -> Vec<Oid> {
        let message = match self.brief.kind {
            Kind::Message => self.message(),
            Kind::Report => None,
        };
        let eits = message.and_then(|m| m.converted_eits.as_ref().or(m.original_eits.as_ref()));
        eits.map(a::eits).unwrap_or_default()
    }

    /// Values for which the argument or the heading is read.
    fn read_values(&self, kind: &AttributeType) -> Vec<Value> {
        match self.brief.kind {
            Kind::Message => match envelope::of_message(self, kind) {
                Some(values) => values,
                None => self.members().values(kind),
            },
            Kind::Report => envelope::of_report(self, kind),
        }
    }

    fn message(&self) -> Option<&MessageDeliveryEnvelope> {
        self.message.get_or_init(|| envelope::read_message(self.brief.argument)).as_deref()
    }

    fn report(&self) -> Option<&ReportDelivery> {
        self.report.get_or_init(|| envelope::read_report(self.brief.argument)).as_deref()
    }

    fn members(&self) -> &heading::Members<'a> {
        self.members
            .get_or_init(|| self.brief.heading.map(heading::Members::read).unwrap_or_default())
    }

    /// What a result has of the item: the selected attributes that it has. Of an attribute of which the selection
    /// leaves out values, the count of all is added for a user of 1994.
    #[must_use]
    pub fn select(&self, selection: &[Selected], is_1994: bool) -> EntryInformation {
        let mut entry = EntryInformation {
            sequence_number: SequenceNumber(self.number),
            ..EntryInformation::default()
        };
        for selected in selection {
            let values = self.values(selected.kind);
            let total = values.len();
            let values: Vec<_> =
                values.into_iter().skip(selected.skip).take(selected.count).collect();
            if is_1994 && values.len() < total {
                entry.value_count_exceeded.push(AttributeValueCount {
                    attribute_type: selected.kind.oid(),
                    total: i64::try_from(total).unwrap_or(i64::MAX),
                });
            }
            entry.attributes.extend(selected.kind.multi(values));
        }
        entry
    }
}

impl AttributeLookup for Attributes<'_> {
    /// A filter does not see the content: it is absent.
    fn find(&self, attribute_type: &Oid) -> Found<'_> {
        match available(attribute_type).map(|kind| self.values(kind)) {
            None => Found::Unavailable,
            Some(values) if values.is_empty() => Found::Absent,
            Some(values) => Found::Values(Cow::Owned(values)),
        }
    }
}

/// One requested attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its type.
    pub kind: &'static AttributeType,
    /// Values that are left out at the front.
    pub skip: usize,
    /// Values at most.
    pub count: usize,
}

impl Selected {
    /// All values of an attribute type.
    #[must_use]
    pub fn new(kind: &'static AttributeType) -> Selected {
        Selected { kind, skip: 0, count: usize::MAX }
    }

    /// What a selection asks for.
    ///
    /// # Errors
    /// The attribute types that this store does not have.
    pub fn all(
        selection: &[AttributeSelection],
    ) -> Result<Vec<Selected>, Vec<AttributeProblemItem>> {
        let mut problems = Vec::new();
        let mut all = Vec::new();
        for AttributeSelection { attribute_type, from, count } in selection {
            let Some(kind) = available(attribute_type) else {
                problems.push(unavailable(attribute_type));
                continue;
            };
            let size = |number: i64| usize::try_from(number).unwrap_or_default();
            all.push(Selected {
                kind,
                skip: size(from.unwrap_or(1).saturating_sub(1)),
                count: count.map_or(usize::MAX, size),
            });
        }
        if problems.is_empty() { Ok(all) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests;
