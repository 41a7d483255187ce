//! Whole MTAs with scheduled channels, and how soon an idle channel sends, in virtual time.

use base::PeerId;
use base::Precedence::*;
use engine::NextHop;
use node::Input;
use node::config::{Connection, NodeConfig};
use node::event::{Kind, LogEvent};
use node::shards::ShardChange;
use osi::api::Dialogue;
use std::time::Duration;
use testkit::{ACT, Events, NAPLES, NOTHING, Pair, Setup, five_channels};

/// A pair with this configuration of both nodes. It begins on a Thursday at midnight.
fn joined(node: fn(&mut NodeConfig)) -> Pair {
    Pair::new(11, Setup { node, ..NOTHING })
}

fn run_to(pair: &mut Pair, seconds: u64) {
    pair.run_until(base::Instant(seconds * 1_000_000));
}

fn starts(pair: &Pair) -> Vec<&LogEvent> {
    pair.events(Kind::TransferStarted).collect()
}

fn initiated(pair: &Pair, site: usize) -> usize {
    let status = pair.sites[site].node.status(pair.clock());
    let channels = status.peers[0].channels.iter().flat_map(|c| &c.associations);
    channels.filter(|a| a.role == "initiator").count()
}

/// The lengths of the messages that the reader has, in order.
fn lengths(pair: &Pair) -> Vec<usize> {
    pair.contents().iter().map(|content| content.len()).collect()
}

fn windows(config: &mut NodeConfig, text: &str) {
    if config.mta.0 == "NAPLES" {
        let windows = text.parse().unwrap();
        config.peers[0].channels[0].connection = Connection::Scheduled { windows };
    }
}

const LONG: usize = 3_000_000;

/// A message whose transfer takes longer than the window.
fn cut_by_the_end_of_a_window(node: fn(&mut NodeConfig)) -> Pair {
    let mut pair = joined(node);
    pair.latency = Duration::from_millis(200);
    pair.submit(Routine, LONG);
    run_to(&mut pair, 55);
    assert_eq!((starts(&pair).len(), initiated(&pair, NAPLES)), (1, 1));
    run_to(&mut pair, 70);
    assert_eq!(
        initiated(&pair, NAPLES),
        0,
        "the transfer is interrupted, the association released"
    );
    assert_eq!(pair.count(NAPLES, Kind::AssociationLost), 0, "the end was orderly");
    assert_eq!(pair.count(NAPLES, Kind::TransferConfirmed), 0);
    let carried = pair.carried;
    assert!(carried > 500_000, "{carried}");
    pair
}

#[test]
fn a_transfer_is_resumed_in_the_next_window() {
    let mut pair = cut_by_the_end_of_a_window(|c| windows(c, "00:00-00:01; 00:06-24:00"));
    run_to(&mut pair, 359);
    assert_eq!(starts(&pair).len(), 1);
    run_to(&mut pair, 1_000);
    let starts = starts(&pair);
    assert_eq!(starts.len(), 2);
    assert!(starts[1].detail.starts_with("resumed after "), "{}", starts[1].detail);
    assert_eq!(lengths(&pair), [LONG]);
    assert!(pair.carried < LONG as u64 * 11 / 10, "{} octets", pair.carried);
    assert_eq!(pair.queued(NAPLES), 0);
}

#[test]
fn a_transfer_begins_again_if_the_next_window_is_too_late() {
    let mut pair = cut_by_the_end_of_a_window(|c| windows(c, "00:00-00:01; 00:20-24:00"));
    run_to(&mut pair, 2_400);
    let starts = starts(&pair);
    assert_eq!(starts.len(), 2);
    assert!(!starts[1].detail.contains("resumed"), "{}", starts[1].detail);
    assert_eq!(lengths(&pair), [LONG], "once");
}

/// One minute of every 20.
const SHORT: &str = "00:00-00:01; 00:20-00:21; 00:40-00:41; 01:00-01:01; 01:20-01:21";

#[test]
fn a_message_longer_than_every_window_is_resumed_from_one_to_the_next() {
    let mut pair = cut_by_the_end_of_a_window(|config| {
        let windows = SHORT.parse().unwrap();
        config.peers[0].channels[0].connection = Connection::Scheduled { windows };
    });
    pair.submit(Routine, 1_000);
    run_to(&mut pair, 6_000);
    let mut delivered = lengths(&pair);
    delivered.sort_unstable();
    assert_eq!(delivered, [1_000, LONG]);
    assert!(pair.carried < LONG as u64 * 12 / 10, "{} octets", pair.carried);
}

#[test]
fn a_message_longer_than_every_window_lets_others_pass_if_it_cannot_be_resumed() {
    let mut pair = cut_by_the_end_of_a_window(|c| windows(c, SHORT));
    pair.submit(Routine, 1_000);
    run_to(&mut pair, 6_000);
    assert_eq!(lengths(&pair), [1_000]);
}

#[test]
fn a_message_for_a_closed_channel_waits_for_its_window() {
    let mut pair = joined(|c| windows(c, "00:10-00:20"));
    pair.submit(Flash, 1_000);
    run_to(&mut pair, 599);
    assert_eq!((starts(&pair).len(), initiated(&pair, NAPLES)), (0, 0));
    run_to(&mut pair, 602);
    assert_eq!(lengths(&pair), [1_000]);
}

#[test]
fn an_association_that_the_peer_opens_outside_the_windows_is_used() {
    let mut pair = joined(|config| {
        windows(config, "12:00-13:00");
        let channel = &mut config.peers[0].channels[0];
        channel.rts.dialogue = Dialogue::TwoWayAlternate;
        if config.mta.0 == "ACT" {
            channel.connection = Connection::Permanent;
        }
    });
    pair.submit(Flash, 1_000);
    run_to(&mut pair, 10);
    assert_eq!((lengths(&pair).as_slice(), initiated(&pair, NAPLES)), (&[1_000][..], 0));
}

#[test]
fn an_idle_channel_sends_at_once_after_the_commit() {
    let mut pair = joined(five_channels);
    run_to(&mut pair, 60);
    let carried = pair.carried;
    pair.submit(Flash, 1_000);
    while pair.count(NAPLES, Kind::Submitted) == 0 {
        pair.run_for(Duration::from_micros(10));
    }
    // In the same step, and from memory: no record is read.
    let at = |kind| pair.sites[NAPLES].first(kind).0;
    let wait = at(Kind::TransferStarted).since(at(Kind::Submitted));
    assert_eq!(wait, Duration::ZERO);
    assert!(pair.carried > carried, "written, not only begun");
    run_to(&mut pair, 70);
    assert_eq!(lengths(&pair), [1_000]);
    let loads = |site: usize| pair.sites[site].store.loads;
    assert_eq!((loads(NAPLES), loads(ACT)), (0, 0), "none for the delivery either");
}

#[test]
fn the_record_of_a_message_that_waited_is_read_when_it_starts() {
    let mut pair = joined(five_channels);
    run_to(&mut pair, 60);
    for size in [1_000_000, 1_001, 1_002] {
        pair.submit(Flash, size);
    }
    run_to(&mut pair, 90);
    assert_eq!(lengths(&pair), [1_000_000, 1_001, 1_002]);
    assert_eq!(pair.sites[NAPLES].store.loads, 2);
}

/// Five channels. That of Flash has these windows, and that of Routine is its fallback.
fn scheduled_flash(config: &mut NodeConfig, text: &str) {
    five_channels(config);
    let channels = &mut config.peers[0].channels;
    channels[0].fallback = vec![Flash];
    if config.mta.0 == "NAPLES" {
        channels[FLASH].connection = Connection::Scheduled { windows: text.parse().unwrap() };
    }
}

const FLASH: usize = 3;

/// The channels of the transfers begun, by index.
fn taken(pair: &Pair) -> Vec<usize> {
    starts(pair).iter().map(|e| e.channel.unwrap().index as usize).collect()
}

#[test]
fn the_fallback_of_a_channel_is_used_outside_its_windows_only() {
    let mut pair = joined(|config| scheduled_flash(config, "00:00-00:01; 00:02-00:03"));
    for (at, size) in [(30, 1_000), (70, 2_000), (130, 3_000), (190, 4_000)] {
        run_to(&mut pair, at);
        pair.submit(Flash, size);
    }
    run_to(&mut pair, 200);
    assert_eq!(taken(&pair), [FLASH, 0, FLASH, 0]);
    let by_rule_5: Vec<bool> = starts(&pair).iter().map(|e| e.detail.contains("rule 5")).collect();
    assert_eq!(by_rule_5, [false, true, false, true]);
    assert_eq!(lengths(&pair), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn an_association_that_ends_with_its_window_carries_no_other_message() {
    let mut pair = joined(|config| {
        scheduled_flash(config, "00:00-00:01; 00:20-24:00");
        // Without checkpoints a transfer is not interrupted: it is finished.
        for channel in &mut config.peers[0].channels {
            channel.rts.checkpoint_size = 0;
        }
    });
    run_to(&mut pair, 55);
    // Its content comes slowly from the disk.
    pair.delays.read = Duration::from_millis(500);
    pair.submit(Flash, 1_000_000);
    run_to(&mut pair, 61);
    assert_eq!((taken(&pair), lengths(&pair).len()), (vec![FLASH], 0));
    pair.submit(Flash, 1_000);
    run_to(&mut pair, 64);
    assert_eq!((taken(&pair), lengths(&pair)), (vec![FLASH, 0], vec![1_000]), "beside it");
    run_to(&mut pair, 300);
    assert_eq!(lengths(&pair), [1_000, 1_000_000], "it was finished");
    assert_eq!(taken(&pair).len(), 2);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let open =
        status.peers[0].channels[FLASH].associations.iter().filter(|a| a.role == "initiator");
    assert_eq!(open.count(), 0);
}

/// One of several nodes of a site: nobody resumes the transfer here, so nothing keeps the peer from its next owner.
#[test]
fn a_peer_is_given_away_with_a_transfer_that_the_handover_interrupts() {
    let mut pair = joined(|_| ());
    pair.latency = Duration::from_millis(200);
    pair.feed(NAPLES, Input::Shard(ShardChange::Several));
    let hop = NextHop::Peer(PeerId::of_name("act"));
    pair.feed(NAPLES, Input::Shard(ShardChange::Gained(hop.clone())));
    pair.submit(Routine, LONG);
    pair.submit(Flash, 100);
    run_to(&mut pair, 20);
    assert!(!starts(&pair).is_empty());
    assert_ne!(pair.queued(NAPLES), 0);
    pair.feed(NAPLES, Input::Shard(ShardChange::Leave(hop)));
    run_to(&mut pair, 50);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let levels = status.peers[0].channels.iter().flat_map(|channel| &channel.levels);
    let here: u64 = levels.map(|level| level.queued + level.in_transfer).sum();
    assert_eq!((here, pair.queued(NAPLES)), (0, 1), "another node has it");
    assert_eq!(pair.count(NAPLES, Kind::TransferConfirmed), 1, "the Flash");
}
