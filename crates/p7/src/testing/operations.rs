//! Arguments and results.

use super::*;
use crate::operation::{
    AlertArgument, DeleteArgument, DeleteItems, DeleteResult, EntryModification, FetchArgument,
    FetchItem, FetchResult, ListArgument, ListResult, Modification, ModifiedEntries,
    ModifyArgument, ModifyResult, OrderedAttribute, OrderedValue, RegisterMsArgument,
    RegisterMsResult, RegisteredInformation, Span, SummarizeArgument, SummarizeResult, Summary,
    SummaryValue,
};
use crate::registration::{
    MessageGroup, MessageGroupName, MessageGroupRegistration, MessageGroupsRestriction,
    RegistrationTypes, SubmissionOptions, UaRegistration,
};
use p1::p3::ChangeCredentials;

/// A summarize argument.
pub fn summarize_argument() -> impl Strategy<Value = SummarizeArgument> {
    (class(), selector(), vec(oid(), 0..3), extensions()).prop_map(
        |(entry_class, selector, summary_requests, extensions)| SummarizeArgument {
            entry_class,
            selector,
            summary_requests,
            extensions,
        },
    )
}

/// A summarize result.
pub fn summarize_result() -> impl Strategy<Value = SummarizeResult> {
    let value = (oid(), value(), any::<i64>())
        .prop_map(|(attribute_type, value, count)| SummaryValue { attribute_type, value, count });
    let summary = (of(any::<i64>()), vec(value, 0..3))
        .prop_map(|(absent, present)| Summary { absent, present });
    let span = (number(), number()).prop_map(|(lowest, highest)| Span { lowest, highest });
    (of(number()), any::<i64>(), of(span), vec(summary, 0..3), extensions()).prop_map(
        |(next, count, span, summaries, extensions)| SummarizeResult {
            next,
            count,
            span,
            summaries,
            extensions,
        },
    )
}

/// A list argument.
pub fn list_argument() -> impl Strategy<Value = ListArgument> {
    (class(), selector(), of(selection()), extensions()).prop_map(
        |(entry_class, selector, requested_attributes, extensions)| ListArgument {
            entry_class,
            selector,
            requested_attributes,
            extensions,
        },
    )
}

/// A list result.
pub fn list_result() -> impl Strategy<Value = ListResult> {
    (of(number()), vec(entry(), 0..4), extensions())
        .prop_map(|(next, requested, extensions)| ListResult { next, requested, extensions })
}

/// A fetch argument.
pub fn fetch_argument() -> impl Strategy<Value = FetchArgument> {
    let item =
        prop_oneof![selector().prop_map(FetchItem::Search), number().prop_map(FetchItem::Precise),];
    (class(), item, of(selection()), extensions()).prop_map(
        |(entry_class, item, requested_attributes, extensions)| FetchArgument {
            entry_class,
            item,
            requested_attributes,
            extensions,
        },
    )
}

/// A fetch result.
pub fn fetch_result() -> impl Strategy<Value = FetchResult> {
    (of(entry()), numbers(), of(number()), extensions()).prop_map(
        |(entry_information, list, next, extensions)| FetchResult {
            entry_information,
            list,
            next,
            extensions,
        },
    )
}

/// A delete argument.
pub fn delete_argument() -> impl Strategy<Value = DeleteArgument> {
    let items = prop_oneof![
        selector().prop_map(DeleteItems::Selector),
        numbers().prop_map(DeleteItems::SequenceNumbers),
    ];
    (class(), items, extensions()).prop_map(|(entry_class, items, extensions)| DeleteArgument {
        entry_class,
        items,
        extensions,
    })
}

/// A delete result, of either edition.
pub fn delete_result() -> impl Strategy<Value = DeleteResult> {
    prop_oneof![
        Just(DeleteResult::Of1988),
        (numbers(), extensions()).prop_map(|(entries_deleted, extensions)| DeleteResult::Of1994 {
            entries_deleted,
            extensions,
        }),
    ]
}

/// The name of a message group.
pub fn group_name() -> impl Strategy<Value = MessageGroupName> {
    vec("[ -~]{1,8}", 1..4).prop_map(MessageGroupName)
}

fn group() -> impl Strategy<Value = MessageGroup> {
    (group_name(), of("[ -~]{1,20}"))
        .prop_map(|(name, descriptor)| MessageGroup { name, descriptor })
}

fn submission_options() -> impl Strategy<Value = SubmissionOptions> {
    (of(class()), any::<bool>(), vec(group_name(), 0..3), extensions()).prop_map(
        |(object_entry_class, disable_auto_modify, add_message_group_names, extensions)| {
            SubmissionOptions {
                object_entry_class,
                disable_auto_modify,
                add_message_group_names,
                extensions,
            }
        },
    )
}

/// Attribute defaults.
fn defaults() -> impl Strategy<Value = Option<Vec<base::ber::Oid>>> {
    of(vec(oid(), 0..3))
}

fn user_agent() -> impl Strategy<Value = UaRegistration> {
    ("[A-Z]{1,8}", defaults(), defaults(), of(submission_options()), extensions()).prop_map(
        |(identifier, list, fetch, submission_defaults, content_specific_defaults)| {
            UaRegistration {
                identifier,
                list_attribute_defaults: list,
                fetch_attribute_defaults: fetch,
                submission_defaults,
                content_specific_defaults,
            }
        },
    )
}

/// Which registrations.
pub fn registration_types() -> impl Strategy<Value = RegistrationTypes> {
    let restriction = (of(group_name()), any::<bool>(), any::<bool>()).prop_map(
        |(parent_group, immediate_descendants_only, omit_descriptors)| MessageGroupsRestriction {
            parent_group,
            immediate_descendants_only,
            omit_descriptors,
        },
    );
    (of(0u32..64), vec(oid(), 0..3), of(restriction)).prop_map(
        |(registrations, extended, restrict_message_groups)| RegistrationTypes {
            registrations,
            extended,
            restrict_message_groups,
        },
    )
}

/// A register-MS argument.
pub fn register_argument() -> impl Strategy<Value = RegisterMsArgument> {
    let change =
        (credentials(), credentials()).prop_map(|(old, new)| ChangeCredentials { old, new });
    let label = Just(Bytes::from_static(&[0x31, 3, 2, 1, 4]));
    let groups = prop_oneof![
        group().prop_map(MessageGroupRegistration::Register),
        group_name().prop_map(MessageGroupRegistration::Deregister),
        group().prop_map(MessageGroupRegistration::ChangeDescriptors),
    ];
    let actions = (vec(registration(), 0..3), vec(deregistration(), 0..3));
    let of_1988 = (actions, defaults(), defaults(), of(change), vec(label, 0..3));
    let of_1994 = (
        vec(user_agent(), 0..2),
        of(submission_options()),
        vec(groups, 0..3),
        of(registration_types()),
        extensions(),
    );
    (of_1988, of_1994).prop_map(|(first, later)| RegisterMsArgument {
        auto_action_registrations: first.0.0,
        auto_action_deregistrations: first.0.1,
        list_attribute_defaults: first.1,
        fetch_attribute_defaults: first.2,
        change_credentials: first.3,
        user_security_labels: first.4,
        ua_registrations: later.0,
        submission_defaults: later.1,
        message_group_registrations: later.2,
        registration_status_request: later.3,
        extensions: later.4,
    })
}

/// A register-MS result, of either edition.
pub fn register_result() -> impl Strategy<Value = RegisterMsResult> {
    let lists = (vec(registration(), 0..3), vec(oid(), 0..3), vec(oid(), 0..3));
    let rest =
        (vec(user_agent(), 0..2), of(submission_options()), vec(group(), 0..3), extensions());
    let registered = (lists, rest).prop_map(|(lists, rest)| RegisteredInformation {
        auto_action_registrations: lists.0,
        list_attribute_defaults: lists.1,
        fetch_attribute_defaults: lists.2,
        ua_registrations: rest.0,
        submission_defaults: rest.1,
        message_group_registrations: rest.2,
        extensions: rest.3,
    });
    prop_oneof![
        1 => Just(RegisterMsResult::NoStatusInformation),
        4 => registered.prop_map(RegisterMsResult::Registered),
    ]
}

/// An alert argument.
pub fn alert_argument() -> impl Strategy<Value = AlertArgument> {
    (any::<i64>(), of(entry())).prop_map(|(registration_identifier, new_entry)| AlertArgument {
        registration_identifier,
        new_entry,
    })
}

fn ordered() -> impl Strategy<Value = OrderedAttribute> {
    let value = (of(value()), of(any::<i64>()))
        .prop_map(|(value, position)| OrderedValue { value, position });
    (oid(), vec(value, 1..4))
        .prop_map(|(attribute_type, values)| OrderedAttribute { attribute_type, values })
}

/// A modify argument.
pub fn modify_argument() -> impl Strategy<Value = ModifyArgument> {
    let modification = prop_oneof![
        attribute().prop_map(Modification::AddAttribute),
        oid().prop_map(Modification::RemoveAttribute),
        ordered().prop_map(Modification::AddValues),
        ordered().prop_map(Modification::RemoveValues),
    ];
    let modification = (any::<bool>(), modification)
        .prop_map(|(strict, modification)| EntryModification { strict, modification });
    let entries = prop_oneof![
        selector().prop_map(ModifiedEntries::Selector),
        numbers().prop_map(ModifiedEntries::Specific),
    ];
    (class(), entries, vec(modification, 1..3), extensions()).prop_map(
        |(entry_class, entries, modifications, extensions)| ModifyArgument {
            entry_class,
            entries,
            modifications,
            extensions,
        },
    )
}

/// A modify result.
pub fn modify_result() -> impl Strategy<Value = ModifyResult> {
    (numbers(), extensions())
        .prop_map(|(entries_modified, extensions)| ModifyResult { entries_modified, extensions })
}
