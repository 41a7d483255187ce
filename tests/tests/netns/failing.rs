//! Peers and links that fail: every channel recovers by itself within its configured time, and the
//! log shows the loss and the recovery.

use super::{CHANNELS, assert_arrived, namespace, pair, send, wait_until_open};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;
use testbed::{Cable, DaemonEvent, PeerSettings, Site};

/// The times configured below are 2 and 3 s; what is more is the wait before a channel is opened
/// again, which grows from 1 s, and room for a busy machine.
const IN_TIME: Duration = Duration::from_secs(25);
const PORT_OF_FLASH: &str = ":5003";
const PORT_OF_NOBODY: &str = ":5999";

fn start_of(
    event: &str,
    channel: &str,
    after: usize,
) -> impl FnMut(&[DaemonEvent]) -> Option<usize> {
    move |events| {
        let from = events.get(after..).unwrap_or_default();
        from.iter().position(|e| e.is_on(event, channel)).map(|at| after + at)
    }
}

/// Waits until the log shows, from this place on, that a channel is lost and then that it is back;
/// returns both places.
fn gone_and_back(site: &Site, channel: &str, after: usize) -> (usize, usize) {
    let what = format!("the end of {channel}");
    let gone = site.wait_for_events(&what, IN_TIME, start_of("association_lost", channel, after));
    let gone = gone.unwrap();
    let what = format!("the return of {channel}");
    let back = site.wait_for_events(&what, IN_TIME, start_of("association_opened", channel, gone));
    (gone, back.unwrap())
}

fn confirmed(site: &Site, message: &str) {
    let logged = |events: &[DaemonEvent]| {
        events.iter().any(|e| e.is("transfer_confirmed", message)).then_some(())
    };
    site.wait_for_events("the confirm", IN_TIME, logged).unwrap();
}

#[test]
fn a_peer_that_refuses_one_channel_gets_the_others() {
    let Some(namespace) = namespace("a_peer_that_refuses_one_channel") else { return };
    let cable = Cable::new(namespace).unwrap();
    // One-way associations: a Flash cannot take ACT's own association to Naples.
    let peer = PeerSettings { monologue: true, ..PeerSettings::per_precedence() };
    let mut pair = pair(&cable, peer).build().unwrap();
    let right = fs::read_to_string(pair.act.config()).unwrap();
    let listens = format!("listen = [\"{}{PORT_OF_FLASH}\"]", cable.act.addresses().v4);
    assert!(right.contains(&listens), "{right}");
    let wrong = right.replace(&listens, &listens.replace(PORT_OF_FLASH, PORT_OF_NOBODY));
    fs::write(pair.act.config(), wrong).unwrap();
    pair.act.start().unwrap();
    pair.naples.start().unwrap();
    let refused = start_of("association_lost", "flash", 0);
    let refused = pair.naples.wait_for_events("the refusal", IN_TIME, refused).unwrap();
    let flash = send(&pair.naples, &pair.act, "flash", "10kB");
    let routine = send(&pair.naples, &pair.act, "routine", "10kB");
    assert_arrived(&[routine], &pair.act.receive("OPS", 1).unwrap());
    let status = pair.naples.status().unwrap();
    for channel in &status.peers[0].channels {
        let ours = channel.associations.iter().any(|a| a.role == "initiator" && a.state == "idle");
        assert_eq!(ours, channel.name != "flash", "{}: {:?}", channel.name, channel.last_error);
        assert!(channel.name != "flash" || channel.last_error.is_some());
    }

    // It comes back with the channel: Naples needs no command.
    assert!(pair.act.stop().unwrap().success());
    fs::write(pair.act.config(), right).unwrap();
    pair.act.start().unwrap();
    let back = start_of("association_opened", "flash", refused);
    // ACT's own association on this channel was open before: wait for the message, too.
    pair.naples.wait_for_events("the channel's return", IN_TIME, back).unwrap();
    assert_arrived(std::slice::from_ref(&flash), &pair.act.receive("OPS", 1).unwrap());
    confirmed(&pair.naples, &flash.mts_identifier);
}

#[test]
fn a_peer_that_stops_reading_is_given_up_and_tried_again() {
    let Some(namespace) = namespace("a_peer_that_stops_reading") else { return };
    let cable = Cable::new(namespace).unwrap();
    // Its kernel still answers, with a window of zero: the limit of TCP counts from there.
    let mut peer = PeerSettings::per_precedence();
    peer.transfer_timeout = Some("3s".to_owned());
    peer.timeouts = vec![("unacknowledged", "3s")];
    let mut pair = pair(&cable, peer).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    pair.act.signal(Signal::SIGSTOP).unwrap();
    let sent = send(&pair.naples, &pair.act, "immediate", "10MB");
    let lost = start_of("association_lost", "immediate", 0);
    let lost = pair.naples.wait_for_events("the loss", IN_TIME, lost).unwrap();
    let events = pair.naples.events().unwrap();
    let started = events.iter().position(|e| e.is("transfer_started", &sent.mts_identifier));
    assert!(started.is_some_and(|started| started < lost), "{:?}", events[lost]);
    pair.act.signal(Signal::SIGCONT).unwrap();
    assert_arrived(std::slice::from_ref(&sent), &pair.act.receive("OPS", 1).unwrap());
    confirmed(&pair.naples, &sent.mts_identifier);
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0, "only once");
}

#[test]
fn a_link_that_dies_silently_is_noticed_by_tcp_and_comes_back() {
    let Some(namespace) = namespace("a_link_that_dies_silently") else { return };
    let cable = Cable::new(namespace).unwrap();
    let mut peer = PeerSettings::per_precedence();
    peer.timeouts = vec![("dead_after", "4s"), ("connect", "2s")];
    let pair = pair(&cable, peer).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    let before = pair.naples.events().unwrap().len();
    cable.act.set_up(false).unwrap();
    // On one channel data waits for an answer; the others are idle and only probed.
    let sent = send(&pair.naples, &pair.act, "flash", "100kB");
    let ends = CHANNELS.map(|(channel, _, _)| {
        let lost = start_of("association_lost", channel, before);
        pair.naples.wait_for_events(&format!("the end of {channel}"), IN_TIME, lost).unwrap()
    });
    let events = pair.naples.events().unwrap();
    for end in ends {
        assert!(events[end].detail.is_some(), "it has a reason: {:?}", events[end]);
    }
    cable.act.set_up(true).unwrap();
    for (channel, _, _) in CHANNELS {
        gone_and_back(&pair.naples, channel, before);
    }
    assert_arrived(std::slice::from_ref(&sent), &pair.act.receive("OPS", 1).unwrap());
    confirmed(&pair.naples, &sent.mts_identifier);
}

#[test]
fn a_peer_that_restarts_finds_every_channel_open_again() {
    let Some(namespace) = namespace("a_peer_that_restarts") else { return };
    let cable = Cable::new(namespace).unwrap();
    let mut pair = pair(&cable, PeerSettings::per_precedence()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    let before = pair.naples.events().unwrap().len();
    pair.act.kill().unwrap();
    let sent = CHANNELS.map(|(precedence, _, _)| send(&pair.naples, &pair.act, precedence, "10kB"));
    pair.act.start().unwrap();
    for (channel, _, _) in CHANNELS {
        gone_and_back(&pair.naples, channel, before);
    }
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
    wait_until_open(&pair, 2 * CHANNELS.len());
}
