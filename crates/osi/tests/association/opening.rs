//! Associations that are refused.

use crate::pair::{self, A, ARGUMENT, B, Pair, p1};
use bytes::Bytes;
use osi::api::{Indication, RefuseReason, Request};
use std::time::Duration;

#[test]
fn refusals_have_their_reason() {
    let busy = Bytes::from_static(&[2, 1, 0]);
    for (reason, bind_error, expected) in [
        (RefuseReason::Busy, None, RefuseReason::Busy),
        (RefuseReason::Bind, Some(busy), RefuseReason::Bind),
        (RefuseReason::ApplicationContext, None, RefuseReason::ApplicationContext),
        (RefuseReason::Unspecified, None, RefuseReason::Unspecified),
    ] {
        let mut pair = Pair::new(p1(), p1());
        pair.sides[B].accepts = false;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        pair.ask(B, Request::Refuse { reason, bind_error: bind_error.clone() });
        pair.run_for(Duration::from_secs(60));
        let Some(Indication::Refused { reason, bind_error: observed, detail }) =
            pair.sides[A].find(|i| matches!(i, Indication::Refused { .. }))
        else {
            panic!("{}", pair.log());
        };
        assert_eq!((reason, observed), (expected, bind_error), "{detail}");
        assert!(pair.sides[A].closed && pair.sides[B].closed);
    }
}

#[test]
fn the_responder_refuses_what_it_does_not_support() {
    let mut other_context = p1();
    other_context.application_contexts = vec![osi::profiles::application_context::mts_access()];
    let mut no_transfer = p1();
    no_transfer.contexts.pop();
    let mut wrong_selector = p1();
    wrong_selector.remote.presentation = Some(Bytes::from_static(b"other"));
    let mut ours = p1();
    ours.local.presentation = Some(Bytes::from_static(b"mta"));
    for (initiator, expected) in [
        (other_context, "application context 2.6.0.1.0"),
        (no_transfer, "2.6.0.2.7 was not proposed"),
        (wrong_selector, "called-presentation-selector"),
        (pair::p3(), "2.6.0.2.12 was not proposed"),
    ] {
        let mut pair = Pair::new(initiator, ours.clone());
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run_for(Duration::from_secs(60));
        assert!(
            pair.sides[A].has_indication(|i| matches!(i, Indication::Refused { .. })),
            "{}",
            pair.log()
        );
        let Some(Indication::Aborted { detail, .. }) =
            pair.sides[B].find(|i| matches!(i, Indication::Aborted { .. }))
        else {
            panic!("{}", pair.log());
        };
        assert!(detail.contains(expected), "{detail}");
        assert!(!pair.sides[B].has_indication(|i| matches!(i, Indication::Open { .. })));
    }
}
