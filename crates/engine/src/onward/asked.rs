//! What an originator asks of the delivery to one recipient: a method, and a conversion of the content
//! (X.411 8.2.1.1.1.14 and 8.2.1.1.1.11).
//!
//! Deliveries here are of the method mhs-delivery, and no content is converted. So prohibitions of
//! conversion are respected, and an explicit conversion is reported as not performed. An MTA that only
//! relays leaves both to the delivering one.

use crate::onward::split::Failure;
use base::ber::Element;
use p1::envelope::PerRecipientFields;
use p1::extension::{ExtensionField, number};
use p1::reason::{Diagnostic, NonDeliveryReason};

/// any-delivery-method and mhs-delivery.
const OFFERED: [i64; 2] = [0, 1];

/// Most methods that are read of a request; X.411 has ten.
const MAX_METHODS: usize = 16;

/// The methods of a requested-delivery-method, the preferred one first; `None` if they cannot be read,
/// or are more than X.411 has.
pub(crate) fn methods_in(field: &ExtensionField) -> Option<Vec<i64>> {
    let list = Element::parse(&field.value).ok()?;
    let mut elements = list.children().ok()?;
    let mut methods = Vec::new();
    while let Some(method) = elements.next().ok()? {
        methods.push(method.integer().ok()?);
        if methods.len() > MAX_METHODS {
            return None;
        }
    }
    (!methods.is_empty()).then_some(methods)
}

/// Why a message cannot be delivered to this recipient in a mailbox here, if so. A request for a method
/// that cannot be read is ignored, unless it is critical.
pub(crate) fn unfulfilled(recipient: &PerRecipientFields) -> Option<Failure> {
    if recipient.explicit_conversion.is_some() {
        return Some(Failure {
            reason: NonDeliveryReason::CONVERSION_NOT_PERFORMED,
            diagnostic: Some(Diagnostic::CONVERSION_IMPRACTICAL),
            text: "the originator asks for a conversion, and this MTA performs none".to_owned(),
        });
    }
    let field = recipient.extensions.standard(number::REQUESTED_DELIVERY_METHOD)?;
    let methods = methods_in(field)?;
    if methods.iter().any(|method| OFFERED.contains(method)) {
        return None;
    }
    Some(Failure {
        reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
        diagnostic: Some(Diagnostic::RECIPIENT_UNAVAILABLE),
        text: "the originator asks for a delivery method, and this MTA has mhs-delivery only"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NextHop, RecordKind};
    use crate::testing::{
        BAKER, Codes, JONES, content, engine, engine_of, failures, message, received, report,
        submission, submit,
    };
    use base::ber::universal as u;
    use p1::extension::Criticality;
    use p1::p3::MessageSubmissionEnvelope;

    fn asking(methods: &[i64], critical: Criticality) -> ExtensionField {
        ExtensionField::standard(number::REQUESTED_DELIVERY_METHOD, critical, |w| {
            w.constructed(u::SEQUENCE, |w| methods.iter().for_each(|m| w.integer(u::INTEGER, *m)));
        })
    }

    /// How the message for Jones, who has a mailbox, ends.
    fn local(envelope: &MessageSubmissionEnvelope) -> Codes {
        let done = submit(&mut engine(), envelope);
        let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
        match entry.record.kind() {
            RecordKind::Report => failures(report(entry))[0].1,
            _ => None,
        }
    }

    #[test]
    fn a_delivery_method_that_is_not_offered_is_reported() {
        let unavailable: Codes = Some((1, Some(4)));
        for (methods, end) in [
            (&[0][..], None),
            (&[1], None),
            (&[2, 1], None),
            (&[2], unavailable),
            (&[3, 9], unavailable),
        ] {
            let mut envelope = submission(&[JONES]);
            let critical = Criticality { for_delivery: true, ..Criticality::default() };
            for criticality in [Criticality::default(), critical] {
                envelope.recipients[0].extensions.set(asking(methods, criticality));
                assert_eq!(local(&envelope), end, "{methods:?}");
            }
        }
    }

    #[test]
    fn methods_that_cannot_be_read_count_only_where_they_are_critical() {
        let critical = Criticality { for_delivery: true, ..Criticality::default() };
        for methods in [&[][..], &[2; MAX_METHODS + 1]] {
            let mut envelope = submission(&[JONES]);
            envelope.recipients[0].extensions.set(asking(methods, Criticality::default()));
            assert_eq!(local(&envelope), None);
            envelope.recipients[0].extensions.set(asking(methods, critical));
            // unable-to-transfer, unsupported-critical-function.
            assert_eq!(local(&envelope), Some((1, Some(18))));
        }
    }

    #[test]
    fn an_explicit_conversion_is_left_to_the_delivering_mta_which_performs_none() {
        let mut envelope = submission(&[BAKER]);
        envelope.recipients[0].explicit_conversion = Some(8);
        let mut alpha = engine();
        let done = submit(&mut alpha, &envelope);
        let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
        assert!(matches!(entry.record.next_hop, NextHop::Peer(_)));
        let head = received(&alpha, entry);
        assert_eq!(message(&head).recipients[0].explicit_conversion, Some(8));
        let mut beta = engine_of("beta", "mta2", &["Baker"], &[("alpha", 0)]);
        let taken = beta.accept(crate::testing::at(1), head, &content(9), &[]).accepted;
        // conversion-not-performed, conversion-impractical.
        assert_eq!(failures(report(&taken.entries[0])), [(1, Some((2, Some(8))))]);
    }
}
