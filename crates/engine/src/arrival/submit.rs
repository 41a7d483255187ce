//! Submissions by users over P3 (X.411 14.2, 14.6.1).

use crate::arrival::critical::{Step, unsupported};
use crate::arrival::dedupe::REMEMBERED;
use crate::arrival::passed::{Level, passed_on};
use crate::journal::Digest;
use crate::onward::route::canonical;
use crate::onward::split::Origin;
use crate::outcome::{Seen, SubmitError, Submitted};
use crate::subject::Carried;
use crate::{Content, Engine};
use base::Utc;
use base::ber::Writer;
use p1::ContentLabels;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use p1::extension::Extensions;
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::names::{Attribute, MtsIdentifier, ORAddress, ORName};
use p1::p3::{
    MessageSubmissionEnvelope, PerRecipientSubmissionFields, ProbeSubmissionEnvelope,
    SubmissionResult,
};
use p1::time::Time;

impl Engine {
    /// Accepts a message from the user of this mailbox. `keys` are the keys to remember
    /// ([`crate::submission_key`]): a repetition is then answered with the same result.
    ///
    /// Unknown recipients and those without a route do not fail the submission: they are reported.
    /// Envelope members that X.411 does not define are not passed on, as their tags may have
    /// another meaning in a transfer envelope; nor are extensions that X.411 does not define for
    /// submission.
    ///
    /// # Errors
    ///
    /// The originator is another user, a recipient has an invalid O/R address, an extension
    /// critical for submission is not supported, or the user is not cleared for the security label. One such recipient fails the whole submission,
    /// and the error names those to be corrected (X.411 8.2.2.4).
    pub fn submit(
        &mut self,
        now: Utc,
        mailbox: &str,
        envelope: &MessageSubmissionEnvelope,
        content: &Content,
        keys: &[Digest],
    ) -> Result<Submitted, SubmitError> {
        check(mailbox, &envelope.originator, &envelope.recipients, &envelope.extensions)?;
        self.cleared
            .user(&envelope.originator.address, &envelope.extensions, &content.labels)
            .map_err(SubmitError::NotCleared)?;
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
            recipients: transfer_fields(Level::MessageRecipient, &envelope.recipients),
            extensions: passed_on(Level::Message, &envelope.extensions),
            trace: Vec::new(),
            unknown: Vec::new(),
        }));
        let mut notes = Vec::new();
        let mut accepted =
            self.distribute(now, carried, Some(content), Origin::Submission, None, &mut notes);
        let remember =
            |key: &Digest| Seen { key: *key, until: now + REMEMBERED, record: result.clone() };
        accepted.seen.extend(keys.iter().map(remember));
        Ok(Submitted { accepted, result, message: identifier.to_string(), notes })
    }

    /// Accepts a probe from the user of this mailbox.
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
        self.cleared
            .user(&envelope.originator.address, &envelope.extensions, &ContentLabels::default())
            .map_err(SubmitError::NotCleared)?;
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
            recipients: transfer_fields(Level::ProbeRecipient, &envelope.recipients),
            extensions: passed_on(Level::Probe, &envelope.extensions),
            trace: Vec::new(),
            unknown: Vec::new(),
        }));
        let mut notes = Vec::new();
        let accepted = self.distribute(now, carried, None, Origin::Submission, None, &mut notes);
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
    let improper = recipients.iter().map(|r| &r.recipient).filter(|r| !is_proper(&r.address));
    let improper: Vec<ORName> = improper.cloned().collect();
    if !improper.is_empty() {
        return Err(SubmitError::RecipientsImproper(improper));
    }
    let critical = std::iter::once(extensions)
        .chain(recipients.iter().map(|r| &r.extensions))
        .find_map(|e| unsupported(Step::Submission, e));
    critical.map_or(Ok(()), |name| Err(SubmitError::UnsupportedCriticalFunction(name)))
}

/// Whether this is formally an O/R address: country, ADMD (a single space is valid) and a further
/// attribute (X.402 18.5).
fn is_proper(address: &ORAddress) -> bool {
    let below = |(attribute, _): &(Attribute, String)| {
        !matches!(attribute, Attribute::Country | Attribute::Admd)
    };
    // Nearly every address has one of these, and comparing all attributes takes longer.
    let is_below = address.prmd.is_some() || address.organization.is_some();
    let is_below = || is_below || address.attributes().iter().any(below);
    address.country.is_some() && address.admd.is_some() && is_below()
}

fn transfer_fields(
    level: Level,
    recipients: &[PerRecipientSubmissionFields],
) -> Vec<PerRecipientFields> {
    let fields = |(number, r): (u32, &PerRecipientSubmissionFields)| {
        // The originating MTA requests at least a non-delivery report (X.411 12.2.1.1.1.2).
        let mta = match r.report_request {
            ReportRequest::Report => MtaReportRequest::Report,
            ReportRequest::None | ReportRequest::NonDelivery => MtaReportRequest::NonDelivery,
        };
        PerRecipientFields {
            recipient: r.recipient.clone(),
            number,
            indicators: PerRecipientIndicators::new(true, mta, r.report_request),
            explicit_conversion: r.explicit_conversion,
            extensions: passed_on(level, &r.extensions),
            unknown: Vec::new(),
        }
    };
    (1..).zip(recipients).map(fields).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{BodySource, Op, SpoolId};
    use crate::record::NextHop;
    use crate::testing::{
        BAKER, JONES, NOWHERE, SMITH, address, at, content, engine, message, name, private,
        received, submission, submit,
    };
    use base::ber::Element;
    use base::{PeerId, Precedence};
    use p1::extension::{Criticality, Dialect, ExtensionType, number};
    use p1::flags::Priority;
    use p1::grade::PriorityLevelQualifier;

    fn smith() -> String {
        canonical(&address(SMITH))
    }

    #[test]
    fn the_answer_names_the_identifier_that_is_transferred() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let result = SubmissionResult::read(&Element::parse(&done.result).unwrap()).unwrap();
        assert_eq!(result.time, Time::from(at(0)));
        assert_eq!(result.content_identifier.as_deref(), Some("ref 1"));
        let head = received(&alpha, &done.accepted.entries[0]);
        assert_eq!(message(&head).message_identifier, result.identifier);
        assert_eq!(done.message, result.identifier.to_string());
        let again = submit(&mut alpha, &submission(&[BAKER]));
        assert_ne!(again.message, done.message);
    }

    #[test]
    fn fields_and_extensions_go_into_the_transfer_envelope_untouched() {
        let mut alpha = engine();
        let mut envelope = submission(&[BAKER, JONES]);
        envelope.priority = Priority::Urgent;
        envelope.extensions = private(Criticality::default());
        let qualifier = PriorityLevelQualifier::High.extension(Dialect::Modern).unwrap();
        envelope.extensions.0.push(qualifier);
        envelope.recipients[1].report_request = ReportRequest::Report;
        let done = submit(&mut alpha, &envelope);
        let entry = &done.accepted.entries[0];
        assert_eq!(entry.record.next_hop, NextHop::Peer(PeerId(0)));
        assert_eq!((entry.precedence, entry.record.size), (Precedence::Override, 1000));
        let head = received(&alpha, entry);
        let sent = message(&head);
        let kinds: Vec<_> = sent.extensions.0.iter().map(|f| (&f.kind, &f.value)).collect();
        let given: Vec<_> = envelope.extensions.0.iter().map(|f| (&f.kind, &f.value)).collect();
        assert_eq!(kinds[..2], given[..]);
        assert_eq!(kinds.len(), 3, "and the internal trace");
        let recipients: Vec<_> = sent
            .recipients
            .iter()
            .map(|r| {
                let i = r.indicators;
                (r.number, i.responsible(), i.mta_report(), i.originator_report())
            })
            .collect();
        assert_eq!(
            recipients,
            [
                (1, true, MtaReportRequest::NonDelivery, ReportRequest::NonDelivery),
                (2, false, MtaReportRequest::Report, ReportRequest::Report),
            ]
        );
    }

    #[test]
    fn refusals_are_the_standard_s() {
        let mut alpha = engine();
        let mut other = submission(&[BAKER]);
        other.originator = name(JONES);
        let refused = alpha.submit(at(0), &smith(), &other, &content(1), &[]).unwrap_err();
        assert_eq!((refused.access_error().code(), &refused), (2, &SubmitError::OriginatorInvalid));
        let improper = submission(&["C=XX;S=Baker", "C=XX;ADMD="]);
        let refused = alpha.submit(at(0), &smith(), &improper, &content(1), &[]).unwrap_err();
        assert_eq!(refused.access_error().code(), 3);
        let SubmitError::RecipientsImproper(names) = refused else { panic!() };
        assert_eq!(
            names,
            improper.recipients.iter().map(|r| r.recipient.clone()).collect::<Vec<_>>()
        );
        // One invalid recipient is enough, and only that one is named.
        let mixed = submission(&[BAKER, "C=XX;S=Baker", JONES]);
        let refused = alpha.submit(at(0), &smith(), &mixed, &content(1), &[]).unwrap_err();
        let improper = vec![mixed.recipients[1].recipient.clone()];
        assert_eq!(refused, SubmitError::RecipientsImproper(improper));
        // An address without a route is still valid: it is reported.
        let done =
            alpha.submit(at(0), &smith(), &submission(&[NOWHERE]), &content(1), &[]).unwrap();
        assert_eq!(done.accepted.entries[0].record.kind(), crate::RecordKind::Report);
    }

    #[test]
    fn traces_a_user_makes_up_are_not_believed() {
        let mut alpha = engine();
        let mut envelope = submission(&[BAKER]);
        envelope.extensions = private(Criticality::default());
        envelope.extensions.0[0].kind = ExtensionType::Standard(number::INTERNAL_TRACE_INFORMATION);
        let head = received(&alpha, &submit(&mut alpha.clone(), &envelope).accepted.entries[0]);
        assert_eq!(crate::arrival::trace::internal(&message(&head).extensions).len(), 1);
        assert_eq!(submit(&mut alpha, &envelope).notes, []);
    }

    #[test]
    fn one_batch_holds_content_copies_and_keys() {
        let mut alpha = engine();
        let keys = [Digest([1; 32])];
        let envelope = submission(&[BAKER, JONES]);
        let done = alpha.submit(at(0), &smith(), &envelope, &content(5), &keys).unwrap();
        let source = BodySource::Spool(SpoolId(3));
        let ops = crate::batch(&done.accepted, source.clone());
        // Jones is local: his delivery is remembered beside the submission.
        let [
            Op::PutBody { id, source: from },
            first,
            second,
            Op::PutSeen { key: delivery, record: of, .. },
            Op::PutSeen { key, until, record, .. },
        ] = &ops[..]
        else {
            panic!("{ops:?}");
        };
        assert_eq!(crate::delivery_keys(&done.accepted.entries[1].record.head), [*delivery]);
        let head = &done.accepted.entries[1].record.head;
        assert_eq!(of[..], crate::onward::delivered::fingerprint_of(head, &[7; 32]).unwrap());
        assert_eq!((Some(*id), from), (done.accepted.body, &source));
        assert_eq!((*key, *until, record), (keys[0], at(0) + REMEMBERED, &done.result));
        for (op, entry) in [first, second].into_iter().zip(&done.accepted.entries) {
            let Op::PutEntry { precedence, id, queue, record } = op else { panic!("{op:?}") };
            assert_eq!((*precedence, *id), (entry.precedence, entry.id));
            assert_eq!(crate::Record::decode(record).unwrap().next_hop, entry.record.next_hop);
            assert_eq!(*queue, entry.record.next_hop.queue());
        }
    }
}
