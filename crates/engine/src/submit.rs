//! What users submit over P3 (X.411 14.2, 14.6.1).

use crate::critical::{Step, unsupported};
use crate::dedupe::REMEMBERED;
use crate::journal::Digest;
use crate::outcome::{Seen, SubmitError, Submitted};
use crate::route::canonical;
use crate::split::Origin;
use crate::subject::Carried;
use crate::{Content, Engine};
use base::Utc;
use base::ber::Writer;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use p1::extension::{ExtensionType, Extensions, number};
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::names::{Attribute, MtsIdentifier, ORAddress, ORName};
use p1::p3::{
    MessageSubmissionEnvelope, PerRecipientSubmissionFields, ProbeSubmissionEnvelope,
    SubmissionResult,
};
use p1::time::Time;

impl Engine {
    /// Takes a message from the user of this mailbox. `keys` are what it is to be remembered by
    /// ([`crate::submission_key`]): a repetition is then answered with the same result.
    ///
    /// Recipients that are unknown or have no route do not make the submission fail: they are
    /// reported. Members of the envelope that X.411 does not define are not passed on, for their
    /// tags may mean something else in a transfer envelope.
    ///
    /// # Errors
    /// The originator is another, no recipient is an O/R address, or an extension critical for
    /// submission is not understood.
    pub fn submit(
        &mut self,
        now: Utc,
        mailbox: &str,
        envelope: &MessageSubmissionEnvelope,
        content: &Content,
        keys: &[Digest],
    ) -> Result<Submitted, SubmitError> {
        check(mailbox, &envelope.originator, &envelope.recipients, &envelope.extensions)?;
        let identifier = self.ids.mts(&self.domain);
        let result = result(now, &identifier, envelope.content_identifier.as_ref());
        let carried = Carried::Message(Box::new(MessageTransferEnvelope {
            message_identifier: identifier.clone(),
            originator: envelope.originator.clone(),
            original_eits: envelope.original_eits.clone(),
            content_type: envelope.content_type.clone(),
            content_identifier: envelope.content_identifier.clone(),
            priority: envelope.priority,
            indicators: envelope.indicators,
            deferred_delivery_time: envelope.deferred_delivery_time.clone(),
            per_domain_bilateral: None,
            recipients: transfer_fields(&envelope.recipients),
            extensions: transfer_extensions(&envelope.extensions),
            trace: Vec::new(),
            unknown: Vec::new(),
        }));
        let mut notes = Vec::new();
        let mut accepted =
            self.distribute(now, carried, Some(content), Origin::Submission, &mut notes);
        let remember =
            |key: &Digest| Seen { key: *key, until: now + REMEMBERED, record: result.clone() };
        accepted.seen = keys.iter().map(remember).collect();
        Ok(Submitted { accepted, result, message: identifier.to_string(), notes })
    }

    /// Takes a probe from the user of this mailbox.
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn submit_probe(
        &mut self,
        now: Utc,
        mailbox: &str,
        envelope: &ProbeSubmissionEnvelope,
    ) -> Result<Submitted, SubmitError> {
        check(mailbox, &envelope.originator, &envelope.recipients, &envelope.extensions)?;
        let identifier = self.ids.mts(&self.domain);
        let result = result(now, &identifier, envelope.content_identifier.as_ref());
        let carried = Carried::Probe(Box::new(ProbeTransferEnvelope {
            probe_identifier: identifier.clone(),
            originator: envelope.originator.clone(),
            original_eits: envelope.original_eits.clone(),
            content_type: envelope.content_type.clone(),
            content_identifier: envelope.content_identifier.clone(),
            content_length: envelope.content_length,
            indicators: envelope.indicators,
            per_domain_bilateral: None,
            recipients: transfer_fields(&envelope.recipients),
            extensions: transfer_extensions(&envelope.extensions),
            trace: Vec::new(),
            unknown: Vec::new(),
        }));
        let mut notes = Vec::new();
        let accepted = self.distribute(now, carried, None, Origin::Submission, &mut notes);
        Ok(Submitted { accepted, result, message: identifier.to_string(), notes })
    }
}

fn check(
    mailbox: &str,
    originator: &ORName,
    recipients: &[PerRecipientSubmissionFields],
    extensions: &Extensions,
) -> Result<(), SubmitError> {
    if canonical(&originator.address) != mailbox {
        return Err(SubmitError::OriginatorInvalid);
    }
    if !recipients.iter().any(|r| is_proper(&r.recipient.address)) {
        let names = recipients.iter().map(|r| r.recipient.clone()).collect();
        return Err(SubmitError::RecipientsImproper(names));
    }
    let critical = std::iter::once(extensions)
        .chain(recipients.iter().map(|r| &r.extensions))
        .find_map(|e| unsupported(Step::Submission, e));
    critical.map_or(Ok(()), |name| Err(SubmitError::UnsupportedCriticalFunction(name)))
}

/// Whether this has the form of an O/R address at all: country, ADMD (a single space will do) and
/// something below (X.402 18.5).
fn is_proper(address: &ORAddress) -> bool {
    let below = |(attribute, _): &(Attribute, String)| {
        !matches!(attribute, Attribute::Country | Attribute::Admd)
    };
    address.country.is_some() && address.admd.is_some() && address.attributes().iter().any(below)
}

fn transfer_fields(recipients: &[PerRecipientSubmissionFields]) -> Vec<PerRecipientFields> {
    let fields = |(number, r): (u32, &PerRecipientSubmissionFields)| {
        // The least an originating MTA asks for is a non-delivery report (X.411 12.2.1.1.1.2).
        let mta = match r.report_request {
            ReportRequest::Report => MtaReportRequest::Report,
            ReportRequest::None | ReportRequest::NonDelivery => MtaReportRequest::NonDelivery,
        };
        PerRecipientFields {
            recipient: r.recipient.clone(),
            number,
            indicators: PerRecipientIndicators::new(true, mta, r.report_request),
            explicit_conversion: r.explicit_conversion,
            extensions: r.extensions.clone(),
            unknown: Vec::new(),
        }
    };
    (1..).zip(recipients).map(fields).collect()
}

/// All of the user's, but for traces, which only MTAs make.
fn transfer_extensions(extensions: &Extensions) -> Extensions {
    let traces = [number::TRACE_INFORMATION, number::INTERNAL_TRACE_INFORMATION];
    let is_trace = |kind: &ExtensionType| matches!(kind, ExtensionType::Standard(number) if traces.contains(number));
    Extensions(extensions.0.iter().filter(|f| !is_trace(&f.kind)).cloned().collect())
}

fn result(
    now: Utc,
    identifier: &MtsIdentifier,
    content_identifier: Option<&String>,
) -> bytes::Bytes {
    let result = SubmissionResult {
        identifier: identifier.clone(),
        time: Time::from(now),
        content_identifier: content_identifier.cloned(),
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    let mut w = Writer::new();
    result.write(&mut w);
    w.into_vec().into()
}
