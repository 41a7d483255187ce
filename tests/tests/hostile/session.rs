//! Session: SPDUs that cannot be read, and those that may not come now.

use super::case::{Case, play};
use super::octets::*;

const MONOLOGUE: &str = "tokens given in a monologue, which has no turn (X.218 8.5)";

/// CONNECT with these parameters in front of its user data.
fn cn(parameters: &[&[u8]]) -> Vec<u8> {
    connect(|c| c.parameters = parameters.concat())
}

pub(super) fn cases() -> Vec<Case> {
    [opening(), data_phase_cases(), activities()].into_iter().flatten().collect()
}

fn opening() -> Vec<Case> {
    let connects = |name: &str, octets: Vec<u8>| Case::peer(name).sends_all(vec![cr(), octets]);
    let items = [reference(), accept_item(2, 0), REQUIREMENTS.to_vec()];
    let [r, i, q] = items.each_ref().map(Vec::as_slice);
    let cp = Connect::default().cp();
    vec![
        connects("cn: version 8 alone", cn(&[r, &accept_item(8, 0), q])).must(
            "CC, RF(132), closed",
            "reason 132: proposed protocol versions not supported (X.225",
        ),
        connects("cn: all versions", cn(&[r, &accept_item(0xff, 0), q])).must("open", ""),
        connects("cn: tokens reserved", cn(&[r, &accept_item(2, 0xff), q]))
            .must("CC, closed", "token setting item of CONNECT out of range (X.225 8.3)"),
        connects("cn: a token nobody asks for reserved", cn(&[r, &accept_item(2, 0xc0), q]))
            .must("open", ""),
        connects("cn: no functional unit", cn(&[r, i, &[0x14, 2, 0, 0]]))
            .must("CC, RF(2) CPR(0), closed", "session requirements lack 0x0249"),
        connects("cn: every functional unit", cn(&[r, i, &[0x14, 2, 0xff, 0xff]])).must("open", ""),
        connects("cn: requirements of one octet", cn(&[r, i, &[0x14, 1, 0x49]]))
            .must("CC, closed", "session user requirements of CONNECT out of range (X.225 8.3)"),
        connects("cn: a called selector where we have none", cn(&[r, i, q, b"\x34\x05OTHER"]))
            .must("open", ""),
        connects("cn: selector of 60 octets", cn(&[r, i, q, &spdu(0x34, &[&[b'S'; 60]])]))
            .must("CC, closed", "called session selector of CONNECT out of range (X.225 8.3)"),
        connects(
            "cn: reference of 100 octets",
            cn(&[&spdu(1, &[&spdu(0x0a, &[&[b'R'; 100]])]), i, q]),
        )
        .must("CC, closed", "calling SS-user reference of CONNECT out of range (X.225 8.3)"),
        connects("cn: reference twice", cn(&[r, r, i, q]))
            .must("CC, closed", "connection identifier of CONNECT comes twice (X.225 8.2)"),
        connects("cn: requirements twice", cn(&[r, i, q, q]))
            .must("CC, closed", "session user requirements of CONNECT comes twice (X.225 8.2)"),
        connects("cn: an unknown parameter twice", cn(&[r, i, q, &[0x7e, 0, 0x7e, 0]]))
            .must("open", ""),
        connects("cn: parameters in the wrong order", cn(&[q, i, r])).must("open", ""),
        connects("cn: an unknown parameter", cn(&[r, i, q, &[0x7e, 2, 1, 2]])).must("open", ""),
        connects("cn: a group within a group", cn(&[r, &spdu(5, &[&spdu(5, &[i])]), q]))
            .must("CC, closed", "connect/accept item of CONNECT comes twice (X.225 8.2)"),
        connects("cn: a parameter beyond its group", cn(&[&[1, 4, 0x0a, 200, 1, 2], i, q]))
            .must("CC, closed", "a parameter is longer than its SPDU (X.225 8.2)"),
        connects(
            "cn: version parameter of 3 octets",
            cn(&[r, &spdu(5, &[&[0x16, 3, 0, 0, 2]]), q]),
        )
        .must("CC, closed", "version number of CONNECT out of range (X.225 8.3)"),
        connects(
            "cn: initial serial number 9999999",
            cn(&[r, &spdu(5, &[b"\x16\x01\x02\x17\x079999999"]), q]),
        )
        .must("CC, closed", "initial serial number of CONNECT out of range (X.225 8.3)"),
        connects(
            "cn: initial serial number 999999",
            cn(&[r, &spdu(5, &[b"\x16\x01\x02\x17\x06999999"]), q]),
        )
        .must("open", ""),
        connects(
            "cn: initial serial number of letters",
            cn(&[r, &spdu(5, &[b"\x16\x01\x02\x17\x02xy"]), q]),
        )
        .must("CC, closed", "initial serial number of CONNECT out of range (X.225 8.3)"),
        connects("cn: no user data", dt(&spdu(0x0d, &[r, i, q]))).must(
            "CC, RF(2) CPR(0), closed",
            "CP PPDU: truncated: the element is longer than what holds it",
        ),
        connects(
            "cn: user data twice",
            dt(&spdu(0x0d, &[r, i, q, &spdu(0xc1, &[&cp]), &spdu(0xc1, &[&cp])])),
        )
        .must("CC, closed", "user data of CONNECT comes twice (X.225 8.2)"),
        connects(
            "cn: user data in both forms",
            dt(&spdu(0x0d, &[r, i, q, &spdu(0xc1, &[&cp]), &spdu(0xc2, &[&cp])])),
        )
        .must("CC, closed", "extended user data of CONNECT comes twice (X.225 8.2)"),
        connects(
            "cn: 600 octets of plain user data",
            dt(&spdu(0x0d, &[r, i, q, &spdu(0xc1, &[&[0x31; 600]])])),
        )
        .must("CC, RF(2) CPR(0), closed", "CP PPDU: trailing octets"),
        connects(
            "cn: 20,000 octets of user data",
            dt(&spdu(0x0d, &[r, i, q, &spdu(0xc2, &[&[0x31; 20_000]])])),
        )
        .must(
            "CC, RF(134), closed",
            "reason 134: rejection by the SPM, implementation restriction",
        ),
        connects(
            "cn: data overflow",
            dt(&spdu(0x0d, &[r, i, q, &[0x3c, 1, 1], &spdu(0xc2, &[&cp])])),
        )
        .must(
            "CC, RF(134), closed",
            "reason 134: rejection by the SPM, implementation restriction",
        ),
        connects("cn: length beyond the TSDU", dt(&[&[0x0d, 0xff, 0x7f, 0xff][..], r].concat()))
            .must("CC, closed", "a parameter is longer than its SPDU (X.225 8.2)"),
        connects(
            "cn: long form of a short length",
            dt(&[&[0x0d, 0xff, 0, r.len() as u8][..], r].concat()),
        )
        .must("CC, RF(132), closed", "reason 132: proposed protocol versions not supported (X.225"),
        connects("cn: ABORT instead", dt(&spdu(0x19, &[&[0x11, 1, 3]])))
            .must("CC, closed", "Ab where a CONNECT is due (X.225 A.4.1.2)"),
        connects("cn: ACCEPT instead", dt(&spdu(0x0e, &[r, i, q, &spdu(0xc1, &[&cp])])))
            .must("CC, closed", "Ac where a CONNECT is due (X.225 A.4.1.2)"),
        connects("cn: FINISH instead", dt(&spdu(9, &[&[0x11, 1, 1]])))
            .must("CC, closed", "Fn where a CONNECT is due (X.225 A.4.1.2)"),
        connects("cn: DATA TRANSFER instead", data(&user_data(3, &[4, 0])))
            .must("CC, closed", "Dt where a CONNECT is due (X.225 A.4.1.2)"),
        Case::peer("cn: a second bind while the first is answered")
            .sends([cr(), connect(|_| {}), connect(|_| {})].concat())
            .must("CC, AB(protocol error), closed", "unexpected Cn in Sta08 (X.225 A.4.1.2)"),
    ]
}

fn data_phase_cases() -> Vec<Case> {
    let open = |name: &str, octets: Vec<u8>| Case::open(name).sends(octets);
    vec![
        open("open: a second CONNECT", connect(|_| {}))
            .must("open, AB(protocol error), closed", "unexpected Cn in Sta713 (X.225 A.4.1.2)"),
        open("open: an unknown SPDU", dt(&[0x77, 3, 0x2a, 1, 0x31])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 119 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open("open: an unknown SPDU of category 2", data_phase(&[0x77, 0])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 119 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open("open: length beyond the TSDU", data_phase(&[0x2d, 0x7f, 0x29, 3, 2, 1, 1])).must(
            "open, AB(protocol error), closed",
            "a parameter is longer than its SPDU (X.225 8.2)",
        ),
        open("open: group beyond the SPDU", data_phase(&[0x1d, 4, 0x21, 40, 1, 1])).must(
            "open, AB(protocol error), closed",
            "a parameter is longer than its SPDU (X.225 8.2)",
        ),
        open("open: half a GIVE TOKENS", dt(&[1])).must(
            "open, AB(protocol error), closed",
            "a parameter is longer than its SPDU (X.225 8.2)",
        ),
        open("open: GIVE TOKENS of tokens we have not asked for", dt(&[1, 3, 0x10, 1, 0x15]))
            .must("open, AB(user) ARU ABRT(0) RTAB(4), closed", MONOLOGUE),
        open("open: GIVE TOKENS of one token", dt(&[1, 3, 0x10, 1, 1]))
            .must("open, AB(user) ARU ABRT(0) RTAB(4), closed", MONOLOGUE),
        open("open: GIVE TOKENS of no tokens", dt(&[1, 3, 0x10, 1, 0])).must("open", ""),
        open("open: tokens asked for by their holder", dt(&[2, 3, 0x10, 1, 1])).must("open", ""),
        open("open: all tokens asked for by their holder", dt(&[2, 3, 0x10, 1, 0x15]))
            .must("open", ""),
        open("open: GIVE TOKENS CONFIRM", dt(&[0x15, 0]))
            .must("open, GTA, AB(user) ARU ABRT(0) RTAB(4), closed", MONOLOGUE),
        open(
            "open: GIVE TOKENS CONFIRM, then an activity",
            [dt(&[0x15, 0]), activity_start(1)].concat(),
        )
        .must("open, GTA, AB(user) ARU ABRT(0) RTAB(4), closed", MONOLOGUE),
        open("open: GIVE TOKENS ACK of nothing", dt(&[0x16, 0]))
            .must("open, AB(protocol error), closed", "unexpected Gta in Sta713 (X.225 A.4.1.2)"),
        open("open: DISCONNECT of nothing", dt(&[0x0a, 0]))
            .must("open, AB(protocol error), closed", "unexpected Dn in Sta713 (X.225 A.4.1.2)"),
        open("open: ABORT ACCEPT of nothing", dt(&[0x1a, 0]))
            .must("open, AB(protocol error), closed", "unexpected Aa in Sta713 (X.225 A.4.1.2)"),
        open("open: REFUSE", dt(&[0x0c, 3, 0x32, 1, 0]))
            .must("open, AB(protocol error), closed", "unexpected Rf in Sta713 (X.225 A.4.1.2)"),
        open("open: typed data, which was not negotiated", data_phase(&[0x21, 0])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 33 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open("open: expedited data", dt(&[5, 0, 1, 2])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 5 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open("open: RESYNCHRONIZE, which was not negotiated", data_phase(&[0x35, 0])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 53 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open(
            "open: MAJOR SYNC POINT, which was not negotiated",
            data_phase(b"\x29\x06\x19\x01\x01\x2a\x01\x31"),
        )
        .must(
            "open, AB(protocol error), closed",
            "enclosure item of ACTIVITY END out of range (X.225 8.3)",
        ),
        open("open: CAPABILITY DATA", data_phase(&[0x3d, 0])).must(
            "open, AB(protocol error), closed",
            "SPDU identifier 61 unknown or out of place (X.225 6.3.7, 8.3)",
        ),
        open("open: a thousand empty GIVE TOKENS in one TSDU", dt(&[1, 0].repeat(1_000))).must(
            "open, AB(user) ARP(6, 7), closed",
            "User-data: unexpected [UNIVERSAL 1] (X.226 6.4.2.2)",
        ),
        open(
            "open: three SPDUs concatenated",
            dts(&[
                &[1, 0],
                &spdu(0x2d, &[&spdu(0x29, &[&[2, 1, 1]])])[..],
                &spdu(0x31, &[b"\x2a\x011"])[..],
            ]
            .concat()),
        )
        .must(
            "open, AB(protocol error), closed",
            "octets after the last SPDU of basic concatenation (X.225 6.3.7)",
        ),
        open(
            "open: FINISH twice",
            [dt(&spdu(9, &[&[0x11, 1, 1]])), dt(&spdu(9, &[&[0x11, 1, 1]]))].concat(),
        )
        .must("open, DN RLRE, closed", "released"),
        open("open: FINISH without RLRQ", dt(&spdu(9, &[&[0x11, 1, 1]])))
            .must("open, DN RLRE, closed", "released"),
        open(
            "open: FINISH and more",
            [
                dt(&spdu(
                    9,
                    &[&[0x11, 1, 1], &spdu(0xc1, &[&user_data(1, &[0x62, 3, 0x80, 1, 0])])],
                )),
                activity_start(1),
            ]
            .concat(),
        )
        .must("open, DN RLRE, closed", "released"),
        open(
            "open: ABORT and more",
            [dt(&spdu(0x19, &[&[0x11, 1, 3]])), activity_start(1)].concat(),
        )
        .must("open, closed", "acse: ARU without ABRT (X.227 7.3.3)"),
        open(
            "open: ABORT with 2,000 octets",
            dt(&spdu(0x19, &[&[0x11, 1, 3], &spdu(0xc2, &[&[0xa0; 2_000]])])),
        )
        .must("open, closed", "S-U-ABORT with ARU or ARP PPDU: malformed length (X.690 8.1.3.5)"),
    ]
}

fn activities() -> Vec<Case> {
    let data = || rttr(&[0x28, 0x80]);
    let open = |name: &str, packets: Vec<Vec<u8>>| Case::open(name).sends_all(packets);
    let resume = |contents: &[&[u8]]| data_phase(&spdu(0x1d, contents));
    vec![
        open("activity: start within an activity", vec![activity_start(1), activity_start(2)])
            .must("open, AB(protocol error), closed", "unexpected As in Sta713 (X.225 A.4.1.2)"),
        open("activity: start without an identifier", vec![data_phase(&[0x2d, 0])]).must(
            "open, AB(protocol error), closed",
            "activity identifier of ACTIVITY START is missing (X.225 8.3)",
        ),
        open(
            "activity: identifier of 7 octets",
            vec![data_phase(&spdu(0x2d, &[&spdu(0x29, &[&[7; 7]])]))],
        )
        .must(
            "open, AB(protocol error), closed",
            "activity identifier of ACTIVITY START out of range (X.225 8.3)",
        ),
        open("activity: end of none", vec![activity_end("1")])
            .must("open, AB(protocol error), closed", "unexpected Ae in Sta713 (X.225 A.4.1.2)"),
        open(
            "activity: end without minor sync, serial 2",
            vec![activity_start(1), data(), activity_end("2")],
        )
        .must("open, AB(protocol error), closed", "unexpected Ae in Sta713 (X.225 A.4.1.2)"),
        open("activity: end without data", vec![activity_start(1), activity_end("1")]).must(
            "open, AB(user) ARU ABRT(0) RTAB(1), closed",
            "the activity ended within its EXTERNAL (X.228 7.3.5)",
        ),
        open("activity: checkpoint of none", vec![minor_sync("1")])
            .must("open, AB(protocol error), closed", "unexpected Mip in Sta713 (X.225 A.4.1.2)"),
        open("activity: checkpoint 7 first", vec![activity_start(1), data(), minor_sync("7")])
            .must("open, AB(protocol error), closed", "unexpected Mip in Sta713 (X.225 A.4.1.2)"),
        open("activity: checkpoint 0", vec![activity_start(1), data(), minor_sync("0")])
            .must("open, AB(protocol error), closed", "unexpected Mip in Sta713 (X.225 A.4.1.2)"),
        open("activity: checkpoint -1", vec![activity_start(1), data(), minor_sync("-1")]).must(
            "open, AB(protocol error), closed",
            "serial number of MINOR SYNC POINT out of range (X.225 8.3)",
        ),
        open(
            "activity: checkpoint 9999999",
            vec![activity_start(1), data(), minor_sync("9999999")],
        )
        .must(
            "open, AB(protocol error), closed",
            "serial number of MINOR SYNC POINT out of range (X.225 8.3)",
        ),
        open(
            "activity: checkpoint without a number",
            vec![activity_start(1), data(), minor_sync("")],
        )
        .must(
            "open, AB(protocol error), closed",
            "serial number of MINOR SYNC POINT out of range (X.225 8.3)",
        ),
        open("activity: checkpoint of letters", vec![activity_start(1), data(), minor_sync("one")])
            .must(
                "open, AB(protocol error), closed",
                "serial number of MINOR SYNC POINT out of range (X.225 8.3)",
            ),
        open(
            "activity: checkpoint 1 twice",
            vec![activity_start(1), data(), minor_sync("1"), minor_sync("1")],
        )
        .must(
            "open, MIA(1), AB(protocol error), closed",
            "unexpected Mip in Sta713 (X.225 A.4.1.2)",
        ),
        open(
            "activity: checkpoints 1, 3",
            vec![activity_start(1), data(), minor_sync("1"), minor_sync("3")],
        )
        .must(
            "open, MIA(1), AB(protocol error), closed",
            "unexpected Mip in Sta713 (X.225 A.4.1.2)",
        ),
        open(
            "activity: more checkpoints than the window",
            (1..=8).fold(vec![activity_start(1)], |mut all, n| {
                all.extend([data(), minor_sync(&n.to_string())]);
                all
            }),
        )
        .must(
            "open, MIA(1), AB(user) ARU ABRT(0) RTAB(1), closed",
            "EXTERNAL: unexpected [UNIVERSAL 8]",
        ),
        open(
            "activity: our confirm of nothing",
            vec![activity_start(1), dt(b"\x02\x00\x32\x03\x2a\x011")],
        )
        .must("open, AB(protocol error), closed", "unexpected Mia in Sta713 (X.225 A.4.1.2)"),
        open(
            "activity: our end confirmed",
            vec![activity_start(1), dt(b"\x02\x00\x2a\x03\x2a\x011")],
        )
        .must("open, AB(protocol error), closed", "unexpected Aea in Sta713 (X.225 A.4.1.2)"),
        open(
            "activity: exception reported to the receiver",
            vec![activity_start(1), dt(b"\x02\x00\x30\x03\x32\x01\x05")],
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(3), closed",
            "Timeout in Sta32 (X.228 7.6.1): no answer within the transfer",
        ),
        open("activity: interrupted when there is none", vec![data_phase(&[0x19, 3, 0x32, 1, 5])])
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(4), closed",
                "InterruptInd in Sta11 (X.228 7.7.4)",
            ),
        open("activity: discarded when there is none", vec![data_phase(&[0x39, 3, 0x32, 1, 0])])
            .must(
                "open, AB(user) ARU ABRT(0) RTAB(4), closed",
                "DiscardInd in Sta11 (X.228 7.7.4)",
            ),
        open(
            "activity: interrupted twice",
            vec![
                activity_start(1),
                data(),
                data_phase(&[0x19, 3, 0x32, 1, 5]),
                data_phase(&[0x19, 3, 0x32, 1, 5]),
            ],
        )
        .must(
            "open, AIA, AB(user) ARU ABRT(0) RTAB(4), closed",
            "InterruptInd in Sta11 (X.228 7.7.4)",
        ),
        open(
            "activity: interrupted with an unknown reason",
            vec![activity_start(1), data(), data_phase(&[0x19, 3, 0x32, 1, 99])],
        )
        .must("open, AIA", ""),
        open(
            "activity: resumed, though nobody began it",
            vec![resume(&[
                &spdu(0x21, &[&spdu(0x29, &[&[2, 1, 5]]), b"\x2a\x013"]),
                &spdu(0x29, &[&[2, 1, 6]]),
            ])],
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(2), closed",
            "no activity 5 with a confirmed checkpoint 3 (X.228 7.8.1)",
        ),
        open(
            "activity: resumed at checkpoint 0",
            vec![resume(&[
                &spdu(0x21, &[&spdu(0x29, &[&[2, 1, 5]]), b"\x2a\x010"]),
                &spdu(0x29, &[&[2, 1, 6]]),
            ])],
        )
        .must(
            "open, AB(user) ARU ABRT(0) RTAB(2), closed",
            "no activity 5 with a confirmed checkpoint 0 (X.228 7.8.1)",
        ),
        open(
            "activity: resumed without linking information",
            vec![resume(&[&spdu(0x29, &[&[2, 1, 6]])])],
        )
        .must(
            "open, AB(protocol error), closed",
            "linking information of ACTIVITY RESUME is missing (X.225 8.3)",
        ),
        open(
            "activity: release within",
            vec![
                activity_start(1),
                dt(&spdu(
                    9,
                    &[&[0x11, 1, 1], &spdu(0xc1, &[&user_data(1, &[0x62, 3, 0x80, 1, 0])])],
                )),
            ],
        )
        .must("open, AB(protocol error), closed", "unexpected Fn in Sta713 (X.225 A.4.1.2)"),
        open("activity: control given within", vec![activity_start(1), dt(&[0x15, 0])])
            .must("open, AB(protocol error), closed", "unexpected Gtc in Sta713 (X.225 A.4.1.2)"),
        open(
            "activity: ended twice",
            vec![
                activity_start(1),
                rttr(&external(&message(&envelope(), b"x"))),
                activity_end("1"),
                activity_end("1"),
            ],
        )
        .must(
            "open, AEA(1), AB(protocol error), closed",
            "unexpected Ae in Sta713 (X.225 A.4.1.2)",
        ),
        open(
            "activity: begun a thousand times and discarded",
            (0..1_000)
                .flat_map(|n| [activity_start(n as u8 | 1), data_phase(&[0x39, 3, 0x32, 1, 0])])
                .collect(),
        )
        .must("open, ADA x1000", ""),
    ]
}

#[test]
fn spdus() {
    play(&cases());
}
