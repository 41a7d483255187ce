//! Messages that an earlier version accepted, with identifiers that are refused today: what is queued
//! is passed on, delivered or reported as it is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod world;

use base::Precedence;
use engine::Record;
use node::event::Kind;
use p1::apdu::MtsApduHead;
use p1::flags::ReportRequest;
use std::time::Duration;
use world::{ACT, Death, Delivered, NAPLES, Setup, World, address};

/// Its identifiers have these local parts from now on.
const IDENTIFIERS: [&str; 2] = ["123456789012345678901234567890123", "x\n\u{1b}[2J"];

/// One message of Naples to this site, queued under this identifier when the MTA starts again.
fn queued(to: usize, local: &str) -> (World, usize) {
    let node = |config: &mut node::config::NodeConfig| {
        *config.times.expire.0.get_mut(Precedence::Flash) = Duration::from_secs(120);
    };
    let mut world = World::with(5, Setup { rts: |_| {}, node });
    world.link_up = false;
    world.cut();
    let sender = world.user(NAPLES, "OPS", true);
    world.bind(sender, NAPLES);
    world.run_for(Duration::from_secs(1));
    let (to, report) = ([address(to, "LOG")], ReportRequest::NonDelivery);
    world.submit(sender, &to, Precedence::Flash, &[1; 1_000], "MESSAGE", report);
    world.run_for(Duration::from_secs(1));
    for octets in world.sites[NAPLES].store.entries.values_mut() {
        let mut record = Record::decode(octets).unwrap();
        let MtsApduHead::Message(envelope) = &mut record.head else { panic!("a message") };
        envelope.message_identifier.local = local.to_owned();
        *octets = record.encode();
    }
    assert_eq!(world.sites[NAPLES].store.entries.len(), 1);
    world.crash_as(NAPLES, Death::Process, 0);
    (world, sender)
}

fn failures(world: &World) -> Vec<&str> {
    let events = world.sites[NAPLES].events.iter().filter(|(_, e)| e.kind == Kind::StoreFailed);
    events.map(|(_, e)| e.detail.as_str()).collect()
}

#[test]
fn it_is_delivered_from_the_mailbox() {
    for local in IDENTIFIERS {
        let (mut world, _) = queued(NAPLES, local);
        let reader = world.user(NAPLES, "LOG", true);
        world.bind(reader, NAPLES);
        world.run_for(Duration::from_secs(10));
        assert_eq!(failures(&world), [""; 0]);
        let [Delivered::Message { content, .. }] = &world.users[reader].delivered[..] else {
            panic!("{local:?}: {:?}", world.users[reader].delivered.len());
        };
        assert_eq!(content[..], [1; 1_000]);
        assert!(world.sites[NAPLES].store.entries.is_empty());
    }
}

#[test]
fn it_is_reported_when_its_time_is_over() {
    for local in IDENTIFIERS {
        let (mut world, sender) = queued(ACT, local);
        world.bind(sender, NAPLES);
        world.run_for(Duration::from_secs(900));
        assert_eq!(failures(&world), [""; 0]);
        let [Delivered::Report { delivered: false, .. }] = &world.users[sender].delivered[..]
        else {
            panic!("{local:?}: {:?}", world.users[sender].delivered.len());
        };
        assert!(world.sites[NAPLES].store.entries.is_empty());
    }
}
