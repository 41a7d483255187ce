//! The RTSE's transfer: RTTRs, EXTERNALs, turns.

use super::case::{Case, play};
use super::octets::*;

/// A value in the context of mta-rtse, all around it of indefinite length.
fn value(octets: &[u8]) -> Vec<u8> {
    data(&[&[0x61, 0x80, 0x30, 0x80, 2, 1, 3, 0xa0, 0x80], octets].concat())
}

pub(super) fn cases() -> Vec<Case> {
    let sends = |name: &str, packets: Vec<Vec<u8>>| Case::open(name).sends_all(packets);
    let within =
        |name: &str, octets: Vec<u8>| Case::open(name).sends_all(vec![activity_start(1), octets]);
    let good = external(&message(&envelope(), b"content"));
    let (front, back) = good.split_at(good.len() / 2);
    let chunks: Vec<&[u8]> = good.chunks(20).collect();
    let checkpoints: Vec<Vec<u8>> = (1..9)
        .zip(&chunks)
        .flat_map(|(n, chunk): (u32, _)| [rttr(chunk), minor_sync(&n.to_string())])
        .collect();
    vec![
        sends("rttr: without an activity", vec![rttr(&[0x28, 0])])
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(4), closed",
                "Rttr in Sta11 (X.228 7.7.4)",
            ),
        within("rttr: a SEQUENCE", data(&user_data(3, &[0x30, 2, 5, 0])))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "RTTR: unexpected [UNIVERSAL 16]",
            ),
        within("rttr: no octets", rttr(&[]))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta30 (X.228 7.9.1): nothing came within the",
            ),
        within("rttr: a thousand of no octets", rttr(&[]).repeat(1_000))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta30 (X.228 7.9.1): nothing came within the",
            ),
        within(
            "rttr: a constructed string 200 levels deep",
            data(&user_data(3, &nested(0x24, 200, &[4, 1, 0]))),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "RTTR: nested deeper than the limit of 32",
        ),
        within(
            "rttr: a string of 2^31 octets",
            value(&[4, 0x84, 0x80, 0, 0, 0, 1, 2]),
        )
        .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "EXTERNAL: unexpected [UNIVERSAL 1]"),
        within(
            "rttr: a string of 2^63 octets",
            value(&[4, 0x88, 0x80, 0, 0, 0, 0, 0, 0, 0, 1]),
        )
        .must(
            "open, AB(user) ARP(6, 7), closed",
            "presentation-data-values: longer than the limit of",
        ),
        within(
            "rttr: indefinite without an end",
            value(&[0x24, 0x80, 4, 1, 0]),
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(3), closed",
            "Timeout in Sta30 (X.228 7.9.1): nothing came within the",
        ),
        within(
            "rttr: two values in one list",
            data(&tlv(
                0x61,
                &[&tlv(0x30, &[&[2, 1, 3], &tlv(0xa0, &[&[4, 1, 0x28], &[4, 1, 0]])])],
            )),
        )
        .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "RTTR: trailing octets"),
        within(
            "rttr: two lists",
            data(&tlv(
                0x61,
                &[
                    &tlv(0x30, &[&[2, 1, 3], &tlv(0xa0, &[&[4, 1, 0x28]])]),
                    &tlv(0x30, &[&[2, 1, 3], &tlv(0xa0, &[&[4, 1, 0]])]),
                ],
            )),
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "EXTERNAL: truncated: the element is longer than what holds it ",
        ),
        sends(
            "rttr: octet aligned instead of a single type, which can be read",
            vec![
                activity_start(1),
                data(&tlv(0x61, &[&tlv(0x30, &[&[2, 1, 3], &tlv(0x81, &[&tlv(4, &[&good])])])])),
                activity_end("1"),
            ],
        )
        .must("open, AEA(1)", "received:"),
        within("rttr: simply encoded", data(&tlv(0x60, &[&[4, 1, 0x28]])))
            .must(
                "open, AB(user) ARP(6, 7), closed",
                "User-data: invalid simply-encoded-data with several contexts",
            ),
        within("rttr: user data missing", data(&[]))
            .must("open, AB(user) ARP(6, 7), closed", "presentation: Td: User-data: truncated"),
        within("rttr: an RTTP in an activity", data(&user_data(3, &[2, 1, 3])))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "RTTR: unexpected [UNIVERSAL 2]",
            ),
        within("external: an INTEGER", rttr(&[2, 1, 5]))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "EXTERNAL: unexpected [UNIVERSAL 2]",
            ),
        within(
            "external: an undefined context",
            rttr(&tlv(0x28, &[&[2, 1, 77], &tlv(0xa0, &[&[5, 0]])])),
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "indirect-reference: invalid a context not defined",
        ),
        within(
            "external: the context of ACSE",
            rttr(&tlv(0x28, &[&[2, 1, 1], &tlv(0xa0, &[&[5, 0]])])),
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: unexpected [UNIVERSAL 5]",
        ),
        within("external: no context", rttr(&tlv(0x28, &[&tlv(0xa0, &[&[5, 0]])])))
            .must(
                "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
                "mts-apdu: unexpected [UNIVERSAL 5]",
            ),
        within(
            "external: a length of 2^63",
            rttr(&[0x28, 0x88, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 1, 5, 0xa0, 0x80]),
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "EXTERNAL: longer than the limit of 1099511627776 octets",
        ),
        within("external: octets behind it", rttr(&[&good[..], &[1, 2, 3]].concat()))
            .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "EXTERNAL: trailing octets"),
        within("external: two in one activity", rttr(&good.repeat(2)))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "EXTERNAL: trailing octets",
            ),
        sends(
            "external: ended in the middle",
            vec![activity_start(1), rttr(front), activity_end("1")],
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "the activity ended within its EXTERNAL (X.228 7.3.5)",
        ),
        sends(
            "external: the second half alone",
            vec![activity_start(1), rttr(back), activity_end("1")],
        )
        .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "EXTERNAL: unexpected [APPLICATION 1]"),
        sends(
            "external: halves swapped",
            vec![activity_start(1), rttr(back), rttr(front), activity_end("1")],
        )
        .must("open, AB(user) ARU ABRT(0) RTAB(1), closed", "EXTERNAL: unexpected [APPLICATION 1]"),
        sends(
            "external: the first half twice",
            vec![activity_start(1), rttr(front), rttr(front), rttr(back), activity_end("1")],
        )
        .must(
            "open, ED(6), AB(user) ARU ABRT(0) RTAB(3), closed",
            "mts-apdu: truncated: the element is longer than what holds it ",
        ),
        sends(
            "external: one octet an RTTR",
            [
                vec![activity_start(1)],
                good.iter().map(|o| rttr(&[*o])).collect(),
                vec![activity_end("1")],
            ]
            .concat(),
        )
        .must("open, AEA(1)", "received:"),
        sends(
            "external: more checkpoints at once than the window",
            [vec![activity_start(1)], vec![checkpoints.concat()]].concat(),
        )
        .must(
            "open, MIA(1), MIA(2), MIA(3), MIA(4), MIA(5), MIA(6), MIA(7), MIA(8), AB(user) ARU ABRT(0) RTAB(3), closed",
            "Timeout in Sta30 (X.228 7.9.1): nothing came within the",
        ),
        sends(
            "external: discarded in the middle",
            vec![activity_start(1), rttr(front), data_phase(&[0x39, 3, 0x32, 1, 0])],
        )
        .must("open, ADA", ""),
        sends(
            "external: interrupted before a checkpoint",
            vec![activity_start(1), rttr(front), data_phase(&[0x19, 3, 0x32, 1, 5])],
        )
        .must("open, AIA", ""),
        sends("external: silence in the middle", vec![activity_start(1), rttr(front)])
            .waits(600)
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta30 (X.228 7.9.1): nothing came within the",
            ),
        sends("external: the connection lost in the middle", vec![activity_start(1), rttr(front)])
            .hangs_up()
            .must("open, closed", "the TCP connection was closed (X.224 6.8)"),
        Case::open("turn: an RTTP of priority 2^71")
            .sends(dt(&spdu(
                2,
                &[&[0x10, 1, 1], &spdu(0xc1, &[&user_data(3, &tlv(2, &[&[0x7f; 9]]))])],
            )))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(1), closed",
                "RTTP: invalid INTEGER (X.690 8.3)",
            ),
        Case::peer("turn: some tokens given in two-way alternate")
            .sends_all(vec![cr(), connect(|c| c.rtorq = vec![0x80, 1, 0, 0x82, 1, 1])])
            .sends(dt(&[1, 3, 0x10, 1, 1]))
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(4), closed",
                "some of the tokens given, where the turn is all of them (X.228",
            ),
        Case::peer("turn: given in two-way alternate, then an activity all the same")
            .sends_all(vec![cr(), connect(|c| c.rtorq = vec![0x80, 1, 0, 0x82, 1, 1])])
            .sends_all(vec![dt(&[0x15, 0]), activity_start(1)])
            .must(
                "open, GTA, AB(protocol error), closed",
                "unexpected As in Sta713 (X.225 A.4.1.2)",
            ),
    ]
}

#[test]
fn transfers() {
    play(&cases());
}
