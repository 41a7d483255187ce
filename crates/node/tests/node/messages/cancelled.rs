//! cancel-deferred-delivery: the originator takes back a message that waits for its time.

use base::AssociationId;
use base::ber::Writer;
use engine::Record;
use node::Input;
use node::config::Limits;
use node::event::Kind;
use node::operator::{Act, Operator};
use osi::profiles::abstract_syntax;
use p1::apdu::MtsApduHead;
use p1::names::MtsIdentifier;
use p1::p3::operation::CANCEL_DEFERRED_DELIVERY;
use std::time::Duration;
use testkit::Events;
use testkit::bench::{Bench, ClientAnswer, two_peers, user_address};
use testkit::build::{Submission, canonical};

const MINUTE: Duration = Duration::from_secs(60);

/// A user who has submitted a message for himself, deferred for an hour.
fn deferred() -> (Bench, AssociationId) {
    deferred_for(&[user_address("OPS")], 60 * MINUTE)
}

fn deferred_for(to: &[String], by: Duration) -> (Bench, AssociationId) {
    let mut bench = two_peers(Limits::default(), |config| {
        config.mailboxes.push(canonical(&user_address("LOG")));
    });
    bench.trusts = |_, password| password.0 == "secret";
    bench.store.unread = false;
    let user = bench.user("192.0.2.9", "OPS", "secret");
    bench.settle();
    let mut submission = Submission::new(&user_address("OPS"), to.iter().cloned());
    submission.deferred = Some(bench.clock().utc + by);
    bench.submit(user, &submission, 0);
    assert_eq!(queued(&bench), to.len());
    (bench, user)
}

fn queued(bench: &Bench) -> usize {
    bench.store.entries.len()
}

fn identifier(bench: &Bench) -> MtsIdentifier {
    let record = bench.store.entries.values().next().expect("an entry");
    match Record::decode(record).expect("a record").head {
        MtsApduHead::Message(envelope) => envelope.message_identifier.clone(),
        _ => panic!("a message"),
    }
}

fn cancel(bench: &mut Bench, user: AssociationId, identifier: &MtsIdentifier) -> i64 {
    let mut w = Writer::new();
    identifier.write(&mut w);
    let operation = (abstract_syntax::msse(), CANCEL_DEFERRED_DELIVERY);
    bench.invoke(user, operation, w.into_vec())
}

#[test]
fn its_originator_cancels_it_once() {
    let (mut bench, user) = deferred();
    let identifier = identifier(&bench);
    let invoke = cancel(&mut bench, user, &identifier);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Result));
    assert_eq!((queued(&bench), bench.store.bodies.len()), (0, 0));
    assert_eq!(bench.count(Kind::Cancelled), 1);
    let again = cancel(&mut bench, user, &identifier);
    bench.pass(120 * MINUTE);
    assert_eq!(bench.answer_to(user, again), Some(ClientAnswer::Error(8)));
    assert_eq!((bench.count(Kind::Delivered), bench.count(Kind::ReportMade)), (0, 0));
}

#[test]
fn nobody_else_does() {
    let (mut bench, user) = deferred();
    let identifier = identifier(&bench);
    let other = bench.user("192.0.2.9", "LOG", "secret");
    bench.settle();
    let invoke = cancel(&mut bench, other, &identifier);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(other, invoke), Some(ClientAnswer::Error(8)));
    // As of one that is not here.
    let mut unknown = identifier.clone();
    unknown.local.push('9');
    let invoke = cancel(&mut bench, other, &unknown);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(other, invoke), Some(ClientAnswer::Error(8)));
    let mut elsewhere = identifier.clone();
    elsewhere.domain.country = p1::names::GlobalDomainId::new("YY", "NATO", None).country;
    let invoke = cancel(&mut bench, user, &elsewhere);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Error(7)));
    let operation = (abstract_syntax::msse(), CANCEL_DEFERRED_DELIVERY);
    let invoke = bench.invoke(user, operation, vec![5, 0]);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Reject));
    assert_eq!(queued(&bench), 1);
}

/// A hold does not make the MTA send later what its originator does not want any more.
#[test]
fn what_an_operator_holds_is_cancelled_by_its_originator() {
    let (mut bench, user) = deferred();
    let identifier = identifier(&bench);
    let (_, id) = *bench.store.entries.keys().next().expect("an entry");
    let operate = |bench: &mut Bench, act: Act| {
        let by = Operator::default();
        bench.feed(Input::Operate { request: 1, entries: vec![id], act, by });
    };
    operate(&mut bench, Act::Hold);
    bench.settle();
    // Its deletion is being committed while the operator has other ideas.
    bench.store.withholds = true;
    let invoke = cancel(&mut bench, user, &identifier);
    for act in [Act::Release, Act::Reroute { to: None }, Act::Expire] {
        operate(&mut bench, act);
    }
    bench.store.withholds = false;
    let mut commits: Vec<_> = std::iter::from_fn(|| bench.store.take_commit()).collect();
    while let Some(commit) = commits.pop() {
        let made = bench.store.answer_commit(commit, Ok(()));
        bench.feed(made);
    }
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Result));
    bench.pass(120 * MINUTE);
    assert_eq!(queued(&bench), 0);
    assert_eq!((bench.count(Kind::Delivered), bench.count(Kind::ReportMade)), (0, 0));
}

#[test]
fn after_its_time_it_is_not_cancelled() {
    let (mut bench, user) = deferred();
    let identifier = identifier(&bench);
    bench.pass(61 * MINUTE);
    let invoke = cancel(&mut bench, user, &identifier);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Error(8)));
}

/// The clock is set forward: one copy is delivered. Then it is right again, and the other copy waits.
#[test]
fn once_one_copy_is_delivered_no_step_of_the_clock_makes_it_cancellable() {
    let to = [user_address("OPS"), user_address("LOG")];
    let (mut bench, user) = deferred_for(&to, Duration::from_secs(50));
    let identifier = identifier(&bench);
    for step in [Duration::from_secs(55), Duration::ZERO] {
        bench.step = step;
        bench.feed(Input::Tick);
        bench.pass(Duration::from_secs(2));
        assert_eq!((bench.count(Kind::Delivered), queued(&bench)), (1, 1), "LOG is not bound");
        let invoke = cancel(&mut bench, user, &identifier);
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Error(8)), "{step:?}");
    }
    assert_eq!(queued(&bench), 1);
}

#[test]
fn a_store_that_fails_leaves_it_as_it_was() {
    let (mut bench, user) = deferred();
    let identifier = identifier(&bench);
    bench.store.full = true;
    let invoke = cancel(&mut bench, user, &identifier);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, invoke), Some(ClientAnswer::Error(8)));
    bench.store.full = false;
    assert_eq!(queued(&bench), 1);
    let again = cancel(&mut bench, user, &identifier);
    bench.pass(MINUTE);
    assert_eq!(bench.answer_to(user, again), Some(ClientAnswer::Result));
    assert_eq!(queued(&bench), 0);
}
