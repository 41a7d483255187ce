use super::*;
use crate::testing::{
    JONES, SMITH, address, engine, failures, message, name, report, submission, submit,
};
use crate::{NextHop, RecordKind};
use p1::extension::Extensions;
use p1::flags::{PerMessageIndicators, Priority, ReportRequest};
use p1::p3::{ProbeSubmissionEnvelope, Waiting};
use proptest::prelude::*;

fn mailbox(text: &str) -> String {
    crate::canonical(&address(text))
}

fn limits(length: i64) -> RegisterArgument {
    RegisterArgument { max_content_length: Some(Some(length)), ..RegisterArgument::default() }
}

fn types(types: &[ContentType]) -> RegisterArgument {
    RegisterArgument { content_types: Some(Some(types.to_vec())), ..RegisterArgument::default() }
}

fn register(
    before: &Registration,
    argument: RegisterArgument,
) -> Result<Registration, AccessError> {
    before.register(&mailbox(JONES), argument)
}

#[test]
fn what_is_absent_stays_registered() {
    let first = register(&Registration::default(), limits(100)).unwrap();
    let second = register(&first, types(&[ContentType::P22])).unwrap();
    assert_eq!(second.max_content_length, Some(100));
    assert_eq!(second.content_types, Some(vec![ContentType::P22]));
    let lifted = RegisterArgument {
        max_content_length: Some(None),
        content_types: Some(None),
        ..RegisterArgument::default()
    };
    assert!(register(&second, lifted).unwrap().is_none());
    // ub-content-length lifts the limit.
    assert!(register(&first, limits(MAX_CONTENT_LENGTH)).unwrap().is_none());
}

#[test]
fn what_has_no_acceptable_value_is_named() {
    let refused = |argument| register(&Registration::default(), argument).unwrap_err();
    assert_eq!(refused(limits(-1)), RefusedArgument::BuiltIn(3).unacceptable());
    assert_eq!(refused(types(&[])), RefusedArgument::BuiltIn(2).unacceptable());
    let to =
        |to: ORName| RegisterArgument { alternate: Some(Some(to)), ..RegisterArgument::default() };
    // To himself, and to a name without address.
    assert_eq!(refused(to(name(JONES))), RefusedArgument::BuiltIn(6).unacceptable());
    let nobody = ORName { address: Default::default(), directory_name: None };
    assert_eq!(refused(to(nobody)), RefusedArgument::BuiltIn(6).unacceptable());
    let undone = RegisterArgument { undone: Some(RefusedArgument::USER_NAME), ..limits(5) };
    assert_eq!(refused(undone), RefusedArgument::BuiltIn(0).unavailable());
    let controls = |controls| RegisterArgument {
        default_controls: Some(controls),
        ..RegisterArgument::default()
    };
    let lifts = Controls { restrict: false, ..Controls::default() };
    assert_eq!(refused(controls(lifts)), RefusedArgument::BuiltIn(10).unacceptable());
    // Default controls beyond the limit, and a limit beneath them.
    let long = Controls { max_content_length: Some(200), ..Controls::default() };
    let limited = register(&Registration::default(), limits(100)).unwrap();
    let beyond = register(&limited, controls(long.clone())).unwrap_err();
    assert_eq!(beyond, AccessError::RegisterRejected);
    let controlled = register(&Registration::default(), controls(long)).unwrap();
    assert_eq!(register(&controlled, limits(100)).unwrap_err(), AccessError::RegisterRejected);
}

#[test]
fn an_alternate_must_be_reachable() {
    let alpha = engine();
    let to = |text: &str| {
        let alternate = Some(Some(name(text)));
        alpha.register(
            &mailbox(JONES),
            RegisterArgument { alternate, ..RegisterArgument::default() },
        )
    };
    assert_eq!(to(SMITH).unwrap().alternate, Some(name(SMITH)), "a user here");
    let unacceptable = RefusedArgument::REDIRECTIONS.unacceptable();
    let local = SMITH.replace("S=Smith", "S=Nobody");
    assert_eq!(to(&local), Err(unacceptable.clone()), "below a local route, and nobody's");
    assert_eq!(to("C=ZZ;A=NONE;S=X"), Err(unacceptable), "no route");
}

#[test]
fn what_is_not_deliverable_is_reported_and_a_probe_is_answered_alike() {
    let mut alpha = engine();
    let set = |alpha: &mut Engine, argument| {
        let registration = register(&Registration::default(), argument).unwrap();
        alpha.set_registration(&mailbox(JONES), registration);
    };
    let failed = |alpha: &mut Engine| {
        let done = submit(alpha, &submission(&[JONES]));
        let reports =
            done.accepted.entries.iter().filter(|e| e.record.kind() == RecordKind::Report);
        reports.flat_map(|e| failures(report(e))).collect::<Vec<_>>()
    };
    let size = {
        let done = submit(&mut alpha, &submission(&[JONES]));
        done.accepted.entries[0].record.size
    };
    set(&mut alpha, limits(i64::try_from(size).unwrap()));
    assert_eq!(failed(&mut alpha), []);
    set(&mut alpha, limits(i64::try_from(size).unwrap() - 1));
    assert_eq!(failed(&mut alpha), [(1, Some((1, Some(7))))]);
    let content_type = submission(&[JONES]).content_type;
    set(&mut alpha, types(std::slice::from_ref(&content_type)));
    assert_eq!(failed(&mut alpha), []);
    set(&mut alpha, types(&[ContentType::VOICE]));
    assert_eq!(failed(&mut alpha), [(1, Some((1, Some(15))))]);

    let envelope = submission(&[JONES]);
    let mut probe = ProbeSubmissionEnvelope {
        originator: envelope.originator,
        original_eits: None,
        content_type: envelope.content_type,
        content_identifier: None,
        content_length: Some(100),
        indicators: PerMessageIndicators::default(),
        extensions: Extensions::default(),
        recipients: envelope.recipients,
        unknown: Vec::new(),
    };
    probe.recipients[0].report_request = ReportRequest::Report;
    let of_probe = |alpha: &mut Engine| {
        let smith = mailbox(SMITH);
        let done = alpha.submit_probe(crate::testing::at(0), &smith, &probe).unwrap();
        failures(report(&done.accepted.entries[0]))
    };
    assert_eq!(of_probe(&mut alpha), [(1, Some((1, Some(15))))]);
    set(&mut alpha, limits(5));
    assert_eq!(of_probe(&mut alpha), [(1, Some((1, Some(7))))]);
    set(&mut alpha, limits(50_000));
    assert_eq!(of_probe(&mut alpha), [(1, None)]);
}

#[test]
fn who_is_redirected_takes_nothing_himself() {
    let mut alpha = engine();
    let argument = RegisterArgument { alternate: Some(Some(name(SMITH))), ..limits(0) };
    let registration = register(&Registration::default(), argument).unwrap();
    alpha.set_registration(&mailbox(JONES), registration);
    let done = submit(&mut alpha, &submission(&[JONES]));
    let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
    assert_eq!(entry.record.next_hop, NextHop::Mailbox(mailbox(SMITH)));
    assert_eq!(message(&entry.record.head).recipients[0].recipient, name(SMITH));
    alpha.set_registration(&mailbox(JONES), Registration::default());
    assert_eq!(alpha.registered().count(), 0);
    let done = submit(&mut alpha, &submission(&[JONES]));
    assert_eq!(done.accepted.entries[0].record.next_hop, NextHop::Mailbox(mailbox(JONES)));
}

#[test]
fn controls_never_permit_more_than_is_registered() {
    let argument = RegisterArgument { ..limits(100) };
    let limited = register(&Registration::default(), argument).unwrap();
    let limited = register(&limited, types(&[ContentType::P22])).unwrap();
    let mut controls = DeliveryControls::default();
    let long = Controls { max_content_length: Some(101), ..Controls::default() };
    let violates = Err(AccessError::ControlViolatesRegistration);
    assert_eq!(controls.update(&long, &limited), violates);
    let voice = Controls { content_types: Some(vec![ContentType::VOICE]), ..Controls::default() };
    assert_eq!(controls.update(&voice, &limited), violates);
    let negative = Controls { max_content_length: Some(-1), ..Controls::default() };
    let refused = Err(RefusedArgument::BuiltIn(15).unacceptable());
    assert_eq!(controls.update(&negative, &limited), refused);
    assert!(controls.is_none(), "{controls:?}");
}

fn a_priority() -> impl Strategy<Value = Priority> {
    prop::sample::select(vec![Priority::NonUrgent, Priority::Normal, Priority::Urgent])
}

fn a_type() -> impl Strategy<Value = ContentType> {
    prop::sample::select(vec![ContentType::P2, ContentType::P22, ContentType::p772()])
}

prop_compose! {
    fn an_argument()(
        restrict in prop::bool::weighted(0.8),
        operations in prop::option::of((any::<bool>(), any::<bool>())),
        max_content_length in prop::option::of(0i64..20),
        lowest_priority in prop::option::of(a_priority()),
        content_types in prop::option::of(prop::collection::vec(a_type(), 1..3)),
    ) -> Controls {
        Controls {
            restrict,
            probes_or_reports: operations.map(|o| o.0),
            messages: operations.map(|o| o.1),
            max_content_length,
            lowest_priority,
            content_types,
            ..Controls::default()
        }
    }
}

/// For a member of a series of arguments: the last value since the last lifting, else the default.
fn last<T: Clone>(
    all: &[Controls],
    default: &Controls,
    of: impl Fn(&Controls) -> Option<T>,
) -> Option<T> {
    let since = all.iter().rposition(|c| !c.restrict).map_or(0, |lifted| lifted + 1);
    all[since..].iter().rev().find_map(&of).or_else(|| of(default))
}

proptest! {
    /// Whatever a user asks for, a delivery is permitted if the last value of each control permits it.
    #[test]
    fn a_delivery_is_permitted_by_the_last_value_of_each_control(
        default in an_argument(),
        arguments in prop::collection::vec(an_argument(), 0..6),
        is_report: bool, priority in a_priority(), length in 0u64..20, content_type in a_type(),
    ) {
        let default = Controls { restrict: true, ..default };
        let argument = RegisterArgument {
            default_controls: Some(default.clone()),
            ..RegisterArgument::default()
        };
        let registration = register(&Registration::default(), argument).unwrap();
        let kept = Registration::decode(&registration.encode()).unwrap();
        prop_assert_eq!(&kept, &registration);
        let mut controls = DeliveryControls::from_registration(&kept).unwrap();
        for argument in &arguments {
            controls.update(argument, &kept).unwrap();
        }
        let what = Deliverable { is_report, priority, length, content_type: Some(&content_type) };
        let order = [Priority::NonUrgent, Priority::Normal, Priority::Urgent];
        let place = |p: Priority| order.iter().position(|o| *o == p);
        let permitted = if is_report {
            last(&arguments, &default, |c| c.probes_or_reports) != Some(false)
        } else {
            let length = i64::try_from(length).unwrap();
            last(&arguments, &default, |c| c.messages) != Some(false)
                && last(&arguments, &default, |c| c.max_content_length).is_none_or(|m| length <= m)
                && last(&arguments, &default, |c| c.lowest_priority)
                    .is_none_or(|lowest| place(priority) >= place(lowest))
                && last(&arguments, &default, |c| c.content_types.clone())
                    .is_none_or(|all| all.contains(&content_type))
        };
        prop_assert_eq!(controls.holds(&what).is_none(), permitted);
        let mut waiting = Waiting::default();
        controls.note(&what, &mut waiting);
        prop_assert_eq!(waiting.is_none(), permitted);
    }

    #[test]
    fn any_octets_of_the_store_are_answered(octets in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Registration::decode(&octets);
    }
}
