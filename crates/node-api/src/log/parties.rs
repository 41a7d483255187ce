//! From whom and to whom a message is, for the log.

use crate::api::event::{MAX_RECIPIENTS, Parties};
use p1::apdu::MtsApduHead;
use p1::envelope::{PerRecipientReportFields, ReportTransferContent, ReportType};
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, ProbeSubmissionEnvelope};
use std::fmt::Write as _;

fn parties<'a>(
    originator: Option<&ORName>,
    recipients: impl ExactSizeIterator<Item = &'a ORName>,
    content_id: Option<&String>,
) -> Box<Parties> {
    Box::new(Parties {
        originator: originator.map(|name| engine::canonical(&name.address)),
        count: recipients.len(),
        recipients: recipients
            .take(MAX_RECIPIENTS)
            .map(|name| engine::canonical(&name.address))
            .collect(),
        content_id: content_id.cloned(),
        copies: None,
    })
}

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// MTS identifier of its subject.
    pub subject: String,
    /// What it reports of each recipient, in words.
    pub outcome: String,
}

/// Most recipients of a report that are named; the others are counted.
const MAX_NAMED: usize = 3;

impl Reported {
    fn from_content(content: &ReportTransferContent) -> Reported {
        let one = |fields: &PerRecipientReportFields| {
            let name = engine::canonical(&fields.actual_recipient.address);
            match &fields.last_trace.report {
                ReportType::Delivery { .. } => format!("{name} delivered"),
                ReportType::NonDelivery { reason, diagnostic } => {
                    let diagnostic = diagnostic.map(|code| format!(", {code}")).unwrap_or_default();
                    format!("{name} not delivered ({reason}{diagnostic})")
                }
            }
        };
        // A failure matters more.
        let failed = |fields: &&PerRecipientReportFields| {
            matches!(fields.last_trace.report, ReportType::NonDelivery { .. })
        };
        let (failed, others): (Vec<_>, Vec<_>) = content.recipients.iter().partition(failed);
        let named = failed.into_iter().chain(others).take(MAX_NAMED).map(one);
        let mut outcome = named.collect::<Vec<_>>().join("; ");
        let more = content.recipients.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            let _ = write!(outcome, "; and {more} more");
        }
        Reported { subject: content.subject_identifier.to_string(), outcome }
    }
}

/// Those of what came over P1, and what a report is about.
pub fn of_transfer(head: &MtsApduHead) -> (Box<Parties>, Option<Reported>) {
    match head {
        MtsApduHead::Message(e) => {
            let recipients = e.recipients.iter().map(|r| &r.recipient);
            (parties(Some(&e.originator), recipients, e.content_identifier.as_ref()), None)
        }
        MtsApduHead::Probe(e) => {
            let recipients = e.recipients.iter().map(|r| &r.recipient);
            (parties(Some(&e.originator), recipients, e.content_identifier.as_ref()), None)
        }
        MtsApduHead::Report(report) => {
            let to = std::iter::once(&report.envelope.destination);
            let its = parties(None, to, report.content.content_identifier.as_ref());
            (its, Some(Reported::from_content(&report.content)))
        }
    }
}

/// Those of a submitted message.
pub fn of_submission(e: &MessageSubmissionEnvelope) -> Box<Parties> {
    let recipients = e.recipients.iter().map(|r| &r.recipient);
    parties(Some(&e.originator), recipients, e.content_identifier.as_ref())
}

/// Those of a submitted probe.
pub fn of_probe(e: &ProbeSubmissionEnvelope) -> Box<Parties> {
    let recipients = e.recipients.iter().map(|r| &r.recipient);
    parties(Some(&e.originator), recipients, e.content_identifier.as_ref())
}
