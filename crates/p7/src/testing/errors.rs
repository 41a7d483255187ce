//! Errors.

use super::*;
use crate::error::{
    AttributeProblem, AttributeProblemItem, AutoActionRequestProblem, DeleteProblem,
    ExtensionProblem, FetchRestriction, FetchRestrictionItem, MessageGroupProblem, ModifyProblem,
    MsError, RangeProblem, RegistrationProblem, SequenceNumberProblem, ServiceProblem,
};
use p1::p3::{AccessError, SecurityProblem};

fn of_1988() -> impl Strategy<Value = MsError> {
    let attribute = (0i64..9, oid(), of(value())).prop_map(|(problem, attribute_type, value)| {
        AttributeProblemItem { problem: AttributeProblem(problem), attribute_type, value }
    });
    let action = (0i64..4, oid()).prop_map(|(n, kind)| (AutoActionRequestProblem(n), kind));
    let delete = (0i64..6, number()).prop_map(|(n, entry)| (DeleteProblem(n), entry));
    let restriction = prop_oneof![
        oid().prop_map(FetchRestriction::ContentType),
        vec(oid(), 0..3).prop_map(FetchRestriction::Eits),
        any::<i64>().prop_map(FetchRestriction::AttributeLength),
    ];
    let restriction = (1i64..5, restriction)
        .prop_map(|(problem, restriction)| FetchRestrictionItem { problem, restriction });
    let missing = (0i64..2, number()).prop_map(|(n, entry)| (SequenceNumberProblem(n), entry));
    prop_oneof![
        vec(attribute, 1..4).prop_map(MsError::Attribute),
        vec(action, 1..4).prop_map(MsError::AutoActionRequest),
        (vec(delete, 1..4), numbers())
            .prop_map(|(problems, entries_deleted)| MsError::Delete { problems, entries_deleted }),
        vec(restriction, 1..4).prop_map(MsError::FetchRestriction),
        (0i64..3).prop_map(|n| MsError::Range(RangeProblem(n))),
        (0i64..60).prop_map(|n| MsError::Security(SecurityProblem(n))),
        (0i64..4, of("[ -~]{0,20}")).prop_map(|(n, information)| MsError::Service {
            problem: ServiceProblem(n),
            information,
        }),
        vec(missing, 1..4).prop_map(MsError::SequenceNumber),
        Just(MsError::InvalidParameters),
        Just(MsError::Access(AccessError::NewCredentialsUnacceptable)),
    ]
}

fn of_1994() -> impl Strategy<Value = MsError> {
    let extension = prop_oneof![
        oid().prop_map(|id| ExtensionProblem::Problem(MsExtension::new(&id, |w| w.null(u::NULL)))),
        oid().prop_map(ExtensionProblem::Unknown),
    ];
    prop_oneof![
        (0i64..8, group_name())
            .prop_map(|(n, name)| MsError::MessageGroup { problem: MessageGroupProblem(n), name }),
        extension.prop_map(MsError::Extension),
        (0i64..4, registration_types())
            .prop_map(|(n, types)| MsError::RegisterMs { problem: RegistrationProblem(n), types }),
        (numbers(), number(), any::<i64>(), 0i64..6).prop_map(
            |(entries_modified, failing_entry, modification_number, n)| MsError::Modify {
                entries_modified,
                failing_entry,
                modification_number,
                problem: ModifyProblem(n),
            }
        ),
        (class(), 0u32..8)
            .prop_map(|(entry_class, problem)| MsError::EntryClass { entry_class, problem }),
    ]
}

/// An error of either edition.
pub fn error() -> impl Strategy<Value = MsError> {
    prop_oneof![2 => of_1988(), 1 => of_1994()]
}
