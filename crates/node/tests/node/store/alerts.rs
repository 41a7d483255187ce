//! Alerts: at once, on every association of whoever's filter matches.

use super::{NEW, send, send_to};
use base::{AssociationId, Precedence};
use p1::flags::Priority;
use p7::auto_action::{AutoActionDeregistration, AutoActionKind, AutoAlert};
use p7::operation::RegisterMsArgument;
use p7::{AttributeSelection, Filter, attributes};
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, message_store};
use testkit::build::content;
use testkit::{Bench, Paced};

/// Alerts of urgent messages under this number.
fn urgent(identifier: i64) -> RegisterMsArgument {
    let urgent = attributes::priority(Priority::Urgent);
    let filter = urgent.values.first().cloned();
    let filter = filter.map(|value| Filter::equality(attributes::PRIORITY.oid(), value));
    let selected = vec![AttributeSelection::new(attributes::PRIORITY.oid())];
    let alert = AutoAlert { filter, requested_attributes: Some(selected), ..AutoAlert::default() };
    RegisterMsArgument {
        auto_action_registrations: vec![alert.registration(identifier)],
        ..RegisterMsArgument::default()
    }
}

fn register(bench: &mut Bench, id: AssociationId, argument: &RegisterMsArgument) {
    let invoke = bench.register(id, argument);
    assert_eq!(bench.answer_to(id, invoke), Some(ClientAnswer::Result));
}

#[test]
fn a_flash_alerts_an_idle_association_at_once_and_only_who_asked_for_it() {
    let mut bench = message_store(|_| {});
    let (ops, also, log) = (bench.reader("OPS"), bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(3));
    bench.pass(Duration::from_secs(100));
    let now = bench.now;
    send(&mut bench, log, Precedence::Routine, b"routine");
    assert_eq!(bench.alerts(ops), []);
    send(&mut bench, log, Precedence::Flash, b"flash");
    let alert = [(now, 3, Some(2))];
    assert_eq!((bench.alerts(ops), bench.alerts(also)), (alert.to_vec(), alert.to_vec()));
    send_to(&mut bench, log, "LOG", Precedence::Flash, b"another's");
    assert_eq!((bench.alerts(ops).len(), bench.alerts(log).len()), (1, 0));
    assert_eq!(bench.states(ops), [(1, NEW), (2, NEW)]);
    bench.pass(Duration::from_hours(1));
    assert_eq!(bench.outcome(ops), Outcome::Open, "its alert is answered");
}

#[test]
fn an_alert_that_nobody_took_is_in_the_next_bind_result_once() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(1));
    bench.close(ops);
    send(&mut bench, log, Precedence::Routine, b"routine");
    let first = bench.reader("OPS");
    assert!(!bench.store_bound(first).alert_indication);
    bench.close(first);
    send(&mut bench, log, Precedence::Override, b"override");
    let second = bench.reader("OPS");
    assert!(bench.store_bound(second).alert_indication);
    let third = bench.reader("OPS");
    assert!(!bench.store_bound(third).alert_indication);
    assert_eq!(bench.alerts(second), []);
}

#[test]
fn a_registration_that_is_taken_back_alerts_no_more() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(1));
    register(&mut bench, ops, &urgent(2));
    send(&mut bench, log, Precedence::Flash, b"two alerts");
    assert_eq!(bench.alerts(ops).len(), 2);
    let auto_action_type = AutoActionKind::AutoAlert.oid();
    let gone = AutoActionDeregistration { auto_action_type, identifier: 1 };
    register(
        &mut bench,
        ops,
        &RegisterMsArgument {
            auto_action_deregistrations: vec![gone],
            ..RegisterMsArgument::default()
        },
    );
    send(&mut bench, log, Precedence::Flash, b"one alert");
    let registrations: Vec<i64> = bench.alerts(ops).iter().map(|(_, r, _)| *r).collect();
    assert_eq!(registrations, [1, 2, 2]);
}

/// A client that does not answer makes us hold 64 of them at most, and has all others again once it answers.
#[test]
fn alerts_that_are_not_answered_are_bounded() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(1));
    bench.withheld.insert(ops, Vec::new());
    for _ in 0..200 {
        send(&mut bench, log, Precedence::Flash, b"flash");
    }
    assert_eq!(bench.alerts(ops).len(), 64);
    let answers = bench.withheld.remove(&ops).expect("its answers");
    bench.send(ops, &answers);
    send(&mut bench, log, Precedence::Flash, b"flash");
    assert_eq!(bench.alerts(ops).last().map(|alert| alert.2), Some(Some(201)));
    assert_eq!(bench.states(ops).len(), 201);
}

#[test]
fn a_client_that_never_answers_an_alert_is_aborted_in_the_end() {
    let mut bench = message_store(|_| {});
    let (ops, also, log) = (bench.reader("OPS"), bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(1));
    bench.withheld.insert(ops, Vec::new());
    send(&mut bench, log, Precedence::Flash, b"flash");
    bench.pass(Duration::from_secs(590));
    assert_eq!(bench.outcome(ops), Outcome::Open);
    bench.pass(Duration::from_secs(20));
    assert!(!bench.is_connected(ops));
    assert_eq!((bench.outcome(also), bench.alerts(also).len()), (Outcome::Open, 1));
}

/// The alert waits behind what is being sent on its association, and another association has it at once.
#[test]
fn a_fetch_that_streams_delays_the_alert_of_its_own_association_alone() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    register(&mut bench, ops, &urgent(1));
    send(&mut bench, log, Precedence::Routine, &content(1, 1_000_000));
    bench.wire = Box::new(|| Box::new(Paced::new(100_000)));
    let slow = bench.reader("OPS");
    bench.pass(Duration::from_secs(10));
    let fetch = bench.fetch(slow, 1);
    bench.pass(Duration::from_secs(20));
    send(&mut bench, log, Precedence::Flash, b"flash");
    assert_eq!((bench.alerts(ops).len(), bench.alerts(slow).len()), (1, 0));
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.fetched(slow, fetch), Some(content(1, 1_000_000)));
    assert_eq!(bench.alerts(slow).len(), 1);
}
