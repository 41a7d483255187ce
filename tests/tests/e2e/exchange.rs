//! Messages of every size and precedence, both ways, over every form of association.

use super::{SOON, assert_arrived, is_address};
use testbed::{Pair, PeerSettings, Site};

/// 1 kB to 10 MB, decimal.
const SIZES: &str = "1kB,10kB,100kB,1MB,10MB";

/// `from` sends to `to`; nothing is left over on either side.
fn send_sizes(from: &Site, to: &Site, sizes: &str) {
    let sent = from.send("OPS", &["--to", &to.address("OPS"), "--size", sizes]).unwrap();
    assert_eq!(sent.messages.len(), sizes.split(',').count());
    assert!(sent.messages.iter().all(|m| m.tries == 1), "no answer was lost: {sent:?}");
    let received = to.receive("OPS", sent.messages.len()).unwrap();
    assert_arrived(&sent.messages, &received);
}

#[test]
fn five_sizes_each_way_exactly_once() {
    let mut pair = Pair::start(PeerSettings::per_precedence()).unwrap();
    send_sizes(&pair.naples, &pair.act, SIZES);
    send_sizes(&pair.act, &pair.naples, SIZES);
    for (site, peer) in [(&pair.naples, &pair.act), (&pair.act, &pair.naples)] {
        assert_eq!(site.receive_waiting("OPS").unwrap().deliveries.len(), 0, "nothing came twice");
        // A delivery may be seen before the sending side has read and stored its confirm.
        let done = site.wait_until("all confirmed", SOON, |s| s.counters.transferred == 5);
        let counters = done.unwrap().counters;
        assert_eq!((counters.submitted, counters.received, counters.delivered), (5, 5, 5));
        assert_eq!((counters.duplicates, counters.reports_made), (0, 0), "{}", peer.name());
    }
    for site in [&mut pair.naples, &mut pair.act] {
        assert_eq!(site.stop().unwrap().code(), Some(0));
    }
}

#[test]
fn every_precedence_arrives_as_it_was_sent() {
    let pair = Pair::start(PeerSettings::per_precedence()).unwrap();
    let to = pair.act.address("OPS");
    // STANAG 4406 Annex A: two levels to each grade of X.411.
    for (precedence, grade) in [
        ("override", "urgent"),
        ("flash", "urgent"),
        ("immediate", "normal"),
        ("priority", "normal"),
        ("routine", "non-urgent"),
        ("deferred", "non-urgent"),
    ] {
        let arguments = ["--to", &to, "--size", "1kB", "--precedence", precedence];
        let sent = pair.naples.send("OPS", &arguments).unwrap();
        assert_eq!(sent.messages[0].precedence, precedence);
        let received = pair.act.receive("OPS", 1).unwrap();
        assert_arrived(&sent.messages, &received);
        let message = received.messages().next().unwrap();
        assert_eq!(message.precedence.as_deref(), Some(precedence));
        assert_eq!(message.priority, grade);
        assert_eq!(message.content_type, "P772");
        let originator = pair.naples.address("OPS");
        assert!(is_address(&message.originator, &originator), "{}", message.originator);
    }
}

#[test]
fn every_form_of_association_carries_messages() {
    let plain = PeerSettings::default;
    for (form, peer) in [
        ("no checkpoints", PeerSettings { checkpoint: 0, ..plain() }),
        ("small checkpoints, window 1", PeerSettings { checkpoint: 1_024, window: 1, ..plain() }),
        ("monologue", PeerSettings { monologue: true, ..plain() }),
        ("indefinite lengths", PeerSettings { indefinite: true, ..plain() }),
        ("smallest TPDUs", PeerSettings { tpdu_size: Some(128), ..plain() }),
        ("TPDUs of 2048 octets", PeerSettings { tpdu_size: Some(2_048), ..plain() }),
        ("credentials as octets", PeerSettings { octet_credentials: true, ..plain() }),
        ("extensions of 1988", PeerSettings { dialect_1988: true, ..plain() }),
        ("X.410 mode", PeerSettings { x410: true, octet_credentials: true, ..plain() }),
        ("X.410 mode in a monologue", PeerSettings { x410: true, monologue: true, ..plain() }),
        ("on demand", plain().on_demand("1s")),
    ] {
        super::print_line(&format!("    a peer with {form}"));
        let mut pair = Pair::start(peer).unwrap();
        send_sizes(&pair.naples, &pair.act, "1kB,300kB");
        send_sizes(&pair.act, &pair.naples, "300kB,1kB");
        for site in [&mut pair.act, &mut pair.naples] {
            assert_eq!(site.stop().unwrap().code(), Some(0), "{form}");
        }
    }
}

#[test]
fn what_users_write_is_what_others_read() {
    let pair = Pair::start(PeerSettings::default()).unwrap();
    let to = pair.act.address("OPS");
    let arguments = [
        "--to",
        &to,
        "--text",
        "Einsatz um 0600, Übung beendet.",
        "--subject",
        "Lagemeldung 7",
        "--sic",
        "AAA",
        "--sic",
        "NATO1",
        "--message-type",
        "exercise=STEADY",
        "--precedence",
        "flash",
    ];
    let sent = pair.naples.send("OPS", &arguments).unwrap();
    let received = pair.act.receive("OPS", 1).unwrap();
    assert_arrived(&sent.messages, &received);
    let message = received.messages().next().unwrap();
    assert_eq!(message.subject.as_deref(), Some("Lagemeldung 7"));
    assert_eq!(message.sics, ["AAA", "NATO1"]);
    assert_eq!(message.message_type.as_deref(), Some("exercise=STEADY"));
    assert_eq!(message.text.as_deref(), Some("Einsatz um 0600, Übung beendet."));

    let arguments = ["--to", &to, "--text", "Ciao.", "--civil", "--subject", "Saluti"];
    let sent = pair.naples.send("OPS", &arguments).unwrap();
    let received = pair.act.receive("OPS", 1).unwrap();
    assert_arrived(&sent.messages, &received);
    let message = received.messages().next().unwrap();
    assert_eq!((message.content_type.as_str(), message.precedence.as_deref()), ("P22", None));
    assert_eq!(message.subject.as_deref(), Some("Saluti"));
}

#[test]
fn the_same_content_identifier_makes_no_second_message() {
    let pair = Pair::start(PeerSettings::default()).unwrap();
    let to = pair.act.address("OPS");
    let arguments = [
        "--to",
        &to,
        "--size",
        "10kB",
        "--content-identifier",
        "TWICE-1",
        "--dtg",
        "260504030201Z",
    ];
    let first = pair.naples.send("OPS", &arguments).unwrap();
    let second = pair.naples.send("OPS", &arguments).unwrap();
    assert_eq!(first.messages[0].content_sha256, second.messages[0].content_sha256);
    assert_eq!(first.messages[0].mts_identifier, second.messages[0].mts_identifier);
    assert_arrived(&first.messages, &pair.act.receive("OPS", 1).unwrap());
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0);
}
