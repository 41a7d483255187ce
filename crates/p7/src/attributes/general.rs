//! General attribute types, 2.6.4.3.n (X.413 clause 11). Those up to 41 are of 1988.

use super::attribute_types;

const ATT: &[u8] = &[0x56, 4, 3];

attribute_types! {
    /// The general attribute types.
    GENERAL {
        CHILD_SEQUENCE_NUMBERS = ATT 0 "child-sequence-numbers" Integer many;
        CONTENT = ATT 1 "content" Octets one;
        CONTENT_CONFIDENTIALITY_ALGORITHM_IDENTIFIER = ATT 2 "content-confidentiality-algorithm-identifier" Other one;
        CONTENT_CORRELATOR = ATT 3 "content-correlator" Other one;
        CONTENT_IDENTIFIER = ATT 4 "content-identifier" Text one;
        CONTENT_INTEGRITY_CHECK = ATT 5 "content-integrity-check" Other one;
        CONTENT_LENGTH = ATT 6 "content-length" Integer one;
        CONTENT_RETURNED = ATT 7 "content-returned" Boolean one;
        CONTENT_TYPE = ATT 8 "content-type" Oid one;
        CONVERSION_WITH_LOSS_PROHIBITED = ATT 9 "conversion-with-loss-prohibited" Enumerated one;
        CONVERTED_EITS = ATT 10 "converted-EITs" Oid many;
        CREATION_TIME = ATT 11 "creation-time" Time one;
        DELIVERED_EITS = ATT 12 "delivered-EITs" Oid many;
        DELIVERY_FLAGS = ATT 13 "delivery-flags" Other one;
        DL_EXPANSION_HISTORY = ATT 14 "dl-expansion-history" Other many;
        RETRIEVAL_STATUS = ATT 15 "retrieval-status" Integer one;
        ENTRY_TYPE = ATT 16 "entry-type" Integer one;
        ORIGINALLY_INTENDED_RECIPIENT_NAME = ATT 17 "originally-intended-recipient-name" OrName one;
        MESSAGE_DELIVERY_ENVELOPE = ATT 18 "message-delivery-envelope" Other one;
        MESSAGE_IDENTIFIER = ATT 19 "message-identifier" MtsIdentifier one;
        MESSAGE_DELIVERY_TIME = ATT 20 "message-delivery-time" Time one;
        MESSAGE_ORIGIN_AUTHENTICATION_CHECK = ATT 21 "message-origin-authentication-check" Other one;
        MESSAGE_SECURITY_LABEL = ATT 22 "message-security-label" Other one;
        MESSAGE_SUBMISSION_TIME = ATT 23 "message-submission-time" Time one;
        MESSAGE_TOKEN = ATT 24 "message-token" Other one;
        ORIGINAL_EITS = ATT 25 "original-EITs" Oid many;
        ORIGINATOR_CERTIFICATE = ATT 26 "originator-certificate" Other one;
        ORIGINATOR_NAME = ATT 27 "originator-name" OrName one;
        OTHER_RECIPIENT_NAMES = ATT 28 "other-recipient-names" OrName many;
        PARENT_SEQUENCE_NUMBER = ATT 29 "parent-sequence-number" Integer one;
        PER_RECIPIENT_REPORT_DELIVERY_FIELDS = ATT 30 "per-recipient-report-delivery-fields" Other many;
        PRIORITY = ATT 31 "priority" Priority one;
        PROOF_OF_DELIVERY_REQUEST = ATT 32 "proof-of-delivery-request" Enumerated one;
        REDIRECTION_HISTORY = ATT 33 "redirection-history" Other many;
        REPORT_DELIVERY_ENVELOPE = ATT 34 "report-delivery-envelope" Other one;
        REPORTING_DL_NAME = ATT 35 "reporting-DL-name" OrName one;
        REPORTING_MTA_CERTIFICATE = ATT 36 "reporting-MTA-certificate" Other one;
        REPORT_ORIGIN_AUTHENTICATION_CHECK = ATT 37 "report-origin-authentication-check" Other one;
        SECURITY_CLASSIFICATION = ATT 38 "security-classification" Integer one;
        SEQUENCE_NUMBER = ATT 39 "sequence-number" Integer one;
        SUBJECT_SUBMISSION_IDENTIFIER = ATT 40 "subject-submission-identifier" MtsIdentifier one;
        THIS_RECIPIENT_NAME = ATT 41 "this-recipient-name" OrName one;
        AC_CORRELATED_REPORT_LIST = ATT 42 "ac-correlated-report-list" Other many;
        AC_REPORT_SUMMARY = ATT 43 "ac-report-summary" Other many;
        AC_UNCORRELATED_REPORT_LIST = ATT 44 "ac-uncorrelated-report-list" Other many;
        AUTO_ACTION_ERROR = ATT 46 "auto-action-error" Other one;
        AUTO_ACTION_REGISTRATION_IDENTIFIER = ATT 47 "auto-action-registration-identifier" Integer one;
        AUTO_ACTION_SUBJECT_ENTRY = ATT 48 "auto-action-subject-entry" Integer one;
        AUTO_ACTION_TYPE = ATT 49 "auto-action-type" Oid one;
        DEFERRED_DELIVERY_CANCELLATION_TIME = ATT 50 "deferred-delivery-cancellation-time" Time one;
        DEFERRED_DELIVERY_TIME = ATT 51 "deferred-delivery-time" Time one;
        DELETION_TIME = ATT 52 "deletion-time" Time one;
        DL_EXPANSION_PROHIBITED = ATT 53 "dl-expansion-prohibited" Enumerated one;
        INTERNAL_TRACE_INFORMATION = ATT 54 "internal-trace-information" Other many;
        LATEST_DELIVERY_TIME = ATT 55 "latest-delivery-time" Time one;
        MARKED_FOR_DELETION = ATT 56 "marked-for-deletion" Null one;
        MESSAGE_GROUP_NAME = ATT 57 "message-group-name" Other many;
        MESSAGE_NOTES = ATT 58 "message-notes" Text many;
        MESSAGE_SUBMISSION_ENVELOPE = ATT 59 "message-submission-envelope" Other one;
        MS_ORIGINATED = ATT 60 "ms-originated" Null one;
        MS_SUBMISSION_ERROR = ATT 61 "ms-submission-error" Other one;
        ORIGINATING_MTA_CERTIFICATE = ATT 62 "originating-MTA-certificate" Other one;
        ORIGINATOR_REPORT_REQUEST = ATT 63 "originator-report-request" Other many;
        ORIGINATOR_RETURN_ADDRESS = ATT 64 "originator-return-address" Other one;
        PER_MESSAGE_INDICATORS = ATT 65 "per-message-indicators" Other one;
        PER_RECIPIENT_MESSAGE_SUBMISSION_FIELDS = ATT 66 "per-recipient-message-submission-fields" Other many;
        PER_RECIPIENT_PROBE_SUBMISSION_FIELDS = ATT 67 "per-recipient-probe-submission-fields" Other many;
        PROBE_ORIGIN_AUTHENTICATION_CHECK = ATT 68 "probe-origin-authentication-check" Other one;
        PROBE_SUBMISSION_ENVELOPE = ATT 69 "probe-submission-envelope" Other one;
        PROOF_OF_SUBMISSION = ATT 70 "proof-of-submission" Other one;
        RECIPIENT_NAMES = ATT 71 "recipient-names" OrName many;
        RECIPIENT_REASSIGNMENT_PROHIBITED = ATT 72 "recipient-reassignment-prohibited" Enumerated one;
        STORAGE_PERIOD = ATT 73 "storage-period" Integer one;
        STORAGE_TIME = ATT 74 "storage-time" Time one;
        TRACE_INFORMATION = ATT 75 "trace-information" Other many;
        AC_REPORT_SUBJECT_ENTRY = ATT 76 "ac-report-subject-entry" Integer one;
        LOCALLY_ORIGINATED = ATT 77 "locally-originated" Null one;
        DL_EXEMPTED_RECIPIENTS = ATT 78 "dl-exempted-recipients" OrName many;
        SIGNATURE_VERIFICATION_STATUS = ATT 79 "signature-verification-status" Other one;
        CERTIFICATE_SELECTORS = ATT 80 "certificate-selectors" Other one;
        MULTIPLE_ORIGINATOR_CERTIFICATES = ATT 81 "multiple-originator-certificates" Other many;
        RECIPIENT_CERTIFICATE = ATT 82 "recipient-certificate" Other one;
    }
}
