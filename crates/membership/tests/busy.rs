//! A node that takes over thousands of shards, by hand: it sees what happens meanwhile.

use base::Instant;
use engine::NextHop;
use engine::journal::QueueId;
use membership::{
    Acquired, Answer, Call, Fence, Input, Membership, NodeEpoch, NodeRow, Output, Renewal,
    Settings, ShardRow,
};
use std::collections::BTreeMap;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(4);
const OWN: NodeEpoch = NodeEpoch(1);
/// The time that a call takes.
const CALL: Duration = Duration::from_millis(5);

/// A node that is alone, and the shards as the store has them.
struct Taking {
    node: Membership,
    now: Instant,
    shards: BTreeMap<QueueId, ShardRow>,
    /// The calls that are made, with the times since the start.
    made: Vec<(Duration, Call)>,
    waits: Option<Call>,
}

fn mailbox(n: u64) -> ShardRow {
    let name = format!("/c=it/s={n}");
    let shard = NextHop::Mailbox(name.clone()).queue();
    ShardRow { shard, name, owner: None, since: LEASE, asked_by: None, waits: None }
}

impl Taking {
    fn new(count: u64) -> Taking {
        let settings = Settings { name: "n1".to_owned(), lease: LEASE, peers: BTreeMap::new() };
        let shards = (0..count).map(mailbox).map(|row| (row.shard, row)).collect();
        let (node, now) = (Membership::new(settings), Instant(1_000_000_000));
        let mut taking = Taking { node, now, shards, made: Vec::new(), waits: None };
        taking.give(Input::Tick);
        taking
    }

    fn give(&mut self, input: Input) {
        self.node.handle(self.now, input);
        while let Some(output) = self.node.poll() {
            match output {
                Output::Call(Call::Join) => self.give(Input::OfLease(Answer::Joined(OWN))),
                Output::Call(Call::Renew { .. }) => {
                    self.give(Input::OfLease(Answer::Renewed(Renewal::Renewed)));
                }
                Output::Call(call) => {
                    self.made.push((self.now.since(Instant(1_000_000_000)), call.clone()));
                    self.waits = Some(call);
                }
                _ => {}
            }
        }
    }

    /// The call in progress ends. Each acquisition is notified, also to the node itself.
    fn step(&mut self) {
        self.now = self.now + CALL;
        let Some(call) = self.waits.take() else { return self.give(Input::Tick) };
        let answer = match call {
            Call::Acquire { shard, .. } => {
                if let Some(row) = self.shards.get_mut(&shard) {
                    row.owner = Some((OWN, Fence(1)));
                }
                Answer::Acquired(Acquired::Ours(Fence(1)))
            }
            Call::Look => {
                let name = "n1".to_owned();
                let own = NodeRow { epoch: OWN, name, lease_left: LEASE, draining: false };
                let shards = self.shards.values().cloned().collect();
                Answer::Looked { nodes: vec![own], shards }
            }
            _ => Answer::Done,
        };
        self.give(Input::Ended(answer));
        self.give(Input::Changed);
    }

    fn looks(&self) -> Vec<Duration> {
        let of = |(at, call): &(Duration, Call)| (*call == Call::Look).then_some(*at);
        self.made.iter().filter_map(of).collect()
    }
}

#[test]
fn a_node_looks_while_it_takes_many_shards() {
    let mut taking = Taking::new(3_000);
    (0..3_100).for_each(|_| taking.step());
    assert!(taking.shards.values().all(|row| row.owner.is_some()), "it takes all of them");
    let looks = taking.looks();
    let during: Vec<&Duration> = looks.iter().filter(|at| **at < CALL * 3_000).collect();
    assert!((10..40).contains(&during.len()), "{during:?}");
    for pair in during.windows(2) {
        assert!(*pair[1] - *pair[0] <= LEASE / 4 + CALL * 2, "{pair:?}");
    }
    let mut taken: Vec<&Call> =
        taking.made.iter().map(|(_, call)| call).filter(|call| **call != Call::Look).collect();
    let count = taken.len();
    taken.sort_by_key(|call| format!("{call:?}"));
    taken.dedup();
    assert_eq!((count, taken.len()), (3_000, 3_000), "each once");
}

/// Else he is refused after five seconds.
#[test]
fn a_user_who_binds_gets_his_mailbox_before_the_others() {
    let mut taking = Taking::new(3_000);
    (0..10).for_each(|_| taking.step());
    let (shard, name) = (mailbox(9_999).shard, mailbox(9_999).name);
    let asked = taking.made.last().map(|(at, _)| *at).unwrap_or_default();
    taking.give(Input::Wanted(shard, name.clone()));
    (0..400).for_each(|_| taking.step());
    let wanted = Call::Acquire { shard, name };
    let made = taking.made.iter().find(|(_, call)| *call == wanted).map(|(at, _)| *at);
    assert!(made.is_some_and(|at| at - asked <= LEASE / 4 + CALL * 3), "{made:?}");
}
