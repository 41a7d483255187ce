//! Operations of P3.

use super::p1::{CONTENT, NOW, engine, entries, submission};
use super::{Seed, hex, named, written};
use crate::targets::node::{REMOTE, STORED, Site, USER, user};
use bytes::Bytes;
use p1::p3::{
    AccessError, ChangeCredentials, MtsBind, MtsBindError, ObjectName, ProbeSubmissionEnvelope,
    SubmissionResult, operation,
};
use p1::{Credentials, Extensions, GlobalDomainId, MtsIdentifier, Time};

fn argument(head: Vec<u8>) -> Vec<u8> {
    [head, CONTENT.to_vec()].concat()
}

/// One submission, like no other.
pub fn good_submission() -> Bytes {
    let envelope = submission(USER, &[REMOTE, USER], "GOOD");
    argument(envelope.argument_head(CONTENT.len() as u64)).into()
}

/// One submission for the peer alone.
pub fn remote_submission() -> Bytes {
    let envelope = submission(USER, &[REMOTE], "AWAY");
    argument(envelope.argument_head(CONTENT.len() as u64)).into()
}

/// One submission for the user of the message store.
pub fn stored_submission() -> Bytes {
    let envelope = submission(USER, &[STORED], "STORED");
    argument(envelope.argument_head(CONTENT.len() as u64)).into()
}

/// One submission of this user.
pub fn submission_of(originator: &str) -> Bytes {
    let envelope = submission(originator, &[USER], "OVER-P7");
    argument(envelope.argument_head(CONTENT.len() as u64)).into()
}

/// message-submission arguments.
pub fn submissions() -> Vec<Seed> {
    let length = CONTENT.len() as u64;
    let foreign = hex(r#"
        30 80
          31 80
            9f 63 01 2a
            a1 80
              31 13 80 02 03 10 60 09 30 07 83 05 "BRAVO" 81 02 00 08
              31 0f 60 09 30 07 83 05 "ALPHA" 80 02 03 08
            00 00
            47 01 00  46 01 16  60 09 30 07 83 05 "ALPHA"  4a 04 "REF1"  48 02 00 a0
            80 0d "261120230000Z"
          00 00
          24 80 04 03 "abc" 24 80 04 02 "de" 00 00 04 00 00 00
        00 00"#);
    named(&[
        ("plain", argument(submission(USER, &[REMOTE], "P").argument_head(length))),
        ("full", argument(super::p1::full_submission().argument_head(length))),
        ("foreign", foreign),
    ])
}

/// message-delivery and report-delivery arguments, with their operations.
fn delivered() -> Vec<(String, i64, Vec<u8>)> {
    let engine = engine();
    let argument = |(name, entry): &(String, engine::NewEntry)| {
        let delivery = engine.delivery_argument(NOW, &entry.record)?;
        let content = CONTENT.iter().copied().take(delivery.payload.content_length as usize);
        let octets = [delivery.payload.head.to_vec(), content.collect()].concat();
        Some((name.clone(), delivery.operation, octets))
    };
    entries().iter().filter_map(argument).collect()
}

/// message-delivery arguments.
pub fn deliveries() -> Vec<Seed> {
    let all = delivered().into_iter().filter(|(_, op, _)| *op == operation::MESSAGE_DELIVERY);
    all.map(|(name, _, octets)| (name, octets)).collect()
}

fn probe() -> Vec<u8> {
    let plain = submission(USER, &[REMOTE], "PROBE");
    let probe = ProbeSubmissionEnvelope {
        originator: plain.originator,
        original_eits: None,
        content_type: plain.content_type,
        content_identifier: plain.content_identifier,
        content_length: Some(4711),
        indicators: plain.indicators,
        recipients: plain.recipients,
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    written(|w| probe.write(w))
}

fn credentials() -> Vec<u8> {
    let change =
        ChangeCredentials { old: Credentials::simple("secret"), new: Credentials::simple("new") };
    written(|w| change.write(w))
}

fn result() -> Vec<u8> {
    let result = SubmissionResult {
        identifier: MtsIdentifier {
            domain: GlobalDomainId::new("IT", " ", Some("NAPLES")),
            local: "MTA1.1".to_owned(),
        },
        time: Time::from(NOW),
        content_identifier: Some("REF1".to_owned()),
        extensions: Extensions::default(),
        unknown: Vec::new(),
    };
    written(|w| result.write(w))
}

/// Everything else.
pub fn operations() -> Vec<Seed> {
    let name = ObjectName::UserAgent(super::p1::address(USER).into());
    let bind = MtsBind::new(name, Credentials::simple("secret"));
    let improper = AccessError::RecipientImproperlySpecified(vec![super::p1::address(USER).into()]);
    let mut seeds = named(&[
        ("bind", written(|w| bind.write(w))),
        ("bind-error", written(|w| MtsBindError::AuthenticationError.write(w))),
        ("probe", probe()),
        ("credentials", credentials()),
        ("improper", written(|w| improper.write_parameter(w))),
        ("result", result()),
        ("controls", hex("31 09 80 01 ff 82 02 03 e8 83 00")),
        ("delivery-result", hex("31 80 a2 80 00 00 80 01 07 00 00")),
    ]);
    let reports = delivered().into_iter().filter(|(_, op, _)| *op == operation::REPORT_DELIVERY);
    seeds.extend(reports.map(|(name, _, octets)| (name, octets)));
    seeds
}

/// What a user sends the node.
pub fn node() -> Vec<Seed> {
    let units: Vec<(i64, Bytes)> = submissions()
        .into_iter()
        .map(|(_, octets)| (operation::MESSAGE_SUBMISSION, octets.into()))
        .chain([
            (operation::PROBE_SUBMISSION, probe().into()),
            (operation::CHANGE_CREDENTIALS, credentials().into()),
            (operation::DELIVERY_CONTROL, Bytes::from_static(&[0x31, 0])),
            (operation::REGISTER, Bytes::from_static(&[0x31, 0])),
        ])
        .collect();
    let record = |units: &[(i64, Bytes)]| Site::new().converse(1, &mut user(units));
    named(&[
        ("one-submission", record(units.get(..1).unwrap_or_default())),
        ("every-operation", record(&units)),
        ("nothing", record(&[])),
    ])
}
