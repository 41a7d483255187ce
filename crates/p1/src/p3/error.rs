use crate::names::ORName;
use crate::wire::{self, Kept, bound, written};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set};
use bytes::Bytes;
use rasn::{AsnType, Decode, Encode};

/// security-problem (X.411 8.2.2.8): why an operation failed for security. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, AsnType, Decode, Encode)]
#[rasn(delegate)]
pub struct SecurityProblem(pub i64);

impl SecurityProblem {
    /// authentication-problem.
    pub const AUTHENTICATION_PROBLEM: SecurityProblem = SecurityProblem(1);
    /// operation-security-failure.
    pub const OPERATION_SECURITY_FAILURE: SecurityProblem = SecurityProblem(14);
    /// security-context-failure.
    pub const SECURITY_CONTEXT_FAILURE: SecurityProblem = SecurityProblem(19);
    /// security-policy-violation.
    pub const SECURITY_POLICY_VIOLATION: SecurityProblem = SecurityProblem(21);
    /// security-services-refusal.
    pub const SECURITY_SERVICES_REFUSAL: SecurityProblem = SecurityProblem(22);
    /// unauthorised-originator-name.
    pub const UNAUTHORISED_ORIGINATOR_NAME: SecurityProblem = SecurityProblem(29);
    /// unauthorised-user-name.
    pub const UNAUTHORISED_USER_NAME: SecurityProblem = SecurityProblem(32);
}

impl std::fmt::Display for SecurityProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match *self {
            SecurityProblem::AUTHENTICATION_PROBLEM => "authentication-problem",
            SecurityProblem::OPERATION_SECURITY_FAILURE => "operation-security-failure",
            SecurityProblem::SECURITY_CONTEXT_FAILURE => {
                "security-context-failure: it is outside the security-context of the association"
            }
            SecurityProblem::SECURITY_POLICY_VIOLATION => {
                "security-policy-violation: the user is not cleared for its label, or for a message \
                 without one"
            }
            SecurityProblem::SECURITY_SERVICES_REFUSAL => "security-services-refusal",
            SecurityProblem::UNAUTHORISED_ORIGINATOR_NAME => "unauthorised-originator-name",
            SecurityProblem::UNAUTHORISED_USER_NAME => "unauthorised-user-name",
            SecurityProblem(number) => return write!(f, "security-problem {number}"),
        };
        f.write_str(name)
    }
}

/// RefusedOperation: which part of an argument was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(choice)]
pub enum RefusedArgument {
    /// built-in-argument, by number: user-name 0, user-address 1, ..., permissible-security-context 16.
    #[rasn(tag(1))]
    BuiltIn(i64),
    /// refused-extension: the whole element of its type.
    Extension(Kept),
}

impl RefusedArgument {
    /// user-name.
    pub const USER_NAME: RefusedArgument = RefusedArgument::BuiltIn(0);
    /// user-address.
    pub const USER_ADDRESS: RefusedArgument = RefusedArgument::BuiltIn(1);
    /// deliverable-content-types.
    pub const DELIVERABLE_CONTENT_TYPES: RefusedArgument = RefusedArgument::BuiltIn(2);
    /// deliverable-maximum-content-length.
    pub const DELIVERABLE_MAX_CONTENT_LENGTH: RefusedArgument = RefusedArgument::BuiltIn(3);
    /// deliverable-encoded-information-types-constraints.
    pub const DELIVERABLE_EITS: RefusedArgument = RefusedArgument::BuiltIn(4);
    /// deliverable-security-labels.
    pub const DELIVERABLE_SECURITY_LABELS: RefusedArgument = RefusedArgument::BuiltIn(5);
    /// recipient-assigned-redirections.
    pub const REDIRECTIONS: RefusedArgument = RefusedArgument::BuiltIn(6);
    /// restricted-delivery.
    pub const RESTRICTED_DELIVERY: RefusedArgument = RefusedArgument::BuiltIn(7);
    /// retrieve-registrations.
    pub const RETRIEVE_REGISTRATIONS: RefusedArgument = RefusedArgument::BuiltIn(8);
    /// permissible-encoded-information-types.
    pub const PERMISSIBLE_EITS: RefusedArgument = RefusedArgument::BuiltIn(13);
    /// permissible-content-types.
    pub const PERMISSIBLE_CONTENT_TYPES: RefusedArgument = RefusedArgument::BuiltIn(14);
    /// permissible-maximum-content-length.
    pub const PERMISSIBLE_MAX_CONTENT_LENGTH: RefusedArgument = RefusedArgument::BuiltIn(15);
    /// permissible-security-context.
    pub const PERMISSIBLE_SECURITY_CONTEXT: RefusedArgument = RefusedArgument::BuiltIn(16);

    /// The name of a built-in argument (RefusedArgument of X.411); none of an extension, or of a number that
    /// X.411 does not give.
    pub fn name(&self) -> Option<&'static str> {
        let RefusedArgument::BuiltIn(number) = self else { return None };
        Some(match number {
            0 => "user-name",
            1 => "user-address",
            2 => "deliverable-content-types",
            3 => "deliverable-maximum-content-length",
            4 => "deliverable-encoded-information-types-constraints",
            5 => "deliverable-security-labels",
            6 => "recipient-assigned-redirections",
            7 => "restricted-delivery",
            8 => "retrieve-registrations",
            10 => "restrict",
            11 => "permissible-operations",
            12 => "permissible-lowest-priority",
            13 => "permissible-encoded-information-types",
            14 => "permissible-content-types",
            15 => "permissible-maximum-content-length",
            16 => "permissible-security-context",
            _ => return None,
        })
    }

    /// The error that refuses it as not offered here: refusal-reason facility-unavailable.
    pub fn unavailable(self) -> AccessError {
        AccessError::OperationRefused { argument: self, reason: 0 }
    }

    /// The error that refuses its value: refusal-reason parameter-unacceptable.
    pub fn unacceptable(self) -> AccessError {
        AccessError::OperationRefused { argument: self, reason: 2 }
    }
}

/// The parameter of an error.
#[derive(AsnType, Encode)]
#[rasn(choice)]
enum Parameter {
    Null(()),
    Recipients(Vec<Kept>),
    Problem(SecurityProblem),
    /// RefusedOperation: a derived SET takes no member without a tag.
    #[rasn(tag(universal, 17))]
    Refused(Vec<RefusedMember>),
    Other(Kept),
}

#[derive(AsnType, Encode)]
#[rasn(choice)]
enum RefusedMember {
    Argument(RefusedArgument),
    #[rasn(tag(2))]
    Reason(i64),
}

/// An error an operation returns (X.411 8.2.2, 8.3.2, 8.4.2; codes of X.419).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// submission-control-violated or delivery-control-violated, after the operation: 1.
    ControlViolated,
    /// originator-invalid: 2.
    OriginatorInvalid,
    /// recipient-improperly-specified, with the recipients in question: 3.
    RecipientImproperlySpecified(Vec<ORName>),
    /// element-of-service-not-subscribed: 4.
    ElementOfServiceNotSubscribed,
    /// old-credentials-incorrectly-specified: 5.
    OldCredentialsIncorrectlySpecified,
    /// new-credentials-unacceptable: 6.
    NewCredentialsUnacceptable,
    /// message-submission-identifier-invalid: 7.
    MessageSubmissionIdentifierInvalid,
    /// deferred-delivery-cancellation-rejected: 8.
    DeferredDeliveryCancellationRejected,
    /// register-rejected: 10.
    RegisterRejected,
    /// inconsistent-request: 11.
    InconsistentRequest,
    /// security-error: 12.
    Security(SecurityProblem),
    /// unsupported-critical-function: 13.
    UnsupportedCriticalFunction,
    /// control-violates-registration: 14.
    ControlViolatesRegistration,
    /// remote-bind-error: 15.
    RemoteBind,
    /// operation-refused: 16.
    OperationRefused {
        /// refused-argument.
        argument: RefusedArgument,
        /// refusal-reason: facility-unavailable 0, facility-not-subscribed 1,
        /// parameter-unacceptable 2.
        reason: i64,
    },
    /// A code X.419 does not give.
    Other {
        /// The local code.
        code: i64,
        /// The parameter, as one element.
        parameter: Option<Bytes>,
    },
}

impl AccessError {
    /// The local error code.
    pub fn code(&self) -> i64 {
        match self {
            AccessError::ControlViolated => 1,
            AccessError::OriginatorInvalid => 2,
            AccessError::RecipientImproperlySpecified(_) => 3,
            AccessError::ElementOfServiceNotSubscribed => 4,
            AccessError::OldCredentialsIncorrectlySpecified => 5,
            AccessError::NewCredentialsUnacceptable => 6,
            AccessError::MessageSubmissionIdentifierInvalid => 7,
            AccessError::DeferredDeliveryCancellationRejected => 8,
            AccessError::RegisterRejected => 10,
            AccessError::InconsistentRequest => 11,
            AccessError::Security(_) => 12,
            AccessError::UnsupportedCriticalFunction => 13,
            AccessError::ControlViolatesRegistration => 14,
            AccessError::RemoteBind => 15,
            AccessError::OperationRefused { .. } => 16,
            AccessError::Other { code, .. } => *code,
        }
    }

    /// Name in the standard's terms; 1 depends on the operation, so it names both.
    pub fn name(&self) -> &'static str {
        match self {
            AccessError::ControlViolated => {
                "submission-control-violated or delivery-control-violated"
            }
            AccessError::OriginatorInvalid => "originator-invalid",
            AccessError::RecipientImproperlySpecified(_) => "recipient-improperly-specified",
            AccessError::ElementOfServiceNotSubscribed => "element-of-service-not-subscribed",
            AccessError::OldCredentialsIncorrectlySpecified => {
                "old-credentials-incorrectly-specified"
            }
            AccessError::NewCredentialsUnacceptable => "new-credentials-unacceptable",
            AccessError::MessageSubmissionIdentifierInvalid => {
                "message-submission-identifier-invalid"
            }
            AccessError::DeferredDeliveryCancellationRejected => {
                "deferred-delivery-cancellation-rejected"
            }
            AccessError::RegisterRejected => "register-rejected",
            AccessError::InconsistentRequest => "inconsistent-request",
            AccessError::Security(_) => "security-error",
            AccessError::UnsupportedCriticalFunction => "unsupported-critical-function",
            AccessError::ControlViolatesRegistration => "control-violates-registration",
            AccessError::RemoteBind => "remote-bind-error",
            AccessError::OperationRefused { .. } => "operation-refused",
            AccessError::Other { .. } => "an error X.419 does not define",
        }
    }

    /// Appends the error's parameter, NULL for most. Nothing for an unknown error without one.
    pub fn write_parameter(&self, w: &mut Writer) {
        let parameter = match self {
            AccessError::RecipientImproperlySpecified(recipients) => {
                let name = |recipient: &ORName| Kept(written(|w| recipient.write(w)));
                Parameter::Recipients(recipients.iter().map(name).collect())
            }
            AccessError::Security(problem) => Parameter::Problem(*problem),
            AccessError::OperationRefused { argument, reason } => Parameter::Refused(vec![
                RefusedMember::Argument(argument.clone()),
                RefusedMember::Reason(*reason),
            ]),
            AccessError::Other { parameter, .. } => {
                Parameter::Other(Kept(parameter.clone().unwrap_or_default()))
            }
            _ => Parameter::Null(()),
        };
        wire::encode(w, &parameter);
    }

    /// From a code and the parameter that came with it, if any.
    ///
    /// # Errors
    /// A parameter that is missing or not of the error's type.
    pub fn read(code: i64, parameter: Option<&Element<'_>>) -> Result<AccessError, Error> {
        let required = || parameter.ok_or(Fault::Truncated);
        Ok(match code {
            1 => AccessError::ControlViolated,
            2 => AccessError::OriginatorInvalid,
            3 => {
                let names = required().field("recipient-improperly-specified")?;
                let names = wire::list(names, bound::RECIPIENTS, ORName::read);
                AccessError::RecipientImproperlySpecified(names.field("recipient-name")?)
            }
            4 => AccessError::ElementOfServiceNotSubscribed,
            5 => AccessError::OldCredentialsIncorrectlySpecified,
            6 => AccessError::NewCredentialsUnacceptable,
            7 => AccessError::MessageSubmissionIdentifierInvalid,
            8 => AccessError::DeferredDeliveryCancellationRejected,
            10 => AccessError::RegisterRejected,
            11 => AccessError::InconsistentRequest,
            12 => {
                let problem = required().field("security-problem")?;
                AccessError::Security(wire::integer(problem).field("security-problem")?)
            }
            13 => AccessError::UnsupportedCriticalFunction,
            14 => AccessError::ControlViolatesRegistration,
            15 => AccessError::RemoteBind,
            16 => read_refused(required().field("operation-refused")?)?,
            code => {
                let parameter = parameter.map(wire::keep);
                AccessError::Other { code, parameter }
            }
        })
    }
}

/// The name and what the parameter states; an error that X.419 does not define by its code.
impl std::fmt::Display for AccessError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AccessError::Other { code, .. } => {
                write!(f, "error {code}, which X.419 does not define")
            }
            AccessError::Security(problem) => write!(f, "{}: {problem}", self.name()),
            AccessError::OperationRefused { argument, reason } => {
                write!(f, "{}: ", self.name())?;
                match (argument.name(), argument) {
                    (Some(name), _) => f.write_str(name)?,
                    (None, RefusedArgument::BuiltIn(number)) => {
                        write!(f, "built-in-argument {number}")?;
                    }
                    (None, RefusedArgument::Extension(_)) => f.write_str("refused-extension")?,
                }
                match reason {
                    0 => f.write_str(", facility-unavailable"),
                    1 => f.write_str(", facility-not-subscribed"),
                    2 => f.write_str(", parameter-unacceptable"),
                    reason => write!(f, ", refusal-reason {reason}"),
                }
            }
            _ => f.write_str(self.name()),
        }
    }
}

const BUILT_IN: Tag = Tag::context(1);
const REASON: Tag = Tag::context(2);

fn read_refused(e: &Element<'_>) -> Result<AccessError, Error> {
    let (mut argument, mut reason) =
        (Member::new("refused-argument"), Member::new("refusal-reason"));
    read_set(e, |m| match m.tag {
        BUILT_IN => argument.last(m, |m| Ok(RefusedArgument::BuiltIn(wire::integer(m)?))),
        REASON => reason.last(m, wire::integer),
        _ => argument.last(m, |m| Ok(RefusedArgument::Extension(Kept(wire::keep(m))))),
    })?;
    let (argument, reason) = (argument.required(BUILT_IN)?, reason.required(REASON)?);
    Ok(AccessError::OperationRefused { argument, reason })
}
