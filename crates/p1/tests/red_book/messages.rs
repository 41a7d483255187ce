//! Messages and probes.

use super::*;
use p1::flags::{MtaReportRequest, ReportRequest};
use p1::{ContentType, Priority};

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
