//! Deliveries into mailboxes where the disk fails: damage, a full disk, an end in between.

use super::{NEW, items, queued, send, send_to};
use base::{AssociationId, Precedence};
use engine::journal::ItemId;
use mailbox::{Rule, Rules, Status};
use node::Input;
use node::event::Kind;
use std::time::Duration;
use testkit::bench::{ClientAnswer, envelope, message_store, user_address};
use testkit::build::{canonical, content};
use testkit::{Bench, Events};

/// PLANS has a mailbox from now on: what waits for him is read from the disk.
fn store_for_plans(bench: &mut Bench) {
    let addresses = bench.config.mailboxes.clone();
    let stored = ["OPS", "LOG", "PLANS"].map(|name| canonical(&user_address(name))).into();
    bench.feed(Input::Mailboxes { addresses, stored, changed: Vec::new() });
}

/// Three messages wait for PLANS.
fn waiting() -> (Bench, AssociationId) {
    let mut bench = message_store(|_| {});
    let log = bench.reader("LOG");
    for n in 1..=3 {
        send_to(&mut bench, log, "PLANS", Precedence::Routine, &content(n, 1_000));
    }
    assert_eq!(queued(&bench), 3);
    (bench, log)
}

#[test]
fn a_damaged_record_is_set_aside_and_the_others_are_delivered() {
    let (mut bench, _) = waiting();
    let (_, damaged) = *bench.store.entries.keys().nth(1).expect("three entries");
    bench.store.damaged.0.insert(damaged);
    store_for_plans(&mut bench);
    bench.pass(Duration::from_hours(1));
    let plans = bench.reader("PLANS");
    assert_eq!(bench.summarized(plans), 2);
    assert_eq!((queued(&bench), bench.count(Kind::Damaged)), (1, 1), "for a repair");
}

#[test]
fn a_damaged_content_is_reported_and_the_others_are_delivered() {
    let (mut bench, log) = waiting();
    let damaged = *bench.store.bodies.keys().nth(1).expect("three contents");
    bench.store.damaged.1.insert(damaged);
    store_for_plans(&mut bench);
    bench.pass(Duration::from_hours(1));
    let plans = bench.reader("PLANS");
    assert_eq!((bench.summarized(plans), queued(&bench)), (2, 0));
    assert_eq!(bench.summarized(log), 1, "the report");
    assert_eq!(bench.store.bodies.len(), 2);
}

#[test]
fn a_delivery_that_cannot_be_committed_is_tried_again_and_made_once() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    send(&mut bench, log, Precedence::Routine, b"first");
    bench.store.withholds = true;
    bench.submit_whole(log, &envelope("LOG", &["OPS"], Precedence::Flash), b"second");
    let submission = bench.store.take_commit().expect("the submission");
    bench.finish_commit(submission, Ok(()));
    for _ in 0..3 {
        let delivery = bench.store.take_commit().expect("the delivery");
        bench.finish_commit(delivery, Err("no space left on device".to_owned()));
        assert_eq!((queued(&bench), items(&bench)), (1, 1));
        bench.pass_until(Duration::from_hours(1), |bench| bench.store.waiting() > 0);
    }
    bench.store.withholds = false;
    let delivery = bench.store.take_commit().expect("the delivery");
    bench.finish_commit(delivery, Ok(()));
    assert_eq!((queued(&bench), bench.count(Kind::Delivered)), (0, 2));
    let states = bench.states(ops);
    assert_eq!(states.len(), 2);
    let invoke = bench.fetch(ops, states[1].0);
    assert_eq!(bench.fetched(ops, invoke).as_deref(), Some(&b"second"[..]));
    assert_eq!(bench.summarized(ops), 2);
}

/// Two recipients have one content, of which each mailbox has a copy of its own.
#[test]
fn a_content_for_two_is_in_both_mailboxes_and_no_longer_in_the_queue() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    let both = envelope("LOG", &["OPS", "LOG", "PLANS"], Precedence::Routine);
    let invoke = bench.submit_whole(log, &both, &content(1, 70_000));
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
    assert_eq!((queued(&bench), items(&bench), bench.store.bodies.len()), (1, 2, 3));
    bench.delete(ops, &[1]);
    let fetch = bench.fetch(log, 1);
    assert_eq!(bench.fetched(log, fetch), Some(content(1, 70_000)));
    store_for_plans(&mut bench);
    let plans = bench.reader("PLANS");
    let fetch = bench.fetch(plans, 1);
    assert_eq!(bench.fetched(plans, fetch), Some(content(1, 70_000)));
    assert_eq!((queued(&bench), items(&bench), bench.store.bodies.len()), (0, 2, 2));
}

/// The commit that delivers deletes the copy in the queue: after any end the message is in one place.
#[test]
fn a_message_is_in_the_queue_or_in_the_mailbox_after_a_crash() {
    for made in [0, 1] {
        let mut bench = message_store(|_| {});
        let log = bench.reader("LOG");
        bench.reader("OPS");
        bench.store.withholds = true;
        bench.submit_whole(log, &envelope("LOG", &["OPS"], Precedence::Routine), b"content");
        let submission = bench.store.take_commit().expect("the submission");
        bench.finish_commit(submission, Ok(()));
        let mut rng = base::rng::Rng::new(1);
        bench.store.crash(made, &mut rng);
        assert_eq!((queued(&bench), items(&bench)), (1 - made, made));
        bench.store.withholds = false;
        let mut after = message_store(|config| config.epoch = 2);
        after.store = std::mem::take(&mut bench.store);
        after.renew();
        for input in after.store.recovered() {
            after.feed(input);
        }
        let ops = after.reader("OPS");
        assert_eq!(after.states(ops), [(1, NEW)]);
        let invoke = after.fetch(ops, 1);
        assert_eq!(after.fetched(ops, invoke).as_deref(), Some(&b"content"[..]));
        assert_eq!((queued(&after), after.store.bodies.len()), (0, 1));
    }
}

/// The rules of retention delete what is old, unless the clock may be wrong, and what waited for room goes in.
#[test]
fn rules_of_retention_make_room() {
    let hour = Duration::from_hours(1);
    let mut bench = message_store(|config| {
        config.store.settings.quota.items = Some(2);
        let rule = Rule { status: Some(Status::Processed), age: hour };
        config.store.settings.rules = Rules::new(vec![rule]).expect("one rule");
    });
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    for n in 0..3 {
        send(&mut bench, log, Precedence::Routine, &content(n, 100));
    }
    bench.fetch(ops, 2);
    bench.pass(hour / 2);
    assert_eq!((bench.summarized(ops), queued(&bench)), (2, 1));
    bench.pass(hour);
    let numbers: Vec<u32> = bench.states(ops).iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, queued(&bench)), (vec![1, 3], 0));
    let all = bench.store.entries.keys().all(|(_, id)| ItemId::of_entry(*id).is_some());
    assert!(all, "nothing is queued");
}
