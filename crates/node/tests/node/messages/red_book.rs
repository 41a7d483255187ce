//! A peer with P1 of 1984, whose addresses have a common name as the domain-defined attribute `Common`.

use node::config::{Limits, NodeConfig};
use node::event::Kind;
use osi::api::{Payload, Request};
use p1::bind::{Credentials, MtaAuthentication};
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields};
use p1::extension::CommonName;
use p1::flags::{MtaReportRequest, PerRecipientIndicators, ReportRequest};
use p1::names::{GlobalDomainId, MtsIdentifier};
use p1::trace::TraceElement;
use p1::{ContentType, Dialect, Extensions, ORName};
use testkit::Events;
use testkit::bench::{ACT_FLASH, two_peers};

fn name(address: &str) -> ORName {
    ORName::from(address.parse::<p1::ORAddress>().unwrap())
}

/// A message to the duty officer here, as a peer of 1984 has it.
fn message() -> Payload {
    let domain = GlobalDomainId::new("XX", "NATO", Some("ACT"));
    let (mta, user) = (MtaReportRequest::NonDelivery, ReportRequest::NonDelivery);
    let envelope = MessageTransferEnvelope {
        message_identifier: MtsIdentifier { domain: domain.clone(), local: "1".to_owned() },
        originator: name("/C=XX/ADMD=NATO/PRMD=ACT/S=OPS"),
        original_eits: None,
        content_type: ContentType::P2,
        content_identifier: None,
        priority: p1::Priority::Urgent,
        indicators: Default::default(),
        deferred_delivery_time: None,
        per_domain_bilateral: None,
        recipients: vec![PerRecipientFields {
            recipient: name("/C=XX/ADMD=NATO/PRMD=HERE/DDA:Common=Duty"),
            number: 1,
            indicators: PerRecipientIndicators::new(true, mta, user),
            ..PerRecipientFields::default()
        }],
        extensions: Extensions::default(),
        trace: vec![TraceElement::relayed(domain, base::Utc(1_767_225_600_000_000))],
        unknown: Vec::new(),
    };
    let head = p1::apdu::encode_message_head(&envelope, 0);
    Payload { head: head.into(), content_length: 0, tail: Default::default() }
}

#[test]
fn the_attribute_common_finds_the_user_with_that_common_name() {
    for (common_name, expected) in [(CommonName::DomainDefined, 0), (CommonName::NoForm, 1)] {
        let mut bench = two_peers(Limits::default(), |config: &mut NodeConfig| {
            config.peers[0].form.dialect = Dialect::RedBook1984(common_name);
            let duty = name("/C=XX/ADMD=NATO/PRMD=HERE/CN=Duty");
            config.mailboxes.push(engine::canonical(&duty.address));
        });
        let bind = MtaAuthentication::new("MTA-ACT", Credentials::simple("theirs"));
        let id = bench.mta_with(ACT_FLASH, "192.0.2.10", bind);
        bench.request(id, Request::Transfer { payload: message(), resume: None });
        bench.settle();
        assert!(!bench.has_failed(id));
        let failed = bench.details(Kind::NonDelivery);
        assert_eq!(failed.len(), expected, "{common_name:?}: {failed:?}");
    }
}
