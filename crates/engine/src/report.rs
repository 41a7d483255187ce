//! Delivery and non-delivery reports on messages and probes (X.411 14.4).
//!
//! A report is made for a recipient if the originating MTA or the originator requested one of that
//! kind; the originating MTA always requests non-delivery reports. When a report reaches its user,
//! recipients the user did not request are removed (X.411 8.2.1.1.1.22). A report causes no
//! report: one that cannot be forwarded is discarded.

use crate::Engine;
use crate::onward::split::Failure;
use crate::outcome::{NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::subject::{StoredContent, Subject};
use base::{Precedence, Utc};
use p1::ContentLabels;
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::{
    LastTrace, PerRecipientFields, PerRecipientReportFields, ReportTransferContent,
    ReportTransferEnvelope, ReportType,
};
use p1::extension::{ExtensionField, ExtensionType, Extensions, number};
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::history::{
    Expansion, dl_expansion_history, originally_intended, redirection_history,
    set_originator_and_dl_expansions,
};
use p1::names::ORName;
use p1::time::Time;

/// Longest supplementary-information (ub-supplementary-info-length).
const MAX_SUPPLEMENTARY: usize = 256;

/// Most recipients in one report. A message may have tens of thousands; its failures are then
/// reported in several reports, each of which takes a few milliseconds to make, store, send and
/// read.
const MAX_REPORTED: usize = 1_000;

/// The outcome for one recipient.
#[derive(Clone, Debug)]
pub(crate) struct RecipientOutcome {
    /// Index among the subject's recipients.
    pub index: usize,
    pub report: ReportType,
    /// supplementary-information.
    pub text: Option<String>,
}

impl RecipientOutcome {
    pub(crate) fn failed(index: usize, failure: &Failure) -> RecipientOutcome {
        let (reason, diagnostic) = (failure.reason, failure.diagnostic);
        let report = ReportType::NonDelivery { reason, diagnostic };
        RecipientOutcome { index, report, text: Some(printable(&failure.text)) }
    }
}

/// Whether a report of this kind is requested.
fn to_be_made(asked: PerRecipientIndicators, report: &ReportType) -> bool {
    match report {
        // A request for no report at all is invalid and read as non-delivery-report.
        ReportType::NonDelivery { .. } => true,
        ReportType::Delivery { .. } => {
            matches!(asked.mta_report(), MtaReportRequest::Report | MtaReportRequest::Audited)
                || asked.originator_report() == ReportRequest::Report
        }
    }
}

/// Whether the originator requested it.
fn for_user(asked: PerRecipientIndicators, report: &ReportType) -> bool {
    match report {
        ReportType::NonDelivery { .. } => asked.originator_report() != ReportRequest::None,
        ReportType::Delivery { .. } => asked.originator_report() == ReportRequest::Report,
    }
}

/// The text as a PrintableString, cut at the bound.
fn printable(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    let fit = |c: char| if allowed(c) { c } else { '-' };
    text.chars().take(MAX_SUPPLEMENTARY).map(fit).collect()
}

/// The destination of reports: the list that expanded last, else the originator.
fn destination(subject: &Subject<'_>) -> ORName {
    expanded_last(subject).unwrap_or_else(|| subject.originator.clone())
}

/// The list that expanded the subject last.
pub(crate) fn expanded_last(subject: &Subject<'_>) -> Option<ORName> {
    let last = dl_expansion_history(subject.extensions).ok().and_then(|mut all| all.pop());
    last.map(|list| list.name)
}

/// The extensions of a report's envelope: the originator and the lists that were expanded, where there
/// are any, so that each list finds the one before it.
fn history(subject: &Subject<'_>) -> Extensions {
    let mut extensions = Extensions::default();
    let lists = dl_expansion_history(subject.extensions).unwrap_or_default();
    if !lists.is_empty() {
        let submitted = subject.trace.first().map(|t| t.arrival_time.clone());
        let time = submitted.or_else(|| lists.first().map(|list| list.time.clone()));
        let origin = time.map(|time| Expansion { name: subject.originator.clone(), time });
        let all: Vec<Expansion> = origin.into_iter().chain(lists).collect();
        set_originator_and_dl_expansions(&mut extensions, &all);
    }
    extensions
}

/// The redirection-history of a recipient, which his fields in a report have too; nothing if it
/// cannot be read.
fn redirections(of_recipient: &Extensions) -> Vec<ExtensionField> {
    let field = of_recipient.standard(number::REDIRECTION_HISTORY);
    let readable =
        field.filter(|_| redirection_history(of_recipient).is_ok_and(|all| !all.is_empty()));
    readable.cloned().into_iter().collect()
}

impl Engine {
    /// Makes and routes the reports of these outcomes; none if none is requested or their
    /// destination has no route.
    pub(crate) fn reports(
        &mut self,
        now: Utc,
        subject: &Subject<'_>,
        precedence: Precedence,
        mut outcomes: Vec<RecipientOutcome>,
        notes: &mut Vec<Note>,
    ) -> Vec<NewEntry> {
        let asked = |o: &RecipientOutcome| {
            subject.recipients.get(o.index).is_some_and(|r| to_be_made(r.indicators, &o.report))
        };
        outcomes.retain(asked);
        let mut returned = self.to_be_returned(subject, &outcomes, notes);
        // The first of several has the failures, and so the content.
        if returned.is_some() {
            outcomes.sort_by_key(|o| matches!(o.report, ReportType::Delivery { .. }));
        }
        let mut entries = Vec::new();
        while !outcomes.is_empty() {
            let rest = outcomes.split_off(outcomes.len().min(MAX_REPORTED));
            let those = std::mem::replace(&mut outcomes, rest);
            let content = returned.take();
            entries.extend(self.report(now, subject, precedence, (those, content), notes));
        }
        entries
    }

    fn report(
        &mut self,
        now: Utc,
        subject: &Subject<'_>,
        precedence: Precedence,
        (outcomes, returned): (Vec<RecipientOutcome>, Option<StoredContent>),
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let content = self.report_content(now, subject, outcomes);
        let destination = destination(subject);
        let none = ContentLabels::default();
        let labels = (subject.extensions, subject.content_labels.unwrap_or(&none));
        let returned = returned.filter(|_| self.returns_to_cleared(labels, &destination, notes));
        let mut extensions = history(subject);
        if returned.is_some() {
            // What it returns is as secret as it was.
            let label = ExtensionType::Standard(number::MESSAGE_SECURITY_LABEL);
            let is_label = |field: &&ExtensionField| field.kind == label;
            extensions.0.extend(subject.extensions.0.iter().filter(is_label).cloned());
        }
        let envelope = ReportTransferEnvelope {
            report_identifier: self.ids.mts(&self.domain),
            destination,
            trace: Vec::new(),
            extensions,
            unknown: Vec::new(),
        };
        let count = content.recipients.len();
        let text = format!(
            "{} for {count} {} of {}",
            envelope.report_identifier,
            if count == 1 { "recipient" } else { "recipients" },
            subject.identifier
        );
        let report = Some(envelope.report_identifier.to_string());
        notes.push(Note { report, ..Note::new(NoteKind::ReportMade, text) });
        let level = self.policy.own_report(precedence);
        self.forward_report(now, (Report { envelope, content }, returned), level, notes)
    }

    fn report_content(
        &self,
        now: Utc,
        subject: &Subject<'_>,
        outcomes: Vec<RecipientOutcome>,
    ) -> ReportTransferContent {
        let entered = subject.trace.iter().rfind(|t| t.domain.same_as(&self.domain));
        let arrival_time = entered.map_or_else(|| Time::from(now), |t| t.arrival_time.clone());
        let recipient = |o: RecipientOutcome| -> Option<PerRecipientReportFields> {
            let fields: &PerRecipientFields = subject.recipients.get(o.index)?;
            Some(PerRecipientReportFields {
                actual_recipient: fields.recipient.clone(),
                number: fields.number,
                indicators: fields.indicators,
                last_trace: LastTrace {
                    arrival_time: arrival_time.clone(),
                    converted_eits: None,
                    report: o.report,
                    unknown: Vec::new(),
                },
                intended_recipient: originally_intended(&fields.extensions),
                supplementary_information: o.text,
                extensions: Extensions(redirections(&fields.extensions)),
                unknown: Vec::new(),
            })
        };
        let recipients: Vec<_> = outcomes.into_iter().filter_map(recipient).collect();
        let audited =
            recipients.iter().any(|r| r.indicators.mta_report() == MtaReportRequest::Audited);
        // The correlator identifies the message to its originator.
        let correlator = subject.extensions.standard(number::CONTENT_CORRELATOR);
        ReportTransferContent {
            subject_identifier: subject.identifier.clone(),
            subject_trace: if audited { subject.trace.to_vec() } else { Vec::new() },
            original_eits: subject.original_eits.cloned(),
            content_type: Some(subject.content_type.clone()),
            content_identifier: subject.content_identifier.cloned(),
            returned_content: None,
            additional_information: None,
            extensions: Extensions(correlator.cloned().into_iter().collect()),
            recipients,
            unknown: Vec::new(),
        }
    }

    /// Adds our trace to a report and queues it for its next hop, if it has one, with the content that it returns.
    pub(crate) fn forward_report(
        &mut self,
        now: Utc,
        (mut report, returned): (Report, Option<StoredContent>),
        precedence: Precedence,
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let envelope = &mut report.envelope;
        if self.loops(&envelope.trace, &envelope.extensions) {
            notes.push(discarded(&report, "loop detected"));
            return None;
        }
        let first_arrival = self.first_arrival(now, &envelope.trace, &envelope.extensions);
        notes.extend(first_arrival.doubt.map(|doubt| {
            let detail = format!("report {}: {doubt}", envelope.report_identifier);
            Note::new(NoteKind::TraceDoubted, detail)
        }));
        self.add_trace(now, None, &mut envelope.trace, &mut envelope.extensions);
        self.queue_report((now, first_arrival.at), (report, returned), precedence, notes)
    }

    /// Queues a report that has our trace for its next hop, if it has one. The times are now and
    /// that of its first arrival.
    pub(crate) fn queue_report(
        &mut self,
        (now, first_arrival): (Utc, Utc),
        (mut report, returned): (Report, Option<StoredContent>),
        precedence: Precedence,
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let next_hop = match self.resolve(&report.envelope.destination.address) {
            Ok(hop) => hop,
            Err(failure) => {
                notes.push(discarded(&report, &failure.text));
                return None;
            }
        };
        if let Some(lost) = self.destination_lost(&report.envelope.destination, &next_hop) {
            notes.push(discarded(&report, &lost));
            return None;
        }
        // What a list does with it is its policy's.
        if let NextHop::Mailbox(name) = &next_hop
            && !self.is_list(name)
        {
            let recipients = &mut report.content.recipients;
            recipients.retain(|r| for_user(r.indicators, &r.last_trace.report));
            if recipients.is_empty() {
                notes.push(discarded(&report, "its user did not ask for it"));
                return None;
            }
        }
        let returned =
            returned.filter(|content| self.goes_with(&report, *content, &next_hop, notes));
        let record = Record {
            next_hop,
            message: report.envelope.report_identifier.to_string(),
            precedence,
            accepted: now,
            first_arrival,
            not_before: None,
            latest: None,
            size: returned.map_or(0, |content| content.size),
            body: returned.map(|content| content.body),
            digest: returned.and_then(|content| content.digest),
            // A report is never refused for a label.
            content_labels: ContentLabels::default(),
            head: MtsApduHead::Report(Box::new(report)),
        };
        Some(NewEntry { id: self.ids.entry(), precedence, record })
    }
}

/// The note for a report that is discarded.
pub(crate) fn discarded(report: &Report, why: &str) -> Note {
    let detail = format!("report {}: {why}", report.envelope.report_identifier);
    Note::new(NoteKind::ReportDiscarded, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use crate::testing::{
        BAKER, Codes, JONES, NOBODY, NOWHERE, SMITH, address, at, content, engine, engine_of,
        failures, message, received, report, submission, submit,
    };
    use base::PeerId;
    use p1::p3::ProbeSubmissionEnvelope;

    /// unable-to-transfer, unrecognised-OR-name.
    const UNKNOWN: Codes = Some((1, Some(0)));

    #[test]
    fn a_local_submission_to_nobody_is_accepted_and_reported() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[NOBODY, NOWHERE]));
        assert_eq!(done.accepted.body, None);
        let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
        let smith = crate::canonical(&address(SMITH));
        assert_eq!(entry.record.next_hop, NextHop::Mailbox(smith));
        let made = report(entry);
        assert_eq!(failures(made), [(1, UNKNOWN), (2, UNKNOWN)]);
        assert_eq!(made.content.subject_identifier.to_string(), done.message);
        assert_ne!(made.envelope.report_identifier, made.content.subject_identifier);
        assert_eq!(made.content.content_identifier.as_deref(), Some("ref 1"));
        let texts: Vec<_> =
            made.content.recipients.iter().map(|r| r.supplementary_information.clone()).collect();
        let expected = ["no such recipient here", "no route to this address"];
        assert_eq!(texts, expected.map(|t| Some(t.to_owned())));
        let arrival = &made.content.recipients[0].last_trace.arrival_time;
        assert_eq!(*arrival, Time::from(at(0)));
    }

    #[test]
    fn what_failed_for_thousands_is_reported_in_several() {
        let mut alpha = engine();
        let mut envelope = submission(&[NOBODY]);
        let one = envelope.recipients.remove(0);
        envelope.recipients = vec![one; 2 * MAX_REPORTED + 1];
        let done = submit(&mut alpha, &envelope);
        let reports: Vec<&Report> = done.accepted.entries.iter().map(report).collect();
        let lengths: Vec<usize> = reports.iter().map(|r| r.content.recipients.len()).collect();
        assert_eq!(lengths, [MAX_REPORTED, MAX_REPORTED, 1]);
        let numbers = reports.iter().flat_map(|r| r.content.recipients.iter().map(|r| r.number));
        assert!(numbers.eq(1..=2 * MAX_REPORTED as u32 + 1), "each once");
        let mut identifiers: Vec<_> =
            reports.iter().map(|r| r.envelope.report_identifier.to_string()).collect();
        identifiers.dedup();
        assert_eq!(identifiers.len(), 3);
        assert!(reports.iter().all(|r| r.content.subject_identifier.to_string() == done.message));
    }

    #[test]
    fn a_remote_non_delivery_finds_its_way_home() {
        let (mut alpha, mut beta) =
            (engine(), engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]));
        let mut envelope = submission(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Unknown"]);
        envelope.recipients[0].report_request = ReportRequest::None;
        let done = submit(&mut alpha, &envelope);
        let head = received(&alpha, &done.accepted.entries[0]);
        let there = beta.accept(at(5), head, &content(1000), &[]);
        let kinds: Vec<_> = there.accepted.entries.iter().map(|e| e.record.kind()).collect();
        assert_eq!(kinds, [RecordKind::Message, RecordKind::Report]);
        let sent = &there.accepted.entries[1];
        assert_eq!(sent.record.next_hop, NextHop::Peer(PeerId(3)));
        assert_eq!(failures(report(sent)), [(2, UNKNOWN)]);
        assert_eq!(report(sent).envelope.trace.len(), 1);
        // The subject's level is Priority, the lowest for a report.
        assert_eq!(sent.precedence, Precedence::Priority);
        let home = alpha.accept(at(6), received(&beta, sent), &content(0), &[]);
        let [entry] = &home.accepted.entries[..] else { panic!("{home:?}") };
        assert_eq!(entry.record.next_hop, NextHop::Mailbox(crate::canonical(&address(SMITH))));
        assert_eq!(report(entry).envelope.trace.len(), 2);
        assert_eq!(entry.precedence, Precedence::Immediate);
    }

    #[test]
    fn the_user_gets_only_the_requested_reports() {
        for (request, non_delivery, delivery) in [
            (ReportRequest::None, 0, 0),
            (ReportRequest::NonDelivery, 1, 0),
            (ReportRequest::Report, 1, 1),
        ] {
            let mut alpha = engine();
            let mut envelope = submission(&[NOBODY, JONES]);
            envelope.recipients.iter_mut().for_each(|r| r.report_request = request);
            let done = submit(&mut alpha, &envelope);
            let (reports, copies): (Vec<_>, Vec<_>) =
                done.accepted.entries.iter().partition(|e| e.record.kind() == RecordKind::Report);
            assert_eq!(reports.len(), non_delivery, "{request:?}");
            let after = alpha.delivered(at(9), at(8), &copies[0].record);
            assert_eq!(after.entries.len(), delivery, "{request:?}");
            for entry in after.entries {
                let made = &report(&entry).content.recipients;
                let time = Time::from(at(8));
                let expected = ReportType::Delivery { time, mts_user: 0 };
                assert_eq!((made.len(), &made[0].last_trace.report), (1, &expected));
                assert_eq!(made[0].number, 2);
            }
        }
    }

    #[test]
    fn reports_cause_no_reports() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[NOBODY]));
        let record = &done.accepted.entries[0].record;
        let (reason, diagnostic) =
            (p1::NonDeliveryReason::TRANSFER_FAILURE, p1::Diagnostic::MAXIMUM_TIME_EXPIRED);
        let after = alpha.undeliverable(at(9), record, reason, diagnostic, "too late");
        assert_eq!(after, crate::Concluded::default());
        // A report without a route is discarded, with a note.
        let mut lost = report(&done.accepted.entries[0]).clone();
        lost.envelope.destination = crate::testing::name(NOWHERE);
        let mut beta = engine_of("beta", "mta2", &[], &[]);
        let head = MtsApduHead::Report(Box::new(lost));
        let taken = beta.accept(at(9), head, &content(0), &[]);
        assert_eq!(taken.accepted.entries, []);
        assert_eq!(taken.notes[0].kind, NoteKind::ReportDiscarded);
    }

    #[test]
    fn giving_up_reports_the_copy_s_recipients_only() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[JONES, BAKER]));
        let copy =
            done.accepted.entries.iter().find(|e| e.record.next_hop == NextHop::Peer(PeerId(0)));
        let (reason, diagnostic) =
            (p1::NonDeliveryReason::TRANSFER_FAILURE, p1::Diagnostic::MAXIMUM_TIME_EXPIRED);
        let record = &copy.unwrap().record;
        let after = alpha.undeliverable(at(9), record, reason, diagnostic, "36 h §");
        assert_eq!(failures(report(&after.entries[0])), [(2, Some((0, Some(5))))]);
        let text =
            report(&after.entries[0]).content.recipients[0].supplementary_information.clone();
        assert_eq!(text.as_deref(), Some("36 h -"));
    }

    #[test]
    fn a_list_gets_the_reports_of_its_members() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut envelope = message(&head).clone();
        let list = crate::testing::name("C=XX;ADMD=;PRMD=gamma;CN=List");
        let expansion = Expansion { name: list.clone(), time: Time::from(at(0)) };
        p1::history::add_dl_expansion(&mut envelope.extensions, expansion).unwrap();
        assert_eq!(destination(&Subject::from(&envelope)), list);
        envelope.extensions = Extensions::default();
        assert_eq!(destination(&Subject::from(&envelope)), crate::testing::name(SMITH));
    }

    #[test]
    fn a_probe_is_answered_where_it_would_be_delivered() {
        let (mut alpha, mut beta) =
            (engine(), engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]));
        let like = submission(&[BAKER, NOBODY, JONES]);
        let mut probe = ProbeSubmissionEnvelope {
            originator: like.originator,
            original_eits: None,
            content_type: like.content_type,
            content_identifier: like.content_identifier,
            content_length: Some(1_000_000),
            indicators: like.indicators,
            recipients: like.recipients,
            extensions: Extensions::default(),
            unknown: Vec::new(),
        };
        probe.recipients.iter_mut().for_each(|r| r.report_request = ReportRequest::Report);
        let smith = crate::canonical(&address(SMITH));
        let mut strict = alpha.clone();
        strict.accepted_max = 999_999;
        let refused = strict.submit_probe(at(0), &smith, &probe).unwrap();
        let [entry] = &refused.accepted.entries[..] else { panic!("{refused:?}") };
        // unable-to-transfer, content-too-long; nobody is called that either.
        let long = Some((1, Some(7)));
        assert_eq!(failures(report(entry)), [(1, long), (2, UNKNOWN), (3, long)]);
        let done = alpha.submit_probe(at(0), &smith, &probe).unwrap();
        assert_eq!(done.accepted.body, None);
        let [onward, local] = &done.accepted.entries[..] else { panic!("{done:?}") };
        assert_eq!(failures(report(local)), [(2, UNKNOWN), (3, None)]);
        assert_eq!(onward.record.kind(), RecordKind::Probe);
        let there = beta.accept(at(1), received(&alpha, onward), &content(0), &[]);
        let [entry] = &there.accepted.entries[..] else { panic!("{there:?}") };
        assert_eq!(failures(report(entry)), [(1, None)]);
    }
}
