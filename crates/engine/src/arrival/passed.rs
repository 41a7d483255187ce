//! Selects which of a user's extensions enter the transfer envelope.
//!
//! A submission may carry the extensions that X.411 lists for it (8.2.1.1.1 and Figure 2, at most
//! one of each type); the transfer envelope has most of them (Figure 4). Extensions that only MTAs
//! add are removed: a forged expansion history would redirect the reports, and a forged trace would
//! be detected as a loop.

use p1::extension::{ExtensionType, Extensions, number as n, standard_name};

/// The part of an envelope that has the extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// For the whole message.
    Message,
    /// For the whole probe.
    Probe,
    /// For one recipient of a message.
    MessageRecipient,
    /// For one recipient of a probe.
    ProbeRecipient,
}

/// PerMessageSubmissionExtensions that are also in MessageTransferExtensions: without
/// proof-of-submission-request and forwarding-request, which end at this MTA.
const MESSAGE: &[i64] = &[
    n::RECIPIENT_REASSIGNMENT_PROHIBITED,
    n::DL_EXPANSION_PROHIBITED,
    n::CONVERSION_WITH_LOSS_PROHIBITED,
    n::LATEST_DELIVERY_TIME,
    n::ORIGINATOR_RETURN_ADDRESS,
    n::ORIGINATOR_CERTIFICATE,
    n::CONTENT_CONFIDENTIALITY_ALGORITHM_IDENTIFIER,
    n::MESSAGE_ORIGIN_AUTHENTICATION_CHECK,
    n::MESSAGE_SECURITY_LABEL,
    n::CONTENT_CORRELATOR,
    n::MULTIPLE_ORIGINATOR_CERTIFICATES,
    n::DL_EXEMPTED_RECIPIENTS,
    n::CERTIFICATE_SELECTORS,
];

/// Extensions of ProbeSubmissionEnvelope that the transfer envelope of a probe has too.
const PROBE: &[i64] = &[
    n::RECIPIENT_REASSIGNMENT_PROHIBITED,
    n::DL_EXPANSION_PROHIBITED,
    n::CONVERSION_WITH_LOSS_PROHIBITED,
    n::ORIGINATOR_CERTIFICATE,
    n::MESSAGE_SECURITY_LABEL,
    n::CONTENT_CORRELATOR,
    n::PROBE_ORIGIN_AUTHENTICATION_CHECK,
];

/// PerRecipientMessageSubmissionExtensions, with IPMPerRecipientEnvelopeExtensions of X.420.
const MESSAGE_RECIPIENT: &[i64] = &[
    n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT,
    n::REQUESTED_DELIVERY_METHOD,
    n::PHYSICAL_FORWARDING_PROHIBITED,
    n::PHYSICAL_FORWARDING_ADDRESS_REQUEST,
    n::PHYSICAL_DELIVERY_MODES,
    n::REGISTERED_MAIL_TYPE,
    n::RECIPIENT_NUMBER_FOR_ADVICE,
    n::PHYSICAL_RENDITION_ATTRIBUTES,
    n::PHYSICAL_DELIVERY_REPORT_REQUEST,
    n::MESSAGE_TOKEN,
    n::CONTENT_INTEGRITY_CHECK,
    n::PROOF_OF_DELIVERY_REQUEST,
    n::RECIPIENT_CERTIFICATE,
    n::BLIND_COPY_RECIPIENTS,
    n::BODY_PART_ENCRYPTION_TOKEN,
    n::FORWARDED_CONTENT_TOKEN,
    n::CERTIFICATE_SELECTORS_OVERRIDE,
];

/// PerRecipientProbeSubmissionExtensions.
const PROBE_RECIPIENT: &[i64] = &[
    n::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT,
    n::REQUESTED_DELIVERY_METHOD,
    n::PHYSICAL_RENDITION_ATTRIBUTES,
];

/// The extensions of a user that are passed on: those of X.411 at this level, private ones, and
/// numbers without a name, which a later edition may define.
pub(crate) fn passed_on(level: Level, extensions: &Extensions) -> Extensions {
    let listed = match level {
        Level::Message => MESSAGE,
        Level::Probe => PROBE,
        Level::MessageRecipient => MESSAGE_RECIPIENT,
        Level::ProbeRecipient => PROBE_RECIPIENT,
    };
    let passes = |kind: &ExtensionType| match kind {
        ExtensionType::Private(_) => true,
        ExtensionType::Standard(number) => {
            listed.contains(number) || standard_name(*number).is_none()
        }
    };
    Extensions(extensions.0.iter().filter(|f| passes(&f.kind)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, NOBODY, NOWHERE, SMITH, engine, message, name, private, received, report,
        submission, submit,
    };
    use base::ber::universal as u;
    use p1::extension::{Criticality, ExtensionField};
    use std::fmt::Write as _;

    #[test]
    fn every_standard_extension_at_every_level() {
        let null =
            |number| ExtensionField::standard(number, Criticality::default(), |w| w.null(u::NULL));
        let mut all = private(Criticality::default());
        all.0.extend((1..=47).map(null));
        let mut table = String::new();
        for level in [Level::Message, Level::Probe, Level::MessageRecipient, Level::ProbeRecipient]
        {
            let passed = passed_on(level, &all);
            let kinds = passed.0.iter().map(|f| match &f.kind {
                ExtensionType::Standard(number) => number.to_string(),
                ExtensionType::Private(oid) => oid.to_string(),
            });
            let _ = writeln!(table, "{level:?}: {}", kinds.collect::<Vec<_>>().join(" "));
        }
        insta::assert_snapshot!(table, @r"
        Message: 1.2.3 1 3 4 5 13 15 17 19 20 23 40 42 45 47
        Probe: 1.2.3 1 3 4 15 20 23 24 47
        MessageRecipient: 1.2.3 2 6 7 8 9 10 11 12 14 16 18 22 28 41 43 44 46 47
        ProbeRecipient: 1.2.3 2 6 12 47
        ");
    }

    #[test]
    fn a_forged_expansion_history_does_not_redirect_reports() {
        let history =
            ExtensionField::standard(n::DL_EXPANSION_HISTORY, Criticality::default(), |w| {
                w.constructed(u::SEQUENCE, |w| {
                    w.constructed(u::SEQUENCE, |w| name(NOWHERE).write(w));
                });
            });
        let mut envelope = submission(&[BAKER, NOBODY]);
        envelope.extensions.set(history.clone());
        envelope.recipients[0].extensions.set(ExtensionField {
            kind: ExtensionType::Standard(n::REDIRECTION_HISTORY),
            ..history
        });
        let mut alpha = engine();
        let done = submit(&mut alpha, &envelope);
        let head = received(&alpha, &done.accepted.entries[0]);
        let sent = message(&head);
        assert_eq!(sent.extensions.standard(n::DL_EXPANSION_HISTORY), None);
        assert_eq!(sent.recipients[0].extensions, Extensions::default());
        let reported = report(&done.accepted.entries[1]);
        assert_eq!(reported.envelope.destination, name(SMITH));
    }
}
