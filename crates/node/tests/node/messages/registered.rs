//! What a user registers and controls over P3: what is admitted, what is held back, and what is durable.

use base::AssociationId;
use base::ber::{Element, Writer};
use bytes::Bytes;
use engine::registered::Registration;
use node::Input;
use node::config::Limits;
use node::event::Kind;
use node::listing::QueueRequest;
use osi::profiles::abstract_syntax;
use p1::content_type::ContentType;
use p1::extension::{Criticality, ExtensionField};
use p1::flags::{Priority, ReportRequest};
use p1::p3::operation::{DELIVERY_CONTROL, MESSAGE_SUBMISSION, REGISTER};
use p1::p3::{Controls, RegisterArgument, Waiting};
use std::time::Duration;
use testkit::Events;
use testkit::bench::{Bench, ClientAnswer, two_peers, user_address};
use testkit::build::{Submission, canonical, name};

const SECOND: Duration = Duration::from_secs(1);

/// Two users, of whom the first, who sends, is bound.
fn two_users() -> (Bench, AssociationId) {
    let mut bench = two_peers(Limits::default(), |config| {
        config.mailboxes.push(canonical(&user_address("LOG")));
    });
    bench.trusts = |_, password| password.0 == "secret";
    bench.store.unread = false;
    let sender = bench.user("192.0.2.9", "LOG", "secret");
    bench.settle();
    (bench, sender)
}

fn bind(bench: &mut Bench) -> AssociationId {
    let user = bench.user("192.0.2.9", "OPS", "secret");
    bench.settle();
    user
}

fn octets(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

fn register(
    bench: &mut Bench,
    user: AssociationId,
    argument: &RegisterArgument,
) -> Option<ClientAnswer> {
    let argument = octets(|w| argument.write(w));
    let invoke = bench.invoke(user, (abstract_syntax::mase_88(), REGISTER), argument);
    bench.pass(SECOND);
    bench.answer_to(user, invoke)
}

fn limit(octets: Option<i64>) -> RegisterArgument {
    RegisterArgument { max_content_length: Some(octets), ..RegisterArgument::default() }
}

fn control(
    bench: &mut Bench,
    user: AssociationId,
    controls: &Controls,
) -> Result<Waiting, Option<ClientAnswer>> {
    let argument = octets(|w| controls.write(w));
    let invoke = bench.invoke(user, (abstract_syntax::mdse_88(), DELIVERY_CONTROL), argument);
    bench.settle();
    match bench.answer_to(user, invoke) {
        Some(ClientAnswer::Result) => {
            let octets = bench.result_of(user, invoke).expect("a result");
            Ok(Waiting::read(&Element::parse(octets).expect("BER")).expect("a Waiting"))
        }
        other => Err(other),
    }
}

fn at_least(priority: Priority) -> Controls {
    Controls { lowest_priority: Some(priority), ..Controls::default() }
}

fn lifted() -> Controls {
    Controls { restrict: false, ..Controls::default() }
}

fn send(bench: &mut Bench, from: AssociationId, priority: Priority, length: u64) {
    let mut submission = Submission::new(&user_address("LOG"), [user_address("OPS")]);
    (submission.priority, submission.report) = (priority, ReportRequest::NonDelivery);
    bench.submit(from, &submission, length);
    if length > 0 {
        let content = Bytes::from(vec![b'x'; usize::try_from(length).expect("short")]);
        bench.request(from, osi::api::Request::Content(content));
    }
    bench.pass(SECOND);
}

/// What was delivered to anyone so far.
fn delivered(bench: &Bench) -> usize {
    bench.count(Kind::Delivered)
}

/// The reason of each entry that waits.
fn reasons(bench: &Bench) -> Vec<String> {
    let asked = QueueRequest { limit: 50, ..QueueRequest::default() };
    let page = bench.node.queue_page(bench.clock(), &asked).expect("a page");
    page.describe(|_| None).entries.into_iter().map(|row| row.waits_for.join(", ")).collect()
}

#[test]
fn what_a_user_registers_is_durable_and_refuses_with_a_report() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    assert_eq!(register(&mut bench, user, &limit(Some(10))), Some(ClientAnswer::Result));
    let of = canonical(&user_address("OPS"));
    let stored = bench.store.meta.get(&Registration::name(&of)).cloned().expect("a value");
    assert_eq!(Registration::decode(&stored).unwrap().max_content_length, Some(10));
    send(&mut bench, sender, Priority::Normal, 10);
    assert_eq!((delivered(&bench), bench.count(Kind::ReportMade)), (1, 0));
    send(&mut bench, sender, Priority::Normal, 11);
    assert_eq!(bench.count(Kind::ReportMade), 1);
    let refused = bench.last(Kind::NonDelivery).detail.clone();
    assert!(refused.contains("11 octets of content, and the recipient takes 10"), "{refused}");

    // A node that starts has it again.
    let (mut later, sender) = two_users();
    later.feed(Input::RecoveredRegistration { mailbox: of.clone(), value: stored });
    send(&mut later, sender, Priority::Normal, 11);
    assert_eq!(later.count(Kind::ReportMade), 1);

    // Lifted: nothing is left in the store.
    assert_eq!(register(&mut bench, user, &limit(None)), Some(ClientAnswer::Result));
    assert_eq!(bench.store.meta.get(&Registration::name(&of)).cloned(), Some(Bytes::new()));
    let before = delivered(&bench);
    send(&mut bench, sender, Priority::Normal, 11);
    assert_eq!(delivered(&bench), before + 1);
}

#[test]
fn a_limit_holds_for_what_waits_in_the_queue() {
    let (mut bench, sender) = two_users();
    send(&mut bench, sender, Priority::Normal, 11);
    let of = canonical(&user_address("OPS"));
    let registered = Registration { max_content_length: Some(10), ..Registration::default() };
    let value = registered.encode().into();
    bench.feed(Input::RecoveredRegistration { mailbox: of, value });
    bind(&mut bench);
    bench.pass(SECOND);
    assert_eq!(bench.count(Kind::ReportMade), 1);
    assert!(bench.last(Kind::DeliveryFailed).detail.contains("takes 10"));
    // The report is delivered to its originator, and nothing else.
    assert_eq!((delivered(&bench), bench.store.entries.len()), (1, 0));
}

#[test]
fn nothing_is_registered_that_the_store_does_not_take() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    bench.store.full = true;
    assert_eq!(register(&mut bench, user, &limit(Some(10))), Some(ClientAnswer::Reject));
    bench.store.full = false;
    send(&mut bench, sender, Priority::Normal, 11);
    assert_eq!((delivered(&bench), bench.count(Kind::ReportMade)), (1, 0));
    // The next one is.
    assert_eq!(register(&mut bench, user, &limit(Some(10))), Some(ClientAnswer::Result));
}

#[test]
fn what_is_no_argument_is_rejected_and_what_is_not_done_is_refused() {
    let (mut bench, _) = two_users();
    let user = bind(&mut bench);
    for (argument, answer) in [
        (vec![5, 0], ClientAnswer::Reject),
        (vec![0x31, 2, 0xa7, 0], ClientAnswer::Reject),
        // EITs of 1988; a limit below 0; an empty redirection and a label.
        (vec![0x31, 6, 0x65, 4, 0x80, 2, 5, 0x20], ClientAnswer::Error(16)),
        (vec![0x31, 5, 0xa1, 3, 2, 1, 0xff], ClientAnswer::Error(16)),
        (vec![0x31, 6, 0xa4, 4, 0x31, 2, 0xa0, 0], ClientAnswer::Error(16)),
    ] {
        let syntax = (abstract_syntax::mase_88(), REGISTER);
        let invoke = bench.invoke(user, syntax, argument.clone());
        bench.settle();
        assert_eq!(bench.answer_to(user, invoke), Some(answer), "{argument:x?}");
    }
    for (argument, answer) in [
        (vec![5, 0], ClientAnswer::Reject),
        (vec![0x31, 2, 0xa9, 0], ClientAnswer::Reject),
        (vec![0x31, 2, 0x30, 0], ClientAnswer::Error(16)),
        (vec![0x31, 2, 0xa5, 0], ClientAnswer::Error(16)),
        (vec![0x31, 3, 0x82, 1, 0xff], ClientAnswer::Error(16)),
    ] {
        let syntax = (abstract_syntax::mdse_88(), DELIVERY_CONTROL);
        let invoke = bench.invoke(user, syntax, argument.clone());
        bench.settle();
        assert_eq!(bench.answer_to(user, invoke), Some(answer), "{argument:x?}");
    }
}

#[test]
fn who_redirects_gets_nothing_and_an_operator_ends_it() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    let argument = RegisterArgument {
        alternate: Some(Some(name(&user_address("LOG")))),
        ..RegisterArgument::default()
    };
    assert_eq!(register(&mut bench, user, &argument), Some(ClientAnswer::Result));
    send(&mut bench, sender, Priority::Normal, 5);
    let to = &bench.last(Kind::Delivered).detail;
    assert!(to.contains(&canonical(&user_address("LOG"))), "{to}");
    let mailbox = canonical(&user_address("OPS"));
    let by = node::operator::Operator::default();
    bench.feed(Input::Unregister { request: 7, mailbox, by });
    send(&mut bench, sender, Priority::Normal, 5);
    let to = &bench.last(Kind::Delivered).detail;
    assert!(to.contains(&canonical(&user_address("OPS"))), "{to}");
}

#[test]
fn a_user_who_is_removed_leaves_nothing_registered() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    assert_eq!(register(&mut bench, user, &limit(Some(1))), Some(ClientAnswer::Result));
    let (log, ops) = (canonical(&user_address("LOG")), canonical(&user_address("OPS")));
    let mailboxes = |all: Vec<String>, changed: Vec<String>| Input::Mailboxes {
        addresses: all,
        stored: Default::default(),
        changed,
    };
    bench.feed(mailboxes(vec![log.clone()], vec![ops.clone()]));
    bench.feed(mailboxes(vec![log, ops.clone()], vec![]));
    bench.pass(SECOND);
    assert_eq!(bench.store.meta.get(&Registration::name(&ops)).cloned(), Some(Bytes::new()));
    bind(&mut bench);
    send(&mut bench, sender, Priority::Normal, 11);
    assert_eq!((delivered(&bench), bench.count(Kind::ReportMade)), (1, 0));
}

#[test]
fn what_is_below_the_lowest_priority_waits_and_nothing_else() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    assert_eq!(control(&mut bench, user, &at_least(Priority::Urgent)), Ok(Waiting::default()));
    send(&mut bench, sender, Priority::Normal, 5);
    send(&mut bench, sender, Priority::NonUrgent, 5);
    assert_eq!(delivered(&bench), 0);
    send(&mut bench, sender, Priority::Urgent, 5);
    assert_eq!(delivered(&bench), 1);
    assert_eq!(
        reasons(&bench),
        vec!["its user holds back what is below urgent (delivery-control)"; 2]
    );
    // Normal from now on: what waits is in the result, and what is permitted comes.
    let waiting = control(&mut bench, user, &at_least(Priority::Normal));
    assert_eq!(waiting, Ok(Waiting { low_priority: true, ..Waiting::default() }));
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 2);
    assert_eq!(control(&mut bench, user, &lifted()), Ok(Waiting::default()));
    bench.pass(SECOND);
    assert_eq!((delivered(&bench), bench.store.entries.len()), (3, 0));
}

#[test]
fn controls_end_with_the_association_that_set_them() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    let nothing = Controls { messages: Some(false), ..Controls::default() };
    assert_eq!(control(&mut bench, user, &nothing), Ok(Waiting::default()));
    send(&mut bench, sender, Priority::Urgent, 5);
    let other = bind(&mut bench);
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 0, "one user, one set of controls");
    assert_eq!(bench.messages_waiting(other), 1);
    bench.close(user);
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 1);
}

#[test]
fn registered_controls_are_in_force_from_the_bind_on_and_again_when_others_are_lifted() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    let argument = RegisterArgument {
        default_controls: Some(at_least(Priority::Normal)),
        ..RegisterArgument::default()
    };
    assert_eq!(register(&mut bench, user, &argument), Some(ClientAnswer::Result));
    bench.close(user);
    let user = bind(&mut bench);
    send(&mut bench, sender, Priority::NonUrgent, 5);
    assert_eq!(reasons(&bench), ["its user holds back what is below normal (registered)"]);
    let waiting = control(&mut bench, user, &at_least(Priority::NonUrgent));
    assert_eq!(waiting, Ok(Waiting::default()));
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 1);
    assert_eq!(control(&mut bench, user, &lifted()), Ok(Waiting::default()));
    send(&mut bench, sender, Priority::NonUrgent, 5);
    assert_eq!(delivered(&bench), 1);
}

#[test]
fn long_contents_and_other_types_wait_and_reports_are_an_operation_of_their_own() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    let short = Controls { max_content_length: Some(10), ..Controls::default() };
    assert_eq!(control(&mut bench, user, &short), Ok(Waiting::default()));
    send(&mut bench, sender, Priority::Urgent, 11);
    send(&mut bench, sender, Priority::Normal, 10);
    assert_eq!(delivered(&bench), 1);
    assert_eq!(
        reasons(&bench),
        ["its user holds back contents above 10 octets (delivery-control)"]
    );
    let voice = Controls { content_types: Some(vec![ContentType::VOICE]), ..Controls::default() };
    let waiting = control(&mut bench, user, &voice);
    assert_eq!(waiting, Ok(Waiting { long_content: true, ..Waiting::default() }));
    send(&mut bench, sender, Priority::Normal, 10);
    assert_eq!(delivered(&bench), 1);
    assert_eq!(reasons(&bench)[1], "its user holds back contents of this type (delivery-control)");
    control(&mut bench, user, &lifted()).expect("a result");
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 3);

    // The sender takes no reports.
    let none =
        Controls { probes_or_reports: Some(false), messages: Some(true), ..Controls::default() };
    assert_eq!(control(&mut bench, sender, &none), Ok(Waiting::default()));
    assert_eq!(register(&mut bench, user, &limit(Some(1))), Some(ClientAnswer::Result));
    send(&mut bench, sender, Priority::Normal, 10);
    assert_eq!((bench.count(Kind::ReportMade), delivered(&bench)), (1, 3));
    assert_eq!(reasons(&bench), ["its user takes no reports for now (delivery-control)"]);
    let waiting = control(&mut bench, sender, &Controls::default());
    assert_eq!(waiting, Ok(Waiting { probes_or_reports: true, ..Waiting::default() }));
    control(&mut bench, sender, &lifted()).expect("a result");
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 4);
}

#[test]
fn what_is_held_back_expires_as_usual() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    control(&mut bench, user, &at_least(Priority::Urgent)).expect("a result");
    let latest = bench.clock().utc + 60 * SECOND;
    let mut envelope = Submission::new(&user_address("LOG"), [user_address("OPS")]).envelope();
    let number = p1::extension::number::LATEST_DELIVERY_TIME;
    envelope.extensions.set(ExtensionField::standard(number, Criticality::default(), |w| {
        w.utc_time(base::ber::universal::UTC_TIME, latest);
    }));
    let operation = (abstract_syntax::msse(), MESSAGE_SUBMISSION);
    bench.invoke(sender, operation, envelope.argument_head(0));
    bench.pass(50 * SECOND);
    assert_eq!((delivered(&bench), bench.count(Kind::Expired)), (0, 0));
    bench.pass(20 * SECOND);
    assert_eq!(bench.count(Kind::Expired), 1);
    bench.pass(SECOND);
    assert_eq!(bench.store.entries.len(), 0);
}

#[test]
fn what_an_operator_holds_stays_held_when_controls_are_lifted() {
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    control(&mut bench, user, &at_least(Priority::Urgent)).expect("a result");
    send(&mut bench, sender, Priority::Normal, 5);
    let (_, id) = *bench.store.entries.keys().next().expect("an entry");
    let by = node::operator::Operator::default();
    let act = node::operator::Act::Hold;
    bench.feed(Input::Operate { request: 1, entries: vec![id], act, by: by.clone() });
    bench.pass(SECOND);
    control(&mut bench, user, &lifted()).expect("a result");
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 0);
    let act = node::operator::Act::Release;
    bench.feed(Input::Operate { request: 2, entries: vec![id], act, by });
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 1);
}

/// A trial, and an order that leaves an entry as it is, do not release what its user holds back.
#[test]
fn what_a_user_holds_back_stays_so_after_an_order_that_changes_nothing() {
    use node::operator::{Act, Operator};
    let (mut bench, sender) = two_users();
    let user = bind(&mut bench);
    control(&mut bench, user, &at_least(Priority::Urgent)).expect("a result");
    send(&mut bench, sender, Priority::Normal, 5);
    let (_, id) = *bench.store.entries.keys().next().expect("an entry");
    for act in [Act::Trial(Box::new(Act::Expire)), Act::Reroute { to: None }] {
        let by = Operator::default();
        bench.feed(Input::Operate { request: 1, entries: vec![id], act, by });
        bench.pass(SECOND);
        assert_eq!((delivered(&bench), bench.store.entries.len()), (0, 1));
    }
    control(&mut bench, user, &lifted()).expect("a result");
    bench.pass(SECOND);
    assert_eq!(delivered(&bench), 1);
}
