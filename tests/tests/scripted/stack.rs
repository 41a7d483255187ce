//! The cases against our stack in memory.

use super::memory::{Cut, Memory, config};
use super::peer::{Peer, Wire as _};
use super::reader::{self, contains};
use super::taker::{confirm, take_transfer, until_it_waits};
use osi::api::{AbortReason, Config, Request};
use sha2::{Digest as _, Sha256};

/// Every transfer case.
pub(crate) const TRANSFERS: [&str; 8] = [
    "transfer-primitive",
    "transfer-constructed",
    "transfer-checkpoints",
    "transfer-indefinite",
    "transfer-three-dts",
    "transfer-1988",
    "transfer-reordered",
    "transfer-p772",
];

/// A line of `tests/vectors/CONTENTS`.
pub(crate) struct Content {
    pub(crate) local_identifier: String,
    pub(crate) length: u64,
    pub(crate) sha256: String,
}

/// What a transfer case carries.
pub(crate) fn content_of(case: &str) -> Content {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/CONTENTS");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = lines.find(|words| words[0] == case).unwrap_or_else(|| panic!("no {case}"));
    Content {
        local_identifier: line[1].to_owned(),
        length: line[2].parse().unwrap(),
        sha256: line[3].to_owned(),
    }
}

pub(crate) fn sha256(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Plays these cases against our responder.
fn against_responder(cases: &[&str], cut: Cut) -> Peer<Memory> {
    let mut peer = Peer::new(Memory::responder(cut));
    peer.play(cases);
    peer
}

/// Plays these cases against our initiator.
fn against_initiator(config: Config, cases: &[&str]) -> Peer<Memory> {
    let mut peer = Peer::new(Memory::initiator(config, Cut::No));
    peer.play(cases);
    peer
}

/// At every division: one cut at each octet, and all octets one by one.
fn at_every_cut(cases: &[&str], check: impl Fn(&Peer<Memory>)) {
    let whole = against_responder(cases, Cut::No);
    check(&whole);
    check(&against_responder(cases, Cut::Everywhere));
    for at in 1..whole.wire.taken {
        let peer = against_responder(cases, Cut::After(at));
        assert_eq!(peer.wire.user.events, whole.wire.user.events, "cut after {at} octets");
        assert_eq!(peer.wire.user.received, whole.wire.user.received, "cut after {at} octets");
    }
}

/// The transferred octets are an MTS-APDU with the content of the case.
fn check_received(received: &[u8], case: &str) {
    let message = reader::Element::only(received).children();
    let content = message[1].octets();
    let expected = content_of(case);
    assert_eq!(content.len() as u64, expected.length, "{case}");
    assert_eq!(sha256(&content), expected.sha256, "{case}");
    assert!(contains(received, expected.local_identifier.as_bytes()), "{case}");
}

#[test]
fn binds_are_accepted_at_every_cut() {
    for (bind, release) in [
        ("bind-ia5", "release"),
        ("bind-octet", "release-bare"),
        ("bind-twa", "release"),
        ("bind-full", "release-bare"),
        ("bind-extended", "release"),
    ] {
        at_every_cut(&[bind, release], |peer| {
            assert_eq!(peer.wire.user.events, ["Open", "Released"], "{bind}");
        });
    }
}

#[test]
fn a_wrong_password_is_refused_in_every_layer() {
    at_every_cut(&["bind-wrong-password"], |peer| assert!(peer.wire.user.received.is_empty()));
}

#[test]
fn recover_is_refused_and_open_on_a_new_connection_accepted() {
    at_every_cut(&["recover"], |peer| assert_eq!(peer.wire.count("RecoverAsked"), 1));
    let mut peer = against_responder(&["recover"], Cut::No);
    peer.expect_end();
    against_responder(&["bind-ia5", "transfer-primitive", "release"], Cut::No).expect_end();
}

#[test]
fn each_form_of_transfer_is_taken_at_every_cut() {
    for case in TRANSFERS {
        at_every_cut(&["bind-ia5", case], |peer| {
            let [received] = peer.wire.user.received.as_slice() else { panic!("{case}") };
            check_received(received, case);
        });
    }
}

#[test]
fn one_association_carries_them_all() {
    let cases = [&["bind-octet"][..], &TRANSFERS[..], &["release"][..]].concat();
    let peer = against_responder(&cases, Cut::Everywhere);
    assert_eq!(peer.wire.user.received.len(), TRANSFERS.len());
    for (received, case) in peer.wire.user.received.iter().zip(TRANSFERS) {
        check_received(received, case);
    }
}

#[test]
fn a_transfer_without_its_end_is_nothing() {
    let mut peer = against_responder(&["bind-ia5", "transfer-cut"], Cut::No);
    peer.expect_quiet("there is nothing to confirm");
    peer.wire.close();
    assert!(peer.wire.user.received.is_empty());
    assert_eq!(peer.wire.count("Aborted"), 1, "{:?}", peer.wire.user.events);
    peer.expect_closed();
}

#[test]
fn aborts_and_disconnects_end_the_association_and_nothing_else() {
    for end in ["abort-user", "abort-session", "disconnect"] {
        for before in [&["bind-ia5"][..], &["bind-ia5", "transfer-cut"][..]] {
            let cases = [before, &[end]].concat();
            at_every_cut(&cases, |peer| {
                assert!(peer.wire.user.received.is_empty());
                assert_eq!(peer.wire.count("Aborted"), 1, "{end}: {:?}", peer.wire.user.events);
            });
            let mut peer = against_responder(&cases, Cut::No);
            peer.expect_end();
        }
    }
    let peer = against_responder(&["bind-ia5", "abort-user"], Cut::No);
    assert_eq!(peer.wire.count("Aborted Some(TemporaryProblem)"), 1, "{:?}", peer.wire.user.events);
}

/// So many octets that repeat only after a long while.
fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| u8::try_from(n * n / 251 % 251).unwrap()).collect()
}

/// An envelope of our own making: the stack does not look into it.
const ENVELOPE: &[u8] = b"\x64\x08\x63\x00\x16\x04here";

#[test]
fn our_sender_is_understood_and_released() {
    for (case, config) in [
        ("answer", config(64, 16, None)),
        ("answer-none", config(64, 16, None)),
        ("answer-window", config(64, 16, None)),
        ("answer-2048", config(64, 16, None)),
        ("answer-full", config(64, 16, None)),
    ] {
        let mut peer = against_initiator(config, &[case]);
        assert_eq!(peer.wire.user.events, ["Opened"], "{case}");
        let content = octets(10_000);
        peer.wire.transfer(ENVELOPE, content.clone());
        let largest = if case == "answer-2048" { 2_048 + 4 } else { 65_535 };
        let (apdu, parts) = take_transfer(&mut peer, largest);
        let message = reader::message(&apdu);
        assert_eq!(message.content, content, "{case}");
        assert_eq!(message.envelope, ENVELOPE, "{case}");
        if case == "answer-window" {
            assert!(parts.iter().all(|part| *part <= 1_024), "{parts:?} between checkpoints");
        }
        assert_eq!(peer.wire.user.events.last().unwrap(), "TransferConfirmed", "{case}");
        peer.wire.request(Request::Release);
        peer.play(&["answer-release"]);
        assert_eq!(peer.wire.user.events.last().unwrap(), "Released", "{case}");
        peer.expect_end();
    }
}

#[test]
fn busy_is_reported_as_busy() {
    let mut peer = against_initiator(config(63, 3, None), &["answer-busy"]);
    // INTEGER busy(0), the bind error.
    assert_eq!(peer.wire.user.events, ["Refused Bind Some([2, 1, 0])"]);
    peer.expect_end();
}

#[test]
fn a_window_of_one_holds_the_sender_at_one_checkpoint() {
    let mut peer = against_initiator(config(64, 16, None), &["answer-window"]);
    let content = octets(4_000);
    peer.wire.transfer(ENVELOPE, content.clone());
    let mut apdu = Vec::new();
    for turn in 1.. {
        let (checkpoints, end) = until_it_waits(&mut peer, &mut apdu);
        assert!(
            apdu.len() <= (turn + 1) * 1_024,
            "{} octets, unconfirmed since {turn}",
            apdu.len()
        );
        if let Some(end) = end {
            confirm(&mut peer, 0x2a, &end);
            break;
        }
        assert_eq!(checkpoints, [turn.to_string()], "one, and no other before it is confirmed");
        confirm(&mut peer, 0x32, &checkpoints[0]);
    }
    assert_eq!(reader::message(&apdu).content, content);
    assert_eq!(peer.wire.count("TransferConfirmed"), 1);
}

/// Every case in which a transfer is not carried through at once.
#[test]
fn an_interrupted_transfer_goes_on_and_a_discarded_one_does_not() {
    at_every_cut(&["bind-ia5", "interrupt", "discard", "transfer-primitive"], |peer| {
        let [resumed, next] = peer.wire.user.received.as_slice() else {
            panic!("{:?}", peer.wire.user.events)
        };
        check_received(resumed, "resume");
        check_received(next, "transfer-primitive");
        assert_eq!(peer.wire.count("TransferStopped"), 2, "{:?}", peer.wire.user.events);
    });
}

#[test]
fn a_lost_transfer_is_resumed_on_a_new_association() {
    let lost = || {
        let mut peer = against_responder(&["bind-ia5", "transfer-lost"], Cut::No);
        peer.wire.close();
        peer.expect_closed();
        assert!(peer.wire.user.received.is_empty());
        peer.wire
    };
    let mut length = 0;
    let all = [Cut::No, Cut::Everywhere].into_iter();
    for cut in all.chain((1..500).map(Cut::After)) {
        if matches!(cut, Cut::After(at) if at >= length) {
            break;
        }
        let mut peer = Peer::new(lost().after_loss(cut));
        peer.play(&["resume"]);
        let [resumed] = peer.wire.user.received.as_slice() else { panic!("{cut:?}") };
        check_received(resumed, "resume");
        length = peer.wire.taken;
    }
    assert!(length < 500, "not at every cut");
}

#[test]
fn a_window_of_checkpoints_comes_at_once() {
    let mut peer = against_responder(&["bind-ia5", "transfer-window"], Cut::No);
    let mut serials = Vec::new();
    while !peer.wire.is_quiet() {
        let (tsdu, _) = reader::tsdu(&mut peer, "confirms");
        // Please Tokens, then MIA (32) or the confirm of the end (2A), with one digit.
        let [2, 0, code @ (0x32 | 0x2a), 3, 0x2a, 1, serial] = tsdu[..] else {
            panic!("{tsdu:02X?}")
        };
        assert_eq!(code == 0x2a, serial == b'4', "{tsdu:02X?}");
        serials.push(serial);
    }
    assert!(serials.is_sorted_by(|a, b| a < b) && serials.ends_with(b"4"), "{serials:02X?}");
    let [received] = peer.wire.user.received.as_slice() else { panic!("not received") };
    check_received(received, "transfer-window");
}

#[test]
fn the_turn_goes_there_and_back() {
    let mut peer = against_responder(&["bind-twa"], Cut::No);
    peer.wire.request(Request::TurnPlease(0));
    peer.play(&["turn-asked", "turn-given"]);
    assert_eq!(peer.wire.user.events, ["Open", "TurnGiven"]);
    let content = octets(3_000);
    peer.wire.transfer(ENVELOPE, content.clone());
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    assert_eq!(reader::message(&apdu).content, content);
    peer.wire.request(Request::TurnGive);
    peer.play(&["turn-back", "transfer-constructed", "release"]);
    check_received(&peer.wire.user.received[0], "transfer-constructed");
}

#[test]
fn a_transfer_that_is_refused_is_discarded_and_the_next_is_taken() {
    // Ours is refused by the peer.
    let mut peer = against_initiator(config(64, 16, None), &["answer"]);
    peer.wire.transfer(ENVELOPE, octets(3_000));
    while !peer.wire.is_quiet() {
        reader::tsdu(&mut peer, "a transfer");
    }
    peer.play(&["exception"]);
    assert_eq!(peer.wire.count("TransferFailed"), 1, "{:?}", peer.wire.user.events);
    peer.wire.transfer(ENVELOPE, octets(5_000));
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    assert_eq!(reader::message(&apdu).content, octets(5_000));

    // The peer's is refused by us: EXCEPTION DATA, or an abort with RTAB. The peer keeps it.
    let mut responder = Memory::responder(Cut::No);
    responder.user.refuses = Some(AbortReason::TemporaryProblem);
    let mut peer = Peer::new(responder);
    peer.play(&["bind-ia5", "transfer-cut"]);
    let (tsdu, _) = reader::tsdu(&mut peer, "a refusal");
    assert!(matches!(tsdu[..], [2, 0, 0x30, 3, 0x32, 1, _] | [0x19, ..]), "{tsdu:02X?}");
    assert!(peer.wire.user.received.is_empty());
}

#[test]
fn contexts_of_other_numbers_and_order_are_answered_in_their_places() {
    at_every_cut(&["bind-contexts", "transfer-contexts"], |peer| {
        let [received] = peer.wire.user.received.as_slice() else { panic!("not received") };
        check_received(received, "transfer-contexts");
    });
}

/// What comes after a fault, up to the end: SPDUs, or TPDUs where they are not of data.
fn until_the_end(peer: &mut Peer<Memory>) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    loop {
        if peer.wire.is_quiet() {
            peer.wire.close();
        }
        match peer.wire.receive().unwrap() {
            Some(tpkt) if tpkt[5] == 0xf0 => answers.push(tpkt[7..].to_vec()),
            Some(tpkt) => answers.push(tpkt[4..].to_vec()),
            None => return answers,
        }
    }
}

#[test]
fn refusals_of_every_layer_are_reported() {
    for (case, reported) in [
        ("refuse-transport", "Refused Unspecified None"),
        ("refuse-session", "Refused Unspecified None"),
        ("refuse-presentation", "Refused Unspecified None"),
        ("refuse-acse", "Refused ApplicationContext None"),
        ("refuse-transient", "Refused Busy None"),
        ("refuse-abort", "Aborted None"),
        ("refuse-context", "Aborted None"),
    ] {
        let mut peer = against_initiator(config(64, 16, None), &[case]);
        let answers = until_the_end(&mut peer);
        let [event] = peer.wire.user.events.as_slice() else {
            panic!("{case}: {:?}", peer.wire.user.events)
        };
        assert!(event.starts_with(reported), "{case}: {event}");
        // Only what was accepted is aborted (AB, 19).
        let aborted = matches!(answers.as_slice(), [abort] if abort[0] == 0x19);
        assert_eq!(aborted, case == "refuse-context", "{case}: {answers:02X?}");
        assert!(aborted || answers.is_empty(), "{case}: {answers:02X?}");
    }
}

/// ABORT with RTAB in ABRT in ARU where RTSE found it, with ARP where presentation did, without user
/// data and with the octets reflected where session did (X.225 8.3: 11 is the transport disconnect:
/// 03 of the user, 05 a protocol error).
#[test]
fn nonsense_ends_the_association_in_order() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/nonsense");
    let mut reported = String::new();
    let mut cases: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    cases.sort();
    for case in cases {
        let name = format!("nonsense/{case}");
        at_every_cut(&["bind-ia5", &name], |peer| assert!(peer.wire.user.received.is_empty()));
        let mut peer = against_responder(&["bind-ia5", &name], Cut::No);
        let answers = until_the_end(&mut peer);
        let event = peer.wire.user.events.last().unwrap();
        reported.push_str(&format!("{case}: {event}\n  {answers:02X?}\n"));
    }
    insta::assert_snapshot!(reported);
}
