use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::envelope::ReportType;
use crate::extension::Extensions;
use crate::names::{self, MtsIdentifier, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Member, Tag, Writer, read_distinct_set, read_set,
    universal as u,
};
use bytes::Bytes;

/// ReportDeliveryArgument (X.411 8.3.1.2.1): the outcome of a message that this user submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportDelivery {
    /// subject-submission-identifier.
    pub subject_identifier: MtsIdentifier,
    /// content-identifier of the subject.
    pub content_identifier: Option<String>,
    /// content-type of the subject.
    pub content_type: Option<ContentType>,
    /// original-encoded-information-types of the subject.
    pub original_eits: Option<EncodedInformationTypes>,
    /// extensions.
    pub extensions: Extensions,
    /// per-recipient-fields, 1 to 32767.
    pub recipients: Vec<PerRecipientReportDelivery>,
    /// returned-content, where its return was asked for.
    pub returned_content: Option<Bytes>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// PerRecipientReportDeliveryFields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerRecipientReportDelivery {
    /// actual-recipient-name.
    pub actual_recipient: ORName,
    /// report-type.
    pub report: ReportType,
    /// converted-encoded-information-types.
    pub converted_eits: Option<EncodedInformationTypes>,
    /// originally-intended-recipient-name, where it is another one.
    pub intended_recipient: Option<ORName>,
    /// supplementary-information, Printable, up to 256 characters.
    pub supplementary_information: Option<String>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

const RETURNED_CONTENT: Tag = Tag::context(0);
const EXTENSIONS: Tag = Tag::context(1);
const ACTUAL: Tag = Tag::context(0);
const REPORT_TYPE: Tag = Tag::context(1);
const INTENDED: Tag = Tag::context(2);
const SUPPLEMENTARY: Tag = Tag::context(3);
const RECIPIENT_EXTENSIONS: Tag = Tag::context(4);

impl ReportDelivery {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no subject identifier or recipient; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ReportDelivery, Error> {
        let mut subject = Member::new("subject-submission-identifier");
        let mut content_identifier = Member::new("content-identifier");
        let mut content_type = Member::new("content-type");
        let mut original_eits = Member::new("original-encoded-information-types");
        let mut recipients = Member::new("per-recipient-fields");
        let mut returned_content = Member::new("returned-content");
        let mut extensions = Member::new("extensions");
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::MTS_IDENTIFIER => subject.once(m, MtsIdentifier::read),
            tag::CONTENT_IDENTIFIER => content_identifier.once(m, names::content_identifier),
            // The alternatives of one CHOICE: the last counts.
            tag::CONTENT_TYPE | u::OID => content_type.last(m, ContentType::read),
            tag::EITS => original_eits.once(m, EncodedInformationTypes::read),
            u::SEQUENCE => recipients
                .once(m, |m| wire::list(m, bound::RECIPIENTS, PerRecipientReportDelivery::read)),
            RETURNED_CONTENT => {
                returned_content.once(m, |m| Ok(Bytes::from(m.octets()?.into_owned())))
            }
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        let recipients = recipients.or_default();
        if recipients.is_empty() {
            return Err(Fault::Missing(u::SEQUENCE)).field("per-recipient-fields");
        }
        Ok(ReportDelivery {
            subject_identifier: subject.required(tag::MTS_IDENTIFIER)?,
            content_identifier: content_identifier.optional(),
            content_type: content_type.optional(),
            original_eits: original_eits.optional(),
            extensions: extensions.or_default(),
            recipients,
            returned_content: returned_content.optional(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.write_members(w);
            if let Some(content) = &self.returned_content {
                w.string(RETURNED_CONTENT, content);
            }
        });
    }

    /// All octets of the argument before a returned content of `content_length` octets; nothing comes after it. What is in
    /// [`ReportDelivery::returned_content`] is not written.
    #[must_use]
    pub fn argument_head(&self, content_length: u64) -> Vec<u8> {
        let mut members = Writer::new();
        self.write_members(&mut members);
        let length = Length::Definite(content_length);
        let header = Header::encoded_size(RETURNED_CONTENT, length) as u64;
        let all =
            (members.as_slice().len() as u64).saturating_add(header).saturating_add(content_length);
        let mut w = Writer::new();
        w.header(u::SET, true, Length::Definite(all));
        w.raw(members.as_slice());
        w.header(RETURNED_CONTENT, false, length);
        w.into_vec()
    }

    /// All members but the returned content.
    fn write_members(&self, w: &mut Writer) {
        self.subject_identifier.write(w);
        if let Some(identifier) = &self.content_identifier {
            wire::write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
        }
        if let Some(content_type) = &self.content_type {
            content_type.write(w);
        }
        if let Some(eits) = &self.original_eits {
            eits.write(w);
        }
        self.extensions.write_as(w, EXTENSIONS);
        w.constructed(u::SEQUENCE, |w| self.recipients.iter().for_each(|r| r.write(w)));
        wire::write_kept(w, &self.unknown);
    }
}

impl PerRecipientReportDelivery {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no actual-recipient-name or report-type; the field is named.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientReportDelivery, Error> {
        let mut actual = Member::new("actual-recipient-name");
        let mut report = Member::new("report-type");
        let mut converted_eits = Member::new("converted-encoded-information-types");
        let mut intended_recipient = Member::new("originally-intended-recipient-name");
        let mut supplementary = Member::new("supplementary-information");
        let mut extensions = Member::new("extensions");
        let unknown = read_distinct_set(e, |m| match m.tag {
            tag::EITS => converted_eits.once(m, EncodedInformationTypes::read),
            ACTUAL => actual.once(m, ORName::read),
            REPORT_TYPE => report.once(m, read_report_type),
            INTENDED => intended_recipient.once(m, ORName::read),
            SUPPLEMENTARY => supplementary.once(m, names::supplementary_information),
            RECIPIENT_EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        Ok(PerRecipientReportDelivery {
            actual_recipient: actual.required(ACTUAL)?,
            report: report.required(REPORT_TYPE)?,
            converted_eits: converted_eits.optional(),
            intended_recipient: intended_recipient.optional(),
            supplementary_information: supplementary.optional(),
            extensions: extensions.or_default(),
            unknown: wire::keep_all(&unknown),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.actual_recipient.write_as(w, Tag::context(0));
            // ReportType is a CHOICE, which makes its tag explicit.
            w.constructed(Tag::context(1), |w| write_report_type(&self.report, w));
            if let Some(eits) = &self.converted_eits {
                eits.write(w);
            }
            if let Some(intended) = &self.intended_recipient {
                intended.write_as(w, Tag::context(2));
            }
            if let Some(text) = &self.supplementary_information {
                wire::write_latin1(w, Tag::context(3), text);
            }
            self.extensions.write_as(w, Tag::context(4));
            wire::write_kept(w, &self.unknown);
        });
    }
}

/// message-delivery-time or non-delivery-reason-code.
const FIRST: Tag = Tag::context(0);
/// type-of-MTS-user or non-delivery-diagnostic-code.
const SECOND: Tag = Tag::context(1);

fn read_report_type(e: &Element<'_>) -> Result<ReportType, Error> {
    let choice = e.only_child()?;
    let (mut first, mut second) = (Member::new("report-type"), Member::new("report-type"));
    read_set(&choice, |m| match m.tag {
        FIRST => first.last(m, |m| Ok(*m)),
        SECOND => second.last(m, Element::integer),
        _ => Ok(false),
    })?;
    let (first, second) = (first.required(FIRST)?, second.optional());
    match choice.tag {
        tag if tag == Tag::context(0) => {
            Ok(ReportType::Delivery { time: Time::read(&first)?, mts_user: second.unwrap_or(0) })
        }
        tag if tag == Tag::context(1) => Ok(ReportType::NonDelivery {
            reason: NonDeliveryReason(first.integer()?),
            diagnostic: second.map(Diagnostic),
        }),
        tag => Err(Fault::Unexpected(tag).into()),
    }
}

fn write_report_type(report: &ReportType, w: &mut Writer) {
    match report {
        ReportType::Delivery { time, mts_user } => w.constructed(Tag::context(0), |w| {
            time.write_as(w, FIRST);
            if *mts_user != 0 {
                w.integer(SECOND, *mts_user);
            }
        }),
        ReportType::NonDelivery { reason, diagnostic } => w.constructed(Tag::context(1), |w| {
            w.integer(FIRST, reason.0);
            if let Some(diagnostic) = diagnostic {
                w.integer(SECOND, diagnostic.0);
            }
        }),
    }
}
