//! Names, APDUs, binds and records of P1, made by the engine of an MTA.

use super::{Seed, hex, named, written};
use crate::targets::node::{PEER, REMOTE, Site, USER, peer};
use base::{PeerId, Utc};
use bytes::Bytes;
use engine::{Content, Engine, NewEntry, Record, Route, RouteTarget, canonical};
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindError};
use p1::flags::{PerMessageIndicators, Priority, ReportRequest};
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields, ProbeSubmissionEnvelope};
use p1::{CommonName, ContentType, Dialect, Extensions, StringType, Text, Time, grade};

/// 2026-01-02T03:04:05Z.
pub(super) const NOW: Utc = Utc(1_767_323_045_000_000);

/// The content of what is submitted.
pub(super) const CONTENT: &[u8] = b"what is carried";

pub(super) fn address(text: &str) -> ORAddress {
    text.parse().expect("a constant address")
}

/// An MTA of the domain of `REMOTE`, whose peer is that of `USER`.
pub(super) fn engine() -> Engine {
    let route = |prefix: &str, to| Route { prefix: address(prefix), to };
    Engine::new(engine::Config {
        mta: MtaName(PEER.to_owned()),
        domain: GlobalDomainId::new("XX", "NATO", Some("THERE")),
        routes: vec![
            route("/C=XX/ADMD=NATO/PRMD=THERE", RouteTarget::Local),
            route("/C=XX/ADMD=NATO/PRMD=HERE", RouteTarget::Peer(PeerId(1))),
        ],
        mailboxes: [canonical(&address(REMOTE))].into(),
        alternate_recipient: None,
        content_max: Default::default(),
        accepted_max: u64::MAX,
        returned_max: 10 << 20,
        forms: Default::default(),
        expire: Default::default(),
        classify: engine::classify::Policy::default(),
        clearances: Default::default(),
        salt: 0,
        epoch: 9,
    })
}

/// A submission by `from`.
pub(super) fn submission(from: &str, to: &[&str], identifier: &str) -> MessageSubmissionEnvelope {
    let (priority, qualifier) = grade::split(base::Precedence::Flash);
    let recipient = |to: &&str| PerRecipientSubmissionFields {
        recipient: ORName::from(address(to)),
        report_request: ReportRequest::Report,
        ..PerRecipientSubmissionFields::default()
    };
    MessageSubmissionEnvelope {
        originator: address(from).into(),
        original_eits: None,
        content_type: ContentType::P22,
        content_identifier: Some(identifier.to_owned()),
        priority,
        indicators: PerMessageIndicators::default(),
        deferred_delivery_time: None,
        recipients: to.iter().map(recipient).collect(),
        extensions: Extensions(qualifier.extension(Dialect::Modern).into_iter().collect()),
        unknown: Vec::new(),
    }
}

/// A full submission: everything optional is there.
pub(super) fn full_submission() -> MessageSubmissionEnvelope {
    let mut envelope = submission(REMOTE, &[USER, REMOTE, "/C=ZZ/ADMD=NONE/S=X"], "FULL");
    envelope.content_type = ContentType::p772();
    envelope.original_eits =
        Some(p1::EncodedInformationTypes { built_in: 4, ..Default::default() });
    envelope.indicators = PerMessageIndicators(0b1000_0010);
    envelope.deferred_delivery_time = Some(Time::from(Utc(NOW.0 + 60_000_000)));
    envelope.priority = Priority::NonUrgent;
    if let Some(recipient) = envelope.recipients.first_mut() {
        recipient.explicit_conversion = Some(8);
    }
    envelope
}

/// What an MTA makes of these submissions: copies and reports.
pub(super) fn entries() -> Vec<(String, NewEntry)> {
    let mut engine = engine();
    let content = Content { length: CONTENT.len() as u64, digest: [7; 32], ..Content::default() };
    let mailbox = canonical(&address(REMOTE));
    let mut all = Vec::new();
    let plain = submission(REMOTE, &[USER], "PLAIN");
    for (name, envelope) in [("plain", plain.clone()), ("full", full_submission())] {
        let done = engine.submit(NOW, &mailbox, &envelope, &content, &[]);
        let entries = done.expect("a submission").accepted.entries;
        all.extend((1..).zip(entries).map(|(n, e)| (format!("{name}-{n}"), e)));
    }
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
    let entries = engine.submit_probe(NOW, &mailbox, &probe).expect("a probe").accepted.entries;
    all.extend((1..).zip(entries).map(|(n, e)| (format!("probe-{n}"), e)));
    all
}

fn apdu(record: &Record, dialect: Dialect) -> Vec<u8> {
    let payload = engine().transfer_payload(record, dialect.into());
    let content = CONTENT.iter().copied().take(payload.content_length as usize);
    [payload.head.to_vec(), content.collect(), payload.tail.to_vec()].concat()
}

/// MTS-APDUs.
pub fn apdus() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = entries()
        .iter()
        .map(|(name, entry)| (name.clone(), apdu(&entry.record, Dialect::Modern)))
        .collect();
    let blue = entries()
        .into_iter()
        .map(|(name, e)| (format!("{name}-blue-book"), apdu(&e.record, Dialect::BlueBook1988)));
    seeds.extend(blue.take(2));
    let dialect = Dialect::RedBook1984(CommonName::DomainDefined);
    let red = entries()
        .into_iter()
        .map(|(name, e)| (format!("{name}-red-book"), apdu(&e.record, dialect)));
    seeds.extend(red);
    // As peers send them: indefinite lengths, members in another order, the qualifier as INTEGER
    // with an explicit empty criticality, a content in segments.
    seeds.extend(named(&[("foreign", hex(FOREIGN))]));
    seeds
}

const FOREIGN: &str = r#"
a0 80 31 80
  a2 2a 31 28  81 03 07 f0 00  80 01 01  60 1e 30 1c 61 04 13 02 "IT" 62 03 13 01 20
    a2 08 13 06 "NAPLES" a5 05 80 03 "Doe"
  69 2b 30 29 63 13 61 04 13 02 "IT" 62 03 13 01 20 13 06 "NAPLES"
    31 12 80 0d "070814093000Z" 82 01 00
  4a 03 "ref"
  a3 15 30 13 83 08 2b 1a 00 a2 36 00 08 00 81 02 05 00 a2 03 02 01 01
  48 02 00 20  47 01 00  9f 55 01 07  46 01 16  65 03 80 01 00
  60 1e 30 1c 61 04 13 02 "IT" 62 03 13 01 20 a2 08 13 06 "NAPLES" a5 05 80 03 "Roe"
  64 18 63 13 61 04 13 02 "IT" 62 03 13 01 20 13 06 "NAPLES" 16 01 "1"
00 00
24 80 04 05 "hello" 24 80 04 02 " w" 00 00 04 00 00 00
00 00
"#;

/// One message to the user of the node, like no other.
pub fn good_message() -> Bytes {
    message(40)
}

/// Another one.
pub fn waiting_message() -> Bytes {
    message(41)
}

/// The message of this number, like no other.
pub fn message(number: usize) -> Bytes {
    let mut engine = engine();
    let content = Content { length: CONTENT.len() as u64, digest: [1; 32], ..Content::default() };
    let mailbox = canonical(&address(REMOTE));
    // Every identifier the seeds use is skipped.
    let mut last = None;
    for _ in 0..number {
        let envelope = submission(REMOTE, &[USER], "GOOD");
        let done = engine.submit(NOW, &mailbox, &envelope, &content, &[]).expect("a submission");
        last = done.accepted.entries.into_iter().next();
    }
    apdu(&last.expect("an entry").record, Dialect::Modern).into()
}

/// Records as the queue keeps them.
pub fn records() -> Vec<Seed> {
    let mut all: Vec<Seed> =
        entries().into_iter().map(|(name, e)| (name, e.record.encode().to_vec())).collect();
    if let Some((_, mut entry)) = entries().into_iter().next() {
        entry.record.content_labels = p1::ContentLabels {
            labels: vec![Bytes::from_static(&[0x31, 7, 6, 2, 0x2a, 3, 2, 1, 4])],
            unreadable: true,
        };
        all.push(("labels-inside".to_owned(), entry.record.encode().to_vec()));
    }
    all
}

/// Arguments, results and errors of the bind.
pub fn binds() -> Vec<Seed> {
    let who = MtaAuthentication::new(MtaName(PEER.to_owned()), Credentials::simple("secret"));
    named(&[
        ("argument", written(|w| MtaBindArgument::Authenticated(who).write(w))),
        ("null", hex("05 00")),
        ("octets", hex("a1 0e 80 04 \"MTA1\" a1 06 04 04 \"secr\"")),
        ("strong", hex("a1 0a a1 04 a0 02 30 00 80 02 \"M2\"")),
        (
            "context",
            hex("a1 80 80 02 \"M2\" a1 80 36 80 04 02 \"pw\" 00 00 00 00 a2 80 05 00 00 00 00 00"),
        ),
        (
            "labels",
            hex(
                "a1 80 80 02 \"M2\" a1 80 36 80 04 02 \"pw\" 00 00 00 00 a2 0a 31 06 06 01 2a 02 01 04 31 00 00 00",
            ),
        ),
        ("error", written(|w| MtaBindError::AuthenticationError.write(w))),
    ])
}

/// Addresses as text and as BER.
pub fn addresses() -> Vec<Seed> {
    let mut teletex = address(USER);
    teletex.prmd = Some(Text { value: "Ægir".to_owned(), kind: StringType::Teletex });
    let ber = |address: ORAddress| written(|w| ORName::from(address).write(w));
    named(&[
        ("slashes", b"/G=John/S=Smith/O=HQ/OU1=G6/OU2=OPS/PRMD=NAPLES/ADMD=NET/C=IT".to_vec()),
        (
            "semicolons",
            b"C=IT;ADMD= ;PRMD=A\\;B;DDA:fax\\=1=12\\/3;CN=D\xc3\xbcty;S=X;I=AB;Q=Jr".to_vec(),
        ),
        ("numbers", b"/X.121=123456/T-ID=TERM/N-ID=42/C=380/ADMD=NET".to_vec()),
        ("name", ber(address("/G=John/S=Smith/CN=Duty/DDA:fax=12/O=HQ/OU1=G6/PRMD=P/ADMD=/C=IT"))),
        ("teletex", ber(teletex)),
    ])
}

/// What a peer sends the node.
pub fn node() -> Vec<Seed> {
    let all: Vec<Bytes> = apdus().into_iter().map(|(_, octets)| octets.into()).collect();
    let first: Vec<Bytes> = all.iter().take(1).cloned().collect();
    let mut large = first.first().map(|_| submission(REMOTE, &[USER], "LARGE"));
    let large = large.take().map(|envelope| {
        let mut engine = engine();
        let content = Content { length: 5_000, digest: [2; 32], ..Content::default() };
        let mailbox = canonical(&address(REMOTE));
        let done = engine.submit(NOW, &mailbox, &envelope, &content, &[]).expect("a submission");
        let entry = done.accepted.entries.into_iter().next().expect("an entry");
        let mut octets =
            engine.transfer_payload(&entry.record, Dialect::Modern.into()).head.to_vec();
        octets.resize(octets.len() + 5_000, b'x');
        Bytes::from(octets)
    });
    let large: Vec<Bytes> = large.into_iter().collect();
    let record = |apdus: &[Bytes]| Site::new().converse(0, &mut peer(apdus));
    named(&[
        ("one-message", record(&first)),
        ("every-apdu", record(&all)),
        ("checkpoints", record(&large)),
        ("no-message", record(&[])),
    ])
}
