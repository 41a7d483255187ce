//! A node behind a slow line. The edge reports how many octets the other end has taken: that is
//! progress. Octets that only wait are not.

use base::{EntryId, Instant, PeerId, Precedence};
use engine::NextHop;
use node::Input;
use node::config::{Hold, NodeConfig};
use node::event::{Kind, LogEvent};
use status::ChannelStatus;
use std::time::Duration;
use testkit::build::canonical;
use testkit::{Bench, Events, NAPLES, P3, Paced, Wire, address, five_channels, node_config};

const SECOND: Duration = Duration::from_secs(1);
const ROUTINE: u32 = 0;
const FLASH: u32 = 3;
/// The transfer timeout of the channels of [`config`].
const TRANSFER: Duration = Duration::from_secs(120);

fn config(config: &mut NodeConfig) {
    five_channels(config);
    config.hold.hold = Hold::Strict;
    for channel in &mut config.peers[0].channels {
        channel.rts.transfer_timeout = TRANSFER;
        (channel.rts.checkpoint_size, channel.rts.window) = (64, 16);
        channel.checkpoint_adapts = true;
    }
}

/// A line of this rate, and waiting messages of this length: hop and precedence of each.
fn behind(bit_s: u64, length: u64, queued: &[(NextHop, Precedence)]) -> Bench {
    behind_with(config, bit_s, length, queued)
}

fn behind_with(
    config: fn(&mut NodeConfig),
    bit_s: u64,
    length: u64,
    queued: &[(NextHop, Precedence)],
) -> Bench {
    let mut line = Bench::new(node_config(NAPLES, config));
    line.wire = Box::new(move || Box::new(Paced::new(bit_s)));
    line.queue_for("act", length);
    for (id, (hop, precedence)) in (1..).map(EntryId).zip(queued) {
        line.queue_to(id, hop.clone(), *precedence);
    }
    line
}

/// The next peer stops to read after 20,000 octets, but then takes a few octets (`trickles`) from time to
/// time.
fn stopping(bit_s: u64, trickles: u64) -> Box<dyn Fn() -> Box<dyn Wire>> {
    Box::new(move || Box::new(Paced::that_stops(bit_s, 20_000, trickles)))
}

/// Lost associations and failed transfers, as text.
fn failures(line: &Bench) -> Vec<String> {
    let bad = |kind| {
        let ours = matches!(kind, Kind::AssociationLost | Kind::TransferFailed);
        ours || kind == Kind::DeliveryFailed
    };
    let events = line.events.iter().filter(|(_, event)| bad(event.kind));
    events.map(|(at, event)| format!("{at:?} {:?} {}", event.kind, event.detail)).collect()
}

/// When the transfers on a channel began.
fn started(line: &Bench, channel: u32) -> Vec<Instant> {
    let its = |event: &LogEvent| event.channel.is_some_and(|c| c.index == channel);
    let all = line.timed(Kind::TransferStarted).filter(|(_, event)| its(event));
    all.map(|(at, _)| at).collect()
}

fn channel_status(line: &Bench, channel: u32) -> ChannelStatus {
    line.node.status(line.clock()).peers.remove(0).channels.remove(channel as usize)
}

fn act() -> NextHop {
    NextHop::Peer(PeerId::of_name("act"))
}

#[test]
fn a_transfer_that_takes_longer_than_its_timer_succeeds_at_the_first_try() {
    for (bit_s, length) in [(2_400, 36_000), (2_400, 100_000), (9_600, 1_000_000)] {
        let mut line = behind(bit_s, length, &[(act(), Precedence::Routine)]);
        line.start();
        line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::TransferConfirmed) > 0);
        assert_eq!(
            line.count(Kind::TransferConfirmed),
            1,
            "{bit_s} {length} {:#?}",
            failures(&line)
        );
        assert_eq!(line.count(Kind::AssociationLost), 0, "{:#?}", failures(&line));
        assert!(line.now >= Instant(0) + Duration::from_secs(length * 8 / bit_s));
    }
}

#[test]
fn a_peer_that_stops_reading_is_aborted_after_the_transfer_timeout() {
    let mut line = behind(2_400, 100_000, &[(act(), Precedence::Routine)]);
    line.wire = stopping(2_400, 0);
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::AssociationLost) > 0);
    let (at, event) = line.first(Kind::AssociationLost);
    assert!(event.detail.contains("Timeout in Sta2"), "{:#?}", failures(&line));
    assert!(event.detail.contains("the peer took nothing"), "{event:?}");
    // It stopped after 67 s or some packets more; the node notices some seconds later.
    let took = at.since(Instant(0));
    assert!(took > 66 * SECOND + TRANSFER && took < 90 * SECOND + TRANSFER, "{took:?}");
    // The message is not lost: it is sent again to a peer that reads.
    line.wire = Box::new(|| Box::new(Paced::new(2_400)));
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    assert_eq!(line.count(Kind::TransferConfirmed), 1);
}

/// A checkpoint of 64 KiB takes 218 s at 2,400 bit/s, and `stall` is 15 s.
#[test]
fn a_flash_holds_the_routine_while_it_makes_progress() {
    let queued = [(act(), Precedence::Flash), (act(), Precedence::Routine)];
    let mut line = behind(2_400, 100_000, &queued);
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    assert_eq!((started(&line, FLASH).len(), started(&line, ROUTINE).len()), (1, 1));
    let (through, _) = line.first(Kind::TransferConfirmed);
    assert_eq!(started(&line, ROUTINE)[0], through, "not before the Flash is confirmed");

    let mut line = behind(2_400, 100_000, &queued);
    line.wire = stopping(2_400, 0);
    line.start();
    line.pass(100 * SECOND);
    let began = started(&line, ROUTINE)[0].since(Instant(0));
    assert!(
        began > 80 * SECOND && began < 100 * SECOND,
        "{began:?}: it holds the Routine while it makes progress"
    );
}

/// An octet from time to time is not progress: otherwise a peer could keep a message in transfer for
/// ever.
#[test]
fn a_peer_that_takes_only_a_few_octets_is_aborted_and_holds_nothing() {
    let queued = [(act(), Precedence::Flash), (act(), Precedence::Routine)];
    for trickles in [1, 8] {
        let mut line = behind(2_400, 100_000, &queued);
        line.wire = stopping(2_400, trickles);
        line.start();
        line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::AssociationLost) > 0);
        let (at, _) = line.first(Kind::AssociationLost);
        let took = at.since(Instant(0));
        assert!(took > 66 * SECOND + TRANSFER && took < 120 * SECOND + TRANSFER, "{took:?}");
        let began = started(&line, ROUTINE)[0].since(Instant(0));
        assert!(began > 80 * SECOND && began < 130 * SECOND, "{began:?}");
    }
}

#[test]
fn the_next_association_has_a_checkpoint_that_suits_the_line() {
    let queued = [(act(), Precedence::Routine), (act(), Precedence::Routine)];
    for (bit_s, suits) in [(2_400, 2 << 10), (9_600, 8 << 10), (64_000, 64 << 10)] {
        let mut line = behind(bit_s, 100_000, &queued);
        line.start();
        let status = channel_status(&line, ROUTINE);
        assert_eq!((status.checkpoint_bytes, status.line_kbit_s), (64 << 10, None));
        let time = Duration::from_secs(1_000);
        line.pass_until(time, |line| line.count(Kind::TransferConfirmed) > 0);
        let status = channel_status(&line, ROUTINE);
        assert_eq!(status.checkpoint_bytes, suits, "{bit_s}: {:?}", status.line_kbit_s);
        if let Some(rate) = status.line_kbit_s {
            assert!((rate * 1_000.0 / bit_s as f64 - 1.0).abs() < 0.15, "{bit_s}: {rate}");
        }
        line.cut(ROUTINE);
        line.pass_until(time, |line| line.count(Kind::TransferConfirmed) > 1);
        let agreed: Vec<_> =
            line.script.checkpoints.iter().map(|(_, octets)| octets.unwrap()).collect();
        assert_eq!((agreed[0], *agreed.last().unwrap()), (64 << 10, suits));
    }
}

#[test]
fn a_configured_checkpoint_does_not_adapt() {
    let fixed = |node: &mut NodeConfig| {
        config(node);
        for channel in &mut node.peers[0].channels {
            (channel.checkpoint_adapts, channel.rts.checkpoint_size) = (false, 32);
        }
    };
    let mut line = behind_with(fixed, 2_400, 100_000, &[(act(), Precedence::Routine)]);
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    let status = channel_status(&line, ROUTINE);
    assert_eq!(status.checkpoint_bytes, 32 << 10);
    assert_eq!(status.associations[0].checkpoint_bytes, Some(32 << 10));
    assert!(status.line_kbit_s.is_some(), "the rate is known too");
}

/// The content is read in pieces of 64 KiB. Each takes longer than a delivery may be without progress.
#[test]
fn a_delivery_over_a_slow_line_succeeds() {
    let address = address(NAPLES, "OPS");
    let mailbox = canonical(&address);
    let hop = NextHop::Mailbox(mailbox.clone());
    let mut line = behind(2_400, 200_000, &[(hop, Precedence::Routine)]);
    line.start();
    line.feed(Input::Mailboxes {
        addresses: vec![mailbox],
        stored: Default::default(),
        changed: Vec::new(),
    });
    let user = line.connect(P3, "192.0.2.7");
    line.address_on(user, &address, "secret");
    line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::Delivered) > 0);
    assert_eq!(
        (line.count(Kind::Delivered), line.script.delivered),
        (1, 1),
        "{:#?}",
        failures(&line)
    );
    assert_eq!(line.count(Kind::DeliveryFailed), 0);
}
