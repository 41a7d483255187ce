use super::recipient::{read_all, read_number};
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::{Defaults, Extensions, Form};
use crate::flags::PerRecipientIndicators;
use crate::names::{self, MtsIdentifier, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::trace::{TraceElement, read_trace, write_trace};
use crate::wire::{keep, keep_all, tag, write_kept, write_latin1};
use base::ber::{
    Element, Error, Fault, Field, Header, Length, Member, Tag, Writer, read_set, universal,
};
use bytes::Bytes;

/// ReportTransferEnvelope (X.411 12.2.1.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportTransferEnvelope {
    /// report-identifier.
    pub report_identifier: MtsIdentifier,
    /// report-destination-name: the subject's originator, or a list on the return path.
    pub destination: ORName,
    /// trace-information of the report itself, oldest first.
    pub trace: Vec<TraceElement>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

/// ReportTransferContent: the outcome of the subject.
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
        let mut identifier = Member::new("report-identifier");
        let mut destination = Member::new("report-destination-name");
        let (mut trace, mut extensions) =
            (Member::new("trace-information"), Member::new("extensions"));
        let unknown = read_set(e, |m| match m.tag {
            tag::MTS_IDENTIFIER => identifier.once(m, MtsIdentifier::read),
            tag::OR_NAME => destination.once(m, ORName::read),
            tag::TRACE => trace.once(m, read_trace),
            ENVELOPE_EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        });
        Ok(ReportTransferEnvelope {
            unknown: keep_all(&unknown.field("report-transfer-envelope")?),
            report_identifier: identifier.required(tag::MTS_IDENTIFIER)?,
            destination: destination.required(tag::OR_NAME)?,
            trace: trace.required(tag::TRACE)?,
            extensions: extensions.or_default(),
        })
    }

    /// Writes it, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SET, |w| {
            self.report_identifier.write(w);
            self.destination.write(w);
            write_trace(w, &self.trace, defaults);
            self.extensions.write_in(w, ENVELOPE_EXTENSIONS, defaults);
            write_kept(w, &self.unknown);
        });
    }
}

/// The length of a SET whose last member is a returned content of so many octets, after `members` octets of others.
fn before_content(members: usize, content_length: u64) -> Length {
    let length = Length::Definite(content_length);
    let header = Header::encoded_size(RETURNED_CONTENT, length) as u64;
    Length::Definite((members as u64).saturating_add(header).saturating_add(content_length))
}

const ENVELOPE_EXTENSIONS: Tag = Tag::context(1);
const CONTENT_RECIPIENTS: Tag = Tag::context(0);
/// returned-content, in the content of a report.
pub(crate) const RETURNED_CONTENT: Tag = Tag::context(1);
const ADDITIONAL: Tag = Tag::context(2);
const CONTENT_EXTENSIONS: Tag = Tag::context(3);

impl ReportTransferContent {
    /// Reads it; SET members in any order, unknown ones kept.
    ///
    /// # Errors
    /// Malformed, a mandatory member missing, or one twice.
    pub fn read(e: &Element<'_>) -> Result<ReportTransferContent, Error> {
        let (mut subject, mut trace) =
            (Member::new("subject-identifier"), Member::new("subject-trace"));
        let mut eits = Member::new("original-encoded-information-types");
        let mut content_type = Member::new("content-type");
        let mut content_identifier = Member::new("content-identifier");
        let mut returned = Member::new("returned-content");
        let mut additional = Member::new("additional-information");
        let mut extensions = Member::new("extensions");
        let mut recipients = Member::new("per-recipient-fields");
        let unknown = read_set(e, |m| match m.tag {
            tag::MTS_IDENTIFIER => subject.once(m, MtsIdentifier::read),
            tag::TRACE => trace.once(m, read_trace),
            tag::EITS => eits.once(m, EncodedInformationTypes::read),
            t if ContentType::has_tag(t) => content_type.once(m, ContentType::read),
            tag::CONTENT_IDENTIFIER => content_identifier.once(m, names::content_identifier),
            RETURNED_CONTENT => returned.once(m, |m| Ok(Bytes::from(m.octets()?.into_owned()))),
            ADDITIONAL => additional.once(m, |m| Ok(keep(m))),
            CONTENT_EXTENSIONS => extensions.once(m, Extensions::read),
            CONTENT_RECIPIENTS => {
                recipients.once(m, |m| read_all(m, PerRecipientReportFields::read))
            }
            _ => Ok(false),
        });
        Ok(ReportTransferContent {
            unknown: keep_all(&unknown.field("report-transfer-content")?),
            subject_identifier: subject.required(tag::MTS_IDENTIFIER)?,
            subject_trace: trace.or_default(),
            original_eits: eits.optional(),
            content_type: content_type.optional(),
            content_identifier: content_identifier.optional(),
            returned_content: returned.optional(),
            additional_information: additional.optional(),
            extensions: extensions.or_default(),
            recipients: recipients.required(CONTENT_RECIPIENTS)?,
        })
    }

    /// Writes it, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SET, |w| {
            self.write_members(w, defaults);
            if let Some(content) = &self.returned_content {
                w.string(RETURNED_CONTENT, content);
            }
        });
    }

    /// Writes all that is before a returned content of so many octets, which ends it. What is in
    /// [`ReportTransferContent::returned_content`] is not written.
    pub fn write_before_content(&self, w: &mut Writer, content_length: u64, defaults: Defaults) {
        let mut members = Writer::new();
        self.write_members(&mut members, defaults);
        w.header(universal::SET, true, before_content(members.as_slice().len(), content_length));
        w.raw(members.as_slice());
        w.header(RETURNED_CONTENT, false, Length::Definite(content_length));
    }

    /// All members but the returned content, which is last: SET members have no order (X.690 8.11).
    fn write_members(&self, w: &mut Writer, defaults: Defaults) {
        self.subject_identifier.write(w);
        if !self.subject_trace.is_empty() {
            write_trace(w, &self.subject_trace, defaults);
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
        write_kept(w, &self.additional_information);
        self.extensions.write_in(w, CONTENT_EXTENSIONS, defaults);
        w.constructed(CONTENT_RECIPIENTS, |w| {
            self.recipients.iter().for_each(|r| r.write(w, defaults));
        });
        write_kept(w, &self.unknown);
    }

    /// Brings all extensions into this form, those of recipients too; gives how many it does not have
    /// and are left out (see [`Extensions::set_form`]).
    pub(crate) fn set_form(&mut self, form: Form) -> usize {
        let recipients = self.recipients.iter_mut().map(|r| r.extensions.set_form(form));
        recipients.sum::<usize>() + self.extensions.set_form(form)
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
        let mut actual = Member::new("actual-recipient-name");
        let mut number = Member::new("originally-specified-recipient-number");
        let mut indicators = Member::new("per-recipient-indicators");
        let mut last = Member::new("last-trace-information");
        let mut intended = Member::new("originally-intended-recipient-name");
        let mut supplementary = Member::new("supplementary-information");
        let mut extensions = Member::new("extensions");
        let unknown = read_set(e, |m| match m.tag {
            ACTUAL => actual.once(m, ORName::read),
            NUMBER => number.once(m, read_number),
            INDICATORS => indicators.once(m, PerRecipientIndicators::read),
            LAST_TRACE => last.once(m, LastTrace::read),
            INTENDED => intended.once(m, ORName::read),
            SUPPLEMENTARY => supplementary.once(m, names::supplementary_information),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        });
        Ok(PerRecipientReportFields {
            unknown: keep_all(&unknown.field("per-recipient-fields")?),
            actual_recipient: actual.required(ACTUAL)?,
            number: number.required(NUMBER)?,
            indicators: indicators.required(INDICATORS)?,
            last_trace: last.required(LAST_TRACE)?,
            intended_recipient: intended.optional(),
            supplementary_information: supplementary.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Writes them, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SET, |w| {
            self.actual_recipient.write_as(w, ACTUAL);
            w.integer(NUMBER, i64::from(self.number));
            self.indicators.write_as(w, INDICATORS);
            self.last_trace.write(w, defaults);
            if let Some(intended) = &self.intended_recipient {
                intended.write_as(w, INTENDED);
            }
            if let Some(text) = &self.supplementary_information {
                write_latin1(w, SUPPLEMENTARY, text);
            }
            self.extensions.write_in(w, EXTENSIONS, defaults);
            write_kept(w, &self.unknown);
        });
    }
}

const ARRIVAL: Tag = Tag::context(0);
const REPORT_TYPE: Tag = Tag::context(1);

impl LastTrace {
    fn read(e: &Element<'_>) -> Result<LastTrace, Error> {
        let (mut arrival, mut report) = (Member::new("arrival-time"), Member::new("report-type"));
        let mut eits = Member::new("converted-encoded-information-types");
        let unknown = read_set(e, |m| match m.tag {
            ARRIVAL => arrival.once(m, Time::read),
            tag::EITS => eits.once(m, EncodedInformationTypes::read),
            REPORT_TYPE => report.once(m, |m| ReportType::read(&m.only_child()?)),
            _ => Ok(false),
        });
        Ok(LastTrace {
            unknown: keep_all(&unknown.field("last-trace-information")?),
            arrival_time: arrival.required(ARRIVAL)?,
            converted_eits: eits.optional(),
            report: report.required(REPORT_TYPE)?,
        })
    }

    fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(LAST_TRACE, |w| {
            self.arrival_time.write_as(w, ARRIVAL);
            if let Some(eits) = &self.converted_eits {
                eits.write(w);
            }
            w.constructed(REPORT_TYPE, |w| self.report.write(w, defaults));
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
        let (mut first, mut second) = (Member::new(name), Member::new(name));
        // No other members are known, and none can be passed on from here: they are left out.
        read_set(e, |m| match m.tag {
            DELIVERY => first.once(m, |m| Ok(*m)),
            NON_DELIVERY => second.once(m, Element::integer),
            _ => Ok(false),
        })
        .field(name)?;
        let (first, second) = (first.required(Tag::context(0))?, second.optional());
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

    /// Writes the alternative, which goes inside an explicit tag; type-of-MTS-user has a DEFAULT.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        match self {
            ReportType::Delivery { time, mts_user } => w.constructed(DELIVERY, |w| {
                time.write_as(w, Tag::context(0));
                if defaults.writes(mts_user, &0) {
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
