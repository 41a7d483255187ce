//! P1 associations, both ends ours: what the user sees, whatever the pipe does.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

mod ending;
mod failures;
mod interruption;
mod octets;
mod opening;
#[path = "../pair/mod.rs"]
mod pair;
mod recovery;
mod transfers;
mod turn;

use osi::api::{Indication, Payload, Request};
use pair::{A, B, Pair};
use std::time::Duration;

fn transfer(payload: Payload) -> Request {
    Request::Transfer { payload, resume: None }
}

fn bytes_of(unit: &Payload) -> Vec<u8> {
    (0..unit.length()).map(|at| pair::unit_octet(unit, at)).collect()
}

/// Open, one transfer, release: at the end both know it.
fn whole(pair: &mut Pair, unit: &Payload) {
    pair.sides[B].expects = Some(unit.clone());
    pair.ask(A, transfer(unit.clone()));
    pair.run();
    assert!(
        pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)),
        "{}",
        pair.log()
    );
    assert_eq!(pair.sides[B].received, unit.length());
    pair.ask(A, Request::Release);
    pair.run_for(Duration::from_secs(60));
    for side in &pair.sides {
        assert!(
            side.has_indication(|i| matches!(i, Indication::Released)),
            "{:#?}",
            side.indicated
        );
        assert!(side.closed);
        assert!(!side.has_indication(|i| matches!(i, Indication::Aborted { .. })));
        assert_eq!(side.stack.deadline(), None);
    }
}

/// Answers so many requests for content.
fn supply(pair: &mut Pair, count: usize) {
    for _ in 0..count {
        let (offset, max) = *pair.sides[A].pulled.last().unwrap();
        let content: Vec<u8> = (offset..offset + max as u64).map(pair::content_octet).collect();
        pair.ask(A, Request::Content(content.into()));
        pair.run();
    }
}
