//! Transfers that are interrupted or paused, and go on in the same association.

use crate::pair::{A, B, Notified, Pair, Side, p1, rtse, unit};
use crate::{bytes_of, supply, transfer};
use osi::api::{Indication, Request};
use std::time::Duration;

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
