//! The errors of the retrieval port, with their parameters (X.413 clause 9, codes of X.419).

mod parameter;

use crate::entry::{EntryClass, SequenceNumber};
use crate::extension::MsExtension;
use crate::named::named_numbers;
use crate::registration::{MessageGroupName, RegistrationTypes};
use crate::value::Value;
use base::ber::Oid;
use p1::p3::{AccessError, SecurityProblem};

named_numbers! {
    /// AttributeProblem.
    AttributeProblem {
        /// The value is not of the attribute's type.
        INVALID_ATTRIBUTE_VALUE = 0 "invalid-attribute-value";
        /// The store does not have the attribute type.
        UNAVAILABLE_ATTRIBUTE_TYPE = 1 "unavailable-attribute-type";
        /// A filter item compares in a manner that the attribute type does not have.
        INAPPROPRIATE_MATCHING = 2 "inappropriate-matching";
        /// The user has not subscribed to the attribute type.
        ATTRIBUTE_TYPE_NOT_SUBSCRIBED = 3 "attribute-type-not-subscribed";
        /// The operation does not take the attribute type.
        INAPPROPRIATE_FOR_OPERATION = 4 "inappropriate-for-operation";
        /// The attribute cannot be modified so (1994).
        INAPPROPRIATE_MODIFICATION = 5 "inappropriate-modification";
        /// The attribute has one value (1994).
        SINGLE_VALUED_ATTRIBUTE = 6 "single-valued-attribute";
    }
}

named_numbers! {
    /// AutoActionRequestProblem.
    AutoActionRequestProblem {
        /// The store does not have the auto-action.
        UNAVAILABLE_AUTO_ACTION_TYPE = 0 "unavailable-auto-action-type";
        /// The user has not subscribed to the auto-action.
        AUTO_ACTION_TYPE_NOT_SUBSCRIBED = 1 "auto-action-type-not-subscribed";
        /// The store does not perform it (1994).
        NOT_WILLING_TO_PERFORM = 2 "not-willing-to-perform";
    }
}

named_numbers! {
    /// DeleteProblem.
    DeleteProblem {
        /// A child entry is not deleted by itself.
        CHILD_ENTRY_SPECIFIED = 0 "child-entry-specified";
        /// The entry may not be deleted.
        DELETE_RESTRICTION_PROBLEM = 1 "delete-restriction-problem";
        /// The entry is new (1994).
        NEW_ENTRY_SPECIFIED = 2 "new-entry-specified";
        /// The class of entries is not deleted (1994).
        ENTRY_CLASS_RESTRICTION = 3 "entry-class-restriction";
        /// The message of the log entry is stored (1994).
        STORED_MESSAGE_EXISTS = 4 "stored-message-exists";
    }
}

named_numbers! {
    /// RangeProblem (1988).
    RangeProblem {
        /// The ends are in reverse order.
        REVERSED = 0 "reversed";
    }
}

named_numbers! {
    /// SequenceNumberProblem.
    SequenceNumberProblem {
        /// There is no such entry.
        NO_SUCH_ENTRY = 0 "no-such-entry";
    }
}

named_numbers! {
    /// ServiceProblem.
    ServiceProblem {
        /// Not now.
        BUSY = 0 "busy";
        /// Not available.
        UNAVAILABLE = 1 "unavailable";
        /// The store does not perform it.
        UNWILLING_TO_PERFORM = 2 "unwilling-to-perform";
    }
}

named_numbers! {
    /// MessageGroupProblem (1994).
    MessageGroupProblem {
        /// name-not-registered.
        NAME_NOT_REGISTERED = 0 "name-not-registered";
        /// name-already-registered.
        NAME_ALREADY_REGISTERED = 1 "name-already-registered";
        /// parent-not-registered.
        PARENT_NOT_REGISTERED = 2 "parent-not-registered";
        /// group-not-empty.
        GROUP_NOT_EMPTY = 3 "group-not-empty";
        /// name-in-use.
        NAME_IN_USE = 4 "name-in-use";
        /// child-group-registered.
        CHILD_GROUP_REGISTERED = 5 "child-group-registered";
        /// group-depth-exceeded.
        GROUP_DEPTH_EXCEEDED = 6 "group-depth-exceeded";
    }
}

named_numbers! {
    /// RegistrationProblem, ENUMERATED (1994).
    RegistrationProblem {
        /// registration-not-supported.
        REGISTRATION_NOT_SUPPORTED = 0 "registration-not-supported";
        /// registration-improperly-specified.
        REGISTRATION_IMPROPERLY_SPECIFIED = 1 "registration-improperly-specified";
        /// registration-limit-exceeded.
        REGISTRATION_LIMIT_EXCEEDED = 2 "registration-limit-exceeded";
    }
}

named_numbers! {
    /// ModifyProblem (1994).
    ModifyProblem {
        /// attribute-not-present.
        ATTRIBUTE_NOT_PRESENT = 0 "attribute-not-present";
        /// value-not-present.
        VALUE_NOT_PRESENT = 1 "value-not-present";
        /// attribute-or-value-already-exists.
        ATTRIBUTE_OR_VALUE_ALREADY_EXISTS = 2 "attribute-or-value-already-exists";
        /// invalid-position.
        INVALID_POSITION = 3 "invalid-position";
        /// modify-restriction-problem.
        MODIFY_RESTRICTION_PROBLEM = 4 "modify-restriction-problem";
    }
}

/// One problem of an attribute-error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeProblemItem {
    /// problem.
    pub problem: AttributeProblem,
    /// type.
    pub attribute_type: Oid,
    /// value.
    pub value: Option<Value>,
}

/// Why a fetch restriction of the bind keeps an entry or attribute back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchRestriction {
    /// content-type, 0.
    ContentType(Oid),
    /// eit, 1.
    Eits(Vec<Oid>),
    /// attribute-length, 2: octets.
    AttributeLength(i64),
}

/// One problem of a fetch-restriction-error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRestrictionItem {
    /// problem: content-type-problem 1, eit-problem 2, maximum-length-problem 3.
    pub problem: i64,
    /// restriction.
    pub restriction: FetchRestriction,
}

/// What an MSExtension was refused for (1994).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionProblem {
    /// ms-extension-problem, 0.
    Problem(MsExtension),
    /// unknown-ms-extension, 1.
    Unknown(Oid),
}

/// An error that an operation of the retrieval port returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MsError {
    /// attribute-error: 21.
    Attribute(Vec<AttributeProblemItem>),
    /// auto-action-request-error: 22.
    AutoActionRequest(Vec<(AutoActionRequestProblem, Oid)>),
    /// delete-error: 23.
    Delete {
        /// problems.
        problems: Vec<(DeleteProblem, SequenceNumber)>,
        /// entries-deleted (1994).
        entries_deleted: Vec<SequenceNumber>,
    },
    /// fetch-restriction-error: 24.
    FetchRestriction(Vec<FetchRestrictionItem>),
    /// range-error: 25. In contexts of 1988 only.
    Range(RangeProblem),
    /// security-error: 26. That of P3 has the code 12.
    Security(SecurityProblem),
    /// service-error: 27.
    Service {
        /// problem.
        problem: ServiceProblem,
        /// supplementary-information (1994).
        information: Option<String>,
    },
    /// sequence-number-error: 28.
    SequenceNumber(Vec<(SequenceNumberProblem, SequenceNumber)>),
    /// invalid-parameters-error: 29.
    InvalidParameters,
    /// message-group-error: 30 (1994).
    MessageGroup {
        /// problem.
        problem: MessageGroupProblem,
        /// name.
        name: MessageGroupName,
    },
    /// ms-extension-error: 31 (1994).
    Extension(ExtensionProblem),
    /// register-ms-error: 32 (1994).
    RegisterMs {
        /// problem.
        problem: RegistrationProblem,
        /// registration-type.
        types: RegistrationTypes,
    },
    /// modify-error: 33 (1994).
    Modify {
        /// entries-modified.
        entries_modified: Vec<SequenceNumber>,
        /// failing-entry.
        failing_entry: SequenceNumber,
        /// modification-number, counted from 1.
        modification_number: i64,
        /// problem.
        problem: ModifyProblem,
    },
    /// entry-class-error: 34 (1994).
    EntryClass {
        /// entry-class.
        entry_class: EntryClass,
        /// problem, bit `n` as `1 << n`: unsupported-entry-class 0, entry-class-not-subscribed 1,
        /// inappropriate-entry-class 2.
        problem: u32,
    },
    /// An error of P3, as register-MS returns for credentials, by its own code.
    Access(AccessError),
}

impl MsError {
    /// The local error code.
    pub fn code(&self) -> i64 {
        match self {
            MsError::Attribute(_) => 21,
            MsError::AutoActionRequest(_) => 22,
            MsError::Delete { .. } => 23,
            MsError::FetchRestriction(_) => 24,
            MsError::Range(_) => 25,
            MsError::Security(_) => 26,
            MsError::Service { .. } => 27,
            MsError::SequenceNumber(_) => 28,
            MsError::InvalidParameters => 29,
            MsError::MessageGroup { .. } => 30,
            MsError::Extension(_) => 31,
            MsError::RegisterMs { .. } => 32,
            MsError::Modify { .. } => 33,
            MsError::EntryClass { .. } => 34,
            MsError::Access(error) => error.code(),
        }
    }

    /// Name in the standard's terms.
    pub fn name(&self) -> &'static str {
        match self {
            MsError::Access(error) => error.name(),
            other => error_name(other.code()),
        }
    }

    /// The sequence-number-error of one entry that does not exist.
    pub fn no_such_entry(entry: SequenceNumber) -> MsError {
        MsError::SequenceNumber(vec![(SequenceNumberProblem::NO_SUCH_ENTRY, entry)])
    }

    /// The service-error of this problem.
    pub fn service(problem: ServiceProblem) -> MsError {
        MsError::Service { problem, information: None }
    }
}

/// The name of an error of the retrieval port, by its code.
fn error_name(code: i64) -> &'static str {
    match code {
        21 => "attribute-error",
        22 => "auto-action-request-error",
        23 => "delete-error",
        24 => "fetch-restriction-error",
        25 => "range-error",
        26 => "security-error",
        27 => "service-error",
        28 => "sequence-number-error",
        29 => "invalid-parameters-error",
        30 => "message-group-error",
        31 => "ms-extension-error",
        32 => "register-ms-error",
        33 => "modify-error",
        34 => "entry-class-error",
        _ => "an error of another port",
    }
}

impl From<AttributeProblemItem> for MsError {
    fn from(item: AttributeProblemItem) -> MsError {
        MsError::Attribute(vec![item])
    }
}

/// The name; of an error with one problem, its name too.
impl std::fmt::Display for MsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MsError::Range(problem) => write!(f, "{}: {problem}", self.name()),
            MsError::Service { problem, .. } => write!(f, "{}: {problem}", self.name()),
            MsError::MessageGroup { problem, .. } => write!(f, "{}: {problem}", self.name()),
            MsError::RegisterMs { problem, .. } => write!(f, "{}: {problem}", self.name()),
            MsError::Modify { problem, .. } => write!(f, "{}: {problem}", self.name()),
            MsError::Security(problem) => write!(f, "{}: {problem}", self.name()),
            MsError::Access(error) => error.fmt(f),
            MsError::Attribute(all) => match all.first() {
                Some(first) => {
                    write!(f, "{}: {} {}", self.name(), first.problem, first.attribute_type)
                }
                None => f.write_str(self.name()),
            },
            _ => f.write_str(self.name()),
        }
    }
}
