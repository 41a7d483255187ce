//! Indirect submission: what a user of the message store submits, and what comes back into his mailbox; and his
//! credentials.

use super::{NEW, items, queued, send};
use base::ber::{Element, Writer};
use base::{AssociationId, Precedence};
use node::PasswordProblem;
use node::event::Kind;
use osi::profiles::abstract_syntax;
use p1::bind::Credentials;
use p1::flags::ReportRequest;
use p1::p3::{
    ChangeCredentials, MessageSubmissionEnvelope, ProbeSubmissionEnvelope, SubmissionResult,
    operation,
};
use p7::operation::{LIST, ListArgument, ListResult, RegisterMsArgument};
use p7::{AttributeSelection, EntryType, attributes};
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, envelope, message_store};
use testkit::{Bench, Events};

/// What is in a mailbox: the types of its items, with the message that a report is about.
fn contents(bench: &mut Bench, id: AssociationId) -> Vec<(EntryType, Option<String>)> {
    let (kind, subject) =
        (attributes::ENTRY_TYPE.oid(), attributes::SUBJECT_SUBMISSION_IDENTIFIER.oid());
    let selected = [&kind, &subject].map(|oid| AttributeSelection::new(oid.clone())).to_vec();
    let argument = ListArgument { requested_attributes: Some(selected), ..<_>::default() };
    let invoke = bench.retrieve(id, LIST, |w| argument.write(w));
    let octets = bench.result_of(id, invoke).expect("a result");
    let result = ListResult::read(&Element::parse(octets).expect("BER")).expect("a list");
    let read = |entry: &p7::EntryInformation| {
        let kind = entry.attribute(&kind).expect("a type").values[0].integer().expect("a number");
        let subject = entry.attribute(&subject);
        let subject = subject.map(|a| a.values[0].mts_identifier().expect("one").to_string());
        (EntryType(kind), subject)
    };
    result.requested.iter().map(read).collect()
}

fn result(bench: &Bench, id: AssociationId, invoke: i64) -> SubmissionResult {
    assert_eq!(bench.answer_to(id, invoke), Some(ClientAnswer::Result));
    let octets = bench.result_of(id, invoke).expect("a result");
    SubmissionResult::read(&Element::parse(octets).expect("BER")).expect("a result")
}

fn reporting(to: &[&str]) -> MessageSubmissionEnvelope {
    let mut envelope = envelope("LOG", to, Precedence::Routine);
    for recipient in &mut envelope.recipients {
        recipient.report_request = ReportRequest::Report;
    }
    envelope
}

#[test]
fn a_submission_has_its_result_and_the_reports_come_into_the_mailbox() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    let invoke = bench.submit_whole(log, &reporting(&["OPS", "NOBODY"]), b"content");
    let identifier = result(&bench, log, invoke).identifier.to_string();
    assert_eq!(contents(&mut bench, ops), [(EntryType::DELIVERED_MESSAGE, None)]);
    let report = (EntryType::DELIVERED_REPORT, Some(identifier));
    assert_eq!(contents(&mut bench, log), [report.clone(), report]);
    assert_eq!((queued(&bench), bench.count(Kind::NonDelivery)), (0, 1));
    let again = bench.submit_whole(log, &reporting(&["OPS", "NOBODY"]), b"content");
    result(&bench, log, again);
}

#[test]
fn a_user_may_write_to_himself() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    let invoke = bench.submit_whole(log, &reporting(&["LOG"]), b"note");
    result(&bench, log, invoke);
    let kinds: Vec<EntryType> = contents(&mut bench, log).into_iter().map(|(k, _)| k).collect();
    assert_eq!(kinds.len(), 2);
    assert!(kinds.contains(&EntryType::DELIVERED_MESSAGE));
    assert!(kinds.contains(&EntryType::DELIVERED_REPORT));
}

#[test]
fn nobody_submits_in_the_name_of_another() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    let forged = envelope("OPS", &["OPS"], Precedence::Routine);
    let invoke = bench.submit_whole(log, &forged, b"forged");
    assert!(matches!(bench.answer_to(log, invoke), Some(ClientAnswer::Error(_))));
    assert_eq!((items(&bench), queued(&bench)), (0, 0));
    let invoke = bench.submit_whole(log, &envelope("LOG", &["OPS"], Precedence::Routine), b"own");
    result(&bench, log, invoke);
}

#[test]
fn a_probe_is_answered_and_reported_into_the_mailbox() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    let model = reporting(&["OPS", "NOBODY"]);
    let probe = ProbeSubmissionEnvelope {
        originator: model.originator.clone(),
        original_eits: None,
        content_type: model.content_type.clone(),
        content_identifier: None,
        content_length: Some(1_000),
        indicators: Default::default(),
        recipients: model.recipients,
        extensions: Default::default(),
        unknown: Vec::new(),
    };
    let mut w = Writer::new();
    probe.write(&mut w);
    let operation = (abstract_syntax::msse(), operation::PROBE_SUBMISSION);
    let invoke = bench.invoke(log, operation, w.into_vec());
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
    let contents = contents(&mut bench, log);
    assert!(!contents.is_empty());
    assert!(contents.iter().all(|(kind, _)| *kind == EntryType::DELIVERED_REPORT), "{contents:?}");
    let ops = bench.reader("OPS");
    assert_eq!(bench.summarized(ops), 0, "a probe is not delivered");
}

#[test]
fn a_deferred_message_is_cancelled_over_the_same_association() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    let mut deferred = reporting(&["OPS"]);
    let at = bench.clock().utc + Duration::from_hours(1);
    deferred.deferred_delivery_time = Some(p1::time::Time::from(at));
    let submissions = [b"one", b"two"].map(|c| bench.submit_whole(log, &deferred, c));
    let first = result(&bench, log, submissions[0]).identifier;
    let mut w = Writer::new();
    first.write(&mut w);
    let cancel = (abstract_syntax::msse(), operation::CANCEL_DEFERRED_DELIVERY);
    let invoke = bench.invoke(ops, cancel.clone(), w.as_slice().to_vec());
    assert!(matches!(bench.answer_to(ops, invoke), Some(ClientAnswer::Error(_))), "another's");
    let invoke = bench.invoke(log, cancel, w.into_vec());
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
    assert_eq!(bench.summarized(ops), 0);
    bench.pass(Duration::from_secs(3_700));
    assert_eq!(bench.states(ops), [(1, NEW)]);
    let invoke = bench.fetch(ops, 1);
    assert_eq!(bench.fetched(ops, invoke).as_deref(), Some(&b"two"[..]));
    assert_eq!(bench.summarized(log), 1, "the report");
}

#[test]
fn a_submission_whose_client_is_lost_is_accepted_or_not_at_all() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    bench.store.withholds = true;
    bench.submit_whole(log, &reporting(&["OPS"]), b"content");
    bench.close(log);
    bench.store.withholds = false;
    while let Some(commit) = bench.store.take_commit() {
        bench.finish_commit(commit, Ok(()));
    }
    assert_eq!(bench.summarized(ops), 1);
    let log = bench.reader("LOG");
    assert_eq!(bench.summarized(log), 1, "the report came into the mailbox");
    assert_eq!((queued(&bench), bench.node.holds().arrivals), (0, 0));
}

// ----- credentials -------------------------------------------------------------------------------

fn change(old: &'static str, new: &'static str) -> RegisterMsArgument {
    let credentials = |text: &'static str| Credentials::simple(text);
    let change = ChangeCredentials { old: credentials(old), new: credentials(new) };
    RegisterMsArgument { change_credentials: Some(change), ..RegisterMsArgument::default() }
}

#[test]
fn a_user_changes_his_password_with_register_ms() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    bench.changes = |mailbox, old| {
        assert!(mailbox.contains("ops"), "{mailbox}");
        if old.0 == "secret" { Ok(()) } else { Err(PasswordProblem::Old) }
    };
    let invoke = bench.register(ops, &change("guess", "new"));
    assert!(matches!(bench.answer_to(ops, invoke), Some(ClientAnswer::Error(_))));
    assert_eq!(bench.changed.len(), 0);
    let invoke = bench.register(ops, &change("secret", "new"));
    assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Result));
    let changed: Vec<&[u8]> = bench.changed.iter().map(|(_, new)| &new.0[..]).collect();
    assert_eq!(changed, [b"new"]);
    assert_eq!(bench.outcome(ops), Outcome::Open, "who is bound stays bound");
    send(&mut bench, log, Precedence::Routine, b"one");
    assert_eq!(bench.states(ops), [(1, NEW)]);
    assert!(bench.last(Kind::Reconfigured).detail.contains("changed the password"));
}

#[test]
fn a_user_changes_his_password_with_the_operation_of_p3() {
    let mut bench = message_store(|_| {});
    let ops = bench.reader("OPS");
    bench.changes = |_, old| if old.0 == "secret" { Ok(()) } else { Err(PasswordProblem::Old) };
    for (old, changed) in [("guess", 0), ("secret", 1)] {
        let change = change(old, "new").change_credentials.expect("a change");
        let mut w = Writer::new();
        change.write(&mut w);
        let operation = (abstract_syntax::mase_88(), operation::CHANGE_CREDENTIALS);
        let invoke = bench.invoke(ops, operation, w.into_vec());
        let is_result = bench.answer_to(ops, invoke) == Some(ClientAnswer::Result);
        assert_eq!((is_result, bench.changed.len()), (changed == 1, changed));
    }
    assert_eq!(bench.summarized(ops), 0);
}

#[test]
fn a_new_password_that_cannot_be_stored_is_an_error_of_its_own() {
    let mut bench = message_store(|_| {});
    let ops = bench.reader("OPS");
    let wrong = {
        bench.changes = |_, _| Err(PasswordProblem::Old);
        let invoke = bench.register(ops, &change("guess", "new"));
        bench.answer_to(ops, invoke)
    };
    bench.changes = |_, _| Err(PasswordProblem::Failed(node::EdgeError("disk".to_owned())));
    let invoke = bench.register(ops, &change("secret", "new"));
    let failed = bench.answer_to(ops, invoke);
    assert!(
        matches!((wrong, failed), (Some(ClientAnswer::Error(a)), Some(ClientAnswer::Error(b))) if a != b)
    );
    assert_eq!(bench.summarized(ops), 0);
}

/// All of one register-MS, or nothing of it.
#[test]
fn a_registration_beside_a_wrong_password_is_not_made() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    bench.changes = |_, old| if old.0 == "secret" { Ok(()) } else { Err(PasswordProblem::Old) };
    for (password, alerts) in [("guess", 0), ("secret", 1)] {
        let mut argument = change(password, "new");
        argument.auto_action_registrations =
            vec![p7::auto_action::AutoAlert::default().registration(1)];
        bench.register(ops, &argument);
        send(&mut bench, log, Precedence::Routine, b"one");
        assert_eq!(bench.alerts(ops).len(), alerts, "{password}");
    }
}
