//! What goes to a user, and what is reported of it (X.411 14.7).

use crate::Engine;
use crate::outcome::Concluded;
use crate::record::Record;
use crate::report::Outcome;
use crate::split::Failure;
use crate::subject::{Subject, first_arrival};
use crate::transfer::Payload;
use base::Utc;
use base::ber::Writer;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::{MessageTransferEnvelope, PerRecipientReportFields, ReportType};
use p1::extension::{ExtensionField, ExtensionType, Extensions, number as n};
use p1::flags::PerMessageIndicators;
use p1::names::ORName;
use p1::p3::{MessageDeliveryEnvelope, PerRecipientReportDelivery, ReportDelivery, operation};
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;

/// An operation to be invoked on a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its local code: message-delivery or report-delivery.
    pub operation: i64,
    /// Its argument.
    pub payload: Payload,
}

impl Engine {
    /// The delivery of a copy in a mailbox, at this time.
    pub fn delivery_argument(&self, now: Utc, record: &Record) -> Delivery {
        match &record.head {
            MtsApduHead::Message(envelope) => Delivery {
                operation: operation::MESSAGE_DELIVERY,
                payload: Payload {
                    head: message(now, record, envelope).argument_head(record.size).into(),
                    content_length: record.size,
                    tail: Bytes::new(),
                },
            },
            MtsApduHead::Report(r) => report_delivery(&report(r)),
            // Probes are answered, never queued for a mailbox; a report of nothing stands in.
            MtsApduHead::Probe(_) => {
                Delivery { operation: operation::REPORT_DELIVERY, payload: Payload::default() }
            }
        }
    }

    /// A user took a message at `time`: delivery reports, where they were asked for.
    pub fn delivered(&mut self, now: Utc, time: Utc, record: &Record) -> Concluded {
        let report = ReportType::Delivery { time: Time::from(time), mts_user: 0 };
        self.conclude(now, record, |index| Outcome { index, report: report.clone(), text: None })
    }

    /// A copy is given up: non-delivery reports of all its recipients. Of a report nothing is told.
    pub fn undeliverable(
        &mut self,
        now: Utc,
        record: &Record,
        reason: NonDeliveryReason,
        diagnostic: Diagnostic,
        text: &str,
    ) -> Concluded {
        let failure = Failure { reason, diagnostic, text: text.to_owned() };
        self.conclude(now, record, |index| Outcome::failed(index, &failure))
    }

    fn conclude(
        &mut self,
        now: Utc,
        record: &Record,
        outcome: impl Fn(usize) -> Outcome,
    ) -> Concluded {
        let subject = match &record.head {
            MtsApduHead::Message(e) => Subject::from(&**e),
            MtsApduHead::Probe(e) => Subject::from(&**e),
            MtsApduHead::Report(_) => return Concluded::default(),
        };
        let mine =
            subject.recipients.iter().enumerate().filter(|(_, r)| r.indicators.responsible());
        let outcomes = mine.map(|(index, _)| outcome(index)).collect();
        let mut notes = Vec::new();
        let entry = self.report(now, &subject, record.precedence, outcomes, &mut notes);
        Concluded { entries: entry.into_iter().collect(), notes }
    }
}

fn message(now: Utc, record: &Record, e: &MessageTransferEnvelope) -> MessageDeliveryEnvelope {
    let (mine, others): (Vec<_>, Vec<_>) =
        e.recipients.iter().partition(|r| r.indicators.responsible());
    let disclosed = e.indicators.contains(PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS);
    let names = others.iter().map(|r| r.recipient.clone());
    let own = mine.first().map(|r| &r.extensions.0[..]).unwrap_or_default();
    let extensions = e.extensions.0.iter().chain(own).filter(|f| is_for_users(f)).cloned();
    MessageDeliveryEnvelope {
        identifier: e.message_identifier.clone(),
        delivery_time: Time::from(now),
        content_type: e.content_type.clone(),
        originator: e.originator.clone(),
        original_eits: e.original_eits.clone(),
        priority: e.priority,
        implicit_conversion_prohibited: e
            .indicators
            .contains(PerMessageIndicators::IMPLICIT_CONVERSION_PROHIBITED),
        other_recipients: if disclosed { names.collect() } else { Vec::new() },
        this_recipient: mine.first().map_or_else(ORName::default, |r| r.recipient.clone()),
        intended_recipient: None,
        converted_eits: None,
        submission_time: submission_time(record, e),
        content_identifier: e.content_identifier.clone(),
        extensions: Extensions(extensions.collect()),
        unknown: Vec::new(),
    }
}

/// When the first domain took it, as its trace says; our own time where it says nothing.
fn submission_time(record: &Record, e: &MessageTransferEnvelope) -> Time {
    e.trace
        .first()
        .map(|t| t.arrival_time.clone())
        .filter(|t| t.utc.is_some())
        .unwrap_or_else(|| Time::from(first_arrival(&e.trace, record.accepted)))
}

/// Whether a delivery envelope has this extension: not those that ask the MTS to do something, nor
/// what MTAs tell each other (X.411 Figure 2, MessageDeliveryExtensions).
fn is_for_users(field: &ExtensionField) -> bool {
    let ExtensionType::Standard(number) = &field.kind else { return true };
    !matches!(
        *number,
        n::RECIPIENT_REASSIGNMENT_PROHIBITED
            | n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT
            | n::DL_EXPANSION_PROHIBITED
            | n::LATEST_DELIVERY_TIME
            | n::PHYSICAL_DELIVERY_REPORT_REQUEST
            | n::PROOF_OF_SUBMISSION_REQUEST
            | n::CONTENT_CORRELATOR
            | n::FORWARDING_REQUEST
            | n::TRACE_INFORMATION
            | n::INTERNAL_TRACE_INFORMATION
            | n::DL_EXEMPTED_RECIPIENTS
    )
}

fn report(r: &Report) -> ReportDelivery {
    let recipient = |p: &PerRecipientReportFields| PerRecipientReportDelivery {
        actual_recipient: p.actual_recipient.clone(),
        report: p.last_trace.report.clone(),
        converted_eits: p.last_trace.converted_eits.clone(),
        intended_recipient: p.intended_recipient.clone(),
        supplementary_information: p.supplementary_information.clone(),
        extensions: p.extensions.clone(),
        unknown: Vec::new(),
    };
    ReportDelivery {
        subject_identifier: r.content.subject_identifier.clone(),
        content_identifier: r.content.content_identifier.clone(),
        content_type: r.content.content_type.clone(),
        original_eits: r.content.original_eits.clone(),
        extensions: r.content.extensions.clone(),
        recipients: r.content.recipients.iter().map(recipient).collect(),
        returned_content: r.content.returned_content.clone(),
        unknown: Vec::new(),
    }
}

fn report_delivery(argument: &ReportDelivery) -> Delivery {
    let mut w = Writer::new();
    argument.write(&mut w);
    Delivery {
        operation: operation::REPORT_DELIVERY,
        payload: Payload { head: w.into_vec().into(), ..Payload::default() },
    }
}
