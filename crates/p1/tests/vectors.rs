//! Octets written by hand from what peers send, not by our own encoder (X.411, X.690).

use base::ber::Fault;
use p1::extension::{Dialect, ExtensionType, number};
use p1::flags::{MtaReportRequest, ReportRequest};
use p1::grade::PriorityLevelQualifier;
use p1::{
    ApduParser, ContentType, Diagnostic, Event, MtsApduHead, NonDeliveryReason, Priority,
    ReportType,
};

/// An element with a definite length.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        n @ 0..0x80 => out.push(n as u8),
        n @ 0x80..0x100 => out.extend([0x81, n as u8]),
        n => out.extend([0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend(content);
    out
}

/// An element with the indefinite length.
fn open(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[tag, 0x80][..], &parts.concat(), &[0, 0]].concat()
}

fn domain() -> Vec<u8> {
    // C=IT, ADMD a single space, PRMD=NAPLES
    let country = tlv(0x61, &[b"\x13\x02IT"]);
    tlv(0x63, &[&country, &[0x62, 0x03, 0x13, 0x01, 0x20], b"\x13\x06NAPLES"])
}

fn identifier(local: &[u8]) -> Vec<u8> {
    tlv(0x64, &[&domain(), &tlv(0x16, &[local])])
}

/// Given name before surname: a SET's order is the sender's.
fn name(tag: u8, surname: &[u8]) -> Vec<u8> {
    name_of(tag, &[b"\x81\x04John", &tlv(0x80, &[surname])])
}

fn name_of(tag: u8, person: &[&[u8]]) -> Vec<u8> {
    let country = tlv(0x61, &[b"\x13\x02IT"]);
    let admd = [0x62, 0x03, 0x13, 0x01, 0x20];
    let prmd = tlv(0xa2, &[b"\x13\x06NAPLES"]);
    let organization = b"\x83\x02HQ";
    let person = tlv(0xa5, person);
    let units = tlv(0xa6, &[b"\x13\x02G6", b"\x13\x03OPS"]);
    let standard = tlv(0x30, &[&country, &admd, &prmd, organization, &person, &units]);
    let pair = tlv(0x30, &[b"\x13\x03fax", b"\x13\x0212"]);
    let common_name = tlv(0x30, &[&[0x80, 1, 1], &tlv(0xa1, &[b"\x13\x04Duty"])]);
    tlv(tag, &[&standard, &tlv(0x30, &[&pair]), &tlv(0x31, &[&common_name])])
}

fn trace() -> Vec<u8> {
    let supplied = tlv(0x31, &[b"\x80\x0d070814093000Z", &[0x82, 1, 0]]);
    tlv(0x69, &[&tlv(0x30, &[&domain(), &supplied])])
}

const QUALIFIER: [u8; 21] = [
    0x30, 0x13, 0x83, 0x08, 0x2b, 0x1a, 0x00, 0xa2, 0x36, 0x00, 0x08, 0x00, 0x81, 0x02, 0x05, 0x00,
    0xa2, 0x03, 0x02, 0x01, 0x01,
];

/// Members in no particular order, with a member no edition of X.411 has.
fn envelope(open_form: bool) -> Vec<u8> {
    let internal = {
        let supplied = tlv(0x31, &[b"\x80\x0d070814093001Z", &[0x82, 1, 0]]);
        let element = tlv(0x30, &[&domain(), b"\x16\x04MTA1", &supplied]);
        let blue_type = [0xa0, 0x03, 0x02, 0x01, 0x26];
        tlv(0x30, &[&blue_type, &tlv(0xa2, &[&tlv(0x30, &[&element])])])
    };
    let recipient =
        tlv(0x31, &[&[0x81, 0x03, 0x07, 0xf0, 0x00], &[0x80, 0x01, 0x01], &name(0x60, b"Jones")]);
    let members = [
        tlv(0xa2, &[&recipient]),
        trace(),
        b"\x4a\x03ref".to_vec(),
        tlv(0xa3, &[&QUALIFIER, &internal]),
        vec![0x48, 0x02, 0x00, 0x20],
        // An absent priority has the same meaning.
        vec![0x47, 0x01, 0x00],
        vec![0x9f, 0x55, 0x01, 0x07],
        vec![0x46, 0x01, 0x16],
        vec![0x65, 0x03, 0x80, 0x01, 0x00],
        name(0x60, b"Smith"),
        identifier(b"MTA1.070814093000.1"),
    ]
    .concat();
    if open_form { open(0x31, &[&members]) } else { tlv(0x31, &[&members]) }
}

/// The heads and the content found, cutting the octets into pieces of `size`.
fn parse(octets: &[u8], size: usize) -> Result<(Vec<MtsApduHead>, Vec<u8>), base::ber::Error> {
    let mut parser = ApduParser::default();
    let (mut heads, mut content, mut ended) = (Vec::new(), Vec::new(), false);
    for piece in octets.chunks(size) {
        parser.push(piece, &mut |event| match event {
            Event::Head(head) => heads.push(head),
            Event::Content(octets) => content.extend_from_slice(octets),
            Event::End => ended = true,
        })?;
    }
    assert_eq!(ended, parser.is_done());
    if ended { Ok((heads, content)) } else { Err(Fault::Truncated.into()) }
}

#[test]
fn a_message_in_every_form_of_ber() {
    let primitive = tlv(0x04, &[b"hello world"]);
    let segments = open(0x24, &[b"\x04\x05hello", b"\x04\x00", &open(0x24, &[b"\x04\x06 world"])]);
    let definite = tlv(0xa0, &[&envelope(false), &primitive]);
    let indefinite = open(0xa0, &[&envelope(true), &segments]);
    assert_eq!(indefinite[..4], [0xa0, 0x80, 0x31, 0x80]);
    let (heads, content) = parse(&definite, usize::MAX).unwrap();
    assert_eq!(content, b"hello world");
    for size in [1, 2, 3, 7, 64, usize::MAX] {
        for octets in [&definite, &indefinite] {
            let (h, c) = parse(octets, size).unwrap();
            assert_eq!((&h, &c), (&heads, &content), "pieces of {size}");
        }
    }

    let [MtsApduHead::Message(envelope)] = heads.as_slice() else { panic!("{heads:?}") };
    assert_eq!(
        envelope.message_identifier.to_string(),
        "[/PRMD=NAPLES/ADMD= /C=IT/;MTA1.070814093000.1]"
    );
    assert_eq!(
        envelope.originator.to_string(),
        "/G=John/S=Smith/CN=Duty/DDA:fax=12/O=HQ/OU1=G6/OU2=OPS/PRMD=NAPLES/ADMD= /C=IT"
    );
    assert_eq!(envelope.content_type, ContentType::P22);
    assert_eq!(envelope.content_identifier.as_deref(), Some("ref"));
    assert_eq!(envelope.priority, Priority::Normal);
    assert_eq!(envelope.original_eits.as_ref().unwrap().built_in, 0);
    assert!(envelope.indicators.contains(p1::PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED));
    let [recipient] = envelope.recipients.as_slice() else { panic!() };
    assert_eq!(recipient.number, 1);
    assert!(recipient.indicators.responsible());
    assert_eq!(recipient.indicators.mta_report(), MtaReportRequest::Audited);
    assert_eq!(recipient.indicators.originator_report(), ReportRequest::Report);
    assert_eq!(
        p1::trace::first_arrival(&envelope.trace).unwrap().to_string(),
        "2007-08-14T09:30:00.000000Z"
    );
    assert_eq!(
        PriorityLevelQualifier::from_extensions(&envelope.extensions),
        Ok(Some(PriorityLevelQualifier::High))
    );
    assert_eq!(p1::trace::internal_trace(&envelope.extensions).unwrap()[0].mta.0, "MTA1");
    assert_eq!(envelope.unknown, [vec![0x9f, 0x55, 0x01, 0x07]]);

    // What we send on: our own order and lengths, the extensions and the unknown member untouched.
    let sent = p1::apdu::encode_message_head(envelope, 11);
    assert_eq!(parse(&[&sent[..], b"hello world"].concat(), 5).unwrap(), (heads.clone(), content));
    for kept in [&QUALIFIER[..], &[0x9f, 0x55, 0x01, 0x07], &[0xa0, 0x03, 0x02, 0x01, 0x26]] {
        assert!(sent.windows(kept.len()).any(|w| w == kept), "{kept:02x?}");
    }
    assert_eq!(sent[..2], [0xa0, 0x82]);
    assert_eq!(sent[sent.len() - 2..], [0x04, 11]);
}

#[test]
fn our_internal_trace_joins_the_one_that_came_in_its_dialect() {
    let octets = tlv(0xa0, &[&envelope(false), &[0x04, 0x00]]);
    let (heads, content) = parse(&octets, 9).unwrap();
    assert!(content.is_empty());
    let Some(MtsApduHead::Message(mut envelope)) = heads.into_iter().next() else { panic!() };
    let own = p1::InternalTraceElement::relayed(
        p1::GlobalDomainId::new("IT", " ", Some("ROMA")),
        "MTA2".into(),
        base::Utc(1_187_083_802_999_999),
    );
    p1::trace::add_internal_trace(&mut envelope.extensions, own.clone()).unwrap();
    let field = envelope.extensions.standard(number::INTERNAL_TRACE_INFORMATION).unwrap();
    assert_eq!((field.dialect, &field.raw), (Dialect::BlueBook1988, &None));
    let trace = p1::trace::internal_trace(&envelope.extensions).unwrap();
    assert_eq!((trace.len(), &trace[1]), (2, &own));
    assert_eq!(own.arrival_time.raw[..], *b"070814093002Z");
    assert_eq!(envelope.extensions.0.len(), 2);
}

#[test]
fn a_non_delivery_report() {
    let last = tlv(
        0xa3,
        &[b"\x80\x0d070814093000Z", &tlv(0xa1, &[&tlv(0xa1, &[&[0x80, 1, 1], &[0x81, 1, 0]])])],
    );
    let recipient = tlv(
        0x31,
        &[&name(0xa0, b"Nobody"), &[0x81, 1, 1], &[0x82, 2, 0, 0x28], &last, b"\x85\x04oops"],
    );
    let destination = name(0x60, b"Smith");
    let report_envelope = tlv(0x31, &[&identifier(b"r1"), &destination, &trace()]);
    let returned = open(0xa1, &[b"\x04\x02ab", b"\x04\x01c"]);
    let content = tlv(0x31, &[&identifier(b"m1"), &tlv(0xa0, &[&recipient]), &returned]);
    let octets = tlv(0xa1, &[&report_envelope, &content]);
    for size in [1, 10, usize::MAX] {
        let (heads, rest) = parse(&octets, size).unwrap();
        let [MtsApduHead::Report(report)] = heads.as_slice() else { panic!() };
        assert!(rest.is_empty());
        assert_eq!(report.envelope.report_identifier.local, "r1");
        assert_eq!(report.content.subject_identifier.local, "m1");
        assert_eq!(report.content.returned_content.as_deref(), Some(&b"abc"[..]));
        let [recipient] = report.content.recipients.as_slice() else { panic!() };
        assert_eq!(recipient.supplementary_information.as_deref(), Some("oops"));
        assert_eq!(
            recipient.last_trace.report,
            ReportType::NonDelivery {
                reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
                diagnostic: Some(Diagnostic::UNRECOGNISED_OR_NAME),
            }
        );
        let again = p1::apdu::encode_report(report);
        assert_eq!(parse(&again, 17).unwrap().0, heads);
    }
}

/// The outcome of octets read piece by piece, with returned contents handed on: the content, and whether it ended.
fn split(parser: ApduParser, octets: &[u8], size: usize) -> Result<(Vec<u8>, bool), String> {
    let mut parser = parser.split_reports();
    let mut content = Vec::new();
    for piece in octets.chunks(size) {
        let taken = parser.push(piece, &mut |event| match event {
            Event::Content(octets) => content.extend_from_slice(octets),
            Event::Head(MtsApduHead::Report(report)) => {
                assert_eq!(report.content.returned_content.as_deref(), Some(&b""[..]));
                assert_eq!(report.content.recipients.len(), 1);
            }
            _ => {}
        });
        taken.map_err(|error| error.to_string())?;
    }
    Ok((content, parser.is_done()))
}

#[test]
fn a_returned_content_is_handed_on_wherever_it_stands_and_however_it_is_cut() {
    let last = tlv(
        0xa3,
        &[b"\x80\x0d070814093000Z", &tlv(0xa1, &[&tlv(0xa1, &[&[0x80, 1, 1], &[0x81, 1, 0]])])],
    );
    let recipient = tlv(0x31, &[&name(0xa0, b"Nobody"), &[0x81, 1, 1], &[0x82, 2, 0, 0x28], &last]);
    let envelope = tlv(0x31, &[&identifier(b"r1"), &name(0x60, b"Smith"), &trace()]);
    let (subject, recipients) = (identifier(b"m1"), tlv(0xa0, &[&recipient]));
    let segments = open(0xa1, &[&open(0x24, &[b"\x04\x02ab"]), b"\x04\x01c"]);
    for returned in [tlv(0x81, &[b"abc"]), segments] {
        for members in [
            [&returned[..], &subject, &recipients],
            [&subject, &returned, &recipients],
            [&subject, &recipients, &returned],
        ] {
            for set in [tlv(0x31, &members), open(0x31, &members)] {
                for octets in [tlv(0xa1, &[&envelope, &set]), open(0xa1, &[&envelope, &set])] {
                    for size in [1, 2, 7, usize::MAX] {
                        let found = split(ApduParser::default(), &octets, size);
                        assert_eq!(found, Ok((b"abc".to_vec(), true)));
                    }
                    let limited = ApduParser::default().with_content_limit(2);
                    let error = split(limited, &octets, 5).unwrap_err();
                    assert!(error.contains("longer than the limit of 2 octets"), "{error}");
                }
            }
        }
    }
    let returned = tlv(0x81, &[b"abc"]);
    let twice = tlv(0x31, &[&returned, &subject, &returned, &recipients]);
    let set = tlv(0x31, &[&returned, &subject, &recipients]);
    for wrong in [
        tlv(0xa1, &[&envelope, &twice]),
        tlv(0xa1, &[&envelope, &set, &set]),
        tlv(0xa1, &[&set]),
        tlv(0xa1, &[&envelope]),
        tlv(0xa1, &[&envelope, &tlv(0x30, &[&subject, &recipients])]),
        tlv(
            0xa1,
            &[&envelope, &tlv(0x31, &[&subject, &tlv(0xa1, &[b"\x02\x01\x05"]), &recipients])],
        ),
    ] {
        assert!(split(ApduParser::default(), &wrong, 3).is_err(), "{wrong:02x?}");
    }
}

#[test]
fn a_content_that_announces_more_than_its_limit_is_refused_before_its_first_octet() {
    for (length, error) in [(10, None), (11, Some("content: longer than the limit of 10 octets"))] {
        let octets = tlv(0xa0, &[&envelope(false), &[0x04, length]]);
        // Of its own length, the APDU is not whole: only what is announced counts.
        let octets = [&[0xa0, 0x80], &octets[octets.len() - envelope(false).len() - 2..]].concat();
        let mut parser = ApduParser::default().with_content_limit(10);
        let taken = parser.push(&octets, &mut |event| {
            assert!(matches!(event, Event::Head(_)), "{event:?}");
        });
        assert_eq!(taken.err().map(|e| e.to_string()).as_deref(), error);
    }
}

#[test]
fn a_probe_is_its_envelope() {
    let (to, from) = (name_of(0x60, &[b"\x80\x01X"]), name_of(0x60, &[b"\x80\x05Smith"]));
    let recipient = tlv(0x31, &[&to, &[0x80, 1, 1], &[0x81, 2, 0, 0x90]]);
    let members = [identifier(b"p1"), from, vec![0x46, 1, 2]].concat();
    let octets =
        tlv(0xa2, &[&members, &[0x80, 2, 0x27, 0x10], &trace(), &tlv(0xa2, &[&recipient])]);
    let (heads, _) = parse(&octets, 3).unwrap();
    let [MtsApduHead::Probe(probe)] = heads.as_slice() else { panic!() };
    assert_eq!((probe.content_length, &probe.content_type), (Some(10_000), &ContentType::P2));
    // Our order of members is the one above.
    assert_eq!(p1::apdu::encode_probe(probe), octets);
}

#[test]
fn errors_name_the_field() {
    let error = |octets: &[u8]| parse(octets, 4).unwrap_err().to_string();
    let without_number = tlv(0x31, &[&name(0x60, b"X"), &[0x81, 2, 0, 0x90]]);
    let short = |recipients: &[u8]| {
        let members = [identifier(b"1"), name(0x60, b"S"), vec![0x46, 1, 2], trace()].concat();
        tlv(0xa0, &[&tlv(0x31, &[&members, recipients]), &[4, 0]])
    };
    let bad_name = tlv(0x31, &[&[0x60, 2, 0x31, 0]]);
    let twice = tlv(0xa0, &[&tlv(0x31, &[&[0x46, 1, 2], &[0x46, 1, 2]]), &[4, 0]]);
    let no_content = tlv(0xa0, &[&envelope(false)]);
    let two_contents = tlv(0xa0, &[&envelope(false), &[4, 0, 4, 0]]);
    let other_content = tlv(0xa0, &[&envelope(false), &[0x24, 2, 0x13, 0]]);
    insta::assert_snapshot!(
        [
            error(&[0xa3, 0]),
            error(&[0xa0, 2, 4, 0]),
            error(&[0xa0, 0]),
            error(&short(&[0xa2, 0])),
            error(&short(&[])),
            error(&short(&tlv(0xa2, &[&without_number]))),
            error(&short(&tlv(0xa2, &[&bad_name]))),
            error(&twice),
            error(&no_content),
            error(&two_contents),
            error(&other_content),
            error(&[tlv(0xa0, &[&envelope(false), &[4, 0]]), vec![0]].concat()),
        ]
        .join("\n"),
        @r"
    mts-apdu: unexpected [3]
    message-transfer-envelope: unexpected [UNIVERSAL 4]
    message-transfer-envelope: missing [UNIVERSAL 17]
    per-recipient-fields: missing [UNIVERSAL 17]
    per-recipient-fields: missing [2]
    originally-specified-recipient-number: missing [0]
    built-in-standard-attributes: unexpected [UNIVERSAL 17]
    message-transfer-envelope: unexpected [APPLICATION 6]
    content: missing [UNIVERSAL 4]
    content: unexpected [UNIVERSAL 4]
    content: unexpected [UNIVERSAL 19]
    mts-apdu: trailing octets
    "
    );
}

#[test]
fn an_envelope_beyond_the_limit_is_refused_and_a_content_of_any_length_is_not() {
    let octets = tlv(0xa0, &[&envelope(false), &[0x04, 0x00]]);
    let mut parser = ApduParser::new(100);
    let error = octets.chunks(10).find_map(|piece| parser.push(piece, &mut |_| {}).err()).unwrap();
    assert_eq!((error.fault, error.field), (Fault::TooLong(100), Some("envelope")));

    let Some(MtsApduHead::Message(envelope)) = parse(&octets, 99).unwrap().0.into_iter().next()
    else {
        panic!()
    };
    let length = 1u64 << 33;
    let mut parser = ApduParser::new(4096);
    parser.push(&p1::apdu::encode_message_head(&envelope, length), &mut |_| {}).unwrap();
    let chunk = vec![7u8; 1 << 20];
    let mut seen = 0u64;
    for _ in 0..64 {
        parser
            .push(&chunk, &mut |event| match event {
                Event::Content(octets) => seen += octets.len() as u64,
                other => panic!("{other:?}"),
            })
            .unwrap();
    }
    assert_eq!(seen, 64 << 20);
    assert!(!parser.is_done());
}

#[test]
fn a_bad_time_loses_no_message() {
    let mut octets = tlv(0xa0, &[&envelope(false), &[0x04, 0x00]]);
    let at = octets.windows(13).position(|w| w == b"070814093000Z").unwrap();
    octets[at..at + 13].copy_from_slice(b"yesterday noo");
    let (heads, _) = parse(&octets, 50).unwrap();
    let [MtsApduHead::Message(envelope)] = heads.as_slice() else { panic!() };
    assert_eq!(p1::trace::first_arrival(&envelope.trace), None);
    let sent = p1::apdu::encode_envelope(envelope);
    assert!(sent.windows(13).any(|w| w == b"yesterday noo"));
}

#[test]
fn the_types_of_both_dialects_are_one() {
    let octets = tlv(0xa0, &[&envelope(false), &[0x04, 0x00]]);
    let (heads, _) = parse(&octets, 50).unwrap();
    let [MtsApduHead::Message(envelope)] = heads.as_slice() else { panic!() };
    let kinds: Vec<_> = envelope.extensions.0.iter().map(|e| (&e.kind, e.dialect)).collect();
    let qualifier = ExtensionType::Private("1.3.26.0.4406.0.8.0".parse().unwrap());
    assert_eq!(
        kinds,
        [(&qualifier, Dialect::Modern), (&ExtensionType::Standard(38), Dialect::BlueBook1988),]
    );
}
