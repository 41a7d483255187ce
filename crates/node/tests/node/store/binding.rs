//! Binds to the message store: who may, and what the result has.

use super::{items, send, send_to};
use base::Precedence;
use node::Input;
use node::config::Limits;
use node::event::Kind;
use p7::Restrictions;
use p7::attributes;
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, P7, message_store, user_address};
use testkit::build::{canonical, content};
use testkit::{Bench, Events};

fn refused(problem: &str) -> Outcome {
    Outcome::Refused(problem.to_owned())
}

#[test]
fn a_user_binds_with_his_password_and_nobody_else_does() {
    let mut bench = message_store(|_| {});
    let ops = bench.reader("OPS");
    assert_eq!(bench.outcome(ops), Outcome::Open);
    let bound = bench.store_bound(ops);
    assert!(!bound.alert_indication);
    assert!(bound.available_attribute_types.is_empty(), "he did not ask for them");
    let asks = bench.reader_with("OPS", "secret", |bind| bind.ms_configuration_request = true);
    let configuration = bench.store_bound(asks).available_attribute_types;
    assert!(configuration.contains(&attributes::CONTENT.oid()));
    for (surname, password) in [("OPS", "guess"), ("NOBODY", "secret")] {
        let id = bench.reader_with(surname, password, |_| {});
        assert_eq!(bench.outcome(id), refused("authentication-error"), "{surname}");
    }
    let refusals = bench.details(Kind::AssociationRefused);
    assert!(refusals.iter().all(|line| line.contains("X.413 7.1.5")), "{refusals:?}");
    assert_eq!(bench.summarized(ops), 0, "who is bound is served");
}

#[test]
fn a_security_context_is_refused_whatever_the_password() {
    let mut bench = message_store(|_| {});
    for password in ["secret", "guess"] {
        let id = bench.reader_with("OPS", password, |bind| {
            bind.security_context = Some(vec![0xa3, 5, 0x31, 3, 6, 1, 42].into());
        });
        assert_eq!(bench.outcome(id), refused("unacceptable-security-context"));
    }
}

#[test]
fn too_many_wrong_passwords_are_not_looked_at() {
    let mut bench = message_store(|config| config.limits.failures = 3);
    for _ in 0..3 {
        bench.reader_with("OPS", "guess", |_| {});
    }
    let verified = bench.verified;
    let id = bench.reader("OPS");
    assert_eq!(bench.outcome(id), refused("unable-to-establish-association"));
    assert_eq!(bench.verified, verified);
    let log = bench.reader("LOG");
    assert_eq!(bench.outcome(log), Outcome::Open);
}

/// He finds what was delivered while he had a mailbox, and what comes now is delivered over P3.
#[test]
fn a_user_whose_delivery_is_p3_binds_and_his_messages_do_not_go_into_the_mailbox() {
    let mut bench = message_store(|_| {});
    let plans = bench.reader("PLANS");
    assert_eq!(bench.outcome(plans), Outcome::Open);
    let log = bench.reader("LOG");
    send_to(&mut bench, log, "PLANS", Precedence::Routine, b"over P3");
    assert_eq!((bench.summarized(plans), items(&bench)), (0, 0));
    let over_p3 = bench.user("192.0.2.9", "PLANS", "secret");
    bench.settle();
    assert_eq!((bench.outcome(over_p3), bench.script.delivered), (Outcome::Open, 1));
    assert_eq!(bench.summarized(plans), 0);
}

#[test]
fn fetch_restrictions_of_the_bind_hold_for_its_association_alone() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    send(&mut bench, log, Precedence::Routine, &content(1, 1_000));
    let other = attributes::content_type_oid(&p1::content_type::ContentType::p772());
    let restrictions = [
        Restrictions { allowed_content_types: other.into_iter().collect(), ..<_>::default() },
        Restrictions { maximum_attribute_length: Some(999), ..<_>::default() },
        Restrictions { maximum_attribute_length: Some(-1), ..<_>::default() },
        Restrictions { maximum_attribute_length: Some(i64::MIN), ..<_>::default() },
    ];
    for restrictions in restrictions {
        let restricted =
            bench.reader_with("OPS", "secret", |b| b.fetch_restrictions = Some(restrictions));
        let invoke = bench.fetch(restricted, 1);
        assert_eq!(bench.answer_to(restricted, invoke), Some(ClientAnswer::Error(24)));
        assert_eq!(bench.states(restricted).len(), 1, "a list is not restricted");
    }
    let free = bench.reader("OPS");
    assert_eq!(bench.states(free), [(1, super::LISTED)], "a refused fetch leaves the status");
    let invoke = bench.fetch(free, 1);
    assert_eq!(bench.fetched(free, invoke), Some(content(1, 1_000)));
}

/// A bench whose commits wait, so that a mailbox is not opened yet.
fn slow_to_open(limits: impl FnOnce(&mut Limits)) -> Bench {
    let mut bench = message_store(|config| limits(&mut config.limits));
    bench.store.withholds = true;
    bench
}

fn go_on(bench: &mut Bench) {
    bench.store.withholds = false;
    while let Some(commit) = bench.store.take_commit() {
        bench.finish_commit(commit, Ok(()));
    }
}

#[test]
fn the_limit_of_a_user_holds_for_binds_that_wait_for_the_mailbox() {
    let mut bench = slow_to_open(|limits| limits.associations_per_user = 2);
    let all: Vec<_> = (0..4).map(|_| bench.reader("OPS")).collect();
    assert_eq!(bench.outcome(all[1]), Outcome::Nothing, "it waits");
    go_on(&mut bench);
    let outcomes: Vec<_> = all.iter().map(|id| bench.outcome(*id)).collect();
    let busy = refused("unable-to-establish-association");
    assert_eq!(outcomes, [Outcome::Open, Outcome::Open, busy.clone(), busy]);
    bench.close(all[0]);
    let next = bench.reader("OPS");
    assert_eq!(bench.outcome(next), Outcome::Open, "a place is free again");
}

#[test]
fn who_has_another_password_meanwhile_does_not_bind_with_the_old_one() {
    for removed in [false, true] {
        let mut bench = slow_to_open(|_| {});
        let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
        let address = canonical(&user_address("OPS"));
        let mut addresses = bench.config.mailboxes.clone();
        addresses.retain(|a| !removed || *a != address);
        let stored = bench.config.store.users.clone();
        bench.feed(Input::Mailboxes { addresses, stored, changed: vec![address] });
        go_on(&mut bench);
        assert_ne!(bench.outcome(ops), Outcome::Open, "{removed}");
        assert_eq!(bench.outcome(log), Outcome::Open);
    }
}

#[test]
fn a_mailbox_that_cannot_be_opened_refuses_the_bind_and_the_next_one_opens_it() {
    let mut bench = slow_to_open(|_| {});
    let ops = bench.reader("OPS");
    let commit = bench.store.take_commit().expect("the commit of its number");
    bench.finish_commit(commit, Err("no space left on device".to_owned()));
    assert_eq!(bench.outcome(ops), refused("unable-to-establish-association"));
    go_on(&mut bench);
    let ops = bench.reader("OPS");
    assert_eq!(bench.outcome(ops), Outcome::Open);
}

#[test]
fn a_bind_that_waits_too_long_for_its_mailbox_ends_and_leaves_nothing() {
    let mut bench = slow_to_open(|_| {});
    let ops = bench.reader("OPS");
    bench.pass(bench.config.limits.bind_timeout + Duration::from_secs(10));
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)), "{:?}", bench.outcome(ops));
    go_on(&mut bench);
    assert_eq!(bench.node.holds().associations, 0);
    assert!(!bench.is_connected(ops));
    let silent = bench.connect(P7, "192.0.2.78");
    bench.pass(bench.config.limits.bind_timeout + Duration::from_secs(10));
    assert!(bench.closed.contains(&silent));
}
