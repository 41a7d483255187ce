use super::*;
use crate::arrival::trace::internal;
use crate::record::RecordKind;
use crate::testing::{
    BAKER, CARTER, Codes, JONES, NOBODY, NOWHERE, SMITH, address, at, content, engine, engine_of,
    failures, message, name, received, report, submission, submit,
};
use crate::{NewEntry, Submitted, delivery_keys, keys};
use base::PeerId;
use p1::extension::Criticality;
use p1::p3::MessageSubmissionEnvelope;
use p1::trace::OtherActions;

/// unable-to-transfer and this diagnostic.
const fn unable(diagnostic: i64) -> Codes {
    Some((1, Some(diagnostic)))
}

fn mailbox(text: &str) -> String {
    canonical(&address(text))
}

fn alternate(text: &str) -> ExtensionField {
    let critical = Criticality { for_submission: true, for_transfer: true, for_delivery: true };
    let number = number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
    ExtensionField::standard(number, critical, |w| name(text).write(w))
}

/// A submission to this recipient with this alternate.
fn with_alternate(to: &str, other: &str) -> MessageSubmissionEnvelope {
    let mut envelope = submission(&[to]);
    envelope.recipients[0].extensions.set(alternate(other));
    envelope
}

fn prohibiting(envelope: &mut MessageSubmissionEnvelope, value: i64) {
    let critical = Criticality { for_delivery: true, ..Criticality::default() };
    let number = number::RECIPIENT_REASSIGNMENT_PROHIBITED;
    envelope.extensions.set(ExtensionField::standard(number, critical, |w| {
        w.integer(base::ber::universal::ENUMERATED, value);
    }));
}

/// The recipient of the one copy, and the names and reasons of his redirections.
fn only(entries: &[NewEntry]) -> (String, Vec<(String, i64)>) {
    let [entry] = entries else { panic!("{entries:?}") };
    let e = message(&entry.record.head);
    let mine: Vec<_> = e.recipients.iter().filter(|r| r.indicators.responsible()).collect();
    let [recipient] = mine[..] else { panic!("{mine:?}") };
    let history = redirection_history(&recipient.extensions).unwrap();
    let history = history.iter().map(|r| (r.intended.to_string(), r.reason.0)).collect();
    (recipient.recipient.to_string(), history)
}

fn text(address: &str) -> String {
    name(address).to_string()
}

fn failed(done: &Submitted) -> Vec<(u32, Codes)> {
    let reports = done.accepted.entries.iter().filter(|e| e.record.kind() == RecordKind::Report);
    reports.flat_map(|e| failures(report(e))).collect()
}

#[test]
fn an_unknown_recipient_s_message_goes_to_the_requested_alternate() {
    let mut alpha = engine();
    let done = submit(&mut alpha, &with_alternate(NOBODY, JONES));
    let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert_eq!(entry.record.next_hop, NextHop::Mailbox(mailbox(JONES)));
    assert_eq!(only(&done.accepted.entries), (text(JONES), vec![(text(NOBODY), 1)]));
    let e = message(&entry.record.head);
    let redirections = redirection_history(&e.recipients[0].extensions).unwrap();
    assert_eq!(redirections[0].time, Time::from(at(0)));
    // Noted in both traces, and the request is used up.
    let last = e.trace.last().unwrap().additional.other_actions;
    assert_eq!(last, OtherActions::REDIRECTED);
    let last = internal(&e.extensions).last().unwrap().additional.other_actions;
    assert_eq!(last, OtherActions::REDIRECTED);
    assert_eq!(requested(&e.recipients[0].extensions), None);
    let [note] = &done.notes[..] else { panic!("{:?}", done.notes) };
    assert_eq!(note.kind, NoteKind::Redirected);
    let expected = "originator-requested-alternate-recipient: ";
    assert_eq!(note.detail, format!("{expected}{} to {}", text(NOBODY), text(JONES)));
}

#[test]
fn only_the_copy_of_those_redirected_notes_it() {
    let mut alpha = engine();
    let mut envelope = submission(&[BAKER, NOWHERE, CARTER]);
    envelope.recipients[1].extensions.set(alternate("C=XX;ADMD=;PRMD=beta;S=Other"));
    let done = submit(&mut alpha, &envelope);
    let hops: Vec<_> = done.accepted.entries.iter().map(|e| e.record.next_hop.clone()).collect();
    let (beta, gamma) = (NextHop::Peer(PeerId(0)), NextHop::Peer(PeerId(1)));
    assert_eq!(hops, [beta.clone(), beta, gamma]);
    let actions = |e: &NewEntry| message(&e.record.head).trace[0].additional.other_actions.0;
    assert_eq!(done.accepted.entries.iter().map(actions).collect::<Vec<_>>(), [0, 1, 0]);
    let responsible = |e: &NewEntry| -> Vec<u32> {
        let all = message(&e.record.head).recipients.iter();
        all.filter(|r| r.indicators.responsible()).map(|r| r.number).collect()
    };
    let all: Vec<_> = done.accepted.entries.iter().map(responsible).collect();
    assert_eq!(all, [[1], [2], [3]]);
}

#[test]
fn a_recipient_who_can_be_served_is_not_redirected() {
    let mut alpha = engine();
    let done = submit(&mut alpha, &with_alternate(BAKER, JONES));
    assert_eq!(only(&done.accepted.entries), (text(BAKER), vec![]));
    // The next MTA gets the request.
    let head = received(&alpha, &done.accepted.entries[0]);
    assert_eq!(requested(&message(&head).recipients[0].extensions), Some(name(JONES)));
}

#[test]
fn an_alternate_who_fails_too_is_reported_with_whom_it_was_for() {
    let mut alpha = engine();
    let done = submit(&mut alpha, &with_alternate(NOBODY, NOWHERE));
    let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
    let fields = &report(entry).content.recipients[0];
    assert_eq!(failures(report(entry)), [(1, unable(0))]);
    assert_eq!(fields.actual_recipient, name(NOWHERE));
    assert_eq!(fields.intended_recipient, Some(name(NOBODY)));
    let history = redirection_history(&fields.extensions).unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].reason, RedirectionReason::ORIGINATOR_REQUESTED);
    // An alternate that is the recipient himself helps nobody.
    let done = submit(&mut engine(), &with_alternate(NOBODY, NOBODY));
    assert_eq!(failed(&done), [(1, unable(0))]);
    assert_eq!(report(&done.accepted.entries[0]).content.recipients[0].intended_recipient, None);
}

#[test]
fn the_site_s_alternate_gets_what_nobody_here_is_for_where_it_is_allowed() {
    let mut alpha = engine();
    alpha.alternate_recipient = Some(name(JONES));
    let allowed = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
    let mut envelope = submission(&[NOBODY]);
    assert_eq!(failed(&submit(&mut alpha, &envelope)), [(1, unable(0))], "not allowed");
    envelope.indicators = allowed;
    let done = submit(&mut alpha, &envelope);
    assert_eq!(only(&done.accepted.entries), (text(JONES), vec![(text(NOBODY), 2)]));
    // The address of another site is not ours to assign.
    let mut elsewhere = submission(&[NOWHERE]);
    elsewhere.indicators = allowed;
    assert_eq!(failed(&submit(&mut alpha, &elsewhere)), [(1, unable(0))]);
    // The originator's alternate comes first; the site's follows if that one is nobody either.
    envelope.recipients[0].extensions.set(alternate(BAKER));
    let done = submit(&mut alpha, &envelope);
    assert_eq!(only(&done.accepted.entries), (text(BAKER), vec![(text(NOBODY), 1)]));
    let other = "C=XX;ADMD=;PRMD=alpha;S=Nemo";
    envelope.recipients[0].extensions.set(alternate(other));
    let done = submit(&mut alpha, &envelope);
    let history = vec![(text(NOBODY), 1), (text(other), 2)];
    assert_eq!(only(&done.accepted.entries), (text(JONES), history));
}

#[test]
fn a_user_s_redirection_is_followed_until_he_ends_it() {
    let mut alpha = engine();
    alpha.set_redirection(&mailbox(JONES), Some(name(BAKER)));
    let done = submit(&mut alpha, &submission(&[JONES]));
    assert_eq!(only(&done.accepted.entries), (text(BAKER), vec![(text(JONES), 0)]));
    assert_eq!(alpha.redirection(&mailbox(JONES)), Some(&name(BAKER)));
    alpha.set_redirection(&mailbox(JONES), None);
    let done = submit(&mut alpha, &submission(&[JONES]));
    assert_eq!(only(&done.accepted.entries), (text(JONES), vec![]));
}

#[test]
fn what_was_prepared_before_a_redirection_is_not_used() {
    let (mut source, mut beta) = (engine(), engine_of("beta", "mta2", &["Baker", "Other"], &[]));
    let done = submit(&mut source, &submission(&[BAKER]));
    let head = received(&source, &done.accepted.entries[0]);
    let mut prepared = beta.begin(&head);
    assert!(beta.prepare(&mut prepared, &head, usize::MAX));
    let other = "C=XX;ADMD=;PRMD=beta;S=Other";
    beta.set_redirection(&mailbox(BAKER), Some(name(other)));
    let taken = beta.accept_prepared(at(1), head, &content(9), prepared, &[]);
    assert_eq!(only(&taken.accepted.entries), (text(other), vec![(text(BAKER), 0)]));
}

#[test]
fn an_originator_may_prohibit_that_a_recipient_redirects() {
    let mut alpha = engine();
    alpha.set_redirection(&mailbox(JONES), Some(name(BAKER)));
    let mut envelope = submission(&[JONES]);
    prohibiting(&mut envelope, 1);
    assert_eq!(failed(&submit(&mut alpha, &envelope)), [(1, unable(26))]);
    // What cannot be read prohibits; 0 allows.
    prohibiting(&mut envelope, 0);
    let done = submit(&mut alpha, &envelope);
    assert_eq!(only(&done.accepted.entries), (text(BAKER), vec![(text(JONES), 0)]));
    // The alternate that the originator wants is not prohibited.
    prohibiting(&mut envelope, 1);
    envelope.recipients[0].extensions.set(alternate(CARTER));
    let done = submit(&mut alpha, &envelope);
    assert_eq!(only(&done.accepted.entries), (text(CARTER), vec![(text(JONES), 1)]));
}

#[test]
fn users_who_redirect_in_a_circle_are_a_loop() {
    let mut alpha = engine();
    alpha.set_redirection(&mailbox(JONES), Some(name(SMITH)));
    alpha.set_redirection(&mailbox(SMITH), Some(name(JONES)));
    let done = submit(&mut alpha, &submission(&[JONES]));
    assert_eq!(failed(&done), [(1, unable(27))]);
    let fields = &report(&done.accepted.entries[0]).content.recipients[0];
    assert_eq!(fields.actual_recipient, name(SMITH));
    assert_eq!(fields.intended_recipient, Some(name(JONES)));
    // To himself.
    alpha.set_redirection(&mailbox(JONES), Some(name(JONES)));
    assert_eq!(failed(&submit(&mut alpha, &submission(&[JONES]))), [(1, unable(27))]);
    // The originator's alternate ends it.
    let done = submit(&mut alpha, &with_alternate(JONES, BAKER));
    assert_eq!(only(&done.accepted.entries), (text(BAKER), vec![(text(JONES), 1)]));
}

#[test]
fn a_long_chain_of_redirections_ends_in_a_report() {
    let users: Vec<String> = (0..40).map(|n| format!("User{n}")).collect();
    let names: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut alpha = engine_of("alpha", "mta1", &[&names[..], &["Smith"]].concat(), &[]);
    let user = |n: usize| format!("C=XX;ADMD=;PRMD=alpha;S=User{n}");
    for n in 0..39 {
        alpha.set_redirection(&mailbox(&user(n)), Some(name(&user(n + 1))));
    }
    let done = submit(&mut alpha, &submission(&[&user(39 - MAX_HERE)]));
    let (last, history) = only(&done.accepted.entries);
    assert_eq!((last, history.len()), (text(&user(39)), MAX_HERE));
    assert_eq!(failed(&submit(&mut alpha, &submission(&[&user(0)]))), [(1, unable(27))]);
}

/// Alpha's Jones redirects to beta's Baker, and he back to Jones.
#[test]
fn two_sites_that_redirect_to_each_other_are_a_loop() {
    let (mut alpha, mut beta) = (engine(), engine_of("beta", "mta2", &["Baker"], &[("alpha", 0)]));
    alpha.set_redirection(&mailbox(JONES), Some(name(BAKER)));
    beta.set_redirection(&mailbox(BAKER), Some(name(JONES)));
    let done = submit(&mut alpha, &submission(&[JONES]));
    let there = received(&alpha, &done.accepted.entries[0]);
    let reported = beta.accept(at(1), there, &content(1000), &[]).accepted;
    let [entry] = &reported.entries[..] else { panic!("{reported:?}") };
    assert_eq!(failures(report(entry)), [(1, unable(27))]);
    let fields = &report(entry).content.recipients[0];
    assert_eq!(fields.intended_recipient, Some(name(JONES)));
    assert_eq!(fields.actual_recipient, name(BAKER));
}

#[test]
fn a_history_that_is_full_or_cannot_be_read_is_not_added_to() {
    let mut alpha = engine();
    let source = submit(&mut alpha, &submission(&[BAKER]));
    let mut beta = engine_of("beta", "mta2", &["Baker", "Other"], &[("alpha", 0)]);
    beta.set_redirection(&mailbox(BAKER), Some(name("C=XX;ADMD=;PRMD=beta;S=Other")));
    let mut full = Extensions::default();
    for _ in 0..512 {
        let (intended, time) = (name(CARTER), Time::from(at(0)));
        let one = Redirection { intended, time, reason: RedirectionReason::ALIAS };
        add_redirection(&mut full, one).unwrap();
    }
    let mut malformed = full.clone();
    malformed.0[0].value = bytes::Bytes::from_static(&[0x30, 2, 5, 0]);
    for extensions in [full, malformed] {
        let MtsApduHead::Message(mut e) = received(&alpha, &source.accepted.entries[0]) else {
            panic!()
        };
        e.recipients[0].extensions = extensions;
        let head = MtsApduHead::Message(e);
        let taken = beta.accept(at(1), head, &content(9), &[]).accepted;
        let [entry] = &taken.entries[..] else { panic!("{taken:?}") };
        assert_eq!(failures(report(entry)), [(1, unable(27))]);
    }
}

#[test]
fn a_copy_by_another_way_is_not_redirected_again() {
    let mut alpha = engine();
    let mut beta = engine_of("beta", "mta2", &["Baker", "Other"], &[("alpha", 0), ("gamma", 1)]);
    let other = "C=XX;ADMD=;PRMD=beta;S=Other";
    for to in [other, CARTER] {
        beta.set_redirection(&mailbox(BAKER), Some(name(to)));
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let mut relay = engine_of("zeta", "mta9", &[], &[("", 1)]);
        let there = relay.accept(at(5), head.clone(), &content(9), &[]).accepted;
        let round = received(&relay, &there.entries[0]);
        let first = beta.accept(at(6), head.clone(), &content(9), &[]).accepted;
        assert_eq!(only(&first.entries).0, text(to));
        let mut expected = vec![delivery_keys(&head)[0]];
        if to == other {
            expected.extend(delivery_keys(&first.entries[0].record.head));
        }
        let remembered: Vec<Digest> = first.seen.iter().map(|s| s.key).collect();
        assert_eq!(remembered.len(), expected.len());
        assert!(expected.iter().all(|key| remembered.contains(key)), "{to}");
        let look_up = |head: &MtsApduHead| -> Vec<Option<bytes::Bytes>> {
            let found = |key| first.seen.iter().find(|s| s.key == key).map(|s| s.record.clone());
            keys(head).into_iter().map(found).collect()
        };
        for copy in [round, head] {
            let seen = look_up(&copy);
            let again = beta.accept(at(7), copy, &content(9), &seen);
            assert_eq!(again.accepted, crate::Accepted::default(), "{to}");
        }
    }
}

#[test]
fn a_probe_is_redirected_as_a_message_is() {
    let mut alpha = engine();
    let like = with_alternate(NOBODY, JONES);
    let mut probe = p1::p3::ProbeSubmissionEnvelope {
        originator: like.originator,
        original_eits: None,
        content_type: like.content_type,
        content_identifier: None,
        content_length: Some(9),
        indicators: like.indicators,
        recipients: like.recipients,
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    probe.recipients[0].report_request = p1::flags::ReportRequest::Report;
    let done = alpha.submit_probe(at(0), &mailbox(SMITH), &probe).unwrap();
    let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert_eq!(failures(report(entry)), [(1, None)]);
    let fields = &report(entry).content.recipients[0];
    assert_eq!(fields.actual_recipient, name(JONES));
    assert_eq!(fields.intended_recipient, Some(name(NOBODY)));
}

#[test]
fn a_copy_that_is_given_up_goes_to_the_alternate() {
    let mut alpha = engine();
    let mut envelope = with_alternate(BAKER, JONES);
    envelope.recipients.extend(submission(&["C=XX;ADMD=;PRMD=beta;S=Other"]).recipients);
    let copy = submit(&mut alpha, &envelope).accepted.entries.remove(0);
    let later = at(30 * 3_600);
    let expired = alpha.expire(later, &copy.record);
    let (reason, diagnostic) =
        (NonDeliveryReason::UNABLE_TO_TRANSFER, Diagnostic::RECIPIENT_UNAVAILABLE);
    let refused = alpha.undeliverable(later, &copy.record, reason, diagnostic, "refused");
    let interrupted = alpha.untransferable(later, &copy.record, "interrupted");
    for (done, code) in [(expired, 5), (refused, 4), (interrupted, 14)] {
        let (copies, reports): (Vec<_>, Vec<_>) =
            done.entries.into_iter().partition(|e| e.record.kind() == RecordKind::Message);
        assert_eq!(only(&copies), (text(JONES), vec![(text(BAKER), 1)]));
        let new = &copies[0].record;
        assert_eq!((new.body, new.digest), (copy.record.body, copy.record.digest));
        assert_eq!((new.first_arrival, new.accepted), (later, copy.record.accepted));
        let (trace, e) = (&message(&new.head).trace, message(&new.head));
        assert_eq!(trace.len(), 1);
        assert_eq!(trace[0].additional.other_actions, OtherActions::REDIRECTED);
        assert_eq!(internal(&e.extensions).len(), 1);
        let [failed] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!(failures(report(failed)), [(2, unable(code))]);
        // Jones has it; a copy for Baker by another path is dropped.
        assert_eq!(done.seen.len(), 2);
        let kinds: Vec<_> = done.notes.iter().map(|n| n.kind).collect();
        assert_eq!(kinds, [NoteKind::Redirected, NoteKind::ReportMade]);
    }
    // Its content is lost: there is nothing to redirect.
    let damaged = alpha.damaged(later, &copy.record);
    let reported: Vec<u32> = failures(report(&damaged.entries[0])).iter().map(|f| f.0).collect();
    assert_eq!((damaged.entries.len(), reported), (1, vec![1, 2]));
}

#[test]
fn after_the_latest_delivery_time_nobody_gets_it() {
    let mut alpha = engine();
    let mut envelope = with_alternate(BAKER, JONES);
    let number = number::LATEST_DELIVERY_TIME;
    envelope.extensions.set(ExtensionField::standard(number, Criticality::default(), |w| {
        Time::from(at(60)).write_as(w, base::ber::universal::UTC_TIME);
    }));
    let copy = submit(&mut alpha, &envelope).accepted.entries.remove(0);
    let expired = alpha.expire(at(60), &copy.record);
    assert_eq!(failures(report(&expired.entries[0])), [(1, unable(5))]);
    // The MTA's own limit is another matter.
    let early = alpha.expire(at(59), &copy.record);
    assert_eq!(only(&early.entries).0, text(JONES));
}

#[test]
fn a_security_policy_holds_for_alternates_too() {
    let policy = Failure {
        reason: NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON,
        diagnostic: Some(Diagnostic::SECURITY_POLICY_VIOLATION),
        text: String::new(),
    };
    let mut alpha = engine();
    let done = submit(&mut alpha, &with_alternate(BAKER, JONES));
    let e = message(&done.accepted.entries[0].record.head).clone();
    let carried = Carried::Message(Box::new(e));
    let recipient = &carried.subject().recipients[0];
    let refused = Err(policy.clone());
    let labels = p1::ContentLabels::default();
    let measured = Measured { size: 9, labels: &labels };
    let (disposition, moved) = alpha.redirect(at(1), &carried, measured, recipient, refused);
    assert_eq!((disposition.unwrap_err(), moved), (policy.clone(), None));
    let forbidden = Some(Diagnostic::FORBIDDEN_ALTERNATE_RECIPIENT);
    assert_eq!(for_alternate(policy, true).diagnostic, forbidden);
}
