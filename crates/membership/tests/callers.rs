//! Peers that call one node of a site and cannot be called: they belong to the node that they have called. Whole nodes
//! over the model of the store, with calls that are answered at once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

use base::Instant;
use base::rng::Rng;
use engine::journal::QueueId;
use membership::model::{Change, Database};
use membership::{Call, Input, Membership, NodeEpoch, Output, Settings, first_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(8);
const STEP: Duration = Duration::from_millis(100);
/// These call one node and take no calls; the others are called by their owner.
const CALLERS: u64 = 3;
const PEERS: u64 = 12;
const NODES: usize = 3;
/// A peer whose association has ended calls again so much later.
const REDIAL: Duration = Duration::from_secs(2);

struct Site {
    now: Instant,
    db: Database,
    nodes: Vec<Option<Membership>>,
    /// The node that each of those has called last, and since when its association is open.
    bound: BTreeMap<QueueId, (usize, Instant)>,
    /// How often each shard was given to a node.
    gains: BTreeMap<QueueId, u32>,
}

fn settings(index: usize) -> Settings {
    let peers = (0..PEERS).map(|shard| (QueueId(shard), format!("peer {shard}"))).collect();
    Settings { name: format!("n{index}"), lease: LEASE, peers }
}

impl Site {
    fn new() -> Site {
        let nodes = (0..NODES).map(|index| Some(Membership::new(settings(index)))).collect();
        let now = Instant(1_000_000_000);
        let mut site = Site {
            now,
            db: Database::default(),
            nodes,
            bound: BTreeMap::new(),
            gains: BTreeMap::new(),
        };
        site.run(LEASE * 2);
        let own = site.db.nodes(site.now)[0].epoch;
        for shard in 0..CALLERS {
            // It waits for as long as the peer is out of reach: here for ever, as that is the hardest.
            let insert = Change::Insert { id: shard, shard: QueueId(shard) };
            site.db.commit(site.now, own, &[insert]);
        }
        site
    }

    fn epoch(&self, index: usize) -> Option<NodeEpoch> {
        self.nodes[index].as_ref().and_then(Membership::epoch)
    }

    fn owner(&self, shard: QueueId) -> Option<usize> {
        let (owner, _) = self.db.owner(shard)?;
        (0..NODES).find(|index| self.epoch(*index) == Some(owner))
    }

    fn first(&self, shard: QueueId) -> Option<usize> {
        let first = first_of(&self.db.nodes(self.now), shard);
        (0..NODES).find(|index| first.is_some() && self.epoch(*index) == first)
    }

    /// A node that does not come first for a peer.
    fn other(&self, shard: QueueId) -> usize {
        (0..NODES).find(|index| Some(*index) != self.first(shard)).unwrap()
    }

    fn call(&mut self, shard: QueueId, index: usize) {
        self.bound.insert(shard, (index, self.now));
        for other in (0..NODES).filter(|other| *other != index) {
            self.give(other, Input::CalledElsewhere(shard));
        }
    }

    fn give(&mut self, index: usize, input: Input) {
        let mut todo = VecDeque::from([(index, input)]);
        while let Some((at, input)) = todo.pop_front() {
            let Some(node) = &mut self.nodes[at] else { continue };
            node.handle(self.now, input);
            while let Some(output) = self.nodes[at].as_mut().and_then(Membership::poll) {
                match output {
                    Output::Call(call) => {
                        let (own, name) = (self.epoch(at), format!("n{at}"));
                        let answer = self.db.call(self.now, (&name, LEASE), own, &call);
                        todo.push_back((
                            at,
                            match call.is_of_lease() {
                                true => Input::OfLease(answer),
                                false => Input::Ended(answer),
                            },
                        ));
                        if !matches!(call, Call::Look | Call::Renew { .. } | Call::Withdraw(_)) {
                            todo.extend((0..NODES).map(|index| (index, Input::Changed)));
                        }
                    }
                    Output::Gained(shard, ..) => *self.gains.entry(shard).or_default() += 1,
                    Output::Leave(shard) | Output::Lost(shard) => {
                        // Its associations end here.
                        let later = self.now + REDIAL;
                        let ends = self.bound.get_mut(&shard).filter(|(bound, _)| *bound == at);
                        ends.into_iter().for_each(|(_, open)| *open = later);
                        todo.push_back((at, Input::Left(shard)));
                    }
                    Output::Joined(_) | Output::Drained | Output::Lease(_) => {}
                }
            }
        }
    }

    /// Peers call again where they had an association, or at the next node.
    fn redial(&mut self) {
        for (shard, (index, open)) in self.bound.clone() {
            let is_gone = self.nodes[index].is_none();
            if is_gone && open <= self.now {
                self.bound.insert(shard, ((index + 1) % NODES, self.now + REDIAL));
            } else if open <= self.now && self.now < open + STEP {
                self.call(shard, index);
            }
        }
    }

    fn associations(&self, index: usize) -> Input {
        let is_here = |(at, open): &(usize, Instant)| *at == index && *open <= self.now;
        let held: BTreeSet<QueueId> = self
            .bound
            .iter()
            .filter(|(_, bound)| is_here(bound))
            .map(|(shard, _)| *shard)
            .collect();
        let owned = self.nodes[index].iter().flat_map(|node| node.owned().map(|(shard, ..)| shard));
        let called = owned.filter(|shard| shard.0 >= CALLERS);
        Input::Associations { open: held.iter().copied().chain(called).collect(), held }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + STEP;
            self.redial();
            for index in 0..NODES {
                self.give(index, self.associations(index));
                let deadline = self.nodes[index].as_ref().and_then(Membership::deadline);
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    self.give(index, Input::Tick);
                }
            }
        }
    }

    /// Ends in order, or not.
    fn stop(&mut self, index: usize, in_order: bool) {
        if in_order {
            self.give(index, Input::Drain);
            self.run(LEASE);
            let own = self.epoch(index);
            let bury = Call::Bury(own.into_iter().collect());
            self.db.call(self.now, (&format!("n{index}"), LEASE), own, &bury);
        }
        self.nodes[index] = None;
    }

    fn start(&mut self, index: usize) {
        self.nodes[index] = Some(Membership::new(settings(index)));
        self.give(index, Input::Tick);
    }

    /// Each caller belongs to the node that it has called, the others to who ranks first, and nothing moves.
    fn settles(&mut self, within: Duration) {
        self.run(within);
        let before = self.gains.clone();
        for minute in 0..3 {
            for shard in (0..PEERS).map(QueueId) {
                let meant = match self.bound.get(&shard) {
                    Some((index, _)) => Some(*index),
                    None => self.first(shard),
                };
                assert_eq!(self.owner(shard), meant, "shard {} after {minute} minutes", shard.0);
            }
            self.run(Duration::from_secs(60));
        }
        assert_eq!(self.gains, before, "a shard has moved without need");
    }
}

#[test]
fn a_peer_belongs_to_the_node_that_it_has_called_and_stays_there() {
    let mut site = Site::new();
    site.settles(LEASE);
    let before = site.gains.clone();
    for shard in (0..CALLERS).map(QueueId) {
        let other = site.other(shard);
        site.call(shard, other);
    }
    site.settles(LEASE * 2);
    for shard in (0..CALLERS).map(QueueId) {
        assert_eq!(site.gains[&shard], before[&shard] + 1);
    }
}

/// The peer allows one association, and calls its last good address again.
#[test]
fn a_node_that_comes_back_does_not_take_the_peer_of_who_stood_in_for_it() {
    let mut site = Site::new();
    for shard in (0..CALLERS).map(QueueId) {
        let first = site.first(shard).unwrap();
        site.call(shard, first);
    }
    site.settles(LEASE);
    site.stop(0, false);
    site.run(LEASE * 4);
    site.start(0);
    site.settles(LEASE * 30);
}

#[test]
fn a_rolling_restart_ends_with_each_peer_at_the_node_that_it_has_called() {
    for seed in 0..15 {
        let mut rng = Rng::new(seed);
        let mut site = Site::new();
        for shard in (0..CALLERS).map(QueueId) {
            let index = usize::try_from(rng.below(NODES as u64)).unwrap();
            site.call(shard, index);
        }
        site.run(Duration::from_millis(rng.below(20_000)));
        for index in 0..NODES {
            site.stop(index, rng.below(2) == 0);
            site.run(Duration::from_millis(rng.below(30_000)));
            site.start(index);
            site.run(Duration::from_millis(rng.below(20_000)));
        }
        site.settles(LEASE * 20);
    }
}
