//! Slow lines: whatever the window lets out takes minutes there, and arrives all the same; who stops
//! reading is given up.

use crate::setting::*;
use base::Precedence;
use node::config::Connection;
use node::event::Kind;
use sim::{ChannelSetup, Scenario, SimulationOutcome, SubmissionStart, run};
use std::time::Duration;

/// Octets of headers, of envelopes, of what opens the association and of what TCP repeats on a line
/// whose packets take longer than its timer, at most, for so much content.
fn beside(size: u64) -> u64 {
    6_000 + size * 2 / 5
}

/// What so many octets take on a line.
fn line(octets: u64, bit_s: u64) -> Duration {
    Duration::from_secs_f64(octets as f64 * 8.0 / bit_s as f64)
}

fn slow(bit_s: u64, sizes: &[u64]) -> Scenario {
    let mut scenario = pair(&format!("{bit_s}bit"), 20);
    // One association: what others have in the line's queue is not what is looked at here.
    scenario.sites = sites(&ChannelSetup {
        connection: Connection::OnDemand { idle_close: seconds(300) },
        ..ChannelSetup::default()
    });
    for (n, size) in sizes.iter().enumerate() {
        let start = SubmissionStart::At(seconds(2 + n as u64));
        scenario.messages.push(message(Precedence::Routine, *size, start));
    }
    scenario.until = seconds(6 * 3_600);
    scenario
}

fn failures(outcome: &SimulationOutcome) -> Vec<String> {
    let bad =
        |kind| matches!(kind, Kind::TransferFailed | Kind::AssociationLost | Kind::ReceiveFailed);
    let events = outcome.events.iter().filter(|(_, _, event)| bad(event.kind));
    events
        .map(|(at, site, event)| format!("{at:?} {site} {:?} {}", event.kind, event.detail))
        .collect()
}

/// The message arrives at the first try, in little more than the line needs.
fn arrives(bit_s: u64, size: u64) {
    let outcome = run(&slow(bit_s, &[size])).unwrap();
    let times = &outcome.messages[0];
    let failed = failures(&outcome);
    assert!(failed.is_empty(), "{bit_s} bit/s, {size} octets: {failed:#?}");
    assert!(times.intact && times.deliveries == 1, "{times:?}");
    let took = times.delivered.unwrap() - times.submitted.unwrap();
    let least = line(size, bit_s);
    let most = line(size + beside(size), bit_s);
    assert!(took > least && took < most, "{bit_s} bit/s, {size} octets: {took:?}, line {least:?}");
}

#[test]
fn at_2400_bit_s() {
    for size in [1_000, 36_000, 100_000] {
        arrives(2_400, size);
    }
}

#[test]
fn at_9600_bit_s() {
    for size in [1_000, 36_000, 100_000, 1_000_000] {
        arrives(9_600, size);
    }
}

#[test]
fn at_64_kbit_s() {
    for size in [1_000, 36_000, 100_000, 1_000_000] {
        arrives(64_000, size);
    }
}
