//! Reports: what becomes of a message or probe, told to its originator (X.411 14.4).
//!
//! A report is made for a recipient where the originating MTA or the originator asked for one of
//! that kind; non-delivery is always asked for by the originating MTA. Where a report reaches its
//! user, recipients the user did not ask about are left out (X.411 8.2.1.1.1.22). A report causes no
//! report: one that cannot go on is thrown away.

use crate::Engine;
use crate::outcome::{NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::split::Failure;
use crate::subject::{Subject, first_arrival};
use base::ber::Element;
use base::{Precedence, Utc};
use p1::apdu::{MtsApduHead, Report};
use p1::envelope::{
    LastTrace, PerRecipientFields, PerRecipientReportFields, ReportTransferContent,
    ReportTransferEnvelope, ReportType,
};
use p1::extension::{Extensions, number};
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::names::ORName;
use p1::time::Time;

/// Longest supplementary-information (ub-supplementary-info-length).
const MOST_SUPPLEMENTARY: usize = 256;

/// What became of one recipient.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Index among the subject's recipients.
    pub index: usize,
    pub report: ReportType,
    /// supplementary-information.
    pub text: Option<String>,
}

impl Outcome {
    pub(crate) fn failed(index: usize, failure: &Failure) -> Outcome {
        let (reason, diagnostic) = (failure.reason, Some(failure.diagnostic));
        let report = ReportType::NonDelivery { reason, diagnostic };
        Outcome { index, report, text: Some(printable(&failure.text)) }
    }
}

/// Whether a report of this kind is to be made.
fn to_be_made(asked: PerRecipientIndicators, report: &ReportType) -> bool {
    match report {
        // No request at all is no valid request: read as non-delivery-report.
        ReportType::NonDelivery { .. } => true,
        ReportType::Delivery { .. } => {
            matches!(asked.mta_report(), MtaReportRequest::Report | MtaReportRequest::Audited)
                || asked.originator_report() == ReportRequest::Report
        }
    }
}

/// Whether the originator asked to be told.
fn for_user(asked: PerRecipientIndicators, report: &ReportType) -> bool {
    match report {
        ReportType::NonDelivery { .. } => asked.originator_report() != ReportRequest::None,
        ReportType::Delivery { .. } => asked.originator_report() == ReportRequest::Report,
    }
}

/// As a PrintableString can hold it, cut at the bound.
fn printable(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    let fit = |c: char| if allowed(c) { c } else { '-' };
    text.chars().take(MOST_SUPPLEMENTARY).map(fit).collect()
}

/// Where reports go: to the list that expanded last, else to the originator.
fn destination(subject: &Subject<'_>) -> ORName {
    let history = subject.extensions.standard(number::DL_EXPANSION_HISTORY);
    let last = history.and_then(|field| {
        let list = Element::parse(&field.value).ok()?;
        let mut expansions = list.children().ok()?;
        let mut last = None;
        while let Ok(Some(expansion)) = expansions.next() {
            last = Some(expansion);
        }
        let name = last?.children().ok()?.next().ok()??;
        ORName::read(&name).ok()
    });
    last.unwrap_or_else(|| subject.originator.clone())
}

impl Engine {
    /// Makes the report of these outcomes and finds its way; `None` where nobody asked or nobody
    /// can be told.
    pub(crate) fn report(
        &mut self,
        now: Utc,
        subject: &Subject<'_>,
        precedence: Precedence,
        mut outcomes: Vec<Outcome>,
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let asked = |o: &Outcome| {
            subject.recipients.get(o.index).is_some_and(|r| to_be_made(r.indicators, &o.report))
        };
        outcomes.retain(asked);
        if outcomes.is_empty() {
            return None;
        }
        let content = self.report_content(now, subject, outcomes);
        let envelope = ReportTransferEnvelope {
            report_identifier: self.ids.mts(&self.domain),
            destination: destination(subject),
            trace: Vec::new(),
            extensions: Extensions::default(),
            unknown: Vec::new(),
        };
        let text = format!(
            "{} for {} recipients of {}",
            envelope.report_identifier,
            content.recipients.len(),
            subject.identifier
        );
        notes.push(Note::new(NoteKind::ReportMade, text));
        let level = self.policy.own_report(precedence);
        self.forward_report(now, Report { envelope, content }, level, notes)
    }

    fn report_content(
        &self,
        now: Utc,
        subject: &Subject<'_>,
        outcomes: Vec<Outcome>,
    ) -> ReportTransferContent {
        let entered = subject.trace.iter().rfind(|t| t.domain.same_as(&self.domain));
        let arrival_time = entered.map_or_else(|| Time::from(now), |t| t.arrival_time.clone());
        let recipient = |o: Outcome| -> Option<PerRecipientReportFields> {
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
                intended_recipient: None,
                supplementary_information: o.text,
                extensions: Extensions::default(),
                unknown: Vec::new(),
            })
        };
        let recipients: Vec<_> = outcomes.into_iter().filter_map(recipient).collect();
        let audited =
            recipients.iter().any(|r| r.indicators.mta_report() == MtaReportRequest::Audited);
        // The correlator is the originator's means to know its message again.
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

    /// Adds our trace to a report and queues it for its next hop, if it has one.
    pub(crate) fn forward_report(
        &mut self,
        now: Utc,
        mut report: Report,
        precedence: Precedence,
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let message = report.envelope.report_identifier.to_string();
        let mut discard = |why: &str| {
            let detail = format!("report {message}: {why}");
            notes.push(Note::new(NoteKind::ReportDiscarded, detail));
            None
        };
        let envelope = &mut report.envelope;
        if self.loops(&envelope.trace, &envelope.extensions) {
            return discard("loop detected");
        }
        let next_hop = match self.resolve(&envelope.destination.address) {
            Ok(hop) => hop,
            Err(failure) => return discard(&failure.text),
        };
        self.add_trace(now, None, &mut envelope.trace, &mut envelope.extensions);
        if matches!(next_hop, NextHop::Mailbox(_)) {
            let recipients = &mut report.content.recipients;
            recipients.retain(|r| for_user(r.indicators, &r.last_trace.report));
            if recipients.is_empty() {
                return discard("its user did not ask for it");
            }
        }
        let record = Record {
            next_hop,
            message,
            precedence,
            accepted: now,
            first_arrival: first_arrival(&report.envelope.trace, now),
            not_before: None,
            size: 0,
            body: None,
            head: MtsApduHead::Report(Box::new(report)),
        };
        Some(NewEntry { id: self.ids.entry(), precedence, record })
    }
}
