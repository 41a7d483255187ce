//! Changes while users read and messages come: of their delivery, of the listeners; and an orderly stop.

use super::{NEW, items, queued, send, send_to};
use base::{AssociationId, Precedence};
use node::{Input, ListenerId};
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, P7, message_store, user_address};
use testkit::build::{canonical, content, p7_listener};
use testkit::{Bench, Paced};

/// From now on the messages of these go into the message store.
fn store_for(bench: &mut Bench, surnames: &[&str]) {
    let addresses = bench.config.mailboxes.clone();
    let stored = surnames.iter().map(|name| canonical(&user_address(name))).collect();
    bench.feed(Input::Mailboxes { addresses, stored, changed: Vec::new() });
}

/// OPS over P3.
fn over_p3(bench: &mut Bench, surname: &str) -> AssociationId {
    let id = bench.user("192.0.2.9", surname, "secret");
    bench.settle();
    assert_eq!(bench.outcome(id), Outcome::Open);
    id
}

/// OPS, over a line that takes 80 seconds for the content of a megabyte in his mailbox, fetches it.
fn streaming() -> (Bench, AssociationId, i64) {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    send(&mut bench, log, Precedence::Routine, &content(1, 1_000_000));
    bench.close(log);
    bench.wire = Box::new(|| Box::new(Paced::new(100_000)));
    let ops = bench.reader("OPS");
    bench.wire = Box::new(|| Box::<testkit::Direct>::default());
    bench.pass(Duration::from_secs(10));
    let fetch = bench.fetch(ops, 1);
    bench.pass(Duration::from_secs(10));
    assert_eq!((bench.outcome(ops), bench.fetched(ops, fetch)), (Outcome::Open, None));
    (bench, ops, fetch)
}

#[test]
fn what_waits_for_a_user_goes_into_his_mailbox_when_he_has_one() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    // More than are delivered at a time.
    for n in 0..600 {
        send_to(&mut bench, log, "PLANS", Precedence::ALL[n % 6], &content(n, 100));
    }
    assert_eq!((queued(&bench), items(&bench)), (600, 0));
    store_for(&mut bench, &["OPS", "LOG", "PLANS"]);
    assert_eq!((queued(&bench), items(&bench)), (0, 600));
    let plans = bench.reader("PLANS");
    assert_eq!(bench.summarized(plans), 600);
    over_p3(&mut bench, "PLANS");
    assert_eq!(bench.script.delivered, 0);
}

#[test]
fn what_found_no_room_is_delivered_over_p3_when_that_is_the_delivery() {
    let mut bench = message_store(|config| config.store.settings.quota.items = Some(2));
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    over_p3(&mut bench, "OPS");
    for n in 0..40 {
        send(&mut bench, log, Precedence::Routine, &content(n, 100));
    }
    assert_eq!((queued(&bench), bench.script.delivered), (38, 0));
    store_for(&mut bench, &["LOG"]);
    assert_eq!((queued(&bench), bench.script.delivered), (0, 38), "at once");
    assert_eq!(bench.states(ops), [(1, NEW), (2, NEW)], "what is in the mailbox stays");
    store_for(&mut bench, &["LOG", "OPS"]);
    bench.delete(ops, &[1, 2]);
    send(&mut bench, log, Precedence::Routine, b"stored");
    assert_eq!(bench.states(ops), [(3, NEW)]);
}

#[test]
fn a_copy_that_goes_into_the_mailbox_is_not_delivered_over_p3_too() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    over_p3(&mut bench, "OPS");
    bench.store.pieces = Some(0);
    send(&mut bench, log, Precedence::Routine, &content(1, 100));
    store_for(&mut bench, &["LOG"]);
    bench.read_on(10);
    assert_eq!((queued(&bench), items(&bench) + bench.script.delivered), (0, 1));
}

#[test]
fn a_copy_that_is_being_delivered_over_p3_is_not_stored_too() {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    let plans = over_p3(&mut bench, "PLANS");
    bench.withheld.insert(plans, Vec::new());
    send_to(&mut bench, log, "PLANS", Precedence::Routine, &content(1, 100));
    assert_eq!(bench.script.delivered, 1);
    store_for(&mut bench, &["OPS", "LOG", "PLANS"]);
    assert_eq!((queued(&bench), items(&bench)), (1, 0));
    let octets = bench.withheld.remove(&plans).expect("its answer");
    bench.send(plans, &octets);
    assert_eq!((queued(&bench), items(&bench)), (0, 0));
    // One whose delivery breaks goes into the mailbox.
    store_for(&mut bench, &["OPS", "LOG"]);
    bench.withheld.insert(plans, Vec::new());
    send_to(&mut bench, log, "PLANS", Precedence::Routine, &content(2, 100));
    store_for(&mut bench, &["OPS", "LOG", "PLANS"]);
    bench.close(plans);
    bench.pass(Duration::from_secs(700));
    assert_eq!((queued(&bench), items(&bench)), (0, 1));
}

#[test]
fn a_listener_that_is_removed_ends_its_associations_and_no_others() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), over_p3(&mut bench, "LOG"));
    let half_open = bench.connect(P7, "192.0.2.90");
    bench.reload(|config| config.listeners.retain(|l| l.id != P7));
    bench.pass(Duration::from_secs(30));
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)), "{:?}", bench.outcome(ops));
    assert!(!bench.is_connected(half_open));
    assert_eq!(bench.outcome(log), Outcome::Open);
    bench.submit_whole(log, &testkit::bench::envelope("LOG", &["OPS"], Precedence::Flash), b"one");
    assert_eq!(items(&bench), 1, "mailboxes are there without a listener");
    bench.reload(|config| config.listeners.push(p7_listener(ListenerId(9))));
    bench.reload(|config| config.listeners.push(p7_listener(P7)));
    let ops = bench.reader("OPS");
    assert_eq!(bench.states(ops), [(1, NEW)]);
}

#[test]
fn a_listener_that_is_removed_lets_a_fetch_end() {
    let (mut bench, ops, fetch) = streaming();
    bench.reload(|config| config.listeners.retain(|l| l.id != P7));
    bench.pass(Duration::from_secs(20));
    assert_eq!(bench.outcome(ops), Outcome::Open);
    bench.pass(Duration::from_secs(80));
    assert_eq!(bench.fetched(ops, fetch), Some(content(1, 1_000_000)));
    bench.pass(Duration::from_secs(10));
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)), "{:?}", bench.outcome(ops));
}

#[test]
fn a_stop_lets_a_fetch_end() {
    let (mut bench, ops, fetch) = streaming();
    bench.feed(Input::Stop);
    bench.pass(Duration::from_secs(20));
    assert!(!bench.stopped);
    bench.pass(Duration::from_secs(90));
    assert_eq!(bench.fetched(ops, fetch), Some(content(1, 1_000_000)));
    assert!(bench.stopped);
}

#[test]
fn a_second_stop_ends_a_fetch() {
    let (mut bench, ops, fetch) = streaming();
    bench.feed(Input::Stop);
    bench.feed(Input::Stop);
    bench.pass(Duration::from_secs(20));
    assert!(bench.stopped);
    assert_eq!(bench.fetched(ops, fetch), None);
}

#[test]
fn a_stop_ends_idle_associations_at_once() {
    let mut bench = message_store(|_| {});
    let ops = bench.reader("OPS");
    bench.summarized(ops);
    bench.feed(Input::Stop);
    assert!(bench.stopped);
}

#[test]
fn an_operation_in_progress_is_answered_before_the_stop() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    send(&mut bench, log, Precedence::Routine, b"one");
    bench.store.withholds = true;
    let list = bench.list(ops);
    let delete = bench.delete(ops, &[1]);
    bench.feed(Input::Stop);
    assert!(!bench.stopped);
    bench.store.withholds = false;
    while let Some(commit) = bench.store.take_commit() {
        bench.finish_commit(commit, Ok(()));
    }
    assert!(bench.stopped);
    assert_eq!(bench.listed(ops, list), [(1, NEW)]);
    assert_eq!(bench.answer_to(ops, delete), Some(ClientAnswer::Result));
    assert_eq!(items(&bench), 0);
}

#[test]
fn a_stop_during_a_delivery_into_a_mailbox_leaves_the_message_in_one_place() {
    for pieces in [0, 1] {
        let mut bench = message_store(|_| {});
        let log = bench.reader("LOG");
        bench.store.pieces = Some(pieces);
        for n in 0..=pieces {
            send(&mut bench, log, Precedence::Routine, &content(n, 100));
        }
        bench.feed(Input::Stop);
        assert!(!bench.stopped, "it is being read");
        bench.read_on(10);
        assert!(bench.stopped);
        assert_eq!((queued(&bench), items(&bench)), (0, pieces + 1));
        assert_eq!(bench.store.bodies.len(), pieces + 1);
    }
}
