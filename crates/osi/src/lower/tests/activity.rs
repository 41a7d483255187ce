//! Activities: interrupted, discarded, with exceptions, and the turn.

use super::*;

#[test]
fn an_activity_is_interrupted_and_resumed() {
    let mut pair = Pair::rtse();
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    pair.a_then_b(Request::MinorSync);
    pair.b_then_a(Request::MinorSyncResponse { serial: 1 });
    let reason = ExceptionReason::LocalError;
    assert_eq!(
        pair.a_then_b(Request::ActivityInterrupt(reason)),
        [Indication::ActivityInterrupt(reason)]
    );
    assert_eq!(
        pair.b_then_a(Request::ActivityInterruptResponse),
        [Indication::ActivityInterruptConfirm]
    );
    let resume = Resume {
        activity: bytes(&[2, 1, 2]),
        old_activity: activity(),
        serial: 1,
        old_reference: Some(ConnectionReference {
            user: bytes(b"\x04\x01a"),
            ..ConnectionReference::default()
        }),
    };
    assert_eq!(
        pair.a_then_b(Request::ActivityResume(resume.clone())),
        [Indication::ActivityResume(resume)]
    );
    assert_eq!(pair.a_then_b(Request::MinorSync), [Indication::MinorSync { serial: 2 }]);
    let reason = ExceptionReason::NonSpecific;
    assert_eq!(
        pair.a_then_b(Request::ActivityDiscard(reason)),
        [Indication::ActivityDiscard(reason)]
    );
    assert_eq!(
        pair.b_then_a(Request::ActivityDiscardResponse),
        [Indication::ActivityDiscardConfirm]
    );
    assert!(pair.a.lower.owns_tokens());
}

#[test]
fn an_exception_cuts_the_senders_ssdu_short() {
    let mut pair = Pair::connected([Some(128), None], &[usize::MAX], RTSE);
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    pair.a.ask(Request::Data { bytes: bytes(&[9; 700]), last: false });
    pair.run();
    assert!(matches!(&pair.b.indicated()[..], [Indication::Data { last: false, .. }]));
    let misuse = pair.a.refused(Request::MinorSync);
    assert_eq!(misuse.clause, "X.225 7.11.2");

    let reason = ExceptionReason::ReceivingAbilityJeopardized;
    pair.b.ask(Request::ExceptionReport(reason));
    // In transit while the exception is: discarded.
    pair.a.ask(Request::Data { bytes: bytes(&[9; 700]), last: false });
    pair.run();
    assert_eq!(pair.a.indicated(), [Indication::ExceptionReport(reason)]);
    assert_eq!(pair.b.indicated(), []);
    assert_eq!(pair.a.refused(data(b"more")).request, "S-DATA.request");
    assert_eq!(
        pair.a_then_b(Request::ActivityInterrupt(ExceptionReason::NonSpecific)),
        [Indication::ActivityInterrupt(ExceptionReason::NonSpecific)]
    );
    assert_eq!(
        pair.b_then_a(Request::ActivityInterruptResponse),
        [Indication::ActivityInterruptConfirm]
    );
    // The next activity works.
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    assert_eq!(
        pair.a_then_b(data(b"again")),
        [Indication::Data { bytes: bytes(b"again"), last: true }]
    );
}

#[test]
fn an_exception_after_the_end_of_an_activity_crosses_nothing() {
    let mut pair = Pair::rtse();
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    pair.a_then_b(Request::ActivityEnd);
    let reason = ExceptionReason::Unrecoverable;
    assert_eq!(
        pair.b_then_a(Request::ExceptionReport(reason)),
        [Indication::ExceptionReport(reason)]
    );
    assert_eq!(
        pair.a_then_b(Request::ActivityDiscard(reason)),
        [Indication::ActivityDiscard(reason)]
    );
    assert_eq!(
        pair.b_then_a(Request::ActivityDiscardResponse),
        [Indication::ActivityDiscardConfirm]
    );
}

#[test]
fn a_turn_please_right_after_giving_control_waits_for_the_ack() {
    let mut pair = Pair::rtse();
    pair.a.ask(Request::GiveControl);
    pair.a.ask(Request::PleaseTokens { user_data: bytes(b"p") });
    pair.run();
    assert_eq!(
        pair.b.indicated(),
        [Indication::ControlGiven, Indication::TokensPlease { user_data: bytes(b"p") }]
    );
}

#[test]
fn a_discard_cuts_an_ssdu_short() {
    let mut pair = Pair::connected([Some(128), None], &[50], RTSE);
    pair.a_then_b(Request::ActivityStart { activity: activity() });
    pair.a.ask(Request::Data { bytes: bytes(&[9; 200]), last: false });
    let reason = ExceptionReason::LocalError;
    let indicated = pair.a_then_b(Request::ActivityDiscard(reason));
    assert!(
        matches!(&indicated[..], [Indication::Data { last: true, bytes }, Indication::ActivityDiscard(_)]
        if bytes.len() == 121)
    );
}
