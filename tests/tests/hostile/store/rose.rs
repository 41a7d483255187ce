//! ROSE over P7, operations of other ports, credentials, submissions.

use super::super::case::Case;
use super::super::octets::*;
use super::{ALERT, ALL, DELETE, FETCH, FIRST, LIST, MODIFY, REGISTER, SUMMARIZE};
use super::{MASE, MRSE, MSSE, apdu, invoke, invoke_in};
use fuzz::seeds::p3;
use fuzz::targets::node::STORED;

pub(super) fn cases() -> Vec<Case> {
    [roses(), ports(), submissions()].into_iter().flatten().collect()
}

/// FINISH with an RLRQ.
pub(super) fn finish() -> Vec<u8> {
    dt(&spdu(9, &[&[0x11, 1, 1], &spdu(0xc1, &[&user_data(1, &[0x62, 3, 0x80, 1, 0])])]))
}

fn roses() -> Vec<Case> {
    let sends = |name: &str, octets: Vec<u8>| Case::reader(name).sends(octets);
    let flood: Vec<u8> = (0..100).flat_map(|n| invoke(n, FETCH, &FIRST)).collect();
    vec![
        sends("store: a list", invoke(1, LIST, &ALL)).must("open, DT result", ""),
        sends("store: an invoke identifier twice", invoke(1, LIST, &ALL).repeat(2)).must(
            "open, DT reject(1, 0), DT result",
            "rose: RORJ InvokeProblem duplicateInvocation to the peer's APDU of",
        ),
        sends("store: a negative invoke identifier", invoke(0xff, LIST, &ALL))
            .must("open, DT result", ""),
        sends(
            "store: an invoke identifier of 9 octets",
            apdu(MRSE, &tlv(0xa1, &[&[2, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 1, LIST], &ALL])),
        )
        .must(
            "open, DT reject(0, 1)",
            "rose: RORJ GeneralProblem mistypedAPDU to the peer's APDU (X.229 7.5.1,",
        ),
        sends("store: no invoke identifier", apdu(MRSE, &tlv(0xa1, &[&ALL]))).must(
            "open, DT reject(0, 1)",
            "rose: RORJ GeneralProblem mistypedAPDU to the peer's APDU (X.229 7.5.1,",
        ),
        sends(
            "store: a linked invocation",
            apdu(MRSE, &tlv(0xa1, &[&[2, 1, 7, 0x80, 1, 1, 2, 1, LIST], &ALL])),
        )
        .must(
            "open, DT reject(1, 5)",
            "rose: RORJ InvokeProblem unrecognisedLinkedID to the peer's APDU of",
        ),
        sends(
            "store: an operation of 9 octets",
            apdu(MRSE, &tlv(0xa1, &[&[2, 1, 1, 2, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9], &ALL])),
        )
        .must(
            "open, DT reject(0, 1)",
            "rose: RORJ GeneralProblem mistypedAPDU to the peer's APDU of invocation",
        ),
        sends("store: a negative operation", invoke(1, 0xff, &ALL))
            .must("open, DT reject(1, 1)", ""),
        sends("store: operation 0", invoke(1, 0, &ALL)).must("open, DT reject(1, 1)", ""),
        sends("store: operation 99", invoke(1, 99, &ALL)).must("open, DT reject(1, 1)", ""),
        sends("store: an alert of its own", invoke(1, ALERT, &[0x31, 5, 0xa0, 3, 2, 1, 1]))
            .must("open, DT reject(1, 1)", ""),
        sends("store: modify, which is of 1994", invoke(1, MODIFY, &ALL))
            .must("open, DT reject(1, 1)", ""),
        sends("store: a list in the context of submission", invoke_in(MSSE, 1, LIST, &ALL))
            .must("open, DT result", ""),
        sends("store: a list in an undefined context", invoke_in(77, 1, LIST, &ALL)).must(
            "open, AB(user) ARP(6, 7), closed",
            "presentation: Td: presentation-context-identifier: invalid a context",
        ),
        sends(
            "store: a result of nothing",
            apdu(MRSE, &[0xa2, 10, 2, 1, 9, 0x30, 5, 2, 1, ALERT, 5, 0]),
        )
        .must(
            "open, DT reject(2, 0)",
            "rose: RORJ ReturnResultProblem unrecognisedInvocation to the peer's",
        ),
        sends("store: an error of nothing", apdu(MRSE, &[0xa3, 6, 2, 1, 9, 2, 1, 27])).must(
            "open, DT reject(3, 0)",
            "rose: RORJ ReturnErrorProblem unrecognisedInvocation to the peer's APDU",
        ),
        sends("store: a reject of nothing", apdu(MRSE, &[0xa4, 6, 2, 1, 9, 0x81, 1, 0]))
            .must("open", ""),
        sends(
            "store: a thousand rejects of nobody",
            apdu(MRSE, &[0xa4, 5, 5, 0, 0x80, 1, 2]).repeat(1_000),
        )
        .must("open", ""),
        sends("store: an APDU of no known kind", apdu(MRSE, &[0xa9, 3, 2, 1, 1])).must(
            "open, DT reject(0, 0)",
            "rose: RORJ GeneralProblem unrecognisedAPDU to the peer's APDU (X.229",
        ),
        sends(
            "store: an APDU of 2^31 octets",
            data(&[
                0x61, 0x80, 0x30, 0x80, 2, 1, MRSE, 0xa0, 0x80, 0xa1, 0x84, 0x7f, 0xff, 0xff, 0xff,
                2, 1, 1,
            ]),
        )
        .must(
            "open, AB(user) ARP(6, 7), closed",
            "presentation: Td: User-data: truncated: the element is longer than what",
        ),
        sends("store: a hundred fetches at once", flood)
            .must("open, DT reject(1, 3) x92, DT result x8", ""),
        sends(
            "store: released in the middle of a fetch",
            [invoke(1, FETCH, &FIRST), finish()].concat(),
        )
        .must("open, DN RLRE, closed", "unbound"),
        sends("store: a fetch and gone", invoke(1, FETCH, &FIRST)).hangs_up().must(
            "open, DT result, closed",
            "transport: the TCP connection was closed (X.224 6.8)",
        ),
        sends("store: a list behind the release", [finish(), invoke(1, LIST, &ALL)].concat())
            .must("open, DN RLRE, closed", "unbound"),
        sends("store: half an argument, then silence", half(&invoke(1, LIST, &ALL.repeat(20))))
            .waits(600)
            .must(
                "open, AB(user) ARU ABRT(0), closed",
                "rose: aborted by us, TemporaryProblem: an argument did not come in time",
            ),
        sends("store: half an argument, then gone", half(&invoke(1, LIST, &ALL.repeat(20))))
            .hangs_up()
            .must("open, closed", "transport: the TCP connection was closed (X.224 6.8)"),
        Case::reader("store: an argument an octet in ten seconds")
            .trickles(invoke(1, LIST, &ALL.repeat(20)), std::time::Duration::from_secs(10))
            .must(
                "open, AB(user) ARU ABRT(0), closed",
                "rose: aborted by us, TemporaryProblem: an argument did not come in time",
            ),
    ]
}

/// The first half of a TSDU, without its end.
fn half(packet: &[u8]) -> Vec<u8> {
    let tsdu = packet.get(7..).unwrap_or_default();
    dt_part(tsdu.get(..tsdu.len() * 2 / 3).unwrap_or_default())
}

// ----- other ports -------------------------------------------------------------------------------

/// What belongs to P3 on an association of P7, and the reverse.
fn ports() -> Vec<Case> {
    let sends = |name: &str, context, operation, argument: &[u8]| {
        Case::reader(name).sends(invoke_in(context, 1, operation, argument))
    };
    let p3 = |name: &str, operation, argument: &[u8]| {
        Case::user(name).sends(invoke(1, operation, argument))
    };
    vec![
        sends("store: register of P3", MASE, 1, &[0x31, 0]).must("open, DT result", ""),
        sends("store: delivery-control", MASE, 2, &[0x31, 0]).must("open, DT reject(1, 1)", ""),
        sends("store: message-delivery", MRSE, 5, &[0x30, 0]).must("open, DT reject(1, 1)", ""),
        sends("store: report-delivery", MRSE, 6, &[0x31, 0]).must("open, DT reject(1, 1)", ""),
        sends("store: cancel of an INTEGER", MSSE, 7, &[2, 1, 7]).must("open, DT reject(1, 2)", ""),
        sends(
            "store: cancel of what was never submitted",
            MSSE,
            7,
            &tlv(0x64, &[&domain(b"HERE"), &tlv(0x16, &[b"NOTHING.1"])]),
        )
        .must("open, DT error 8", ""),
        sends("store: a probe of NULL", MSSE, 4, &[5, 0])
            .must("open, DT reject(1, 2)", "invalid primitive form, constructed is required"),
        sends("store: change-credentials of nothing", MASE, 8, &[0x31, 0])
            .must("open, DT reject(1, 2)", ""),
        sends(
            "store: change-credentials to strong ones",
            MASE,
            8,
            &tlv(
                0x31,
                &[
                    &tlv(0xa0, &[&tlv(0x16, &[b"secret"])]),
                    &tlv(0xa1, &[&tlv(0xa0, &[&[0x31, 0]])]),
                ],
            ),
        )
        .must("open, DT error 6", ""),
        p3("rose: summarize of P7", SUMMARIZE, &ALL).must("open, DT reject(1, 1)", ""),
        p3("rose: list of P7", LIST, &ALL).must("open, DT reject(1, 1)", ""),
        p3("rose: fetch of P7", FETCH, &FIRST).must("open, DT reject(1, 1)", ""),
        p3("rose: delete of P7", DELETE, &ALL).must("open, DT reject(1, 1)", ""),
        p3("rose: register-MS of P7", REGISTER, &[0x31, 0]).must("open, DT reject(1, 1)", ""),
        p3("rose: alert of P7", ALERT, &[0x31, 5, 0xa0, 3, 2, 1, 1])
            .must("open, DT reject(1, 1)", ""),
    ]
}

// ----- submissions -------------------------------------------------------------------------------

fn submissions() -> Vec<Case> {
    let good = p3::submission_of(STORED);
    let submits =
        |name: &str, argument: &[u8]| Case::reader(name).sends(invoke_in(MSSE, 1, 3, argument));
    let whole = invoke_in(MSSE, 1, 3, &good);
    vec![
        submits("store: a submission", &good).must("open, DT result", "submitted:"),
        submits("store: a submission in the name of another", &p3::good_submission())
            .must("open, DT error 2", "originator-name is not the bound user's"),
        submits("store: a submission that is NULL", &[5, 0])
            .must("open, DT reject(1, 2)", "argument: unexpected [UNIVERSAL 5]"),
        submits("store: a submission of a cut envelope", &good[..good.len() / 3]).must(
            "open, DT reject(0, 1)",
            "rose: RORJ GeneralProblem mistypedAPDU to the peer's APDU of invocation",
        ),
        Case::reader("store: a submission that is never finished")
            .sends(half(&whole))
            .waits(600)
            .must(
                "open, AB(user) ARU ABRT(0), closed",
                "rose: aborted by us, TemporaryProblem: an argument did not come in time",
            ),
        Case::reader("store: a submission that is never finished, behind a fetch")
            .sends([invoke(2, FETCH, &FIRST), half(&whole)].concat())
            .waits(600)
            .must(
                "open, DT result, AB(user) ARU ABRT(0), closed",
                "rose: aborted by us, TemporaryProblem: an argument did not come in time",
            ),
        Case::reader("store: half a submission, then gone")
            .sends(half(&whole))
            .hangs_up()
            .must("open, closed", "transport: the TCP connection was closed (X.224 6.8)"),
        Case::reader("store: half a submission, then a list")
            .sends(half(&whole))
            .sends(invoke(2, LIST, &ALL))
            .must(
                "open, AB(user) ARP(6, 7), closed",
                "truncated: the element is longer than what holds it (X.690 8.1.3)",
            ),
    ]
}
