//! Whole MTAs with scheduled channels, and how soon an idle channel sends, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::Precedence::{self, *};
use node::config::{Connection, NodeConfig};
use node::event::{Event, Kind};
use osi::api::Dialogue;
use p1::flags::ReportRequest;
use std::time::Duration;
use world::{ACT, Delivered, NAPLES, Setup, World, address, five_channels};

const SECOND: Duration = Duration::from_secs(1);

struct Run {
    world: World,
    sender: usize,
    reader: usize,
}

impl Run {
    /// The world begins on a Thursday at midnight.
    fn new(node: fn(&mut NodeConfig)) -> Run {
        let mut world = World::with(11, Setup { rts: |_| {}, node });
        let sender = world.user(NAPLES, "OPS", false);
        let reader = world.user(ACT, "OPS", true);
        world.bind(sender, NAPLES);
        world.bind(reader, ACT);
        world.run_for(SECOND);
        Run { world, sender, reader }
    }

    fn submit(&mut self, precedence: Precedence, size: usize) {
        let to = [address(ACT, "OPS")];
        let id = format!("{precedence} {size}");
        let content = vec![7; size];
        self.world.submit(self.sender, &to, precedence, &content, &id, ReportRequest::None);
    }

    fn run_to(&mut self, seconds: u64) {
        self.world.run_until(base::Instant(seconds * 1_000_000));
    }

    fn starts(&self) -> Vec<&Event> {
        let events = self.world.sites[NAPLES].events.iter().map(|(_, e)| e);
        events.filter(|e| e.kind == Kind::TransferStarted).collect()
    }

    fn count(&self, kind: Kind) -> usize {
        self.world.sites[NAPLES].events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    fn initiated(&self, site: usize) -> usize {
        let status = self.world.sites[site].node.status(self.world.clock());
        let channels = status.peers[0].channels.iter().flat_map(|c| &c.associations);
        channels.filter(|a| a.role == "initiator").count()
    }

    fn delivered(&self) -> Vec<usize> {
        let all = self.world.users[self.reader].delivered.iter();
        all.map(|d| match d {
            Delivered::Message { content, .. } => content.len(),
            other => panic!("{other:?}"),
        })
        .collect()
    }
}

fn windows(config: &mut NodeConfig, text: &str) {
    if config.mta.0 == "NAPLES" {
        let windows = text.parse().unwrap();
        config.peers[0].channels[0].connection = Connection::Scheduled { windows };
    }
}

const LONG: usize = 3_000_000;

/// A message so long that the window ends in the midst of it.
fn cut_by_the_end_of_a_window(node: fn(&mut NodeConfig)) -> Run {
    let mut run = Run::new(node);
    run.world.latency = Duration::from_millis(200);
    run.submit(Routine, LONG);
    run.run_to(55);
    assert_eq!((run.starts().len(), run.initiated(NAPLES)), (1, 1));
    run.run_to(70);
    assert_eq!(run.initiated(NAPLES), 0, "interrupted and released");
    assert_eq!(run.count(Kind::AssociationLost), 0, "in order");
    assert_eq!(run.count(Kind::TransferConfirmed), 0);
    let carried = run.world.carried;
    assert!(carried > 500_000, "{carried}");
    run
}

#[test]
fn a_transfer_goes_on_in_the_next_window() {
    let mut run = cut_by_the_end_of_a_window(|c| windows(c, "00:00-00:01; 00:06-24:00"));
    run.run_to(359);
    assert_eq!(run.starts().len(), 1);
    run.run_to(1_000);
    let starts = run.starts();
    assert_eq!(starts.len(), 2);
    assert!(starts[1].detail.starts_with("resumed after "), "{}", starts[1].detail);
    assert_eq!(run.delivered(), [LONG]);
    assert!(run.world.carried < LONG as u64 * 11 / 10, "{} octets", run.world.carried);
    assert_eq!(run.world.queued(NAPLES), 0);
}

#[test]
fn a_transfer_begins_again_in_a_window_that_is_too_far_away() {
    let mut run = cut_by_the_end_of_a_window(|c| windows(c, "00:00-00:01; 00:20-24:00"));
    run.run_to(2_400);
    let starts = run.starts();
    assert_eq!(starts.len(), 2);
    assert!(!starts[1].detail.contains("resumed"), "{}", starts[1].detail);
    assert_eq!(run.delivered(), [LONG], "once");
}

/// A minute of every 20, and a long window at last. The same at both ends, where `both` says so.
const SHORT: &str = "00:00-00:01; 00:20-00:21; 00:40-00:41; 01:00-01:01; 01:20-01:21";

#[test]
fn a_message_longer_than_every_window_goes_on_from_one_to_the_next() {
    let mut run = cut_by_the_end_of_a_window(|config| {
        let windows = SHORT.parse().unwrap();
        config.peers[0].channels[0].connection = Connection::Scheduled { windows };
    });
    run.submit(Routine, 1_000);
    run.run_to(6_000);
    let mut delivered = run.delivered();
    delivered.sort_unstable();
    assert_eq!(delivered, [1_000, LONG]);
    assert!(run.world.carried < LONG as u64 * 12 / 10, "{} octets", run.world.carried);
}

#[test]
fn a_message_longer_than_every_window_lets_others_pass_where_the_peer_forgets_it() {
    let mut run = cut_by_the_end_of_a_window(|c| windows(c, SHORT));
    run.submit(Routine, 1_000);
    run.run_to(6_000);
    assert_eq!(run.delivered(), [1_000]);
}

#[test]
fn a_message_for_a_closed_channel_waits_for_its_window() {
    let mut run = Run::new(|c| windows(c, "00:10-00:20"));
    run.submit(Flash, 1_000);
    run.run_to(599);
    assert_eq!((run.starts().len(), run.initiated(NAPLES)), (0, 0));
    run.run_to(602);
    assert_eq!(run.delivered(), [1_000]);
}

#[test]
fn what_the_peer_opens_outside_the_windows_may_be_used() {
    let mut run = Run::new(|config| {
        windows(config, "12:00-13:00");
        let channel = &mut config.peers[0].channels[0];
        channel.rts.dialogue = Dialogue::TwoWayAlternate;
        if config.mta.0 == "ACT" {
            channel.connection = Connection::Permanent;
        }
    });
    run.submit(Flash, 1_000);
    run.run_to(10);
    assert_eq!((run.delivered().as_slice(), run.initiated(NAPLES)), (&[1_000][..], 0));
}

#[test]
fn an_idle_channel_sends_right_after_the_commit() {
    let mut run = Run::new(five_channels);
    run.run_to(60);
    let carried = run.world.carried;
    run.submit(Flash, 1_000);
    while run.count(Kind::Submitted) == 0 {
        run.world.run_for(Duration::from_micros(10));
    }
    // In the same step, and from memory: no record is read.
    let at = |kind| {
        let events = &run.world.sites[NAPLES].events;
        events.iter().find(|(_, e)| e.kind == kind).unwrap().0
    };
    let wait = at(Kind::TransferStarted).since(at(Kind::Submitted));
    assert_eq!(wait, Duration::ZERO);
    assert!(run.world.carried > carried, "written, not only begun");
    run.run_to(70);
    assert_eq!(run.delivered(), [1_000]);
    let loads = |site: usize| run.world.sites[site].loads;
    assert_eq!((loads(NAPLES), loads(ACT)), (0, 0), "nor for the delivery");
}

#[test]
fn what_had_to_wait_is_read_when_it_goes() {
    let mut run = Run::new(five_channels);
    run.run_to(60);
    for size in [1_000_000, 1_001, 1_002] {
        run.submit(Flash, size);
    }
    run.run_to(90);
    assert_eq!(run.delivered(), [1_000_000, 1_001, 1_002]);
    assert_eq!(run.world.sites[NAPLES].loads, 2);
}

/// Five channels; the one of Flash is there at these hours, and the one of Routine stands in for it.
fn scheduled_flash(config: &mut NodeConfig, hours: &str) {
    five_channels(config);
    let channels = &mut config.peers[0].channels;
    channels[0].fallback = vec![Flash];
    if config.mta.0 == "NAPLES" {
        channels[FLASH].connection = Connection::Scheduled { windows: hours.parse().unwrap() };
    }
}

const FLASH: usize = 3;

/// The channels of the transfers begun, by index.
fn taken(run: &Run) -> Vec<usize> {
    run.starts().iter().map(|e| e.channel.unwrap().index as usize).collect()
}

#[test]
fn outside_its_hours_a_channel_has_its_fallback_and_within_them_none() {
    let mut run = Run::new(|config| scheduled_flash(config, "00:00-00:01; 00:02-00:03"));
    for (at, size) in [(30, 1_000), (70, 2_000), (130, 3_000), (190, 4_000)] {
        run.run_to(at);
        run.submit(Flash, size);
    }
    run.run_to(200);
    assert_eq!(taken(&run), [FLASH, 0, FLASH, 0]);
    let by_rule_5: Vec<bool> = run.starts().iter().map(|e| e.detail.contains("rule 5")).collect();
    assert_eq!(by_rule_5, [false, true, false, true]);
    assert_eq!(run.delivered(), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn what_is_ending_with_its_hours_is_no_way_for_others() {
    let mut run = Run::new(|config| {
        scheduled_flash(config, "00:00-00:01; 00:20-24:00");
        // Without checkpoints what is in transfer ends when it is through.
        for channel in &mut config.peers[0].channels {
            channel.rts.checkpoint_size = 0;
        }
    });
    run.run_to(55);
    // Its content comes slowly from the disk.
    run.world.reading = Duration::from_millis(500);
    run.submit(Flash, 1_000_000);
    run.run_to(61);
    assert_eq!((taken(&run), run.delivered().len()), (vec![FLASH], 0));
    run.submit(Flash, 1_000);
    run.run_to(64);
    assert_eq!((taken(&run), run.delivered()), (vec![FLASH, 0], vec![1_000]), "beside it");
    run.run_to(300);
    assert_eq!(run.delivered(), [1_000, 1_000_000], "it was let through");
    assert_eq!(taken(&run).len(), 2);
    let status = run.world.sites[NAPLES].node.status(run.world.clock());
    let open =
        status.peers[0].channels[FLASH].associations.iter().filter(|a| a.role == "initiator");
    assert_eq!(open.count(), 0);
}
