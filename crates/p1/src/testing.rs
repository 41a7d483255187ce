//! Generators of valid values for property tests (proptest), here and in other crates.

use crate::apdu::Report;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::envelope::{
    LastTrace, MessageTransferEnvelope, PerRecipientFields, PerRecipientReportFields,
    ProbeTransferEnvelope, ReportTransferContent, ReportTransferEnvelope, ReportType,
};
use crate::extension::{Criticality, Defaults, Dialect, ExtensionField, ExtensionType, Extensions};
use crate::flags::{PerMessageIndicators, PerRecipientIndicators, Priority};
use crate::names::{
    DomainDefinedAttribute, ExtensionAttribute, GlobalDomainId, MtaName, MtsIdentifier, ORAddress,
    ORName, PersonalName,
};
use crate::reason::{Diagnostic, NonDeliveryReason};
use crate::text::{StringType, Text};
use crate::time::Time;
use crate::trace::{
    AdditionalActions, Attempted, InternalTraceElement, OtherActions, RoutingAction, TraceElement,
};
use base::Utc;
use base::ber::{Oid, Tag, Writer, universal};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// Characters of PrintableString, the separators of the text form among them.
fn printable(most: usize) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("[A-Za-z0-9'()+,./:=?-]{{1,{most}}}"))
        .map_or_else(|_| Just(String::from("A")).boxed(), Strategy::boxed)
}

/// A string of one of the CHOICE's types; teletex ones with octets above 127.
pub fn text(most: usize) -> impl Strategy<Value = Text> {
    prop_oneof![
        4 => printable(most).prop_map(Text::printable),
        1 => "[0-9]{1,3}".prop_map(|value| Text { kind: StringType::Numeric, value }),
        1 => proptest::string::string_regex(&format!("[a-z\u{e0}-\u{ff}]{{1,{}}}", most.min(8)))
            .map_or_else(|_| Just(String::from("a")).boxed(), Strategy::boxed)
            .prop_map(|value| Text { kind: StringType::Teletex, value }),
    ]
}

/// Any object identifier.
pub fn oid() -> impl Strategy<Value = Oid> {
    (0u64..3, 0u64..40, vec(any::<u32>(), 1..6)).prop_filter_map(
        "an OID",
        |(root, second, rest)| {
            let arcs: Vec<u64> =
                [root, second].into_iter().chain(rest.into_iter().map(u64::from)).collect();
            Oid::from_arcs(&arcs)
        },
    )
}

/// A time to the second, or octets that are none.
pub fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        9 => (0u64..2_000_000_000).prop_map(|s| Time::from(Utc(s * 1_000_000))),
        1 => "[a-z]{0,12}".prop_map(|s| Time { raw: Bytes::from(s), utc: None }),
    ]
}

/// An element no envelope knows.
pub fn unknown() -> impl Strategy<Value = Bytes> {
    (20u32..2000, vec(any::<u8>(), 0..20)).prop_map(|(number, content)| {
        let mut w = Writer::new();
        w.primitive(Tag::context(number), &content);
        w.into_vec().into()
    })
}

/// A management domain.
pub fn domain() -> impl Strategy<Value = GlobalDomainId> {
    let admd = prop_oneof![Just(Text::printable(" ")), text(16)];
    (text(2), admd, of(text(16))).prop_map(|(country, admd, prmd)| GlobalDomainId {
        country,
        admd,
        prmd,
    })
}

/// An identifier.
pub fn identifier() -> impl Strategy<Value = MtsIdentifier> {
    (domain(), "[ -~]{1,32}").prop_map(|(domain, local)| MtsIdentifier { domain, local })
}

/// An address with any of the attributes that have a text form.
pub fn address() -> impl Strategy<Value = ORAddress> {
    let person = (printable(40), of(printable(16)), of(printable(5)), of(printable(3))).prop_map(
        |(surname, given_name, initials, generation_qualifier)| PersonalName {
            surname,
            given_name,
            initials,
            generation_qualifier,
        },
    );
    let pair = (printable(8), printable(128))
        .prop_map(|(kind, value)| DomainDefinedAttribute { kind, value });
    let low = (of("[0-9]{1,15}"), of(printable(24)), of("[0-9]{1,32}"), of("[ -~]{1,64}"));
    let high = (of(text(2)), of(text(16)), of(text(16)), of(printable(64)));
    (high, of(person), vec(printable(32), 0..=4), vec(pair, 0..=4), low).prop_map(
        |((country, admd, prmd, organization), personal_name, units, domain_defined, low)| {
            let (network_address, terminal_identifier, numeric_user_identifier, name) = low;
            let mut address = ORAddress {
                country,
                admd,
                network_address,
                terminal_identifier,
                prmd,
                organization,
                numeric_user_identifier,
                personal_name,
                organizational_units: units,
                domain_defined,
                extensions: Vec::new(),
            };
            if let Some(name) = name.filter(|n| !n.trim().is_empty()) {
                address.set_common_name(name.trim());
            }
            address
        },
    )
}

/// A name, at times with a directory name and with extension attributes that have no text form.
pub fn name() -> impl Strategy<Value = ORName> {
    let directory = Just(Bytes::from_static(&[0x30, 0]));
    let attribute =
        (7i64..256, unknown()).prop_map(|(number, value)| ExtensionAttribute { number, value });
    (address(), of(directory), vec(attribute, 0..3)).prop_map(
        |(mut address, directory_name, attributes)| {
            address.extensions.extend(attributes);
            ORName { address, directory_name }
        },
    )
}

/// A content type.
pub fn content_type() -> impl Strategy<Value = ContentType> {
    prop_oneof![
        (0i64..32_767).prop_map(ContentType::BuiltIn),
        oid().prop_map(ContentType::Extended),
        Just(ContentType::p772()),
    ]
}

/// Encoded information types.
pub fn eits() -> impl Strategy<Value = EncodedInformationTypes> {
    (0u32..1024, vec(oid(), 0..3), vec(unknown(), 0..2)).prop_map(|(built_in, extended, other)| {
        EncodedInformationTypes { built_in, extended, other }
    })
}

/// An extension as a peer sent it: `raw` is there, and agrees with the rest.
pub fn received_extension() -> impl Strategy<Value = ExtensionField> {
    let kind = prop_oneof![
        (50i64..256).prop_map(ExtensionType::Standard),
        oid().prop_map(ExtensionType::Private),
    ];
    let dialect = prop_oneof![Just(Dialect::Modern), Just(Dialect::BlueBook1988)];
    let criticality = any::<(bool, bool, bool)>().prop_map(|(s, t, d)| Criticality {
        for_submission: s,
        for_transfer: t,
        for_delivery: d,
    });
    (kind, dialect, criticality, vec(any::<u8>(), 0..40)).prop_map(|(kind, dialect, c, content)| {
        let mut w = Writer::new();
        w.primitive(universal::OCTET_STRING, &content);
        let value = w.into_vec().into();
        let field = ExtensionField { kind, dialect, criticality: c, value, raw: None };
        let mut w = Writer::new();
        field.write(&mut w, Defaults::LeftOut);
        ExtensionField { raw: Some(w.into_vec().into()), ..field }
    })
}

/// Extensions of different types, as a peer sent them.
pub fn extensions() -> impl Strategy<Value = Extensions> {
    vec(received_extension(), 0..4).prop_map(|fields| {
        let mut all = Extensions::default();
        fields.into_iter().for_each(|f| all.set(f));
        all
    })
}

fn action() -> impl Strategy<Value = RoutingAction> {
    prop_oneof![Just(RoutingAction::Relayed), Just(RoutingAction::Rerouted)]
}

fn additional() -> impl Strategy<Value = AdditionalActions> {
    (of(time()), of(eits()), 0u32..4, vec(unknown(), 0..2)).prop_map(
        |(deferred_time, converted_eits, other, unknown)| AdditionalActions {
            deferred_time,
            converted_eits,
            other_actions: OtherActions(other),
            unknown,
        },
    )
}

/// One domain's trace element.
pub fn trace_element() -> impl Strategy<Value = TraceElement> {
    (domain(), time(), action(), of(domain()), additional()).prop_map(
        |(domain, arrival_time, routing_action, attempted_domain, additional)| TraceElement {
            domain,
            arrival_time,
            routing_action,
            attempted_domain,
            additional,
        },
    )
}

/// One MTA's trace element.
pub fn internal_trace_element() -> impl Strategy<Value = InternalTraceElement> {
    let mta = || "[ -~]{1,32}".prop_map(MtaName);
    let attempted =
        prop_oneof![mta().prop_map(Attempted::Mta), domain().prop_map(Attempted::Domain),];
    (domain(), mta(), time(), action(), of(attempted), additional()).prop_map(
        |(domain, mta, arrival_time, routing_action, attempted, additional)| InternalTraceElement {
            domain,
            mta,
            arrival_time,
            routing_action,
            attempted,
            additional,
        },
    )
}

/// One recipient's fields.
pub fn recipient() -> impl Strategy<Value = PerRecipientFields> {
    let numbers = (1u32..=32_767, 0u32..32, of(0i64..17));
    (name(), numbers, extensions(), vec(unknown(), 0..2)).prop_map(
        |(recipient, (number, indicators, explicit_conversion), extensions, unknown)| {
            PerRecipientFields {
                recipient,
                number,
                indicators: PerRecipientIndicators(indicators),
                explicit_conversion,
                extensions,
                unknown,
            }
        },
    )
}

/// A message's envelope.
pub fn message() -> impl Strategy<Value = MessageTransferEnvelope> {
    let priority =
        prop_oneof![Just(Priority::Normal), Just(Priority::NonUrgent), Just(Priority::Urgent)];
    let bilateral = of(vec(any::<u8>(), 0..9).prop_map(|content| {
        let mut w = Writer::new();
        w.constructed(Tag::context(1), |w| w.string(universal::OCTET_STRING, content));
        Bytes::from(w.into_vec())
    }));
    let who = (identifier(), name(), vec(recipient(), 1..4), vec(trace_element(), 0..4));
    let what = (of(eits()), content_type(), of("[A-Za-z0-9 ]{1,16}"));
    let how = (priority, 0u32..256, of(time()), bilateral);
    (who, what, how, extensions(), vec(unknown(), 0..2)).prop_map(
        |(who, what, how, extensions, unknown)| {
            let (message_identifier, originator, recipients, trace) = who;
            let (original_eits, content_type, content_identifier) = what;
            let (priority, indicators, deferred_delivery_time, per_domain_bilateral) = how;
            MessageTransferEnvelope {
                message_identifier,
                originator,
                original_eits,
                content_type,
                content_identifier,
                priority,
                indicators: PerMessageIndicators(indicators),
                deferred_delivery_time,
                per_domain_bilateral,
                recipients,
                extensions,
                trace,
                unknown,
            }
        },
    )
}

/// A probe.
pub fn probe() -> impl Strategy<Value = ProbeTransferEnvelope> {
    (message(), of(0i64..i64::from(i32::MAX))).prop_map(|(m, content_length)| {
        ProbeTransferEnvelope {
            probe_identifier: m.message_identifier,
            originator: m.originator,
            original_eits: m.original_eits,
            content_type: m.content_type,
            content_identifier: m.content_identifier,
            content_length,
            indicators: m.indicators,
            per_domain_bilateral: m.per_domain_bilateral,
            recipients: m.recipients,
            extensions: m.extensions,
            trace: m.trace,
            unknown: m.unknown,
        }
    })
}

fn report_type() -> impl Strategy<Value = ReportType> {
    prop_oneof![
        (time(), 0i64..7).prop_map(|(time, mts_user)| ReportType::Delivery { time, mts_user }),
        (0i64..12, of(0i64..90)).prop_map(|(reason, diagnostic)| ReportType::NonDelivery {
            reason: NonDeliveryReason(reason),
            diagnostic: diagnostic.map(Diagnostic),
        }),
    ]
}

fn report_recipient() -> impl Strategy<Value = PerRecipientReportFields> {
    let last = (time(), of(eits()), report_type(), vec(unknown(), 0..2)).prop_map(
        |(arrival_time, converted_eits, report, unknown)| LastTrace {
            arrival_time,
            converted_eits,
            report,
            unknown,
        },
    );
    (recipient(), last, of(name()), of(printable(256))).prop_map(
        |(r, last_trace, intended_recipient, supplementary_information)| PerRecipientReportFields {
            actual_recipient: r.recipient,
            number: r.number,
            indicators: r.indicators,
            last_trace,
            intended_recipient,
            supplementary_information,
            extensions: r.extensions,
            unknown: r.unknown,
        },
    )
}

/// A report.
pub fn report() -> impl Strategy<Value = Report> {
    let envelope = (identifier(), name(), vec(trace_element(), 0..4), extensions()).prop_map(
        |(report_identifier, destination, trace, extensions)| ReportTransferEnvelope {
            report_identifier,
            destination,
            trace,
            extensions,
            unknown: Vec::new(),
        },
    );
    let what = (of(eits()), of(content_type()), of("[A-Za-z0-9 ]{1,16}"));
    let returned = of(vec(any::<u8>(), 0..99).prop_map(Bytes::from));
    let subject = (identifier(), vec(trace_element(), 0..3), returned);
    (envelope, subject, what, vec(report_recipient(), 1..4), extensions(), vec(unknown(), 0..2))
        .prop_map(|(envelope, subject, what, recipients, extensions, unknown)| {
            let (subject_identifier, subject_trace, returned_content) = subject;
            let (original_eits, content_type, content_identifier) = what;
            let content = ReportTransferContent {
                subject_identifier,
                subject_trace,
                original_eits,
                content_type,
                content_identifier,
                returned_content,
                additional_information: None,
                extensions,
                recipients,
                unknown,
            };
            Report { envelope, content }
        })
}

/// Content octets of the object identifiers in a SignedData: signedData, data, sha256, ecdsa-with-SHA256,
/// and the attributes content-type and ESS label.
const SIGNED_OIDS: [&[u8]; 6] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1],
    &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 2],
];

/// A ContentInfo of a SignedData (RFC 5652) around `content`, in definite lengths. Each signer has a signed
/// attribute content-type, and one for each of its security labels, whose octets are the values of the
/// attribute. The signatures are none.
pub fn signed(signers: &[&[&[u8]]], content: &[u8]) -> Vec<u8> {
    use universal as u;
    let [signed_data, data, digest, signature, content_type, label] = SIGNED_OIDS;
    let algorithm = |w: &mut Writer, oid: &[u8]| {
        w.constructed(u::SEQUENCE, |w| w.primitive(u::OID, oid));
    };
    let attribute = |w: &mut Writer, kind: &[u8], values: &[u8]| {
        w.constructed(u::SEQUENCE, |w| {
            w.primitive(u::OID, kind);
            w.constructed(u::SET, |w| w.raw(values));
        });
    };
    let signer = |w: &mut Writer, labels: &[&[u8]]| {
        w.constructed(u::SEQUENCE, |w| {
            w.integer(u::INTEGER, 3);
            w.primitive(Tag::context(0), b"key identifier");
            algorithm(w, digest);
            w.constructed(Tag::context(0), |w| {
                let mut kind = Writer::new();
                kind.primitive(u::OID, data);
                attribute(w, content_type, kind.as_slice());
                labels.iter().for_each(|values| attribute(w, label, values));
            });
            algorithm(w, signature);
            w.primitive(u::OCTET_STRING, &[0; 64]);
        });
    };
    let mut w = Writer::new();
    w.constructed(u::SEQUENCE, |w| {
        w.primitive(u::OID, signed_data);
        w.constructed(Tag::context(0), |w| {
            w.constructed(u::SEQUENCE, |w| {
                w.integer(u::INTEGER, 3);
                w.constructed(u::SET, |w| algorithm(w, digest));
                w.constructed(u::SEQUENCE, |w| {
                    w.primitive(u::OID, data);
                    w.constructed(Tag::context(0), |w| w.primitive(u::OCTET_STRING, content));
                });
                w.constructed(u::SET, |w| signers.iter().for_each(|labels| signer(w, labels)));
            });
        });
    });
    w.into_vec()
}
