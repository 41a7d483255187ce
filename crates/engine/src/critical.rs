//! Which extensions are understood, step by step (X.411 9.1 and 14.3.4).
//!
//! An extension that is not understood and not critical for a step passes it untouched. One that is
//! critical stops there: a submission is refused with unsupported-critical-function, a relay or a
//! delivery reports non-delivery with that diagnostic.

use p1::extension::{
    Dialect, ExtensionField, ExtensionType, Extensions, number as n, standard_name,
};
use p1::grade::PriorityLevelQualifier;

/// What an extension may be critical for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Taking a submission from a user.
    Submission,
    /// Relaying to another MTA.
    Transfer,
    /// Delivering to a user.
    Delivery,
}

/// The first extension that is critical for this step and not understood, by name or identifier.
pub fn unsupported(step: Step, extensions: &Extensions) -> Option<String> {
    extensions.0.iter().find(|f| is_critical(step, f) && !is_understood(step, &f.kind)).map(|f| {
        match &f.kind {
            ExtensionType::Private(oid) => oid.to_string(),
            ExtensionType::Standard(number) => match standard_name(*number) {
                Some(name) => name.to_owned(),
                None => format!("standard extension {number}"),
            },
        }
    })
}

fn is_critical(step: Step, field: &ExtensionField) -> bool {
    match step {
        Step::Submission => field.criticality.for_submission,
        Step::Transfer => field.criticality.for_transfer,
        Step::Delivery => field.criticality.for_delivery,
    }
}

/// STANAG 4406's priority-level-qualifier is the one private extension that is acted on.
fn is_qualifier(kind: &ExtensionType) -> bool {
    let own = PriorityLevelQualifier::Low.extension(Dialect::Modern);
    own.is_some_and(|own| own.kind == *kind)
}

fn is_understood(step: Step, kind: &ExtensionType) -> bool {
    let ExtensionType::Standard(number) = *kind else { return is_qualifier(kind) };
    match step {
        // A relay's part in every extension of X.411 is to pass it on, but for those that ask the
        // MTS to do something on the way, which we leave to the MTA that delivers.
        Step::Transfer => standard_name(number).is_some(),
        // We never reassign, expand or convert, so that prohibitions are honoured; tokens, checks
        // and labels are between the users, who get them as they are. No security policy that would
        // compare labels is in force here.
        Step::Submission | Step::Delivery => matches!(
            number,
            n::RECIPIENT_REASSIGNMENT_PROHIBITED
                | n::DL_EXPANSION_PROHIBITED
                | n::CONVERSION_WITH_LOSS_PROHIBITED
                | n::ORIGINATOR_CERTIFICATE
                | n::MESSAGE_TOKEN
                | n::CONTENT_CONFIDENTIALITY_ALGORITHM_IDENTIFIER
                | n::CONTENT_INTEGRITY_CHECK
                | n::MESSAGE_ORIGIN_AUTHENTICATION_CHECK
                | n::MESSAGE_SECURITY_LABEL
                | n::CONTENT_CORRELATOR
                | n::REDIRECTION_HISTORY
                | n::DL_EXPANSION_HISTORY
                | n::TRACE_INFORMATION
                | n::INTERNAL_TRACE_INFORMATION
                | n::MULTIPLE_ORIGINATOR_CERTIFICATES
                | n::DL_EXEMPTED_RECIPIENTS
                | n::CERTIFICATE_SELECTORS
                | n::CERTIFICATE_SELECTORS_OVERRIDE
        ),
    }
}
