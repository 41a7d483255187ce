//! Whole sites over the model of the store, from one seed each: nodes whose clocks differ, that hang, are killed and
//! are cut off; calls and commits that come late, or whose answers are lost.
//!
//! `SEEDS=10000 cargo test -p membership --release --test site` plays more of them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

use base::Instant;
use base::rng::Rng;
use engine::journal::QueueId;
use membership::model::{Change, Commit, Database, Mutant};
use membership::{Answer, Call, Fence, Input, Membership, NodeEpoch, Output, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(4);
const SHARDS: u64 = 5;
const NODES: usize = 3;
/// Messages of a run, and how long they come, in seconds.
const MESSAGES: u64 = 60;
const BUSY: u64 = 90;
/// Faults end then; all is delivered soon after.
const CALM: u64 = 120;
const END: u64 = 200;

/// What a commit was for.
#[derive(Clone, Debug)]
enum Purpose {
    Submission { key: u64, id: u64 },
    Rewrite { shard: QueueId, fence: Fence, id: u64 },
    Deletion { shard: QueueId, fence: Fence, id: u64 },
}

#[derive(Clone, Debug)]
enum Event {
    Wake,
    Reach { of_lease: bool, call: Call, answers: bool },
    Reply { of_lease: bool, answer: Answer },
    Commit { purpose: Purpose, answers: bool },
    Committed { purpose: Purpose, end: Option<Commit> },
    Sent { shard: QueueId, fence: Fence, id: u64 },
    Poll,
    Left(QueueId),
    Start,
}

struct Node {
    machine: Membership,
    /// Its process: events of an earlier one are for nobody.
    run: u64,
    is_up: bool,
    /// Thousandths of a second of its clock in a second.
    rate: u64,
    hangs_until: u64,
    cut_until: u64,
    /// What it owns, with the entries that it has begun with.
    queues: BTreeMap<QueueId, (Fence, BTreeSet<u64>)>,
    committing: usize,
    /// When it is woken next.
    wake_at: u64,
}

struct Site {
    rng: Rng,
    now: u64,
    sequence: u64,
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    db: Database,
    nodes: Vec<Node>,
    believed: Duration,
    last_entry: u64,
    /// Keys by entry, and how they ended.
    key_of: BTreeMap<u64, u64>,
    accepted: BTreeMap<u64, u64>,
    acknowledged: BTreeSet<u64>,
    delivered: BTreeMap<u64, u32>,
    deleted: BTreeSet<u64>,
    order: BTreeMap<QueueId, u64>,
    takeovers: u32,
    repeated: u32,
}

type Outcome = Result<(u32, u32), String>;

fn settings(index: usize, lease: Duration) -> Settings {
    let peers = (0..SHARDS).map(|shard| (QueueId(shard), format!("peer {shard}"))).collect();
    Settings { name: format!("n{index}"), lease, peers }
}

impl Site {
    fn new(seed: u64, mutant: Option<Mutant>, believed: Duration) -> Site {
        let mut rng = Rng::new(seed);
        let nodes = (0..NODES).map(|index| Node {
            machine: Membership::new(settings(index, believed)),
            run: 0,
            is_up: true,
            rate: 960 + rng.below(80),
            hangs_until: 0,
            cut_until: 0,
            queues: BTreeMap::new(),
            committing: 0,
            wake_at: 0,
        });
        let nodes = nodes.collect();
        let mut site = Site {
            rng,
            now: 0,
            sequence: 0,
            events: BTreeMap::new(),
            db: Database::with(mutant),
            nodes,
            believed,
            last_entry: 0,
            key_of: BTreeMap::new(),
            accepted: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            delivered: BTreeMap::new(),
            deleted: BTreeSet::new(),
            order: BTreeMap::new(),
            takeovers: 0,
            repeated: 0,
        };
        for index in 0..NODES {
            site.after(0, index, Event::Wake);
            site.after(0, index, Event::Poll);
        }
        site
    }

    fn after(&mut self, micros: u64, index: usize, event: Event) {
        self.sequence += 1;
        let run = self.nodes[index].run;
        self.events.insert((self.now + micros, self.sequence), (index, run, event));
    }

    /// The time of a node's clock.
    fn local(&self, index: usize) -> Instant {
        Instant(self.now / 1000 * self.nodes[index].rate + 1_000_000)
    }

    fn seconds(&mut self, range: u64) -> u64 {
        self.rng.below(range * 1_000_000)
    }

    fn delay(&mut self) -> u64 {
        match self.rng.below(100) {
            0..2 if self.now < CALM * 1_000_000 => self.seconds(12),
            _ => 500 + self.rng.below(20_000),
        }
    }

    /// Whether a call of this node gets through now, and whether its answer will.
    fn gets_through(&mut self, index: usize) -> (bool, bool) {
        if self.now < self.nodes[index].cut_until {
            return (self.rng.below(4) == 0, false);
        }
        (true, self.now >= CALM * 1_000_000 || self.rng.below(50) > 0)
    }

    fn play(mut self) -> Outcome {
        for message in 0..MESSAGES {
            let at = self.rng.below(BUSY * 1_000_000);
            self.submit(at, message);
        }
        let faults = 4 + self.rng.below(10);
        let mut faults: Vec<u64> = (0..faults).map(|_| self.seconds(BUSY)).collect();
        faults.sort_unstable();
        while let Some(((at, _), (index, run, event))) = self.events.pop_first() {
            if at > END * 1_000_000 {
                break;
            }
            while faults.first().is_some_and(|fault| *fault <= at) {
                self.now = self.now.max(faults.remove(0));
                self.fault();
            }
            self.now = at.max(self.now);
            let node = &self.nodes[index];
            if matches!(event, Event::Start) {
                self.start(index);
            } else if matches!(event, Event::Reach { .. } | Event::Commit { .. }) {
                // It is in the network already, whether the process lives or not.
                self.at_store(index, run, event)?;
            } else if node.hangs_until > self.now && node.run == run {
                let later = node.hangs_until - self.now;
                self.after(later, index, event);
            } else if node.run == run && node.is_up {
                self.at_node(index, event)?;
            }
        }
        self.check_end()
    }

    fn check_end(self) -> Outcome {
        if !self.db.is_empty() {
            return Err(format!("{} entries are never sent", self.db.len()));
        }
        let lost: Vec<_> =
            self.acknowledged.iter().filter(|key| !self.delivered.contains_key(key)).collect();
        if !lost.is_empty() {
            return Err(format!("acknowledged and lost: {lost:?}"));
        }
        Ok((self.takeovers, self.repeated))
    }

    fn submit(&mut self, at: u64, key: u64) {
        let index = usize::try_from(self.rng.below(NODES as u64)).unwrap();
        self.last_entry += 1;
        let id = self.last_entry;
        self.key_of.insert(id, key);
        let purpose = Purpose::Submission { key, id };
        self.sequence += 1;
        // The process that is there then takes it.
        let event = Event::Commit { purpose, answers: true };
        self.events.insert((self.now + at, self.sequence), (index, u64::MAX, event));
    }

    fn fault(&mut self) {
        let index = usize::try_from(self.rng.below(NODES as u64)).unwrap();
        let long = 1_000_000 + self.seconds(15);
        match self.rng.below(4) {
            0 => self.nodes[index].hangs_until = self.now + long,
            1 => self.nodes[index].cut_until = self.now + long,
            2 => {
                self.nodes[index].is_up = false;
                self.nodes[index].queues.clear();
                self.after(long, index, Event::Start);
            }
            _ => {
                let now = self.local(index);
                if self.nodes[index].is_up && self.nodes[index].hangs_until <= self.now {
                    self.nodes[index].machine.handle(now, Input::Drain);
                    self.after(0, index, Event::Wake);
                    self.after(20_000_000, index, Event::Start);
                }
            }
        }
    }

    /// A new process of the node.
    fn start(&mut self, index: usize) {
        let machine = Membership::new(settings(index, self.believed));
        let node = &mut self.nodes[index];
        (node.machine, node.run, node.is_up) = (machine, node.run + 1, true);
        (node.committing, node.wake_at) = (0, 0);
        node.queues.clear();
        self.after(0, index, Event::Wake);
        self.after(0, index, Event::Poll);
    }

    fn at_store(&mut self, index: usize, run: u64, event: Event) -> Result<(), String> {
        // The number that the process has now: a store does not know by which one a batch was begun.
        let (name, own) = (format!("n{index}"), self.nodes[index].machine.epoch());
        let now = Instant(self.now);
        match event {
            Event::Reach { of_lease, call, answers } => {
                if run != self.nodes[index].run {
                    return Ok(());
                }
                let answer = self.db.call(now, (&name, LEASE), own, &call);
                let answer = if answers { answer } else { Answer::Failed };
                let delay = if answers { self.delay() } else { 3_000_000 };
                self.after(delay, index, Event::Reply { of_lease, answer });
            }
            Event::Commit { purpose, answers } => {
                let is_up = self.nodes[index].is_up && self.nodes[index].hangs_until <= self.now;
                if let Purpose::Submission { key, .. } = purpose
                    && (!is_up || own.is_none())
                {
                    // The originator tries it elsewhere.
                    self.submit(1_000_000, key);
                    return Ok(());
                }
                let end = own.map_or(Commit::Fenced, |own| self.commit(now, own, &purpose));
                self.check_commit(&purpose, end)?;
                let end = answers.then_some(end);
                match purpose {
                    Purpose::Submission { key, .. } => {
                        if end == Some(Commit::Durable) && self.rng.below(8) > 0 {
                            self.acknowledged.insert(key);
                        } else {
                            // No answer came: it is submitted again.
                            self.submit(500_000, key);
                        }
                    }
                    purpose if run == self.nodes[index].run => {
                        let delay = self.delay();
                        self.after(delay, index, Event::Committed { purpose, end });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, now: Instant, own: NodeEpoch, purpose: &Purpose) -> Commit {
        let changes = match *purpose {
            Purpose::Submission { key, id } => {
                if self.acknowledged.contains(&key) {
                    return Commit::Conflict;
                }
                vec![Change::Insert { id, shard: QueueId(key % SHARDS) }, Change::Key(key)]
            }
            Purpose::Rewrite { shard, fence, id } => vec![Change::Rewrite { id, shard, fence }],
            Purpose::Deletion { shard, fence, id } => vec![Change::Delete { id, shard, fence }],
        };
        self.db.commit(now, own, &changes)
    }

    fn check_commit(&mut self, purpose: &Purpose, end: Commit) -> Result<(), String> {
        match (purpose, end) {
            (Purpose::Submission { key, id }, Commit::Durable) => {
                if let Some(other) = self.accepted.insert(*key, *id) {
                    return Err(format!("message {key} was accepted twice: {other}, {id}"));
                }
            }
            (Purpose::Submission { key, .. }, Commit::Conflict) => {
                self.acknowledged.insert(*key);
            }
            (Purpose::Deletion { id, .. }, Commit::Durable) => _ = self.deleted.insert(*id),
            (Purpose::Rewrite { id, .. }, Commit::Durable) if self.deleted.contains(id) => {
                return Err(format!("entry {id} is back after its delivery"));
            }
            _ => {}
        }
        Ok(())
    }

    fn at_node(&mut self, index: usize, event: Event) -> Result<(), String> {
        let now = self.local(index);
        let input = match event {
            Event::Wake => Input::Tick,
            Event::Reply { of_lease: true, answer } => Input::OfLease(answer),
            Event::Reply { of_lease: false, answer } => Input::Ended(answer),
            Event::Left(shard) => {
                let can = self.nodes[index].committing == 0;
                self.nodes[index].queues.remove(&shard);
                if !can {
                    self.after(50_000, index, Event::Left(shard));
                    return Ok(());
                }
                Input::Left(shard)
            }
            other => {
                // A lease that is over is noticed before anything else is done.
                self.nodes[index].machine.handle(now, Input::Tick);
                self.outputs(index);
                return self.work(index, other);
            }
        };
        self.nodes[index].machine.handle(now, input);
        self.outputs(index);
        Ok(())
    }

    fn outputs(&mut self, index: usize) {
        while let Some(output) = self.nodes[index].machine.poll() {
            match output {
                Output::Call(call) => {
                    let (reaches, answers) = self.gets_through(index);
                    let of_lease = call.is_of_lease();
                    let delay = self.delay();
                    let event = match reaches {
                        true => Event::Reach { of_lease, call, answers },
                        false => Event::Reply { of_lease, answer: Answer::Failed },
                    };
                    self.after(delay, index, event);
                }
                Output::Gained(shard, _, fence) => {
                    self.takeovers += 1;
                    self.nodes[index].queues.insert(shard, (fence, BTreeSet::new()));
                }
                Output::Lost(shard) => _ = self.nodes[index].queues.remove(&shard),
                Output::Leave(shard) => self.after(100_000, index, Event::Left(shard)),
                Output::Joined(_) | Output::Drained | Output::Lease(_) => {}
            }
        }
        let now = self.local(index);
        if let Some(deadline) = self.nodes[index].machine.deadline() {
            let left = deadline.since(now).as_micros();
            let micros = u64::try_from(left).unwrap() * 1000 / self.nodes[index].rate + 1000;
            let (at, set) = (self.now + micros, self.nodes[index].wake_at);
            if set <= self.now || at < set {
                self.nodes[index].wake_at = at;
                self.after(micros, index, Event::Wake);
            }
        }
    }

    /// What a node does with the entries of its shards.
    fn work(&mut self, index: usize, event: Event) -> Result<(), String> {
        match event {
            Event::Poll => {
                let owned: Vec<(QueueId, Fence)> =
                    self.nodes[index].queues.iter().map(|(s, (fence, _))| (*s, *fence)).collect();
                let (reaches, _) = self.gets_through(index);
                for (shard, fence) in owned.into_iter().filter(|_| reaches) {
                    self.begin(index, shard, fence)?;
                }
                self.after(200_000, index, Event::Poll);
            }
            Event::Sent { shard, fence, id } => {
                if self.nodes[index].queues.get(&shard).is_none_or(|(own, _)| *own != fence) {
                    return Ok(()); // its association was aborted
                }
                let key = self.key_of[&id];
                if self.deleted.contains(&id) {
                    return Err(format!("message {key} is sent again after its delivery"));
                }
                let times = self.delivered.entry(key).or_default();
                *times += 1;
                self.repeated += u32::from(*times > 1);
                self.send_commit(index, Purpose::Deletion { shard, fence, id });
            }
            Event::Committed { purpose, end } => {
                self.nodes[index].committing -= 1;
                let (Purpose::Rewrite { shard, fence, id }
                | Purpose::Deletion { shard, fence, id }) = purpose
                else {
                    return Ok(());
                };
                let Some((own, begun)) = self.nodes[index].queues.get_mut(&shard) else {
                    return Ok(());
                };
                if *own != fence {
                    return Ok(());
                }
                match (&purpose, end) {
                    (Purpose::Rewrite { .. }, Some(Commit::Durable)) => {
                        let takes = 10_000 + self.seconds(2);
                        self.after(takes, index, Event::Sent { shard, fence, id });
                    }
                    // It is asked for again, and so is what failed.
                    (_, Some(Commit::Durable)) => {}
                    _ => _ = begun.remove(&id),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn send_commit(&mut self, index: usize, purpose: Purpose) {
        self.nodes[index].committing += 1;
        let (reaches, answers) = self.gets_through(index);
        let delay = self.delay();
        let event = match reaches {
            true => Event::Commit { purpose, answers },
            false => Event::Committed { purpose, end: None },
        };
        self.after(delay, index, event);
    }

    /// Begins with the first entry of a shard that it has not begun with.
    fn begin(&mut self, index: usize, shard: QueueId, fence: Fence) -> Result<(), String> {
        for (other, node) in self.nodes.iter().enumerate().filter(|(other, _)| *other != index) {
            let runs = node.is_up && node.hangs_until <= self.now;
            let believes = node.queues.contains_key(&shard) && node.machine.owns(shard);
            if runs && believes && node.machine.is_member(self.local(other)) {
                return Err(format!("n{index} and n{other} both own {shard:?}"));
            }
        }
        let listed = self.db.entries(shard);
        let Some((_, begun)) = self.nodes[index].queues.get_mut(&shard) else { return Ok(()) };
        let Some(id) = listed.into_iter().find(|id| !begun.contains(id)) else { return Ok(()) };
        begun.insert(id);
        *self.order.entry(shard).or_default() += 1;
        if self.rng.below(3) == 0 {
            self.send_commit(index, Purpose::Rewrite { shard, fence, id });
        } else {
            let takes = 10_000 + self.seconds(2);
            self.after(takes, index, Event::Sent { shard, fence, id });
        }
        Ok(())
    }
}

fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200)
}

#[test]
fn nothing_is_lost_doubled_or_owned_twice() {
    let (mut takeovers, mut repeated) = (0, 0);
    for seed in 0..seeds() {
        match Site::new(seed, None, LEASE).play() {
            Ok((moved, again)) => {
                takeovers += moved;
                repeated += again;
            }
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(takeovers > 20 && repeated > 0, "{takeovers} takeovers, {repeated} repeated");
}

fn is_found(mutant: Option<Mutant>, believed: Duration) -> bool {
    (0..seeds().max(400)).any(|seed| Site::new(seed, mutant, believed).play().is_err())
}

#[test]
fn a_fence_that_is_not_checked_is_found() {
    assert!(is_found(Some(Mutant::FenceNotChecked), LEASE));
}

#[test]
fn a_key_that_is_not_checked_in_the_commit_is_found() {
    assert!(is_found(Some(Mutant::KeyNotChecked), LEASE));
}

#[test]
fn a_lease_that_a_node_takes_for_longer_than_it_is_is_found() {
    assert!(is_found(None, LEASE * 2));
}
