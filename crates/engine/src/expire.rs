//! Expiry: how long a copy may wait, and the reports when its time is over.
//!
//! A copy for a peer may wait as long as its precedence permits, counted from the message's first
//! arrival in the MTS or from the end of its deferral; so a long path does not extend its life at
//! each MTA. X.411 leaves this time to the MTA. A mailbox is a message store: a message waits
//! there until its user takes it. The originator's latest-delivery-time (X.411 8.2.1.1.1.10)
//! applies to both if it is earlier.

use crate::Engine;
use crate::onward::split::Failure;
use crate::outcome::{Concluded, Note, NoteKind};
use crate::record::{Brief, NextHop, Record, RecordKind};
use crate::subject::Carried;
use base::ber::Element;
use base::{PerPrecedence, Precedence, Utc};
use p1::extension::{ExtensionField, number};
use p1::reason::{Diagnostic, NonDeliveryReason};
use p1::time::Time;
use std::time::Duration;

/// How long copies may wait for a peer, by precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Periods(pub PerPrecedence<Duration>);

impl Default for Periods {
    /// Override and Flash 4 h, Immediate and Priority 24 h, Routine and Deferred 36 h.
    fn default() -> Periods {
        Periods(PerPrecedence::new([36, 36, 24, 24, 4, 4].map(Duration::from_hours)))
    }
}

impl Periods {
    /// The longest of them.
    pub fn longest(&self) -> Duration {
        Precedence::ALL.iter().map(|p| *self.0.get(*p)).max().unwrap_or_default()
    }
}

/// The age from which on a copy is late, counted from our acceptance or the end of its deferral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Alerts(pub PerPrecedence<Duration>);

impl Default for Alerts {
    /// Override 30 s, Flash 60 s, Immediate 5 min, Priority 30 min, Routine 3 h, Deferred 24 h.
    fn default() -> Alerts {
        let seconds = [24 * 3_600, 3 * 3_600, 1_800, 300, 60, 30];
        Alerts(PerPrecedence::new(seconds.map(Duration::from_secs)))
    }
}

/// The time in a latest-delivery-time; `None` if it cannot be read.
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
    /// When it expires; `None` if never.
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
    /// Expires a copy: redirections or non-delivery reports, as [`Engine::undeliverable`]. If the
    /// originator's latest-delivery-time is over, nobody is to get the message any more: then there
    /// is no redirection. A report that expires is discarded, with a note.
    pub fn expire(&mut self, now: Utc, record: &Record) -> Concluded {
        if record.kind() == RecordKind::Report {
            return discarded(record, "it has expired");
        }
        let (reason, diagnostic) =
            (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::MAXIMUM_TIME_EXPIRED);
        let text = "the time for its delivery is over".to_owned();
        let failure = Failure { reason, diagnostic: Some(diagnostic), text };
        match record.latest.is_some_and(|latest| latest <= now) {
            true => self.report_failure(now, record, &failure),
            false => self.give_up(now, record, &failure),
        }
    }

    /// Expires a copy before its time, because an operator orders it: as [`Engine::expire`], but
    /// nobody is redirected.
    pub fn expire_by_order(&mut self, now: Utc, record: &Record) -> Concluded {
        let text = "an operator of this MTA gave it up";
        if record.kind() == RecordKind::Report {
            return discarded(record, text);
        }
        let (reason, diagnostic) =
            (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::MAXIMUM_TIME_EXPIRED);
        let failure = Failure { reason, diagnostic: Some(diagnostic), text: text.to_owned() };
        self.report_failure(now, record, &failure)
    }

    /// Gives up a copy whose transfer is interrupted repeatedly while others succeed: redirections or
    /// non-delivery reports, as [`Engine::undeliverable`]. The reason is
    /// unable-to-transfer, as the problem is the message and not communication (X.411
    /// 8.3.1.2.1.10); the diagnostic is protocol-violation, as the peer's problem may be the
    /// envelope as well as the content. A report is tried again without the content that it returns; one
    /// without is discarded, with a note.
    pub fn untransferable(&mut self, now: Utc, record: &Record, text: &str) -> Concluded {
        if let Some(without) = self.without_content(record, text) {
            return without;
        }
        if record.kind() == RecordKind::Report {
            return discarded(record, text);
        }
        let (reason, diagnostic) =
            (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::PROTOCOL_VIOLATION);
        self.undeliverable(now, record, reason, diagnostic, text)
    }

    /// Gives up a copy whose content is damaged on our disk: non-delivery reports for all its recipients;
    /// nobody can be sent the message. The reason is transfer-failure; no diagnostic of X.411 names the
    /// cause, so there is none, and the text does. The damaged content is not returned, and a
    /// report that returns one goes without it.
    pub fn damaged(&mut self, now: Utc, record: &Record) -> Concluded {
        if let Some(without) = self.without_content(record, "it is damaged on the disk") {
            return without;
        }
        let text = "its content was damaged on the disk of this MTA: send it again";
        if record.kind() == RecordKind::Report {
            return discarded(record, text);
        }
        let record = &Record { body: None, ..record.clone() };
        let reason = NonDeliveryReason::TRANSFER_FAILURE;
        let failure = Failure { reason, diagnostic: None, text: text.to_owned() };
        self.report_failure(now, record, &failure)
    }
}

/// A report causes no report.
fn discarded(record: &Record, why: &str) -> Concluded {
    let detail = format!("report {}: {why}", record.message);
    let notes = vec![Note::new(NoteKind::ReportDiscarded, detail)];
    Concluded { notes, ..Concluded::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::critical::{Step, unsupported};
    use crate::testing::{
        BAKER, JONES, SMITH, at, content, engine, engine_of, failures, message, received, report,
        submission, submit,
    };
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

        // The first domain's clock is ahead: our own arrival is the upper bound.
        let there = relay.accept(Utc(at(0).0 - 1_000_000), head.clone(), &content(1), &[]).accepted;
        assert_eq!(expires(&there.entries[0].record), Some(Utc(at(24 * HOUR).0 - 1_000_000)));

        // The external trace has no valid time: the internal one has.
        let MtsApduHead::Message(mut e) = head else { panic!() };
        let bad = Time { raw: bytes::Bytes::from_static(b"yesterday"), utc: None };
        e.trace[0].arrival_time = bad;
        let head = MtsApduHead::Message(e);
        let there = relay.accept(at(10 * HOUR), head, &content(1), &[]).accepted;
        assert_eq!(expires(&there.entries[0].record), Some(at(24 * HOUR)));
    }

    /// Zeta accepts alpha's message 10 hours later, with these arrival times in its traces;
    /// returns the time used, and the notes.
    fn relayed(external: &[&str], inside: &[&str]) -> (Utc, Vec<String>) {
        let alpha_time = |text: &str| Time {
            raw: bytes::Bytes::copy_from_slice(text.as_bytes()),
            utc: Utc::from_utc_time(text.as_bytes()),
        };
        let domain = |prmd: &str| p1::names::GlobalDomainId::new("XX", " ", Some(prmd));
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let MtsApduHead::Message(mut e) = received(&alpha, &done.accepted.entries[0]) else {
            panic!()
        };
        let of = |(prmd, time): (&str, &&str)| {
            let mut element = p1::trace::TraceElement::relayed(domain(prmd), at(0));
            element.arrival_time = alpha_time(time);
            element
        };
        e.trace = ["alpha", "iota", "kappa"].into_iter().zip(external).map(of).collect();
        e.extensions = Extensions::default();
        for time in inside {
            let mut element =
                p1::trace::InternalTraceElement::relayed(domain("alpha"), "mta1".into(), at(0));
            element.arrival_time = alpha_time(time);
            p1::trace::add_internal_trace(&mut e.extensions, element).unwrap();
        }
        let mut relay = engine_of("zeta", "m", &[], &[("beta", 1)]);
        let there = relay.accept(at(10 * HOUR), MtsApduHead::Message(e), &content(1), &[]);
        let doubted = there.notes.into_iter().filter(|n| n.kind == NoteKind::TraceDoubted);
        (there.accepted.entries[0].record.first_arrival, doubted.map(|n| n.detail).collect())
    }

    #[test]
    fn a_trace_of_years_ago_or_to_come_is_not_counted_from() {
        let now = at(10 * HOUR);
        // 2026-01-02T03:04:05Z is 0; zeta accepts it at 13:04:05.
        assert_eq!(relayed(&["260102030405Z"], &[]), (at(0), vec![]));
        for wrong in ["950102030405Z", "700101000000Z", "250101000000Z", "490102030405Z"] {
            let (first, doubted) = relayed(&[wrong], &[]);
            assert_eq!(first, now, "{wrong}");
            let [doubt] = &doubted[..] else { panic!("{doubted:?}") };
            assert!(doubt.starts_with("the trace of /PRMD=alpha/ADMD= /C=XX/ states "), "{doubt}");
            assert!(doubt.ends_with("which is not plausible: is its clock right?"), "{doubt}");
            // The next plausible time is used: that of another domain or MTA.
            assert_eq!(relayed(&[wrong, wrong, "260102040405Z"], &[]).0, at(HOUR), "{wrong}");
            assert_eq!(relayed(&[wrong], &[wrong, "260102050405Z"]).0, at(2 * HOUR), "{wrong}");
        }
        // The bound is 36 h, the longest wait here, and one day: an older message expires.
        assert_eq!(relayed(&["251231010405Z"], &[]), (Utc(now.0 - 60 * 3_600_000_000), vec![]));
        assert_eq!(relayed(&["251231010404Z"], &[]).0, now);
        // A clock one day ahead is accepted, one further ahead is rejected. Neither expires
        // anything.
        assert_eq!(relayed(&["260103130405Z"], &[]), (now, vec![]));
        let (first, doubted) = relayed(&["260103130406Z"], &[]);
        assert_eq!((first, doubted.len()), (now, 1));
    }

    #[test]
    fn a_longer_wait_believes_older_traces() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut relay = engine_of("zeta", "m", &[], &[("beta", 1)]);
        let late = at(200 * HOUR);
        let first = |there: crate::Arrival| there.accepted.entries[0].record.first_arrival;
        assert_eq!(first(relay.accept(late, head.clone(), &content(1), &[])), late);
        *relay.expire.0.get_mut(Precedence::Routine) = Duration::from_hours(176);
        assert_eq!(first(relay.accept(late, head, &content(1), &[])), at(0));
    }

    #[test]
    fn a_report_from_a_wrong_clock_is_not_thrown_away() {
        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 3)]);
        let sent = submit(&mut engine(), &submission(&[BAKER])).accepted.entries.remove(0);
        let made = beta.accept(at(1), received(&engine(), &sent), &content(1), &[]).accepted;
        let MtsApduHead::Report(mut reported) = received(&beta, &made.entries[0]) else { panic!() };
        reported.envelope.extensions = Extensions::default();
        reported.envelope.trace[0].arrival_time = Time::from(Utc(0));
        let mut relay = engine_of("zeta", "m", &[], &[("alpha", 1)]);
        let there = relay.accept(at(HOUR), MtsApduHead::Report(reported), &content(0), &[]);
        let record = &there.accepted.entries[0].record;
        assert_eq!(record.first_arrival, at(HOUR));
        assert!(record.expires(&Periods::default()) > Some(at(HOUR)));
        let doubts = there.notes.iter().filter(|n| n.kind == NoteKind::TraceDoubted);
        assert_eq!(doubts.count(), 1, "{:?}", there.notes);
    }

    #[test]
    fn a_deferred_message_has_its_time_from_the_end_of_the_deferral() {
        let mut envelope = submission(&[BAKER]);
        envelope.deferred_delivery_time = Some(Time::from(at(100 * HOUR)));
        let mut alpha = engine();
        let done = submit(&mut alpha, &envelope);
        let record = &done.accepted.entries[0].record;
        assert_eq!(record.expires(&Periods::default()), Some(at(124 * HOUR)));
        // The same at the next MTA, which reads the deferral in the trace.
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
        // Later than the MTA's own limit: the limit applies.
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
        let reported = alpha.expire(at(24 * HOUR), &done.accepted.entries[0].record);
        let [entry] = &reported.entries[..] else { panic!("{reported:?}") };
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
        let reported = alpha.expire(at(24 * HOUR), &done.accepted.entries[0].record);
        assert_eq!(failures(report(&reported.entries[0])), [(1, late)]);

        let mut beta = engine_of("beta", "mta2", &[], &[("alpha", 3)]);
        let sent = submit(&mut alpha, &submission(&[BAKER])).accepted.entries.remove(0);
        let head = received(&alpha, &sent);
        assert_eq!(message(&head).recipients.len(), 1);
        let made = beta.accept(at(1), head, &content(1), &[]).accepted.entries.remove(0);
        assert_eq!(made.record.kind(), RecordKind::Report);
        let expired = beta.expire(at(40 * HOUR), &made.record);
        assert!(expired.entries.is_empty());
        assert_eq!(expired.notes[0].kind, NoteKind::ReportDiscarded);
        assert!(expired.notes[0].detail.ends_with("it has expired"), "{:?}", expired.notes);
    }
}
