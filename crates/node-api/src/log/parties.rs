//! From whom and to whom a message is, for the log.

use crate::api::event::{MAX_RECIPIENTS, Parties};
use p1::apdu::MtsApduHead;
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, ProbeSubmissionEnvelope};

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

/// Those of what came over P1, and the subject of a report.
pub fn of_transfer(head: &MtsApduHead) -> (Box<Parties>, Option<String>) {
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
            (its, Some(report.content.subject_identifier.to_string()))
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
