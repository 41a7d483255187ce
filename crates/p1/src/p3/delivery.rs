use super::parser::ArgumentHead;
use super::submission::frame;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::Priority;
use crate::names::{self, MtsIdentifier, ORName};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::{
    Element, Error, Fault, Field, Member, Reader, Tag, Writer, read_distinct_set, read_set,
    universal as u,
};
use bytes::Bytes;

/// MessageDeliveryEnvelope (X.411 8.3.1.1.1): the envelope of a message delivered to a user.
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

const ORIGINAL_EITS: Tag = Tag::context(1);
const DELIVERY_FLAGS: Tag = Tag::context(2);
const OTHER_RECIPIENTS: Tag = Tag::context(3);
const THIS_RECIPIENT: Tag = Tag::context(4);
const INTENDED_RECIPIENT: Tag = Tag::context(5);
const CONVERTED_EITS: Tag = Tag::context(6);
const SUBMISSION_TIME: Tag = Tag::context(7);
const CONTENT_IDENTIFIER: Tag = Tag::context(8);
const EXTENSIONS: Tag = Tag::context(9);

/// The SET of the envelope. A user's agent takes the last of a member that comes twice.
struct OtherFields {
    content_type: Member<ContentType>,
    originator: Member<ORName>,
    original_eits: Member<EncodedInformationTypes>,
    priority: Member<Priority>,
    implicit_conversion_prohibited: Member<bool>,
    other_recipients: Member<Vec<ORName>>,
    this_recipient: Member<ORName>,
    intended_recipient: Member<ORName>,
    converted_eits: Member<EncodedInformationTypes>,
    submission_time: Member<Time>,
    content_identifier: Member<String>,
    extensions: Member<Extensions>,
}

impl OtherFields {
    const fn new() -> OtherFields {
        OtherFields {
            content_type: Member::new("content-type"),
            originator: Member::new("originator-name"),
            original_eits: Member::new("original-encoded-information-types"),
            priority: Member::new("priority"),
            implicit_conversion_prohibited: Member::new("delivery-flags"),
            other_recipients: Member::new("other-recipient-names"),
            this_recipient: Member::new("this-recipient-name"),
            intended_recipient: Member::new("originally-intended-recipient-name"),
            converted_eits: Member::new("converted-encoded-information-types"),
            submission_time: Member::new("message-submission-time"),
            content_identifier: Member::new("content-identifier"),
            extensions: Member::new("extensions"),
        }
    }

    /// Reads a member; `false` where it is none of these.
    fn take(&mut self, m: &Element<'_>) -> Result<bool, Error> {
        match m.tag {
            // Some peers leave the built-in type its own tag.
            BUILT_IN | tag::CONTENT_TYPE => {
                self.content_type.last(m, |m| Ok(ContentType::BuiltIn(m.integer()?)))
            }
            u::OID => self.content_type.last(m, |m| Ok(ContentType::Extended(m.oid()?))),
            tag::OR_NAME => self.originator.last(m, ORName::read),
            tag::PRIORITY => self.priority.last(m, Priority::read),
            ORIGINAL_EITS => self.original_eits.last(m, EncodedInformationTypes::read),
            DELIVERY_FLAGS => self.implicit_conversion_prohibited.last(m, |m| Ok(m.bits()?.get(1))),
            OTHER_RECIPIENTS => {
                self.other_recipients.last(m, |m| wire::list(m, bound::RECIPIENTS, ORName::read))
            }
            THIS_RECIPIENT => self.this_recipient.last(m, ORName::read),
            INTENDED_RECIPIENT => self.intended_recipient.last(m, ORName::read),
            CONVERTED_EITS => self.converted_eits.last(m, EncodedInformationTypes::read),
            SUBMISSION_TIME => self.submission_time.last(m, Time::read),
            CONTENT_IDENTIFIER => self.content_identifier.last(m, names::content_identifier),
            EXTENSIONS => self.extensions.last(m, Extensions::read),
            _ => Ok(false),
        }
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
        let mut fields = OtherFields::new();
        let set = members.require(u::SET).field("other-fields")?;
        let unknown = read_set(&set, |m| fields.take(m)).field("other-fields")?;
        members.finish()?;
        Ok(MessageDeliveryEnvelope {
            identifier,
            delivery_time,
            content_type: fields.content_type.required(BUILT_IN)?,
            originator: fields.originator.required(tag::OR_NAME)?,
            original_eits: fields.original_eits.optional(),
            priority: fields.priority.or_default(),
            implicit_conversion_prohibited: fields.implicit_conversion_prohibited.or_default(),
            other_recipients: fields.other_recipients.or_default(),
            this_recipient: fields.this_recipient.required(THIS_RECIPIENT)?,
            intended_recipient: fields.intended_recipient.optional(),
            converted_eits: fields.converted_eits.optional(),
            submission_time: fields.submission_time.required(SUBMISSION_TIME)?,
            content_identifier: fields.content_identifier.optional(),
            extensions: fields.extensions.or_default(),
            unknown: wire::keep_all(&unknown),
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
            eits.write_as(w, ORIGINAL_EITS);
        }
        if self.priority != Priority::Normal {
            self.priority.write(w);
        }
        if self.implicit_conversion_prohibited {
            w.named_bits(DELIVERY_FLAGS, &[1], 0);
        }
        if !self.other_recipients.is_empty() {
            w.constructed(OTHER_RECIPIENTS, |w| {
                self.other_recipients.iter().for_each(|name| name.write(w));
            });
        }
        self.this_recipient.write_as(w, THIS_RECIPIENT);
        if let Some(intended) = &self.intended_recipient {
            intended.write_as(w, INTENDED_RECIPIENT);
        }
        if let Some(eits) = &self.converted_eits {
            eits.write_as(w, CONVERTED_EITS);
        }
        self.submission_time.write_as(w, SUBMISSION_TIME);
        if let Some(identifier) = &self.content_identifier {
            wire::write_latin1(w, CONTENT_IDENTIFIER, identifier);
        }
        self.extensions.write_as(w, EXTENSIONS);
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

const RESULT_EXTENSIONS: Tag = Tag::context(2);

impl DeliveryResult {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no SET.
    pub fn read(e: &Element<'_>) -> Result<DeliveryResult, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("MessageDeliveryResult");
        }
        let mut extensions = Member::new("extensions");
        let other = read_distinct_set(e, |m| match m.tag {
            RESULT_EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        Ok(DeliveryResult { extensions: extensions.or_default(), other: wire::keep_all(&other) })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_kept(w, &self.other);
            self.extensions.write_as(w, RESULT_EXTENSIONS);
        });
    }
}
