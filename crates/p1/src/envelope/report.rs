use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::PerRecipientIndicators;
use crate::names::{MtsIdentifier, ORName};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::time::Time;
use crate::trace::TraceElement;
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
