//! P1: envelopes, reports and probes that are wrong or far too much.

use super::case::{Case, play};
use super::octets::*;

fn sends(name: &str, apdu: &[u8]) -> Case {
    Case::open(name).sends_all(transfer(apdu))
}

/// An extension field: standard number, criticality bits, value.
fn extension(number: u8, criticality: u8, value: &[u8]) -> Vec<u8> {
    tlv(0x30, &[&[0x80, 1, number], &[0x81, 2, 0, criticality], &tlv(0xa2, &[value])])
}

pub(super) fn cases() -> Vec<Case> {
    [members(), amounts(), values()].into_iter().flatten().collect()
}

fn members() -> Vec<Case> {
    let content = tlv(4, &[b"content"]);
    let without = |name: &str, member: &str| {
        let members: Vec<_> = envelope().into_iter().filter(|(n, _)| *n != member).collect();
        sends(name, &message(&members, b"content"))
    };
    let twice = |name: &str, member: &str| {
        let again = envelope().into_iter().find(|(n, _)| *n == member).unwrap().1;
        sends(name, &message_and(&again))
    };
    let set: Vec<Vec<u8>> = envelope().into_iter().map(|(_, octets)| octets).collect();
    let sequence = tlv(0xa0, &[&tlv(0x30, &[&set.concat()]), &content]);
    let swapped = tlv(0xa0, &[&content, &tlv(0x31, &[&set.concat()])]);
    let reversed: Vec<_> = envelope().into_iter().rev().collect();
    vec![
        without("envelope: no identifier", "identifier").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-identifier: missing [APPLICATION 4]",
        ),
        without("envelope: no originator", "originator").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "originator-name: missing [APPLICATION 0]",
        ),
        without("envelope: no content type", "content-type").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "content-type: missing [APPLICATION 6]",
        ),
        without("envelope: no trace", "trace").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "trace-information: missing [APPLICATION 9]",
        ),
        without("envelope: no recipients", "recipients").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "per-recipient-fields: missing [2]",
        ),
        twice("envelope: identifier twice", "identifier").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [APPLICATION 4]",
        ),
        twice("envelope: originator twice", "originator").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [APPLICATION 0]",
        ),
        twice("envelope: recipients twice", "recipients").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [2]",
        ),
        twice("envelope: trace twice", "trace").must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [APPLICATION 9]",
        ),
        sends("envelope: content identifier twice", &message_and(b"\x4a\x01a\x4a\x01b")).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [APPLICATION 10]",
        ),
        sends("envelope: priority twice", &message_and(&[0x47, 1, 0, 0x47, 1, 2])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "priority: unexpected [APPLICATION 7]",
        ),
        sends("envelope: a SEQUENCE", &sequence).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [UNIVERSAL 16]",
        ),
        sends("envelope: behind the content", &swapped).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-transfer-envelope: unexpected [UNIVERSAL 4]",
        ),
        sends("envelope: members the other way round", &message(&reversed, b"content"))
            .must("open, AEA(1)", "received:"),
        sends("envelope: an unknown member", &message_and(&[0x9f, 0x55, 1, 7]))
            .must("open, AEA(1)", "received:"),
        sends("envelope: empty", &tlv(0xa0, &[&[0x31, 0], &content])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "message-identifier: missing [APPLICATION 4]",
        ),
        sends("envelope: without a content", &tlv(0xa0, &[&tlv(0x31, &[&set.concat()])])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "content: missing [UNIVERSAL 4]",
        ),
        sends(
            "envelope: two contents",
            &tlv(0xa0, &[&tlv(0x31, &[&set.concat()]), &content, &content]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "content: unexpected [UNIVERSAL 4]",
        ),
        sends("apdu: an unknown choice", &tlv(0xa7, &[&tlv(0x31, &[&set.concat()]), &content]))
            .must("open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed", "mts-apdu: unexpected [7]"),
        sends("apdu: a probe that is empty", &tlv(0xa2, &[])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "probe-identifier: missing [APPLICATION 4]",
        ),
        sends("apdu: a report that is empty", &tlv(0xa1, &[&[0x31, 0], &[0x31, 0]])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "subject-identifier: missing [APPLICATION 4]",
        ),
        sends("apdu: a NULL", &[5, 0]).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: unexpected [UNIVERSAL 5]",
        ),
    ]
}

fn amounts() -> Vec<Case> {
    let many = |count: usize, one: &[u8]| one.repeat(count);
    let recipients = |count: u32| {
        let all: Vec<u8> = (1..=count).flat_map(|n| recipient(n, &[])).collect();
        tlv(0xa2, &[&all])
    };
    let hop = tlv(0x30, &[&domain(b"THERE"), &tlv(0x31, &[b"\x80\x0d260101000000Z\x82\x01\x00"])]);
    let long = tlv(0x64, &[&domain(b"THERE"), &tlv(0x16, &[&[b'L'; 100]])]);
    vec![
        sends("amount: 100,000 recipients", &message_with("recipients", &recipients(100_000)))
            .must(
                "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
                "envelope: longer than the limit of 65536 octets",
            ),
        sends(
            "amount: 700 recipients, none of whom we know",
            &message_with(
                "recipients",
                &tlv(
                    0xa2,
                    &[&(1..=700)
                        .flat_map(|n: u32| {
                            tlv(
                                0x31,
                                &[
                                    &name_of(b"HERE", b"NOBODY"),
                                    &tlv(0x80, &[&n.to_be_bytes()[2..]]),
                                    &[0x81, 2, 7, 0x80],
                                ],
                            )
                        })
                        .collect::<Vec<u8>>()],
                ),
            ),
        )
        .must("open, AEA(1)", "no such recipient here"),
        sends("amount: no recipient", &message_with("recipients", &[0xa2, 0])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "per-recipient-fields: missing [UNIVERSAL 17]",
        ),
        sends(
            "amount: one recipient with 100,000 extensions",
            &message_with(
                "recipients",
                &tlv(
                    0xa2,
                    &[&recipient(1, &tlv(0xa1, &[&many(100_000, &extension(7, 0, &[2, 1, 0]))]))],
                ),
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "envelope: longer than the limit of 65536 octets",
        ),
        sends(
            "amount: 100,000 extensions",
            &message_and(&tlv(0xa3, &[&many(100_000, &extension(99, 0, &[5, 0]))])),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "envelope: longer than the limit of 65536 octets",
        ),
        sends(
            "amount: trace of 10,000 elements",
            &message_with("trace", &tlv(0x69, &[&many(10_000, &hop)])),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "envelope: longer than the limit of 65536 octets",
        ),
        sends(
            "amount: trace of 900 elements through us",
            &message_with(
                "trace",
                &tlv(
                    0x69,
                    &[&many(
                        900,
                        &tlv(
                            0x30,
                            &[
                                &domain(b"HERE"),
                                &tlv(0x31, &[b"\x80\x0d260101000000Z\x82\x01\x00"]),
                            ],
                        ),
                    )],
                ),
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "trace-information: more than the limit of 512 elements",
        ),
        sends("amount: no trace element", &message_with("trace", &[0x69, 0]))
            .must("open, AEA(1)", "received:"),
        sends(
            "amount: a surname of no octets",
            &message_with("originator", &name_of(b"THERE", b"")),
        )
        .must("open, AEA(1)", "received:"),
        sends(
            "amount: a surname of 10 MB",
            &message_with("originator", &name_of(b"THERE", &vec![b'S'; 10_000_000])),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "envelope: longer than the limit of 65536 octets",
        ),
        sends(
            "amount: a surname of 5,000 octets",
            &message_with("originator", &name_of(b"THERE", &[b'S'; 5_000])),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "personal-name: it has 5000 characters instead of 0 to 256",
        ),
        sends(
            "amount: a surname of 200 octets",
            &message_with("originator", &name_of(b"THERE", &[b'S'; 200])),
        )
        .must("open, AEA(1)", "received:"),
        sends(
            "amount: a recipient of 5,000 octets",
            &message_with(
                "recipients",
                &tlv(
                    0xa2,
                    &[&tlv(
                        0x31,
                        &[&name_of(b"HERE", &[b'R'; 5_000]), &[0x80, 1, 1, 0x81, 2, 7, 0x80]],
                    )],
                ),
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "personal-name: it has 5000 characters instead of 0 to 256",
        ),
        sends("amount: a local identifier of 100 octets", &message_with("identifier", &long)).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "local-identifier: it has 100 characters instead of 1 to 32",
        ),
        sends("amount: a content beyond the limit", &message(&envelope(), &vec![b'x'; 200_001]))
            .must(
                "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
                "content: longer than the limit of 200000 octets",
            ),
        sends("amount: a content at the limit", &message(&envelope(), &vec![b'x'; 200_000]))
            .must("open, AEA(1)", "received:"),
        Case::open("amount: a content announced as 2^63 octets")
            .sends_all(vec![
                activity_start(1),
                rttr(&{
                    let set: Vec<u8> =
                        envelope().into_iter().flat_map(|(_, octets)| octets).collect();
                    [
                        &[0x28, 0x80, 2, 1, 5, 0xa0, 0x80, 0xa0, 0x80][..],
                        &tlv(0x31, &[&set]),
                        &[4, 0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                    ]
                    .concat()
                }),
            ])
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "EXTERNAL: longer than the limit of 1099511627776 octets",
            ),
        sends(
            "amount: a content in segments 60 levels deep",
            &tlv(
                0xa0,
                &[
                    &tlv(
                        0x31,
                        &[&envelope().into_iter().flat_map(|(_, o)| o).collect::<Vec<u8>>()],
                    ),
                    &nested(0x24, 60, &[4, 1, b'x']),
                ],
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: nested deeper than the limit of 32",
        ),
        sends(
            "amount: an envelope 1,000 levels deep",
            &message_and(&nested(0xbf, 0, &nested(0xa9, 1_000, &[5, 0]))),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: nested deeper than the limit of 32",
        ),
        sends(
            "amount: an envelope of indefinite lengths that never end",
            &[&[0xa0, 0x80, 0x31, 0x80][..], &[0xa9, 0x80].repeat(3_000)].concat(),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: nested deeper than the limit of 32",
        ),
        sends(
            "amount: an attribute a thousand times",
            &message_with(
                "originator",
                &tlv(0x60, &[&tlv(0x30, &[&many(1_000, &tlv(0xa2, &[&tlv(0x13, &[b"P"])]))])]),
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "built-in-standard-attributes: trailing octets",
        ),
        sends(
            "amount: 3,000 domain-defined attributes",
            &message_with(
                "originator",
                &tlv(
                    0x60,
                    &[
                        &tlv(0x30, &[]),
                        &tlv(0x31, &[&many(3_000, &tlv(0x30, &[b"\x13\x01a\x13\x01b"]))]),
                    ],
                ),
            ),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "extension-attributes: unexpected [UNIVERSAL 19]",
        ),
    ]
}

fn values() -> Vec<Case> {
    let with = |name: &str, member: &str, octets: &[u8]| sends(name, &message_with(member, octets));
    let and = |name: &str, octets: &[u8]| sends(name, &message_and(octets));
    let numbered = |octets: &[u8]| {
        tlv(0xa2, &[&tlv(0x31, &[&name(b"HERE"), &tlv(0x80, &[octets]), &[0x81, 2, 7, 0x80]])])
    };
    vec![
        with(
            "value: recipient number of 9 octets",
            "recipients",
            &numbered(&[1, 2, 3, 4, 5, 6, 7, 8, 9]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "originally-specified-recipient-number: invalid INTEGER (X.690",
        ),
        with("value: recipient number -1", "recipients", &numbered(&[0xff])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "originally-specified-recipient-number: invalid",
        ),
        with("value: recipient number 0", "recipients", &numbered(&[0]))
            .must("open, AEA(1)", "received:"),
        with("value: recipient number of no octets", "recipients", &numbered(&[])).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "originally-specified-recipient-number: invalid INTEGER (X.690",
        ),
        with(
            "value: two recipients of one number",
            "recipients",
            &tlv(0xa2, &[&recipient(1, &[]), &recipient(1, &[])]),
        )
        .must("open, AEA(1)", "received:"),
        with(
            "value: recipient without a name",
            "recipients",
            &tlv(0xa2, &[&[0x31, 7, 0x80, 1, 1, 0x81, 2, 7, 0x80]]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "per-recipient-fields.recipient-name: missing [APPLICATION 0]",
        ),
        with(
            "value: recipient without indicators",
            "recipients",
            &tlv(0xa2, &[&tlv(0x31, &[&name(b"HERE"), &[0x80, 1, 1]])]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "per-recipient-indicators: missing [1]",
        ),
        with(
            "value: indicators of no bits",
            "recipients",
            &tlv(0xa2, &[&tlv(0x31, &[&name(b"HERE"), &[0x80, 1, 1, 0x81, 1, 0]])]),
        )
        .must("open, AEA(1)", "received:"),
        with(
            "value: indicators with 9 unused bits",
            "recipients",
            &tlv(0xa2, &[&tlv(0x31, &[&name(b"HERE"), &[0x80, 1, 1, 0x81, 2, 9, 0]])]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "per-recipient-indicators: invalid BIT STRING (X.690 8.6)",
        ),
        and("value: priority 99", &[0x47, 1, 99]).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "priority: invalid Priority (X.411 8.2.1.1.1.8)",
        ),
        and("value: priority of 9 octets", &[0x47, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1]).must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "priority: invalid INTEGER (X.690 8.3)",
        ),
        with("value: content type -1", "content-type", &[0x46, 1, 0xff])
            .must("open, AEA(1)", "received:"),
        with(
            "value: content type of 10 octets",
            "content-type",
            &[0x46, 10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "content-type: invalid INTEGER (X.690 8.3)",
        ),
        and("value: deferred until the year 2049", b"\x80\x0d491231235959Z")
            .must("open, AEA(1)", "received:"),
        and("value: deferred until the 31st of February", b"\x80\x0d260231235959Z")
            .must("open, AEA(1)", "received:"),
        and("value: deferred until no time", b"\x80\x00").must("open, AEA(1)", "received:"),
        and(
            "value: an extension unknown and critical for transfer",
            &tlv(0xa3, &[&extension(98, 0x40, &[5, 0])]),
        )
        .must("open, AEA(1)", "unsupported critical extension standard extension 98"),
        and(
            "value: an extension unknown and critical for delivery",
            &tlv(0xa3, &[&extension(98, 0x20, &[5, 0])]),
        )
        .must("open, AEA(1)", "unsupported critical extension standard extension 98"),
        and(
            "value: an extension unknown and critical for submission",
            &tlv(0xa3, &[&extension(98, 0x80, &[5, 0])]),
        )
        .must("open, AEA(1)", "received:"),
        and("value: an extension without a value", &tlv(0xa3, &[&tlv(0x30, &[&[0x80, 1, 7]])]))
            .must("open, AEA(1)", "received:"),
        and(
            "value: an extension without a type",
            &tlv(0xa3, &[&tlv(0x30, &[&tlv(0xa2, &[&[5, 0]])])]),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "extension-type: unexpected [2]",
        ),
        and(
            "value: an extension of type -5",
            &tlv(0xa3, &[&tlv(0x30, &[&[0x80, 1, 0xfb], &tlv(0xa2, &[&[5, 0]])])]),
        )
        .must("open, AEA(1)", "received:"),
        with(
            "value: a country of 40 letters",
            "originator",
            &tlv(0x60, &[&tlv(0x30, &[&tlv(0x61, &[&tlv(0x13, &[&[b'C'; 40]])])])]),
        )
        .must("open, AEA(1)", "received:"),
        with("value: an originator without attributes", "originator", &[0x60, 2, 0x30, 0])
            .must("open, AEA(1)", "received:"),
        with(
            "value: a trace of letters for a time",
            "trace",
            &tlv(
                0x69,
                &[&tlv(
                    0x30,
                    &[&domain(b"THERE"), &tlv(0x31, &[b"\x80\x0dyesterday....\x82\x01\x00"])],
                )],
            ),
        )
        .must("open, AEA(1)", "received:"),
        with(
            "value: a trace without an action",
            "trace",
            &tlv(
                0x69,
                &[&tlv(0x30, &[&domain(b"THERE"), &tlv(0x31, &[b"\x80\x0d260101000000Z"])])],
            ),
        )
        .must("open, AEA(1)", "received:"),
    ]
}

#[test]
fn envelopes() {
    play(&cases());
}
