//! The turn.

use crate::pair::{self, A, B, Pair, p1, rtse, unit};
use crate::{supply, transfer, whole};
use osi::api::{Dialogue, Indication, Request};

#[test]
fn the_turn_goes_back_and_forth() {
    let mut pair = Pair::open(p1(), p1());
    pair.ask(B, Request::TurnPlease(3));
    pair.run();
    assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TurnPlease(3))));
    pair.ask(A, Request::TurnGive);
    pair.run();
    assert!(pair.sides[B].has_indication(|i| matches!(i, Indication::TurnGiven)));
    let unit = unit(100_000);
    pair.sides[A].expects = Some(unit.clone());
    pair.ask(B, transfer(unit.clone()));
    pair.run();
    assert!(
        pair.sides[B].has_indication(|i| matches!(i, Indication::TransferConfirmed)),
        "{}",
        pair.log()
    );
    assert_eq!(pair.sides[A].received, unit.length());
    pair.ask(A, Request::TurnPlease(0));
    pair.run();
    pair.ask(B, Request::TurnGive);
    pair.run();
    whole(&mut pair, &pair::unit(5));
}

/// The turn is asked for while a transfer is on.
#[test]
fn the_turn_may_be_asked_for_during_a_transfer() {
    let mut pair = Pair::open(p1(), p1());
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(unit(100_000)));
    pair.run();
    pair.ask(B, Request::TurnPlease(1));
    pair.run();
    assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TurnPlease(1))));
    pair.sides[A].supplies = true;
    supply(&mut pair, 1);
    assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
}

#[test]
fn in_monologue_the_turn_stays() {
    let config = rtse(p1(), |p| p.dialogue = Dialogue::Monologue);
    let mut pair = Pair::open(config, p1());
    let dialogue = pair.sides[B].find(|i| matches!(i, Indication::Open { .. }));
    assert!(matches!(dialogue, Some(Indication::Open { dialogue: Dialogue::Monologue, .. })));
    pair.ask(B, Request::TurnPlease(0));
    pair.ask(A, Request::TurnGive);
    pair.run();
    assert!(!pair.sides[A].has_indication(|i| matches!(i, Indication::TurnPlease(_))));
    assert!(!pair.sides[B].has_indication(|i| matches!(i, Indication::TurnGiven)));
    whole(&mut pair, &unit(5));
}
