//! A node gains a shard while its own commits into it are not answered, and takes up what another node has sent since.

use base::{AssociationId, EntryId, Precedence};
use engine::NextHop;
use node::Input;
use node::event::Kind;
use node::shards::ShardChange;
use p1::flags::ReportRequest;
use std::time::Duration;
use testkit::bench::{Answer, envelope, message_store, user_address};
use testkit::build::canonical;
use testkit::{Bench, Events, NAPLES, five_channels, node_config};

const SECOND: Duration = Duration::from_secs(1);

fn mailbox(name: &str) -> NextHop {
    NextHop::Mailbox(canonical(&user_address(name)))
}

fn shard(bench: &mut Bench, change: ShardChange) {
    bench.feed(Input::Shard(change));
}

/// A node of several, with these mailboxes.
fn with(names: &[&str]) -> Bench {
    let mut bench = message_store(|_| {});
    shard(&mut bench, ShardChange::Several);
    names.iter().for_each(|name| shard(&mut bench, ShardChange::Gained(mailbox(name))));
    bench
}

fn submit(bench: &mut Bench, user: AssociationId, from: &str, to: &str) {
    let mut envelope = envelope(from, &[to], Precedence::Routine);
    envelope.recipients.iter_mut().for_each(|to| to.report_request = ReportRequest::Report);
    bench.submit_whole(user, &envelope, b"content");
    bench.pass(SECOND);
}

/// The store makes the commit that waits.
fn commit(bench: &mut Bench) {
    let commit = bench.store.take_commit().expect("a commit is asked for");
    assert_eq!(bench.store.waiting(), 0, "no other waits");
    bench.finish_commit(commit, Ok(()));
    bench.pass(SECOND);
}

/// The entries that wait for this mailbox.
fn waiting(bench: &Bench, name: &str) -> u64 {
    let mailboxes = bench.node.status(bench.clock()).mailboxes;
    let its = mailboxes.iter().filter(|mailbox| mailbox.address == canonical(&user_address(name)));
    its.flat_map(|mailbox| mailbox.queued.values()).sum()
}

/// All that is in the store is read, as after a shard was gained.
fn read(bench: &mut Bench) {
    for ((precedence, id), record) in bench.store.entries.clone() {
        if engine::journal::ItemId::of_entry(id).is_none() {
            bench.feed(Input::Recovered { precedence, id, record });
        }
    }
    bench.feed(Input::Tick);
}

/// The owner of before may have sent and removed it already: what is there still is read.
#[test]
fn what_was_put_before_a_shard_was_gained_is_not_queued_by_its_commit() {
    let mut bench = with(&["LOG"]);
    let log = bench.reader("LOG");
    bench.store.withholds = true;
    submit(&mut bench, log, "LOG", "PLANS");
    shard(&mut bench, ShardChange::Gained(mailbox("PLANS")));
    commit(&mut bench);
    assert_eq!(waiting(&bench, "PLANS"), 0);
    read(&mut bench);
    assert_eq!(waiting(&bench, "PLANS"), 1);
    // What is accepted from now on is queued at once.
    submit(&mut bench, log, "LOG", "PLANS");
    commit(&mut bench);
    assert_eq!(waiting(&bench, "PLANS"), 2);
}

/// The commit of a delivery puts its reports.
#[test]
fn a_report_that_was_put_before_its_shard_was_gained_is_not_queued_by_its_commit() {
    let mut bench = with(&["OPS", "PLANS"]);
    bench.reader("OPS");
    let plans = bench.user("192.0.2.10", "PLANS", "secret");
    bench.store.withholds = true;
    submit(&mut bench, plans, "PLANS", "OPS");
    commit(&mut bench);
    shard(&mut bench, ShardChange::Lost(mailbox("PLANS")));
    shard(&mut bench, ShardChange::Gained(mailbox("PLANS")));
    commit(&mut bench);
    assert_eq!(bench.count(Kind::Delivered), 1);
    assert_eq!(waiting(&bench, "PLANS"), 0);
    read(&mut bench);
    assert_eq!(waiting(&bench, "PLANS"), 1, "the report");
}

/// The store has no fault then, and the channel takes the next one.
#[test]
fn what_another_node_has_sent_since_is_forgotten() {
    let mut bench = Bench::new(node_config(NAPLES, five_channels));
    shard(&mut bench, ShardChange::Several);
    bench.start();
    bench.queue_for("act", 500);
    shard(&mut bench, ShardChange::Gained(NextHop::Peer(base::PeerId::of_name("act"))));
    bench.script.answer = Answer::Silence;
    (1..=3).for_each(|id| bench.queue(EntryId(id), Precedence::Flash));
    bench.store.entries.remove(&(Precedence::Flash, EntryId(2)));
    bench.script.answer = Answer::Accept;
    bench.pass(60 * SECOND);
    assert_eq!((bench.count(Kind::TransferConfirmed), bench.count(Kind::StoreFailed)), (2, 0));
    let peers = &bench.node.status(bench.clock()).peers;
    assert_eq!(peers[0].channels.iter().flat_map(|c| c.queued.values()).sum::<u64>(), 0);
}
