//! Reports.

use super::*;
use p1::ReportType;

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

#[test]
fn the_attribute_common_is_a_common_name_in_a_report_too() {
    let failed = tlv(0xa1, &[&[0x80, 1, 1]]);
    let duty = |tag| name(tag, b"NAPLES", b"Duty", &common(b"Officer"));
    let octets = report(&[], &[], &[&reported(&duty(0xa0), 1, &[], &failed, &duty(0xa4))]);
    let (head, _) = read(&octets);
    let mut restored = head.clone();
    restored.restore_common_names(WITH_COMMON);
    let MtsApduHead::Report(found) = &restored else { panic!() };
    let recipient = &found.content.recipients[0];
    let names = [Some(&recipient.actual_recipient), recipient.intended_recipient.as_ref()];
    for name in names {
        assert_eq!(name.unwrap().address.common_name().as_deref(), Some("Officer"));
    }
    restored.set_form(WITH_COMMON.into());
    assert_eq!(restored, head);
}
