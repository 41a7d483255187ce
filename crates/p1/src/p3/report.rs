use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::envelope::ReportType;
use crate::extension::Extensions;
use crate::names::{self, MtsIdentifier, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::wire::{self, bound, tag};
use base::ber::{Element, Error, Fault, Field, Tag, Writer, universal as u};
use bytes::Bytes;

/// ReportDeliveryArgument (X.411 8.3.1.2.1): what became of a message this user submitted.
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

impl ReportDelivery {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no subject identifier or recipient; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ReportDelivery, Error> {
        let (mut subject, mut content_identifier, mut content_type) = (None, None, None);
        let (mut original_eits, mut extensions) = (None, Extensions::default());
        let (mut recipients, mut returned_content, mut unknown) = (Vec::new(), None, Vec::new());
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            match member.tag {
                tag::MTS_IDENTIFIER => {
                    let id = MtsIdentifier::read(&member);
                    subject = Some(id.field("subject-submission-identifier")?);
                }
                tag::CONTENT_IDENTIFIER => {
                    content_identifier = Some(names::content_identifier(&member)?);
                }
                tag::CONTENT_TYPE | u::OID => {
                    content_type = Some(ContentType::read(&member).field("content-type")?);
                }
                tag::EITS => {
                    let eits = EncodedInformationTypes::read(&member);
                    original_eits = Some(eits.field("original-encoded-information-types")?);
                }
                u::SEQUENCE => {
                    let read = PerRecipientReportDelivery::read;
                    recipients = wire::list(&member, bound::RECIPIENTS, read)
                        .field("per-recipient-fields")?;
                }
                tag if tag == Tag::context(0) => {
                    let octets = member.octets().field("returned-content")?;
                    returned_content = Some(Bytes::from(octets.into_owned()));
                }
                tag if tag == Tag::context(1) => {
                    extensions = Extensions::read(&member).field("extensions")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        if recipients.is_empty() {
            return Err(Fault::Missing(u::SEQUENCE)).field("per-recipient-fields");
        }
        let missing = Fault::Missing(tag::MTS_IDENTIFIER);
        Ok(ReportDelivery {
            subject_identifier: subject.ok_or(missing).field("subject-submission-identifier")?,
            content_identifier,
            content_type,
            original_eits,
            extensions,
            recipients,
            returned_content,
            unknown,
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
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
            self.extensions.write_as(w, Tag::context(1));
            w.constructed(u::SEQUENCE, |w| self.recipients.iter().for_each(|r| r.write(w)));
            if let Some(content) = &self.returned_content {
                w.string(Tag::context(0), content);
            }
            wire::write_kept(w, &self.unknown);
        });
    }
}

impl PerRecipientReportDelivery {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no actual-recipient-name or report-type; the field is named.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientReportDelivery, Error> {
        let (mut actual, mut report, mut converted_eits) = (None, None, None);
        let (mut intended_recipient, mut supplementary_information) = (None, None);
        let (mut extensions, mut unknown) = (Extensions::default(), Vec::new());
        let mut members = wire::members(e)?;
        while let Some(member) = members.next()? {
            match member.tag {
                tag::EITS => {
                    let eits = EncodedInformationTypes::read(&member);
                    converted_eits = Some(eits.field("converted-encoded-information-types")?);
                }
                tag if tag == Tag::context(0) => {
                    actual = Some(ORName::read(&member).field("actual-recipient-name")?);
                }
                tag if tag == Tag::context(1) => {
                    report = Some(read_report_type(&member).field("report-type")?);
                }
                tag if tag == Tag::context(2) => {
                    let name = ORName::read(&member).field("originally-intended-recipient-name")?;
                    intended_recipient = Some(name);
                }
                tag if tag == Tag::context(3) => {
                    let text = names::supplementary_information(&member)?;
                    supplementary_information = Some(text);
                }
                tag if tag == Tag::context(4) => {
                    extensions = Extensions::read(&member).field("extensions")?;
                }
                _ => unknown.push(wire::keep(&member)),
            }
        }
        let no_name = Fault::Missing(Tag::context(0));
        let no_report = Fault::Missing(Tag::context(1));
        Ok(PerRecipientReportDelivery {
            actual_recipient: actual.ok_or(no_name).field("actual-recipient-name")?,
            report: report.ok_or(no_report).field("report-type")?,
            converted_eits,
            intended_recipient,
            supplementary_information,
            extensions,
            unknown,
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

fn read_report_type(e: &Element<'_>) -> Result<ReportType, Error> {
    let choice = e.only_child()?;
    let (mut first, mut second) = (None, None);
    let mut members = choice.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            tag if tag == Tag::context(0) => first = Some(member),
            tag if tag == Tag::context(1) => second = Some(member.integer()?),
            _ => {}
        }
    }
    let first = first.ok_or(Fault::Missing(Tag::context(0)))?;
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
            time.write_as(w, Tag::context(0));
            if *mts_user != 0 {
                w.integer(Tag::context(1), *mts_user);
            }
        }),
        ReportType::NonDelivery { reason, diagnostic } => w.constructed(Tag::context(1), |w| {
            w.integer(Tag::context(0), reason.0);
            if let Some(diagnostic) = diagnostic {
                w.integer(Tag::context(1), diagnostic.0);
            }
        }),
    }
}
