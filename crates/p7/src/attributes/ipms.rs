//! Attribute types of contents: interpersonal messages (X.420 Annex C) and military ones (STANAG 4406).
//! Those of X.420 above 22 are of later editions.

use super::attribute_types;

/// 2.6.1.6: summaries.
const SAT: &[u8] = &[0x56, 1, 6];
/// 2.6.1.7: headings.
const HAT: &[u8] = &[0x56, 1, 7];
/// 2.6.1.8: bodies.
const BAT: &[u8] = &[0x56, 1, 8];
/// 1.3.26.0.4406.0.3: military headings, numbered as the heading extensions up to 14.
const MM: &[u8] = &[0x2b, 26, 0, 0xa2, 0x36, 0, 3];

attribute_types! {
    /// The attribute types of interpersonal messages.
    IPMS {
        IPM_ENTRY_TYPE = SAT 0 "ipm-entry-type" Enumerated one;
        IPM_SYNOPSIS = SAT 1 "ipm-synopsis" Other one;
        BODY_PARTS_SUMMARY = SAT 2 "body-parts-summary" Other many;
        IPM_AUTO_DISCARDED = SAT 3 "ipm-auto-discarded" Boolean one;
        HEADING = HAT 0 "heading" Other one;
        THIS_IPM = HAT 1 "this-ipm" Other one;
        ORIGINATOR = HAT 2 "originator" Other one;
        REPLIED_TO_IPM = HAT 3 "replied-to-IPM" Other one;
        SUBJECT = HAT 4 "subject" Text one;
        EXPIRY_TIME = HAT 5 "expiry-time" Time one;
        REPLY_TIME = HAT 6 "reply-time" Time one;
        IMPORTANCE = HAT 7 "importance" Enumerated one;
        SENSITIVITY = HAT 8 "sensitivity" Enumerated one;
        AUTO_FORWARDED = HAT 9 "auto-forwarded" Boolean one;
        AUTHORIZING_USERS = HAT 10 "authorizing-users" Other many;
        PRIMARY_RECIPIENTS = HAT 11 "primary-recipients" Other many;
        COPY_RECIPIENTS = HAT 12 "copy-recipients" Other many;
        BLIND_COPY_RECIPIENTS = HAT 13 "blind-copy-recipients" Other many;
        OBSOLETED_IPMS = HAT 14 "obsoleted-IPMs" Other many;
        RELATED_IPMS = HAT 15 "related-IPMs" Other many;
        REPLY_RECIPIENTS = HAT 16 "reply-recipients" Other many;
        INCOMPLETE_COPY = HAT 17 "incomplete-copy" Null one;
        LANGUAGES = HAT 18 "languages" Text many;
        RN_REQUESTORS = HAT 19 "rn-requestors" Other many;
        NRN_REQUESTORS = HAT 20 "nrn-requestors" Other many;
        REPLY_REQUESTORS = HAT 21 "reply-requestors" Other many;
        AUTO_SUBMITTED = HAT 22 "auto-submitted" Enumerated one;
        BODY_PART_SIGNATURES = HAT 23 "body-part-signatures" Other one;
        IPM_SECURITY_LABEL = HAT 24 "ipm-security-label" Other one;
        BODY_PART_SECURITY_LABEL = HAT 25 "body-part-security-label" Other many;
        BODY_PART_ENCRYPTION_TOKEN = HAT 26 "body-part-encryption-token" Other many;
        AUTHORIZATION_TIME = HAT 27 "authorization-time" Other one;
        CIRCULATION_LIST_RECIPIENTS = HAT 28 "circulation-list-recipients" Other many;
        IPM_DISTRIBUTION_CODES = HAT 29 "ipm-distribution-codes" Other many;
        EXTENDED_SUBJECT = HAT 30 "extended-subject" Other one;
        INFORMATION_CATEGORY = HAT 31 "information-category" Other many;
        MANUAL_HANDLING_INSTRUCTIONS = HAT 32 "manual-handling-instructions" Other many;
        ORIGINATORS_REFERENCE = HAT 33 "originators-reference" Other one;
        PRECEDENCE_POLICY_ID = HAT 34 "precedence-policy-id" Oid one;
        FORWARDED_CONTENT_TOKEN = HAT 35 "forwarded-content-token" Other many;
        FORWARDED_TOKEN = HAT 36 "forwarded-token" Other many;
        PRECEDENCE = HAT 37 "precedence" Integer one;
        BODY_PART_SIGNATURE_VERIFICATION_STATUS = HAT 38 "body-part-signature-verification-status" Other many;
        BODY = BAT 0 "body" Other one;
    }
}

attribute_types! {
    /// The attribute types of military messages: *unproven*. Only primary-precedence distinguishes all
    /// six precedences; the general priority has three.
    MMHS {
        PRIMARY_PRECEDENCE = MM 0 "primary-precedence" Integer one;
        COPY_PRECEDENCE = MM 1 "copy-precedence" Integer one;
        MESSAGE_TYPE = MM 2 "message-type" Other one;
        ADDRESS_LIST_INDICATOR = MM 3 "address-list-indicator" Other many;
        EXEMPTED_ADDRESS = MM 4 "exempted-address" Other many;
        EXTENDED_AUTHORISATION_INFO = MM 5 "extended-authorisation-info" Time one;
        DISTRIBUTION_CODES = MM 6 "distribution-codes" Other one;
        HANDLING_INSTRUCTIONS = MM 7 "handling-instructions" Other many;
        MESSAGE_INSTRUCTIONS = MM 8 "message-instructions" Other many;
        CODRESS_MESSAGE = MM 9 "codress-message" Integer one;
        ORIGINATOR_REFERENCE = MM 10 "originator-reference" Text one;
        OTHER_RECIPIENTS_INDICATOR = MM 11 "other-recipients-indicator" Other many;
        PILOT_FORWARDING_INFO = MM 12 "pilot-forwarding-info" Other many;
        ACP127_MESSAGE_IDENTIFIER = MM 13 "acp127-message-identifier" Text one;
        ORIGINATOR_PLAD = MM 14 "originator-plad" Text one;
        ACP127_NOTIFICATION_REQUEST = MM 15 "acp127-notification-request" Other one;
        SUBJECT_INDICATOR_CODE = MM 16 "subject-indicator-code" Text many;
        DISTRIBUTION_EXTENSION = MM 17 "distribution-extension" Other many;
        MESSAGE_SECURITY_LABELS = MM 18 "message-security-labels" Other one;
        MESSAGE_INFORMATION_LABELS = MM 19 "message-information-labels" Other one;
    }
}
