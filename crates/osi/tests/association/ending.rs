//! Aborts, requests out of place, and waits that end.

use crate::pair::{A, ARGUMENT, B, Pair, p1, unit};
use crate::{transfer, whole};
use bytes::Bytes;
use osi::api::{AbortReason, Indication, Input, Request};
use std::time::Duration;

#[test]
fn either_end_aborts() {
    for side in [A, B] {
        let mut pair = Pair::open(p1(), p1());
        pair.sides[A].supplies = false;
        pair.ask(A, transfer(unit(1_000)));
        pair.run();
        pair.ask(side, Request::Abort(AbortReason::UserError));
        pair.run_for(Duration::from_secs(60));
        let indicated = pair.sides[1 - side].find(|i| matches!(i, Indication::Aborted { .. }));
        let Some(Indication::Aborted { reason, .. }) = indicated else { panic!("{}", pair.log()) };
        assert_eq!(reason, Some(AbortReason::UserError));
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferFailed { .. })));
        for side in &pair.sides {
            assert!(side.closed);
            assert_eq!(side.count(|i| matches!(i, Indication::Aborted { .. })), 1);
        }
    }
}

#[test]
fn a_request_out_of_place_ends_the_association_and_is_named() {
    for (side, request, expected) in [
        (B, transfer(unit(1)), "TransferReq in Sta11"),
        (B, Request::Release, "CloseReq in Sta11"),
        (A, Request::Accept { bind: Bytes::new() }, "OpenRspAccept in Sta10"),
        (
            A,
            Request::Reject { invoke: None, problem: osi::api::Problem { kind: 0, value: 0 } },
            "ROSE",
        ),
    ] {
        let mut pair = Pair::open(p1(), p1());
        pair.ask(side, request);
        pair.run_for(Duration::from_secs(60));
        let indicated = pair.sides[side].find(|i| matches!(i, Indication::Aborted { .. }));
        let Some(Indication::Aborted { detail, .. }) = indicated else { panic!("{}", pair.log()) };
        assert!(detail.contains(expected), "{detail}");
        assert!(pair.sides[1 - side].has_indication(|i| matches!(i, Indication::Aborted { .. })));
    }
}

#[test]
fn answers_that_come_too_late_are_dropped() {
    let mut pair = Pair::open(p1(), p1());
    for request in [
        Request::Content(Bytes::from_static(b"x")),
        Request::ContentFailed,
        Request::Interrupt,
        Request::Stored { octets: 5 },
        Request::TransferSecured,
        Request::TransferRefused(AbortReason::UserError),
    ] {
        pair.ask(A, request.clone());
        pair.ask(B, request);
    }
    pair.run();
    whole(&mut pair, &unit(5));
}

#[test]
fn nobody_waits_for_ever() {
    // The responder's user does not answer: the initiator's setup timer.
    let mut pair = Pair::new(p1(), p1());
    pair.sides[B].accepts = false;
    pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
    pair.run_for(Duration::from_secs(120));
    assert!(
        pair.sides[A].has_indication(|i| matches!(i, Indication::Aborted { .. })),
        "{}",
        pair.log()
    );
    assert!(pair.sides[A].closed);
    // Nobody connects, or sends half a TPKT.
    let mut responder = Pair::new(p1(), p1());
    responder.sides[B].stack.handle(responder.now, Input::Bytes(&[3, 0]));
    responder.run_for(Duration::from_secs(120));
    assert!(responder.sides[B].closed);
    assert!(responder.sides[B].has_indication(|i| matches!(i, Indication::Aborted { .. })));
}
