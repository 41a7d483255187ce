//! Transfers, their checkpoints and windows.

use crate::pair::{A, ARGUMENT, B, Notified, Pair, RESULT, p1, reference, rtse, unit};
use crate::{bytes_of, transfer, whole};
use bytes::Bytes;
use osi::api::{AbortReason, Indication, Request};
use std::time::Duration;

#[test]
fn open_transfer_release() {
    let mut pair = Pair::open(p1(), p1());
    let Some(Indication::Open { bind, application_context, reference: named, syntaxes, .. }) =
        pair.sides[B].find(|i| matches!(i, Indication::Open { .. }))
    else {
        panic!("{}", pair.log());
    };
    assert_eq!((&bind[..], named), (ARGUMENT, reference(b"assoc-1")));
    assert_eq!(application_context.to_string(), "2.6.0.1.6");
    assert_eq!(syntaxes.len(), 3);
    let Some(Indication::Opened { bind, .. }) =
        pair.sides[A].find(|i| matches!(i, Indication::Opened { .. }))
    else {
        panic!("{}", pair.log());
    };
    assert_eq!(bind, RESULT);
    whole(&mut pair, &unit(1_000));
}

#[test]
fn several_transfers_and_small_ones() {
    let mut pair = Pair::open(p1(), p1());
    for size in [0, 1, 127, 128, 65_536 - 20, 65_536, 200_000] {
        let unit = unit(size);
        pair.ask(A, transfer(unit.clone()));
        pair.run();
        let data = pair.sides[B].indicated.iter().rev().find_map(|t| match t {
            Notified::Data { octets, last: true } => Some(octets.clone()),
            _ => None,
        });
        assert_eq!(data, Some(bytes_of(&unit)), "{size}");
    }
    assert_eq!(pair.sides[A].count(|i| matches!(i, Indication::TransferConfirmed)), 7);
    let starts: Vec<i64> = pair.sides[B]
        .indicated
        .iter()
        .filter_map(|t| match t {
            Notified::Indication(Indication::TransferStart { activity }) => Some(*activity),
            _ => None,
        })
        .collect();
    assert_eq!(starts, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn checkpoints_follow_what_was_negotiated() {
    // Proposed, supported, then the checkpoints a transfer of 10 KiB and its frame has.
    for (proposed, supported, expected) in
        [(1, 64, 10), (0, 2, 5), (4, 0, 0), (0, 0, 0), (64, 4, 2)]
    {
        let a = rtse(p1(), |p| p.checkpoint_size = proposed);
        let b = rtse(p1(), |p| p.checkpoint_size = supported);
        let mut pair = Pair::open(a, b);
        whole(&mut pair, &unit(10 * 1024));
        let checkpoints = pair.sides[B].count(|i| matches!(i, Indication::Checkpoint { .. }));
        assert_eq!(checkpoints, expected, "{proposed} proposed, {supported} supported");
        let progress = pair.sides[A].count(|i| matches!(i, Indication::Progress(_)));
        assert_eq!(progress, expected);
    }
}

#[test]
fn indefinite_lengths_and_every_piece_size() {
    for indefinite_lengths in [false, true] {
        for piece in [1, 2, 3, 7, 100, usize::MAX] {
            let config = rtse(p1(), |p| {
                p.indefinite_lengths = indefinite_lengths;
                p.checkpoint_size = 1;
            });
            let mut pair = Pair::new(config, p1());
            pair.pipe.piece = piece;
            pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
            pair.run();
            whole(&mut pair, &unit(3_000));
        }
    }
}

/// With the window full the sender stops: no octet more is asked for, and none is sent.
#[test]
fn a_withheld_acknowledgement_stops_the_sender() {
    for window in [1, 3] {
        let small = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, window));
        let mut pair = Pair::open(small.clone(), small);
        pair.sides[B].stores = false;
        let unit = unit(100_000);
        pair.ask(A, transfer(unit.clone()));
        pair.run();
        let checkpoint = |i: &Indication| matches!(i, Indication::Checkpoint { .. });
        assert_eq!(pair.sides[B].count(checkpoint), window as usize);
        let pulled: usize = pair.sides[A].pulled.iter().map(|(_, max)| max).sum();
        assert!(pulled <= 1024 * window as usize, "{pulled}");
        let (carried, received) = (pair.carried_to(B), pair.sides[B].received);
        // It waits as long as it may, and goes on when the confirm comes late.
        pair.run_for(Duration::from_secs(100));
        assert_eq!((pair.carried_to(B), pair.sides[B].received), (carried, received));
        pair.ask(B, Request::Stored { octets: 900 });
        pair.run();
        assert_eq!(pair.sides[B].count(checkpoint), window as usize, "900 is before the first");
        pair.ask(B, Request::Stored { octets: received });
        pair.run();
        assert_eq!(pair.sides[B].count(checkpoint), 2 * window as usize);
        let confirms = pair.sides[A].count(|i| matches!(i, Indication::Progress(_)));
        assert_eq!(confirms, 1, "one confirm covers all earlier checkpoints");
        pair.sides[B].stores = true;
        let received = pair.sides[B].received;
        pair.ask(B, Request::Stored { octets: received });
        pair.run();
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
        assert_eq!(pair.sides[B].all_data(), bytes_of(&unit));
    }
}

#[test]
fn a_sender_gives_up_on_a_silent_receiver() {
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 1));
    let mut pair = Pair::open(config.clone(), config);
    pair.ask(A, transfer(unit(1500)));
    pair.sides[B].stores = false;
    pair.run();
    pair.ask(B, Request::Stored { octets: 1024 });
    pair.run_for(Duration::from_secs(119));
    assert!(!pair.sides[A].has_indication(|i| matches!(i, Indication::Aborted { .. })));
    pair.run_for(Duration::from_secs(200));
    let failed = pair.sides[A].find(|i| matches!(i, Indication::TransferFailed { .. }));
    let Some(Indication::TransferFailed { resume: Some(point), in_doubt, .. }) = failed else {
        panic!("{}", pair.log());
    };
    assert!(in_doubt, "its end was sent, and not answered");
    assert_eq!((point.serial, point.activity, point.reference), (1, 1, reference(b"assoc-1")));
    let indicated = pair.sides[B].find(|i| matches!(i, Indication::Aborted { .. }));
    let Some(Indication::Aborted { reason, .. }) = indicated else { panic!("{}", pair.log()) };
    assert_eq!(reason, Some(AbortReason::TemporaryProblem));
    assert!(pair.sides[A].closed && pair.sides[B].closed);
}

#[test]
fn a_transfer_is_only_confirmed_once_secured() {
    let mut pair = Pair::open(p1(), p1());
    pair.sides[B].stores = false;
    pair.ask(A, transfer(unit(10)));
    pair.run();
    assert!(pair.sides[B].has_indication(|i| matches!(i, Indication::TransferEnd)));
    assert!(!pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
    pair.ask(B, Request::TransferSecured);
    pair.run();
    assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
}
