//! Peers that were called to take a message, and answer wrong: for every answer, the message is
//! theirs only once they confirmed its end.

use super::case::{Case, play};
use super::octets::*;
use fuzz::targets::node;

/// What a good peer answers, TPKT by TPKT: CC, AC, the confirm of the end.
pub(super) fn good() -> Vec<Vec<u8>> {
    super::packets(&node::called())
}

/// A PLEASE TOKENS, empty, and an SPDU: how confirms are sent.
fn confirm(spdu: &[u8]) -> Vec<u8> {
    dt(&[&[2, 0], spdu].concat())
}

pub(super) fn cases() -> Vec<Case> {
    let good = good();
    let (cc, ac) = (&good[0], &good[1]);
    let opening = |name: &str, octets: Vec<u8>| Case::called(name).sends(octets).waits(120);
    let connecting = |name: &str, octets: Vec<u8>| {
        Case::called(name).sends_all(vec![cc.clone(), octets]).waits(120)
    };
    let sending = |name: &str, octets: Vec<u8>| {
        Case::called(name).sends_all(vec![cc.clone(), ac.clone(), octets]).waits(120)
    };
    let mut other = cc.clone();
    other[6..8].copy_from_slice(&[0x55, 0x55]);
    let ac_tsdu = &ac[7..];
    let refuse = |reason: &[u8]| dt(&spdu(0x0c, &[&[0x11, 1, 1], &spdu(0x32, &[reason])]));
    let cpr = |reason: u8| tlv(0x30, &[&[0x8a, 1, reason]]);
    vec![
        Case::called("called: silence instead of CC")
            .waits(120)
            .must("CR, closed", "the CC did not come within the setup timeout (X.224 6.5)"),
        opening("called: CC for another reference", other).must(
            "CR, ER(3), closed",
            "TPDU field destination reference out of range (X.224 13.3)",
        ),
        opening("called: CC of class 4", tpkt(&[6, 0xd0, cc[6], cc[7], 0, 2, 0x40])).must(
            "CR, ER(3), closed",
            "TPDU field class out of range (X.224 13.3): Invalid in Wfcc",
        ),
        opening(
            "called: CC with a larger TPDU size",
            tpkt(&[9, 0xd0, cc[6], cc[7], 0, 2, 0, 0xc0, 1, 0x0f]),
        )
        .must(
            "CR, CN, AB(no reason), closed",
            "ACCEPT or REFUSE did not come within the setup timeout (X.225",
        ),
        opening("called: CR instead of CC", cr())
            .must("CR, ER(2), closed", "Cr in Wfcc (X.224 6.22)"),
        opening("called: DR, congestion", tpkt(&[6, 0x80, cc[6], cc[7], 0, 0, 0x81]))
            .must("CR, closed", "refused: transport: disconnect request, reason 129: remote"),
        opening("called: DR of no known reason", tpkt(&[6, 0x80, cc[6], cc[7], 0, 0, 0xee]))
            .must("CR, closed", "refused: transport: disconnect request, reason 238:"),
        opening("called: ER", tpkt(&[4, 0x70, cc[6], cc[7], 1]))
            .must("CR, closed", "the peer rejected a TPDU, cause 1 (X.224 13.12)"),
        opening("called: DT before CC", dt(ac_tsdu))
            .must("CR, ER(2), closed", "Dt in Wfcc (X.224 6.22)"),
        opening("called: an HTTP answer", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())
            .must("CR, closed", "TPKT version 72, not 3 (RFC 1006 section 6)"),
        connecting("called: CC twice", cc.clone())
            .must("CR, CN, ER(2), closed", "Cc in Open (X.224 6.22)"),
        Case::called("called: silence instead of AC").sends(cc.clone()).waits(120).must(
            "CR, CN, AB(no reason), closed",
            "ACCEPT or REFUSE did not come within the setup timeout (X.225",
        ),
        connecting("called: session refused, no reason", refuse(&[0])).must(
            "CR, CN, closed",
            "refused: session: refused, reason 0: reason not specified",
        ),
        connecting("called: session refused, congestion", refuse(&[1])).must(
            "CR, CN, closed",
            "refused: session: refused, reason 1: temporary congestion",
        ),
        connecting("called: session refused, no such selector", refuse(&[0x81]))
            .must("CR, CN, closed", "refused: session: refused, reason 129: session selector"),
        connecting(
            "called: session refused without a reason code",
            dt(&spdu(0x0c, &[&[0x11, 1, 1]])),
        )
        .must("CR, CN, closed", "refused: session: refused, reason 0: reason not specified"),
        connecting("called: CPR, congestion", refuse(&[&[2][..], &cpr(1)].concat())).must(
            "CR, CN, closed",
            "refused: session: refused, reason 2: rejected by the called",
        ),
        connecting("called: CPR of no known reason", refuse(&[&[2][..], &cpr(99)].concat())).must(
            "CR, CN, closed",
            "refused: session: refused, reason 2: rejected by the called",
        ),
        connecting("called: CPR that is none", refuse(&[&[2][..], &[0x31, 0]].concat())).must(
            "CR, CN, closed",
            "refused: session: refused, reason 2: rejected by the called",
        ),
        connecting("called: AC cut in the middle", dt(&ac_tsdu[..ac_tsdu.len() / 2])).must(
            "CR, CN, AB(protocol error), closed",
            "a parameter is longer than its SPDU (X.225 8.2)",
        ),
        connecting(
            "called: AC without user data",
            dt(&spdu(0x0e, &[&reference(), &accept_item(2, 0), &REQUIREMENTS])),
        )
        .must(
            "CR, CN, AB(user) ARP(6, 1), closed",
            "Cpa: CPA PPDU: truncated: the element is longer than what holds",
        ),
        connecting(
            "called: AC of version 1",
            dt(&spdu(0x0e, &[&reference(), &accept_item(1, 0), &REQUIREMENTS, &[0xc1, 0]])),
        )
        .must(
            "CR, CN, AB(protocol error), closed",
            "ACCEPT: version number is not what was proposed (X.225 7.4.3)",
        ),
        connecting(
            "called: AC of no functional units",
            dt(&spdu(0x0e, &[&reference(), &accept_item(2, 0), &[0x14, 2, 0, 0], &[0xc1, 0]])),
        )
        .must(
            "CR, CN, AB(protocol error), closed",
            "ACCEPT: session user requirements is not what was proposed",
        ),
        connecting("called: CN instead of AC", connect(|_| {}))
            .must("CR, CN, AB(protocol error), closed", "unexpected Cn in Sta02A (X.225 A.4.1.2)"),
        connecting("called: ABORT of the provider", dt(&spdu(0x19, &[&[0x11, 1, 5]])))
            .must("CR, CN, closed", "aborted by the peer's provider: protocol error, reflected []"),
        connecting("called: AC twice", [ac.clone(), ac.clone()].concat())
            .must("CR, CN, AB(protocol error), closed", "unexpected Ac in Sta713 (X.225 A.4.1.2)"),
        connecting(
            "called: AC and an activity of the peer's own",
            [ac.clone(), activity_start(1)].concat(),
        )
        .must("CR, CN, AB(protocol error), closed", "unexpected As in Sta713 (X.225 A.4.1.2)"),
        Case::called("called: silence instead of the confirm")
            .sends_all(vec![cc.clone(), ac.clone()])
            .waits(120)
            .must(
                "CR, CN, AS, DT APDU 04, AE(1), AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta22 (X.228 7.9.1): no answer, and the peer took nothing within the transfer",
            ),
        sending("called: confirm of checkpoint 9", confirm(&spdu(0x32, &[b"\x2a\x019"]))).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Mia in Sta04B (X.225 A.4.1.2)",
        ),
        sending("called: confirm of checkpoint 0", confirm(&spdu(0x32, &[b"\x2a\x010"]))).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Mia in Sta04B (X.225 A.4.1.2)",
        ),
        sending("called: confirm of checkpoint -1", confirm(&spdu(0x32, &[b"\x2a\x02-1"]))).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "serial number of MINOR SYNC ACK out of range (X.225 8.3)",
        ),
        sending("called: confirm of the end with serial 9", confirm(&spdu(0x2a, &[b"\x2a\x019"])))
            .must(
                "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
                "unexpected Aea in Sta04B (X.225 A.4.1.2)",
            ),
        sending("called: confirm of the end without a serial", confirm(&[0x2a, 0])).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "serial number of ACTIVITY END ACK is missing (X.225 8.3)",
        ),
        sending("called: the end confirmed twice", confirm(&spdu(0x2a, &[b"\x2a\x011"])).repeat(2))
            .must(
                "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
                "unexpected Aea in Sta713 (X.225 A.4.1.2)",
            ),
        sending("called: interrupt confirmed that was not asked for", confirm(&[0x1a, 0])).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Aia in Sta04B (X.225 A.4.1.2)",
        ),
        sending("called: discard confirmed that was not asked for", confirm(&[0x3a, 0])).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Ada in Sta04B (X.225 A.4.1.2)",
        ),
        sending("called: an exception of no known reason", confirm(&[0x30, 3, 0x32, 1, 77])).must(
            "CR, CN, AS, DT APDU 04, AE(1), AD, AB(user) ARU ABRT(0) RTAB(3), closed",
            "Timeout in Sta24 (X.228 7.9.1): no answer, and the peer took nothing within the transfer",
        ),
        sending("called: exceptions without end", confirm(&[0x30, 3, 0x32, 1, 1]).repeat(100))
            .must(
                // Once our AD has left, exceptions may have crossed it (X.225 table A-9).
                "CR, CN, AS, DT APDU 04, AE(1), AD, AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta24 (X.228 7.9.1): no answer, and the peer took nothing within the transfer",
            ),
        sending("called: tokens asked for a hundred times", dt(&[2, 3, 0x10, 1, 0x15]).repeat(100))
            .must(
                "CR, CN, AS, DT APDU 04, AE(1), AB(user) ARU ABRT(0) RTAB(3), closed",
                "Timeout in Sta22 (X.228 7.9.1): no answer, and the peer took nothing within the transfer",
            ),
        sending("called: data of its own", data(&user_data(3, &[4, 1, 0]))).must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Dt in Sta04B (X.225 A.4.1.2)",
        ),
        sending(
            "called: FINISH",
            dt(&spdu(9, &[&[0x11, 1, 1], &spdu(0xc1, &[&user_data(1, &[0x62, 3, 0x80, 1, 0])])])),
        )
        .must(
            "CR, CN, AS, DT APDU 04, AE(1), AB(protocol error), closed",
            "unexpected Fn in Sta04B (X.225 A.4.1.2)",
        ),
        sending("called: ABORT of the user", dt(&spdu(0x19, &[&[0x11, 1, 3]])))
            .must("CR, CN, AS, DT APDU 04, AE(1), closed", "acse: ARU without ABRT (X.227 7.3.3)"),
        Case::called("called: gone before the confirm")
            .sends_all(vec![cc.clone(), ac.clone()])
            .hangs_up()
            .must(
                "CR, CN, AS, DT APDU 04, AE(1), closed",
                "the TCP connection was closed (X.224 6.8)",
            ),
    ]
}

#[test]
fn peers_that_were_called() {
    play(&cases());
}
