//! Why a message was not delivered, in words. The names of X.411 are for those who look them up.

use p1::reason::{Diagnostic, NonDeliveryReason};

/// One sentence from reason and diagnostic.
pub(crate) fn not_delivered(reason: NonDeliveryReason, diagnostic: Option<Diagnostic>) -> String {
    let known = diagnostic.and_then(of_diagnostic).or_else(|| of_reason(reason));
    // Names of the standard read as words once their dashes are gone.
    let spelled = || {
        let name = diagnostic.and_then(Diagnostic::name).or(reason.name());
        name.map(|name| name.replace('-', " "))
    };
    known.map(str::to_owned).or_else(spelled).unwrap_or_else(|| "the reason has no name".to_owned())
}

fn of_reason(reason: NonDeliveryReason) -> Option<&'static str> {
    Some(match reason {
        NonDeliveryReason::TRANSFER_FAILURE => "a communication failure prevented its transfer",
        NonDeliveryReason::UNABLE_TO_TRANSFER => "an MTA was unable to transfer it",
        NonDeliveryReason::CONVERSION_NOT_PERFORMED => "it would have to be converted",
        NonDeliveryReason::RESTRICTED_DELIVERY => {
            "the recipient takes no messages from this originator"
        }
        NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON => "security forbids its transfer",
        _ => return None,
    })
}

fn of_diagnostic(diagnostic: Diagnostic) -> Option<&'static str> {
    Some(match diagnostic {
        Diagnostic::UNRECOGNISED_OR_NAME => "there is no such recipient",
        Diagnostic::AMBIGUOUS_OR_NAME => "the address fits more than one recipient",
        Diagnostic::MTS_CONGESTION => "an MTA was overloaded",
        Diagnostic::LOOP_DETECTED => "it is in a loop between MTAs",
        Diagnostic::RECIPIENT_UNAVAILABLE => "the recipient was not available",
        Diagnostic::MAXIMUM_TIME_EXPIRED => "it expired before it could be delivered",
        Diagnostic::ENCODED_INFORMATION_TYPES_UNSUPPORTED => {
            "the recipient cannot take this kind of body"
        }
        Diagnostic::CONTENT_TOO_LONG => {
            "it is too long for the recipient or for an MTA on its path"
        }
        Diagnostic::INVALID_ARGUMENTS => "an MTA could not read the envelope",
        Diagnostic::CONTENT_SYNTAX_ERROR => "its content does not have the declared type",
        Diagnostic::SIZE_CONSTRAINT_VIOLATION => "something in the envelope is longer than allowed",
        Diagnostic::PROTOCOL_VIOLATION => "its envelope breaks the protocol",
        Diagnostic::CONTENT_TYPE_NOT_SUPPORTED => "the recipient cannot take this type of content",
        Diagnostic::TOO_MANY_RECIPIENTS => "it has more recipients than an MTA takes",
        Diagnostic::NO_BILATERAL_AGREEMENT => "no agreement between the domains allows it",
        Diagnostic::UNSUPPORTED_CRITICAL_FUNCTION => {
            "it asks for a function that an MTA or the recipient does not have"
        }
        Diagnostic::RECIPIENT_REASSIGNMENT_PROHIBITED => {
            "the recipient has moved, and the originator forbade redirection"
        }
        Diagnostic::REDIRECTION_LOOP_DETECTED => "its redirections are in a loop",
        Diagnostic::DL_EXPANSION_PROHIBITED => {
            "the address is a distribution list, which the originator forbade"
        }
        Diagnostic::NO_DL_SUBMIT_PERMISSION => "the originator may not write to this list",
        Diagnostic::DL_EXPANSION_FAILURE => "the list could not be expanded",
        Diagnostic::SECURE_MESSAGING_ERROR => "it is not protected as it should be",
        Diagnostic::UNABLE_TO_DOWNGRADE => "an older MTA on its path cannot take it",
        Diagnostic::UNABLE_TO_COMPLETE_TRANSFER => "its transfer could not be completed",
        Diagnostic::TRANSFER_ATTEMPTS_LIMIT_REACHED => "too many attempts of its transfer failed",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_as_words() {
        let (unable, failure) =
            (NonDeliveryReason::UNABLE_TO_TRANSFER, NonDeliveryReason::TRANSFER_FAILURE);
        let unrecognised = Some(Diagnostic::UNRECOGNISED_OR_NAME);
        assert_eq!(not_delivered(unable, unrecognised), "there is no such recipient");
        assert_eq!(not_delivered(failure, None), "a communication failure prevented its transfer");
        assert_eq!(not_delivered(unable, None), "an MTA was unable to transfer it");
        let rare = Some(Diagnostic::PICTORIAL_SYMBOL_LOSS);
        assert_eq!(not_delivered(NonDeliveryReason(77), rare), "pictorial symbol loss");
        let unknown = not_delivered(failure, Some(Diagnostic(999)));
        assert_eq!(unknown, "a communication failure prevented its transfer");
        assert_eq!(not_delivered(NonDeliveryReason(77), None), "the reason has no name");
    }
}
