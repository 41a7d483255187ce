use super::parser::ArgumentHead;
use super::submission::frame;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::Priority;
use crate::names::{self, MtsIdentifier, ORName};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::{Element, Error, Fault, Field, Reader, Tag, Writer, universal as u};
use bytes::Bytes;

/// MessageDeliveryEnvelope (X.411 8.3.1.1.1): what a user is told about a message delivered to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageDeliveryEnvelope {
    /// message-delivery-identifier: the message's MTS identifier.
    pub identifier: MtsIdentifier,
    /// message-delivery-time.
    pub delivery_time: Time,
    /// content-type.
    pub content_type: ContentType,
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// priority.
    pub priority: Priority,
    /// delivery-flags: implicit-conversion-prohibited.
    pub implicit_conversion_prohibited: bool,
    /// other-recipient-names, where their disclosure was asked for.
    pub other_recipients: Vec<ORName>,
    /// this-recipient-name.
    pub this_recipient: ORName,
    /// originally-intended-recipient-name, where it is another one.
    pub intended_recipient: Option<ORName>,
    /// converted-encoded-information-types.
    pub converted_eits: Option<EncodedInformationTypes>,
    /// message-submission-time.
    pub submission_time: Time,
    /// content-identifier, as it was submitted.
    pub content_identifier: Option<String>,
    /// extensions.
    pub extensions: Extensions,
    /// Members of other-fields this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// `[0]` of DeliveredContentType: a built-in content type, of which the own tag is replaced.
const BUILT_IN: Tag = Tag::context(0);

#[derive(Default)]
struct OtherFields {
    content_type: Option<ContentType>,
    originator: Option<ORName>,
    original_eits: Option<EncodedInformationTypes>,
    priority: Priority,
    implicit_conversion_prohibited: bool,
    other_recipients: Vec<ORName>,
    this_recipient: Option<ORName>,
    intended_recipient: Option<ORName>,
    converted_eits: Option<EncodedInformationTypes>,
    submission_time: Option<Time>,
    content_identifier: Option<String>,
    extensions: Extensions,
    unknown: Vec<Bytes>,
}

impl OtherFields {
    fn read(e: &Element<'_>) -> Result<OtherFields, Error> {
        let mut fields = OtherFields::default();
        let mut members = e.children()?;
        while let Some(member) = members.next()? {
            match member.tag {
                // Some peers leave the built-in type its own tag.
                BUILT_IN | tag::CONTENT_TYPE => {
                    let number = member.integer().field("content-type")?;
                    fields.content_type = Some(ContentType::BuiltIn(number));
                }
                u::OID => {
                    let oid = member.oid().field("content-type")?;
                    fields.content_type = Some(ContentType::Extended(oid));
                }
                tag::OR_NAME => {
                    fields.originator = Some(ORName::read(&member).field("originator-name")?);
                }
                tag::PRIORITY => fields.priority = Priority::read(&member).field("priority")?,
                tag if tag == Tag::context(tag.number) => fields.read_context(&member)?,
                _ => fields.unknown.push(wire::keep(&member)),
            }
        }
        Ok(fields)
    }

    fn read_context(&mut self, e: &Element<'_>) -> Result<(), Error> {
        match e.tag.number {
            1 => {
                let eits = EncodedInformationTypes::read(e);
                self.original_eits = Some(eits.field("original-encoded-information-types")?);
            }
            2 => self.implicit_conversion_prohibited = e.bits().field("delivery-flags")?.get(1),
            3 => {
                let names = wire::list(e, bound::RECIPIENTS, ORName::read);
                self.other_recipients = names.field("other-recipient-names")?;
            }
            4 => self.this_recipient = Some(ORName::read(e).field("this-recipient-name")?),
            5 => {
                let name = ORName::read(e).field("originally-intended-recipient-name")?;
                self.intended_recipient = Some(name);
            }
            6 => {
                let eits = EncodedInformationTypes::read(e);
                self.converted_eits = Some(eits.field("converted-encoded-information-types")?);
            }
            7 => self.submission_time = Some(Time::read(e).field("message-submission-time")?),
            8 => self.content_identifier = Some(names::content_identifier(e)?),
            9 => self.extensions = Extensions::read(e).field("extensions")?,
            _ => self.unknown.push(wire::keep(e)),
        }
        Ok(())
    }
}

impl ArgumentHead for MessageDeliveryEnvelope {
    const NAME: &'static str = "MessageDeliveryEnvelope";
    // A user could refuse it only for ever: it stays with the MTA, and comes again.
    const IS_ACCEPTED: bool = true;

    fn read_head(mut members: Reader<'_>) -> Result<Self, Error> {
        let identifier = members.require(tag::MTS_IDENTIFIER).and_then(|e| MtsIdentifier::read(&e));
        let identifier = identifier.field("message-delivery-identifier")?;
        let delivery_time = members.require(u::UTC_TIME).and_then(|e| Time::read(&e));
        let delivery_time = delivery_time.field("message-delivery-time")?;
        let fields = members.require(u::SET).and_then(|e| OtherFields::read(&e));
        let fields = fields.field("other-fields")?;
        members.finish()?;
        Ok(MessageDeliveryEnvelope {
            identifier,
            delivery_time,
            content_type: wire::required(fields.content_type, BUILT_IN).field("content-type")?,
            originator: wire::required(fields.originator, tag::OR_NAME).field("originator-name")?,
            original_eits: fields.original_eits,
            priority: fields.priority,
            implicit_conversion_prohibited: fields.implicit_conversion_prohibited,
            other_recipients: fields.other_recipients,
            this_recipient: wire::required(fields.this_recipient, Tag::context(4))
                .field("this-recipient-name")?,
            intended_recipient: fields.intended_recipient,
            converted_eits: fields.converted_eits,
            submission_time: wire::required(fields.submission_time, Tag::context(7))
                .field("message-submission-time")?,
            content_identifier: fields.content_identifier,
            extensions: fields.extensions,
            unknown: fields.unknown,
        })
    }
}

impl MessageDeliveryEnvelope {
    /// Everything of a message-delivery argument before the content's octets, of which there are
    /// `content_length`. All lengths are definite: after the content nothing follows.
    pub fn argument_head(&self, content_length: u64) -> Vec<u8> {
        let mut w = Writer::new();
        self.identifier.write(&mut w);
        self.delivery_time.write_as(&mut w, u::UTC_TIME);
        w.constructed(u::SET, |w| self.write_other_fields(w));
        frame(w, content_length)
    }

    fn write_other_fields(&self, w: &mut Writer) {
        match &self.content_type {
            ContentType::BuiltIn(number) => w.integer(BUILT_IN, *number),
            ContentType::Extended(oid) => w.oid(u::OID, oid),
        }
        self.originator.write(w);
        if let Some(eits) = &self.original_eits {
            eits.write_as(w, Tag::context(1));
        }
        if self.priority != Priority::Normal {
            self.priority.write(w);
        }
        if self.implicit_conversion_prohibited {
            w.named_bits(Tag::context(2), &[1], 0);
        }
        if !self.other_recipients.is_empty() {
            w.constructed(Tag::context(3), |w| {
                self.other_recipients.iter().for_each(|name| name.write(w));
            });
        }
        self.this_recipient.write_as(w, Tag::context(4));
        if let Some(intended) = &self.intended_recipient {
            intended.write_as(w, Tag::context(5));
        }
        if let Some(eits) = &self.converted_eits {
            eits.write_as(w, Tag::context(6));
        }
        self.submission_time.write_as(w, Tag::context(7));
        if let Some(identifier) = &self.content_identifier {
            wire::write_latin1(w, Tag::context(8), identifier);
        }
        self.extensions.write_as(w, Tag::context(9));
        wire::write_kept(w, &self.unknown);
    }
}

/// MessageDeliveryResult: a recipient's acceptance. Certificates and proofs, which were not asked
/// for, are kept as elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryResult {
    /// extensions.
    pub extensions: Extensions,
    /// All other members, as whole elements.
    pub other: Vec<Bytes>,
}

impl DeliveryResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no SET.
    pub fn read(e: &Element<'_>) -> Result<DeliveryResult, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("MessageDeliveryResult");
        }
        let mut result = DeliveryResult::default();
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            if member.tag == Tag::context(2) {
                result.extensions = Extensions::read(&member).field("extensions")?;
            } else {
                result.other.push(wire::keep(&member));
            }
        }
        Ok(result)
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_kept(w, &self.other);
            self.extensions.write_as(w, Tag::context(2));
        });
    }
}
