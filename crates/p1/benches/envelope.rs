//! The time to read and to write an envelope, as an MTA that relays has them.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use base::Utc;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p1::apdu::{decode_envelope, encode_envelope};
use p1::content_type::ContentType;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields};
use p1::extension::{Dialect, Extensions};
use p1::flags::Priority;
use p1::names::{GlobalDomainId, MtaName, MtsIdentifier, ORName};
use p1::trace::{InternalTraceElement, TraceElement, add_internal_trace};
use std::hint::black_box;

/// One that has crossed one domain and two MTAs, with a precedence qualifier.
fn envelope(recipients: u32) -> MessageTransferEnvelope {
    let name = |user: &str| -> ORName {
        let address = format!("/C=IT/ADMD=NET/PRMD=NAPLES/O=JFC/OU1=J6/S={user}/G=OPERATIONS");
        address.parse().expect("an address")
    };
    let domain = GlobalDomainId::new("IT", "NET", Some("NAPLES"));
    let at = Utc(1_700_000_000_000_000);
    let (_, qualifier) = p1::grade::split(base::Precedence::Flash);
    let qualifier = qualifier.extension(Dialect::Modern);
    let mut extensions = Extensions(qualifier.into_iter().collect());
    for mta in ["MTA-NAPLES", "MTA-NAPLES-2"] {
        let mta = MtaName(mta.to_owned());
        let element = InternalTraceElement::relayed(domain.clone(), mta, at);
        add_internal_trace(&mut extensions, element).expect("an internal trace");
    }
    MessageTransferEnvelope {
        message_identifier: MtsIdentifier { domain: domain.clone(), local: "N.1.2f".to_owned() },
        originator: name("OPS"),
        original_eits: None,
        content_type: ContentType::p772(),
        content_identifier: Some("20261120 0001".to_owned()),
        priority: Priority::Urgent,
        indicators: Default::default(),
        deferred_delivery_time: None,
        per_domain_bilateral: None,
        recipients: (1..=recipients)
            .map(|number| PerRecipientFields {
                recipient: name(&format!("OPS{number}")),
                number,
                ..PerRecipientFields::default()
            })
            .collect(),
        extensions,
        trace: vec![TraceElement::relayed(domain, at)],
        unknown: Vec::<Bytes>::new(),
    }
}

fn envelopes(c: &mut Criterion) {
    for recipients in [1, 10, 1_000] {
        let value = envelope(recipients);
        let octets = encode_envelope(&value);
        assert_eq!(decode_envelope(&octets).as_ref().map(encode_envelope), Ok(octets.clone()));
        let mut group = c.benchmark_group(format!("envelope/{recipients} recipients"));
        group.throughput(Throughput::Bytes(octets.len() as u64));
        group.bench_function("decode", |b| b.iter(|| decode_envelope(black_box(&octets))));
        group.bench_function("encode", |b| b.iter(|| encode_envelope(black_box(&value))));
        group.finish();
    }
}

criterion_group!(benches, envelopes);
criterion_main!(benches);
