//! A daemon is killed in the middle of a transfer of 10 MB, and started again: the transfer is resumed near
//! the place where it was cut off, whichever end died. With `cargo xtask test --long` at every tenth.

use super::super::e2e::print_line;
use super::{SOON, assert_arrived, namespace, pair, send};
use std::fs;
use testbed::clock::{Deadline, pause};
use testbed::{Cable, DaemonEvent, Pair, PeerSettings, Site};

const SIZE: u64 = 10_000_000;
/// The rate of the line, in bit/s.
const RATE: u64 = 40_000_000;
/// The largest checkpoint of `auto`, and the window: the defaults.
const CHECKPOINT: u64 = 64 << 10;
const WINDOW: u64 = 16;

/// The longest content that a site is receiving, in octets.
fn receiving(site: &Site) -> u64 {
    let bodies = site.path().join("data/queue/bodies");
    let files = fs::read_dir(bodies).into_iter().flatten().flatten();
    let lengths = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    lengths.max().unwrap_or(0)
}

/// What the sender gave as the place of a resumption, in octets.
fn resumed_after(events: &[DaemonEvent]) -> Option<u64> {
    let started = events.iter().rfind(|event| event.event == "transfer_started")?;
    let detail = started.detail.as_deref()?.strip_prefix("resumed after ")?;
    detail.split(' ').next()?.parse().ok()
}

/// Kills the one end at so many tenths; returns how much was sent twice, in octets.
fn sent_twice(pair: &mut Pair, tenth: u64, receiver_dies: bool) -> u64 {
    let sent = send(&pair.naples, &pair.act, "routine", "10MB");
    let deadline = Deadline::after(SOON);
    while receiving(&pair.act) < SIZE * tenth / 10 {
        assert!(!deadline.has_passed(), "{} octets received", receiving(&pair.act));
        pause(std::time::Duration::from_millis(1));
    }
    let victim = if receiver_dies { &mut pair.act } else { &mut pair.naples };
    victim.kill().unwrap();
    let received = receiving(&pair.act);
    let victim = if receiver_dies { &mut pair.act } else { &mut pair.naples };
    victim.start().unwrap();
    let confirmed = |events: &[DaemonEvent]| {
        events.iter().position(|e| e.is("transfer_confirmed", &sent.mts_identifier))
    };
    pair.naples.wait_for_events("the confirm", SOON, confirmed).unwrap();
    let events = pair.naples.events().unwrap();
    let resumed = resumed_after(&events).unwrap_or(0);
    assert_arrived(&[sent], &pair.act.receive("OPS", 1).unwrap());
    received.saturating_sub(resumed)
}

#[test]
fn a_kill_of_either_end_costs_no_more_than_the_window() {
    let Some(namespace) = namespace("a_kill_of_either_end_costs_no_more_than_the_window") else {
        return;
    };
    let cable = Cable::new(namespace).unwrap();
    cable.naples.shape(RATE).unwrap();
    let mut pair = pair(&cable, PeerSettings::default()).start().unwrap();
    let long = std::env::var_os("LONG").is_some();
    let tenths = if long { 1..=9 } else { 9..=9 };
    let mut all = Vec::new();
    for tenth in tenths {
        for receiver_dies in [false, true] {
            let twice = sent_twice(&mut pair, tenth, receiver_dies);
            let most = (WINDOW + 1) * CHECKPOINT;
            assert!(twice <= most, "{tenth}, receiver {receiver_dies}: {twice} octets sent twice");
            all.push(twice / 1000);
        }
    }
    print_line(&format!("kB sent twice after a kill, of {} kB at most: {all:?}", SIZE / 1000));
}
