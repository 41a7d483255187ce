//! A message becomes copies for the members of a list (X.411 14.3, list expansion).

use crate::Engine;
use crate::journal::Digest;
use crate::lists::definition::Compiled;
use crate::onward::copying::plan;
use crate::onward::delivered::{Delivering, expansion_key, fingerprint_of, identifies};
use crate::onward::route::canonical;
use crate::onward::split::Failure;
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::report::RecipientOutcome;
use crate::subject::{Carried, Subject};
use base::Utc;
use base::ber::Element;
use bytes::Bytes;
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

/// Octets of all copies that one expansion makes. They are in memory until their commit.
pub(crate) const MAX_EXPANSION: usize = 32 << 20;

/// type-of-MTS-user: dl (X.411 8.3.1.2.1.6).
const DL: i64 = 3;

impl Engine {
    /// Expands the copy of a message, or passes on a report, that waits for a list. As
    /// [`Engine::reroute`], the result replaces the copy in one commit.
    ///
    /// Every member gets the fields of the list, as a recipient of the same number. The list is added to
    /// the expansion history; a list that is in it already expands nothing, and nobody gets a report
    /// (X.411 14.3: recursion). What waits for a list that is gone is routed again. The originator and members named elsewhere in the message are not left
    /// out: each copy is another one.
    ///
    /// `seen` is what the store remembers under [`Engine::expansion_key`]: a list expands a message once
    /// for a recipient number, by whatever way it comes. Lists that contain one another would else send
    /// a copy along every simple path, of which n lists have n factorial. No member loses by it: he got
    /// the copy of the first expansion.
    pub fn expand(&mut self, now: Utc, record: &Record, seen: Option<&Bytes>) -> Concluded {
        let Some(list) = self.list_of(&record.next_hop) else {
            return self.reroute(now, record, &[]);
        };
        match &record.head {
            MtsApduHead::Message(e) => {
                self.expand_message(now, record, &list, &Carried::Message(e.clone()), seen)
            }
            MtsApduHead::Report(report) => self.pass_on(now, record, &list, report),
            // Answered on arrival.
            MtsApduHead::Probe(_) => Concluded::default(),
        }
    }

    /// The key to look up before what waits for a list is expanded; `None` where nothing would be.
    #[must_use]
    pub fn expansion_key(&self, record: &Record) -> Option<Digest> {
        let (NextHop::Mailbox(list), MtsApduHead::Message(e)) = (&record.next_hop, &record.head)
        else {
            return None;
        };
        let its = e.recipients.iter().find(|r| r.indicators.responsible())?;
        self.is_list(list).then(|| expansion_key(&Subject::from(&**e), its, list))
    }

    fn expand_message(
        &mut self,
        now: Utc,
        record: &Record,
        list: &Compiled,
        carried: &Carried,
        before: Option<&Bytes>,
    ) -> Concluded {
        let mut notes = Vec::new();
        let subject = carried.subject();
        let mut its = subject.recipients.iter().enumerate();
        let mut its = its.by_ref().filter(|(_, r)| r.indicators.responsible());
        let Some((index, fields)) = its.next() else { return Concluded::default() };
        // It is named several times, or redirections lead to it: its members get one copy.
        let further: Vec<usize> = its.map(|(index, _)| index).collect();
        let content = |head: &MtsApduHead| fingerprint_of(head, record.digest.as_ref()?);
        let known = before.is_some_and(|seen| identifies(seen, content(&record.head).as_ref()));
        if known || is_recursive(&subject, &list.name) {
            let text = format!("{}: it was expanded before: {}", subject.identifier, list.name);
            return Concluded {
                notes: vec![Note::new(NoteKind::Expanded, text)],
                ..Concluded::default()
            };
        }
        let members = members(&subject, list, fields);
        let text = format!("for {} members of {}", members.len(), list.name);
        notes.push(Note::new(NoteKind::Expanded, text));
        let others = subject.recipients.iter().filter(|r| !r.indicators.responsible());
        let others = others.filter(|r| r.number != fields.number).cloned();
        let mut expanded = carried.with_recipients(members.into_iter().chain(others).collect());
        let (trace, extensions) = expanded.traces_mut();
        let expansion = Expansion { name: list.name.clone(), time: Time::from(now) };
        if add_dl_expansion(extensions, expansion).is_err() {
            return self.fail(now, record, list, "the expansion history is full or malformed");
        }
        self.note_action(OtherActions::DL_OPERATION, trace, extensions);

        let dispositions = self.dispositions(&expanded.subject(), false);
        let sorted = self.sort_out(now, &mut expanded, record.measured(), dispositions, &mut notes);
        let octets = plan(&expanded, sorted.ways.clone(), &mut Vec::new()).octets;
        if octets > MAX_EXPANSION {
            let text =
                format!("its copies would have {octets} octets, {MAX_EXPANSION} are the most");
            return self.fail(now, record, list, &text);
        }
        let digest = content(&record.head);
        let key = self.expansion_key(record);
        let others = key.zip(before.cloned()).into_iter().collect();
        let delivering = Delivering { now, digest, others: Some(&others), known: None };
        let mut seen = delivering.keys_for(&expanded, &sorted);
        seen.extend(key.map(|key| delivering.seen(key)));
        let mut entries = self.instead_of(now, record, &expanded, sorted, &mut notes);
        // Who gets no report on members gets one of the expansion, if he asked for one.
        let first = (!list.reports.reaches_originator()).then_some(index);
        let report = ReportType::Delivery { time: Time::from(now), mts_user: DL };
        let outcome = |index| RecipientOutcome { index, report: report.clone(), text: None };
        let outcomes: Vec<_> = first.into_iter().chain(further).map(outcome).collect();
        if !outcomes.is_empty() {
            let subject = carried.subject();
            entries.extend(self.reports(now, &subject, record.precedence, outcomes, &mut notes));
        }
        Concluded { entries, seen, notes }
    }

    /// The list cannot be expanded: its originator gets a non-delivery report.
    fn fail(&mut self, now: Utc, record: &Record, list: &Compiled, text: &str) -> Concluded {
        let mut concluded = self.give_up(now, record, &failed(text));
        let text = format!("{text}: {}", list.name);
        concluded.notes.push(Note::new(NoteKind::NonDelivery, text));
        concluded
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
        // The originator's request stands for the originator: an MTA reports a failure in any case, and what the
        // owner is passed asks in the owner's name.
        (true, _) => return asked.with_responsibility(true),
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
