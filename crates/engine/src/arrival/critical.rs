//! Supported extensions, and the handling of unsupported critical ones (X.411 9.1 and 14.3.4).
//!
//! An extension that is not supported and not critical for a step is passed on unchanged. If it is
//! critical, a submission is refused with unsupported-critical-function; a relay or a delivery
//! reports non-delivery with that diagnostic.

use crate::expire::latest_delivery;
use crate::onward::asked::methods_in;
use crate::onward::redirect::{alternate_in, prohibition_in};
use p1::extension::{
    Dialect, ExtensionField, ExtensionType, Extensions, number as n, standard_name,
};
use p1::grade::PriorityLevelQualifier;

/// A step that an extension may be critical for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Accepting a submission from a user.
    Submission,
    /// Relaying to another MTA.
    Transfer,
    /// Delivering to a user.
    Delivery,
}

/// The first unsupported extension that is critical for this step, by name or identifier.
pub fn unsupported(step: Step, extensions: &Extensions) -> Option<String> {
    extensions.0.iter().find(|f| is_critical(step, f) && !is_understood(step, f)).map(|f| match &f
        .kind
    {
        ExtensionType::Private(oid) => oid.to_string(),
        ExtensionType::Standard(number) => match standard_name(*number) {
            Some(name) => name.to_owned(),
            None => format!("standard extension {number}"),
        },
    })
}

fn is_critical(step: Step, field: &ExtensionField) -> bool {
    match step {
        Step::Submission => field.criticality.for_submission,
        Step::Transfer => field.criticality.for_transfer,
        Step::Delivery => field.criticality.for_delivery,
    }
}

/// STANAG 4406's priority-level-qualifier is the only private extension supported.
fn is_qualifier(kind: &ExtensionType) -> bool {
    let own = PriorityLevelQualifier::Low.extension(Dialect::Modern);
    own.is_some_and(|own| own.kind == *kind)
}

fn is_understood(step: Step, field: &ExtensionField) -> bool {
    let ExtensionType::Standard(number) = field.kind else { return is_qualifier(&field.kind) };
    match step {
        // A relay passes on every extension of X.411. Those that request an action of the MTS are
        // performed by the delivering MTA.
        Step::Transfer => standard_name(number).is_some(),
        // Performed, if it can be read.
        Step::Submission | Step::Delivery if number == n::LATEST_DELIVERY_TIME => {
            latest_delivery(field).is_some()
        }
        Step::Submission | Step::Delivery
            if number == n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT =>
        {
            alternate_in(field).is_some()
        }
        Step::Submission | Step::Delivery if number == n::RECIPIENT_REASSIGNMENT_PROHIBITED => {
            prohibition_in(field).is_some()
        }
        Step::Submission | Step::Delivery if number == n::REQUESTED_DELIVERY_METHOD => {
            methods_in(field).is_some()
        }
        // We never expand or convert, so those prohibitions are respected. Tokens, checks and labels
        // concern the users, who receive them unchanged. No security policy that compares labels is
        // in force here.
        Step::Submission | Step::Delivery => matches!(
            number,
            n::DL_EXPANSION_PROHIBITED
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::SubmitError;
    use crate::record::NextHop;
    use crate::testing::{
        BAKER, Codes, JONES, SMITH, address, at, content, engine, failures, private, report,
        submission, submit,
    };
    use base::PeerId;
    use p1::extension::Criticality;

    const NONE: Criticality =
        Criticality { for_submission: false, for_transfer: false, for_delivery: false };
    /// unable-to-transfer, unsupported-critical-function.
    const UNSUPPORTED: Codes = Some((1, Some(18)));

    #[test]
    fn critical_for_submission_is_refused() {
        let mut envelope = submission(&[BAKER]);
        envelope.extensions = private(Criticality { for_submission: true, ..NONE });
        let mailbox = crate::canonical(&address(SMITH));
        let refused = engine().submit(at(0), &mailbox, &envelope, &content(1), &[]).unwrap_err();
        assert_eq!(refused, SubmitError::UnsupportedCriticalFunction("1.2.3".to_owned()));
        assert_eq!(refused.access_error().code(), 13);
    }

    #[test]
    fn critical_for_transfer_stops_at_any_mta_and_for_delivery_at_the_last() {
        for (criticality, failing) in [
            (NONE, &[][..]),
            (Criticality { for_transfer: true, ..NONE }, &[1, 2]),
            (Criticality { for_delivery: true, ..NONE }, &[2]),
        ] {
            let mut envelope = submission(&[BAKER, JONES]);
            envelope.extensions = private(criticality);
            let done = submit(&mut engine(), &envelope);
            let reports: Vec<_> =
                done.accepted.entries.iter().filter(|e| e.record.body.is_none()).collect();
            let failed: Vec<_> = reports.iter().flat_map(|e| failures(report(e))).collect();
            let expected: Vec<_> = failing.iter().map(|n| (*n, UNSUPPORTED)).collect();
            assert_eq!(failed, expected, "{criticality:?}");
            let relayed =
                done.accepted.entries.iter().any(|e| e.record.next_hop == NextHop::Peer(PeerId(0)));
            assert_eq!(relayed, !failing.contains(&1), "{criticality:?}");
        }
    }

    #[test]
    fn critical_for_one_recipient_fails_that_one() {
        let mut envelope = submission(&[BAKER, JONES]);
        let transfer = Criticality { for_transfer: true, ..NONE };
        envelope.recipients[0].extensions = private(transfer);
        let done = submit(&mut engine(), &envelope);
        let hops: Vec<_> = done.accepted.entries.iter().map(|e| e.record.kind()).collect();
        assert_eq!(hops, [crate::RecordKind::Message, crate::RecordKind::Report]);
        assert_eq!(failures(report(&done.accepted.entries[1])), [(1, UNSUPPORTED)]);
    }

    #[test]
    fn what_asks_for_a_service_we_lack_is_not_understood() {
        let asks = |number| {
            let mut e = private(Criticality { for_submission: true, for_delivery: true, ..NONE });
            e.0[0].kind = ExtensionType::Standard(number);
            e
        };
        for number in [n::PROOF_OF_SUBMISSION_REQUEST, n::PROOF_OF_DELIVERY_REQUEST, 99] {
            assert!(unsupported(Step::Submission, &asks(number)).is_some(), "{number}");
        }
        for number in [n::MESSAGE_SECURITY_LABEL, n::MESSAGE_TOKEN, n::DL_EXPANSION_PROHIBITED] {
            assert_eq!(unsupported(Step::Delivery, &asks(number)), None, "{number}");
        }
    }
}
