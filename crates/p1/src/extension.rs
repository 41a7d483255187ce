//! ExtensionField of X.411: the standard's later fields and everyone's private ones.

use base::ber::Oid;
use bytes::Bytes;

/// extension-type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionType {
    /// standard-extension, by number (see [`number`]).
    Standard(i64),
    /// private-extension.
    Private(Oid),
}

/// The two encodings of extension-type that are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// X.411 since 1994 and ISO 10021-4: `[0]` INTEGER or `[3]` OBJECT IDENTIFIER.
    #[default]
    Modern,
    /// The 1988 Blue Book: `[0]` around an INTEGER or an OBJECT IDENTIFIER.
    BlueBook1988,
}

/// criticality: for which steps an extension must be understood (X.411 9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Criticality {
    /// for-submission.
    pub for_submission: bool,
    /// for-transfer: an MTA that does not understand it must not relay, but report non-delivery.
    pub for_transfer: bool,
    /// for-delivery.
    pub for_delivery: bool,
}

/// One extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionField {
    /// extension-type.
    pub kind: ExtensionType,
    /// How `kind` was encoded, or is to be.
    pub dialect: Dialect,
    /// criticality.
    pub criticality: Criticality,
    /// The whole element of the value, inside the explicit tag; NULL where it was absent.
    pub value: Bytes,
    /// The whole field as it came, which is what is relayed; `None` for one made here or changed.
    pub raw: Option<Bytes>,
}

/// The extensions of an envelope or of a recipient's fields, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extensions(pub Vec<ExtensionField>);

/// Declares the standard extensions once: a constant each, and the table of names.
macro_rules! standard_extensions {
    ($($konst:ident = $number:literal $name:literal,)*) => {
        /// Numbers of standard extensions (X.411, StandardExtension).
        pub mod number {
            $(#[doc = $name] pub const $konst: i64 = $number;)*
        }

        /// The name X.411 gives a standard extension.
        pub fn standard_name(number: i64) -> Option<&'static str> {
            match number {
                $($number => Some($name),)*
                _ => None,
            }
        }
    };
}

standard_extensions! {
    RECIPIENT_REASSIGNMENT_PROHIBITED = 1 "recipient-reassignment-prohibited",
    ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT = 2 "originator-requested-alternate-recipient",
    DL_EXPANSION_PROHIBITED = 3 "dl-expansion-prohibited",
    CONVERSION_WITH_LOSS_PROHIBITED = 4 "conversion-with-loss-prohibited",
    LATEST_DELIVERY_TIME = 5 "latest-delivery-time",
    REQUESTED_DELIVERY_METHOD = 6 "requested-delivery-method",
    PHYSICAL_FORWARDING_PROHIBITED = 7 "physical-forwarding-prohibited",
    PHYSICAL_FORWARDING_ADDRESS_REQUEST = 8 "physical-forwarding-address-request",
    PHYSICAL_DELIVERY_MODES = 9 "physical-delivery-modes",
    REGISTERED_MAIL_TYPE = 10 "registered-mail-type",
    RECIPIENT_NUMBER_FOR_ADVICE = 11 "recipient-number-for-advice",
    PHYSICAL_RENDITION_ATTRIBUTES = 12 "physical-rendition-attributes",
    ORIGINATOR_RETURN_ADDRESS = 13 "originator-return-address",
    PHYSICAL_DELIVERY_REPORT_REQUEST = 14 "physical-delivery-report-request",
    ORIGINATOR_CERTIFICATE = 15 "originator-certificate",
    MESSAGE_TOKEN = 16 "message-token",
    CONTENT_CONFIDENTIALITY_ALGORITHM_IDENTIFIER = 17 "content-confidentiality-algorithm-identifier",
    CONTENT_INTEGRITY_CHECK = 18 "content-integrity-check",
    MESSAGE_ORIGIN_AUTHENTICATION_CHECK = 19 "message-origin-authentication-check",
    MESSAGE_SECURITY_LABEL = 20 "message-security-label",
    PROOF_OF_SUBMISSION_REQUEST = 21 "proof-of-submission-request",
    PROOF_OF_DELIVERY_REQUEST = 22 "proof-of-delivery-request",
    CONTENT_CORRELATOR = 23 "content-correlator",
    PROBE_ORIGIN_AUTHENTICATION_CHECK = 24 "probe-origin-authentication-check",
    REDIRECTION_HISTORY = 25 "redirection-history",
    DL_EXPANSION_HISTORY = 26 "dl-expansion-history",
    PHYSICAL_FORWARDING_ADDRESS = 27 "physical-forwarding-address",
    RECIPIENT_CERTIFICATE = 28 "recipient-certificate",
    PROOF_OF_DELIVERY = 29 "proof-of-delivery",
    ORIGINATOR_AND_DL_EXPANSION_HISTORY = 30 "originator-and-DL-expansion-history",
    REPORTING_DL_NAME = 31 "reporting-DL-name",
    REPORTING_MTA_CERTIFICATE = 32 "reporting-MTA-certificate",
    REPORT_ORIGIN_AUTHENTICATION_CHECK = 33 "report-origin-authentication-check",
    ORIGINATING_MTA_CERTIFICATE = 34 "originating-MTA-certificate",
    PROOF_OF_SUBMISSION = 35 "proof-of-submission",
    FORWARDING_REQUEST = 36 "forwarding-request",
    TRACE_INFORMATION = 37 "trace-information",
    INTERNAL_TRACE_INFORMATION = 38 "internal-trace-information",
    REPORTING_MTA_NAME = 39 "reporting-MTA-name",
    MULTIPLE_ORIGINATOR_CERTIFICATES = 40 "multiple-originator-certificates",
    BLIND_COPY_RECIPIENTS = 41 "blind-copy-recipients",
    DL_EXEMPTED_RECIPIENTS = 42 "dl-exempted-recipients",
    BODY_PART_ENCRYPTION_TOKEN = 43 "body-part-encryption-token",
    FORWARDED_CONTENT_TOKEN = 44 "forwarded-content-token",
    CERTIFICATE_SELECTORS = 45 "certificate-selectors",
    CERTIFICATE_SELECTORS_OVERRIDE = 46 "certificate-selectors-override",
}
