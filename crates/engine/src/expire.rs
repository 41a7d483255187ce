//! How long a copy may wait, and what is told when its time is over.
//!
//! A copy for a peer waits for so long as its precedence allows, counted from when the message was
//! first taken up anywhere (or from the end of its deferral), so that a message that has travelled
//! for long is not given a new life by each MTA it comes to. X.411 leaves the time to the MTA. A
//! mailbox is a message store: what has come so far waits there until its user takes it. Where the
//! originator said how late is too late (latest-delivery-time, X.411 8.2.1.1.1.10), that holds for
//! either, if it is earlier.

use crate::Engine;
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::{Brief, Kind, NextHop, Record};
use crate::subject::Carried;
use base::ber::Element;
use base::{PerPrecedence, Utc};
use p1::extension::{ExtensionField, number};
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use std::time::Duration;

/// How long copies may wait for a peer, by precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods(pub PerPrecedence<Duration>);

impl Default for Periods {
    /// Override and Flash 4 h, Immediate and Priority 24 h, Routine and Deferred 36 h.
    fn default() -> Periods {
        Periods(PerPrecedence::new([36, 36, 24, 24, 4, 4].map(Duration::from_hours)))
    }
}

/// The time in a latest-delivery-time; `None` where it is none.
pub(crate) fn latest_delivery(field: &ExtensionField) -> Option<Utc> {
    Time::read(&Element::parse(&field.value).ok()?).ok()?.utc
}

/// The latest-delivery-time of a message.
pub(crate) fn latest(carried: &Carried) -> Option<Utc> {
    match carried {
        Carried::Message(e) => {
            e.extensions.standard(number::LATEST_DELIVERY_TIME).and_then(latest_delivery)
        }
        Carried::Probe(_) => None,
    }
}

impl Brief<'_> {
    /// When it is given up; `None` where it waits without end.
    pub fn expires(&self, periods: &Periods) -> Option<Utc> {
        let waits = match *self.next_hop {
            NextHop::Peer(_) => {
                let from =
                    self.not_before.map_or(self.first_arrival, |t| t.max(self.first_arrival));
                Some(from + *periods.0.get(self.precedence))
            }
            NextHop::Mailbox(_) => None,
        };
        waits.into_iter().chain(self.latest).min()
    }
}

impl Record {
    /// As [`Brief::expires`].
    pub fn expires(&self, periods: &Periods) -> Option<Utc> {
        self.brief().expires(periods)
    }
}

impl Engine {
    /// The time of a copy is over: non-delivery reports of all its recipients, as
    /// [`Engine::undeliverable`]. A report that expires is thrown away, with a note.
    pub fn expire(&mut self, now: Utc, record: &Record) -> Concluded {
        if record.kind() == Kind::Report {
            let detail = format!("report {}: it has expired", record.message);
            let notes = vec![Note::new(NoteKind::ReportDiscarded, detail)];
            return Concluded { entries: Vec::new(), notes };
        }
        let (reason, diagnostic) =
            (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::MAXIMUM_TIME_EXPIRED);
        let text = "the time for its delivery is over";
        self.undeliverable(now, record, reason, diagnostic, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical::{Step, unsupported};
    use crate::testing::{
        BAKER, JONES, SMITH, at, content, engine, engine_of, failures, message, received, report,
        submission, submit,
    };
    use base::Precedence;
    use p1::apdu::MtsApduHead;
    use p1::extension::{Criticality, ExtensionType, Extensions};
    use p1::flags::Priority;
    use p1::p3::ProbeSubmissionEnvelope;

    const HOUR: u64 = 3_600;

    fn latest(time: Utc) -> ExtensionField {
        let critical = Criticality { for_submission: true, for_delivery: true, for_transfer: true };
        ExtensionField::standard(number::LATEST_DELIVERY_TIME, critical, |w| {
            Time::from(time).write_as(w, base::ber::universal::UTC_TIME);
        })
    }

    #[test]
    fn the_time_goes_by_precedence_and_is_durable() {
        let hours = Precedence::ALL.map(|p| Periods::default().0.get(p).as_secs() / HOUR);
        assert_eq!(hours, [36, 36, 24, 24, 4, 4]);
        for (priority, hours) in
            [(Priority::Urgent, 4), (Priority::Normal, 24), (Priority::NonUrgent, 36)]
        {
            let mut envelope = submission(&[BAKER]);
            envelope.priority = priority;
            let done = submit(&mut engine(), &envelope);
            let record = Record::decode(&done.accepted.entries[0].record.encode()).unwrap();
            assert_eq!(record.expires(&Periods::default()), Some(at(hours * HOUR)), "{priority:?}");
        }
    }

    #[test]
    fn it_counts_from_the_first_arrival_anywhere_never_from_our_own() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut relay = engine_of("zeta", "m", &[], &[("beta", 1)]);
        let there = relay.accept(at(10 * HOUR), head.clone(), &content(1), &[]).accepted;
        let expires = |record: &Record| record.expires(&Periods::default());
        assert_eq!(expires(&there.entries[0].record), Some(at(24 * HOUR)));

        // The clock of the first domain is ahead: our own arrival is the latest there is.
        let there = relay.accept(Utc(at(0).0 - 1_000_000), head.clone(), &content(1), &[]).accepted;
        assert_eq!(expires(&there.entries[0].record), Some(Utc(at(24 * HOUR).0 - 1_000_000)));

        // The external trace tells no time: the internal one does.
        let MtsApduHead::Message(mut e) = head else { panic!() };
        let bad = Time { raw: bytes::Bytes::from_static(b"yesterday"), utc: None };
        e.trace[0].arrival_time = bad;
        let head = MtsApduHead::Message(e);
        let there = relay.accept(at(10 * HOUR), head, &content(1), &[]).accepted;
        assert_eq!(expires(&there.entries[0].record), Some(at(24 * HOUR)));
    }

    #[test]
    fn a_deferred_message_has_its_time_from_the_end_of_the_deferral() {
        let mut envelope = submission(&[BAKER]);
        envelope.deferred_delivery_time = Some(Time::from(at(100 * HOUR)));
        let mut alpha = engine();
        let done = submit(&mut alpha, &envelope);
        let record = &done.accepted.entries[0].record;
        assert_eq!(record.expires(&Periods::default()), Some(at(124 * HOUR)));
        // And so at the next MTA, which reads of the deferral in the trace.
        let mut relay = engine_of("zeta", "m", &[], &[("beta", 1)]);
        let head = received(&alpha, &done.accepted.entries[0]);
        let there = relay.accept(at(101 * HOUR), head, &content(1), &[]).accepted;
        assert_eq!(there.entries[0].record.expires(&Periods::default()), Some(at(124 * HOUR)));
    }

    #[test]
    fn a_mailbox_keeps_what_it_has_unless_the_originator_set_a_latest_time() {
        let mut envelope = submission(&[BAKER, JONES]);
        let done = submit(&mut engine(), &envelope);
        let expires = |n: usize, done: &crate::Submitted| {
            done.accepted.entries[n].record.expires(&Periods::default())
        };
        assert_eq!((expires(0, &done), expires(1, &done)), (Some(at(24 * HOUR)), None));
        envelope.extensions.set(latest(at(HOUR)));
        let done = submit(&mut engine(), &envelope);
        assert_eq!((expires(0, &done), expires(1, &done)), (Some(at(HOUR)), Some(at(HOUR))));
        let octets = done.accepted.entries[1].record.encode();
        let brief = Record::peek(&octets).unwrap();
        assert_eq!(brief.expires(&Periods::default()), Some(at(HOUR)), "durable");
        // Later than what the MTA allows: that holds.
        envelope.extensions.set(latest(at(90 * HOUR)));
        let done = submit(&mut engine(), &envelope);
        assert_eq!(
            (expires(0, &done), expires(1, &done)),
            (Some(at(24 * HOUR)), Some(at(90 * HOUR)))
        );
    }

    #[test]
    fn a_latest_time_that_is_no_time_is_not_understood() {
        let mut field = latest(at(0));
        assert_eq!(unsupported(Step::Submission, &Extensions(vec![field.clone()])), None);
        assert_eq!(unsupported(Step::Delivery, &Extensions(vec![field.clone()])), None);
        field.value = bytes::Bytes::from_static(&[0x17, 3, b'x', b'y', b'z']);
        let named = Some("latest-delivery-time".to_owned());
        assert_eq!(unsupported(Step::Submission, &Extensions(vec![field.clone()])), named);
        assert_eq!(unsupported(Step::Delivery, &Extensions(vec![field.clone()])), named);
        assert_eq!(field.kind, ExtensionType::Standard(number::LATEST_DELIVERY_TIME));
    }

    #[test]
    fn messages_and_probes_are_reported_and_reports_thrown_away() {
        // unable-to-transfer, maximum-time-expired.
        let late = Some((1, Some(5)));
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER, "C=XX;ADMD=;PRMD=beta;S=Other"]));
        let told = alpha.expire(at(24 * HOUR), &done.accepted.entries[0].record);
        let [entry] = &told.entries[..] else { panic!("{told:?}") };
        assert_eq!(failures(report(entry)), [(1, late), (2, late)]);
        assert_eq!(report(entry).content.subject_identifier.to_string(), done.message);
        assert_eq!(entry.record.first_arrival, at(24 * HOUR), "the report has its own time");

        let envelope = submission(&[BAKER]);
        let probe = ProbeSubmissionEnvelope {
            originator: envelope.originator.clone(),
            original_eits: None,
            content_type: envelope.content_type.clone(),
            content_identifier: None,
            content_length: Some(1),
            indicators: envelope.indicators,
            recipients: envelope.recipients,
            extensions: Extensions::default(),
            unknown: Vec::new(),
        };
        let mailbox = crate::canonical(&crate::testing::address(SMITH));
        let done = alpha.submit_probe(at(0), &mailbox, &probe).unwrap();
        let told = alpha.expire(at(24 * HOUR), &done.accepted.entries[0].record);
        assert_eq!(failures(report(&told.entries[0])), [(1, late)]);

        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 3)]);
        let sent = submit(&mut alpha, &submission(&[BAKER])).accepted.entries.remove(0);
        let head = received(&alpha, &sent);
        assert_eq!(message(&head).recipients.len(), 1);
        let made = beta.accept(at(1), head, &content(1), &[]).accepted.entries.remove(0);
        assert_eq!(made.record.kind(), Kind::Report);
        let expired = beta.expire(at(40 * HOUR), &made.record);
        assert!(expired.entries.is_empty());
        assert_eq!(expired.notes[0].kind, NoteKind::ReportDiscarded);
        assert!(expired.notes[0].detail.ends_with("it has expired"), "{:?}", expired.notes);
    }
}
