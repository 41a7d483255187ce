//! P3-style associations, both ends ours: bind, remote operations both ways, unbind.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

mod pair;

/// The mode of P1's associations.
const MODE: osi::api::Mode = osi::api::Mode::Normal;

use bytes::Bytes;
use osi::api::{AbortReason, Config, Indication, Payload, Problem, RefuseReason, Request};
use osi::profiles::abstract_syntax::{mase_88, mdse_88, msse, mts};
use pair::{A, ARGUMENT, B, Notified, Pair, RESULT, p3, unit};
use std::time::Duration;

fn invoke(invoke: i64, argument: Payload) -> Request {
    Request::Invoke { invoke, syntax: msse(), operation: 3, argument }
}

fn bytes_of(unit: &Payload) -> Vec<u8> {
    (0..unit.length()).map(|at| pair::unit_octet(unit, at)).collect()
}

fn release(pair: &mut Pair, side: usize) {
    pair.ask(side, Request::Release);
    pair.run_for(Duration::from_secs(60));
    for side in &pair.sides {
        assert!(
            side.has_indication(|i| matches!(i, Indication::Released)),
            "{:#?}",
            side.indicated
        );
        assert!(side.closed && side.stack.deadline().is_none());
        assert!(!side.has_indication(|i| matches!(i, Indication::Aborted { .. })));
    }
}

fn last_data(pair: &Pair, side: usize) -> Vec<u8> {
    let data = pair.sides[side].indicated.iter().rev().find_map(|t| match t {
        Notified::Data { octets, last: true } => Some(octets.clone()),
        _ => None,
    });
    data.unwrap()
}

#[test]
fn bind_invoke_result_unbind() {
    for piece in [1, 3, 50, usize::MAX] {
        let mut pair = Pair::new(p3(), p3());
        pair.pipe.piece = piece;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        let Some(Indication::Open { bind, syntaxes, .. }) =
            pair.sides[B].find(|i| matches!(i, Indication::Open { .. }))
        else {
            panic!("{}", pair.log());
        };
        assert_eq!(bind, ARGUMENT);
        assert!(syntaxes.contains(&mts()) && syntaxes.contains(&mase_88()));
        assert!(
            pair.sides[A]
                .has_indication(|i| matches!(i, Indication::Opened { bind, .. } if bind == RESULT))
        );
        let argument = unit(3_000);
        pair.ask(A, invoke(1, argument.clone()));
        pair.run();
        assert!(
            pair.sides[B]
                .has_indication(|i| matches!(i, Indication::Invoked { invoke: 1, operation: 3 }))
        );
        assert_eq!(last_data(&pair, B), bytes_of(&argument));
        let result = Payload::whole(&[0x30, 3, 2, 1, 9][..]);
        pair.ask(B, Request::Result { invoke: 1, operation: 3, result: result.clone() });
        pair.run();
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::Returned { invoke: 1 })));
        assert_eq!(last_data(&pair, A), bytes_of(&result));
        release(&mut pair, A);
    }
}

/// The responder invokes too (delivery), in another context, while an invocation of the initiator
/// is open under the same identifier.
#[test]
fn both_ends_invoke() {
    let mut pair = Pair::open(p3(), p3());
    pair.ask(A, invoke(7, unit(10)));
    let delivery = Request::Invoke {
        invoke: 7,
        syntax: mdse_88(),
        operation: 5,
        argument: Payload::whole(&[5, 0][..]),
    };
    pair.ask(B, delivery);
    pair.run();
    assert!(
        pair.sides[A]
            .has_indication(|i| matches!(i, Indication::Invoked { invoke: 7, operation: 5 }))
    );
    pair.ask(A, Request::Result { invoke: 7, operation: 5, result: Payload::default() });
    pair.ask(B, Request::Error { invoke: 7, error: 6, parameter: Bytes::from_static(&[2, 1, 4]) });
    pair.run();
    assert!(pair.sides[B].has_indication(|i| matches!(i, Indication::Returned { invoke: 7 })));
    let empty = pair.sides[B]
        .indicated
        .iter()
        .any(|t| matches!(t, Notified::Data { octets, last: true } if octets.is_empty()));
    assert!(empty, "a result without octets has an empty last piece: {}", pair.log());
    assert!(
        pair.sides[A]
            .has_indication(|i| matches!(i, Indication::ReturnedError { invoke: 7, error: 6 }))
    );
    assert_eq!(last_data(&pair, A), [2, 1, 4]);
    release(&mut pair, B);
}

#[test]
fn errors_without_parameter_and_rejects() {
    let mut pair = Pair::open(p3(), p3());
    pair.ask(A, invoke(1, Payload::default()));
    pair.ask(A, invoke(2, unit(5)));
    pair.run();
    pair.ask(B, Request::Error { invoke: 1, error: 2, parameter: Bytes::new() });
    let problem = Problem { kind: 1, value: 2 };
    pair.ask(B, Request::Reject { invoke: Some(2), problem });
    pair.run();
    assert!(
        pair.sides[A]
            .has_indication(|i| matches!(i, Indication::ReturnedError { invoke: 1, error: 2 }))
    );
    let rejected = pair.sides[A].has_indication(
        |i| matches!(i, Indication::Rejected { invoke: Some(2), problem: p } if *p == problem),
    );
    assert!(rejected, "{}", pair.log());
    // Both identifiers are free again.
    pair.ask(A, invoke(1, unit(5)));
    pair.ask(A, invoke(2, unit(5)));
    pair.run();
    assert_eq!(pair.sides[B].count(|i| matches!(i, Indication::Invoked { .. })), 4);
    release(&mut pair, A);
}

#[test]
fn faults_of_our_own_user_are_rejected_to_it() {
    let mut pair = Pair::open(p3(), p3());
    pair.ask(A, invoke(1, unit(5)));
    pair.ask(A, invoke(1, unit(5)));
    let foreign = osi::profiles::abstract_syntax::mtse();
    let argument = unit(5);
    pair.ask(A, Request::Invoke { invoke: 2, syntax: foreign, operation: 3, argument });
    pair.run();
    let problems: Vec<(i64, u8, i64)> = pair.sides[A]
        .indicated
        .iter()
        .filter_map(|t| match t {
            Notified::Indication(Indication::Rejected { invoke: Some(i), problem }) => {
                Some((*i, problem.kind, problem.value))
            }
            _ => None,
        })
        .collect();
    assert_eq!(problems, [(1, 1, 0), (2, 1, 1)]);
    assert_eq!(pair.sides[B].count(|i| matches!(i, Indication::Invoked { .. })), 1);
    release(&mut pair, A);
}

/// A large argument one way while results go the other; a small APDU waits its turn behind it.
#[test]
fn a_large_argument_streams() {
    let mut pair = Pair::open(p3(), p3());
    pair.ask(A, invoke(1, unit(5)));
    pair.run();
    let large = unit(20_000_000);
    pair.sides[B].expects = Some(large.clone());
    pair.sides[B].received = 0;
    pair.ask(A, invoke(2, large.clone()));
    pair.ask(B, Request::Result { invoke: 1, operation: 3, result: unit(100_000) });
    pair.ask(A, Request::Release);
    pair.run();
    assert_eq!(pair.sides[B].received, large.length());
    assert!(pair.sides[A].pulled.iter().all(|(_, max)| *max <= 64 * 1024));
    assert!(pair.sides[B].has_indication(|i| matches!(i, Indication::Released)), "{}", pair.log());
}

#[test]
fn a_bind_is_refused() {
    for bind_error in [Some(Bytes::from_static(&[2, 1, 1])), None] {
        let mut pair = Pair::new(p3(), p3());
        pair.sides[B].accepts = false;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        let reason = if bind_error.is_some() { RefuseReason::Bind } else { RefuseReason::Busy };
        pair.ask(B, Request::Refuse { reason, bind_error: bind_error.clone() });
        pair.run_for(Duration::from_secs(60));
        let Some(Indication::Refused { reason: observed, bind_error: error, .. }) =
            pair.sides[A].find(|i| matches!(i, Indication::Refused { .. }))
        else {
            panic!("{}", pair.log());
        };
        assert_eq!((observed, error), (reason, bind_error));
        assert!(pair.sides[A].closed && pair.sides[B].closed);
    }
}

#[test]
fn aborts_and_content_that_fails() {
    for (side, request) in [
        (A, Request::Abort(AbortReason::UserError)),
        (B, Request::Abort(AbortReason::UserError)),
        (A, Request::ContentFailed),
    ] {
        let mut pair = Pair::open(p3(), p3());
        pair.sides[A].supplies = false;
        pair.ask(A, invoke(1, unit(500_000)));
        pair.run();
        pair.ask(side, request);
        pair.run_for(Duration::from_secs(60));
        for side in &pair.sides {
            assert_eq!(side.count(|i| matches!(i, Indication::Aborted { .. })), 1);
            assert!(side.closed);
        }
    }
}

#[test]
fn both_ends_release_at_once() {
    let mut pair = Pair::open(p3(), p3());
    pair.ask(A, Request::Release);
    pair.ask(B, Request::Release);
    pair.run_for(Duration::from_secs(60));
    for side in &pair.sides {
        assert!(
            side.has_indication(|i| matches!(i, Indication::Released)),
            "{:#?}",
            side.indicated
        );
        assert!(side.closed);
    }
}

#[test]
fn contexts_are_negotiated_one_by_one() {
    let mut less: Config = p3();
    less.contexts.retain(|c| c.abstract_syntax != mdse_88());
    // The responder lacks it, or the initiator does.
    for (initiator, responder) in [(p3(), less.clone()), (less, p3())] {
        let mut pair = Pair::open(initiator, responder);
        let opened = pair.sides[B].find(|i| matches!(i, Indication::Open { .. }));
        let Some(Indication::Open { syntaxes, .. }) = opened else { panic!("{}", pair.log()) };
        assert_eq!((syntaxes.len(), syntaxes.contains(&mdse_88())), (4, false));
        for side in [A, B] {
            let argument = unit(5);
            pair.ask(
                side,
                Request::Invoke { invoke: 1, syntax: mdse_88(), operation: 5, argument },
            );
        }
        pair.ask(A, invoke(2, unit(5)));
        pair.run();
        for side in &pair.sides {
            assert!(
                side.has_indication(|i| matches!(i, Indication::Rejected { invoke: Some(1), .. }))
            );
        }
        assert!(
            pair.sides[B].has_indication(|i| matches!(i, Indication::Invoked { invoke: 2, .. }))
        );
        release(&mut pair, A);
    }
}
