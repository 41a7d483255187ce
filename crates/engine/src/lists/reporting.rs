//! Reports about the members of a list come to the list, which passes them on or stops them (X.411 14.4).
//!
//! No report circles. A list passes one on to the name before the first place that it has in the
//! history itself, so every list on the path has an earlier place than the one before. To its owner it
//! passes on only what came to it in that way: a list that gets a report as somebody's owner ends it.

use crate::Engine;
use crate::lists::definition::Compiled;
use crate::onward::route::canonical;
use crate::outcome::{Concluded, NewEntry, Note, NoteKind};
use crate::record::Record;
use crate::subject::StoredContent;
use base::Utc;
use base::ber::Element;
use p1::apdu::Report;
use p1::envelope::ReportType;
use p1::extension::number;
use p1::flags::{PerRecipientIndicators, ReportRequest};
use p1::history::{originator_and_dl_expansion_history, set_reporting_dl};
use p1::names::ORName;
use p1::trace::OtherActions;

impl Engine {
    /// Passes a report about members on: by the policy to the one before the list in the history, to the
    /// owner, to both or to nobody.
    pub(crate) fn pass_on(
        &mut self,
        now: Utc,
        record: &Record,
        list: &Compiled,
        report: &Report,
    ) -> Concluded {
        let mut notes = Vec::new();
        let mut entries = Vec::new();
        if came_as_to_owner(list, report) {
            let note = stopped(report, "it came to the list as the owner of another");
            return Concluded { notes: vec![note, passed_on(0)], ..Concluded::default() };
        }
        let before = before(&list.name, report);
        if list.reports.reaches_originator() {
            match before.clone() {
                Some(name) => {
                    entries.extend(self.forward(now, record, list, report, name, &mut notes));
                }
                None => notes.push(stopped(report, "its history has nobody before the list")),
            }
        }
        // Who gets the report as the one before the list does not get it as its owner too.
        let has_it =
            |owner: &ORName| !entries.is_empty() && before.as_ref().is_some_and(|b| same(b, owner));
        let owner = list.owner.as_ref().filter(|_| list.reports.reaches_owner());
        if let Some(owner) = owner.filter(|owner| !has_it(owner)) {
            // He owns the list; a success does not concern him.
            let failures = only_failures(report);
            let any = !failures.content.recipients.is_empty();
            let to = owner.clone();
            if any {
                entries.extend(self.forward(now, record, list, &failures, to, &mut notes));
            }
        }
        if entries.is_empty() && notes.is_empty() {
            notes.push(stopped(report, "the list's policy stops it"));
        }
        notes.push(passed_on(entries.len()));
        Concluded { entries, notes, ..Concluded::default() }
    }

    fn forward(
        &mut self,
        now: Utc,
        record: &Record,
        list: &Compiled,
        report: &Report,
        to: ORName,
        notes: &mut Vec<Note>,
    ) -> Option<NewEntry> {
        let mut report = report.clone();
        report.envelope.destination = to;
        let envelope = &mut report.envelope;
        set_reporting_dl(&mut envelope.extensions, &list.name);
        // It begins another path: it may pass MTAs again.
        self.note_action(OtherActions::DL_OPERATION, &mut envelope.trace, &mut envelope.extensions);
        let report = (report, StoredContent::of_record(record));
        self.queue_report((now, record.first_arrival), report, record.precedence, notes)
    }
}

/// Who is before the first place of a list in the report's history: another list, or the originator.
fn before(list: &ORName, report: &Report) -> Option<ORName> {
    let history = originator_and_dl_expansion_history(&report.envelope.extensions).ok()?;
    let at = history.iter().position(|each| same(&each.name, list))?;
    Some(history.get(at.checked_sub(1)?)?.name.clone())
}

/// Whether another list passed the report on, and not because this one is before it in the history.
fn came_as_to_owner(list: &Compiled, report: &Report) -> bool {
    let Some(field) = report.envelope.extensions.standard(number::REPORTING_DL_NAME) else {
        return false;
    };
    let last = Element::parse(&field.value).and_then(|name| ORName::read(&name)).ok();
    let next = last.and_then(|last| before(&last, report));
    next.is_none_or(|next| !same(&next, &list.name))
}

fn same(a: &ORName, b: &ORName) -> bool {
    canonical(&a.address) == canonical(&b.address)
}

/// The failures, as one who asked for them gets them.
fn only_failures(report: &Report) -> Report {
    let mut report = report.clone();
    let failed = |r: &ReportType| matches!(r, ReportType::NonDelivery { .. });
    report.content.recipients.retain(|r| failed(&r.last_trace.report));
    for recipient in &mut report.content.recipients {
        let asked = recipient.indicators;
        let (is_responsible, mta) = (asked.responsible(), asked.mta_report());
        recipient.indicators =
            PerRecipientIndicators::new(is_responsible, mta, ReportRequest::NonDelivery);
    }
    report
}

/// The end of the list's own copy.
fn passed_on(copies: usize) -> Note {
    let detail = match copies {
        0 => "the list passes the report to nobody".to_owned(),
        1 => "the list passes the report on".to_owned(),
        _ => "the list passes the report on, to its owner too".to_owned(),
    };
    Note::new(NoteKind::Expanded, detail)
}

fn stopped(report: &Report, why: &str) -> Note {
    let detail = format!("report {}: {why}", report.envelope.report_identifier);
    Note::new(NoteKind::ReportDiscarded, detail)
}
