//! Deliveries to users, and the reports on them (X.411 14.7).

use crate::Engine;
use crate::onward::split::Failure;
use crate::onward::transfer::Payload;
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::Record;
use crate::report::RecipientOutcome;
use crate::subject::{StoredContent, Subject};
use base::Utc;
use base::ber::Writer;
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::{
    MessageTransferEnvelope, PerRecipientFields, PerRecipientReportFields, ReportType,
};
use p1::extension::{Dialect, ExtensionField, ExtensionType, Extensions, number as n};
use p1::flags::PerMessageIndicators;
use p1::history::originally_intended;
use p1::names::ORName;
use p1::p3::{MessageDeliveryEnvelope, PerRecipientReportDelivery, ReportDelivery, operation};
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;

/// An operation to invoke on a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its local code: message-delivery or report-delivery.
    pub operation: i64,
    /// Its argument.
    pub payload: Payload,
}

/// The report reason for a delivery that the user answered with this error (X.411 8.3.2, local
/// codes of X.419); `None` if a later attempt may succeed.
///
/// The node gives the copy up with [`Engine::undeliverable`] and this reason, in the batch that
/// removes its entry, as the user would return the same error every time.
/// delivery-control-violated is temporary: a control holds until the user lifts it. Errors that
/// X.411 does not permit here are temporary too, as they indicate a fault of the user agent and
/// not of the message. Expiry ends both.
pub fn permanent(code: i64) -> Option<(NonDeliveryReason, Diagnostic)> {
    match code {
        // security-error. Its security-problem concerns us and the user; the originator gets the
        // diagnostic that every edition of X.411 has.
        12 => Some((
            NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON,
            Diagnostic::SECURE_MESSAGING_ERROR,
        )),
        // unsupported-critical-function.
        13 => {
            Some((NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::UNSUPPORTED_CRITICAL_FUNCTION))
        }
        _ => None,
    }
}

impl Engine {
    /// The delivery of a copy in a mailbox, at this time. `None` for a probe, which is answered on
    /// arrival and never delivered.
    pub fn delivery_argument(&self, now: Utc, record: &Record) -> Option<Delivery> {
        let (operation, head, content_length) = match &record.head {
            MtsApduHead::Message(e) => {
                let head = message(now, record, e).argument_head(record.size);
                (operation::MESSAGE_DELIVERY, head, record.size)
            }
            MtsApduHead::Report(r) => {
                let head = match record.body {
                    Some(_) => report(r).argument_head(record.size),
                    None => report_argument(r),
                };
                (operation::REPORT_DELIVERY, head, record.size)
            }
            MtsApduHead::Probe(_) => return None,
        };
        let payload = Payload { head: head.into(), content_length, ..Payload::default() };
        Some(Delivery { operation, payload })
    }

    /// A user accepted a message at `time`: makes the delivery reports requested.
    pub fn delivered(&mut self, now: Utc, time: Utc, record: &Record) -> Concluded {
        let report = ReportType::Delivery { time: Time::from(time), mts_user: 0 };
        self.conclude(now, record, |index| RecipientOutcome {
            index,
            report: report.clone(),
            text: None,
        })
    }

    /// Gives a copy up: each of its recipients is redirected if he can be ([`Engine::set_redirection`]
    /// has the rules), or there is a non-delivery report. A report causes no report.
    ///
    /// The node calls this when a copy has expired, when a peer refused it permanently, and when a
    /// user answered its delivery with an error that is [`permanent`].
    pub fn undeliverable(
        &mut self,
        now: Utc,
        record: &Record,
        reason: NonDeliveryReason,
        diagnostic: impl Into<Option<Diagnostic>>,
        text: &str,
    ) -> Concluded {
        // A report is tried again without the content that it returns.
        if let Some(without) = self.without_content(record, text) {
            return without;
        }
        let diagnostic = diagnostic.into();
        self.give_up(now, record, &Failure { reason, diagnostic, text: text.to_owned() })
    }

    /// Reports a copy, without any redirection.
    pub(crate) fn report_failure(
        &mut self,
        now: Utc,
        record: &Record,
        failure: &Failure,
    ) -> Concluded {
        self.conclude(now, record, |index| RecipientOutcome::failed(index, failure))
    }

    /// The store takes no record so long: reports each of its recipients, without any redirection.
    pub fn unstorable(&mut self, now: Utc, record: &Record, most: usize) -> Concluded {
        let is_expanded = match &record.head {
            MtsApduHead::Message(e) => e.extensions.standard(n::DL_EXPANSION_HISTORY).is_some(),
            _ => false,
        };
        let failure = Failure {
            reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
            diagnostic: Some(match is_expanded {
                true => Diagnostic::DL_EXPANSION_FAILURE,
                false => Diagnostic::TOO_MANY_RECIPIENTS,
            }),
            text: format!("its envelope is longer than the {most} octets that this MTA keeps"),
        };
        let mut concluded = self.report_failure(now, record, &failure);
        concluded.notes.push(Note::new(NoteKind::NonDelivery, failure.text));
        concluded
    }

    fn conclude(
        &mut self,
        now: Utc,
        record: &Record,
        outcome: impl Fn(usize) -> RecipientOutcome,
    ) -> Concluded {
        let subject = match &record.head {
            MtsApduHead::Message(e) => Subject::from(&**e),
            MtsApduHead::Probe(e) => Subject::from(&**e),
            MtsApduHead::Report(_) => return Concluded::default(),
        };
        let subject =
            subject.with_content(StoredContent::of_record(record), &record.content_labels);
        let mine =
            subject.recipients.iter().enumerate().filter(|(_, r)| r.indicators.responsible());
        let outcomes = mine.map(|(index, _)| outcome(index)).collect();
        let mut notes = Vec::new();
        let entries = self.reports(now, &subject, record.precedence, outcomes, &mut notes);
        Concluded { entries, notes, ..Concluded::default() }
    }
}

fn message(now: Utc, record: &Record, e: &MessageTransferEnvelope) -> MessageDeliveryEnvelope {
    let (mine, others): (Vec<_>, Vec<_>) =
        e.recipients.iter().partition(|r| r.indicators.responsible());
    let disclosed = e.indicators.contains(PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS);
    // As the originator named them (X.411 8.3.1.1.1).
    let intended = |r: &PerRecipientFields| originally_intended(&r.extensions);
    // Of one number are the members of one list, whom the originator did not specify.
    let is_member = |r: &PerRecipientFields| {
        e.extensions.standard(n::DL_EXPANSION_HISTORY).is_some()
            && mine.iter().any(|own| own.number == r.number)
    };
    let others = others.iter().filter(|r| disclosed && !is_member(r));
    let names = others.map(|r| intended(r).unwrap_or_else(|| r.recipient.clone()));
    let own = mine.first().map(|r| &r.extensions.0[..]).unwrap_or_default();
    let extensions = e.extensions.0.iter().chain(own).filter(|f| is_for_users(f)).cloned();
    let extensions = for_users(Extensions(extensions.collect()));
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
        other_recipients: names.collect(),
        this_recipient: mine.first().map_or_else(ORName::default, |r| r.recipient.clone()),
        intended_recipient: mine.first().and_then(|r| intended(r)),
        converted_eits: None,
        submission_time: submission_time(record, e),
        content_identifier: e.content_identifier.clone(),
        extensions,
        unknown: Vec::new(),
    }
}

/// In the dialect of P3, whatever dialect they arrived in.
fn for_users(mut extensions: Extensions) -> Extensions {
    extensions.set_form(Dialect::Modern.into());
    extensions
}

/// When the first domain accepted it, by its trace; our own time if the trace has none.
fn submission_time(record: &Record, e: &MessageTransferEnvelope) -> Time {
    e.trace
        .first()
        .map(|t| t.arrival_time.clone())
        .filter(|t| t.utc.is_some())
        .unwrap_or_else(|| Time::from(record.first_arrival))
}

/// Whether a delivery envelope has this extension. Requests to the MTS and information between
/// MTAs are excluded (X.411 Figure 2, MessageDeliveryExtensions).
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

/// The argument of the delivery of a report, without a content that is stored apart.
pub fn report_argument(r: &Report) -> Vec<u8> {
    let mut w = Writer::new();
    report(r).write(&mut w);
    w.into_vec()
}

/// What a user gets of the extensions of a report's content and of its envelope (X.411 8.3.1.2.1): the label of
/// what it returns too, and the lists by which it came.
fn of_both(r: &Report) -> Extensions {
    const OF_ENVELOPE: [i64; 3] =
        [n::MESSAGE_SECURITY_LABEL, n::ORIGINATOR_AND_DL_EXPANSION_HISTORY, n::REPORTING_DL_NAME];
    let mut extensions = r.content.extensions.clone();
    let of_envelope = OF_ENVELOPE.iter().filter_map(|kind| r.envelope.extensions.standard(*kind));
    extensions.0.extend(of_envelope.cloned());
    extensions
}

fn report(r: &Report) -> ReportDelivery {
    let recipient = |p: &PerRecipientReportFields| PerRecipientReportDelivery {
        actual_recipient: p.actual_recipient.clone(),
        report: p.last_trace.report.clone(),
        converted_eits: p.last_trace.converted_eits.clone(),
        intended_recipient: p.intended_recipient.clone(),
        supplementary_information: p.supplementary_information.clone(),
        extensions: for_users(p.extensions.clone()),
        unknown: Vec::new(),
    };
    ReportDelivery {
        subject_identifier: r.content.subject_identifier.clone(),
        content_identifier: r.content.content_identifier.clone(),
        content_type: r.content.content_type.clone(),
        original_eits: r.content.original_eits.clone(),
        extensions: for_users(of_both(r)),
        recipients: r.content.recipients.iter().map(recipient).collect(),
        returned_content: r.content.returned_content.clone(),
        unknown: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, JONES, NOBODY, argument_of, at, content, engine, engine_of, failures, name, private,
        received, report as report_of, submission, submit,
    };
    use base::ber::Element;
    use p1::extension::Criticality;
    use p1::p3::{AccessError, SecurityProblem};

    #[test]
    fn a_user_gets_what_the_originator_sent() {
        let mut alpha = engine();
        let mut submitted = submission(&[BAKER, JONES]);
        submitted.indicators = PerMessageIndicators::DISCLOSURE_OF_OTHER_RECIPIENTS;
        submitted.extensions = private(Criticality::default());
        submitted.recipients[0].extensions = private(Criticality::default());
        let asks = ExtensionType::Standard(n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT);
        submitted.recipients[0].extensions.0[0].kind = asks;
        let done = submit(&mut alpha, &submitted);
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 0)]);
        let taken = beta.accept(at(60), head, &content(1000), &[]);
        let record = Record::decode(&taken.accepted.entries[0].record.encode()).unwrap();
        let argument = argument_of(&beta.delivery_argument(at(61), &record).unwrap());
        assert_eq!(argument.identifier.to_string(), done.message);
        assert_eq!(argument.delivery_time, Time::from(at(61)));
        assert_eq!(argument.submission_time, Time::from(at(0)));
        assert_eq!(argument.this_recipient, name(BAKER));
        assert_eq!(argument.other_recipients, [name(JONES)]);
        assert_eq!(argument.originator, submitted.originator);
        assert_eq!(argument.content_identifier, submitted.content_identifier);
        let kinds: Vec<_> = argument.extensions.0.iter().map(|f| f.kind.clone()).collect();
        assert_eq!(kinds, [submitted.extensions.0[0].kind.clone()]);
    }

    #[test]
    fn other_recipients_are_shown_only_where_disclosed() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER, JONES]));
        let argument =
            argument_of(&alpha.delivery_argument(at(1), &done.accepted.entries[1].record).unwrap());
        assert_eq!((argument.this_recipient, argument.other_recipients), (name(JONES), vec![]));
    }

    #[test]
    fn a_report_is_delivered_as_a_report() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[NOBODY]));
        let entry = &done.accepted.entries[0];
        let delivery = alpha.delivery_argument(at(1), &entry.record).unwrap();
        assert_eq!(delivery.operation, operation::REPORT_DELIVERY);
        assert_eq!(delivery.payload.content_length, 0);
        let argument =
            ReportDelivery::read(&Element::parse(&delivery.payload.head).unwrap()).unwrap();
        assert_eq!(argument.subject_identifier.to_string(), done.message);
        assert_eq!(argument.recipients[0].actual_recipient, name(NOBODY));
        assert_eq!(
            argument.recipients[0].report,
            report_of(entry).content.recipients[0].last_trace.report
        );
    }

    #[test]
    fn a_report_states_the_list_that_passed_it_on() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[NOBODY]));
        let mut report = report_of(&done.accepted.entries[0]).clone();
        p1::history::set_reporting_dl(&mut report.envelope.extensions, &name(BAKER));
        let octets = report_argument(&report);
        let taken = ReportDelivery::read(&Element::parse(&octets).unwrap()).unwrap();
        assert!(taken.extensions.standard(n::REPORTING_DL_NAME).is_some(), "{taken:?}");
    }

    #[test]
    fn a_permanent_delivery_error_is_reported_and_a_temporary_one_waits() {
        let mut alpha = engine();
        let copy = submit(&mut alpha, &submission(&[JONES])).accepted.entries.remove(0);
        let mut reported = Vec::new();
        for code in 0..=20 {
            let Some((reason, diagnostic)) = permanent(code) else { continue };
            let done = alpha.undeliverable(at(1), &copy.record, reason, diagnostic, "refused");
            reported.push((code, failures(report_of(&done.entries[0]))));
        }
        let argument = |reason, diagnostic| vec![(1, Some((reason, Some(diagnostic))))];
        assert_eq!(reported, [(12, argument(8, 46)), (13, argument(1, 18))]);
        assert_eq!(AccessError::ControlViolated.code(), 1);
        assert_eq!(AccessError::UnsupportedCriticalFunction.code(), 13);
        let security = AccessError::Security(SecurityProblem::SECURITY_POLICY_VIOLATION);
        assert_eq!(security.code(), 12);
    }

    #[test]
    fn a_user_gets_all_extensions_in_the_dialect_of_p3() {
        let alpha = engine();
        let done = submit(&mut engine(), &submission(&[JONES]));
        let mut record = done.accepted.entries[0].record.clone();
        let MtsApduHead::Message(envelope) = &mut record.head else { panic!() };
        // message-security-label and a private extension, as a peer of 1988 sends them.
        for octets in [
            &[0x30, 9, 0xa0, 3, 2, 1, 20, 0xa2, 2, 0x31, 0][..],
            &[0x30, 6, 0xa0, 4, 6, 2, 0x51, 1],
        ] {
            let e = Element::parse(octets).unwrap();
            envelope.extensions.0.push(ExtensionField::read(&e).unwrap());
        }
        let delivery = alpha.delivery_argument(at(1), &record).unwrap();
        let has = |octets: &[u8]| delivery.payload.head.windows(octets.len()).any(|w| w == octets);
        assert!(has(&[0x30, 7, 0x80, 1, 20, 0xa2, 2, 0x31, 0]));
        assert!(has(&[0x30, 4, 0x83, 2, 0x51, 1]));
    }
}
