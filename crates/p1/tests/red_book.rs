//! P1 of 1984: octets written by hand from X.411 of 1984 (not by our own encoder), both ways, and what is left out.

use p1::extension::{CommonName, Dialect};
use p1::flags::{MtaReportRequest, ReportRequest};
use p1::red_book::{self, NoForm};
use p1::{ApduParser, ContentType, Event, MtsApduHead, ORName, Priority, ReportType};

const OF_1984: Dialect = Dialect::RedBook1984(CommonName::NoForm);
const WITH_COMMON: Dialect = Dialect::RedBook1984(CommonName::DomainDefined);

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

/// C=IT, ADMD=NET.
const PUBLIC: &[u8] = b"\x61\x04\x13\x02IT\x62\x05\x13\x03NET";

fn domain(prmd: &[u8]) -> Vec<u8> {
    tlv(0x63, &[PUBLIC, &tlv(0x13, &[prmd])])
}

fn identifier(local: &[u8]) -> Vec<u8> {
    tlv(0x64, &[&domain(b"ACT"), &tlv(0x16, &[local])])
}

/// An O/R name of 1984: PRMD and surname, with further parts after the standard attributes.
fn name(tag: u8, prmd: &[u8], surname: &[u8], rest: &[u8]) -> Vec<u8> {
    let prmd = tlv(0xa2, &[&tlv(0x13, &[prmd])]);
    let person = tlv(0xa5, &[&tlv(0x80, &[surname])]);
    tlv(tag, &[&tlv(0x30, &[PUBLIC, &prmd, &person]), rest])
}

/// Two elements: ACT and, by a second route after VIA failed, NAPLES. `also` is added to the first.
fn trace(also: &[u8]) -> Vec<u8> {
    let first = tlv(0x31, &[b"\x80\x0d860814093000Z", &[0x82, 1, 0], also]);
    let second = tlv(0x31, &[b"\x80\x0d860814093100Z", &[0x82, 1, 1], &domain(b"VIA")]);
    let element = |prmd: &[u8], supplied: &[u8]| tlv(0x30, &[&domain(prmd), supplied]);
    tlv(0x69, &[&element(b"ACT", &first), &element(b"NAPLES", &second)])
}

/// A common name as extension-attributes of 1988.
fn common_name(name: &[u8]) -> Vec<u8> {
    let attribute = tlv(0x30, &[&[0x80, 1, 1], &tlv(0xa1, &[&tlv(0x13, &[name])])]);
    tlv(0x31, &[&attribute])
}

/// The same as domain-defined-attributes.
fn common(name: &[u8]) -> Vec<u8> {
    tlv(0x30, &[&tlv(0x30, &[b"\x13\x06Common", &tlv(0x13, &[name])])])
}

/// An extension of 1988, in the form of 1994.
fn extension(number: u8) -> Vec<u8> {
    tlv(0x30, &[&[0x80, 1, number], &[0xa2, 2, 0x31, 0]])
}

fn read(octets: &[u8]) -> (MtsApduHead, Vec<u8>) {
    let (mut parser, mut head, mut content) = (ApduParser::default(), None, Vec::new());
    parser
        .push(octets, &mut |event| match event {
            Event::Head(found) => head = Some(found),
            Event::Content(octets) => content.extend_from_slice(octets),
            Event::End => {}
        })
        .unwrap();
    assert!(parser.is_done());
    (head.unwrap(), content)
}

fn write(head: &MtsApduHead, content: &[u8]) -> Vec<u8> {
    match head {
        MtsApduHead::Message(e) => {
            let head = p1::apdu::encode_message_head(e, content.len() as u64);
            [&head[..], content].concat()
        }
        MtsApduHead::Probe(e) => p1::apdu::encode_probe(e),
        MtsApduHead::Report(report) => p1::apdu::encode_report(report),
    }
}

/// Read, brought into this form and written, with the number of extensions that are left out.
fn through(octets: &[u8], dialect: Dialect) -> (Vec<u8>, usize) {
    let (mut head, content) = read(octets);
    let left_out = head.set_dialect(dialect);
    (write(&head, &content), left_out)
}

/// EncodedInformationTypes: IA5 text.
const IA5: &[u8] = &[0x65, 4, 0x80, 2, 5, 0x20];

/// One recipient: report 10, user report 01.
fn recipient(name: &[u8], flags: u8, rest: &[u8]) -> Vec<u8> {
    tlv(0x31, &[name, &[0x80, 1, 1], &[0x81, 2, 0, flags], rest])
}

/// A message of 1984 with each of its members.
fn message() -> Vec<u8> {
    let bilateral = tlv(0xa1, &[&tlv(0x30, &[PUBLIC, b"\x04\x01x"])]);
    let baker = name(0x60, b"NAPLES", b"Baker", &[]);
    let envelope = tlv(
        0x31,
        &[
            &identifier(b"860814.1"),
            &name(0x60, b"ACT", b"Smith", &[]),
            IA5,
            &[0x46, 1, 2],
            b"\x4a\x05ref 1",
            &[0x47, 1, 2],
            &[0x48, 2, 0, 0b1011_0000],
            b"\x80\x0d860814100000Z",
            &bilateral,
            &trace(&[]),
            &tlv(0xa2, &[&recipient(&baker, 0b1101_0000, &[0x82, 1, 0])]),
        ],
    );
    tlv(0xa0, &[&envelope, b"\x04\x05hello"])
}

#[test]
fn a_message_of_1984_is_read_and_written_as_it_was() {
    let octets = message();
    let (head, content) = read(&octets);
    assert_eq!(content, b"hello");
    let MtsApduHead::Message(e) = &head else { panic!() };
    assert_eq!((e.priority, &e.content_type), (Priority::Urgent, &ContentType::P2));
    assert_eq!((e.extensions.0.len(), e.unknown.len(), e.trace.len()), (0, 0, 2));
    assert_eq!(e.trace[1].attempted_domain.as_ref().unwrap().prmd, Some("VIA".into()));
    let asked = e.recipients[0].indicators;
    assert!(asked.responsible());
    assert_eq!(asked.mta_report(), MtaReportRequest::Report);
    assert_eq!(asked.originator_report(), ReportRequest::Report);
    assert_eq!(through(&octets, OF_1984), (octets.clone(), 0));
    assert_eq!(through(&octets, WITH_COMMON), (octets, 0));
}

/// The least that 1984 asks for, in another order and with empty flags.
#[test]
fn a_message_of_1984_without_optional_members_is_read() {
    let baker = name(0x60, b"NAPLES", b"Baker", &[]);
    let first = tlv(0x31, &[&[0x82, 1, 0], b"\x80\x11860814093000+0100"]);
    let trace = tlv(0x69, &[&tlv(0x30, &[&domain(b"ACT"), &first])]);
    let envelope = tlv(
        0x31,
        &[
            &trace,
            &tlv(0xa2, &[&tlv(0x31, &[&[0x81, 2, 3, 0xd0], &[0x80, 1, 1], &baker])]),
            &[0x46, 1, 2],
            &[0x48, 1, 0],
            &name(0x60, b"ACT", b"Smith", &[]),
            &identifier(b"1"),
        ],
    );
    let (head, _) = read(&tlv(0xa0, &[&envelope, b"\x04\x00"]));
    let MtsApduHead::Message(e) = head else { panic!() };
    assert_eq!((e.priority, e.indicators.0, e.original_eits), (Priority::Normal, 0, None));
    assert_eq!(e.recipients[0].number, 1);
}

/// The message of [`message`] with members of 1988 everywhere: it has the same form in 1984.
#[test]
fn a_message_of_1988_is_brought_into_the_octets_of_1984() {
    let private = tlv(0x30, &[b"\x62\x05\x13\x03NET", b"\x82\x01P"]);
    let private = tlv(0x30, &[b"\x61\x04\x13\x02IT", &private, b"\x04\x01y"]);
    let bilateral = tlv(0xa1, &[&private, &tlv(0x30, &[PUBLIC, b"\x04\x01x"])]);
    let directory = [0xa0, 2, 0x30, 0];
    let baker = name(0x60, b"NAPLES", b"Baker", &directory);
    let duty = name(0x60, b"NAPLES", b"Duty", &common_name(b"Duty"));
    // id-eit 2.6.3.4.2 is the bit of IA5 text; other-actions of the first element: redirected.
    let eits = tlv(0x65, &[&[0x80, 1, 0], &[0xa4, 6, 6, 4, 0x56, 3, 4, 2]]);
    let extensions = tlv(0xa3, &[&extension(38), &extension(20), &extension(26)]);
    let of_recipient = tlv(0xa3, &[&extension(25)]);
    let envelope = tlv(
        0x31,
        &[
            &identifier(b"860814.1"),
            &name(0x60, b"ACT", b"Smith", &directory),
            &eits,
            &[0x46, 1, 2],
            b"\x4a\x05ref 1",
            &[0x47, 1, 2],
            &[0x48, 2, 0, 0b1011_0001],
            b"\x80\x0d860814100000Z",
            &bilateral,
            &trace(&[0x83, 2, 6, 0x80]),
            &extensions,
            &[0x9f, 0x55, 1, 7],
            &tlv(
                0xa2,
                &[
                    &recipient(&baker, 0b1101_0000, &[&[0x82, 1, 0], &of_recipient[..]].concat()),
                    &recipient(&duty, 0b0101_0000, &[]),
                ],
            ),
        ],
    );
    let octets = tlv(0xa0, &[&envelope, b"\x04\x05hello"]);
    // The internal trace is not counted. Who gets his copy elsewhere and has no form is not named.
    assert_eq!(through(&octets, OF_1984), (message(), 3));
    let (with_common, _) = through(&octets, WITH_COMMON);
    let duty = name(0x60, b"NAPLES", b"Duty", &common(b"Duty"));
    assert!(with_common.windows(duty.len()).any(|w| w == duty), "{with_common:02X?}");
}

#[test]
fn a_type_that_1984_does_not_know_is_undefined() {
    for (extended, bits) in [
        (&b"\x06\x04\x56\x03\x04\x09"[..], &[0x80, 3, 6, 0, 0x40][..]),
        (b"\x06\x04\x56\x03\x04\x0a", &[0x80, 2, 7, 0x80]),
        (b"\x06\x02\x51\x01", &[0x80, 2, 7, 0x80]),
        (b"", &[0x80, 1, 0]),
    ] {
        let eits = tlv(0x65, &[&[0x80, 1, 0], &tlv(0xa4, &[extended]), &[0xa2, 0], &[0xa9, 0]]);
        let expected = tlv(0x65, &[bits, &[0xa2, 0]]);
        let (octets, written) = (message_with_eits(&eits), message_with_eits(&expected));
        assert_eq!(through(&octets, OF_1984), (written, 0), "{extended:02X?}");
    }
}

fn message_with_eits(eits: &[u8]) -> Vec<u8> {
    let baker = name(0x60, b"NAPLES", b"Baker", &[]);
    let envelope = tlv(
        0x31,
        &[
            &identifier(b"1"),
            &name(0x60, b"ACT", b"Smith", &[]),
            eits,
            &[0x46, 1, 2],
            &trace(eits),
            &tlv(0xa2, &[&recipient(&baker, 0xd0, &[])]),
        ],
    );
    tlv(0xa0, &[&envelope, b"\x04\x00"])
}

/// A probe of 1984, and one of 1988 that has its form.
#[test]
fn a_probe_is_read_and_written() {
    let probe = |rest: &[u8], other: &[u8], extensions: &[u8]| {
        let baker = name(0x60, b"NAPLES", b"Baker", &[]);
        let asked = recipient(&baker, 0b1101_0000, rest);
        let (id, originator) = (identifier(b"P1"), name(0x60, b"ACT", b"Smith", &[]));
        let (trace, recipients) = (trace(other), tlv(0xa2, &[&asked]));
        let flags = &[0x48, 2, 0, 0x40];
        let common =
            [&id[..], &originator, IA5, &[0x46, 1, 2], b"\x4a\x03ref", b"\x80\x02\x12\x67"];
        tlv(0xa2, &[&common.concat(), flags, &trace, extensions, &recipients])
    };
    let of_1984 = probe(&[], &[], &[]);
    let (head, _) = read(&of_1984);
    let MtsApduHead::Probe(e) = &head else { panic!() };
    assert_eq!((e.content_length, e.trace.len()), (Some(0x1267), 2));
    assert_eq!(through(&of_1984, OF_1984), (of_1984.clone(), 0));
    let extensions = tlv(0xa3, &[&extension(38), &extension(23)]);
    let later = probe(&tlv(0xa3, &[&extension(2)]), &[0x83, 2, 6, 0x40], &extensions);
    assert_eq!(through(&later, OF_1984), (of_1984, 2));
}

/// One recipient of a report, with this outcome.
fn reported(actual: &[u8], number: u8, converted: &[u8], outcome: &[u8], rest: &[u8]) -> Vec<u8> {
    let last = tlv(0xa3, &[b"\x80\x0d860814093000Z", converted, &tlv(0xa1, &[outcome])]);
    tlv(0x31, &[actual, &[0x81, 1, number], &[0x82, 2, 0, 0xd0], &last, rest])
}

fn report(of_envelope: &[u8], of_content: &[u8], recipients: &[&[u8]]) -> Vec<u8> {
    let destination = name(0x60, b"ACT", b"Smith", &[]);
    let envelope = tlv(0x31, &[&identifier(b"R1"), &destination, &trace(&[]), of_envelope]);
    let content = tlv(
        0x31,
        &[
            &identifier(b"860814.1"),
            &trace(&[]),
            b"\x4a\x05ref 1",
            &[0xa2, 2, 5, 0],
            of_content,
            &tlv(0xa0, recipients),
            b"\x81\x05hello",
        ],
    );
    tlv(0xa1, &[&envelope, &content])
}

/// A report of 1984 with each of its members: no content type and no encoded information types.
#[test]
fn a_report_of_1984_is_read_and_written_as_it_was() {
    let delivered = tlv(0xa0, &[b"\x80\x0d860814094500Z", &[0x81, 1, 1]]);
    let failed = tlv(0xa1, &[&[0x80, 1, 1], &[0x81, 1, 0]]);
    let rest = [&name(0xa4, b"NAPLES", b"Jones", &[])[..], b"\x85\x06nobody"].concat();
    let octets = report(
        &[],
        &[],
        &[
            &reported(&name(0xa0, b"NAPLES", b"Baker", &[]), 1, IA5, &delivered, &[]),
            &reported(&name(0xa0, b"NAPLES", b"Other", &[]), 2, &[], &failed, &rest),
        ],
    );
    let (head, _) = read(&octets);
    let MtsApduHead::Report(found) = &head else { panic!() };
    assert_eq!((&found.content.content_type, &found.content.original_eits), (&None, &None));
    assert_eq!(found.content.subject_trace.len(), 2);
    assert_eq!(found.content.returned_content.as_deref(), Some(&b"hello"[..]));
    let outcomes: Vec<_> =
        found.content.recipients.iter().map(|r| r.last_trace.report.clone()).collect();
    assert!(matches!(outcomes[0], ReportType::Delivery { mts_user: 1, .. }), "{outcomes:?}");
    assert!(matches!(outcomes[1], ReportType::NonDelivery { .. }), "{outcomes:?}");
    assert_eq!(through(&octets, OF_1984), (octets.clone(), 0));
    // Without the trace of the subject, which is of audited reports.
    let envelope = tlv(0x31, &[&identifier(b"R"), &name(0x60, b"A", b"S", &[]), &trace(&[])]);
    let baker = reported(&name(0xa0, b"N", b"B", &[]), 1, &[], &failed, &[]);
    let content = tlv(0x31, &[&identifier(b"1"), &tlv(0xa0, &[&baker])]);
    let least = tlv(0xa1, &[&envelope, &content]);
    assert_eq!(through(&least, OF_1984), (least, 0));
}

#[test]
fn a_report_of_1988_is_brought_into_the_octets_of_1984() {
    let failed = |reason: u8, diagnostic: &[u8]| tlv(0xa1, &[&[0x80, 1, reason], diagnostic]);
    let user = |kind: u8| match kind {
        0 => tlv(0xa0, &[b"\x80\x0d860814094500Z"]),
        kind => tlv(0xa0, &[b"\x80\x0d860814094500Z", &[0x81, 1, kind]]),
    };
    let baker = || name(0xa0, b"NAPLES", b"Baker", &[]);
    let open = || tlv(0xa0, &[&tlv(0x30, &[PUBLIC, b"\xa5\x03\x80\x01B"])]);
    for (what, actual, of_1988, of_1984) in [
        // transfer-failure-for-security-reason, security-policy-violation.
        ("reason", baker(), failed(8, &[0x81, 1, 53]), failed(1, &[])),
        ("reason 3", baker(), failed(3, &[0x81, 1, 11]), failed(1, &[0x81, 1, 11])),
        // unable-to-downgrade itself.
        ("diagnostic", baker(), failed(1, &[0x81, 1, 47]), failed(1, &[])),
        ("diagnostic 12", baker(), failed(2, &[0x81, 1, 12]), failed(2, &[])),
        ("ms", baker(), user(2), user(1)),
        ("dl of an ADMD", open(), user(3), user(0)),
        ("public", baker(), user(0), user(0)),
    ] {
        let histories = tlv(0xa1, &[&extension(38), &extension(30), &extension(31)]);
        let correlator = tlv(0xa3, &[&extension(23)]);
        let of_content = [IA5, &[0x46, 1, 22], &correlator[..], &[0x9f, 0x55, 1, 7]].concat();
        let redirected = tlv(0xa6, &[&extension(25)]);
        let duty = [name(0xa4, b"NAPLES", b"Jones", &common_name(b"Duty")), redirected].concat();
        let jones = name(0xa4, b"NAPLES", b"Jones", &[]);
        let later = report(&histories, &of_content, &[&reported(&actual, 1, IA5, &of_1988, &duty)]);
        let earlier = report(&[], &[], &[&reported(&actual, 1, IA5, &of_1984, &jones)]);
        assert_eq!(through(&later, OF_1984), (earlier, 4), "{what}");
    }
}

/// The name of an address in text form.
fn of(address: &str) -> ORName {
    ORName::from(address.parse::<p1::ORAddress>().unwrap())
}

#[test]
fn an_address_has_a_form_or_is_refused() {
    let (no, dda) = (CommonName::NoForm, CommonName::DomainDefined);
    let form = |address: &str, common| red_book::names::has_form(&of(address), common);
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;O=HQ;OU1=G6;S=Smith;DDA:fax=12", no), Ok(()));
    assert_eq!(form("C=IT;ADMD=NET;N-ID=12", no), Ok(()));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;N-ID=12", dda), Err(NoForm::NumericInPrivateDomain));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;CN=Duty", no), Err(NoForm::CommonName));
    assert_eq!(form("C=IT;ADMD=NET;PRMD=ACT;CN=Duty", dda), Ok(()));
    // The attribute is there already, or there are four.
    assert_eq!(form("C=IT;ADMD=NET;CN=Duty;DDA:common=x", dda), Err(NoForm::CommonName));
    let four = "C=IT;ADMD=NET;CN=Duty;DDA:a=1;DDA:b=2;DDA:c=3;DDA:d=4";
    assert_eq!(form(four, dda), Err(NoForm::CommonName));
    // A name that a PrintableString cannot have.
    assert_eq!(form("C=IT;ADMD=NET;CN=a@b", dda), Err(NoForm::CommonName));
    let empty = ORName { directory_name: Some(vec![0x30, 0].into()), ..ORName::default() };
    assert_eq!(red_book::names::has_form(&empty, dda), Err(NoForm::NoAddress));

    let with = |address: &str, number: i64| {
        let mut name = of(address);
        let value = bytes::Bytes::from_static(&[0x14, 1, b'x']);
        name.address.extensions.push(p1::names::ExtensionAttribute { number, value });
        red_book::names::has_form(&name, no)
    };
    // A postal code; the organization in teletex characters, alone and beside the built-in form.
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 9), Err(NoForm::Attribute(9)));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 3), Err(NoForm::Attribute(3)));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith;O=HQ", 3), Ok(()));
    assert_eq!(with("C=IT;ADMD=NET;S=Smith", 24), Err(NoForm::Attribute(24)));
}

#[test]
fn only_p2_has_a_form() {
    let form = red_book::content_type_has_form;
    assert_eq!(form(&ContentType::P2), Ok(()));
    for other in [ContentType::P22, ContentType::UNIDENTIFIED, ContentType::p772()] {
        assert_eq!(form(&other), Err(NoForm::ContentType(other)));
    }
    assert_eq!(NoForm::ContentType(ContentType::P22).to_string(), "content type 22");
}

#[test]
fn the_attribute_common_is_a_common_name_where_that_is_agreed() {
    let octets = {
        let duty = name(0x60, b"NAPLES", b"Duty", &common(b"Duty officer"));
        let envelope = tlv(
            0x31,
            &[
                &identifier(b"1"),
                &name(0x60, b"ACT", b"Smith", &common(b"Chief")),
                &[0x46, 1, 2],
                &trace(&[]),
                &tlv(0xa2, &[&recipient(&duty, 0xd0, &[])]),
            ],
        );
        tlv(0xa0, &[&envelope, b"\x04\x00"])
    };
    let (head, _) = read(&octets);
    for dialect in [Dialect::Modern, Dialect::BlueBook1988, OF_1984] {
        let mut same = head.clone();
        same.restore_common_names(dialect);
        assert_eq!(same, head);
    }
    let mut restored = head.clone();
    restored.restore_common_names(WITH_COMMON);
    let MtsApduHead::Message(e) = &restored else { panic!() };
    assert_eq!(e.originator.address.common_name().as_deref(), Some("Chief"));
    assert_eq!(e.recipients[0].recipient.address.common_name().as_deref(), Some("Duty officer"));
    assert!(e.recipients[0].recipient.address.domain_defined.is_empty());
    restored.set_dialect(WITH_COMMON);
    assert_eq!(restored, head);
    // Twice, it does not stand for one.
    let MtsApduHead::Message(mut e) = head else { panic!() };
    let pair = e.originator.address.domain_defined[0].clone();
    e.originator.address.domain_defined.push(pair);
    let mut twice = MtsApduHead::Message(e);
    let before = twice.clone();
    twice.restore_common_names(WITH_COMMON);
    let (MtsApduHead::Message(now), MtsApduHead::Message(before)) = (twice, before) else {
        panic!()
    };
    assert_eq!(now.originator, before.originator);
}
