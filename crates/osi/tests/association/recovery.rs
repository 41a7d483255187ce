//! Lost associations and the transfers that go on in others.

use crate::pair::{
    A, ARGUMENT, B, Notified, Pair, Pipe, Side, p1, reference, rtse, unit, unit_octet,
};
use crate::{bytes_of, transfer};
use bytes::Bytes;
use osi::api::{
    AbortReason, Config, Indication, Mode, Payload, RefuseReason, Request, ResumePoint,
};
use osi::rtse::InterruptedReceive;
use std::time::Duration;

fn resume_point(side: &Side) -> Option<ResumePoint> {
    match side.find(|i| matches!(i, Indication::TransferFailed { .. })) {
        Some(Indication::TransferFailed { resume, .. }) => resume,
        _ => None,
    }
}

/// Takes up the transfer of a lost pair in a new association, as an MTA does.
fn recover(lost: &mut Pair, unit: &Payload, name: &[u8], pipe: Pipe) -> Option<Pair> {
    let kept = lost.sides[B].stack.take_interrupted();
    recover_with(lost, kept, unit, name, pipe)
}

/// The same, with what the receiver kept.
fn recover_with(
    lost: &Pair,
    kept: Option<InterruptedReceive>,
    unit: &Payload,
    name: &[u8],
    pipe: Pipe,
) -> Option<Pair> {
    let point = resume_point(&lost.sides[A])?;
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

/// The receiver's process ends after every so many octets: what it noted at its last checkpoint, and
/// the octets up to there, are enough to go on from.
#[test]
fn a_receiver_that_starts_again_goes_on_from_its_last_checkpoint() {
    let unit = unit(6_000);
    let mut outcomes = [0; 2];
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    for lost_after in (0..9_000).step_by(37) {
        let mut pair = Pair::new(config.clone(), config.clone());
        pair.pipe = Pipe { lost_after: Some(lost_after), piece: 500, ..Pipe::default() };
        pair.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        pair.run();
        if pair.sides[A].has_indication(|i| matches!(i, Indication::Opened { .. })) {
            pair.ask(A, transfer(unit.clone()));
            pair.run();
        }
        pair.lose();
        let over = |i: &Indication| matches!(i, Indication::TransferConfirmed);
        if pair.sides[A].has_indication(over)
            || pair.sides[B].has_indication(|i| matches!(i, Indication::TransferEnd))
        {
            continue;
        }
        let Some((octets, noted)) = pair.sides[B].noted.clone() else { continue };
        let kept = InterruptedReceive::decode(&noted).unwrap();
        assert_eq!(kept.octets(), octets);
        let mut data = pair.sides[B].all_data();
        outcomes[usize::from(data.len() as u64 > octets)] += 1;
        data.truncate(octets as usize);
        // Where no confirm reached the sender, it begins again.
        let again = recover_with(&pair, Some(kept), &unit, b"assoc-2", Pipe::default());
        let Some(recovered) = again else { continue };
        assert!(recovered.sides[A].has_indication(over), "{lost_after}: {}", recovered.log());
        data.extend(recovered.sides[B].all_data());
        assert_eq!(data, bytes_of(&unit), "lost after {lost_after}");
    }
    assert!(outcomes.iter().all(|n| *n > 3), "{outcomes:?}");
}

/// A window of three checkpoints of 1 KiB, none of which the receiver stores by itself.
fn three_in_the_window() -> Pair {
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 3));
    let mut pair = Pair::open(config.clone(), config);
    pair.sides[B].stores = false;
    pair.ask(A, transfer(unit(6_000)));
    pair.run();
    assert_eq!(checkpoints(&pair).len(), 3);
    pair
}

/// The octets of the user's before each checkpoint that the receiver was indicated.
fn checkpoints(pair: &Pair) -> Vec<u64> {
    let octets = |notified: &Notified| match notified {
        Notified::Indication(Indication::Checkpoint { octets }) => Some(*octets),
        _ => None,
    };
    pair.sides[B].indicated.iter().filter_map(octets).collect()
}

/// Stores so much, which the sender learns.
fn store(pair: &mut Pair, octets: u64) {
    pair.ask(B, Request::Stored { octets });
    pair.run();
}

/// Loses a pair and resumes its transfer in another, with checkpoints of so many KiB; the receiver stores none by
/// itself.
fn resumed(lost: &mut Pair, name: &[u8], (checkpoint_size, window): (u32, u32)) -> Pair {
    lost.lose();
    let kept = lost.sides[B].stack.take_interrupted();
    let point = resume_point(&lost.sides[A]).unwrap();
    let config = Config { reference: reference(name), ..p1() };
    let config = rtse(config, |p| (p.checkpoint_size, p.window) = (checkpoint_size, window));
    let mut pair = Pair::new(config.clone(), config);
    pair.sides[B].stores = false;
    pair.ask(A, Request::Recover { reference: point.reference.clone(), received: None });
    pair.run();
    pair.ask(B, Request::AcceptRecover(kept));
    pair.run();
    pair.ask(A, Request::Transfer { payload: unit(6_000), resume: Some(point) });
    pair.run();
    let goes_on = pair.sides[B].has_indication(|i| matches!(i, Indication::TransferResumed { .. }));
    assert!(goes_on, "{}", pair.log());
    pair
}

/// Stores all that comes; what all the pairs received is the unit.
fn finish(before: &[&Pair], mut last: Pair) {
    last.sides[B].stores = true;
    store(&mut last, u64::MAX);
    let confirmed = last.sides[A].has_indication(|i| matches!(i, Indication::TransferConfirmed));
    assert!(confirmed, "{}", last.log());
    let mut data: Vec<u8> = before.iter().flat_map(|pair| pair.sides[B].all_data()).collect();
    data.extend(last.sides[B].all_data());
    assert_eq!(data, bytes_of(&unit(6_000)));
}

#[test]
fn only_checkpoints_before_what_is_stored_are_confirmed() {
    let mut pair = three_in_the_window();
    let first = checkpoints(&pair)[0];
    store(&mut pair, first);
    pair.lose();
    assert_eq!(resume_point(&pair.sides[A]).map(|point| point.serial), Some(1));
}

/// The confirms of the second and third checkpoint are lost. In the next association checkpoints are longer: the one that
/// is the second there has another place.
#[test]
fn checkpoints_behind_the_one_that_was_resumed_from_are_forgotten() {
    let mut first = three_in_the_window();
    let stored = checkpoints(&first);
    store(&mut first, stored[0]);
    first.ask(B, Request::Stored { octets: stored[2] });
    let mut second = resumed(&mut first, b"assoc-2", (2, 1));
    let stored = checkpoints(&second)[0];
    store(&mut second, stored);
    let third = resumed(&mut second, b"assoc-3", (1, 1));
    finish(&[&first, &second], third);
}

/// A checkpoint between octets that come again is before them, not behind all that had come before the loss.
#[test]
fn a_checkpoint_within_what_comes_again_has_its_own_place() {
    let mut first = three_in_the_window();
    let stored = checkpoints(&first)[0];
    store(&mut first, stored);
    let mut second = resumed(&mut first, b"assoc-2", (1, 1));
    let stored = checkpoints(&second)[0];
    store(&mut second, stored);
    let third = resumed(&mut second, b"assoc-3", (1, 1));
    finish(&[&first, &second], third);
}

/// Storing takes time: the note on a checkpoint may be written when more has come.
#[test]
fn the_note_on_a_checkpoint_is_the_same_when_more_has_come() {
    let pair = three_in_the_window();
    let reached = checkpoints(&pair);
    let came = pair.sides[B].all_data().len() as u64;
    assert!(reached[1] < came);
    for octets in reached {
        let noted = pair.sides[B].stack.at_checkpoint(octets).unwrap();
        assert_eq!(noted.octets(), octets);
    }
}

/// Whatever is stored, reading it back neither fails loudly nor gives more than the limits allow.
#[test]
fn what_a_receiver_noted_is_checked_when_it_is_read_back() {
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    let mut pair = Pair::open(config.clone(), config);
    pair.ask(A, transfer(unit(6_000)));
    pair.run();
    let (octets, noted) = pair.sides[B].noted.clone().unwrap();
    let state = InterruptedReceive::decode(&noted).unwrap();
    assert_eq!((state.octets(), state.encode()), (octets, noted.clone()));
    for end in 0..noted.len() {
        assert_eq!(InterruptedReceive::decode(&noted[..end]), None);
    }
    assert_eq!(InterruptedReceive::decode(&[&noted[..], &[0]].concat()), None);
    for at in 0..noted.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = noted.clone();
            changed[at] = value;
            if let Some(state) = InterruptedReceive::decode(&changed) {
                let _ = (state.serial(), state.reference(), state.is_completed());
            }
        }
    }
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

/// In the other mode the octets before the checkpoint would have another frame: the sender begins again.
#[test]
fn a_transfer_is_not_resumed_in_the_other_mode() {
    let unit = unit(6_000);
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    let mut lost = Pair::new(config.clone(), config.clone());
    lost.pipe.lost_after = Some(5_000);
    lost.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
    lost.run();
    lost.ask(A, transfer(unit.clone()));
    lost.run();
    let kept = lost.sides[B].stack.take_interrupted();
    let point = resume_point(&lost.sides[A]).expect("a confirmed checkpoint");
    let mode = match crate::MODE {
        Mode::Normal => Mode::X410 { protocol: Some(Mode::P1_1988) },
        Mode::X410 { .. } => Mode::Normal,
    };
    let config = Config { mode, reference: reference(b"assoc-2"), ..config };
    let mut pair = Pair::new(config.clone(), config);
    pair.ask(A, Request::Recover { reference: point.reference.clone(), received: None });
    pair.run();
    pair.ask(B, Request::AcceptRecover(kept));
    pair.run();
    pair.ask(A, Request::Transfer { payload: unit, resume: Some(point) });
    pair.run();
    let aborted = pair.sides[A].find(|i| matches!(i, Indication::Aborted { .. }));
    let Some(Indication::Aborted { reason, .. }) = aborted else { panic!("{}", pair.log()) };
    assert_eq!(reason, Some(AbortReason::UnrecognizedActivity));
    assert!(resume_point(&pair.sides[A]).is_none(), "it is sent again from its first octet");
}

/// A sender whose content cannot be read fills up what it has announced; if it is cut off before the discard, its next
/// attempt has other octets behind the checkpoint. What it sent before is not what the receiver keeps.
#[test]
fn other_octets_behind_the_checkpoint_are_not_the_transfer() {
    let unit = unit(6_000);
    let octets: Vec<u8> = (0..unit.length()).map(|at| unit_octet(&unit, at)).collect();
    let config = rtse(p1(), |p| (p.checkpoint_size, p.window) = (1, 2));
    let begin = |lost_after: u64, octets: Vec<u8>| {
        let mut lost = Pair::new(config.clone(), config.clone());
        lost.pipe.lost_after = Some(lost_after);
        lost.ask(A, Request::Open { bind: Bytes::from_static(ARGUMENT) });
        lost.run();
        lost.ask(A, transfer(Payload::whole(octets)));
        lost.run();
        let kept = lost.sides[B].stack.take_interrupted();
        Some((resume_point(&lost.sides[A])?, kept?))
    };
    let mut noticed = 0;
    for lost_after in (3_000..6_000).step_by(211) {
        let Some((point, _)) = begin(lost_after, octets.clone()) else { continue };
        let known = usize::try_from(point.octets).unwrap();
        let mut filled = octets.clone();
        filled[known..].fill(0);
        let (point, kept) = begin(lost_after, filled).expect("as before");
        if kept.octets() <= known as u64 {
            continue; // it has nothing of the zeros
        }
        let config = Config { reference: reference(b"assoc-2"), ..config.clone() };
        let mut pair = Pair::new(config.clone(), config);
        pair.ask(A, Request::Recover { reference: point.reference.clone(), received: None });
        pair.run();
        pair.ask(B, Request::AcceptRecover(Some(kept)));
        pair.run();
        pair.ask(
            A,
            Request::Transfer { payload: Payload::whole(octets.clone()), resume: Some(point) },
        );
        pair.run();
        noticed += 1;
        let aborted = pair.sides[A].find(|i| matches!(i, Indication::Aborted { .. }));
        let Some(Indication::Aborted { reason, .. }) = aborted else { panic!("{}", pair.log()) };
        assert_eq!(reason, Some(AbortReason::UnrecognizedActivity));
        assert!(!pair.sides[B].has_indication(|i| matches!(i, Indication::TransferEnd)));
        assert!(resume_point(&pair.sides[A]).is_none(), "it is sent again from its first octet");
        assert!(pair.sides[B].stack.take_interrupted().is_none());
    }
    assert!(noticed > 5, "{noticed}");
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
