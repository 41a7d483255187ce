use super::recipient::{read_all, read_number};
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::{Dialect, Extensions};
use crate::flags::PerRecipientIndicators;
use crate::names::{self, MtsIdentifier, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::trace::{TraceElement, read_trace, write_trace};
use crate::wire::{keep, once, required, tag, write_kept, write_latin1};
use base::ber::{Element, Error, Fault, Field, Tag, Writer, universal};
use bytes::Bytes;

/// ReportTransferEnvelope (X.411 12.2.1.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportTransferEnvelope {
    /// report-identifier.
    pub report_identifier: MtsIdentifier,
    /// report-destination-name: the subject's originator, or a list on the way back.
    pub destination: ORName,
    /// trace-information of the report itself, oldest first.
    pub trace: Vec<TraceElement>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// ReportTransferContent: what became of the subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportTransferContent {
    /// subject-identifier.
    pub subject_identifier: MtsIdentifier,
    /// subject-intermediate-trace-information, oldest first; empty where absent.
    pub subject_trace: Vec<TraceElement>,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: Option<ContentType>,
    /// content-identifier.
    pub content_identifier: Option<String>,
    /// returned-content: the subject's content, where its return was asked for.
    pub returned_content: Option<Bytes>,
    /// additional-information (bilateral, deprecated), the whole element.
    pub additional_information: Option<Bytes>,
    /// extensions.
    pub extensions: Extensions,
    /// per-recipient-fields.
    pub recipients: Vec<PerRecipientReportFields>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// PerRecipientReportTransferFields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerRecipientReportFields {
    /// actual-recipient-name.
    pub actual_recipient: ORName,
    /// originally-specified-recipient-number.
    pub number: u32,
    /// per-recipient-indicators, as in the subject.
    pub indicators: PerRecipientIndicators,
    /// last-trace-information.
    pub last_trace: LastTrace,
    /// originally-intended-recipient-name, where the actual one differs.
    pub intended_recipient: Option<ORName>,
    /// supplementary-information, Printable, up to 256 characters.
    pub supplementary_information: Option<String>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// LastTraceInformation: the subject's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LastTrace {
    /// arrival-time of the subject at the reporting domain.
    pub arrival_time: Time,
    /// converted-encoded-information-types.
    pub converted_eits: Option<EncodedInformationTypes>,
    /// report-type.
    pub report: ReportType,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// ReportType: delivered, or not and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReportType {
    /// delivery.
    Delivery {
        /// message-delivery-time.
        time: Time,
        /// type-of-MTS-user: public 0 (the default), private 1, ms 2, dl 3, pdau 4, ...
        mts_user: i64,
    },
    /// non-delivery.
    NonDelivery {
        /// non-delivery-reason-code.
        reason: NonDeliveryReason,
        /// non-delivery-diagnostic-code.
        diagnostic: Option<Diagnostic>,
    },
}

impl ReportTransferEnvelope {
    /// Reads it; SET members in any order, unknown ones kept.
    ///
    /// # Errors
    /// Malformed, a mandatory member missing, or one twice.
    pub fn read(e: &Element<'_>) -> Result<ReportTransferEnvelope, Error> {
        let name = "report-transfer-envelope";
        let (mut identifier, mut destination, mut trace) = (None, None, None);
        let (mut extensions, mut unknown) = (None, Vec::new());
        let mut members = e.children().field(name)?;
        while let Some(m) = members.next().field(name)? {
            let place = match m.tag {
                tag::MTS_IDENTIFIER => once(&mut identifier, &m, MtsIdentifier::read(&m)?),
                tag::OR_NAME => {
                    let to = ORName::read(&m).field("report-destination-name")?;
                    once(&mut destination, &m, to)
                }
                tag::TRACE => once(&mut trace, &m, read_trace(&m)?),
                ENVELOPE_EXTENSIONS => once(&mut extensions, &m, Extensions::read(&m)?),
                _ => {
                    unknown.push(keep(&m));
                    Ok(())
                }
            };
            place.field(name)?;
        }
        Ok(ReportTransferEnvelope {
            report_identifier: required(identifier, tag::MTS_IDENTIFIER)
                .field("report-identifier")?,
            destination: required(destination, tag::OR_NAME).field("report-destination-name")?,
            trace: required(trace, tag::TRACE).field("trace-information")?,
            extensions: extensions.unwrap_or_default(),
            unknown,
        })
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(universal::SET, |w| {
            self.report_identifier.write(w);
            self.destination.write(w);
            write_trace(w, &self.trace);
            self.extensions.write_as(w, ENVELOPE_EXTENSIONS);
            write_kept(w, &self.unknown);
        });
    }
}

const ENVELOPE_EXTENSIONS: Tag = Tag::context(1);
const CONTENT_RECIPIENTS: Tag = Tag::context(0);
const RETURNED_CONTENT: Tag = Tag::context(1);
const ADDITIONAL: Tag = Tag::context(2);
const CONTENT_EXTENSIONS: Tag = Tag::context(3);

impl ReportTransferContent {
    /// Reads it; SET members in any order, unknown ones kept.
    ///
    /// # Errors
    /// Malformed, a mandatory member missing, or one twice.
    pub fn read(e: &Element<'_>) -> Result<ReportTransferContent, Error> {
        let name = "report-transfer-content";
        let (mut subject, mut trace, mut eits, mut content_type) = (None, None, None, None);
        let (mut content_identifier, mut returned, mut additional) = (None, None, None);
        let (mut extensions, mut recipients, mut unknown) = (None, None, Vec::new());
        let mut members = e.children().field(name)?;
        while let Some(m) = members.next().field(name)? {
            let place = match m.tag {
                tag::MTS_IDENTIFIER => {
                    once(&mut subject, &m, MtsIdentifier::read(&m).field("subject-identifier")?)
                }
                tag::TRACE => once(&mut trace, &m, read_trace(&m)?),
                tag::EITS => once(&mut eits, &m, EncodedInformationTypes::read(&m)?),
                t if ContentType::has_tag(t) => once(&mut content_type, &m, ContentType::read(&m)?),
                tag::CONTENT_IDENTIFIER => {
                    once(&mut content_identifier, &m, names::content_identifier(&m)?)
                }
                RETURNED_CONTENT => {
                    let octets = m.octets().field("returned-content")?;
                    once(&mut returned, &m, Bytes::from(octets.into_owned()))
                }
                ADDITIONAL => once(&mut additional, &m, keep(&m)),
                CONTENT_EXTENSIONS => once(&mut extensions, &m, Extensions::read(&m)?),
                CONTENT_RECIPIENTS => {
                    once(&mut recipients, &m, read_all(&m, PerRecipientReportFields::read)?)
                }
                _ => {
                    unknown.push(keep(&m));
                    Ok(())
                }
            };
            place.field(name)?;
        }
        Ok(ReportTransferContent {
            subject_identifier: required(subject, tag::MTS_IDENTIFIER)
                .field("subject-identifier")?,
            subject_trace: trace.unwrap_or_default(),
            original_eits: eits,
            content_type,
            content_identifier,
            returned_content: returned,
            additional_information: additional,
            extensions: extensions.unwrap_or_default(),
            recipients: required(recipients, CONTENT_RECIPIENTS).field("per-recipient-fields")?,
            unknown,
        })
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(universal::SET, |w| {
            self.subject_identifier.write(w);
            if !self.subject_trace.is_empty() {
                write_trace(w, &self.subject_trace);
            }
            if let Some(eits) = &self.original_eits {
                eits.write(w);
            }
            if let Some(content_type) = &self.content_type {
                content_type.write(w);
            }
            if let Some(identifier) = &self.content_identifier {
                write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if let Some(content) = &self.returned_content {
                w.string(RETURNED_CONTENT, content);
            }
            write_kept(w, &self.additional_information);
            self.extensions.write_as(w, CONTENT_EXTENSIONS);
            w.constructed(CONTENT_RECIPIENTS, |w| {
                self.recipients.iter().for_each(|r| r.write(w));
            });
            write_kept(w, &self.unknown);
        });
    }

    /// Brings all extensions into this dialect, those of recipients too; gives how many have no form
    /// in it and are left out (see [`Extensions::set_dialect`]).
    pub fn set_dialect(&mut self, dialect: Dialect) -> usize {
        let recipients = self.recipients.iter_mut().map(|r| r.extensions.set_dialect(dialect));
        recipients.sum::<usize>() + self.extensions.set_dialect(dialect)
    }
}

const ACTUAL: Tag = Tag::context(0);
const NUMBER: Tag = Tag::context(1);
const INDICATORS: Tag = Tag::context(2);
const LAST_TRACE: Tag = Tag::context(3);
const INTENDED: Tag = Tag::context(4);
const SUPPLEMENTARY: Tag = Tag::context(5);
const EXTENSIONS: Tag = Tag::context(6);

impl PerRecipientReportFields {
    /// Reads one recipient's fields.
    ///
    /// # Errors
    /// Malformed, or a mandatory member missing.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientReportFields, Error> {
        let name = "per-recipient-fields";
        let (mut actual, mut number, mut indicators, mut last) = (None, None, None, None);
        let (mut intended, mut supplementary, mut extensions) = (None, None, None);
        let mut unknown = Vec::new();
        let mut members = e.children().field(name)?;
        while let Some(m) = members.next().field(name)? {
            let place = match m.tag {
                ACTUAL => once(&mut actual, &m, ORName::read(&m).field("actual-recipient-name")?),
                NUMBER => once(&mut number, &m, read_number(&m)?),
                INDICATORS => once(&mut indicators, &m, PerRecipientIndicators::read(&m)?),
                LAST_TRACE => once(&mut last, &m, LastTrace::read(&m)?),
                INTENDED => {
                    let to = ORName::read(&m).field("originally-intended-recipient-name")?;
                    once(&mut intended, &m, to)
                }
                SUPPLEMENTARY => {
                    once(&mut supplementary, &m, names::supplementary_information(&m)?)
                }
                EXTENSIONS => once(&mut extensions, &m, Extensions::read(&m)?),
                _ => {
                    unknown.push(keep(&m));
                    Ok(())
                }
            };
            place.field(name)?;
        }
        Ok(PerRecipientReportFields {
            actual_recipient: required(actual, ACTUAL).field("actual-recipient-name")?,
            number: required(number, NUMBER).field("originally-specified-recipient-number")?,
            indicators: required(indicators, INDICATORS).field("per-recipient-indicators")?,
            last_trace: required(last, LAST_TRACE).field("last-trace-information")?,
            intended_recipient: intended,
            supplementary_information: supplementary,
            extensions: extensions.unwrap_or_default(),
            unknown,
        })
    }

    /// Writes them.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(universal::SET, |w| {
            self.actual_recipient.write_as(w, ACTUAL);
            w.integer(NUMBER, i64::from(self.number));
            self.indicators.write_as(w, INDICATORS);
            self.last_trace.write(w);
            if let Some(intended) = &self.intended_recipient {
                intended.write_as(w, INTENDED);
            }
            if let Some(text) = &self.supplementary_information {
                write_latin1(w, SUPPLEMENTARY, text);
            }
            self.extensions.write_as(w, EXTENSIONS);
            write_kept(w, &self.unknown);
        });
    }
}

const ARRIVAL: Tag = Tag::context(0);
const REPORT_TYPE: Tag = Tag::context(1);

impl LastTrace {
    fn read(e: &Element<'_>) -> Result<LastTrace, Error> {
        let name = "last-trace-information";
        let (mut arrival, mut eits, mut report) = (None, None, None);
        let mut unknown = Vec::new();
        let mut members = e.children().field(name)?;
        while let Some(m) = members.next().field(name)? {
            let place = match m.tag {
                ARRIVAL => once(&mut arrival, &m, Time::read(&m).field("arrival-time")?),
                tag::EITS => once(&mut eits, &m, EncodedInformationTypes::read(&m)?),
                REPORT_TYPE => {
                    let inner = m.only_child().field("report-type")?;
                    once(&mut report, &m, ReportType::read(&inner)?)
                }
                _ => {
                    unknown.push(keep(&m));
                    Ok(())
                }
            };
            place.field(name)?;
        }
        Ok(LastTrace {
            arrival_time: required(arrival, ARRIVAL).field("arrival-time")?,
            converted_eits: eits,
            report: required(report, REPORT_TYPE).field("report-type")?,
            unknown,
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(LAST_TRACE, |w| {
            self.arrival_time.write_as(w, ARRIVAL);
            if let Some(eits) = &self.converted_eits {
                eits.write(w);
            }
            w.constructed(REPORT_TYPE, |w| self.report.write(w));
            write_kept(w, &self.unknown);
        });
    }
}

const DELIVERY: Tag = Tag::context(0);
const NON_DELIVERY: Tag = Tag::context(1);

impl ReportType {
    /// Reads the alternative inside an explicit tag.
    ///
    /// # Errors
    /// Another tag, malformed, or a mandatory member missing.
    pub fn read(e: &Element<'_>) -> Result<ReportType, Error> {
        let name = "report-type";
        let (mut first, mut second) = (None, None);
        let mut members = e.children().field(name)?;
        // No other members are known, and none can be passed on from here: they are left out.
        while let Some(m) = members.next().field(name)? {
            match m.tag {
                DELIVERY => once(&mut first, &m, m).field(name)?,
                NON_DELIVERY => once(&mut second, &m, m.integer().field(name)?).field(name)?,
                _ => {}
            }
        }
        let first = required(first, Tag::context(0)).field(name)?;
        match e.tag {
            DELIVERY => Ok(ReportType::Delivery {
                time: Time::read(&first).field("message-delivery-time")?,
                mts_user: second.unwrap_or(0),
            }),
            NON_DELIVERY => Ok(ReportType::NonDelivery {
                reason: NonDeliveryReason(first.integer().field("non-delivery-reason-code")?),
                diagnostic: second.map(Diagnostic),
            }),
            other => Err(Fault::Unexpected(other)).field(name),
        }
    }

    /// Writes the alternative, which goes inside an explicit tag.
    pub fn write(&self, w: &mut Writer) {
        match self {
            ReportType::Delivery { time, mts_user } => w.constructed(DELIVERY, |w| {
                time.write_as(w, Tag::context(0));
                if *mts_user != 0 {
                    w.integer(Tag::context(1), *mts_user);
                }
            }),
            ReportType::NonDelivery { reason, diagnostic } => w.constructed(NON_DELIVERY, |w| {
                w.integer(Tag::context(0), reason.0);
                if let Some(diagnostic) = diagnostic {
                    w.integer(Tag::context(1), diagnostic.0);
                }
            }),
        }
    }
}
