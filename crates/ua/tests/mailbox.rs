//! A user on a mailbox, over TCP on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

mod common;

use base::Precedence::{Flash, Override, Priority, Routine};
use base::Utc;
use common::{JONES, TestStore};
use p1::bind::{Password, PasswordForm};
use p1::names::{GlobalDomainId, MtsIdentifier};
use p1::p3::{AccessError, ProbeSubmissionEnvelope};
use p7::bind::BindProblem;
use p7::{MsError, SequenceNumber};
use std::time::Duration;
use ua::store::{BindRefused, Find, Kind, Order, Pages, Status, Store, StoreError};
use ua::{Clock, Interrupted, Message};

async fn numbers(store: &mut Store, find: &Find, order: Order, size: u32) -> Vec<u32> {
    let mut pages = Pages::new(find, order, size);
    let mut numbers = Vec::new();
    loop {
        let page = store.next_page(&mut pages).await.unwrap();
        assert!(page.len() <= size as usize);
        if page.is_empty() {
            assert!(pages.is_done());
            return numbers;
        }
        numbers.extend(page.iter().map(|entry| entry.number));
    }
}

#[tokio::test]
async fn a_mailbox_is_listed_by_arrival_and_by_precedence_in_pages() {
    let server = TestStore::start().await;
    for level in [Routine, Flash, Priority, Override, Routine, Flash] {
        server.deliver(level, "Exercise", 10);
    }
    let mut store = server.bind().await;
    for size in [1, 2, 4, 50] {
        let arrival = numbers(&mut store, &Find::new(), Order::Arrival, size).await;
        assert_eq!(arrival, [1, 2, 3, 4, 5, 6]);
        let precedence = numbers(&mut store, &Find::new(), Order::Precedence, size).await;
        assert_eq!(precedence, [4, 2, 6, 3, 1, 5]);
    }
    let high = Find::new().at_least(Flash);
    assert_eq!(numbers(&mut store, &high, Order::Arrival, 2).await, [2, 4, 6]);
    assert_eq!(numbers(&mut store, &high.clone().subject("none"), Order::Arrival, 2).await, [0; 0]);
    let summary = store.summarize(&high, &[p7::attributes::PRIMARY_PRECEDENCE]).await.unwrap();
    assert_eq!((summary.count, summary.span), (3, Some((2, 6))));
    let counts: Vec<u64> = summary.attributes[0].present.iter().map(|(_, n)| *n).collect();
    assert_eq!(counts, [2, 1]);
    store.check().await.unwrap();
    store.unbind().await.unwrap();
}

#[tokio::test]
async fn an_entry_has_the_fields_of_its_message_and_its_status_ascends() {
    let server = TestStore::start().await;
    server.deliver(Flash, "Fire in the harbour", 1_000);
    server.deliver_report(Routine);
    let mut store = server.bind().await;
    let listed = store.list(Default::default()).await.unwrap();
    let [message, report] = listed.entries.as_slice() else { panic!("{listed:?}") };
    assert_eq!(
        (message.kind, message.status, report.kind),
        (Kind::Message, Status::New, Kind::Report)
    );
    assert_eq!(
        (message.precedence, message.subject.as_deref()),
        (Some(Flash), Some("Fire in the harbour"))
    );
    let (from, to) = (message.originator.as_ref().unwrap(), message.recipient.as_ref().unwrap());
    assert!(from.to_string().contains("Smith") && to.to_string().contains("Jones"), "{from} {to}");
    assert!(message.identifier.is_some() && report.identifier.is_some());
    assert!(message.size > Some(1_000) && message.time().is_some());
    assert!(message.unreadable.is_empty() && report.unreadable.is_empty(), "{listed:?}");
    let opened = store.open(1).await.unwrap();
    assert_eq!(opened.entry.status, Status::Listed);
    assert_eq!(opened.envelope.unwrap().identifier, message.identifier.clone().unwrap());
    assert!(opened.report.is_none());
    let opened = store.open(2).await.unwrap();
    assert_eq!(opened.report.unwrap().subject_identifier, report.identifier.clone().unwrap());
    assert!(opened.envelope.is_none());
    assert_eq!(store.open(1).await.unwrap().entry.status, Status::Processed);
    let new = Find::new().status(Status::New);
    assert_eq!(numbers(&mut store, &new, Order::Arrival, 9).await, [0; 0]);
    let reports = Find::new().kind(Kind::Report);
    assert_eq!(numbers(&mut store, &reports, Order::Arrival, 9).await, [2]);
    let about = Find::new().reports_about(report.identifier.as_ref().unwrap());
    assert_eq!(numbers(&mut store, &about, Order::Arrival, 9).await, [2]);
    let of = Find::new().originator(from);
    assert_eq!(numbers(&mut store, &of, Order::Arrival, 9).await, [1]);
    let later = Find::new().since(Utc(1_900_000_000_000_000));
    assert_eq!(numbers(&mut store, &later, Order::Arrival, 9).await, [0; 0]);
}

#[tokio::test]
async fn a_content_of_10_megabytes_arrives_whole() {
    let server = TestStore::start().await;
    server.deliver(Routine, "Large", 10 << 20);
    let mut store = server.bind().await;
    let mut content = Vec::new();
    let fetched = store.fetch(1, &mut content, 11 << 20).await.unwrap();
    assert_eq!(
        (fetched.octets, fetched.entry.size),
        (content.len() as u64, Some(content.len() as u64))
    );
    assert!(content.len() > 10 << 20 && content.ends_with(b"xxxx"));
    let error = store.fetch(9, &mut std::io::sink(), 9).await.unwrap_err();
    let StoreError::Operation(MsError::SequenceNumber(problems)) = &error else {
        panic!("{error}")
    };
    assert_eq!(problems[0].1, SequenceNumber(9));
    assert!(!error.is_final());
    let subject = store.attributes(1, &[p7::attributes::SUBJECT]).await.unwrap();
    assert_eq!(subject.attributes, [p7::attributes::subject("Large")]);
}

#[tokio::test]
async fn entries_are_deleted_by_number_and_by_range() {
    let server = TestStore::start().await;
    (0..6).for_each(|_| _ = server.deliver(Routine, "Exercise", 10));
    let mut store = server.bind().await;
    store.delete(&[2, 4]).await.unwrap();
    let error = store.delete(&[1, 2]).await.unwrap_err();
    assert!(matches!(error, StoreError::Operation(MsError::SequenceNumber(_))), "{error}");
    assert_eq!(numbers(&mut store, &Find::new(), Order::Arrival, 9).await, [1, 3, 5, 6]);
    store.delete_range(2, 5).await.unwrap();
    assert_eq!(numbers(&mut store, &Find::new(), Order::Arrival, 9).await, [1, 6]);
}

#[tokio::test]
async fn a_store_of_1994_is_used_alike() {
    let server = TestStore::start().await;
    server.deliver(Routine, "Exercise", 100);
    let login = ua::Login { edition: ua::Edition::Of1994, ..server.login() };
    let mut store =
        Store::bind(&login, None, Clock::start(), Interrupted::default()).await.unwrap();
    store.register_alert(1, Find::new().at_least(Flash).filter()).await.unwrap();
    server.deliver(Flash, "Fire", 100);
    let alert = store.alert(Some(Duration::from_secs(20))).await.unwrap().unwrap();
    assert_eq!(alert.entry.unwrap().number, 2);
    assert_eq!(numbers(&mut store, &Find::new(), Order::Precedence, 50).await, [2, 1]);
    let mut content = Vec::new();
    store.fetch(2, &mut content, 1 << 20).await.unwrap();
    assert!(!content.is_empty());
    let jones: p1::names::ORName = JONES.parse().unwrap();
    let message = Message::canned(jones.clone(), vec![jones], Flash, 100, "REF1");
    store.submit(&message.envelope(), &message.content().unwrap()).await.unwrap();
    store.delete(&[1]).await.unwrap();
    assert_eq!(numbers(&mut store, &Find::new(), Order::Arrival, 50).await, [2]);
    assert!(server.shared.lock().unwrap().world.access.is_1994);
    store.unbind().await.unwrap();
}

#[tokio::test]
async fn an_alert_wakes_who_waits_and_none_is_lost_meanwhile() {
    let server = TestStore::start().await;
    let mut store = server.bind().await;
    store.register_alert(7, Find::new().at_least(Flash).filter()).await.unwrap();
    assert_eq!(store.alert(Some(Duration::from_millis(10))).await.unwrap(), None);
    server.deliver(Routine, "Not this", 10);
    // The future of a wait is dropped, as a user interface does with each key.
    for _ in 0..20 {
        let _ = tokio::time::timeout(Duration::from_millis(1), store.alert(None)).await;
    }
    server.deliver(Flash, "First", 10);
    let alert = tokio::time::timeout(Duration::from_secs(5), store.alert(None)).await;
    let alert = alert.unwrap().unwrap().unwrap();
    let entry = alert.entry.unwrap();
    assert_eq!((alert.registration, entry.number), (7, 2));
    assert_eq!((entry.subject.as_deref(), entry.precedence), (Some("First"), Some(Flash)));
    server.deliver(Flash, "Second", 10);
    server.deliver(Override, "Third", 10);
    while store.open(3).await.is_err() {}
    let mut taken = store.take_alerts();
    while taken.len() < 2 {
        taken.push(store.alert(Some(Duration::from_secs(5))).await.unwrap().unwrap());
    }
    let mut subjects: Vec<_> = taken.into_iter().filter_map(|a| a.entry?.subject).collect();
    subjects.sort();
    assert_eq!(subjects, ["Second", "Third"]);
    store.deregister_alert(7).await.unwrap();
    server.deliver(Flash, "Not this", 10);
    store.check().await.unwrap();
    assert_eq!(store.alert(Some(Duration::from_millis(20))).await.unwrap(), None);
    let error = store.deregister_alert(7).await.unwrap_err();
    assert!(matches!(error, StoreError::Operation(MsError::AutoActionRequest(_))), "{error}");
}

#[tokio::test]
async fn a_wait_is_interrupted() {
    let server = TestStore::start().await;
    let interrupted = Interrupted::default();
    let mut store = server.try_bind(interrupted.clone()).await.unwrap();
    let later = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        interrupted.set();
    };
    let (alert, ()) = tokio::join!(store.alert(None), later);
    assert_eq!(alert.unwrap(), None);
    let error = store.list(Default::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Interrupted), "{error}");
    // The list has no answer.
    store.unbind().await.unwrap();
    assert!(matches!(server.try_bind(interrupted).await, Err(StoreError::Interrupted)));
}

#[tokio::test]
async fn a_refused_bind_names_the_reason() {
    let server = TestStore::start().await;
    let mut login = server.login();
    login.password = Password::new("wrong", PasswordForm::Ia5);
    let bind = async |login| match Store::bind(&login, None, Clock::start(), Interrupted::default())
        .await
    {
        Ok(_) => panic!("bound"),
        Err(error) => error,
    };
    let error = bind(login).await;
    assert!(matches!(error, StoreError::Refused(BindRefused::Credentials)), "{error}");
    for (problem, expected) in [
        (BindProblem::UNABLE_TO_ESTABLISH_ASSOCIATION, BindRefused::Busy),
        (BindProblem::UNACCEPTABLE_SECURITY_CONTEXT, BindRefused::SecurityContext),
        (BindProblem(9), BindRefused::Other("9".to_owned())),
    ] {
        server.shared.lock().unwrap().refuses = Some(problem);
        let error = bind(server.login()).await;
        assert!(matches!(&error, StoreError::Refused(why) if *why == expected), "{error}");
    }
    let mut nobody = server.login();
    nobody.mta = "127.0.0.1:1".to_owned();
    assert!(matches!(bind(nobody).await, StoreError::NotConnected(_)));
}

#[tokio::test]
async fn a_password_is_changed() {
    let server = TestStore::start().await;
    let mut store = server.bind().await;
    let password = |text: &'static str| Password::new(text, PasswordForm::Ia5);
    let error = store.change_password(&password("wrong"), &password("etna")).await.unwrap_err();
    let old = MsError::Access(AccessError::OldCredentialsIncorrectlySpecified);
    assert!(matches!(&error, StoreError::Operation(e) if *e == old), "{error}");
    store.change_password(&password("vesuvio"), &password("etna")).await.unwrap();
    store.unbind().await.unwrap();
    assert!(server.try_bind(Interrupted::default()).await.is_err());
}

#[tokio::test]
async fn messages_and_probes_are_submitted_and_cancelled_on_the_same_association() {
    let server = TestStore::start().await;
    let mut store = server.bind().await;
    let jones: p1::names::ORName = JONES.parse().unwrap();
    for size in [0, 100, 300_000] {
        let message = Message::canned(jones.clone(), vec![jones.clone()], Flash, size, "REF1");
        let envelope = message.envelope();
        let content = message.content().unwrap();
        let accepted = store.submit(&envelope, &content).await.unwrap();
        let submitted = server.shared.lock().unwrap().submitted.clone();
        assert_eq!(accepted.identifier.local, format!("S{}", submitted.len()));
        let mut argument = envelope.argument_head(content.len());
        argument.extend_from_slice(&content.head);
        let body = content.source.len() as usize;
        let arrived = submitted.last().unwrap();
        assert_eq!(
            (&arrived[..argument.len()], arrived.len()),
            (&argument[..], argument.len() + body)
        );
    }
    let probe = ProbeSubmissionEnvelope {
        originator: jones.clone(),
        original_eits: None,
        content_type: p1::content_type::ContentType::p772(),
        content_identifier: None,
        content_length: Some(10),
        indicators: Default::default(),
        recipients: vec![p1::p3::PerRecipientSubmissionFields {
            recipient: jones,
            ..Default::default()
        }],
        extensions: Default::default(),
        unknown: Vec::new(),
    };
    assert_eq!(store.probe(&probe).await.unwrap().identifier.local, "S4");
    let domain = GlobalDomainId::new("XX", " ", Some("alpha"));
    let identifier = MtsIdentifier { domain: domain.clone(), local: "S1".to_owned() };
    store.cancel(&identifier).await.unwrap();
    assert_eq!(server.shared.lock().unwrap().cancelled, [identifier]);
    let gone = MtsIdentifier { domain, local: "gone".to_owned() };
    let error = store.cancel(&gone).await.unwrap_err();
    let rejected = MsError::Access(AccessError::DeferredDeliveryCancellationRejected);
    assert!(matches!(&error, StoreError::Operation(e) if *e == rejected), "{error}");
}

#[tokio::test]
async fn an_operation_that_is_abandoned_does_not_disturb_the_next() {
    let server = TestStore::start().await;
    server.deliver(Routine, "Large", 3 << 20);
    server.deliver(Flash, "Small", 10);
    let mut store = server.bind().await;
    for wait in [0, 1, 3, 10] {
        let wait = Duration::from_millis(wait);
        let _ = tokio::time::timeout(wait, store.fetch(1, &mut std::io::sink(), 9 << 20)).await;
        let listed = store.list(Default::default()).await.unwrap();
        assert_eq!(listed.entries.len(), 2);
    }
    assert_eq!(store.open(2).await.unwrap().entry.subject.as_deref(), Some("Small"));
}

/// A task of a runtime with many threads can have one.
#[test]
fn a_store_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let login = |store: &'static mut Store| async move {
        is_send(&store.list(Default::default()));
        is_send(&store.fetch(1, &mut std::io::sink(), 1));
        is_send(&store.alert(None));
    };
    let _ = login;
}
