//! A Reliable Transfer Server of 1984, in both roles, one way and both ways: RTSE on session alone (X.410 1984),
//! in literal octets. The daemon has `profile = "x410-1984"` for it.

use super::blue_book::read;
use super::daemon::{BLAKE, Here, SOON, assert_delivered};
use super::peer::{Peer, Wire as _};
use super::reader::{self, Tsdu};
use super::stack::sha256;
use super::taker::confirm;
use super::tcp::Tcp;

const PROFILE: &str = r#"profile = "x410-1984""#;

fn sent_to_blake(here: &Here) -> String {
    let arguments = ["--to", BLAKE, "--precedence", "flash", "--size", "5kB"];
    here.site.send("Rossi", &arguments).unwrap().messages[0].content_sha256.clone()
}

/// Takes a transfer: the user data of its S-DATA are the APDU. Confirms each checkpoint and the end.
fn take(peer: &mut Peer<Tcp>) -> Vec<u8> {
    let mut apdu = Vec::new();
    loop {
        let (tsdu, _) = reader::tsdu(peer, "a transfer");
        match &tsdu[..] {
            [1, 0, 1, 0, octets @ ..] | [1, 0, 1, 3, 0x19, 1, _, octets @ ..] => {
                apdu.extend_from_slice(octets);
                continue;
            }
            _ => {}
        }
        match reader::kind(&tsdu) {
            Tsdu::ActivityStart { .. } => assert!(apdu.is_empty()),
            Tsdu::MinorSync { serial } => confirm(peer, 0x32, &serial),
            Tsdu::ActivityEnd { serial } => {
                confirm(peer, 0x2a, &serial);
                return apdu;
            }
            other => panic!("{other:?} in a transfer"),
        }
    }
}

#[test]
fn it_calls_one_way_and_is_called_for_the_report() {
    let here = Here::with(PROFILE);
    here.connect().play(&["x410-call-one-way", "x410-transfer", "x410-release"]).expect_end();
    assert_delivered(&here.receive(1), &["x410-transfer"]);
    let mut peer = here.accept();
    peer.play(&["x410-answer"]);
    let apdu = take(&mut peer);
    assert_eq!(apdu[0], 0xa1, "a report");
    read(&apdu);
    peer.play(&["x410-answer-release"]).expect_end();
}

/// It calls, sends, gives the turn for the report, gets it back and releases.
#[test]
fn it_calls_both_ways_and_the_turn_goes_there_and_back() {
    let here = Here::with(PROFILE);
    let mut peer = here.connect();
    peer.play(&["x410-call", "x410-transfer-segments"]);
    assert_delivered(&here.receive(1), &["x410-transfer-segments"]);
    peer.play(&["x410-turn-asked", "turn-given"]);
    let apdu = take(&mut peer);
    assert_eq!(apdu[0], 0xa1, "a report");
    read(&apdu);
    peer.play(&["x410-turn-please", "turn-back", "x410-release"]).expect_end();
}

/// It is called, and has the turn when the association is idle: the daemon asks for it to release.
#[test]
fn it_is_called_both_ways_and_sends_in_its_turn() {
    let here = Here::with(PROFILE);
    let sent = sent_to_blake(&here);
    let mut peer = here.accept();
    peer.play(&["x410-answer"]);
    let message = read(&take(&mut peer));
    assert_eq!(sha256(&message.content), sent);
    peer.play(&["x410-turn-please", "turn-back", "x410-transfer"]);
    assert_delivered(&here.receive(1), &["x410-transfer"]);
    peer.play(&["x410-turn-asked", "turn-given"]);
    assert_eq!(take(&mut peer)[0], 0xa1, "the report");
    peer.play(&["x410-answer-release"]).expect_end();
}

/// It refuses two-way alternate, and is called in a monologue at once.
#[test]
fn it_is_called_one_way_after_it_refused_both_ways() {
    let here = Here::with(PROFILE);
    let sent = sent_to_blake(&here);
    here.accept().play(&["x410-refuse-dialogue"]).expect_end();
    let mut peer = here.accept();
    peer.play(&["x410-answer-one-way"]);
    assert_eq!(sha256(&read(&take(&mut peer)).content), sent);
    here.site.wait_until("confirmed", SOON, |s| s.counters.transferred == 1).unwrap();
    peer.play(&["x410-answer-release"]).expect_end();
}

/// Closes TCP without a release, as initiator and as responder.
#[test]
fn it_closes_and_every_message_arrives_once() {
    let here = Here::with(PROFILE);
    let mut peer = here.connect();
    peer.play(&["x410-call-one-way", "x410-transfer"]).wire.close();
    peer.expect_closed();
    assert_delivered(&here.receive(1), &["x410-transfer"]);
    for _ in 0..2 {
        let mut peer = here.accept();
        peer.play(&["x410-answer"]);
        take(&mut peer);
        peer.wire.close();
        peer.expect_closed();
        if here.status().counters.transferred == 1 {
            sent_to_blake(&here);
        }
    }
    here.site.wait_until("both", SOON, |s| s.counters.transferred == 2).unwrap();
}
