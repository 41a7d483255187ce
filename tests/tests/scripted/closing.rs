//! A peer that closes TCP and never releases, in both roles.

use super::daemon::{BLAKE, Here, SOON, assert_delivered};
use super::peer::Wire as _;
use super::reader::{self, Tsdu};
use super::stack::sha256;
use super::taker::take_transfer;

#[test]
fn an_initiator_that_closes_after_each_transfer_is_served() {
    let here = Here::start();
    let cases = ["transfer-primitive", "transfer-constructed", "transfer-checkpoints"];
    for case in cases {
        let mut peer = here.connect();
        peer.play(&["bind-ia5", case]).wire.close();
        peer.expect_closed();
    }
    assert_delivered(&here.receive(cases.len()), &cases);
    let counters = here.status().counters;
    assert_eq!((counters.received, counters.duplicates), (3, 0));
}

/// It closes when idle, then instead of an answer to the release: the next message goes on another association.
#[test]
fn a_responder_that_closes_instead_of_a_release_gets_each_message_once() {
    let here = Here::start();
    for waits_for_release in [false, true, false] {
        let arguments = ["--to", BLAKE, "--precedence", "flash", "--size", "3kB"];
        let sent = here.site.send("Rossi", &arguments).unwrap();
        let mut peer = here.accept();
        peer.play(&["answer"]);
        let (apdu, _) = take_transfer(&mut peer, 65_535);
        assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
        here.site.wait_until("confirmed", SOON, |s| s.waiting() == 0).unwrap();
        if waits_for_release {
            let (tsdu, _) = reader::tsdu(&mut peer, "a release");
            assert_eq!(reader::kind(&tsdu), Tsdu::Finish);
        }
        peer.wire.close();
        peer.expect_closed();
        here.site.wait_until("no association", SOON, |s| s.associations().count() == 0).unwrap();
    }
    assert_eq!(here.status().counters.transferred, 3);
}
