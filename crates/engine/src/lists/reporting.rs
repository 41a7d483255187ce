//! Reports about the members of a list come to the list, which passes them on or stops them (X.411 14.4).

use crate::Engine;
use crate::lists::definition::Compiled;
use crate::onward::route::canonical;
use crate::outcome::{Concluded, NewEntry, Note, NoteKind};
use crate::record::Record;
use crate::subject::StoredContent;
use base::Utc;
use p1::apdu::Report;
use p1::envelope::ReportType;
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
        if list.reports.reaches_originator() {
            match before(list, report) {
                Some(name) => {
                    entries.extend(self.forward(now, record, list, report, name, &mut notes));
                }
                None => notes.push(stopped(report, "its history has nobody before the list")),
            }
        }
        if let Some(owner) = list.owner.as_ref().filter(|_| list.reports.reaches_owner()) {
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

/// Who is before the list in the report's history: another list, or the originator.
fn before(list: &Compiled, report: &Report) -> Option<ORName> {
    let history = originator_and_dl_expansion_history(&report.envelope.extensions).ok()?;
    let name = canonical(&list.name.address);
    let at = history.iter().rposition(|each| canonical(&each.name.address) == name)?;
    Some(history.get(at.checked_sub(1)?)?.name.clone())
}

fn only_failures(report: &Report) -> Report {
    let mut report = report.clone();
    let failed = |r: &ReportType| matches!(r, ReportType::NonDelivery { .. });
    report.content.recipients.retain(|r| failed(&r.last_trace.report));
    report
}

fn stopped(report: &Report, why: &str) -> Note {
    let detail = format!("report {}: {why}", report.envelope.report_identifier);
    Note::new(NoteKind::ReportDiscarded, detail)
}
