//! One of several nodes on one store: it sends what it owns, and leaves the rest in the store.

use base::{EntryId, PeerId, Precedence};
use bytes::Bytes;
use engine::NextHop;
use engine::journal::{Batch, Digest, Op};
use node::event::Kind;
use node::operator::{Act, ActOutcome, HELD, Operator};
use node::shards::ShardChange;
use node::{CommitError, EdgeError, Input};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use testkit::bench::{ACT_FLASH, Answer, Disposition, Outcome, two_peers};
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

/// What the store answers to the next commit.
fn answer(bench: &mut Bench, result: Result<(), CommitError>) {
    let (token, batch) = bench.store.take_commit().expect("a commit is asked for");
    let input = match result {
        Ok(()) => return bench.finish_commit((token, batch), Ok(())),
        Err(error) => Input::Committed { token, result: Err(error) },
    };
    bench.feed(input);
}

fn not_now() -> CommitError {
    CommitError::NotDone(EdgeError("the database is away".to_owned()))
}

/// A confirmed transfer whose removal is not durable when the shard is lost, and comes back.
fn confirmed_and_lost() -> Bench {
    let mut bench = several();
    shard(&mut bench, ShardChange::Gained(act()));
    bench.store.withholds = true;
    flashes(&mut bench, 1);
    bench.pass(SECOND);
    bench
}

#[test]
fn what_was_confirmed_is_not_sent_again_when_its_shard_comes_back() {
    // The removal is answered before the shard is lost, after it, or once it is back.
    for answered in 0..3 {
        let mut bench = confirmed_and_lost();
        if answered == 0 {
            answer(&mut bench, Err(not_now()));
        }
        shard(&mut bench, ShardChange::Lost(act()));
        if answered == 1 {
            answer(&mut bench, Err(not_now()));
        }
        shard(&mut bench, ShardChange::Gained(act()));
        flashes(&mut bench, 1);
        if answered == 2 {
            answer(&mut bench, Err(not_now()));
        }
        bench.pass(10 * SECOND);
        assert_eq!(bench.count(Kind::TransferStarted), 1, "{answered}: {:?}", bench.events);
        bench.store.withholds = false;
        answer(&mut bench, Ok(()));
        bench.pass(60 * SECOND);
        assert!(!bench.is_queued(EntryId(1)));
        assert_eq!((bench.count(Kind::TransferStarted), known(&bench)), (1, 0));
    }
}

#[test]
fn a_removal_is_tried_as_soon_as_the_shard_is_back_and_not_for_ever() {
    let mut bench = confirmed_and_lost();
    answer(&mut bench, Err(not_now()));
    shard(&mut bench, ShardChange::Lost(act()));
    bench.pass(5 * SECOND);
    // It was too early: the shard is not back yet.
    answer(&mut bench, Err(CommitError::Fenced));
    shard(&mut bench, ShardChange::Gained(act()));
    for _ in 0..12 {
        answer(&mut bench, Err(CommitError::Fenced));
        bench.pass(5 * SECOND);
    }
    assert!(bench.store.take_commit().is_none(), "another node has removed it");
    // What the store has of it after all is handed in again.
    flashes(&mut bench, 1);
    bench.pass(SECOND);
    assert_eq!(bench.count(Kind::TransferStarted), 2);
}

#[test]
fn an_order_that_another_node_s_ownership_refuses_is_answered() {
    let mut bench = several();
    bench.script.answer = Answer::Silence;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 2);
    bench.pass(SECOND);
    bench.store.withholds = true;
    let by = Operator { uid: 7, name: None };
    let entries = vec![EntryId(1), EntryId(2)];
    bench.feed(Input::Operate { request: 7, entries, act: Act::Expire, by });
    answer(&mut bench, Err(CommitError::Fenced));
    bench.pass(SECOND);
    let (_, result) = bench.operated.pop().expect("an answer");
    let outcomes = result.expect("outcomes");
    assert_eq!(outcomes.len(), 2);
    assert!(
        outcomes.iter().all(|(_, outcome)| matches!(outcome, ActOutcome::Refused(why) if why.contains("another node"))),
        "{outcomes:?}"
    );
}

/// The next owner would send it again.
#[test]
fn a_shard_is_not_left_while_a_removal_is_to_be_made() {
    let mut bench = confirmed_and_lost();
    answer(&mut bench, Err(not_now()));
    shard(&mut bench, ShardChange::Leave(act()));
    bench.pass(SECOND);
    assert_eq!(bench.left, [], "what was sent is in the store");
    bench.pass(5 * SECOND);
    assert_eq!(bench.left, [], "its removal is being made");
    answer(&mut bench, Ok(()));
    bench.pass(SECOND);
    assert!(!bench.is_queued(EntryId(1)));
    assert_eq!(bench.left, [(act(), false)]);
    assert_eq!(bench.count(Kind::TransferStarted), 1);
}

/// Else the next hold or release would take it off the store too, and another node would send the entry.
#[test]
fn what_a_fenced_order_was_to_take_out_is_held_as_before() {
    let mut bench = beside_another_one();
    bench.feed(Input::RecoveredHolds(holds(&[2, 900])));
    bench.store.withholds = true;
    order(&mut bench, Act::Delete, 2);
    answer(&mut bench, Err(CommitError::Fenced));
    bench.pass(SECOND);
    bench.store.withholds = false;
    order(&mut bench, Act::Hold, 3);
    assert_eq!(bench.store.meta.get(HELD), Some(&holds(&[2, 3, 900])));
}

#[test]
fn associations_of_a_lost_shard_are_aborted() {
    let mut bench = two_peers(<_>::default(), |_| ());
    shard(&mut bench, ShardChange::Several);
    shard(&mut bench, ShardChange::Gained(act()));
    let bound = bench.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
    assert_eq!(bench.outcome(bound), Outcome::Open);
    shard(&mut bench, ShardChange::Lost(act()));
    assert!(!bench.dropped.contains(&bound) && bench.closed.contains(&bound));
    assert!(matches!(bench.outcome(bound), Outcome::Aborted(_)), "{:?}", bench.outcome(bound));
    let (_, event) = bench.first(Kind::AssociationLost);
    assert!(event.detail.contains("another node"), "{event:?}");
}

/// The value of the store with these holds.
fn holds(entries: &[u64]) -> Bytes {
    entries.iter().flat_map(|id| id.to_be_bytes()).collect::<Vec<u8>>().into()
}

fn order(bench: &mut Bench, act: Act, entry: u64) {
    let by = Operator::default();
    bench.feed(Input::Operate { request: entry, entries: vec![EntryId(entry)], act, by });
    bench.settle();
}

/// Entries 1 to 3 are here, and another node has others.
fn beside_another_one() -> Bench {
    let mut bench = several();
    bench.script.others = Disposition::Keep;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 3);
    bench.pass(10 * SECOND);
    bench
}

/// Else that node would send what its operator holds.
#[test]
fn a_hold_here_leaves_the_holds_of_other_nodes() {
    let mut bench = several();
    bench.script.answer = Answer::Silence;
    shard(&mut bench, ShardChange::Gained(act()));
    flashes(&mut bench, 2);
    bench.feed(Input::RecoveredHolds(holds(&[900])));
    let by = Operator { uid: 7, name: None };
    bench.feed(Input::Operate { request: 7, entries: vec![EntryId(2)], act: Act::Hold, by });
    assert_eq!(bench.store.meta.get(HELD), Some(&holds(&[2, 900])));
}

/// The owner before has logged it; one that became late while nobody owned it is logged by the next one.
#[test]
fn what_is_late_is_logged_by_one_owner() {
    let mut bench = several();
    let user = NextHop::Mailbox("/c=it/admd=net/prmd=naples/s=ops".to_owned());
    let gained = |bench: &mut Bench| {
        shard(bench, ShardChange::Gained(user.clone()));
        bench.queue_to(EntryId(1), user.clone(), Precedence::Flash);
        bench.feed(Input::Tick);
    };
    gained(&mut bench);
    bench.pass(3_600 * SECOND);
    assert_eq!(bench.count(Kind::Overdue), 1);
    shard(&mut bench, ShardChange::Lost(user.clone()));
    gained(&mut bench);
    bench.pass(10 * SECOND);
    assert_eq!(bench.count(Kind::Overdue), 1, "it moved only");
    // Another node had it, and was lost when it became late.
    let mut bench = several();
    bench.pass(65 * SECOND);
    gained(&mut bench);
    bench.pass(10 * SECOND);
    assert_eq!(bench.count(Kind::Overdue), 1);
}

#[test]
fn an_operator_here_leaves_the_holds_of_other_nodes() {
    let mut bench = beside_another_one();
    bench.feed(Input::RecoveredHolds(holds(&[900])));
    order(&mut bench, Act::Hold, 2);
    assert_eq!(bench.store.meta.get(HELD), Some(&holds(&[2, 900])));
    // One that goes here takes its mark along with the next change.
    order(&mut bench, Act::Delete, 2);
    order(&mut bench, Act::Hold, 3);
    assert_eq!(bench.store.meta.get(HELD), Some(&holds(&[3, 900])));
}

#[test]
fn of_two_nodes_that_hold_in_the_same_moment_neither_loses_its_hold() {
    let mut bench = beside_another_one();
    bench.store.withholds = true;
    order(&mut bench, Act::Hold, 2);
    let (token, batch) = bench.store.take_commit().expect("a commit");
    let over = |batch: &Batch| {
        let replaced = batch.iter().find_map(|op| match op {
            Op::ReplaceMeta { name, value, over } if name == HELD => Some((value.clone(), *over)),
            _ => None,
        });
        replaced.expect("the holds")
    };
    let known = |value: &[u8]| Digest(Sha256::digest(value).into());
    assert_eq!(over(&batch), (holds(&[2]), known(b"")));
    // The other node was faster. What it wrote is known before the answer.
    bench.feed(Input::RecoveredHolds(holds(&[900])));
    bench.feed(Input::Committed { token, result: Err(CommitError::Changed) });
    let (token, batch) = bench.store.take_commit().expect("the same once more");
    assert_eq!(over(&batch), (holds(&[2, 900]), known(&holds(&[900]))));
    bench.finish_commit((token, batch), Ok(()));
    // It is durable: what another node writes from now on holds.
    bench.feed(Input::RecoveredHolds(holds(&[900])));
    order(&mut bench, Act::Hold, 3);
    let (_, batch) = bench.store.take_commit().expect("a commit");
    assert_eq!(over(&batch), (holds(&[3, 900]), known(&holds(&[900]))));
}
