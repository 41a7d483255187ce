//! A peer with the decoder of an MTA of 1988 ([`super::blue_book`]), in both roles: the daemon has
//! `profile = "x400-1988"` for it.

use super::blue_book::{Read, read};
use super::daemon::{BLAKE, Here, SOON, assert_delivered, on_far};
use super::peer::Peer;
use super::reader;
use super::stack::{content_of, sha256};
use super::taker::take_transfer;
use super::tcp::Tcp;

const PROFILE: &str = r#"profile = "x400-1988""#;

/// internal-trace-information (X.411 figure 2).
const INTERNAL_TRACE: u8 = 38;

/// Takes an APDU and reads it, octet by octet.
fn take(peer: &mut Peer<Tcp>) -> Read {
    let (transferred, _) = take_transfer(peer, 65_535);
    read(&reader::apdu_octets(&transferred))
}

/// Priorities as numbers of 1988: normal(0), non-urgent(1), urgent(2).
#[test]
fn it_reads_messages_of_every_precedence_and_a_probe() {
    let here = Here::with(PROFILE);
    for (precedence, priority) in
        [("override", 2), ("flash", 2), ("immediate", 0), ("priority", 0), ("routine", 1)]
    {
        let arguments = ["--to", BLAKE, "--precedence", precedence, "--size", "3kB"];
        let sent = here.site.send("Rossi", &arguments).unwrap();
        let mut peer = here.accept();
        peer.play(&["answer"]);
        let message = take(&mut peer);
        assert_eq!(sha256(&message.content), sent.messages[0].content_sha256, "{precedence}");
        assert_eq!(message.priority, priority, "{precedence}");
        assert!(message.extensions.contains(&INTERNAL_TRACE), "{message:?}");
        peer.play(&["answer-release"]).expect_end();
    }
    here.site.xuxa("Rossi", &["--json", "probe", "--to", BLAKE]).unwrap();
    let mut peer = here.accept();
    peer.play(&["answer"]);
    assert_eq!(take(&mut peer).content, b"", "a probe has none");
    peer.play(&["answer-release"]).expect_end();
}

/// The far peer is one of 1988 too: what the peer sent it in another form is in that of 1988.
#[test]
fn it_reads_reports_and_what_is_relayed_and_is_read() {
    let here = Here::with(PROFILE);
    here.connect()
        .play(&["bind-ia5", "transfer-indefinite", "relay-modern", "release"])
        .expect_end();
    assert_delivered(&here.receive(1), &["transfer-indefinite"]);
    let mut far = on_far(&here);
    let relayed = take(&mut far);
    assert_eq!(sha256(&relayed.content), content_of("relay-modern").sha256);
    assert!(relayed.extensions.contains(&INTERNAL_TRACE), "{relayed:?}");
    far.play(&["answer-release"]).expect_end();
    let mut peer = here.accept();
    peer.play(&["answer"]);
    assert_eq!(take(&mut peer).content, b"", "a report");
    peer.play(&["answer-release"]).expect_end();
    here.site.wait_until("reported", SOON, |s| s.waiting() == 0).unwrap();
}

/// Once more with octets as an MTA of 1988 sends them, in the mode that it calls in.
#[test]
fn what_it_sends_is_delivered_and_reported() {
    let here = Here::with(PROFILE);
    here.connect().play(&["bind-ia5", "transfer-1988", "release-bare"]).expect_end();
    assert_delivered(&here.receive(1), &["transfer-1988"]);
    let mut peer = here.accept();
    peer.play(&["answer-full"]);
    take(&mut peer);
    peer.play(&["answer-release"]).expect_end();
}
