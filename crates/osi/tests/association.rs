//! P1 associations, both ends ours: what the user sees, whatever the pipe does.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, reason = "of the module shared by the tests, each uses its part")]

mod pair;

use bytes::Bytes;
use osi::api::{
    AbortReason, Dialogue, Indication, Input, Payload, RefuseReason, Request, ResumePoint,
};
use pair::{A, ARGUMENT, B, Notified, Pair, Pipe, RESULT, Side, p1, reference, rtse, unit};
use proptest::prelude::*;
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
    let Some(Indication::TransferFailed { resume: Some(point), .. }) = failed else {
        panic!("{}", pair.log());
    };
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

/// The transfer in progress stops at a checkpoint, another goes first, then it goes on.
#[test]
fn an_interrupted_transfer_goes_on_in_the_same_association() {
    for indefinite_lengths in [false, true] {
        let config = rtse(p1(), |p| {
            p.checkpoint_size = 1;
            p.indefinite_lengths = indefinite_lengths;
        });
        let mut pair = Pair::open(config.clone(), config);
        let long = unit(20_000);
        pair.sides[A].supplies = false;
        pair.ask(A, transfer(long.clone()));
        pair.run();
        supply(&mut pair, 4);
        pair.ask(A, Request::Interrupt);
        supply(&mut pair, 1);
        let Some(Indication::TransferFailed { resume: Some(point), .. }) =
            pair.sides[A].find(|i| matches!(i, Indication::TransferFailed { .. }))
        else {
            panic!("{}", pair.log());
        };
        assert_eq!(point.serial, 5);
        let stopped = pair.sides[B]
            .has_indication(|i| matches!(i, Indication::TransferStopped { may_resume: true }));
        assert!(stopped);

        pair.sides[A].supplies = true;
        pair.ask(A, transfer(unit(10)));
        pair.run();
        pair.ask(A, Request::Transfer { payload: long.clone(), resume: Some(point) });
        pair.run();
        let confirmed = pair.sides[A].count(|i| matches!(i, Indication::TransferConfirmed));
        assert_eq!(confirmed, 2);
        let resumed =
            pair.sides[B].has_indication(|i| matches!(i, Indication::TransferResumed { .. }));
        assert!(resumed);
        // Both units, the long one in two parts with the short one between.
        let parts: Vec<Vec<u8>> = pair.sides[B]
            .indicated
            .iter()
            .filter_map(|t| match t {
                Notified::Data { octets, .. } => Some(octets.clone()),
                Notified::Indication(_) => None,
            })
            .collect();
        let [first, short, second] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!([&first[..], second].concat(), bytes_of(&long));
        assert_eq!(*short, bytes_of(&unit(10)));
    }
}

/// A transfer that is paused stops right behind a checkpoint, stays for as long as it likes, and goes
/// on without an activity being interrupted.
#[test]
fn a_paused_transfer_waits_behind_a_checkpoint_and_goes_on() {
    let config = rtse(p1(), |p| {
        p.checkpoint_size = 1;
        p.transfer_timeout = Duration::from_secs(30);
        p.longest_pause = Duration::from_secs(4_000);
    });
    let mut pair = Pair::open(config.clone(), config);
    let long = unit(20_000);
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(long.clone()));
    pair.run();
    supply(&mut pair, 2);
    pair.ask(A, Request::Pause(true));
    pair.sides[A].supplies = true;
    // What was asked for completes its RTTR; then nothing more is asked for.
    supply(&mut pair, 1);
    let asked = pair.sides[A].pulled.len();
    let carried = pair.carried_to(B);
    pair.run_for(Duration::from_secs(3_600));
    assert_eq!((pair.sides[A].pulled.len(), pair.carried_to(B)), (asked, carried), "silence");
    let points = pair.sides[A].count(|i| matches!(i, Indication::Progress(_)));
    assert!(points >= 1, "stopped behind a confirmed checkpoint");
    assert_eq!(pair.sides[A].count(|i| matches!(i, Indication::Paused)), 1);
    let over = |side: &Side| side.has_indication(|i| matches!(i, Indication::Aborted { .. }));
    assert!(!over(&pair.sides[A]) && !over(&pair.sides[B]), "{}", pair.log());

    pair.ask(A, Request::Pause(false));
    pair.run();
    assert!(
        pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)),
        "{}",
        pair.log()
    );
    assert_eq!(pair.sides[B].all_data(), bytes_of(&long));
    assert!(!pair.sides[B].has_indication(|i| matches!(i, Indication::TransferStopped { .. })));
}

/// Without permission for pauses the receiver gives up if nothing comes; within an RTTR it does so with
/// permission, too.
#[test]
fn a_receiver_waits_longer_only_where_a_sender_may_pause() {
    for (longest, within, gives_up) in
        [(0, false, true), (4_000, true, true), (4_000, false, false)]
    {
        let config = rtse(p1(), |p| {
            p.checkpoint_size = 128;
            p.transfer_timeout = Duration::from_secs(30);
            p.longest_pause = Duration::from_secs(longest);
        });
        // The sender waits for its content without a timer of its own only where it pauses.
        let patient = rtse(config.clone(), |p| p.transfer_timeout = Duration::from_secs(9_999));
        let mut pair = Pair::open(patient, config);
        pair.sides[A].supplies = false;
        pair.ask(A, transfer(unit(600_000)));
        pair.run();
        // 64 KiB at a time: after three of them the second RTTR is half sent.
        supply(&mut pair, 3);
        if !within {
            pair.ask(A, Request::Pause(true));
            supply(&mut pair, 1);
        }
        pair.run_for(Duration::from_secs(3_000));
        let aborted = pair.sides[B].has_indication(|i| matches!(i, Indication::Aborted { .. }));
        assert_eq!(aborted, gives_up, "{longest} s, within an RTTR: {within}: {}", pair.log());
        if !gives_up {
            pair.run_for(Duration::from_secs(2_000));
            assert!(
                pair.sides[B].has_indication(|i| matches!(i, Indication::Aborted { .. })),
                "bounded"
            );
        }
    }
}

#[test]
fn a_paused_transfer_can_be_interrupted_and_one_without_checkpoints_does_not_pause() {
    let config = rtse(p1(), |p| p.checkpoint_size = 1);
    let mut pair = Pair::open(config.clone(), config);
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(unit(20_000)));
    pair.run();
    pair.ask(A, Request::Pause(true));
    supply(&mut pair, 1);
    pair.ask(A, Request::Interrupt);
    pair.run();
    let failed = pair.sides[A].find(|i| matches!(i, Indication::TransferFailed { .. }));
    assert!(
        matches!(failed, Some(Indication::TransferFailed { resume: Some(_), .. })),
        "{failed:?}"
    );

    let config = rtse(p1(), |p| p.checkpoint_size = 0);
    let mut pair = Pair::open(config.clone(), config);
    pair.sides[A].supplies = false;
    pair.ask(A, transfer(unit(200_000)));
    pair.run();
    pair.ask(A, Request::Pause(true));
    pair.sides[A].supplies = true;
    supply(&mut pair, 1);
    assert!(
        pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)),
        "{}",
        pair.log()
    );
    assert!(!pair.sides[A].has_indication(|i| matches!(i, Indication::Paused)));
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
        let failed =
            pair.sides[A].has_indication(|i| matches!(i, Indication::TransferFailed { .. }));
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

fn resume_point(side: &Side) -> Option<ResumePoint> {
    match side.find(|i| matches!(i, Indication::TransferFailed { .. })) {
        Some(Indication::TransferFailed { resume, .. }) => resume,
        _ => None,
    }
}

/// Takes up the transfer of a lost pair in a new association, as an MTA does.
fn recover(lost: &mut Pair, unit: &Payload, name: &[u8], pipe: Pipe) -> Option<Pair> {
    let point = resume_point(&lost.sides[A])?;
    let kept = lost.sides[B].stack.take_interrupted();
    let mut config = p1();
    config.reference = reference(name);
    let config = rtse(config, |p| (p.checkpoint_size, p.window) = (1, 2));
    let mut pair = Pair::new(config.clone(), config);
    pair.pipe = pipe;
    pair.ask(A, Request::Recover { reference: point.reference.clone(), received: None });
    pair.run();
    let asked = pair.sides[B].find(|i| matches!(i, Indication::RecoverAsked { .. }));
    let Some(Indication::RecoverAsked { reference: named, .. }) = asked else {
        return Some(pair);
    };
    assert_eq!(named, point.reference);
    assert!(kept.as_ref().is_some_and(|k| k.is_known_by(&named)));
    pair.ask(B, Request::AcceptRecover(kept));
    pair.run();
    if pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })) {
        pair.ask(A, Request::Transfer { payload: unit.clone(), resume: Some(point) });
        pair.run();
    }
    Some(pair)
}

/// The connection is lost after every so many octets; the transfer continues in a
/// recovered association, and the data of both associations are the unit, each octet once.
#[test]
fn a_lost_association_is_recovered_wherever_it_was_cut() {
    let unit = unit(6_000);
    let mut outcomes = [0; 3];
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    for lost_after in (0..9_000).step_by(37) {
        let mut pair = Pair::new(config.clone(), config.clone());
        pair.pipe.lost_after = Some(lost_after);
        pair.pipe.piece = 500;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        if pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })) {
            pair.ask(A, transfer(unit.clone()));
            pair.run();
        }
        if pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)) {
            outcomes[0] += 1;
            continue;
        }
        pair.lose();
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::Aborted { .. })));
        let indicated = pair.sides[B].all_data();
        let Some(recovered) = recover(&mut pair, &unit, b"assoc-2", Pipe::default()) else {
            outcomes[1] += 1;
            continue;
        };
        outcomes[2] += 1;
        let confirmed =
            recovered.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed));
        assert!(confirmed, "lost after {lost_after}: {}", recovered.log());
        // Where the end was confirmed before the loss, nothing is to be sent again.
        let rest = recovered.sides[B].all_data();
        assert_eq!([indicated, rest].concat(), bytes_of(&unit), "lost after {lost_after}");
    }
    assert!(outcomes.iter().all(|n| *n > 10), "{outcomes:?}");
}

/// Lost twice: before and after a checkpoint was confirmed in the recovered association.
#[test]
fn a_recovered_association_is_recovered_again() {
    let unit = unit(20_000);
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    for second_loss in [900, 1_500, 2_500, 4_000, 8_000] {
        let mut first = Pair::new(config.clone(), config.clone());
        first.pipe = Pipe { lost_after: Some(8_000), piece: 600, ..Pipe::default() };
        first.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        first.run();
        first.ask(A, transfer(unit.clone()));
        first.run();
        first.lose();
        let pipe = Pipe { lost_after: Some(second_loss), piece: 600, ..Pipe::default() };
        let mut second = recover(&mut first, &unit, b"assoc-2", pipe).unwrap();
        second.lose();
        let mut indicated = [first.sides[B].all_data(), second.sides[B].all_data()].concat();
        if !second.sides[B].has_indication(|i| matches!(i, Indication::TransferResumed { .. })) {
            continue;
        }
        let third = recover(&mut second, &unit, b"assoc-3", Pipe::default()).unwrap();
        let confirmed =
            third.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed));
        assert!(confirmed, "{second_loss}: {}", third.log());
        indicated.extend(third.sides[B].all_data());
        assert_eq!(indicated, bytes_of(&unit));
    }
}

/// The end was secured, but its confirm was lost: the resumed transfer is answered with RTAB
/// transferCompleted, which is as good as a confirm.
#[test]
fn a_resumed_transfer_that_was_complete_is_confirmed() {
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 1));
    let mut pair = Pair::open(config.clone(), config);
    let unit = unit(1_500);
    pair.sides[B].stores = false;
    pair.ask(A, transfer(unit.clone()));
    pair.run();
    pair.ask(B, Request::Stored { octets: 1_024 });
    pair.run();
    pair.ask(B, Request::TransferSecured);
    pair.lose();
    let recovered = recover(&mut pair, &unit, b"assoc-2", Pipe::default()).unwrap();
    assert!(recovered.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
    assert!(!recovered.sides[A].has_indication(|i| matches!(i, Indication::TransferFailed { .. })));
    let aborted = recovered.sides[A].find(|i| matches!(i, Indication::Aborted { .. }));
    let Some(Indication::Aborted { reason, .. }) = aborted else { panic!("{}", recovered.log()) };
    assert_eq!(reason, Some(AbortReason::TransferCompleted));
}

#[test]
fn an_unknown_activity_cannot_be_resumed() {
    let mut pair = Pair::open(p1(), p1());
    let point = ResumePoint { reference: reference(b"other"), activity: 9, serial: 4, octets: 77 };
    pair.ask(A, Request::Transfer { payload: unit(100_000), resume: Some(point) });
    pair.run();
    assert!(
        pair.sides[A]
            .has_indication(|i| matches!(i, Indication::TransferFailed { resume: None, .. }))
    );
    let aborted = pair.sides[A].find(|i| matches!(i, Indication::Aborted { .. }));
    let Some(Indication::Aborted { reason, .. }) = aborted else { panic!("{}", pair.log()) };
    assert_eq!(reason, Some(AbortReason::UnrecognizedActivity));
}

/// A peer that cannot recover is opened afresh.
#[test]
fn a_recovery_refused() {
    let mut pair = Pair::new(p1(), p1());
    pair.ask(A, Request::Recover { reference: reference(b"gone"), received: None });
    pair.run();
    assert!(pair.sides[B].has_indication(
        |i| matches!(i, Indication::RecoverAsked { reference: r, .. } if *r == reference(b"gone"))
    ));
    pair.ask(B, Request::Refuse { reason: RefuseReason::CannotRecover, bind_error: None });
    pair.run_for(Duration::from_secs(60));
    let refused = pair.sides[A].has_indication(|i| {
        matches!(i, Indication::Refused { reason: RefuseReason::CannotRecover, .. })
    });
    assert!(refused, "{}", pair.log());
    assert!(pair.sides[A].closed && pair.sides[B].closed);
}

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

/// 200 MB of content that exists nowhere: what is asked for and what is sent stays small.
#[test]
fn a_large_transfer_needs_no_memory() {
    for checkpoint in [0, 64] {
        let config = rtse(p1(), |p| p.checkpoint_size = checkpoint);
        let mut pair = Pair::open(config.clone(), config);
        let unit = unit(200_000_000);
        let largest = large(&mut pair, &unit);
        assert!(largest <= 70_000, "an output of {largest} octets");
        assert!(pair.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed)));
        assert_eq!(pair.sides[B].received, unit.length());
    }
}

/// Carries a unit without recording it: every output goes over as it is made. The largest is given.
fn large(pair: &mut Pair, unit: &Payload) -> usize {
    use osi::api::Output;
    let (now, mut largest) = (pair.now, 0);
    let zeros = Bytes::from(vec![0; 64 * 1024]);
    let [a, b] = &mut pair.sides;
    a.stack.handle(now, Input::Request(transfer(unit.clone())));
    let mut received = 0;
    loop {
        let mut idle = true;
        while let Some(output) = a.stack.poll() {
            idle = false;
            match output {
                Output::Send(bytes) => {
                    largest = largest.max(bytes.len());
                    b.stack.handle(now, Input::Bytes(&bytes));
                }
                Output::Indication(Indication::NeedContent { max, .. }) => {
                    let content = zeros.slice(..max);
                    a.stack.handle(now, Input::Request(Request::Content(content)));
                }
                Output::Indication(i) => a.indicated.push(Notified::Indication(i)),
                Output::Close => panic!("closed"),
            }
        }
        while let Some(output) = b.stack.poll() {
            idle = false;
            let answer = match output {
                Output::Send(bytes) => {
                    a.stack.handle(now, Input::Bytes(&bytes));
                    None
                }
                Output::Indication(Indication::Data { bytes, .. }) => {
                    largest = largest.max(bytes.len());
                    received += bytes.len() as u64;
                    None
                }
                Output::Indication(Indication::Checkpoint { octets }) => {
                    Some(Request::Stored { octets })
                }
                Output::Indication(Indication::TransferEnd) => Some(Request::TransferSecured),
                Output::Indication(_) => None,
                Output::Close => panic!("closed"),
            };
            if let Some(request) = answer {
                b.stack.handle(now, Input::Request(request));
            }
        }
        if idle {
            break;
        }
    }
    b.received = received;
    largest
}

/// The octets of a whole association, replayed to one end with every delivery cut once more at
/// every place, give the same indications.
#[test]
fn every_cut_gives_the_same_indications() {
    for indefinite_lengths in [false, true] {
        let config = rtse(p1(), |p| {
            p.checkpoint_size = 1;
            p.indefinite_lengths = indefinite_lengths;
        });
        let mut pair = Pair::new(config.clone(), config.clone());
        pair.record = true;
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        pair.ask(A, transfer(unit(1_500)));
        pair.run();
        pair.ask(B, Request::TurnPlease(2));
        pair.run();
        pair.ask(A, Request::Release);
        pair.run();
        let transcript = std::mem::take(&mut pair.transcript);
        let whole = format!("{:?}", pair.sides[B].indicated);
        assert!(whole.contains("Released"), "{whole}");
        let total: usize = transcript.iter().filter(|(s, _)| *s == B).map(|(_, b)| b.len()).sum();
        for cut in 1..total {
            assert_eq!(replay(&config, &transcript, cut), whole, "cut at {cut}");
        }
    }
}

/// Replays what was delivered to the responder, one delivery cut at octet `cut` of all.
fn replay(config: &osi::api::Config, transcript: &[(usize, Vec<u8>)], cut: usize) -> String {
    let mut pair = Pair::new(config.clone(), config.clone());
    let mut at = 0;
    for (_, bytes) in transcript.iter().filter(|(s, _)| *s == B) {
        let place = cut.checked_sub(at).filter(|c| *c < bytes.len()).unwrap_or(0);
        let (first, second) = bytes.split_at(place);
        for piece in [first, second] {
            if !piece.is_empty() {
                pair.deliver_to(B, piece);
            }
        }
        at += bytes.len();
    }
    format!("{:?}", pair.sides[B].indicated)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An association whose octets are changed somewhere ends or goes on; it never panics, and
    /// the indicated data of a confirmed unit are that unit.
    #[test]
    fn damaged_octets_do_no_harm(at in 0usize..4_000, value: u8, role: bool) {
        let config = rtse(p1(), |p| p.checkpoint_size = 1);
        let mut pair = Pair::new(config.clone(), config);
        pair.damage = Some((usize::from(role), at, value));
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        if pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })) {
            pair.ask(A, transfer(unit(2_000)));
            pair.run();
        }
        pair.run_for(Duration::from_secs(1_000));
    }

    #[test]
    fn garbage_is_answered(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
        role: bool,
    ) {
        let mut pair = Pair::new(p1(), p1());
        let side = usize::from(role);
        for piece in &pieces {
            pair.deliver_to(side, piece);
        }
        pair.run_for(Duration::from_secs(1_000));
        // An initiator that was asked nothing has nothing to wait for.
        prop_assert!(pair.sides[side].closed || side == A || pieces.concat().is_empty());
    }
}
