//! What a transfer needs.

use crate::pair::{A, B, Pair, content_octet, unit_octet};
use osi::api::{Indication, Payload, Request};
use std::time::Duration;

pub(crate) fn transfer(payload: Payload) -> Request {
    Request::Transfer { payload, resume: None }
}

pub(crate) fn bytes_of(unit: &Payload) -> Vec<u8> {
    (0..unit.length()).map(|at| unit_octet(unit, at)).collect()
}

/// Open, one transfer, release: at the end both know it.
pub(crate) fn whole(pair: &mut Pair, unit: &Payload) {
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
pub(crate) fn supply(pair: &mut Pair, count: usize) {
    for _ in 0..count {
        let (offset, max) = *pair.sides[A].pulled.last().unwrap();
        let content: Vec<u8> = (offset..offset + max as u64).map(content_octet).collect();
        pair.ask(A, Request::Content(content.into()));
        pair.run();
    }
}
