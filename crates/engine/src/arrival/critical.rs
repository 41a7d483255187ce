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
    use base::ber::universal as u;
    use p1::extension::Criticality;
    use std::fmt::Write as _;

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

    /// A value that the extension of this number may have.
    fn value(number: i64) -> ExtensionField {
        ExtensionField::standard(number, NONE, |w| match number {
            n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT => crate::testing::name(BAKER).write(w),
            n::LATEST_DELIVERY_TIME => w.utc_time(u::UTC_TIME, at(60)),
            n::RECIPIENT_REASSIGNMENT_PROHIBITED => w.integer(u::ENUMERATED, 1),
            _ => w.null(u::NULL),
        })
    }

    /// Every extension of X.411, at each step that it may be critical for: `-` is refused.
    #[test]
    fn each_extension_at_each_step() {
        let critical = |step, number: i64, for_step: bool| {
            let mut field = value(number);
            field.criticality = Criticality {
                for_submission: for_step == (step == Step::Submission),
                for_transfer: for_step == (step == Step::Transfer),
                for_delivery: for_step == (step == Step::Delivery),
            };
            unsupported(step, &Extensions(vec![field])).is_some()
        };
        let steps = [Step::Submission, Step::Transfer, Step::Delivery];
        let mut table = String::new();
        for number in 1..=48 {
            let marks = steps.map(|step| if critical(step, number, true) { '-' } else { '+' });
            // What is critical for other steps alone is passed on.
            assert!(steps.iter().all(|step| !critical(*step, number, false)), "{number}");
            let name = standard_name(number).unwrap_or("unknown");
            let _ = writeln!(table, "{} {number} {name}", String::from_iter(marks));
        }
        insta::assert_snapshot!(table, @r"
        +++ 1 recipient-reassignment-prohibited
        +++ 2 originator-requested-alternate-recipient
        +++ 3 dl-expansion-prohibited
        +++ 4 conversion-with-loss-prohibited
        +++ 5 latest-delivery-time
        -+- 6 requested-delivery-method
        -+- 7 physical-forwarding-prohibited
        -+- 8 physical-forwarding-address-request
        -+- 9 physical-delivery-modes
        -+- 10 registered-mail-type
        -+- 11 recipient-number-for-advice
        -+- 12 physical-rendition-attributes
        -+- 13 originator-return-address
        -+- 14 physical-delivery-report-request
        +++ 15 originator-certificate
        +++ 16 message-token
        +++ 17 content-confidentiality-algorithm-identifier
        +++ 18 content-integrity-check
        +++ 19 message-origin-authentication-check
        +++ 20 message-security-label
        -+- 21 proof-of-submission-request
        -+- 22 proof-of-delivery-request
        +++ 23 content-correlator
        -+- 24 probe-origin-authentication-check
        +++ 25 redirection-history
        +++ 26 dl-expansion-history
        -+- 27 physical-forwarding-address
        -+- 28 recipient-certificate
        -+- 29 proof-of-delivery
        -+- 30 originator-and-DL-expansion-history
        -+- 31 reporting-DL-name
        -+- 32 reporting-MTA-certificate
        -+- 33 report-origin-authentication-check
        -+- 34 originating-MTA-certificate
        -+- 35 proof-of-submission
        -+- 36 forwarding-request
        +++ 37 trace-information
        +++ 38 internal-trace-information
        -+- 39 reporting-MTA-name
        +++ 40 multiple-originator-certificates
        -+- 41 blind-copy-recipients
        +++ 42 dl-exempted-recipients
        -+- 43 body-part-encryption-token
        -+- 44 forwarded-content-token
        +++ 45 certificate-selectors
        +++ 46 certificate-selectors-override
        --- 47 unknown
        --- 48 unknown
        ");
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
