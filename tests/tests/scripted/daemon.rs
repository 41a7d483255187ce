//! The cases against the daemon, over TCP.

use super::peer::{Peer, Wire as _, time_of_the_run};
use super::reader;
use super::stack::{TRANSFERS, content_of, sha256};
use super::taker::{confirm, take_rest, take_transfer, take_until_end, until_it_waits};
use super::tcp::Tcp;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;
use testbed::answer::{MtaStatus, ReceiveOutput};
use testbed::{Site, SiteLocation};

/// Longest wait for what the daemon does by itself; a retry is among it.
pub(crate) const SOON: Duration = Duration::from_secs(90);
/// The address of the scripted peer's user.
pub(crate) const BLAKE: &str = "/C=GB/ADMD= /PRMD=PEER/O=Signals/S=Blake";

/// The site MTA-HERE between two scripted peers.
pub(crate) struct Here {
    pub(crate) site: Site,
    /// Where it listens for the peer.
    pub(crate) listens: SocketAddr,
    /// Where the peer listens for it.
    peer: TcpListener,
    /// Where another peer listens, MTA-FAR.
    far: TcpListener,
}

impl Here {
    pub(crate) fn start() -> Here {
        Here::with("")
    }

    /// With this line in the configuration of both peers, a profile for example.
    pub(crate) fn with(peers: &str) -> Here {
        Here::between(peers, "MTA-PEER", ["harbour", "lantern"])
    }

    /// The same, for a peer of this name; our password and its.
    pub(crate) fn between(peers: &str, peer_name: &str, passwords: [&str; 2]) -> Here {
        let place = SiteLocation::new();
        let listens = place.free_port().unwrap();
        let peer = TcpListener::bind((listens.ip(), 0)).unwrap();
        let far = TcpListener::bind((listens.ip(), 0)).unwrap();
        let (remote, remote_far) = (peer.local_addr().unwrap(), far.local_addr().unwrap());
        let configuration = format!(
            r#"
            [[route]]
            address = "/C=IT/ADMD=NET/PRMD=HERE"
            via = "local"
            [[route]]
            address = "/C=GB/ADMD= /PRMD=PEER"
            via = "peer"
            [[peer]]
            name = "peer"
            {peers}
            mta_name = "{peer_name}"
            password = {{ file = "secrets/ours" }}
            expect = {{ file = "secrets/theirs" }}
            [[peer.channel]]
            name = "all"
            precedences = ["deferred", "routine", "priority", "immediate", "flash", "override"]
            remote = "{remote}"
            listen = "{listens}"
            connection = "on-demand"
            idle_close = "2s"
            [[route]]
            address = "/C=FR/ADMD=ATLAS/PRMD=FAR"
            via = "far"
            [[peer]]
            name = "far"
            {peers}
            mta_name = "MTA-FAR"
            password = {{ file = "secrets/ours" }}
            expect = {{ file = "secrets/theirs" }}
            [[peer.channel]]
            name = "all"
            precedences = ["deferred", "routine", "priority", "immediate", "flash", "override"]
            remote = "{remote_far}"
            connection = "on-demand"
            idle_close = "2s"
            "#
        );
        let mut table: toml::Table = toml::from_str(&configuration).unwrap();
        let mut builder = Site::builder("here").users(&["Rossi"]);
        for key in ["route", "peer"] {
            builder = builder.set(key, table.remove(key).unwrap());
        }
        let mut site = builder.build().unwrap();
        for (file, password) in [("ours", passwords[0]), ("theirs", passwords[1])] {
            use std::io::Write as _;
            let path = site.path().join("secrets").join(file);
            let options =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            options.unwrap().write_all(password.as_bytes()).unwrap();
        }
        site.start().unwrap();
        Here { site, listens, peer, far }
    }

    /// A connection to the daemon.
    pub(crate) fn connect(&self) -> Peer<Tcp> {
        Peer::new(Tcp::connect(self.listens))
    }

    /// The daemon's next connection to the peer.
    pub(crate) fn accept(&self) -> Peer<Tcp> {
        Peer::new(Tcp::accept(&self.peer, SOON))
    }

    /// Whether the daemon opens no association to the far peer.
    pub(crate) fn is_far_quiet(&self) -> bool {
        self.far.set_nonblocking(true).unwrap();
        self.far.accept().is_err()
    }

    pub(crate) fn status(&self) -> MtaStatus {
        self.site.status().unwrap()
    }

    /// All that waits for the user: exactly this number of deliveries.
    pub(crate) fn receive(&self, count: usize) -> ReceiveOutput {
        let received = self.site.receive("Rossi", count).unwrap();
        assert_eq!(received.deliveries.len(), count);
        assert!(self.site.receive_waiting("Rossi").unwrap().deliveries.is_empty(), "one too many");
        received
    }
}

/// Each case's message was delivered once, its content octet by octet.
pub(crate) fn assert_delivered(received: &ReceiveOutput, cases: &[&str]) {
    for case in cases {
        let expected = content_of(case);
        let of_it: Vec<_> = received
            .messages()
            .filter(|message| message.mts_identifier.contains(&expected.local_identifier))
            .collect();
        let [message] = of_it.as_slice() else { panic!("{case}: {} in {received:?}", of_it.len()) };
        assert_eq!(message.content_sha256, expected.sha256, "{case}");
        assert_eq!(message.content_length, expected.length, "{case}");
        assert!(!message.duplicate, "{case}");
        let (kind, priority) =
            if *case == "transfer-p772" { ("P772", "urgent") } else { ("P22", "normal") };
        assert_eq!((&*message.content_type, &*message.priority), (kind, priority), "{case}");
    }
}

/// The daemon's next association to the far peer, accepted.
pub(crate) fn on_far(here: &Here) -> Peer<Tcp> {
    let mut far = Peer::new(Tcp::accept(&here.far, SOON));
    far.play(&["answer-far"]);
    far
}

#[test]
fn each_form_of_transfer_is_delivered_as_it_was() {
    let here = Here::start();
    for (bind, segment, cases) in [
        ("bind-ia5", 0, &TRANSFERS[..3]),
        ("bind-octet", 1, &TRANSFERS[3..5]),
        ("bind-full", 7, &TRANSFERS[5..]),
    ] {
        let mut peer = here.connect();
        peer.wire.segment = segment;
        peer.play(&[bind]).play(cases).play(&["release"]).expect_end();
    }
    assert_delivered(&here.receive(TRANSFERS.len()), &TRANSFERS);
    assert_eq!(here.status().counters.received, TRANSFERS.len() as u64);
}

#[test]
fn a_stranger_and_a_recovery_are_refused_and_the_peer_still_binds() {
    let here = Here::start();
    here.connect().play(&["bind-wrong-password"]).expect_end();
    here.connect().play(&["recover"]).expect_end();
    here.connect().play(&["bind-extended", "transfer-primitive", "release-bare"]).expect_end();
    assert_delivered(&here.receive(1), &["transfer-primitive"]);
}

#[test]
fn a_message_cut_off_unread_and_sent_again_is_delivered_once() {
    let here = Here::start();
    // Idle, then gone without a word.
    let mut peer = here.connect();
    peer.play(&["bind-ia5"]).wire.close();
    peer.expect_closed();
    // Gone within the transfer, in order and by a reset: nothing was accepted.
    let mut peer = here.connect();
    peer.play(&["bind-ia5", "transfer-cut"]).wire.close();
    peer.expect_closed();
    let mut peer = here.connect();
    peer.play(&["bind-ia5", "transfer-cut"]).expect_quiet("the activity has not ended");
    peer.wire.reset();
    here.site.wait_until("no association", SOON, |s| s.associations().count() == 0).unwrap();
    assert_eq!(here.status().counters.received, 0);
    // Gone after its end, the confirmation unread: accepted.
    let mut peer = here.connect();
    peer.play(&["bind-ia5", "transfer-unread"]);
    here.site.wait_until("the message", SOON, |s| s.counters.received == 1).unwrap();
    peer.wire.reset();
    // Once more: confirmed, and recognized.
    here.connect().play(&["bind-ia5", "transfer-again", "release"]).expect_end();
    assert_delivered(&here.receive(1), &["transfer-again"]);
    assert_eq!(here.status().counters.duplicates, 1);
}

#[test]
fn a_lost_transfer_is_resumed_by_the_peer() {
    let here = Here::start();
    let mut peer = here.connect();
    peer.play(&["bind-ia5", "transfer-lost"]);
    peer.wire.reset();
    here.site.wait_until("no association", SOON, |s| s.associations().count() == 0).unwrap();
    here.connect().play(&["resume", "interrupt", "discard", "release"]).expect_end();
    // What was interrupted and resumed is the same message again.
    assert_delivered(&here.receive(1), &["resume"]);
    assert_eq!(here.status().counters.duplicates, 1);
}

#[test]
fn aborts_and_disconnects_are_survived() {
    let here = Here::start();
    for end in ["abort-user", "abort-session", "disconnect"] {
        here.connect().play(&["bind-ia5", end]).expect_end();
        here.connect().play(&["bind-ia5", "transfer-cut", end]).expect_end();
    }
    here.connect().play(&["bind-ia5", "transfer-primitive", "release"]).expect_end();
    assert_delivered(&here.receive(1), &["transfer-primitive"]);
}

/// Answers the bind of the daemon.
fn answer(here: &Here, case: &str) -> Peer<Tcp> {
    let mut peer = here.accept();
    peer.play(&[case]);
    peer
}

#[test]
fn busy_is_answered_and_retried_and_the_daemon_releases() {
    let mut here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "10kB"])
        .unwrap();
    here.accept().play(&["answer-busy"]).expect_end();
    let status = here
        .site
        .wait_until("a reason", SOON, |s| s.peers[0].channels[0].last_error.is_some())
        .unwrap();
    let channel = &status.peers[0].channels[0];
    let why = channel.last_error.as_deref().unwrap().to_lowercase();
    assert!(why.contains("busy"), "{why}");
    assert_eq!(channel.queued.get("flash"), Some(&1), "{channel:?}");
    assert!(here.site.is_running().unwrap());

    let mut peer = answer(&here, "answer");
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    let message = reader::message(&apdu);
    assert_eq!(message.content.len() as u64, sent.messages[0].content_length);
    assert_eq!(sha256(&message.content), sent.messages[0].content_sha256);
    here.site.wait_until("confirmed", SOON, |s| s.counters.transferred == 1).unwrap();
    peer.play(&["answer-release"]).expect_end();
}

#[test]
fn a_tpdu_size_of_2048_is_kept_to() {
    let here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "100kB"])
        .unwrap();
    let mut peer = answer(&here, "answer-2048");
    let (apdu, _) = take_transfer(&mut peer, 2_048 + 4);
    assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
    peer.play(&["answer-release"]).expect_end();
}

#[test]
fn a_window_of_one_holds_the_daemon_at_one_checkpoint() {
    let here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "2kB"])
        .unwrap();
    let mut peer = answer(&here, "answer-window");
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
    assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
    peer.play(&["answer-release"]).expect_end();
}

#[test]
fn what_is_not_confirmed_is_sent_again() {
    let here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "1kB"])
        .unwrap();
    let mut peer = answer(&here, "answer");
    let first = take_until_end(&mut peer, 65_535);
    peer.expect_quiet("the end is not confirmed");
    peer.wire.reset();
    let mut peer = answer(&here, "answer");
    let (second, _) = take_transfer(&mut peer, 65_535);
    let (first, second) = (reader::message(&first.apdu), reader::message(&second));
    assert_eq!(first.content, second.content);
    assert_eq!(first.envelope, second.envelope, "the same message, by its identifier and trace");
    assert_eq!(sha256(&second.content), sent.messages[0].content_sha256);
    here.site.wait_until("confirmed", SOON, |s| s.counters.transferred == 1).unwrap();
}

/// Takes a transfer up to its second checkpoint, confirms the first alone, and is gone. Gives what
/// came before the first, and the references of the association.
fn lose_after_a_checkpoint(here: &Here) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut peer = answer(here, "answer-window");
    let (user, common) = reader::references(peer.last());
    let mut apdu = Vec::new();
    let (checkpoints, _) = until_it_waits(&mut peer, &mut apdu);
    // The window is one and the data after a checkpoint is not held back, so the octets before it
    // are counted: 1,024, the checkpoint size.
    let mut before = apdu.clone();
    before.truncate(1_024);
    confirm(&mut peer, 0x32, &checkpoints[0]);
    let (checkpoints, _) = until_it_waits(&mut peer, &mut apdu);
    assert_eq!(checkpoints, ["2"]);
    peer.wire.reset();
    (before, user, common)
}

#[test]
fn a_recovery_that_is_refused_ends_in_a_new_beginning() {
    let here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "10kB"])
        .unwrap();
    let (_, user, common) = lose_after_a_checkpoint(&here);
    let mut peer = here.accept();
    peer.play(&["refuse-recovery"]);
    assert!(reader::contains(peer.last(), &[user, common].concat()), "another association");
    peer.expect_end();
    let mut peer = answer(&here, "answer");
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
    peer.play(&["answer-release"]).expect_end();
}

#[test]
fn a_recovery_that_is_accepted_goes_on_after_the_checkpoint() {
    let here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "flash", "--size", "10kB"])
        .unwrap();
    let (mut apdu, user, common) = lose_after_a_checkpoint(&here);
    let mut peer = here.accept();
    peer.play(&["accept-recovery"]);
    assert!(reader::contains(peer.last(), &[&user[..], &common].concat()), "another association");
    // ACTIVITY RESUME: old references, old activity 1, serial number 1; a new identifier.
    let (resume, _) = reader::tsdu(&mut peer, "a resumption");
    let length = |octets: &[u8]| u8::try_from(octets.len()).unwrap();
    let mut linking = vec![0x0a, length(&user)];
    linking.extend(&user);
    linking.extend([0x0b, length(&common)]);
    linking.extend(&common);
    linking.extend([0x29, 3, 2, 1, 1, 0x2a, 1, b'1']);
    let mut expected = vec![1, 0, 0x1d, length(&linking) + 7, 0x21, length(&linking)];
    expected.extend(&linking);
    expected.extend([0x29, 3, 2, 1]);
    assert_eq!(resume[..resume.len() - 1], expected, "{resume:02X?}");

    let rest = take_rest(&mut peer, 65_535);
    confirm(&mut peer, 0x2a, &rest.serial);
    apdu.extend(rest.apdu);
    assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
    here.site.wait_until("confirmed", SOON, |s| s.counters.transferred == 1).unwrap();
    peer.play(&["answer-release"]).expect_end();
}

#[test]
fn the_report_that_was_asked_for_comes_back() {
    let here = Here::start();
    here.connect().play(&["bind-ia5", "transfer-primitive", "release"]).expect_end();
    assert_delivered(&here.receive(1), &["transfer-primitive"]);
    let mut peer = answer(&here, "answer-full");
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    let report = reader::report(&apdu);
    // The subject: [APPLICATION 4] {GDI of the peer, IA5String "P.001"}.
    let subject = b"\x64\x1a\x63\x11\x61\x04\x13\x02GB\x62\x03\x13\x01 \x13\x04PEER\x16\x05P.001";
    assert!(reader::contains(&report.content, subject), "{:02X?}", report.content);
    // It goes to the originator: O/R name with surname Blake.
    assert!(reader::contains(&report.envelope, b"\x80\x05Blake"), "{:02X?}", report.envelope);
    peer.play(&["answer-release"]).expect_end();
}

/// GDI of MTA-HERE: IT, NET, HERE.
const HERE: &[u8] = b"\x63\x13\x61\x04\x13\x02IT\x62\x05\x13\x03NET\x13\x04HERE";
/// GDI of MTA-PEER: GB, a single space, PEER.
const PEER: &[u8] = b"\x63\x11\x61\x04\x13\x02GB\x62\x03\x13\x01 \x13\x04PEER";

#[test]
fn a_relayed_message_keeps_what_nobody_knows_and_gains_a_trace() {
    let here = Here::start();
    here.connect().play(&["bind-ia5", "relay-modern", "relay-1988", "release"]).expect_end();
    let mut far = on_far(&here);
    let qualifier =
        b"\x30\x13\x83\x08\x2b\x1a\x00\xa2\x36\x00\x08\x00\x81\x02\x05\x00\xa2\x03\x02\x01\x01";
    let unknown = b"\x30\x14\x83\x04\x2a\x03\x04\x05\xa2\x80\x24\x80\x04\x04kept\x00\x00\x00\x00";
    let standard = b"\x30\x09\x80\x02\x00\xc8\xa2\x03\x02\x01\x07";
    // The far peer's dialect is the modern one: what came in that of 1988 is written anew, with its DEFAULT criticality.
    let qualifier_88 = qualifier;
    let unknown_88 = b"\x30\x12\x83\x04\x2a\x03\x04\x05\x81\x02\x05\x00\xa2\x06\x04\x04kept";
    let cases: [(&str, &[&[u8]]); 2] = [
        ("relay-modern", &[qualifier, unknown, standard]),
        ("relay-1988", &[qualifier_88, unknown_88]),
    ];
    for (case, kept) in cases {
        let (apdu, _) = take_transfer(&mut far, 65_535);
        let message = reader::message(&apdu);
        assert_eq!(sha256(&message.content), content_of(case).sha256, "{case}");
        for extension in kept {
            assert!(
                reader::contains(&message.envelope, extension),
                "{case}: {extension:02X?} in {:02X?}",
                message.envelope
            );
        }
        // [APPLICATION 9] {30 {GDI of the peer, its time, relayed}, 30 {our GDI, ..}}.
        // other-actions has a DEFAULT, which is written.
        let (time, relayed) = (&time_of_the_run()[..], b"\x82\x01\x00\x83\x02\x06\x00");
        let arrival = [b"\x31\x16\x80\x0d", time, relayed].concat();
        let theirs = [b"\x30\x2b", PEER, &arrival[..]].concat();
        let trace = reader::member(&message.envelope, 0x69);
        assert_eq!(trace.len(), 2, "{case}: {trace:02X?}");
        assert_eq!(trace[0], theirs, "{case}");
        assert_eq!(&trace[1][2..2 + HERE.len()], HERE, "{case}: {:02X?}", trace[1]);
        // The internal trace has the peer's element, and ours after it.
        let element = [b"\x30\x35", PEER, b"\x16\x08MTA-PEER", &arrival[..]].concat();
        let own = [HERE, b"\x16\x08MTA-HERE"].concat();
        assert!(reader::contains(&message.envelope, &element), "{case}: {:02X?}", message.envelope);
        assert!(reader::contains(&message.envelope, &own), "{case}: {:02X?}", message.envelope);
    }
    far.play(&["answer-release"]).expect_end();
}

#[test]
fn an_unknown_extension_critical_for_transfer_is_reported() {
    let here = Here::start();
    here.connect().play(&["bind-ia5", "relay-critical", "release"]).expect_end();
    let mut peer = answer(&here, "answer");
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    let report = reader::report(&apdu);
    // Non-delivery [1] {[0] reason .., [1] diagnostic unsupported-critical-function(18)}.
    assert!(reader::contains(&report.content, b"\x81\x01\x12"), "{:02X?}", report.content);
    assert!(reader::contains(&report.content, b"\x16\x05R.003"), "{:02X?}", report.content);
    peer.play(&["answer-release"]).expect_end();
    assert!(here.is_far_quiet(), "it was relayed all the same");
}

#[test]
fn refusals_of_every_layer_are_survived_and_tried_again() {
    let mut here = Here::start();
    let sent = here
        .site
        .send("Rossi", &["--to", BLAKE, "--precedence", "override", "--size", "1kB"])
        .unwrap();
    for case in ["refuse-transport", "refuse-session", "refuse-presentation", "refuse-transient"] {
        here.accept().play(&[case]).expect_end();
        let refused = |s: &MtaStatus| s.peers.iter().any(|p| p.channels[0].last_error.is_some());
        here.site.wait_until("a reason", SOON, refused).unwrap();
    }
    assert!(here.site.is_running().unwrap());
    let mut peer = answer(&here, "answer");
    let (apdu, _) = take_transfer(&mut peer, 65_535);
    assert_eq!(sha256(&reader::message(&apdu).content), sent.messages[0].content_sha256);
    peer.play(&["answer-release"]).expect_end();
}
