//! Reports in 1984: DeliveryReportMPDU.

use super::names::{set_form, set_reported_form};
use super::{eits, recipient_flags, trace};
use crate::apdu::Report;
use crate::envelope::{
    LastTrace, PerRecipientReportFields, ReportTransferContent, ReportTransferEnvelope, ReportType,
};
use crate::extension::{CommonName, Dialect};
use crate::names::ORName;
use crate::reason::{Diagnostic, NonDeliveryReason};

/// The reason codes of 1984.
const REASONS: std::ops::RangeInclusive<i64> = 0..=2;
/// The diagnostic codes of 1984.
const DIAGNOSTICS: std::ops::RangeInclusive<i64> = 0..=11;
/// typeOfUA: public and private.
const PUBLIC: i64 = 0;
const PRIVATE: i64 = 1;

/// As [`super::set_form`], of a report. The content type, the encoded information types and the histories are left
/// out; of the names in it what has no form. A destination without a form stays as it is.
pub(super) fn report(report: &mut Report, common_name: CommonName) -> usize {
    let dialect = Dialect::RedBook1984(common_name);
    let ReportTransferEnvelope {
        report_identifier: _,
        destination,
        trace: passed,
        extensions: of_envelope,
        unknown,
    } = &mut report.envelope;
    set_form(destination, common_name);
    trace(passed);
    unknown.clear();
    let ReportTransferContent {
        subject_identifier: _,
        subject_trace,
        original_eits,
        content_type,
        content_identifier: _,
        returned_content: _,
        additional_information: _,
        extensions: of_content,
        recipients,
        unknown,
    } = &mut report.content;
    trace(subject_trace);
    (*original_eits, *content_type) = (None, None);
    unknown.clear();
    let of_recipients = recipients.iter_mut().map(|fields| recipient(fields, common_name));
    of_recipients.sum::<usize>()
        + of_envelope.set_form(dialect.into())
        + of_content.set_form(dialect.into())
}

fn recipient(fields: &mut PerRecipientReportFields, common_name: CommonName) -> usize {
    let PerRecipientReportFields {
        actual_recipient,
        number: _,
        indicators,
        last_trace,
        intended_recipient,
        supplementary_information: _,
        extensions,
        unknown,
    } = fields;
    let LastTrace { arrival_time: _, converted_eits, report, unknown: of_trace } = last_trace;
    outcome(report, actual_recipient);
    converted_eits.iter_mut().for_each(eits);
    of_trace.clear();
    set_reported_form(actual_recipient, common_name);
    intended_recipient.iter_mut().for_each(|name| set_reported_form(name, common_name));
    *indicators = recipient_flags(*indicators);
    unknown.clear();
    extensions.set_form(Dialect::RedBook1984(common_name).into())
}

/// A type of user that 1984 does not know is private in a private domain and else public.
fn outcome(report: &mut ReportType, recipient: &ORName) {
    match report {
        ReportType::Delivery { mts_user, .. } if ![PUBLIC, PRIVATE].contains(mts_user) => {
            *mts_user = if recipient.address.prmd.is_some() { PRIVATE } else { PUBLIC };
        }
        ReportType::Delivery { .. } => {}
        ReportType::NonDelivery { reason, diagnostic } => {
            if !REASONS.contains(&reason.0) {
                *reason = NonDeliveryReason::UNABLE_TO_TRANSFER;
            }
            *diagnostic = diagnostic.filter(|Diagnostic(code)| DIAGNOSTICS.contains(code));
        }
    }
}
