//! Fixtures of this crate's tests.

use crate::{
    Config, Content, Delivery, Engine, NewEntry, Periods, Record, Route, RouteTarget, Submitted,
    arrival::classify::Policy, canonical,
};
use base::{PeerId, Utc};
use bytes::Bytes;
use p1::apdu::{MtsApduHead, Report};
use p1::content_type::ContentType;
use p1::envelope::{MessageTransferEnvelope, PerRecipientReportFields, ReportType};
use p1::extension::{Criticality, Dialect, ExtensionField, ExtensionType, Extensions};
use p1::flags::{PerMessageIndicators, Priority, ReportRequest};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{
    ArgumentEvent, DeliveryParser, MessageDeliveryEnvelope, MessageSubmissionEnvelope,
    PerRecipientSubmissionFields, operation,
};
use p1::parser::{ApduParser, Event};

/// A user of alpha.
pub(crate) const SMITH: &str = "C=XX;ADMD=;PRMD=alpha;S=Smith";
/// Another.
pub(crate) const JONES: &str = "C=XX;ADMD=;PRMD=alpha;S=Jones";
/// A user of beta.
pub(crate) const BAKER: &str = "C=XX;ADMD=;PRMD=beta;S=Baker";
/// A user of gamma.
pub(crate) const CARTER: &str = "C=XX;ADMD=;PRMD=gamma;S=Carter";
/// Nobody, in alpha.
pub(crate) const NOBODY: &str = "C=XX;ADMD=;PRMD=alpha;S=Nobody";
/// Without a route.
pub(crate) const NOWHERE: &str = "C=YY;ADMD=;PRMD=delta;S=Nowhere";

/// An address from its text form.
pub(crate) fn address(text: &str) -> ORAddress {
    text.parse().unwrap()
}

/// A name from the text form of its address.
pub(crate) fn name(text: &str) -> ORName {
    ORName { address: address(text), directory_name: None }
}

/// 2026-01-02T03:04:05Z plus this many seconds.
pub(crate) fn at(seconds: u64) -> Utc {
    Utc((1_767_323_045 + seconds) * 1_000_000)
}

/// `alpha`, with the mailboxes of Smith and Jones; `beta` is peer 0, `gamma` peer 1.
pub(crate) fn engine() -> Engine {
    engine_of("alpha", "mta1", &["Smith", "Jones"], &[("beta", 0), ("gamma", 1)])
}

/// An MTA of PRMD `own` with these surnames as mailboxes and these PRMDs behind peers; the PRMD
/// "" is the default route.
pub(crate) fn engine_of(own: &str, mta: &str, users: &[&str], peers: &[(&str, u32)]) -> Engine {
    let prefix = |prmd: &str| match prmd {
        "" => address(""),
        prmd => address(&format!("C=XX;ADMD=;PRMD={prmd}")),
    };
    let mut routes = vec![Route { prefix: prefix(own), to: RouteTarget::Local }];
    for (prmd, peer) in peers {
        routes.push(Route { prefix: prefix(prmd), to: RouteTarget::Peer(PeerId(*peer)) });
    }
    let mailbox = |user: &&str| canonical(&address(&format!("C=XX;ADMD=;PRMD={own};S={user}")));
    Engine::new(Config {
        mta: MtaName(mta.to_owned()),
        domain: GlobalDomainId::new("XX", " ", Some(own)),
        routes,
        mailboxes: users.iter().map(mailbox).collect(),
        alternate_recipient: None,
        content_max: Default::default(),
        accepted_max: u64::MAX,
        returned_max: 10 << 20,
        forms: Default::default(),
        expire: Periods::default(),
        classify: Policy::default(),
        clearances: Default::default(),
        epoch: 1,
        salt: 0,
    })
}

/// A content of this length.
pub(crate) fn content(length: u64) -> Content {
    Content { length, digest: [7; 32], ..Content::default() }
}

/// A submission by Smith of alpha to these recipients, with non-delivery reports requested.
pub(crate) fn submission(to: &[&str]) -> MessageSubmissionEnvelope {
    let recipient = |text: &&str| PerRecipientSubmissionFields {
        recipient: name(text),
        report_request: ReportRequest::NonDelivery,
        ..PerRecipientSubmissionFields::default()
    };
    MessageSubmissionEnvelope {
        originator: name(SMITH),
        original_eits: None,
        content_type: ContentType::P22,
        content_identifier: Some("ref 1".to_owned()),
        priority: Priority::Normal,
        indicators: PerMessageIndicators::default(),
        deferred_delivery_time: None,
        recipients: to.iter().map(recipient).collect(),
        extensions: Extensions::default(),
        unknown: Vec::new(),
    }
}

/// Submits it as Smith at 0 s, with 1000 octets of content.
pub(crate) fn submit(e: &mut Engine, envelope: &MessageSubmissionEnvelope) -> Submitted {
    e.submit(at(0), &canonical(&address(SMITH)), envelope, &content(1000), &[]).unwrap()
}

/// The one message among these, decoded from its octets as its next hop receives it.
pub(crate) fn received(e: &Engine, entry: &NewEntry) -> MtsApduHead {
    let record = Record::decode(&entry.record.encode()).unwrap();
    let payload = e.transfer_payload(&record, Dialect::Modern.into());
    let mut octets = payload.head.to_vec();
    octets.resize(octets.len() + payload.content_length as usize, b'x');
    octets.extend_from_slice(&payload.tail);
    let (mut parser, mut head) = (ApduParser::default(), None);
    let mut sink = |event: Event<'_>| {
        if let Event::Head(found) = event {
            head = Some(found);
        }
    };
    parser.push(&octets, &mut sink).unwrap();
    assert!(parser.is_done());
    head.unwrap()
}

/// The report in an entry.
pub(crate) fn report(entry: &NewEntry) -> &Report {
    match &entry.record.head {
        MtsApduHead::Report(report) => report,
        other => panic!("no report: {other:?}"),
    }
}

/// The message envelope in a head.
pub(crate) fn message(head: &MtsApduHead) -> &MessageTransferEnvelope {
    match head {
        MtsApduHead::Message(envelope) => envelope,
        other => panic!("no message: {other:?}"),
    }
}

/// Reason and diagnostic; `None` for a delivery.
pub(crate) type Codes = Option<(i64, Option<i64>)>;

/// Reason and diagnostic of each recipient, by number.
pub(crate) fn failures(report: &Report) -> Vec<(u32, Codes)> {
    let codes = |r: &PerRecipientReportFields| match &r.last_trace.report {
        ReportType::Delivery { .. } => (r.number, None),
        ReportType::NonDelivery { reason, diagnostic } => {
            (r.number, Some((reason.0, diagnostic.map(|d| d.0))))
        }
    };
    report.content.recipients.iter().map(codes).collect()
}

/// A private extension of this criticality.
pub(crate) fn private(criticality: Criticality) -> Extensions {
    Extensions(vec![ExtensionField {
        kind: ExtensionType::Private("1.2.3".parse().unwrap()),
        dialect: Dialect::Modern,
        criticality,
        value: Bytes::from_static(&[5, 0]),
        raw: None,
    }])
}

/// The envelope of a delivery, read as its user does.
pub(crate) fn argument_of(delivery: &Delivery) -> MessageDeliveryEnvelope {
    assert_eq!(delivery.operation, operation::MESSAGE_DELIVERY);
    let mut octets = delivery.payload.head.to_vec();
    octets.resize(octets.len() + delivery.payload.content_length as usize, b'x');
    octets.extend_from_slice(&delivery.payload.tail);
    let (mut parser, mut rest) = (DeliveryParser::default(), &octets[..]);
    let (mut envelope, mut length) = (None, 0);
    while let Some(event) = parser.next(&mut rest).unwrap() {
        match event {
            ArgumentEvent::Envelope(found) => envelope = Some(*found),
            ArgumentEvent::Content(octets) => length += octets.len() as u64,
            ArgumentEvent::End => {}
        }
    }
    assert_eq!((parser.is_done(), length), (true, delivery.payload.content_length));
    envelope.unwrap()
}
