use super::parser::ArgumentHead;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::{PerMessageIndicators, Priority, ReportRequest};
use crate::names::{self, MtsIdentifier, ORName};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::universal as u;
use base::ber::{Element, Error, Fault, Field, Header, Length, Reader, Tag, Writer};
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

/// Members that both submission envelopes have.
#[derive(Default)]
struct Common {
    originator: Option<ORName>,
    original_eits: Option<EncodedInformationTypes>,
    content_type: Option<ContentType>,
    content_identifier: Option<String>,
    indicators: PerMessageIndicators,
    extensions: Extensions,
}

impl Common {
    /// Takes a member; `false` where it is none of these.
    fn read(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        match e.tag {
            tag::OR_NAME => self.originator = Some(ORName::read(e).field("originator-name")?),
            tag::EITS => {
                let eits = EncodedInformationTypes::read(e);
                self.original_eits = Some(eits.field("original-encoded-information-types")?);
            }
            tag::CONTENT_TYPE | u::OID => {
                self.content_type = Some(ContentType::read(e).field("content-type")?);
            }
            tag::CONTENT_IDENTIFIER => {
                self.content_identifier = Some(names::content_identifier(e)?);
            }
            tag::PER_MESSAGE_INDICATORS => {
                self.indicators = PerMessageIndicators::read(e).field("per-message-indicators")?;
            }
            EXTENSIONS => self.extensions = Extensions::read(e).field("extensions")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn originator(&mut self) -> Result<ORName, Error> {
        self.originator.take().ok_or(Fault::Missing(tag::OR_NAME)).field("originator-name")
    }

    fn content_type(&mut self) -> Result<ContentType, Error> {
        self.content_type.take().ok_or(Fault::Missing(tag::CONTENT_TYPE)).field("content-type")
    }
}

/// extensions, the same `[2]` in all three SETs of a submission.
const EXTENSIONS: Tag = Tag::context(2);

fn at_least_one(
    recipients: Vec<PerRecipientSubmissionFields>,
) -> Result<Vec<PerRecipientSubmissionFields>, Error> {
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
        let (mut common, mut priority) = (Common::default(), Priority::Normal);
        let (mut deferred, mut recipients, mut unknown) = (None, Vec::new(), Vec::new());
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            if common.read(&member)? {
                continue;
            }
            match member.tag {
                tag::PRIORITY => priority = Priority::read(&member).field("priority")?,
                tag if tag == Tag::context(0) => {
                    // Ours to act upon, so it must be a time.
                    let time = Time::read(&member).field("deferred-delivery-time")?;
                    if time.utc.is_none() {
                        return Err(Fault::Value("UTCTime")).field("deferred-delivery-time");
                    }
                    deferred = Some(time);
                }
                tag if tag == Tag::context(1) => {
                    recipients =
                        wire::list(&member, bound::RECIPIENTS, PerRecipientSubmissionFields::read)
                            .field("per-recipient-fields")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        Ok(MessageSubmissionEnvelope {
            originator: common.originator()?,
            original_eits: common.original_eits.take(),
            content_type: common.content_type()?,
            content_identifier: common.content_identifier.take(),
            priority,
            indicators: common.indicators,
            deferred_delivery_time: deferred,
            recipients: at_least_one(recipients)?,
            extensions: common.extensions,
            unknown,
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
        let (mut common, mut content_length) = (Common::default(), None);
        let (mut recipients, mut unknown) = (Vec::new(), Vec::new());
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            if common.read(&member)? {
                continue;
            }
            match member.tag {
                tag if tag == Tag::context(0) => {
                    content_length = Some(member.integer().field("content-length")?);
                }
                tag if tag == Tag::context(3) => {
                    recipients =
                        wire::list(&member, bound::RECIPIENTS, PerRecipientSubmissionFields::read)
                            .field("per-recipient-fields")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        Ok(ProbeSubmissionEnvelope {
            originator: common.originator()?,
            original_eits: common.original_eits.take(),
            content_type: common.content_type()?,
            content_identifier: common.content_identifier.take(),
            content_length,
            indicators: common.indicators,
            recipients: at_least_one(recipients)?,
            extensions: common.extensions,
            unknown,
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
        let mut out = PerRecipientSubmissionFields::default();
        let mut found = false;
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            match member.tag {
                tag::OR_NAME => {
                    out.recipient = ORName::read(&member).field("recipient-name")?;
                    found = true;
                }
                tag if tag == Tag::context(0) => {
                    let bits = member.bits().field("originator-report-request")?;
                    out.report_request = match (bits.get(3), bits.get(4)) {
                        (true, _) => ReportRequest::Report,
                        (false, true) => ReportRequest::NonDelivery,
                        (false, false) => ReportRequest::None,
                    };
                }
                tag if tag == Tag::context(1) => {
                    out.explicit_conversion = Some(member.integer().field("explicit-conversion")?);
                }
                EXTENSIONS => out.extensions = Extensions::read(&member).field("extensions")?,
                _ => out.unknown.push(wire::keep(&member)),
            }
        }
        if found { Ok(out) } else { Err(Fault::Missing(tag::OR_NAME)).field("recipient-name") }
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
        let (mut identifier, mut time, mut content_identifier) = (None, None, None);
        let (mut extensions, mut unknown) = (Extensions::default(), Vec::new());
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            match member.tag {
                tag::MTS_IDENTIFIER => {
                    let id = MtsIdentifier::read(&member);
                    identifier = Some(id.field("message-submission-identifier")?);
                }
                tag if tag == Tag::context(0) => {
                    time = Some(Time::read(&member).field("message-submission-time")?);
                }
                tag::CONTENT_IDENTIFIER => {
                    content_identifier = Some(names::content_identifier(&member)?);
                }
                tag if tag == Tag::context(1) => {
                    extensions = Extensions::read(&member).field("extensions")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        let no_identifier = Fault::Missing(tag::MTS_IDENTIFIER);
        let no_time = Fault::Missing(Tag::context(0));
        Ok(SubmissionResult {
            identifier: identifier.ok_or(no_identifier).field("message-submission-identifier")?,
            time: time.ok_or(no_time).field("message-submission-time")?,
            content_identifier,
            extensions,
            unknown,
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
