use super::*;
use crate::item::Item;
use crate::testing::{Copies, at};
use base::Precedence;
use base::ber::universal as u;
use engine::journal::ItemId;
use p7::attributes as a;
use p7::auto_action::AutoActionDeregistration;
use p7::auto_forward::AutoForwardArguments;
use p7::filter::Assertion;
use p7::{AttributeSelection, FilterItem, Value};

fn subject(text: &str) -> Filter {
    Filter::equality(a::SUBJECT.oid(), Value::from_text(u::TELETEX_STRING, text))
}

fn alert(identifier: i64, filter: Option<Filter>) -> AutoActionRegistration {
    let requested = vec![AttributeSelection::new(a::SUBJECT.oid())];
    AutoAlert { filter, requested_attributes: Some(requested), ..AutoAlert::default() }
        .registration(identifier)
}

fn forward(filter: Option<&Filter>) -> AutoActionRegistration {
    let name = |text: &str| text.parse::<p1::names::ORName>().unwrap();
    let arguments = AutoForwardArguments {
        originator: name("/C=XX/ADMD=A/S=Jones"),
        recipients: vec![p1::p3::PerRecipientSubmissionFields {
            recipient: name("/C=XX/ADMD=A/S=Smith"),
            ..Default::default()
        }],
        ..AutoForwardArguments::default()
    };
    let forward = AutoForward { filter: filter.cloned(), arguments, ..AutoForward::default() };
    forward.registration(1)
}

fn registered(actions: Vec<AutoActionRegistration>) -> Registrations {
    let argument =
        RegisterMsArgument { auto_action_registrations: actions, ..RegisterMsArgument::default() };
    Registrations::default().register(&argument).unwrap().0
}

fn record(text: &str) -> Bytes {
    let copy = Copies::default().message(at(1), Precedence::Flash, text, 10).unwrap();
    let id = ItemId { mailbox: MailboxId(1), number: 4 };
    Item::new(id, at(1), &copy.record, &copy.delivery, &copy.content).unwrap().encode()
}

#[test]
fn an_item_raises_the_alerts_whose_filter_it_matches() {
    let all = registered(vec![
        alert(3, None),
        alert(1, Some(subject("Convoy"))),
        alert(2, Some(subject("Weather"))),
    ]);
    let record = record("convoy");
    let item = Attributes::new(4, Precedence::Flash, &record).unwrap();
    let raised = all.alerts(&item);
    let identifiers: Vec<_> = raised.iter().map(|alert| alert.registration_identifier).collect();
    assert_eq!(identifiers, [1, 3]);
    let entry = raised[0].new_entry.as_ref().unwrap();
    assert_eq!(entry.attribute(&a::SUBJECT.oid()).unwrap().values[0].text().unwrap(), "convoy");
    assert!(Registrations::default().alerts(&item).is_empty());
}

#[test]
fn an_item_is_forwarded_by_the_filter_in_the_parameter() {
    let record = record("Convoy");
    let item = Attributes::new(4, Precedence::Flash, &record).unwrap();
    let forwards =
        |filter: Option<&Filter>| registered(vec![forward(filter)]).forwards(&item).len();
    assert_eq!(forwards(None), 1);
    assert_eq!(forwards(Some(&subject("Convoy"))), 1);
    assert_eq!(forwards(Some(&subject("Weather"))), 0);
}

#[test]
fn registrations_replace_and_remove_others_and_are_read_back() {
    let first = registered(vec![alert(1, None), alert(2, None)]);
    let argument = RegisterMsArgument {
        auto_action_registrations: vec![alert(1, Some(subject("Convoy")))],
        auto_action_deregistrations: vec![AutoActionDeregistration {
            auto_action_type: AutoActionKind::AutoAlert.oid(),
            identifier: 2,
        }],
        list_attribute_defaults: Some(vec![a::SUBJECT.oid()]),
        fetch_attribute_defaults: Some(vec![a::HEADING.oid(), a::CONTENT.oid()]),
        registration_status_request: Some(RegistrationTypes {
            registrations: Some(3),
            ..RegistrationTypes::default()
        }),
        ..RegisterMsArgument::default()
    };
    let (second, result) = first.register(&argument).unwrap();
    let RegisterMsResult::Registered(information) = result else { panic!() };
    assert_eq!(information.auto_action_registrations, argument.auto_action_registrations);
    assert_eq!(information.list_attribute_defaults, [a::SUBJECT.oid()]);
    assert!(information.fetch_attribute_defaults.is_empty());
    assert_eq!(second.list_defaults(), [Selected::new(available(&a::SUBJECT.oid()).unwrap())]);
    assert_eq!(second.fetch_defaults().len(), 2);
    assert_eq!(Registrations::decode(Some(&second.encode())), Ok(second.clone()));
    assert_eq!(Registrations::decode(None), Ok(Registrations::default()));
    assert_eq!(Registrations::decode(Some(&[9])), Err(ValueError::Version(9)));
    assert!(Registrations::decode(Some(&[1, 49])).is_err());
    let cleared = RegisterMsArgument {
        list_attribute_defaults: Some(vec![]),
        ..RegisterMsArgument::default()
    };
    assert_eq!(second.register(&cleared).unwrap().0.list_defaults(), []);
}

#[test]
fn what_the_store_does_not_have_is_refused() {
    let refused = |argument: RegisterMsArgument| {
        Registrations::default().register(&argument).unwrap_err().code()
    };
    let default = RegisterMsArgument::default;
    let unknown = vec![a::MESSAGE_NOTES.oid()];
    assert_eq!(
        refused(RegisterMsArgument { list_attribute_defaults: Some(unknown), ..default() }),
        21
    );
    let other = AutoActionRegistration {
        auto_action_type: AutoActionKind::AutoDelete.oid(),
        ..alert(1, None)
    };
    let actions = |actions| RegisterMsArgument { auto_action_registrations: actions, ..default() };
    assert_eq!(refused(actions(vec![other])), 22);
    let without = AutoActionRegistration { parameter: None, ..alert(1, None) };
    assert_eq!(refused(actions(vec![without])), 29);
    let without = AutoActionRegistration { parameter: None, ..forward(None) };
    assert_eq!(refused(actions(vec![without])), 29);
    let many = (1..=MAX_ACTIONS as i64 + 1).map(|n| alert(n, None)).collect();
    assert_eq!(refused(actions(many)), 27);
    let removed = AutoActionDeregistration {
        auto_action_type: AutoActionKind::AutoAlert.oid(),
        identifier: 7,
    };
    let argument = RegisterMsArgument { auto_action_deregistrations: vec![removed], ..default() };
    assert_eq!(refused(argument), 22);
    let options = p7::registration::SubmissionOptions::default();
    assert_eq!(refused(RegisterMsArgument { submission_defaults: Some(options), ..default() }), 32);
    let labels = vec![Bytes::from_static(&[0x31, 0])];
    assert_eq!(refused(RegisterMsArgument { user_security_labels: labels, ..default() }), 27);
    let item = Filter::Item(FilterItem::Present(a::MESSAGE_NOTES.oid()));
    assert_eq!(refused(actions(vec![alert(1, Some(item))])), 21);
}

#[test]
fn an_identifier_has_its_bounds() {
    for identifier in [0, -1, MAX_IDENTIFIER + 1, i64::MAX] {
        let argument = RegisterMsArgument {
            auto_action_registrations: vec![alert(identifier, None)],
            ..RegisterMsArgument::default()
        };
        let refused = Registrations::default().register(&argument);
        assert_eq!(refused.unwrap_err(), MsError::InvalidParameters, "{identifier}");
    }
    registered(vec![alert(MAX_IDENTIFIER, None)]);
}

#[test]
fn what_can_match_nothing_is_refused() {
    // priority has no order, and there is no attribute 1.2.3.
    let ordered = Filter::Item(FilterItem::GreaterOrEqual(Assertion {
        attribute_type: a::PRIORITY.oid(),
        value: Value::from_enumerated(2),
    }));
    let unknown = Filter::Item(FilterItem::Present("1.2.3".parse().unwrap()));
    let not = Filter::Not(Box::new(unknown.clone()));
    let attributes = vec![AttributeSelection::new("1.2.3".parse().unwrap())];
    let asks = AutoAlert { requested_attributes: Some(attributes), ..AutoAlert::default() };
    let mut all = vec![asks.registration(1)];
    for filter in [ordered, unknown, not] {
        all.extend([alert(1, Some(filter.clone())), forward(Some(&filter))]);
    }
    for action in all {
        let argument = RegisterMsArgument {
            auto_action_registrations: vec![action],
            ..RegisterMsArgument::default()
        };
        let refused = Registrations::default().register(&argument).unwrap_err();
        assert!(matches!(refused, MsError::Attribute(_)), "{refused:?}");
    }
}
