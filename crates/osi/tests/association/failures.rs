//! Transfers that fail and leave the association.

use crate::pair::{A, B, Pair, p1, rtse, unit};
use crate::{supply, transfer, whole};
use osi::api::{AbortReason, Indication, Request};

#[test]
fn content_that_fails_discards_the_transfer_and_keeps_the_association() {
    // Within a checkpoint interval, and where the rest is too long to fill up.
    for (checkpoint, size) in [(64, 300_000), (0, 3_000_000)] {
        let config = rtse(p1(), |p| p.checkpoint_size = checkpoint);
        let mut pair = Pair::open(config.clone(), config);
        pair.sides[A].supplies = false;
        pair.ask(A, transfer(unit(size)));
        pair.run();
        supply(&mut pair, 1);
        pair.ask(A, Request::ContentFailed);
        pair.run();
        let failed = pair.sides[A]
            .has_indication(|i| matches!(i, Indication::TransferFailed { resume: None, .. }));
        assert!(failed, "{}", pair.log());
        let stopped = pair.sides[B]
            .has_indication(|i| matches!(i, Indication::TransferStopped { may_resume: false }));
        assert!(stopped, "{}", pair.log());
        pair.sides[A].supplies = true;
        pair.sides[B].received = 0;
        whole(&mut pair, &unit(100));
    }
}

/// What fills up an RTTR is not content: the receiver is never asked to keep it. If neither end remembers the discard,
/// because both lost their power, the transfer is resumed behind octets that are right.
#[test]
fn no_checkpoint_follows_what_fills_up_an_rttr() {
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 3));
    let mut pair = Pair::open(config.clone(), config);
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(unit(5_000)));
    pair.run();
    supply(&mut pair, 2);
    let noted = pair.sides[B].noted.clone();
    assert_eq!(noted.as_ref().map(|(octets, _)| *octets > 1_000), Some(true));
    pair.ask(A, Request::ContentFailed);
    pair.run();
    assert_eq!(pair.sides[B].noted, noted, "{}", pair.log());
    let stopped = pair.sides[B]
        .has_indication(|i| matches!(i, Indication::TransferStopped { may_resume: false }));
    assert!(stopped, "{}", pair.log());
}

#[test]
fn a_refused_transfer_stays_with_the_sender() {
    for when_ended in [false, true] {
        let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 1));
        let mut pair = Pair::open(config.clone(), config);
        pair.sides[B].stores = false;
        pair.ask(A, transfer(unit(if when_ended { 100 } else { 5_000 })));
        pair.run();
        assert_eq!(
            pair.sides[B].has_indication(|i| matches!(i, Indication::TransferEnd)),
            when_ended
        );
        pair.ask(B, Request::TransferRefused(AbortReason::PermanentProblem));
        pair.run();
        // The receiver does not have it, also if its end was sent.
        let failed = pair.sides[A]
            .has_indication(|i| matches!(i, Indication::TransferFailed { in_doubt: false, .. }));
        assert!(failed, "{}", pair.log());
        let stopped =
            pair.sides[B].has_indication(|i| matches!(i, Indication::TransferStopped { .. }));
        assert!(stopped, "{}", pair.log());
        pair.sides[B].stores = true;
        pair.sides[B].received = 0;
        whole(&mut pair, &unit(100));
    }
}

/// Refused in the middle of an RTTR: the sender stops at once, whatever is left of it.
#[test]
fn a_transfer_refused_in_an_rttr_is_cut_short() {
    let config = rtse(p1(), |p| p.checkpoint_size = 0);
    let mut pair = Pair::open(config.clone(), config);
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(unit(10_000_000)));
    pair.run();
    supply(&mut pair, 2);
    pair.ask(B, Request::TransferRefused(AbortReason::TemporaryProblem));
    pair.run();
    assert!(
        pair.sides[A]
            .has_indication(|i| matches!(i, Indication::TransferFailed { resume: None, .. }))
    );
    pair.sides[A].supplies = true;
    pair.sides[B].received = 0;
    whole(&mut pair, &unit(100));
}
