//! auto-forward: the forwarded message is in the commit of the delivery, and nothing is deleted that was not forwarded.

use super::{items, queued};
use base::{AssociationId, Precedence};
use node::event::Kind;
use p1::content_type::ContentType;
use p1::names::ORName;
use p1::p3::PerRecipientSubmissionFields;
use p7::auto_forward::{AutoForward, AutoForwardArguments};
use p7::operation::RegisterMsArgument;
use p772::{ContentBuilder, Heading, IpmIdentifier, RecipientSpecifier};
use testkit::bench::{ClientAnswer, envelope, message_store, user_address};
use testkit::{Bench, Events};

fn name(surname: &str) -> ORName {
    user_address(surname).parse().expect("an address")
}

/// OPS lets the store forward to these.
fn forwards(bench: &mut Bench, ops: AssociationId, to: &[ORName], delete_after: bool) {
    let fields = |to: &ORName| PerRecipientSubmissionFields {
        recipient: to.clone(),
        ..PerRecipientSubmissionFields::default()
    };
    let arguments = AutoForwardArguments {
        originator: name("OPS"),
        recipients: to.iter().map(fields).collect(),
        ..AutoForwardArguments::default()
    };
    let forward = AutoForward { arguments, delete_after, ..AutoForward::default() };
    let argument = RegisterMsArgument {
        auto_action_registrations: vec![forward.registration(1)],
        ..RegisterMsArgument::default()
    };
    let invoke = bench.register(ops, &argument);
    assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Result));
}

/// LOG sends OPS a message that asks for a notification of non-receipt; its content.
fn send(bench: &mut Bench, log: AssociationId) -> Vec<u8> {
    let mut ops = RecipientSpecifier::from(name("OPS"));
    ops.notification_requests.non_receipt = true;
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "M1".to_owned() },
        originator: Some(name("LOG").into()),
        primary_recipients: vec![ops],
        ..Heading::default()
    };
    let content = ContentBuilder::new(&heading).expect("a heading").text("the text").finish();
    let mut envelope = envelope("LOG", &["OPS"], Precedence::Flash);
    envelope.content_type = ContentType::P22;
    let invoke = bench.submit_whole(log, &envelope, &content);
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
    content
}

/// The contents of a mailbox, by number.
fn contents(bench: &mut Bench, id: AssociationId) -> Vec<Vec<u8>> {
    let numbers: Vec<u32> = bench.states(id).into_iter().map(|(number, _)| number).collect();
    let fetch = |number| {
        let invoke = bench.fetch(id, number);
        bench.fetched(id, invoke).expect("a content")
    };
    numbers.into_iter().map(fetch).collect()
}

#[test]
fn a_message_is_forwarded_whole_and_kept() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    forwards(&mut bench, ops, &[name("LOG")], false);
    let content = send(&mut bench, log);
    assert_eq!(contents(&mut bench, ops), std::slice::from_ref(&content));
    let forwarded = contents(&mut bench, log);
    // What is behind the outermost header of the content.
    assert!(forwarded.len() == 1 && forwarded[0].ends_with(&content[2..]), "{forwarded:?}");
    assert_eq!(queued(&bench), 0);
}

#[test]
fn a_message_is_forwarded_and_deleted_with_one_notification() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    forwards(&mut bench, ops, &[name("LOG")], true);
    let content = send(&mut bench, log);
    assert_eq!(contents(&mut bench, ops), [[0u8; 0]; 0]);
    let came = contents(&mut bench, log);
    let copies = came.iter().filter(|came| came.ends_with(&content[2..]));
    assert_eq!((copies.count(), came.len()), (1, 2), "a copy and the notification");
    assert_eq!((queued(&bench), items(&bench)), (0, 2));
}

#[test]
fn what_cannot_be_forwarded_is_not_deleted_and_nobody_is_notified() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    // No administration domain: the MTA refuses the submission.
    let nobody = "/C=XX/PRMD=ACT/S=OPS".parse().expect("an address");
    forwards(&mut bench, ops, &[nobody], true);
    let content = send(&mut bench, log);
    assert_eq!(contents(&mut bench, ops), [content]);
    assert_eq!(contents(&mut bench, log), [[0u8; 0]; 0]);
    assert_eq!(bench.count(Kind::SubmissionRefused), 1);
    assert_eq!((queued(&bench), items(&bench)), (0, 1));
}
