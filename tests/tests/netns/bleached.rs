//! A network that clears marks is noticed.

use super::{CHANNELS, SOON, namespace, pair, programs, send, wait_until_open};
use std::net::IpAddr;
use testbed::{Cable, Capture, PeerSettings};

#[test]
fn a_network_that_clears_marks_shows_in_the_status_and_in_the_log() {
    let Some(namespace) = namespace("a_network_that_clears_marks") else { return };
    let cable = Cable::bleached(namespace, &programs()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all.pcap");
    let capture = Capture::start(&cable.act, &programs(), &file).unwrap();
    let pair = pair(&cable, PeerSettings::per_precedence()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    for site in [&pair.naples, &pair.act] {
        let status = site.status().unwrap();
        for (channel, (name, _, mark)) in status.peers[0].channels.iter().zip(CHANNELS) {
            assert_eq!(channel.name, name);
            assert!(channel.associations.iter().all(|a| a.dscp_expected == Some(mark)));
            let seen = channel.associations.iter().filter(|a| a.role == "responder");
            let seen: Vec<_> = seen.map(|a| a.dscp_seen).collect();
            assert_eq!(seen, [Some(0)], "{name} at {}", site.name());
        }
        // One warning for the peer, on whichever channel came first.
        let logged = |events: &[testbed::DaemonEvent]| {
            let warnings = events.iter().filter(|e| e.event == "mark_mismatch").count();
            (warnings == 1).then_some(())
        };
        site.wait_for_events("a warning", SOON, logged).unwrap();
    }
    // It spoils the marks, and nothing else.
    send(&pair.naples, &pair.act, "flash", "100kB");
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
    drop(pair);
    let packets = capture.finish().unwrap();
    let marks = |from: IpAddr| {
        let of_it = packets.iter().filter(move |p| p.segment.source.ip() == from);
        of_it.map(|p| p.segment.dscp).collect::<std::collections::BTreeSet<_>>()
    };
    let (naples, act) = (cable.naples.addresses().v4.into(), cable.act.addresses().v4.into());
    assert_eq!(marks(naples).into_iter().collect::<Vec<u8>>(), [0], "after the middle");
    assert_eq!(marks(act).into_iter().collect::<Vec<u8>>(), [0, 8, 16, 24, 32], "before it");
}

#[test]
fn a_network_that_keeps_marks_gives_no_cause_for_warnings() {
    let Some(namespace) = namespace("a_network_that_keeps_marks") else { return };
    let cable = Cable::new(namespace).unwrap();
    let pair = pair(&cable, PeerSettings::per_precedence()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    for site in [&pair.naples, &pair.act] {
        let status = site.status().unwrap();
        for association in status.associations().filter(|a| a.role == "responder") {
            assert_eq!(association.dscp_seen, association.dscp_expected);
            assert!(association.dscp_seen.is_some());
        }
        let events = site.events().unwrap();
        assert!(!events.iter().any(|e| e.event == "mark_mismatch"), "{}", site.log_tail());
    }
}
