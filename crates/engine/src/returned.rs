//! Contents that reports return (X.411 8.2.1.1.1.21 content-return-request, 8.3.1.2.1.14 returned-content).
//!
//! A report of non-delivery returns the content of its subject if the originator requested that, if the report goes to
//! the originator and not to a list, and if the content is not longer than [`crate::Config::returned_max`]. A report of
//! delivery returns none. The report's entry names the body of its subject, so that nothing is copied; the content is
//! read from the store as the report is transferred or delivered.
//!
//! A report that another MTA made passes with the content it returns.
//!
//! A report with a content has the security labels of its subject, and a content returns only to who is cleared for
//! them.

use crate::Engine;
use crate::outcome::{Concluded, NewEntry, Note, NoteKind};
use crate::record::{NextHop, Record};
use crate::report::{RecipientOutcome, expanded_last};
use crate::subject::{StoredContent, Subject};
use p1::ContentLabels;
use p1::apdu::Report;
use p1::envelope::ReportType;
use p1::extension::Extensions;
use p1::names::ORName;

fn fails(report: &ReportType) -> bool {
    matches!(report, ReportType::NonDelivery { .. })
}

impl Engine {
    /// The content that the report of these outcomes returns.
    pub(crate) fn to_be_returned(
        &self,
        subject: &Subject<'_>,
        outcomes: &[RecipientOutcome],
        notes: &mut Vec<Note>,
    ) -> Option<StoredContent> {
        let content = subject.content.filter(|_| subject.returns_content)?;
        if !outcomes.iter().any(|o| fails(&o.report)) || expanded_last(subject).is_some() {
            return None;
        }
        if content.size > self.returned_max {
            let (size, most) = (content.size, self.returned_max);
            let detail = format!(
                "its content is not returned: {size} octets, and returned_content of limits is {most}"
            );
            notes.push(Note::new(NoteKind::ContentNotReturned, detail));
            return None;
        }
        Some(content)
    }

    /// Whether a report to this name may return a content of these labels: the report passes whatever its label is,
    /// but what it returns only to who is cleared for it.
    pub(crate) fn returns_to_cleared(
        &self,
        labels: (&Extensions, &ContentLabels),
        destination: &ORName,
        notes: &mut Vec<Note>,
    ) -> bool {
        let Ok(next_hop) = self.resolve(&destination.address) else { return true };
        let refused = self.next_hop_not_cleared(labels, &destination.address, &next_hop);
        notes.extend(refused.as_ref().map(|failure| {
            let detail = format!("its content is not returned: {}", failure.text);
            Note::new(NoteKind::ContentNotReturned, detail)
        }));
        refused.is_none()
    }

    /// Whether a report takes the content that it returns to this next hop.
    pub(crate) fn goes_with(
        &self,
        report: &Report,
        content: StoredContent,
        next_hop: &NextHop,
        notes: &mut Vec<Note>,
    ) -> bool {
        let NextHop::Peer(peer) = next_hop else {
            // The user gets it with a report of non-delivery alone.
            return report.content.recipients.iter().any(|r| fails(&r.last_trace.report));
        };
        let Some(most) = self.content_max.get(peer).filter(|most| content.size > **most) else {
            return true;
        };
        let (identifier, size) = (&report.envelope.report_identifier, content.size);
        let detail = format!(
            "report {identifier} goes without the {size} octets that it returns: the next MTA takes {most}"
        );
        notes.push(Note::new(NoteKind::ContentNotReturned, detail));
        false
    }

    /// The same report without the content that it returns, which cannot be sent: as a new entry instead of the old one.
    /// `None` for what is not a report, or returns none.
    pub(crate) fn without_content(&mut self, record: &Record, why: &str) -> Option<Concluded> {
        if record.kind() != crate::RecordKind::Report || record.body.is_none() {
            return None;
        }
        let detail =
            format!("report {} goes without the content it returns: {why}", record.message);
        let notes = vec![Note::new(NoteKind::ContentNotReturned, detail)];
        let record = Record { size: 0, body: None, digest: None, ..record.clone() };
        let entry = NewEntry { id: self.ids.entry(), precedence: record.precedence, record };
        Some(Concluded { entries: vec![entry], notes, ..Concluded::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, JONES, NOBODY, SMITH, address, at, content, engine, engine_of, received, report,
        submission, submit,
    };
    use crate::{Content, NoteKind, Record, canonical};
    use base::ber::Element;
    use p1::ApduParser;
    use p1::apdu::MtsApduHead;
    use p1::extension::{Criticality, Dialect, ExtensionField, number};
    use p1::flags::{PerMessageIndicators, ReportRequest};
    use p1::p3::{MessageSubmissionEnvelope, ReportDelivery};
    use p1::parser::Event;

    /// Content return is asked for.
    fn returning(to: &[&str]) -> MessageSubmissionEnvelope {
        let indicators = PerMessageIndicators::CONTENT_RETURN_REQUEST;
        MessageSubmissionEnvelope { indicators, ..submission(to) }
    }

    /// The report as its next hop receives it, the content apart.
    fn transferred(e: &Engine, entry: &NewEntry) -> (MtsApduHead, Content) {
        let record = Record::decode(&entry.record.encode()).unwrap();
        let payload = e.transfer_payload(&record, Dialect::Modern.into());
        let octets = [&payload.head[..], &vec![7; payload.content_length as usize]].concat();
        let (mut parser, mut head) = (ApduParser::default().split_reports(), None);
        let mut length = 0;
        parser
            .push(&octets, &mut |event| match event {
                Event::Head(found) => head = Some(found),
                Event::Content(octets) => length += octets.len() as u64,
                Event::End => {}
            })
            .unwrap();
        assert_eq!(length, payload.content_length);
        (head.unwrap(), content(length))
    }

    #[test]
    fn a_content_returns_with_non_delivery_where_it_was_asked_for() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &returning(&[BAKER, NOBODY]));
        let [copy, made] = &done.accepted.entries[..] else { panic!("{done:?}") };
        let body = done.accepted.body;
        assert!(body.is_some(), "both share it");
        assert_eq!((copy.record.body, made.record.body), (body, body));
        assert_eq!((made.record.size, made.record.digest), (1000, Some([7; 32])));
        let alone = submit(&mut alpha, &returning(&[NOBODY]));
        assert_eq!(alone.accepted.entries[0].record.body, alone.accepted.body);
        assert!(alone.accepted.body.is_some(), "it is kept for the report alone");

        let argument = alpha.delivery_argument(at(1), &made.record).unwrap().payload;
        assert_eq!((argument.content_length, argument.tail.len()), (1000, 0));
        let octets = [&argument.head[..], &[7; 1000]].concat();
        let delivered = ReportDelivery::read(&Element::parse(&octets).unwrap()).unwrap();
        assert_eq!(delivered.returned_content.as_deref(), Some(&[7; 1000][..]));

        let plain = submit(&mut alpha, &submission(&[NOBODY]));
        assert_eq!((plain.accepted.entries[0].record.body, plain.accepted.body), (None, None));
    }

    #[test]
    fn it_travels_with_the_report_to_the_originator() {
        let mut alpha = engine();
        let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]);
        let mut relay = engine_of("gamma", "mta3", &[], &[("alpha", 1)]);
        let unknown = "C=XX;ADMD=;PRMD=beta;S=Unknown";
        let sent = submit(&mut alpha, &returning(&[unknown])).accepted.entries.remove(0);
        let there = beta.accept(at(1), received(&alpha, &sent), &content(1000), &[]).accepted;
        assert!(there.body.is_some());
        let (head, content) = transferred(&beta, &there.entries[0]);
        assert_eq!(content.length, 1000);
        let between = relay.accept(at(2), head, &content, &[]).accepted;
        let [entry] = &between.entries[..] else { panic!("{between:?}") };
        assert_eq!((entry.record.body, entry.record.size), (between.body, 1000));
        assert!(between.body.is_some());
        let (head, content) = transferred(&relay, entry);
        let home = alpha.accept(at(3), head, &content, &[]).accepted;
        assert_eq!(home.entries[0].record.next_hop, NextHop::Mailbox(canonical(&address(SMITH))));
        assert_eq!((home.entries[0].record.body, home.entries[0].record.size), (home.body, 1000));
        let report = report(&home.entries[0]);
        assert_eq!(report.content.returned_content, None, "it is apart");

        // Rerouted, it keeps it.
        let again = relay.reroute(at(4), &entry.record, &[]);
        assert_eq!(again.entries[0].record.body, between.body);
    }

    #[test]
    fn a_copy_that_fails_later_is_returned_and_a_delivery_is_not() {
        let mut alpha = engine();
        let mut envelope = returning(&[BAKER, JONES]);
        envelope.recipients[1].report_request = ReportRequest::Report;
        let done = submit(&mut alpha, &envelope);
        let [remote, local] = &done.accepted.entries[..] else { panic!("{done:?}") };
        let late = alpha.expire(at(90_000), &remote.record);
        assert_eq!(late.entries[0].record.body, done.accepted.body);
        let delivered = alpha.delivered(at(1), at(1), &local.record);
        assert_eq!((delivered.entries.len(), delivered.entries[0].record.body), (1, None));

        // Damaged on our disk, it cannot be returned.
        let damaged = alpha.damaged(at(1), &remote.record);
        assert_eq!((damaged.entries.len(), damaged.entries[0].record.body), (1, None));
        // The report itself: the content is damaged, or the next MTA does not take it.
        for gone in [
            alpha.damaged(at(1), &late.entries[0].record),
            alpha.untransferable(at(1), &late.entries[0].record, "refused 4 times"),
        ] {
            let [entry] = &gone.entries[..] else { panic!("{gone:?}") };
            assert_eq!((entry.record.body, entry.record.size), (None, 0));
            assert_eq!(entry.record.head, late.entries[0].record.head);
            assert_ne!(entry.id, late.entries[0].id);
            assert_eq!(gone.notes[0].kind, NoteKind::ContentNotReturned);
            assert!(alpha.untransferable(at(1), &entry.record, "").entries.is_empty());
        }
    }

    #[test]
    fn what_is_too_long_stays_and_the_report_goes() {
        let mut alpha = engine();
        alpha.returned_max = 999;
        let done = submit(&mut alpha, &returning(&[NOBODY]));
        assert_eq!((done.accepted.entries[0].record.body, done.accepted.body), (None, None));
        let why: Vec<_> =
            done.notes.iter().filter(|n| n.kind == NoteKind::ContentNotReturned).collect();
        assert_eq!(why.len(), 1);
        assert!(why[0].detail.ends_with("1000 octets, and returned_content of limits is 999"));

        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 3)]);
        beta.content_max.insert(base::PeerId(3), 999);
        let unknown = "C=XX;ADMD=;PRMD=beta;S=Unknown";
        let sent = submit(&mut engine(), &returning(&[unknown])).accepted.entries.remove(0);
        let there = beta.accept(at(1), received(&engine(), &sent), &content(1000), &[]);
        assert_eq!((there.accepted.entries[0].record.body, there.accepted.body), (None, None));
        assert!(there.notes.iter().any(|n| n.detail.ends_with("the next MTA takes 999")));
    }

    #[test]
    fn of_several_reports_the_first_returns_it() {
        let mut alpha = engine();
        let mut envelope = returning(&[NOBODY]);
        let one = envelope.recipients.remove(0);
        envelope.recipients = vec![one; 2_001];
        let done = submit(&mut alpha, &envelope);
        let bodies: Vec<_> =
            done.accepted.entries.iter().map(|e| e.record.body.is_some()).collect();
        assert_eq!(bodies, [true, false, false]);
    }

    fn labelled(text: &str) -> MessageSubmissionEnvelope {
        let label: p1::SecurityLabel = text.parse().unwrap();
        let mut envelope = returning(&["C=XX;ADMD=;PRMD=alpha;S=Nobody"]);
        let kind = number::MESSAGE_SECURITY_LABEL;
        envelope.extensions.set(ExtensionField::standard(kind, Criticality::default(), |w| {
            label.write(w, base::ber::universal::SET);
        }));
        envelope
    }

    #[test]
    fn a_report_with_a_content_has_its_label_up_to_the_user() {
        let mut alpha = engine();
        let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]);
        let mut envelope = labelled("1.2.3/secret");
        envelope.recipients[0].recipient = crate::testing::name("C=XX;ADMD=;PRMD=beta;S=Unknown");
        let sent = submit(&mut alpha, &envelope).accepted.entries.remove(0);
        let there = beta.accept(at(1), received(&alpha, &sent), &content(1000), &[]).accepted;
        let (head, returned) = transferred(&beta, &there.entries[0]);
        let own = envelope.extensions.standard(number::MESSAGE_SECURITY_LABEL).unwrap();
        let MtsApduHead::Report(in_transit) = &head else { panic!() };
        let label = in_transit.envelope.extensions.standard(number::MESSAGE_SECURITY_LABEL);
        assert_eq!(label.map(|field| &field.value), Some(&own.value));
        let home = alpha.accept(at(3), head, &returned, &[]).accepted;
        let argument = alpha.delivery_argument(at(4), &home.entries[0].record).unwrap().payload;
        let octets = [&argument.head[..], &[7; 1000]].concat();
        let delivered = ReportDelivery::read(&Element::parse(&octets).unwrap()).unwrap();
        let label = delivered.extensions.standard(number::MESSAGE_SECURITY_LABEL);
        assert_eq!(label.map(|field| &field.value), Some(&own.value));
        // Without a content it has none.
        envelope.indicators = PerMessageIndicators::default();
        let sent = submit(&mut alpha, &envelope).accepted.entries.remove(0);
        let there = beta.accept(at(1), received(&alpha, &sent), &content(1000), &[]).accepted;
        let made = report(&there.entries[0]);
        assert!(made.envelope.extensions.standard(number::MESSAGE_SECURITY_LABEL).is_none());
    }

    #[test]
    fn a_content_returns_only_to_who_is_cleared_for_it() {
        let cleared = |entries: &[&str]| {
            p1::Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
        };
        let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 3)]);
        let mut alpha = engine();
        let mut envelope = labelled("1.2.3/secret");
        envelope.recipients[0].recipient = crate::testing::name("C=XX;ADMD=;PRMD=beta;S=Unknown");
        let sent = submit(&mut alpha, &envelope).accepted.entries.remove(0);
        let arrive = |beta: &mut Engine, of_alpha: &[&str]| {
            let peers = [(base::PeerId(3), cleared(of_alpha))].into();
            beta.cleared = crate::Clearances { peers, ..Default::default() }.into();
            beta.accept(at(1), received(&alpha, &sent), &content(1000), &[])
        };
        let returned = arrive(&mut beta.clone(), &["1.2.3/secret"]);
        assert!(returned.accepted.entries[0].record.body.is_some());
        let kept = arrive(&mut beta, &["1.2.3/restricted"]);
        let [entry] = &kept.accepted.entries[..] else { panic!("{kept:?}") };
        assert_eq!((entry.record.body, kept.accepted.body), (None, None));
        let note = kept.notes.iter().find(|n| n.kind == NoteKind::ContentNotReturned).unwrap();
        assert!(note.detail.contains("the next MTA is not cleared for secret"), "{note:?}");
        // The same where it passes a relay.
        let (head, content) = transferred(&beta, &returned.accepted.entries[0]);
        let mut relay = engine_of("gamma", "mta3", &[], &[("alpha", 1)]);
        let peers = [(base::PeerId(1), cleared(&["1.2.3/restricted"]))].into();
        relay.cleared = crate::Clearances { peers, ..Default::default() }.into();
        let between = relay.accept(at(2), head, &content, &[]);
        let [entry] = &between.accepted.entries[..] else { panic!("{between:?}") };
        assert_eq!((entry.record.body, between.accepted.body), (None, None));
    }
}
