//! A message becomes copies for the members of a list (X.411 14.3, list expansion).

use crate::Engine;
use crate::lists::definition::Compiled;
use crate::onward::delivered::{Delivering, fingerprint_of};
use crate::onward::route::canonical;
use crate::onward::split::Failure;
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::Record;
use crate::report::RecipientOutcome;
use crate::subject::{Carried, Subject};
use base::Utc;
use base::ber::Element;
use p1::apdu::MtsApduHead;
use p1::envelope::{PerRecipientFields, ReportType};
use p1::extension::{ExtensionType, Extensions, number};
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::history::{Expansion, add_dl_expansion, dl_expansion_history};
use p1::names::ORName;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use p1::trace::OtherActions;
use std::collections::BTreeSet;

/// type-of-MTS-user: dl (X.411 8.3.1.2.1.6).
const DL: i64 = 3;

impl Engine {
    /// Expands the copy of a message, or passes on a report, that waits for a list. As
    /// [`Engine::reroute`], the result replaces the copy in one commit.
    ///
    /// Every member gets the fields of the list, as a recipient of the same number. The list is added to
    /// the expansion history; a list that is in it already expands nothing, and nobody gets a report
    /// (X.411 14.3: recursion). The originator and members named elsewhere in the message are not left
    /// out: each copy is another one.
    pub fn expand(&mut self, now: Utc, record: &Record) -> Concluded {
        let Some(list) = self.list_of(&record.next_hop) else {
            let failure = Failure {
                reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
                diagnostic: Some(Diagnostic::UNRECOGNISED_OR_NAME),
                text: "no such recipient here".to_owned(),
            };
            return self.give_up(now, record, &failure);
        };
        match &record.head {
            MtsApduHead::Message(e) => {
                self.expand_message(now, record, &list, &Carried::Message(e.clone()))
            }
            MtsApduHead::Report(report) => self.pass_on(now, record, &list, report),
            // Answered on arrival.
            MtsApduHead::Probe(_) => Concluded::default(),
        }
    }

    fn expand_message(
        &mut self,
        now: Utc,
        record: &Record,
        list: &Compiled,
        carried: &Carried,
    ) -> Concluded {
        let mut notes = Vec::new();
        let subject = carried.subject();
        let its = subject.recipients.iter().position(|r| r.indicators.responsible());
        let Some((index, fields)) = its.and_then(|at| Some((at, subject.recipients.get(at)?)))
        else {
            return Concluded::default();
        };
        if is_recursive(&subject, &list.name) {
            let text = format!("{}: it was expanded before: {}", subject.identifier, list.name);
            return Concluded {
                notes: vec![Note::new(NoteKind::Expanded, text)],
                ..Concluded::default()
            };
        }
        let members = members(&subject, list, fields);
        let text = format!("for {} members of {}", members.len(), list.name);
        notes.push(Note::new(NoteKind::Expanded, text));
        let mut expanded = carried.with_recipients(members);
        let (trace, extensions) = expanded.traces_mut();
        let expansion = Expansion { name: list.name.clone(), time: Time::from(now) };
        if add_dl_expansion(extensions, expansion).is_err() {
            return self.give_up(
                now,
                record,
                &failed("the expansion history is full or malformed"),
            );
        }
        self.note_action(OtherActions::DL_OPERATION, trace, extensions);

        let dispositions = self.dispositions(&expanded.subject(), false);
        let sorted = self.sort_out(now, &mut expanded, record.measured(), dispositions, &mut notes);
        let head = expanded.clone().into_head();
        let digest = record.digest.and_then(|digest| fingerprint_of(&head, &digest));
        let delivering = Delivering { now, digest, others: None, known: None };
        let seen = delivering.keys_for(&expanded, &sorted);
        let mut entries = self.instead_of(now, record, &expanded, sorted, &mut notes);
        if !list.reports.reaches_originator() {
            // He gets no report on members: a report of the expansion, if he asked for one.
            let report = ReportType::Delivery { time: Time::from(now), mts_user: DL };
            let outcome = RecipientOutcome { index, report, text: None };
            let subject = carried.subject();
            entries.extend(self.reports(
                now,
                &subject,
                record.precedence,
                vec![outcome],
                &mut notes,
            ));
        }
        Concluded { entries, seen, notes }
    }
}

fn failed(text: &str) -> Failure {
    Failure {
        reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
        diagnostic: Some(Diagnostic::DL_EXPANSION_FAILURE),
        text: text.to_owned(),
    }
}

/// Whether this list was expanded before on the message's path.
fn is_recursive(subject: &Subject<'_>, list: &ORName) -> bool {
    let name = canonical(&list.address);
    let history = dl_expansion_history(subject.extensions).unwrap_or_default();
    history.iter().any(|before| canonical(&before.name.address) == name)
}

/// The members, with the fields that the list had as a recipient.
fn members(
    subject: &Subject<'_>,
    list: &Compiled,
    fields: &PerRecipientFields,
) -> Vec<PerRecipientFields> {
    let exempted = exempted(subject.extensions);
    let indicators = indicators(list, fields.indicators);
    let mut extensions = fields.extensions.clone();
    // The alternate was the list's.
    let alternate = number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
    extensions.remove(&ExtensionType::Standard(alternate));
    let members = list.members.iter().filter(|(address, _)| !exempted.contains(*address));
    let member = |(_, name): (&String, &ORName)| PerRecipientFields {
        recipient: name.clone(),
        indicators,
        extensions: extensions.clone(),
        ..fields.clone()
    };
    members.map(member).collect()
}

/// Which reports are asked for of the members, by the list's policy.
fn indicators(list: &Compiled, asked: PerRecipientIndicators) -> PerRecipientIndicators {
    let (mta, originator) = match (list.reports.reaches_originator(), list.reports.reaches_owner())
    {
        (true, false) => return asked.with_responsibility(true),
        (true, true) => {
            let originator = match asked.originator_report() {
                ReportRequest::None => ReportRequest::NonDelivery,
                other => other,
            };
            (asked.mta_report(), originator)
        }
        (false, true) => (MtaReportRequest::NonDelivery, ReportRequest::NonDelivery),
        (false, false) => (MtaReportRequest::NonDelivery, ReportRequest::None),
    };
    PerRecipientIndicators::new(true, mta, originator)
}

/// dl-exempted-recipients: who gets no copy from a list. What cannot be read exempts nobody.
fn exempted(extensions: &Extensions) -> BTreeSet<String> {
    let read = || -> Option<BTreeSet<String>> {
        let field = extensions.standard(number::DL_EXEMPTED_RECIPIENTS)?;
        let set = Element::parse(&field.value).ok()?;
        let mut members = set.children().ok()?;
        let mut all = BTreeSet::new();
        while let Some(member) = members.next().ok()? {
            all.insert(canonical(&ORName::read(&member).ok()?.address));
        }
        Some(all)
    };
    read().unwrap_or_default()
}
