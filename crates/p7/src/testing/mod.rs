//! Generators of valid values for property tests (proptest), here and in other crates.

use crate::auto_action::{
    AlertDestination, AutoActionDeregistration, AutoActionRegistration, AutoAlert,
};
use crate::bind::{
    AutoActionErrorIndication, BindProblem, MsBindArgument, MsBindError, MsBindResult,
    MsBindResult1994, Restrictions,
};
use crate::entry::{Attribute, AttributeValueCount, EntryClass, EntryInformation, SequenceNumber};
use crate::extension::MsExtension;
use crate::filter::{Assertion, Filter, FilterItem, Substring};
use crate::selector::{AttributeSelection, OverrideRestrictions, Range, Selector};
use crate::value::Value;
use base::ber::{Tag, universal as u};
use bytes::Bytes;
use p1::Credentials;
use p1::testing::{name, oid, time};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

mod errors;
mod operations;

pub use errors::*;
pub use operations::*;

/// A value of one of the types that attributes have.
pub fn value() -> BoxedStrategy<Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from_integer),
        (0i64..40).prop_map(Value::from_enumerated),
        any::<bool>().prop_map(Value::from_boolean),
        oid().prop_map(|oid| Value::from_oid(&oid)),
        time().prop_map(|time| Value::from_time(&time)),
        "[ -~]{0,40}".prop_map(|text| Value::from_text(u::TELETEX_STRING, &text)),
        vec(any::<u8>(), 0..200).prop_map(|octets| Value::from_octet_string(&octets)),
        name().prop_map(|name| Value::from_or_name(&name)),
        vec(any::<u8>(), 0..30).prop_map(|content| {
            Value::written(|w| w.constructed(u::SET, |w| w.primitive(Tag::context(4), &content)))
        }),
    ]
    .boxed()
}

/// A sequence number.
pub fn number() -> impl Strategy<Value = SequenceNumber> {
    any::<u32>().prop_map(SequenceNumber)
}

/// Sequence numbers.
pub fn numbers() -> impl Strategy<Value = Vec<SequenceNumber>> {
    vec(number(), 0..6)
}

/// A class, also one that no edition has.
pub fn class() -> impl Strategy<Value = EntryClass> {
    (0i64..12).prop_map(EntryClass)
}

/// An attribute.
pub fn attribute() -> BoxedStrategy<Attribute> {
    (oid(), vec(value(), 1..4))
        .prop_map(|(attribute_type, values)| Attribute { attribute_type, values })
        .boxed()
}

/// What a result has of an entry.
pub fn entry() -> BoxedStrategy<EntryInformation> {
    let counts = (oid(), any::<i64>())
        .prop_map(|(attribute_type, total)| AttributeValueCount { attribute_type, total });
    (number(), vec(attribute(), 0..4), vec(counts, 0..3))
        .prop_map(|(sequence_number, attributes, value_count_exceeded)| EntryInformation {
            sequence_number,
            attributes,
            value_count_exceeded,
        })
        .boxed()
}

/// Extensions.
pub fn extensions() -> BoxedStrategy<Vec<MsExtension>> {
    let one = (oid(), any::<i64>())
        .prop_map(|(id, value)| MsExtension::new(&id, |w| w.integer(u::INTEGER, value)));
    vec(one, 0..3).boxed()
}

fn filter_item() -> BoxedStrategy<FilterItem> {
    let assertion =
        || (oid(), value()).prop_map(|(attribute_type, value)| Assertion { attribute_type, value });
    let string = prop_oneof![
        value().prop_map(Substring::Initial),
        value().prop_map(Substring::Any),
        value().prop_map(Substring::Final),
    ];
    prop_oneof![
        assertion().prop_map(FilterItem::Equality),
        (oid(), vec(string, 0..4)).prop_map(|(attribute_type, strings)| {
            FilterItem::Substrings { attribute_type, strings }
        }),
        assertion().prop_map(FilterItem::GreaterOrEqual),
        assertion().prop_map(FilterItem::LessOrEqual),
        oid().prop_map(FilterItem::Present),
        assertion().prop_map(FilterItem::Approximate),
        (oid(), oid(), value()).prop_map(|(matching_rule, attribute_type, value)| {
            FilterItem::Other { matching_rule, attribute_type, value }
        }),
    ]
    .boxed()
}

/// A filter of a few levels.
pub fn filter() -> BoxedStrategy<Filter> {
    filter_item()
        .prop_map(Filter::Item)
        .prop_recursive(4, 12, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..3).prop_map(Filter::And),
                vec(inner.clone(), 0..3).prop_map(Filter::Or),
                inner.prop_map(|inner| Filter::Not(Box::new(inner))),
            ]
        })
        .boxed()
}

fn range() -> BoxedStrategy<Range> {
    prop_oneof![
        (of(number()), of(number())).prop_map(|(from, to)| Range::SequenceNumber { from, to }),
        (of(time()), of(time())).prop_map(|(from, to)| Range::CreationTime { from, to }),
    ]
    .boxed()
}

/// A selector.
pub fn selector() -> BoxedStrategy<Selector> {
    let overriding = (0u32..16).prop_map(OverrideRestrictions);
    (any::<bool>(), of(range()), of(filter()), of(1i64..1_000), of(overriding))
        .prop_map(|(child_entries, range, filter, limit, override_restrictions)| Selector {
            child_entries,
            range,
            filter,
            limit,
            override_restrictions,
        })
        .boxed()
}

/// A selection of attributes.
pub fn selection() -> BoxedStrategy<Vec<AttributeSelection>> {
    let one =
        (oid(), of(any::<i64>()), of(any::<i64>())).prop_map(|(attribute_type, from, count)| {
            AttributeSelection { attribute_type, from, count }
        });
    vec(one, 0..4).boxed()
}

/// A registration of an auto-action.
pub fn registration() -> impl Strategy<Value = AutoActionRegistration> {
    (oid(), 1i64..100, of(value())).prop_map(|(auto_action_type, identifier, parameter)| {
        AutoActionRegistration { auto_action_type, identifier, parameter }
    })
}

/// A deregistration of an auto-action.
pub fn deregistration() -> impl Strategy<Value = AutoActionDeregistration> {
    (oid(), 1i64..100).prop_map(|(auto_action_type, identifier)| AutoActionDeregistration {
        auto_action_type,
        identifier,
    })
}

/// The parameter of auto-alert.
pub fn auto_alert() -> impl Strategy<Value = AutoAlert> {
    let qualifier = vec(any::<u8>(), 0..8).prop_map(Bytes::from);
    let destination = of(qualifier).prop_map(|qualifier| AlertDestination {
        address: Bytes::from_static(&[0x28, 6, 6, 1, 0x2a, 0x81, 1, 7]),
        qualifier,
    });
    (of(filter()), vec(destination, 0..3), of(selection()), any::<bool>()).prop_map(
        |(filter, destinations, requested_attributes, suppress_destinations)| AutoAlert {
            filter,
            destinations,
            requested_attributes,
            suppress_destinations,
        },
    )
}

/// Credentials, simple ones.
pub fn credentials() -> impl Strategy<Value = Credentials> {
    "[ -~]{0,20}".prop_map(Credentials::simple)
}

/// A bind argument.
pub fn bind_argument() -> impl Strategy<Value = MsBindArgument> {
    let restrictions = (vec(oid(), 0..3), vec(oid(), 0..3), of(any::<i64>())).prop_map(
        |(allowed_content_types, allowed_eits, maximum_attribute_length)| Restrictions {
            allowed_content_types,
            allowed_eits,
            maximum_attribute_length,
        },
    );
    let context = Just(Bytes::from_static(&[0xa3, 4, 0x31, 2, 2, 0]));
    let rest = (of(context), of(restrictions), any::<bool>(), of("[A-Z]{1,8}"), extensions());
    (name(), credentials(), rest).prop_map(|(initiator_name, initiator_credentials, rest)| {
        let (security_context, fetch_restrictions, request, identifier, extensions) = rest;
        MsBindArgument {
            initiator_name,
            initiator_credentials,
            security_context,
            fetch_restrictions,
            ms_configuration_request: request,
            ua_registration_identifier: identifier,
            extensions,
        }
    })
}

fn bind_result_of_1994() -> impl Strategy<Value = MsBindResult1994> {
    let indication = prop_oneof![
        Just(AutoActionErrorIndication::IndicationOnly),
        number().prop_map(AutoActionErrorIndication::AutoActionLogEntry),
    ];
    let lists = (vec(class(), 0..3), vec(oid(), 0..3), vec(oid(), 0..3), extensions());
    let rest = (of(1i64..9), of(indication), any::<bool>(), of("[ -~]{1,20}"));
    (lists, rest).prop_map(|(lists, rest)| {
        let (entry_classes_supported, matching_rules_supported, unsupported, extensions) = lists;
        MsBindResult1994 {
            entry_classes_supported,
            matching_rules_supported,
            extensions,
            message_group_depth: rest.0,
            auto_action_error_indication: rest.1,
            unsupported_extensions: unsupported,
            ua_registration_id_unknown: rest.2,
            service_information: rest.3,
        }
    })
}

/// A bind result.
pub fn bind_result() -> impl Strategy<Value = MsBindResult> {
    let lists = (vec(oid(), 0..3), vec(oid(), 0..3), vec(oid(), 0..3));
    (credentials(), lists, any::<bool>(), bind_result_of_1994()).prop_map(
        |(responder_credentials, lists, alert_indication, of_1994)| MsBindResult {
            responder_credentials,
            available_auto_actions: lists.0,
            available_attribute_types: lists.1,
            alert_indication,
            content_types_supported: lists.2,
            of_1994,
        },
    )
}

/// A bind error, of either form.
pub fn bind_error() -> impl Strategy<Value = MsBindError> {
    let problem = || (0i64..7).prop_map(BindProblem);
    prop_oneof![
        problem().prop_map(MsBindError::Unqualified),
        (problem(), of("[ -~]{0,20}"), vec(oid(), 0..3)).prop_map(
            |(problem, information, extension_errors)| MsBindError::Qualified {
                problem,
                information,
                extension_errors,
            }
        ),
    ]
}
