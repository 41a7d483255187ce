use super::parser::ArgumentHead;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::{PerMessageIndicators, Priority, ReportRequest};
use crate::names::{self, MtsIdentifier, ORName};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::universal as u;
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Member, Reader, Tag, Writer, read_distinct_set,
};
use bytes::Bytes;

/// MessageSubmissionEnvelope (X.411 8.2.1.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSubmissionEnvelope {
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier, Printable, 1 to 16 characters.
    pub content_identifier: Option<String>,
    /// priority.
    pub priority: Priority,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// deferred-delivery-time: not to be delivered before.
    pub deferred_delivery_time: Option<Time>,
    /// per-recipient-fields, 1 to 32767.
    pub recipients: Vec<PerRecipientSubmissionFields>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// ProbeSubmissionEnvelope (X.411 8.2.1.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSubmissionEnvelope {
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier, Printable, 1 to 16 characters.
    pub content_identifier: Option<String>,
    /// content-length of the message in question, octets.
    pub content_length: Option<i64>,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// per-recipient-fields, 1 to 32767.
    pub recipients: Vec<PerRecipientSubmissionFields>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// PerRecipientMessageSubmissionFields, and PerRecipientProbeSubmissionFields, which have the same
/// form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerRecipientSubmissionFields {
    /// recipient-name.
    pub recipient: ORName,
    /// originator-report-request.
    pub report_request: ReportRequest,
    /// explicit-conversion, by number.
    pub explicit_conversion: Option<i64>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// Members that both submission envelopes have, as they are collected.
struct Common {
    originator: Member<ORName>,
    original_eits: Member<EncodedInformationTypes>,
    content_type: Member<ContentType>,
    content_identifier: Member<String>,
    indicators: Member<PerMessageIndicators>,
    recipients: Member<Vec<PerRecipientSubmissionFields>>,
    extensions: Member<Extensions>,
}

impl Common {
    const fn new() -> Common {
        Common {
            originator: Member::new("originator-name"),
            original_eits: Member::new("original-encoded-information-types"),
            content_type: Member::new("content-type"),
            content_identifier: Member::new("content-identifier"),
            indicators: Member::new("per-message-indicators"),
            recipients: Member::new("per-recipient-fields"),
            extensions: Member::new("extensions"),
        }
    }

    /// Reads a member; `false` where it is none of these. The recipients have this tag.
    fn take(&mut self, e: &Element<'_>, recipients: Tag) -> Result<bool, Error> {
        match e.tag {
            tag::OR_NAME => self.originator.once(e, ORName::read),
            tag::EITS => self.original_eits.once(e, EncodedInformationTypes::read),
            // The alternatives of one CHOICE: the last counts.
            tag::CONTENT_TYPE | u::OID => self.content_type.last(e, ContentType::read),
            tag::CONTENT_IDENTIFIER => self.content_identifier.once(e, names::content_identifier),
            tag::PER_MESSAGE_INDICATORS => self.indicators.once(e, PerMessageIndicators::read),
            EXTENSIONS => self.extensions.once(e, Extensions::read),
            tag if tag == recipients => self
                .recipients
                .once(e, |e| wire::list(e, bound::RECIPIENTS, PerRecipientSubmissionFields::read)),
            _ => Ok(false),
        }
    }
}

/// extensions, the same `[2]` in all three SETs of a submission.
const EXTENSIONS: Tag = Tag::context(2);

const DEFERRED: Tag = Tag::context(0);
const MESSAGE_RECIPIENTS: Tag = Tag::context(1);
const CONTENT_LENGTH: Tag = Tag::context(0);
const PROBE_RECIPIENTS: Tag = Tag::context(3);
const REPORT_REQUEST: Tag = Tag::context(0);
const CONVERSION: Tag = Tag::context(1);
const SUBMISSION_TIME: Tag = Tag::context(0);
const RESULT_EXTENSIONS: Tag = Tag::context(1);

/// deferred-delivery-time. Ours to act upon, so it must be a time.
fn read_deferred(e: &Element<'_>) -> Result<Time, Error> {
    let time = Time::read(e)?;
    if time.utc.is_none() {
        return Err(Fault::Value("UTCTime").into());
    }
    Ok(time)
}

/// originator-report-request.
fn read_report_request(e: &Element<'_>) -> Result<ReportRequest, Error> {
    let bits = e.bits()?;
    Ok(match (bits.get(3), bits.get(4)) {
        (true, _) => ReportRequest::Report,
        (false, true) => ReportRequest::NonDelivery,
        (false, false) => ReportRequest::None,
    })
}

fn at_least_one(
    recipients: Member<Vec<PerRecipientSubmissionFields>>,
) -> Result<Vec<PerRecipientSubmissionFields>, Error> {
    let recipients = recipients.or_default();
    if recipients.is_empty() {
        return Err(Fault::Value("per-recipient-fields, 1 or more")).field("per-recipient-fields");
    }
    Ok(recipients)
}

impl MessageSubmissionEnvelope {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or a missing originator-name, content-type or recipient; the field is named.
    pub fn read(e: &Element<'_>) -> Result<MessageSubmissionEnvelope, Error> {
        let (mut common, mut priority) = (Common::new(), Member::new("priority"));
        let mut deferred = Member::new("deferred-delivery-time");
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::PRIORITY => priority.once(m, Priority::read),
            DEFERRED => deferred.once(m, read_deferred),
            _ => common.take(m, MESSAGE_RECIPIENTS),
        })?;
        Ok(MessageSubmissionEnvelope {
            originator: common.originator.required(tag::OR_NAME)?,
            original_eits: common.original_eits.optional(),
            content_type: common.content_type.required(tag::CONTENT_TYPE)?,
            content_identifier: common.content_identifier.optional(),
            priority: priority.or_default(),
            indicators: common.indicators.or_default(),
            deferred_delivery_time: deferred.optional(),
            recipients: at_least_one(common.recipients)?,
            extensions: common.extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.originator.write(w);
            if let Some(eits) = &self.original_eits {
                eits.write(w);
            }
            self.content_type.write(w);
            if let Some(identifier) = &self.content_identifier {
                wire::write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if self.priority != Priority::Normal {
                self.priority.write(w);
            }
            if self.indicators != PerMessageIndicators::default() {
                self.indicators.write(w);
            }
            if let Some(time) = &self.deferred_delivery_time {
                time.write_as(w, Tag::context(0));
            }
            w.constructed(Tag::context(1), |w| self.recipients.iter().for_each(|r| r.write(w)));
            self.extensions.write_as(w, EXTENSIONS);
            wire::write_kept(w, &self.unknown);
        });
    }

    /// Everything of a message-submission argument before the content's octets, of which there are
    /// `content_length`. All lengths are definite: after the content nothing follows.
    pub fn argument_head(&self, content_length: u64) -> Vec<u8> {
        let mut w = Writer::new();
        self.write(&mut w);
        frame(w, content_length)
    }
}

/// The argument SEQUENCE around these members and a content that follows.
pub(super) fn frame(mut members: Writer, content_length: u64) -> Vec<u8> {
    members.header(u::OCTET_STRING, false, Length::Definite(content_length));
    let length = (members.as_slice().len() as u64).saturating_add(content_length);
    let mut head = Vec::with_capacity(members.as_slice().len() + 16);
    Header::write(u::SEQUENCE, true, Length::Definite(length), &mut head);
    head.extend_from_slice(members.as_slice());
    head
}

impl ArgumentHead for MessageSubmissionEnvelope {
    const NAME: &'static str = "MessageSubmissionEnvelope";

    fn read_head(mut members: Reader<'_>) -> Result<Self, Error> {
        let envelope = MessageSubmissionEnvelope::read(&members.require(u::SET)?)?;
        members.finish()?;
        Ok(envelope)
    }
}

impl ProbeSubmissionEnvelope {
    /// Reads the SET, which is the whole argument of a probe-submission.
    ///
    /// # Errors
    /// As [`MessageSubmissionEnvelope::read`].
    pub fn read(e: &Element<'_>) -> Result<ProbeSubmissionEnvelope, Error> {
        let (mut common, mut content_length) = (Common::new(), Member::new("content-length"));
        let unknown = read_distinct_set(e, |m| match m.tag {
            CONTENT_LENGTH => content_length.once(m, Element::integer),
            _ => common.take(m, PROBE_RECIPIENTS),
        })?;
        Ok(ProbeSubmissionEnvelope {
            originator: common.originator.required(tag::OR_NAME)?,
            original_eits: common.original_eits.optional(),
            content_type: common.content_type.required(tag::CONTENT_TYPE)?,
            content_identifier: common.content_identifier.optional(),
            content_length: content_length.optional(),
            indicators: common.indicators.or_default(),
            recipients: at_least_one(common.recipients)?,
            extensions: common.extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.originator.write(w);
            if let Some(eits) = &self.original_eits {
                eits.write(w);
            }
            self.content_type.write(w);
            if let Some(identifier) = &self.content_identifier {
                wire::write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if let Some(length) = self.content_length {
                w.integer(Tag::context(0), length);
            }
            if self.indicators != PerMessageIndicators::default() {
                self.indicators.write(w);
            }
            self.extensions.write_as(w, EXTENSIONS);
            w.constructed(Tag::context(3), |w| self.recipients.iter().for_each(|r| r.write(w)));
            wire::write_kept(w, &self.unknown);
        });
    }
}

impl PerRecipientSubmissionFields {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no recipient-name. A missing originator-report-request reads as none.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientSubmissionFields, Error> {
        let (mut recipient, mut report) =
            (Member::new("recipient-name"), Member::new("originator-report-request"));
        let (mut conversion, mut extensions) =
            (Member::new("explicit-conversion"), Member::new("extensions"));
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::OR_NAME => recipient.once(m, ORName::read),
            REPORT_REQUEST => report.once(m, read_report_request),
            CONVERSION => conversion.once(m, Element::integer),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        Ok(PerRecipientSubmissionFields {
            recipient: recipient.required(tag::OR_NAME)?,
            report_request: report.or_default(),
            explicit_conversion: conversion.optional(),
            extensions: extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        // At most one of the two bits is set: the report bit asks for both kinds.
        let bits: &[u32] = match self.report_request {
            ReportRequest::None => &[],
            ReportRequest::NonDelivery => &[4],
            ReportRequest::Report => &[3],
        };
        w.constructed(u::SET, |w| {
            self.recipient.write(w);
            w.named_bits(Tag::context(0), bits, 0);
            if let Some(conversion) = self.explicit_conversion {
                w.integer(Tag::context(1), conversion);
            }
            self.extensions.write_as(w, EXTENSIONS);
            wire::write_kept(w, &self.unknown);
        });
    }
}

/// MessageSubmissionResult, and ProbeSubmissionResult, which has the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionResult {
    /// message-submission-identifier or probe-submission-identifier.
    pub identifier: MtsIdentifier,
    /// message-submission-time or probe-submission-time.
    pub time: Time,
    /// content-identifier, as it was submitted.
    pub content_identifier: Option<String>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

impl SubmissionResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no identifier or time.
    pub fn read(e: &Element<'_>) -> Result<SubmissionResult, Error> {
        let mut identifier = Member::new("message-submission-identifier");
        let mut time = Member::new("message-submission-time");
        let mut content_identifier = Member::new("content-identifier");
        let mut extensions = Member::new("extensions");
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::MTS_IDENTIFIER => identifier.once(m, MtsIdentifier::read),
            SUBMISSION_TIME => time.once(m, Time::read),
            tag::CONTENT_IDENTIFIER => content_identifier.once(m, names::content_identifier),
            RESULT_EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        Ok(SubmissionResult {
            identifier: identifier.required(tag::MTS_IDENTIFIER)?,
            time: time.required(SUBMISSION_TIME)?,
            content_identifier: content_identifier.optional(),
            extensions: extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.identifier.write(w);
            self.time.write_as(w, Tag::context(0));
            if let Some(identifier) = &self.content_identifier {
                wire::write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            self.extensions.write_as(w, Tag::context(1));
            wire::write_kept(w, &self.unknown);
        });
    }
}
