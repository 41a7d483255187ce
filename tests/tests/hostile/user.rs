//! Users that go wrong: the P3 bind, ROSE, submissions.

use super::case::{Case, play};
use super::octets::*;
use fuzz::seeds::p3;
use fuzz::targets::node::{self, Site};

/// What opens a P3 association: recorded, TPKT by TPKT.
pub(crate) fn opening() -> Vec<Vec<u8>> {
    let mut user = node::user(&[]);
    user.stay();
    let answer = Site::new().converse(1, &mut user);
    super::packets(&answer)
}

/// A ROSE APDU in a context.
fn apdu(context: u8, octets: &[u8]) -> Vec<u8> {
    data(&user_data(context, octets))
}

/// RO-INVOKE: identifier, operation, argument.
fn invoke(identifier: u8, operation: u8, argument: &[u8]) -> Vec<u8> {
    apdu(5, &tlv(0xa1, &[&[2, 1, identifier, 2, 1, operation], argument]))
}

/// message-submission.
const SUBMIT: u8 = 3;

/// A submission envelope of these members, and a content.
fn submission(members: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &[&tlv(0x31, members), &tlv(4, &[b"content"])])
}

fn to(recipients: &[u8]) -> Vec<Vec<u8>> {
    vec![name(b"HERE"), vec![0x46, 1, 0x16], tlv(0xa1, &[recipients])]
}

fn recipient() -> Vec<u8> {
    tlv(0x31, &[&name(b"THERE"), &[0x80, 2, 3, 8]])
}

fn submits(name: &str, members: &[Vec<u8>]) -> Case {
    let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
    Case::user(name).sends(invoke(1, SUBMIT, &submission(&members)))
}

pub(super) fn cases() -> Vec<Case> {
    [roses(), submissions()].into_iter().flatten().collect()
}

fn roses() -> Vec<Case> {
    let sends = |name: &str, packets: Vec<Vec<u8>>| Case::user(name).sends_all(packets);
    let good = p3::good_submission();
    // The content is longer than the submission.
    let envelope = tlv(0x31, &[&to(&recipient()).concat()]);
    let broken = tlv(0x30, &[&envelope, &[4, 0x7f, b'x', b'y']]);
    let broken = tlv(0xa1, &[&[2, 1, 1, 2, 1, SUBMIT], &broken]);
    vec![
        sends("rose: a good submission", vec![invoke(1, SUBMIT, &good)])
            .must("open, DT result, DT invoke 5", "submitted:"),
        sends(
            "rose: an invoke identifier twice",
            vec![[invoke(1, SUBMIT, &good), invoke(1, SUBMIT, &good)].concat()],
        )
        .must(
            "open, DT reject(1, 0), DT result, DT invoke 5",
            "RORJ InvokeProblem duplicateInvocation to the peer's APDU",
        ),
        sends("rose: an unknown operation", vec![invoke(1, 99, &[5, 0])])
            .must("open, DT reject(1, 1)", ""),
        sends(
            "rose: an operation of ours to invoke",
            vec![apdu(7, &tlv(0xa1, &[&[2, 1, 1, 2, 1, 5, 5, 0]]))],
        )
        .must("open, DT reject(1, 1)", ""),
        sends(
            "rose: an operation in the context of another",
            vec![apdu(7, &tlv(0xa1, &[&[2, 1, 1, 2, 1, SUBMIT], &good]))],
        )
        .must("open, DT result, DT invoke 5", "submitted:"),
        sends(
            "rose: an undefined context",
            vec![apdu(77, &tlv(0xa1, &[&[2, 1, 1, 2, 1, SUBMIT], &good]))],
        )
        .must(
            "open, AB(user) ARP(6, 7), closed",
            "presentation-context-identifier: invalid a context not defined",
        ),
        sends("rose: no argument", vec![invoke(1, SUBMIT, &[])]).must(
            "open, DT reject(1, 2)",
            "APDU: truncated: the element is longer than what holds it",
        ),
        sends("rose: an argument of another type", vec![invoke(1, SUBMIT, &[2, 1, 7])])
            .must("open, DT reject(1, 2)", "argument: unexpected [UNIVERSAL 2]"),
        sends(
            "rose: an invoke identifier of 9 octets",
            vec![apdu(5, &tlv(0xa1, &[&[2, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 1, SUBMIT], &good]))],
        )
        .must(
            "open, DT reject(0, 1)",
            "RORJ GeneralProblem mistypedAPDU to the peer's APDU (X.229",
        ),
        sends(
            "rose: a negative invoke identifier",
            vec![apdu(5, &tlv(0xa1, &[&[2, 1, 0xff, 2, 1, SUBMIT], &good]))],
        )
        .must("open, DT result, DT invoke 5", "submitted:"),
        sends("rose: no invoke identifier", vec![apdu(5, &tlv(0xa1, &[&good[..]]))]).must(
            "open, DT reject(0, 1)",
            "RORJ GeneralProblem mistypedAPDU to the peer's APDU (X.229",
        ),
        sends(
            "rose: a linked invocation",
            vec![apdu(5, &tlv(0xa1, &[&[2, 1, 7, 0x80, 1, 1, 2, 1, SUBMIT], &good]))],
        )
        .must(
            "open, DT reject(1, 5)",
            "RORJ InvokeProblem unrecognisedLinkedID to the peer's APDU",
        ),
        sends(
            "rose: a result of nothing",
            vec![apdu(7, &[0xa2, 10, 2, 1, 9, 0x30, 5, 2, 1, 5, 0x31, 0])],
        )
        .must(
            "open, DT reject(2, 0)",
            "RORJ ReturnResultProblem unrecognisedInvocation to the peer's",
        ),
        sends("rose: an error of nothing", vec![apdu(7, &[0xa3, 6, 2, 1, 9, 2, 1, 6])]).must(
            "open, DT reject(3, 0)",
            "RORJ ReturnErrorProblem unrecognisedInvocation to the peer's",
        ),
        sends("rose: a reject of nothing", vec![apdu(7, &[0xa4, 6, 2, 1, 9, 0x81, 1, 0])])
            .must("open", ""),
        sends(
            "rose: a hundred rejects of nobody",
            vec![apdu(7, &[0xa4, 5, 5, 0, 0x80, 1, 2]); 100],
        )
        .must("open", ""),
        sends("rose: an APDU of no known kind", vec![apdu(5, &[0xa9, 3, 2, 1, 1])]).must(
            "open, DT reject(0, 0)",
            "RORJ GeneralProblem unrecognisedAPDU to the peer's APDU (X.229",
        ),
        sends(
            "rose: an APDU of 2^31 octets",
            vec![data(&[
                0x61, 0x80, 0x30, 0x80, 2, 1, 5, 0xa0, 0x80, 0xa1, 0x84, 0x7f, 0xff, 0xff, 0xff, 2,
                1, 1,
            ])],
        )
        .must(
            "open, AB(user) ARP(6, 7), closed",
            "User-data: truncated: the element is longer than what holds it",
        ),
        sends("rose: an activity, which P3 has not", vec![activity_start(1)])
            .must("open, AB(protocol error), closed", "unexpected As in Sta713 (X.225 A.4.1.2)"),
        sends("rose: a bind in the data phase", vec![apdu(3, &[0xb0, 2, 5, 0])]).must(
            "open, DT reject(0, 0)",
            "RORJ GeneralProblem unrecognisedAPDU to the peer's APDU (X.229",
        ),
        sends(
            "rose: three hundred arguments that break off, then a good one",
            [vec![data(&aligned_data(5, &broken)); 300], vec![invoke(1, SUBMIT, &good)]].concat(),
        )
        .must(
            "open, DT reject(1, 2) x300, DT result, DT invoke 5",
            "submission_refused: truncated: the element is longer than what holds it",
        ),
        sends(
            "rose: two hundred invocations at once",
            vec![(0..200).flat_map(|n| invoke(n as u8 & 0x7f, 99, &[5, 0])).collect()],
        )
        .must(
            "open, DT reject(1, 0) x72, DT reject(1, 1) x128",
            "RORJ InvokeProblem duplicateInvocation to the peer's APDU",
        ),
    ]
}

fn submissions() -> Vec<Case> {
    let with = |name: &str, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut members = to(&recipient());
        change(&mut members);
        submits(name, &members)
    };
    let big = {
        let one = recipient();
        let all = one.repeat(1_000_000);
        let members = to(&all);
        let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        submission(&members)
    };
    vec![
        Case::user("submission: a million recipients").sends(invoke(1, SUBMIT, &big)).must(
            "open, DT error 1",
            "MessageSubmissionEnvelope: longer than the limit of 65536 octets",
        ),
        with("submission: no recipients", &|m| m[2] = vec![0xa1, 0]).must(
            "open, DT reject(1, 2)",
            "per-recipient-fields: invalid per-recipient-fields, 1 or more",
        ),
        with("submission: no member but them", &|m| drop(m.drain(..2)))
            .must("open, DT reject(1, 2)", "originator-name: missing [APPLICATION 0]"),
        with("submission: recipients twice", &|m| m.push(tlv(0xa1, &[&recipient()])))
            .must("open, DT reject(1, 2)", "MessageSubmissionEnvelope: unexpected [1]"),
        with("submission: originator twice", &|m| m.push(name(b"HERE")))
            .must("open, DT reject(1, 2)", "MessageSubmissionEnvelope: unexpected [APPLICATION 0]"),
        with("submission: in another's name", &|m| m[0] = name_of(b"HERE", b"ADMIRAL"))
            .must("open, DT error 2", "originator-name is not the bound user's"),
        with("submission: to nowhere", &|m| {
            m[2] = tlv(0xa1, &[&tlv(0x31, &[&name(b"NOWHERE"), &[0x80, 2, 3, 8]])]);
        })
        .must("open, DT result, DT invoke 6", "no route to this address"),
        with("submission: to a name of 5,000 octets", &|m| {
            m[2] =
                tlv(0xa1, &[&tlv(0x31, &[&name_of(b"THERE", &[b'R'; 5_000]), &[0x80, 2, 3, 8]])]);
        })
        .must("open, DT reject(1, 2)", "personal-name: it has 5000 characters instead of 0 to 256"),
        with("submission: to a name without attributes", &|m| {
            m[2] = tlv(0xa1, &[&tlv(0x31, &[&[0x60, 2, 0x30, 0], &[0x80, 2, 3, 8]])]);
        })
        .must("open, DT error 3", "recipient-name is not an O/R address with country, ADMD and a"),
        with("submission: a content identifier of 500 octets", &|m| {
            m.push(tlv(0x4a, &[&[b'i'; 500]]));
        })
        .must(
            "open, DT reject(1, 2)",
            "content-identifier: it has 500 characters instead of 0 to 64",
        ),
        with("submission: an extension unknown and critical", &|m| {
            m.push(tlv(
                0xa2,
                &[&tlv(0x30, &[&[0x80, 1, 98, 0x81, 2, 0, 0x80], &tlv(0xa2, &[&[5, 0]])])],
            ));
        })
        .must("open, DT error 13", "unsupported critical extension: standard extension 98"),
        with("submission: deferred until the 31st of February", &|m| {
            m.push(b"\x80\x0d260231235959Z".to_vec());
        })
        .must("open, DT reject(1, 2)", "deferred-delivery-time: invalid UTCTime"),
        Case::user("submission: a content beyond the limit")
            .sends(invoke(1, SUBMIT, &{
                let members = to(&recipient());
                tlv(0x30, &[&tlv(0x31, &[&members.concat()]), &tlv(4, &[&vec![b'x'; 200_001]])])
            }))
            .must("open, DT error 1", "content: longer than the limit of 200000 octets"),
        Case::user("submission: half of it, then silence")
            .sends(activity_free_half())
            .waits(600)
            .must(
                "open, AB(user) ARU ABRT(0), closed",
                "rose: aborted by us, TemporaryProblem: an argument did not come in time",
            ),
        Case::user("submission: half of it, then gone")
            .sends(activity_free_half())
            .hangs_up()
            .must("open, closed", "the TCP connection was closed (X.224 6.8)"),
    ]
}

/// Half a submission: a TSDU without its end.
fn activity_free_half() -> Vec<u8> {
    let mut whole = invoke(1, SUBMIT, &submission(&[&to(&recipient()).concat()]));
    whole.truncate(whole.len() - 5);
    let mut tsdu = whole.split_off(7);
    tsdu.truncate(tsdu.len() / 2);
    dt_part(&tsdu)
}

#[test]
fn users() {
    play(&cases());
}
