//! Why a message was not delivered (X.411 8.3.1.2.1.8 and .9).

use std::fmt;

/// Declares a code of the standard once: the type, a constant for each number and their names.
macro_rules! code {
    ($(#[$doc:meta])* $type:ident { $($konst:ident = $number:literal $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub i64);

        impl $type {
            $(#[doc = $name] pub const $konst: $type = $type($number);)*

            /// The name X.411 gives it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }

        /// The name, or the number if it has no name.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}

code! {
    /// non-delivery-reason-code. Unknown numbers are kept.
    NonDeliveryReason {
        TRANSFER_FAILURE = 0 "transfer-failure",
        UNABLE_TO_TRANSFER = 1 "unable-to-transfer",
        CONVERSION_NOT_PERFORMED = 2 "conversion-not-performed",
        PHYSICAL_RENDITION_NOT_PERFORMED = 3 "physical-rendition-not-performed",
        PHYSICAL_DELIVERY_NOT_PERFORMED = 4 "physical-delivery-not-performed",
        RESTRICTED_DELIVERY = 5 "restricted-delivery",
        DIRECTORY_OPERATION_UNSUCCESSFUL = 6 "directory-operation-unsuccessful",
        DEFERRED_DELIVERY_NOT_PERFORMED = 7 "deferred-delivery-not-performed",
        TRANSFER_FAILURE_FOR_SECURITY_REASON = 8 "transfer-failure-for-security-reason",
    }
}

code! {
    /// non-delivery-diagnostic-code. Unknown numbers are kept.
    Diagnostic {
        UNRECOGNISED_OR_NAME = 0 "unrecognised-OR-name",
        AMBIGUOUS_OR_NAME = 1 "ambiguous-OR-name",
        MTS_CONGESTION = 2 "mts-congestion",
        LOOP_DETECTED = 3 "loop-detected",
        RECIPIENT_UNAVAILABLE = 4 "recipient-unavailable",
        MAXIMUM_TIME_EXPIRED = 5 "maximum-time-expired",
        ENCODED_INFORMATION_TYPES_UNSUPPORTED = 6 "encoded-information-types-unsupported",
        CONTENT_TOO_LONG = 7 "content-too-long",
        CONVERSION_IMPRACTICAL = 8 "conversion-impractical",
        IMPLICIT_CONVERSION_PROHIBITED = 9 "implicit-conversion-prohibited",
        IMPLICIT_CONVERSION_NOT_SUBSCRIBED = 10 "implicit-conversion-not-subscribed",
        INVALID_ARGUMENTS = 11 "invalid-arguments",
        CONTENT_SYNTAX_ERROR = 12 "content-syntax-error",
        SIZE_CONSTRAINT_VIOLATION = 13 "size-constraint-violation",
        PROTOCOL_VIOLATION = 14 "protocol-violation",
        CONTENT_TYPE_NOT_SUPPORTED = 15 "content-type-not-supported",
        TOO_MANY_RECIPIENTS = 16 "too-many-recipients",
        NO_BILATERAL_AGREEMENT = 17 "no-bilateral-agreement",
        UNSUPPORTED_CRITICAL_FUNCTION = 18 "unsupported-critical-function",
        CONVERSION_WITH_LOSS_PROHIBITED = 19 "conversion-with-loss-prohibited",
        LINE_TOO_LONG = 20 "line-too-long",
        PAGE_SPLIT = 21 "page-split",
        PICTORIAL_SYMBOL_LOSS = 22 "pictorial-symbol-loss",
        PUNCTUATION_SYMBOL_LOSS = 23 "punctuation-symbol-loss",
        ALPHABETIC_CHARACTER_LOSS = 24 "alphabetic-character-loss",
        MULTIPLE_INFORMATION_LOSS = 25 "multiple-information-loss",
        RECIPIENT_REASSIGNMENT_PROHIBITED = 26 "recipient-reassignment-prohibited",
        REDIRECTION_LOOP_DETECTED = 27 "redirection-loop-detected",
        DL_EXPANSION_PROHIBITED = 28 "dl-expansion-prohibited",
        NO_DL_SUBMIT_PERMISSION = 29 "no-dl-submit-permission",
        DL_EXPANSION_FAILURE = 30 "dl-expansion-failure",
        PHYSICAL_RENDITION_ATTRIBUTES_NOT_SUPPORTED = 31 "physical-rendition-attributes-not-supported",
        UNDELIVERABLE_MAIL_PHYSICAL_DELIVERY_ADDRESS_INCORRECT = 32 "undeliverable-mail-physical-delivery-address-incorrect",
        UNDELIVERABLE_MAIL_PHYSICAL_DELIVERY_OFFICE_INCORRECT_OR_INVALID = 33 "undeliverable-mail-physical-delivery-office-incorrect-or-invalid",
        UNDELIVERABLE_MAIL_PHYSICAL_DELIVERY_ADDRESS_INCOMPLETE = 34 "undeliverable-mail-physical-delivery-address-incomplete",
        UNDELIVERABLE_MAIL_RECIPIENT_UNKNOWN = 35 "undeliverable-mail-recipient-unknown",
        UNDELIVERABLE_MAIL_RECIPIENT_DECEASED = 36 "undeliverable-mail-recipient-deceased",
        UNDELIVERABLE_MAIL_ORGANIZATION_EXPIRED = 37 "undeliverable-mail-organization-expired",
        UNDELIVERABLE_MAIL_RECIPIENT_REFUSED_TO_ACCEPT = 38 "undeliverable-mail-recipient-refused-to-accept",
        UNDELIVERABLE_MAIL_RECIPIENT_DID_NOT_CLAIM = 39 "undeliverable-mail-recipient-did-not-claim",
        UNDELIVERABLE_MAIL_RECIPIENT_CHANGED_ADDRESS_PERMANENTLY = 40 "undeliverable-mail-recipient-changed-address-permanently",
        UNDELIVERABLE_MAIL_RECIPIENT_CHANGED_ADDRESS_TEMPORARILY = 41 "undeliverable-mail-recipient-changed-address-temporarily",
        UNDELIVERABLE_MAIL_RECIPIENT_CHANGED_TEMPORARY_ADDRESS = 42 "undeliverable-mail-recipient-changed-temporary-address",
        UNDELIVERABLE_MAIL_NEW_ADDRESS_UNKNOWN = 43 "undeliverable-mail-new-address-unknown",
        UNDELIVERABLE_MAIL_RECIPIENT_DID_NOT_WANT_FORWARDING = 44 "undeliverable-mail-recipient-did-not-want-forwarding",
        UNDELIVERABLE_MAIL_ORIGINATOR_PROHIBITED_FORWARDING = 45 "undeliverable-mail-originator-prohibited-forwarding",
        SECURE_MESSAGING_ERROR = 46 "secure-messaging-error",
        UNABLE_TO_DOWNGRADE = 47 "unable-to-downgrade",
        UNABLE_TO_COMPLETE_TRANSFER = 48 "unable-to-complete-transfer",
        TRANSFER_ATTEMPTS_LIMIT_REACHED = 49 "transfer-attempts-limit-reached",
        INCORRECT_NOTIFICATION_TYPE = 50 "incorrect-notification-type",
        DL_EXPANSION_PROHIBITED_BY_SECURITY_POLICY = 51 "dl-expansion-prohibited-by-security-policy",
        FORBIDDEN_ALTERNATE_RECIPIENT = 52 "forbidden-alternate-recipient",
        SECURITY_POLICY_VIOLATION = 53 "security-policy-violation",
        SECURITY_SERVICES_REFUSAL = 54 "security-services-refusal",
        UNAUTHORISED_DL_MEMBER = 55 "unauthorised-dl-member",
        UNAUTHORISED_DL_NAME = 56 "unauthorised-dl-name",
        UNAUTHORISED_ORIGINALLY_INTENDED_RECIPIENT_NAME = 57 "unauthorised-originally-intended-recipient-name",
        UNAUTHORISED_ORIGINATOR_NAME = 58 "unauthorised-originator-name",
        UNAUTHORISED_RECIPIENT_NAME = 59 "unauthorised-recipient-name",
        UNRELIABLE_SYSTEM = 60 "unreliable-system",
        AUTHENTICATION_FAILURE_ON_SUBJECT_MESSAGE = 61 "authentication-failure-on-subject-message",
        DECRYPTION_FAILED = 62 "decryption-failed",
        DECRYPTION_KEY_UNOBTAINABLE = 63 "decryption-key-unobtainable",
        DOUBLE_ENVELOPE_CREATION_FAILURE = 64 "double-envelope-creation-failure",
        DOUBLE_ENVELOPING_MESSAGE_RESTORING_FAILURE = 65 "double-enveloping-message-restoring-failure",
        FAILURE_OF_PROOF_OF_MESSAGE = 66 "failure-of-proof-of-message",
        INTEGRITY_FAILURE_ON_SUBJECT_MESSAGE = 67 "integrity-failure-on-subject-message",
        INVALID_SECURITY_LABEL = 68 "invalid-security-label",
        KEY_FAILURE = 69 "key-failure",
        MANDATORY_PARAMETER_ABSENCE = 70 "mandatory-parameter-absence",
        OPERATION_SECURITY_FAILURE = 71 "operation-security-failure",
        REPUDIATION_FAILURE_OF_MESSAGE = 72 "repudiation-failure-of-message",
        SECURITY_CONTEXT_FAILURE = 73 "security-context-failure",
        TOKEN_DECRYPTION_FAILED = 74 "token-decryption-failed",
        TOKEN_ERROR = 75 "token-error",
        UNKNOWN_SECURITY_LABEL = 76 "unknown-security-label",
        UNSUPPORTED_ALGORITHM_IDENTIFIER = 77 "unsupported-algorithm-identifier",
        UNSUPPORTED_SECURITY_POLICY = 78 "unsupported-security-policy",
    }
}
