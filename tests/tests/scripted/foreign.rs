//! Conversations of foreign MTAs (`tests/foreign`), with the peer as initiator and as responder: against our stack in
//! memory, the responder at every division of the octets; and the daemon, called.

use super::daemon::Here;
use super::memory::{Cut, Foreign, Memory, config};
use super::peer::Peer;
use super::script::Side;
use bytes::Bytes;
use osi::api::{Config, Mode, Request, Role, Selectors};
use osi::session::service::ConnectionReference;

/// MTABindArgument of the peer that calls, with its password as IA5String and as OCTET STRING.
const PERCIVAL: &[u8] = b"\xa1\x22\x80\x13percival.smhs.co.uk\xa1\x0b\x16\x09excalibur";
const PERCIVAL_IN_OCTETS: &[u8] = b"\xa1\x22\x80\x13percival.smhs.co.uk\xa1\x0b\x04\x09excalibur";
/// The same with a wrong password.
const IMPOSTOR: &[u8] = b"\xa1\x22\x80\x13percival.smhs.co.uk\xa1\x0b\x16\x09excalibar";
/// MTABindResult of the one that is called.
const GUINEVERE: &[u8] = b"\xa1\x20\x80\x14guinevere.smhs.co.uk\xa1\x08\x16\x06merlin";
const GUINEVERE_IN_OCTETS: &[u8] = b"\xa1\x20\x80\x14guinevere.smhs.co.uk\xa1\x08\x04\x06merlin";

fn reference(user: &'static [u8], common: &'static [u8]) -> ConnectionReference {
    let (user, common) = (Bytes::from_static(user), Bytes::from_static(common));
    ConnectionReference { user, common, additional: Bytes::new() }
}

/// We are the one whom the peer replaces: selectors, reference and checkpoint size as captured.
fn ours(mode: Mode, reference: ConnectionReference) -> Config {
    let transport = Some(Bytes::from_static(b"X400-88"));
    let selectors = Selectors { transport, ..Selectors::default() };
    let mut config = config(63, 3, None);
    if mode == Mode::Normal
        && let osi::api::Service::Rtse(rtse) = &mut config.service
    {
        rtse.dialogue = osi::api::Dialogue::Monologue;
    }
    Config { local: selectors.clone(), remote: selectors, reference, mode, ..config }
}

fn percival() -> ConnectionReference {
    reference(b"\x04\x08Percival", b"\x17\x0d051001144852Z")
}

/// Of the call that recovers.
fn percival_again() -> ConnectionReference {
    reference(b"\x04\x08Percival", b"\x17\x0d051001145110Z")
}

/// The peer calls.
fn called(mode: Mode, cut: Cut) -> Peer<Memory> {
    let mut memory = Memory::new(ours(mode, percival()), Role::Responder, cut);
    let (password, own): (&[u8], _) = match mode {
        Mode::Normal => (b"\x16\x09excalibur", GUINEVERE),
        Mode::X410 { .. } => (b"\x04\x09excalibur", GUINEVERE_IN_OCTETS),
    };
    memory.user.foreign =
        Some(Foreign { known_by: [b"\x80\x13percival.smhs.co.uk", password], own });
    Peer::new(memory)
}

/// We call.
fn calling(mode: Mode, reference: ConnectionReference, request: Request) -> Peer<Memory> {
    let mut memory = Memory::new(ours(mode, reference), Role::Initiator, Cut::No);
    memory.request(request);
    Peer::new(memory)
}

fn open(bind: &'static [u8]) -> Request {
    Request::Open { bind: Bytes::from_static(bind) }
}

/// The peer plays these as initiator, whole, in single octets, and cut once at each octet.
fn played_at_every_cut(mode: Mode, conversations: &[&str], check: impl Fn(&Peer<Memory>)) {
    let mut whole = called(mode, Cut::No);
    whole.converse(Side::Initiator, conversations);
    check(&whole);
    let cuts = (1..whole.wire.taken).map(Cut::After).chain([Cut::Everywhere]);
    for cut in cuts {
        let mut peer = called(mode, cut);
        peer.converse(Side::Initiator, conversations);
        assert_eq!(peer.wire.user.events, whole.wire.user.events, "{cut:?}");
        assert_eq!(peer.wire.user.received, whole.wire.user.received, "{cut:?}");
    }
    whole.expect_end();
}

#[test]
fn a_bind_and_its_release_are_as_captured_in_both_roles() {
    played_at_every_cut(Mode::Normal, &["bind", "release"], |peer| {
        assert_eq!(peer.wire.user.events, ["Open", "Released"]);
    });
    let mut peer = calling(Mode::Normal, percival(), open(PERCIVAL));
    peer.converse(Side::Responder, &["bind"]);
    assert_eq!(peer.wire.user.events, ["Opened"]);
    peer.wire.request(Request::Release);
    peer.converse(Side::Responder, &["release"]);
    assert_eq!(peer.wire.user.events, ["Opened", "Released"]);
    peer.expect_end();
}

#[test]
fn a_wrong_password_is_refused_as_captured_in_both_roles() {
    played_at_every_cut(Mode::Normal, &["refused"], |peer| {
        assert_eq!(peer.wire.user.events.first().map(String::as_str), Some("Open"));
    });
    let mut peer = calling(Mode::Normal, percival(), open(IMPOSTOR));
    peer.converse(Side::Responder, &["refused"]);
    // INTEGER authentication-error(2).
    assert_eq!(peer.wire.user.events, ["Refused Bind Some([2, 1, 2])"]);
    peer.expect_end();
}

#[test]
fn a_recovery_is_refused_and_a_fresh_bind_accepted_in_both_roles() {
    played_at_every_cut(Mode::Normal, &["recover"], |peer| {
        assert_eq!(peer.wire.count("RecoverAsked"), 1);
    });
    let mut fresh = called(Mode::Normal, Cut::No);
    fresh.converse(Side::Initiator, &["bind", "transfer", "release"]).expect_end();

    let lost = reference(b"\x04\x08Percival", b"\x17\x0d051001145108Z");
    let recover = Request::Recover { reference: lost, received: None };
    let mut peer = calling(Mode::Normal, percival_again(), recover);
    peer.converse(Side::Responder, &["recover"]);
    assert_eq!(peer.wire.user.events, ["Refused Bind Some([2, 1, 0])"], "busy(0)");
    peer.expect_end();
    let mut peer = calling(Mode::Normal, percival(), open(PERCIVAL));
    peer.converse(Side::Responder, &["bind"]);
    assert_eq!(peer.wire.user.events, ["Opened"]);
}

/// The envelope and content of the transfer: the stack does not look into them.
const ENVELOPE: &[u8] = b"\x64\x08\x63\x00\x16\x04here";
const CONTENT: &[u8] = b"All of one piece.\r\n";

#[test]
fn a_transfer_is_taken_in_the_peers_form_and_given_in_ours() {
    played_at_every_cut(Mode::Normal, &["bind", "transfer", "release"], |peer| {
        let [received] = peer.wire.user.received.as_slice() else { panic!("not received") };
        let apdu = [b"\xa0\x80\x31\x0a", ENVELOPE, b"\x04\x13", CONTENT, b"\0\0"].concat();
        assert_eq!(*received, apdu, "as it was sent, out of its strings");
    });
    let mut peer = calling(Mode::Normal, percival(), open(PERCIVAL));
    peer.converse(Side::Responder, &["bind"]);
    peer.wire.transfer(ENVELOPE, CONTENT.to_vec());
    peer.converse(Side::Responder, &["transfer"]);
    assert_eq!(peer.wire.user.events, ["Opened", "TransferConfirmed"]);
    peer.wire.request(Request::Release);
    peer.converse(Side::Responder, &["release"]).expect_end();
}

#[test]
fn a_call_in_x410_mode_is_as_observed_in_both_roles() {
    let swapped = Mode::X410 { protocol: Some(0x0c00) };
    played_at_every_cut(swapped, &["x410-bind", "x410-release"], |peer| {
        assert_eq!(peer.wire.user.events, ["Open", "Released"]);
    });
    let mode = Mode::X410 { protocol: Some(Mode::P1_1988) };
    let vm = reference(b"\x04\x02vm", b"\x17\x0d051001144852Z");
    let mut peer = calling(mode, vm, open(PERCIVAL_IN_OCTETS));
    peer.converse(Side::Responder, &["x410-bind"]);
    assert_eq!(peer.wire.user.events, ["Opened"]);
    peer.wire.request(Request::Release);
    peer.converse(Side::Responder, &["x410-release"]).expect_end();
}

/// The daemon as the one that is called: what it sends differs by nothing from what the stack sends.
#[test]
fn the_daemon_answers_as_captured() {
    let between = |lines: &str| {
        let own = format!("own_name = \"guinevere.smhs.co.uk\"\n{lines}");
        Here::between(&own, "percival.smhs.co.uk", ["merlin", "excalibur"])
    };
    let here = between("");
    for conversations in
        [&["bind", "release"][..], &["refused"], &["recover"], &["bind", "release"]]
    {
        here.connect().converse(Side::Initiator, conversations).expect_end();
    }
    let here = between("profile = \"x410-1984\"\nbyte_swapped = true");
    here.connect().converse(Side::Initiator, &["x410-bind", "x410-release"]).expect_end();
}

/// Each conversation is played: a folder that no test names is found.
#[test]
fn every_conversation_is_played() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/foreign");
    let source = include_str!("foreign.rs");
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_folder = entry.file_type().unwrap().is_dir();
        assert!(!is_folder || source.contains(&format!("\"{name}\"")), "{name} is not played");
    }
}
