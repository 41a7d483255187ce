//! One of several nodes on one store: it sends what it owns, and leaves the rest in the store.

use base::{EntryId, PeerId, Precedence};
use engine::NextHop;
use node::Input;
use node::event::Kind;
use node::shards::ShardChange;
use std::time::Duration;
use testkit::bench::{ACT_FLASH, Disposition, Outcome, two_peers};
use testkit::{Bench, Events, NAPLES, five_channels, node_config};

const SECOND: Duration = Duration::from_secs(1);

fn act() -> NextHop {
    NextHop::Peer(PeerId::of_name("act"))
}

fn shard(bench: &mut Bench, change: ShardChange) {
    bench.feed(Input::Shard(change));
}

/// A node that owns nothing yet, with a template for entries of 50,000 octets.
fn several() -> Bench {
    let mut bench = Bench::new(node_config(NAPLES, five_channels));
    shard(&mut bench, ShardChange::Several);
    bench.start();
    bench.queue_for("act", 50_000);
    bench
}

/// These are read from the store.
fn flashes(bench: &mut Bench, count: u64) {
    (1..=count).for_each(|id| bench.queue(EntryId(id), Precedence::Flash));
    bench.feed(Input::Tick);
}

/// The entries that are sent or wait.
fn known(bench: &Bench) -> usize {
    let peers = &bench.node.status(bench.clock()).peers;
    peers[0].channels.iter().flat_map(|channel| channel.queued.values()).sum::<u64>() as usize
}

#[test]
fn what_another_node_owns_is_not_sent() {
    let mut bench = several();
    flashes(&mut bench, 1);
    bench.pass(120 * SECOND);
    assert_eq!(bench.script.connects.len(), 0, "not even a permanent channel is opened");
    assert_eq!((bench.count(Kind::TransferConfirmed), known(&bench)), (0, 0));
    let channel = &bench.node.status(bench.clock()).peers[0].channels[3];
    assert!(format!("{channel:?}").contains("another node of the site has this peer"));
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 1);
    bench.pass(10 * SECOND);
    assert_eq!(bench.count(Kind::TransferConfirmed), 1);
    assert!(!bench.is_queued(EntryId(1)));
}

#[test]
fn what_is_lost_in_transfer_stays_in_the_store_and_is_sent_by_the_next_owner() {
    let mut bench = several();
    bench.script.others = Disposition::Keep;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 3);
    bench.pass(10 * SECOND);
    assert_eq!(bench.count(Kind::TransferStarted), 1);
    shard(&mut bench, ShardChange::Lost(act()));
    bench.pass(700 * SECOND);
    assert_eq!(bench.count(Kind::TransferStarted), 1, "{:?}", bench.events);
    assert_eq!(known(&bench), 0);
    assert!((1..=3).all(|id| bench.is_queued(EntryId(id))), "nothing is deleted");
    let status = bench.node.status(bench.clock());
    assert!(status.peers[0].channels.iter().all(|channel| channel.associations.is_empty()));
    // It comes back.
    bench.script.others = Disposition::Take;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 3);
    bench.pass(60 * SECOND);
    assert_eq!(bench.count(Kind::TransferConfirmed), 3);
    assert!((1..=3).all(|id| !bench.is_queued(EntryId(id))));
}

#[test]
fn a_shard_is_left_once_its_transfer_has_ended() {
    let mut bench = several();
    bench.script.others = Disposition::Keep;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 3);
    bench.pass(10 * SECOND);
    shard(&mut bench, ShardChange::Leave(act()));
    bench.pass(SECOND);
    assert_eq!(bench.left, [], "a transfer is in progress");
    bench.script.others = Disposition::Take;
    bench.confirm();
    bench.pass(10 * SECOND);
    assert_eq!(bench.left, [(act(), false)]);
    assert_eq!(bench.count(Kind::TransferConfirmed), 1, "no other was begun");
    assert_eq!([1, 2, 3].map(|id| bench.is_queued(EntryId(id))), [false, true, true]);
    assert_eq!(known(&bench), 0);
}

#[test]
fn a_shard_without_a_transfer_is_left_at_once() {
    let mut bench = several();
    shard(&mut bench, ShardChange::Gained(act()));
    bench.pass(SECOND);
    shard(&mut bench, ShardChange::Leave(act()));
    bench.pass(SECOND);
    assert_eq!(bench.left, [(act(), false)]);
}

#[test]
fn without_its_lease_a_node_takes_no_bind_and_ends_its_associations() {
    let mut bench = two_peers(<_>::default(), |_| ());
    shard(&mut bench, ShardChange::Several);
    let bound = bench.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(bound), Outcome::Open);
    shard(&mut bench, ShardChange::Lease(false));
    assert!(!bench.is_connected(bound));
    let refused = bench.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
    let (_, event) = bench.first(Kind::AssociationRefused);
    assert!(event.detail.contains("busy"), "{event:?}");
    let user = bench.user("192.0.2.10", "OPS", "secret");
    assert!([refused, user].iter().all(|id| bench.outcome(*id) != Outcome::Open));
    shard(&mut bench, ShardChange::Lease(true));
    let again = bench.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(again), Outcome::Open);
}
